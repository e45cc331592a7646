"""What a read will touch: fewer files and row groups, and columns that are asked for alone."""

from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.samples import sample_writer


@pytest.fixture
def ds(tmp_path, jpegs, monkeypatch):
    monkeypatch.setattr(sample_writer, "GROUP_ROWS", 5)
    found = tl.dataset(
        tmp_path / "ds",
        {"image": tl.types.Image("jpeg"), "size": "int32", "score": "float32", "name": "string"},
    )
    for start in (0, 10, 20):
        numbers = np.arange(start, start + 10)
        found.extend(
            {
                "image": jpegs[start : start + 10],
                "size": numbers,
                "score": numbers / 100,
                "name": [f"n{n:02}" for n in numbers],
            }
        )
    return found


@pytest.mark.parametrize(
    ("where", "files", "groups"),
    [
        ("size > 100", 0, 0),
        ("size = 7", 1, 1),
        ("size BETWEEN 8 AND 12", 2, 2),
        ("NOT size < 20", 1, 2),
        ("size IN (3, 29)", 2, 2),
        ("score > 0.25", 1, 1),
        ("score <> 0.5", 3, 6),
        ("sid = 14", 1, 1),
        ("name = 'n21'", 1, 1),
        ("name LIKE 'n1%'", 1, 2),
        ("size > 18 AND image.height = 24", 2, 3),
        ("size IS NULL", 0, 0),
        ("size = 1 OR size = 25", 2, 2),
        (None, 3, 6),
    ],
)
def test_bounds_rule_out_files_and_row_groups(ds, where, files, groups):
    plan = ds.explain(where, ["size"])
    assert (plan.n_files, plan.n_row_groups) == (files, groups)
    assert (plan.total_files, plan.total_samples) == (3, 30)
    assert plan.n_samples == 5 * groups


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("size = 17", [17]),
        ("size BETWEEN 12 AND 14", [12, 13, 14]),
        ("score > 0.155 AND score < 0.185", [16, 17, 18]),
        ("name = 'n11' OR name = 'n19'", [11, 19]),
        ("size IN (13, 99)", [13]),
        ("sid = 15 AND image.height = 24", [15]),
        ("size > 99", []),
    ],
)
def test_files_that_the_log_rules_out_are_not_opened(ds, where, found):
    """The footer of each file was read, whatever the log said of it; these are not even there."""
    paths = {file.path for file in ds.explain("size = 17").files}
    assert len(paths) == 1
    for path in Path(ds.uri).glob("*.parquet"):
        if path.name not in paths:
            path.unlink()
    for one in (ds, tl.dataset(ds.uri)):
        assert one.positions_where(where).tolist() == found
        assert one.to_arrow(["size"], where=where)["size"].to_pylist() == found
        assert one.explain(where).n_files == bool(found)
    if found:
        loader = ds.loader(8, ["size"], where=where)
        assert np.concatenate([batch["size"] for batch in loader]).tolist() == found


def test_a_float_column_with_nan_is_looked_at_all_the_same(ds):
    ds.extend({"score": [float("nan"), 0.0]})
    assert ds.explain("score > 0.25").n_files == 2
    assert len(ds.positions_where("score > 0.25")) == 5


def test_columns_that_are_not_wanted_cost_nothing(ds):
    few, many = ds.explain(columns=["size"]), ds.explain()
    assert few.n_bytes < 0.1 * many.n_bytes
    assert many.n_bytes <= many.total_bytes
    said = str(ds.explain("size = 7", ["size"]))
    assert "files      1 read, 2 skipped of 3" in said
    assert "where      size = 7" in said
    assert "samples    5 looked at, 25 skipped of 30" in said


def test_a_dataset_without_a_table(tmp_path):
    plan = tl.dataset(tmp_path / "none").explain()
    assert (plan.n_files, plan.n_bytes, plan.version) == (0, 0, None)


def test_mistakes(ds):
    with pytest.raises(tl.UnknownLabelError, match="siez"):
        ds.explain(columns=["siez"])
    with pytest.raises(tl.InvalidOptionError, match="list of names"):
        ds.explain(columns="size")
