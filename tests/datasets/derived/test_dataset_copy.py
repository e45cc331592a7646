"""Copies of samples: by threads and by executors, whole or not at all."""

import os
import pathlib
import subprocess
import sys
import uuid

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.changes import workers
from tensorlake_spark.datasets.dataset import Dataset
from tensorlake_spark.datasets.derived import dataset_copy
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import ConcurrentWriteError, CorruptDataError, InvalidOptionError


def files_in(folder):
    return sorted(
        os.path.relpath(os.path.join(base, name), folder)
        for base, _, names in os.walk(folder)
        for name in names
    )


def stored_bytes(ds, name):
    return ds.to_arrow([name]).column(name).combine_chunks().field("data").to_pylist()


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_samples_in_an_order(made, tmp_path, values, workers):
    few = made.ds.copy(tmp_path / "few", made.order, workers=workers)
    assert values(few) == [made.rows[sid] for sid in made.order.tolist()]
    assert few.sids.tolist() == [*range(13)]
    assert few.schema == made.ds.schema
    assert few.tile_bytes == made.ds.tile_bytes
    assert few.check(deep=True, sources=True).ok
    # Media are the bytes that they were.
    positions = made.ds.stored.positions_of(made.order)
    assert stored_bytes(few, "small") == [stored_bytes(made.ds, "small")[p] for p in positions]
    few.extend({"label": [7]})
    assert few.sids[-1] == 13


def test_executors_do_it(spark, made, tmp_path, values):
    few = made.ds.copy(tmp_path / "few", made.order, workers=spark)
    assert values(few) == [made.rows[sid] for sid in made.order.tolist()]
    here = made.ds.copy(tmp_path / "here", made.order)
    assert few.lineage.digests == here.lineage.digests
    assert few.check(sources=True).ok


def test_how_it_is_shared_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_SHARE_BYTES", (1 << 10, 1 << 12))
    ds = tl.dataset(tmp_path / "ds", {"n": "int64", "x": tl.types.Tensor("uint8", (None,))})
    ds.extend({"n": np.arange(1500), "x": [np.full(n % 9, n % 250, np.uint8) for n in range(1500)]})
    order = np.random.default_rng(0).integers(0, 1500, 3000)  # some twice
    many = ds.copy(tmp_path / "many", order, workers=4)
    assert len(many.stored.files) > 3
    assert many["n"][:].tolist() == order.tolist()
    monkeypatch.setattr(workers, "_SHARE_BYTES", (1 << 30, 1 << 30))
    one = ds.copy(tmp_path / "one", order)
    assert len(one.stored.files) == 1
    assert one.lineage.digests == many.lineage.digests


def test_conditions_columns_and_none(made, tmp_path):
    few = made.ds.copy(tmp_path / "few", "label > 16", ["training/name", "label"])
    assert few["label"][:].tolist() == [17, 18, 19]
    assert [*few.schema] == ["training/name", "label"]
    none = made.ds.copy(tmp_path / "none", [], ["label"])
    assert len(none) == 0
    assert none.lineage.samples == 0
    assert none.check(sources=True).ok


def test_links_are_fetched(made, tmp_path, jpegs):
    for number in range(3):
        (tmp_path / f"{number}.jpg").write_bytes(jpegs[number])
    kind = tl.types.Link(tl.types.Image("jpeg"))
    ds = tl.dataset(tmp_path / "linked", {"image": kind, "n": "int32"})
    ds.extend({"image": [str(tmp_path / f"{n}.jpg") for n in range(3)], "n": [0, 1, 2]})
    few = ds.copy(tmp_path / "few", [2, 0])
    assert few.schema["image"] == tl.types.Image("jpeg")
    assert stored_bytes(few, "image") == [jpegs[2], jpegs[0]]
    assert few.lineage.sources[0].fetched == {"image": "image"}
    kept = ds.copy(tmp_path / "kept", links="keep")
    assert kept.schema["image"] == kind
    (tmp_path / "1.jpg").write_bytes(b"other")
    with pytest.raises(CorruptDataError, match=r"1\.jpg"):
        ds.copy(tmp_path / "bad")
    assert files_in(tmp_path / "bad") == []


@pytest.mark.parametrize("executors", [False, True])
def test_lists_of_links_are_fetched(tmp_path, jpegs, executors, request):
    paths = [str(tmp_path / f"{number}.jpg") for number in range(3)]
    for path, data in zip(paths, jpegs, strict=False):
        pathlib.Path(path).write_bytes(data)
    kind = tl.types.Sequence(tl.types.Link(tl.types.Image("jpeg")))
    ds = tl.dataset(tmp_path / "linked", {"images": kind})
    ds.extend({"images": [paths, [], None, [paths[1]]]})
    workers = request.getfixturevalue("spark") if executors else None
    few = ds.copy(tmp_path / "few", [3, 1, 0, 2], workers=workers)
    assert few.schema["images"] == tl.types.Sequence(tl.types.Image("jpeg"))
    found = [
        None if one is None else [item["data"] for item in one]
        for one in few.to_arrow()["images"].to_pylist()
    ]
    assert found == [[jpegs[1]], [], jpegs[:3], None]


def test_media_are_encoded_anew_where_that_is_asked(made, tmp_path):
    few = made.ds.copy(tmp_path / "few", made.order, types={"small": tl.types.Image("png")})
    assert all(data.startswith(b"\x89PNG") for data in stored_bytes(few, "small"))
    for row, sid in enumerate(made.order.tolist()):
        np.testing.assert_array_equal(few["small"][row], made.ds.sample(sid)["small"])
    assert few.lineage.computed == ("small",)
    assert few.check(sources=True).ok


def test_other_places(made, tmp_path, jpegs):
    with pytest.raises(InvalidOptionError, match="there is a table at"):
        made.ds.copy(made.path)
    (tmp_path / "left" / "_columns" / "image").mkdir(parents=True)
    (tmp_path / "left" / "_columns" / "image" / "x").write_bytes(b"")
    with pytest.raises(InvalidOptionError, match="a folder _columns and no table"):
        made.ds.copy(tmp_path / "left")
    assert files_in(tmp_path / "left") == ["_columns/image/x"]


def test_nothing_is_left_of_a_copy_that_fails(made, tmp_path, monkeypatch):
    path = made.path / made.ds.stored.snapshot.files.path[1]
    data = path.read_bytes()
    real = dataset_copy.committed_parts

    def failing(work, done):
        real(work, done)
        raise KeyboardInterrupt

    monkeypatch.setattr(dataset_copy, "committed_parts", failing)
    with pytest.raises(KeyboardInterrupt):
        made.ds.copy(tmp_path / "new")
    assert files_in(tmp_path / "new") == []
    monkeypatch.setattr(dataset_copy, "committed_parts", real)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(tl.TensorLakeError):
        tl.dataset(made.path).copy(tmp_path / "new", workers=2)
    assert files_in(tmp_path / "new") == []
    path.write_bytes(data)
    assert tl.dataset(made.path).copy(tmp_path / "new").check().ok


def test_another_writer_at_the_new_place(made, tmp_path, monkeypatch):
    real = dataset_copy.committed_parts

    def slow(work, done):
        storage = Storage(str(tmp_path / "new"))
        Dataset(storage, Snapshot.open(storage, kind=SAMPLES)).extend({"label": [5]})
        return real(work, done)

    monkeypatch.setattr(dataset_copy, "committed_parts", slow)
    with pytest.raises(ConcurrentWriteError, match="another writer added samples"):
        made.ds.copy(tmp_path / "new")
    assert tl.dataset(tmp_path / "new")["label"][:].tolist() == [5]


KILLED = """
import os, sys
import tensorlake_spark as tl
from tensorlake_spark.datasets.derived import dataset_copy
dataset_copy.committed_parts = lambda work, done: os._exit(9)
tl.dataset(sys.argv[1], create=False).query("SELECT * FROM dataset").materialize(sys.argv[2])
"""


def test_what_a_killed_copy_leaves_is_no_dataset_and_is_taken_away(made, tmp_path, values):
    place = tmp_path / "new"
    done = subprocess.run([sys.executable, "-c", KILLED, str(made.path), str(place)], check=False)
    assert done.returncode == 9
    left = files_in(place)
    assert any(name.startswith("samples-") for name in left)
    for create in (False, True):
        with pytest.raises(tl.TableNotFoundError, match="copy that is not complete"):
            tl.dataset(place, create=create)
    with pytest.raises(tl.TableNotFoundError, match="copy that is not complete"):
        tl.query("SELECT * FROM d", d=str(place))
    with pytest.raises(InvalidOptionError, match="try again 60 minutes after"):
        made.ds.copy(place)
    assert files_in(place) == left
    (place / "mine.txt").write_text("not of the copy")
    for name in [*left, "mine.txt"]:
        os.utime(place / name, (1e9, 1e9))
    new = made.ds.copy(place, made.order)
    assert values(new) == [made.rows[sid] for sid in made.order.tolist()]
    assert new.check(deep=True, sources=True).ok
    assert not set(files_in(place)) & {n for n in left if n.startswith(("samples-", "_lineage"))}
    assert (place / "mine.txt").exists()
    with pytest.raises(InvalidOptionError, match="a table at"):
        made.ds.copy(place)


@pytest.mark.parametrize("workers", [0, -1, 2.0, "two", True, 5000])
def test_workers_that_are_none(made, tmp_path, workers):
    with pytest.raises(InvalidOptionError, match="workers="):
        made.ds.copy(tmp_path / "new", workers=workers)


def test_on_s3(made, s3, values):
    few = made.ds.copy(f"s3://bucket/{uuid.uuid4()}/few", made.order, storage_options=s3.options)
    assert values(few) == [made.rows[sid] for sid in made.order.tolist()]
    few.check()
    again = few.copy(f"s3://bucket/{uuid.uuid4()}/again", [3, 1])
    assert values(again) == [made.rows[sid] for sid in made.order[[3, 1]].tolist()]
    assert again.check(sources=True).ok


def test_a_copy_does_not_lie_in_what_is_copied(tmp_path):
    """VACUUM of Delta deletes what it does not know in the folder of a table, so that such a copy would be lost."""
    ds = tl.dataset(tmp_path / "ds", {"x": "int32"})
    ds.extend({"x": [1, 2]})
    for copy in (ds.copy, ds.query("SELECT x FROM dataset").materialize):
        with pytest.raises(
            tl.InvalidOptionError,
            match=r"ds/few lies in the dataset at .*; choose a place beside it",
        ):
            copy(tmp_path / "ds" / "few")
    assert len(ds.copy(tmp_path / "ds2")) == 2
