"""A view leads on: to another query, to batches for training, to a dataset of its own."""

import numpy as np
import pytest

import tensorlake_spark as tl


@pytest.fixture
def view(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"x": tl.types.Tensor("int32", (2,)), "label": "int32"})
    ds.extend({"x": np.arange(10, dtype="i4").reshape(5, 2), "label": [3, 0, 4, 1, 2]})
    return ds.query("SELECT x, label FROM dataset WHERE label > 0 ORDER BY label")


def test_a_view_is_queried_as_dataset(view):
    found = view.query(
        "SELECT label FROM dataset WHERE array_sum(x) > :least", parameters={"least": 1}
    )
    assert found["label"].tolist() == [1, 2, 4]


def test_another_name_may_stand_for_the_same_view(view):
    assert len(view.query("SELECT a.label FROM a JOIN dataset AS b USING (label)", a=view)) == 4


def test_batches_come_in_the_order_of_the_view(view):
    batches = list(view.loader(3, ["label"]))
    assert [batch["label"].tolist() for batch in batches] == [[1, 2, 3], [4]]


def test_a_dataset_has_a_sample_for_each_row(view, tmp_path):
    made = view.materialize(str(tmp_path / "made"))
    assert made.sids.tolist() == [0, 1, 2, 3]
    assert np.array_equal(made["x"][:], view["x"])
    assert made.lineage.query == view.text


def test_a_wrong_column_is_named(view):
    with pytest.raises(tl.UnknownLabelError, match="labl"):
        view.loader(3, ["labl"])
