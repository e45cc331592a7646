"""The doors: what each refuses before it begins."""

import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, SampleNotFoundError, TableNotFoundError


def test_without_a_table(tmp_path):
    ds = tl.dataset(tmp_path / "nothing")
    assert ds.lineage is None
    assert ds.views == {}
    for call in (ds.rechunk, lambda: ds.copy(tmp_path / "new"), lambda: ds.delete_view("a")):
        with pytest.raises(TableNotFoundError):
            call()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("samples", [[[1]], [0.5], ["a"]])
def test_samples_that_are_none(made, tmp_path, samples):
    with pytest.raises(InvalidOptionError, match="samples is"):
        made.ds.copy(tmp_path / "new", samples)


def test_samples_that_are_not_there(made, tmp_path):
    with pytest.raises(SampleNotFoundError, match="no sample with sid 777"):
        made.ds.copy(tmp_path / "new", [0, 777])
    with pytest.raises(InvalidOptionError):
        made.ds.copy(tmp_path / "new", "no such column = 1")
    assert not (tmp_path / "new").exists()


def test_versions_are_copied_and_not_changed(made, tmp_path, values):
    old = tl.dataset(made.path, version=made.ds.version)
    made.ds.delete(made.ds.sids[:10])
    copy = old.copy(tmp_path / "old")
    assert values(copy) == [*made.rows.values()]
    assert copy.lineage.sources[0].version == old.version
    for call in (old.rechunk, lambda: old.delete_view("a")):
        with pytest.raises(InvalidOptionError, match="for reading only"):
            call()
