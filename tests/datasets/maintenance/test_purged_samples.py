"""Which samples a purge is about."""

import numpy as np
import pytest
from deltalake import DeltaTable

import tensorlake_spark as tl
from tensorlake_spark.datasets.maintenance.purged_samples import chosen


@pytest.fixture
def ds(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"a": "int32"})
    ds.extend({"a": np.arange(6)})
    ds.extend({"a": np.arange(6)})
    return ds


def of(ds, sids=None, where=None):
    ds.refresh()
    return chosen(ds.stored.snapshot, sids, where).tolist()


def test_numbers_are_sorted_and_stand_once(ds):
    assert of(ds, [5, 1, 5]) == [1, 5]
    assert of(ds, np.array([3], np.uint8)) == [3]
    assert of(ds, ds.sids) == list(range(12))
    DeltaTable(ds.uri).delete("sid = 3")
    assert of(ds, [3]) == [3]


@pytest.mark.parametrize("sid", [12, -1])
def test_a_number_that_was_never_given(ds, sid):
    with pytest.raises(tl.SampleNotFoundError, match=rf"sid {sid}; the next one gets 12"):
        of(ds, [0, sid])


def test_a_condition_on_what_is_there_and_on_what_was(ds):
    assert of(ds, where="a = 2") == [2, 8]
    DeltaTable(ds.uri).delete("sid = 8")
    DeltaTable(ds.uri).update(updates={"a": "77"}, predicate="sid = 2")
    assert of(ds, where="a = 2") == [8]
    DeltaTable(ds.uri).delete("sid = 2")
    assert of(ds, where="a = 2") == [8]
    assert of(ds, where="a = 77") == [2]


def test_a_column_that_earlier_versions_did_not_have(ds):
    ds.delete([3])
    ds.add_column("b", "int32", [*range(11)])
    assert of(ds, where="b = 4") == [5]


@pytest.mark.parametrize("where", ["a = 2", "a IS NULL OR NOT a IN (1, 3)", "sid >= 0", "t = 'x'"])
def test_a_dataset_without_samples(tmp_path, where):
    ds = tl.dataset(tmp_path / "ds", {"a": "int32", "t": tl.types.Text(apart=True)})
    assert of(ds, where=where) == []
    ds.extend({"a": [2], "t": ["x"]})
    ds.delete([0])
    assert of(ds, where=where) == [0]


def test_versions_that_cannot_be_read_any_more_are_left_out(ds):
    DeltaTable(ds.uri).delete("sid < 6")
    ds.refresh()
    ds.vacuum(0)
    assert of(ds, where="a = 2") == [8]


def test_a_condition_on_a_column_apart(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"a": tl.types.Text(apart=True), "n": "int32"})
    ds.extend([{"a": "xyz"[n % 3], "n": n} for n in range(6)])
    assert of(ds, where="a = 'y'") == [1, 4]
    ds.update(1, {"a": "x"})
    ds.delete([4, 5])
    assert of(ds, where="a = 'y'") == [4]
    assert of(ds, where="a = 'x' OR n = 5") == [0, 1, 3, 5]
    ds.vacuum(0)  # what was deleted cannot be judged any more
    assert of(ds, where="a = 'y'") == []
    assert of(ds, where="a = 'x'") == [0, 1, 3]


def test_numbers_and_a_condition_exclude_each_other(ds):
    with pytest.raises(tl.InvalidOptionError, match="sids and where exclude each other; give one"):
        ds.purge([1], where="label = 1", dry_run=True)
    with pytest.raises(tl.InvalidOptionError, match="give sids, or where, to say which"):
        ds.purge(dry_run=True)
