"""The doors of maintenance: history, tags, versions that are for reading only."""

import pytest
from whole_datasets import contents, samples_of

import tensorlake_spark as tl


def test_history_and_tags(made):
    ds = made.ds
    assert ds.history()["operation"].head(1).item() == "extend"
    assert len(ds.history(2)) == 2
    with pytest.raises(tl.InvalidOptionError, match="limit is -1"):
        ds.history(-1)
    version = ds.version
    assert ds.tag("first") == version
    ds.extend(samples_of(made.jpegs, range(20, 22)))
    assert ds.tags() == {"first": version}
    assert contents(tl.dataset(made.path, version="first")) == made.at_first
    with pytest.raises(tl.InvalidOptionError, match="first"):
        ds.tag("first")
    ds.tag("first", replace=True)
    assert len(tl.dataset(made.path, version="first")) == 22
    ds.untag("first")
    assert ds.tags() == {}
    with pytest.raises(tl.InvalidOptionError, match="first"):
        tl.dataset(made.path, version="first")


def test_a_version_is_for_reading_only(made):
    old = tl.dataset(made.path, version=1)
    for call in (lambda: old.restore(0), lambda: old.tag("x"), old.optimize, old.vacuum):
        with pytest.raises(tl.InvalidOptionError, match="for reading only"):
            call()


def test_truth_values_and_none_are_no_versions_and_no_hours(made):
    """restore(True) brought back version 1, which may have no sample."""
    ds, before = made.ds, made.ds.version
    for version in (True, False, None):
        with pytest.raises(
            tl.InvalidOptionError, match=r"neither a whole number nor a tag|no version to restore"
        ):
            ds.restore(version)
    # A dataset has no lake whose history could be asked.
    with pytest.raises(tl.InvalidOptionError, match=r"nor a tag; history\(\) has the versions"):
        tl.dataset(ds.uri, version=True)
    with pytest.raises(
        tl.InvalidOptionError, match="retention_hours is True; it is a number of hours"
    ):
        ds.vacuum(True)
    assert tl.dataset(ds.uri).version == before
