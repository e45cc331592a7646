"""New samples: their numbers, and writers that work at once."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tensorlake_spark as tl
from tensorlake_spark.datasets.changes import sample_changes
from tensorlake_spark.datasets.samples import appending
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(tmp_path / "ds", {"size": "int32"})
    found.extend({"size": np.arange(30)})
    return found


def test_an_append_that_is_too_large_to_wait_takes_its_numbers_first(tmp_path, monkeypatch):
    monkeypatch.setattr(appending, "HELD_BYTES", 1000)
    ds = tl.dataset(tmp_path, {"x": tl.types.Tensor("int64")})
    ds.extend([{"x": np.arange(n % 50)} for n in range(3000)])
    assert ds.sids.tolist() == [*range(3000)]
    ds.append({"x": np.arange(2)})
    assert ds.sids[-1] == 3000, "numbers that were not used went back"
    assert [len(x) for x in ds["x"][:100]] == [n % 50 for n in range(100)]


@pytest.mark.parametrize("held", [appending.HELD_BYTES, 1])
@pytest.mark.parametrize("apart", [False, True])
def test_two_runs_of_one_batch_at_the_same_time_add_it_once(tmp_path, monkeypatch, apart, held):
    monkeypatch.setattr(appending, "HELD_BYTES", held)
    batch = [{"size": n, "name": f"{n}"} for n in range(600)]
    ds = tl.dataset(tmp_path, {"size": "int32", "name": tl.types.Text(apart=apart)})

    def slow():
        yield from batch
        tl.dataset(tmp_path).extend(batch, transaction=("job", 4))

    ds.extend(slow(), transaction=("job", 4))
    assert ds["size"][:].tolist() == [*range(600)]
    assert tl.dataset(tmp_path)["name"][-1] == "599"
    assert ds.check().ok
    assert {path.name for path in tmp_path.glob("*.parquet")} == {*ds.stored.snapshot.files.path}


def test_a_batch_that_was_committed_before_changes_nothing(ds):
    ds.extend([{"size": 1}], transaction=("job", 4))
    ds.extend([{"size": 1}], transaction=("job", 4))
    ds.extend([{"size": 1}], transaction=("job", 3))
    assert len(ds) == 31


@pytest.mark.parametrize("name", ["dataset/sid", "dataset/part/_tensors", "tag/x", "ha\ud800lf"])
def test_a_batch_has_no_name_by_which_a_dataset_counts_itself(ds, name):
    """A batch of the name of the counter was taken for one that is there, and its samples were lost."""
    with pytest.raises(tl.InvalidOptionError, match=r"choose another name|half of a character"):
        ds.extend([{"size": 1}], transaction=(name, 1))
    assert (len(ds), ds.version) == (30, 1)


TWO = """
import sys, tensorlake_spark as tl
ds = tl.dataset(sys.argv[1])
for n in range(20):
    ds.append({"size": int(sys.argv[2]) + n})
"""


def test_two_writers_both_land(ds):
    commands = [[sys.executable, "-c", TWO, ds.uri, str(first)] for first in (100, 200)]
    running = [subprocess.Popen(command) for command in commands]
    assert [process.wait(120) for process in running] == [0, 0]
    ds.refresh()
    assert len(ds) == 70
    assert ds.sids.tolist() == [*range(70)]
    assert sorted(ds["size"][30:].tolist()) == [*range(100, 120), *range(200, 220)]


@pytest.mark.parametrize("held", [0, 1000, 1 << 20])
def test_a_writer_that_is_overtaken_gives_other_numbers(ds, monkeypatch, held):
    """What is written before its numbers are sure is written again, whether or not they are reserved later."""
    monkeypatch.setattr(appending, "HELD_BYTES", held)
    other = tl.dataset(ds.uri)

    def samples():
        for number in range(3000):
            if number in (500, 2500):
                other.append({"size": -number})
            yield {"size": number}

    ds.extend(samples())
    assert len(ds) == 3032
    assert len(set(ds.sids.tolist())) == 3032
    values = ds["size"][:].tolist()
    assert [value for value in values[30:] if value >= 0] == [*range(3000)]
    assert {value for value in values if value < 0} == {-500, -2500}
    files = {path.name for path in Path(ds.uri).iterdir() if path.suffix == ".parquet"}
    assert files == set(ds.stored.snapshot.files.path), "files of the first try are gone"


@pytest.mark.parametrize("held", [0, 1 << 20])
def test_samples_that_are_written_again_are_the_same(tmp_path, monkeypatch, held):
    """They are read from the first files, whose media were views of the user's bytes."""
    monkeypatch.setattr(appending, "HELD_BYTES", held)
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (40, 64, 64, 3), np.uint8)
    kinds = {"image": tl.types.Image("raw"), "g/x": tl.types.Tensor("int16"), "g/tags": tl.types.Sequence(tl.types.Text())}  # fmt: skip
    ds, other = (tl.dataset(tmp_path / "ds", kinds) for _ in range(2))

    def samples():
        for number, picture in enumerate(pictures):
            if number == 30:
                other.append({"g": {"tags": ["other"]}})
            x, tags = (
                np.arange(number % 5, dtype="i2"),
                ["a"] * (number % 3) if number % 4 else None,
            )
            yield {"image": picture, "g": {"x": x, "tags": tags}}

    ds.extend(samples())
    first = int(ds["g/tags"][0] == ["other"])
    assert sorted(ds.sids.tolist()) == [*range(41)]
    for number, picture in enumerate(pictures, first):
        assert (ds["image"][number] == picture).all()
        assert ds["g/x"][number].tolist() == [*range((number - first) % 5)]
        wanted = ["a"] * ((number - first) % 3) if (number - first) % 4 else None
        assert ds["g/tags"][number] == wanted


def test_numbers_that_were_reserved_stay_apart_from_those_of_others(ds):
    storage = Storage(ds.uri)
    snapshot, first = appending.reserve(storage, Snapshot.open(storage, kind=SAMPLES), 100)
    assert (first, appending.next_sid(snapshot)) == (30, 130)
    ds.append({"size": 1})
    assert ds.sids[-1] == 130
    _, again = appending.reserve(storage, snapshot, 5)
    assert again == 131, "an older version will do"


def test_a_writer_that_fails_leaves_nothing(ds, tmp_path, monkeypatch):
    monkeypatch.setattr(appending, "HELD_BYTES", 1000)
    before = {path.name for path in (tmp_path / "ds").iterdir()}

    def samples():
        for number in range(5000):
            yield {"size": number}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ds.extend(samples())
    assert {path.name for path in (tmp_path / "ds").iterdir()} == before
    ds.refresh()
    assert len(ds) == 30


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.delete([7]),
        lambda ds: ds.update([7], {"label": 1}),
        lambda ds: ds.drop_column("caption"),
        lambda ds: (ds.optimize(), ds.delete([7])),
        lambda ds: ds.restore(2),
        lambda ds: ds.purge([7]),
    ],
    ids=["delete", "update", "drop_column", "optimize", "restore", "purge"],
)
def test_numbers_that_delta_gave_are_kept_when_its_files_are_gone(tmp_path, change):
    ds = tl.dataset(tmp_path / "ds", {"label": "int32", "caption": "string"})
    for label in (0, 1):
        ds.append({"label": label})
    rows = DeltaTable(ds.uri).to_pyarrow_table().slice(0, 1)
    sids = pa.array([7], pa.int64())
    write_deltalake(ds.uri, rows.set_column(0, rows.schema.field(0), sids), mode="append")
    ds.refresh()
    change(ds)
    ds.append({"label": 1})
    assert ds.sids[-1] == 8
    ds.append({"label": 1})
    assert ds.sids[-1] == 9


def test_the_largest_number_by_others_leaves_none_above_it(ds):
    """In the log it looks as a bound that is not known."""
    rows = DeltaTable(ds.uri).to_pyarrow_table().slice(0, 1)
    sids = pa.array([2**63 - 1], pa.int64())
    write_deltalake(ds.uri, rows.set_column(0, rows.schema.field(0), sids), mode="append")
    ds.refresh()
    with pytest.raises(tl.CorruptDataError, match=f"sid {2**63 - 1}"):
        ds.append({"size": 6})


def rows_of(*sids):
    """Rows as a plain writer of Delta makes them."""
    return pa.table({"sid": pa.array(sids, pa.int64()), "size": pa.array(sids, pa.int32())})


@pytest.mark.parametrize("deletes", [False, True])
def test_numbers_that_the_log_does_not_tell_are_not_given_again(ds, deletes):
    """Where a table keeps no statistics, the files are read; also once more than these have left it."""
    table = DeltaTable(ds.uri)
    table.alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "0"})
    write_deltalake(table, rows_of(31, 36), mode="append")
    ds.refresh()
    if deletes:
        ds.delete([36])
    ds.extend({"size": [1, 2]})
    assert ds.sids[-3:].tolist() == [31 if deletes else 36, 37, 38]
    assert ds.check().ok


@pytest.mark.parametrize("held", [appending.HELD_BYTES, 1])
@pytest.mark.parametrize("during", [False, True])
def test_numbers_that_a_plain_writer_gave_since_are_not_given_again(ds, monkeypatch, held, during):
    monkeypatch.setattr(appending, "HELD_BYTES", held)

    def samples():
        write_deltalake(ds.uri, rows_of(30, 31, 40), mode="append")
        yield {"size": 1}

    if during:
        ds.extend(samples())
    else:
        ds.extend([*samples()])
    assert ds.sids[-4:].tolist() == [30, 31, 40, 41]
    assert ds["size"][-4:].tolist() == [30, 31, 40, 1]


def test_numbers_that_are_reserved_and_that_a_plain_writer_gives_are_told(tmp_path):
    ds = tl.dataset(tmp_path, {"size": "int32", "name": tl.types.Text(apart=True)})
    ds.extend({"size": [0, 1], "name": ["a", "b"]})

    def commit_after_another(*given, rows=iter([rows_of(3)]), made=appending.commit_files):
        for one in rows:
            write_deltalake(ds.uri, one, mode="append", schema_mode="merge")
        return made(*given)

    more = {"size": [2, 3], "name": ["c", "d"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appending, "commit_files", commit_after_another)
        with pytest.raises(tl.ConcurrentWriteError, match=r"a row with sid 3 .* was reserved.*SQL"):
            ds.extend(more)
    ds.refresh()
    assert ds.sids.tolist() == [0, 1, 3]
    ds.extend(more)
    assert len(ds) == 5
    assert ds["name"][-2:] == ["c", "d"]


def test_samples_after_the_end_take_no_number_of_a_plain_writer(ds, monkeypatch):
    ds.strict = False

    def committed_after_another(
        *given, rows=iter([rows_of(30)]), made=sample_changes.change_of, **how
    ):
        for one in rows:
            write_deltalake(ds.uri, one, mode="append")
        return made(*given, **how)

    monkeypatch.setattr(sample_changes, "change_of", committed_after_another)
    ds["size"][30] = 7
    assert ds.sids[-2:].tolist() == [30, 31]
    assert ds["size"][-2:].tolist() == [30, 7]


def test_a_constraint_that_comes_while_samples_are_written_holds(ds):
    def samples():
        yield {"size": 100}
        DeltaTable(ds.uri).alter.add_constraint({"small": "size < 50"})

    with pytest.raises(tl.UnsupportedFeatureError, match="the constraint 'small'"):
        ds.extend(samples())
    assert len(tl.dataset(ds.uri)) == 30
    assert len([*Path(ds.uri).glob("*.parquet")]) == 1
