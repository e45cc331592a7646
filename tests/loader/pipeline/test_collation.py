"""Samples put together."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.loader.pipeline.collation import check_collate, collated, columns_of, stacked

RAGGED = [np.array([1, 2], "i2"), np.array([], "i2"), None]


def test_arrays_stay_what_they_are():
    x = np.zeros((3, 2))
    assert collated({"x": x}, "pad")["x"] is x


@pytest.mark.parametrize("how", [None, "list"])
def test_ragged_ones_stay_lists(how):
    assert collated({"x": RAGGED}, how)["x"] is RAGGED


def test_padding():
    found = collated({"x": RAGGED, "name": ["a", "b", "c"]}, "pad")
    assert found["x"].tolist() == [[1, 2], [0, 0], [0, 0]]
    assert found["x"].dtype == np.int16
    assert found["name"] == ["a", "b", "c"]


def test_padding_of_other_ranks_names_the_column():
    with pytest.raises(tl.InvalidSampleError, match="column 'x' with collate=\"pad\""):
        collated({"x": [np.zeros(2), np.zeros((2, 2))]}, "pad")


def test_stacking():
    assert collated({"x": [np.ones(2), np.zeros(2)]}, "stack")["x"].tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([np.zeros(2), np.zeros(3)], r"sample 1 of a batch is float64 of shape \(3,\)"),
        ([np.zeros(2), np.zeros(2, "f4")], "sample 1 of a batch is float32"),
        ([np.zeros(2), None], "sample 1 of a batch is null"),
        ([None, np.zeros(2)], "sample 0 of a batch is null"),
    ],
)
def test_what_does_not_stack(values, says):
    with pytest.raises(tl.InvalidSampleError, match=says):
        stacked("x", values)


def test_columns_of_samples():
    samples = [{"a": 1, "b": "x", "c": np.zeros(2), "d": RAGGED[n]} for n in range(2)]
    found = columns_of(samples)
    assert found["a"].tolist() == [1, 1]
    assert found["b"] == ["x", "x"]
    assert found["c"].shape == (2, 2)
    assert [len(one) for one in found["d"]] == [2, 0]


def test_samples_with_other_names():
    with pytest.raises(tl.InvalidSampleError, match=r"names \['a'\], and sample 1 \['b'\]"):
        columns_of([{"a": 1}, {"b": 1}])


def test_what_is_no_collate():
    assert check_collate(len) is len
    for wrong in ("padded", 5, ["pad"]):
        with pytest.raises(tl.InvalidOptionError, match="pad, stack, list"):
            check_collate(wrong)
