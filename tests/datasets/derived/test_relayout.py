"""A dataset laid out anew: the same samples, other files."""

import numpy as np
import pytest
from marked_samples import mark
from races import before_call
from whole_datasets import COLUMNS, samples_of

import tensorlake_spark as tl
from tensorlake_spark.datasets.derived import relayout
from tensorlake_spark.datasets.maintenance import sample_compaction
from tensorlake_spark.errors import ConcurrentWriteError, InvalidOptionError


def test_samples_keep_their_numbers(made, values):
    before, files = values(made.ds), set(made.ds.stored.snapshot.files.path)
    made.ds.rechunk("label DESC")
    assert values(made.ds) == before
    assert not files & set(made.ds.stored.snapshot.files.path)
    stored = made.ds.stored
    assert stored.locate(np.arange(20))[1].tolist() == [*range(20)][::-1]
    assert made.ds.check().ok
    assert made.ds.history(1).operation.tolist() == ["rechunk"]


def test_a_column_apart_that_has_few_of_the_samples_is_laid_out_too(made):
    made.ds.add_column("late", tl.types.Tensor("int8", (None,), apart=True))
    made.ds["late"][3] = [7]
    made.ds["late"][5] = [8]
    before = [None if x is None else x.tolist() for x in made.ds["late"]]
    made.ds.rechunk("label DESC")
    assert [None if x is None else x.tolist() for x in made.ds["late"]] == before
    assert made.ds.check().ok


def test_new_numbers_ascend_in_the_order(made, values):
    order = np.random.default_rng(1).permutation(made.ds.sids)
    before = made.ds.sids.tolist()
    made.ds.rechunk(order, renumber=True)
    assert values(made.ds) == [made.rows[sid] for sid in order.tolist()]
    assert made.ds.sids.min() > max(before)
    assert made.ds.check().ok
    made.ds.restore(made.ds.version - 1)
    assert made.ds.sids.tolist() == before
    assert values(made.ds) == [*made.rows.values()]


@pytest.mark.local_disk
@pytest.mark.parametrize("renumber", [False, True])
def test_samples_that_are_marked_as_deleted_have_no_place(tmp_path, renumber):
    ds = tl.dataset(tmp_path, {"n": "int8"})
    ds.extend({"n": [*range(6)]})
    mark(ds._storage, 4)
    ds.refresh()
    ds.rechunk("n DESC", renumber=renumber)
    found = dict(zip(ds.sids.tolist(), ds["n"][:].tolist(), strict=True))
    few = [0, 1, 2, 3, 5]
    assert [*found.values()] == few[::-1] if renumber else found == dict(zip(few, few, strict=True))
    assert ds.check().ok


def test_the_old_parts_go_with_vacuum(made, values):
    made.ds.rechunk("label", renumber=True)
    before = values(made.ds)
    made.ds.vacuum(0)
    made.ds.vacuum(0)
    assert values(made.ds) == before
    assert made.ds.check().ok


def test_sizes(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"x": tl.types.Tensor("uint8", (1000,))})
    ds.extend({"x": np.zeros((100, 1000), np.uint8)})
    ds.rechunk(file_bytes=20_000, row_group_bytes=5_000)
    files = ds.stored.files
    assert len(files) >= 3
    assert all(np.diff(file.starts).max() <= 5 for file in files)
    ds.rechunk(renumber=True, row_group_bytes=10_000, workers=2)
    assert np.diff(ds.stored.files[0].starts).max() <= 10


def test_what_others_add_meanwhile_is_not_lost(made):
    other = tl.dataset(made.path)
    sids = made.ds.sids.copy()
    other.extend({"label": [77]})
    with pytest.raises(InvalidOptionError, match="each of the 21 samples once"):
        made.ds.rechunk(sids)
    made.ds.rechunk("label DESC", renumber=True)
    assert made.ds["label"][0] == 77


def test_a_writer_that_is_faster_wins(made, monkeypatch):
    """The other writer adds a sample after the files are written and before the commit."""
    real = relayout.committed_parts

    def slow(work, done):
        out = real(work, done)
        tl.dataset(made.path).extend({"label": [5]})
        return out

    monkeypatch.setattr(relayout, "committed_parts", slow)
    with pytest.raises(ConcurrentWriteError, match="another writer changed"):
        made.ds.rechunk("label", renumber=True)
    made.ds.refresh()
    assert len(made.ds) == 21
    assert made.ds.check().ok
    assert not [one for one in made.ds.check().findings if one.kind == "orphan"]


def test_what_others_add_between_the_samples_and_their_parts_is_not_lost(
    made, values, jpegs, monkeypatch
):
    more = samples_of(jpegs, [20, 21])
    before_call(monkeypatch, relayout, "settled", lambda: tl.dataset(made.path).extend(more))
    made.ds.rechunk("label DESC")
    now = tl.dataset(made.path)
    assert values(now)[:20] == [*made.rows.values()]
    other = tl.dataset(made.path.parent / "other", COLUMNS)
    other.extend(more)
    assert values(now)[20:] == values(other)
    assert now.check().ok


@pytest.mark.parametrize(
    "work", [lambda ds: ds.delete([3]), lambda ds: (ds.delete([3]), ds.extend({"label": [5]}))]
)
def test_samples_that_others_delete_have_no_place_in_an_order(made, monkeypatch, work):
    """Also where there are as many samples as before."""
    before_call(monkeypatch, sample_compaction, "commit", lambda: work(tl.dataset(made.path)))
    with pytest.raises(ConcurrentWriteError, match="another writer added or deleted samples"):
        made.ds.rechunk("label DESC")
    now = tl.dataset(made.path)
    assert 3 not in now.sids
    assert now.check().ok


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"file_bytes": 0}, "file_bytes=0"),
        ({"row_group_bytes": True}, "row_group_bytes=True"),
        ({"renumber": True, "file_bytes": 0}, "file_bytes=0"),
        ({"workers": 2}, "workers is for renumber"),
        ({"renumber": True, "workers": 0}, "workers=0"),
        ({"renumber": True, "order": "nothing"}, "no column 'nothing'"),
    ],
)
def test_bad_options(made, options, said):
    version = made.ds.version
    with pytest.raises(InvalidOptionError, match=said):
        made.ds.rechunk(**options)
    made.ds.refresh()
    assert made.ds.version == version


def test_a_version_is_for_reading(made):
    with pytest.raises(InvalidOptionError, match="for reading only"):
        tl.dataset(made.path, version=made.ds.version).rechunk()


def test_a_table_that_takes_appends_only(made):
    from deltalake import DeltaTable

    DeltaTable(str(made.path)).alter.set_table_properties({"delta.appendOnly": "true"})
    made.ds.refresh()
    with pytest.raises(tl.UnsupportedFeatureError, match="appends only"):
        made.ds.rechunk(renumber=True)
