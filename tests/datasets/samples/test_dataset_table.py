"""Which version a handle shows."""

import numpy as np
import pytest

import tensorlake_spark as tl


def test_a_place_without_a_table(tmp_path):
    ds = tl.dataset(tmp_path / "new")
    assert (ds.version, len(ds), ds.sids.tolist(), dict(ds.schema)) == (None, 0, [], {})
    with pytest.raises(FileNotFoundError, match="has no samples yet"):
        ds.stored
    assert not (tmp_path / "new").exists()


def test_a_column_that_is_not_there(tmp_path):
    ds = tl.dataset(tmp_path, {"label": "int32"})
    with pytest.raises(KeyError, match=r"has no column .lable..*its columns are label"):
        ds.type_of("lable")


def test_a_version_by_time(tmp_path):
    ds = tl.dataset(tmp_path, {"label": "int32"})
    ds.extend({"label": np.arange(3)})
    with pytest.raises(tl.InvalidOptionError):
        tl.dataset(tmp_path, version=9)
    assert len(tl.dataset(tmp_path, timestamp="2999-01-01T00:00:00Z")) == 3


def test_types_are_made_anew_only_where_columns_change(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"label": tl.types.ClassLabel(["cat", "dog"])})
    ds.append({"label": "dog"})
    before = ds.schema
    ds.append({"label": "cat"})
    ds.tag("two")
    assert ds.schema is before
    tl.dataset(ds.uri).add_column("n", "int32")
    assert "n" not in ds.schema
    ds.refresh()
    assert list(ds.schema) == ["label", "n"]
