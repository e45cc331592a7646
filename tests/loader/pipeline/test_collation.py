"""Samples put together."""

import pickle

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.loader.pipeline.collation import (
    UnlikeSample,
    check_collate,
    collated,
    columns_of,
    stacked,
)

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
    with pytest.raises(tl.InvalidSampleError, match="column 'x' with collate=\"pad\"") as caught:
        collated({"x": [None, np.zeros(2), np.zeros((2, 2))]}, "pad")
    assert caught.value.number == 2


def test_a_batch_of_nulls_is_what_its_column_is_in_others():
    columns = {"x": [None, None], "label": [None, None]}
    found = collated(columns, "pad", {"x": (np.dtype("i2"), (0, 4))})
    assert (found["x"].shape, found["x"].dtype) == ((2, 0, 4), np.int16)
    assert found["label"] == [None, None]
    assert collated(columns, "stack")["label"] == [None, None]
    with pytest.raises(UnlikeSample, match="column 'x' is null"):
        collated(columns, "stack", {"x": (np.dtype("i2"), (4,))})


def test_stacking():
    assert collated({"x": [np.ones(2), np.zeros(2)]}, "stack")["x"].tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            [np.zeros(2), np.zeros(3)],
            r"sample 1 of the batch: column 'x' is float64 of shape \(3,\)",
        ),
        ([np.zeros(2), np.zeros(2, "f4")], "sample 1 of the batch: column 'x' is float32"),
        ([np.zeros(2), None], "sample 1 of the batch: column 'x' is null"),
        ([None, np.zeros(2)], "sample 0 of the batch: column 'x' is null"),
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


@pytest.mark.parametrize(
    "value", [np.ma.array([1, 2], mask=[False, True]), np.ma.array(1.5, mask=True), np.ma.masked]
)
def test_a_mask_that_a_batch_would_lose(value):
    plain = np.ma.array(np.zeros(value.shape, value.dtype))
    with pytest.raises(UnlikeSample, match=r"sample 1 .*'a', of which 1 element is masked; fill"):
        columns_of([{"a": plain}, {"a": value}])


def test_samples_with_other_names():
    with pytest.raises(
        tl.InvalidSampleError, match=r"sample 1 of the batch: .* names \['b'\], and \['a'\]"
    ):
        columns_of([{"a": 1}, {"b": 1}])


def test_an_unlike_sample_pickles():
    error = pickle.loads(pickle.dumps(UnlikeSample(3, "it is null")))
    assert (error.number, error.reason, str(error)) == (
        3,
        "it is null",
        "sample 3 of the batch: it is null",
    )


def test_what_is_no_collate():
    assert check_collate(len) is len
    for wrong in ("padded", 5, ["pad"]):
        with pytest.raises(tl.InvalidOptionError, match="pad, stack, list"):
            check_collate(wrong)
