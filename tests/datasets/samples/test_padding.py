"""Ragged samples as one array: a loop is the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from tensorlake_spark.datasets.samples.padding import blank_of, padded
from tensorlake_spark.datasets.types import (
    BinaryMask,
    Embedding,
    Image,
    Json,
    Keypoints,
    SegmentMask,
    Sequence,
    Tensor,
)
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError


@given(
    st.integers(0, 3).flatmap(
        lambda n: st.lists(
            array_shapes(min_dims=n, max_dims=n, min_side=0, max_side=4), min_size=1, max_size=5
        )
    )
)
def test_every_element_is_in_its_place_and_the_rest_is_fill(shapes):
    arrays = [
        np.arange(1, 1 + int(np.prod(shape)), dtype=np.int16).reshape(shape) for shape in shapes
    ]
    found = padded(arrays, -5)
    assert found.dtype == np.int16
    assert found.shape == (
        len(arrays),
        *np.max([a.shape for a in arrays], axis=0).astype(int).tolist(),
    )
    for got, wanted in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(got[tuple(map(slice, wanted.shape))], wanted)
        assert (got == -5).sum() == got.size - wanted.size


@pytest.mark.parametrize(
    "samples", [[np.zeros(3), np.zeros((2, 2))], [np.zeros(3), np.zeros(3, int)], [None]]
)
def test_what_makes_no_array(samples):
    with pytest.raises(InvalidSampleError, match="one dtype and rank"):
        padded(samples)


def test_a_fill_that_is_no_value_is_told():
    for fill in ("a", None, object(), [1, 2, 3]):
        with pytest.raises(
            InvalidOptionError, match=r"fill=.* is no value of int64, which the samples have"
        ):
            padded([np.array([1, 2])], fill)


@pytest.mark.parametrize(
    ("fill", "dtype"),
    [
        (0.5, "i4"), (np.nan, "i4"), (1e20, "i8"), (-1, "u1"), (2**63, "i8"), (2, "?"), (1j, "f4"), (1e60, "f4"),
        ([5], "i4"),
    ],
)  # fmt: skip
def test_a_fill_does_not_become_another_number(fill, dtype):
    with pytest.raises(InvalidOptionError, match="is no value of"):
        padded([np.zeros(2, dtype), np.zeros(1, dtype)], fill)


@pytest.mark.parametrize(
    ("fill", "dtype"), [(3.0, "i4"), (np.nan, "f4"), (0.1, "f4"), (True, "u1"), (1, "c8"), (np.inf, "f2")]
)  # fmt: skip
def test_a_fill_of_another_type_that_is_the_same_number(fill, dtype):
    found = padded([np.zeros(2, dtype), np.zeros(1, dtype)], fill)
    np.testing.assert_array_equal(found[1, 1], np.array(fill, dtype))


@pytest.mark.parametrize(
    ("kind", "shape", "dtype"),
    [
        (Tensor("int16", (None, 3)), (0, 3), "int16"),
        (Embedding(4, "float32", quantize="int8"), (4,), "float32"),
        (Keypoints(["eye", "ear"]), (0, 2, 3), "float32"),
        (Image("png", channels=3), (0, 0, 3), "uint8"),
        (Image("png", channels=1, dtype="uint16"), (0, 0), "uint16"),
        (BinaryMask(), (0, 0), "bool"),
        (SegmentMask(["sky"]), (0, 0), "uint8"),
    ],
)
def test_nulls_alone_are_padded_to_what_their_type_says(kind, shape, dtype):
    found = padded([None, None], -1 if dtype == "float32" else 1, blank_of(kind))
    assert found.shape == (2, *shape)
    assert found.dtype == dtype
    assert padded([], 0, blank_of(kind)).shape == (0, *shape)
    there = np.ones([n or 2 for n in shape], dtype)
    assert padded([there, None], 0, blank_of(kind)).shape == (2, *there.shape)


@pytest.mark.parametrize("kind", [Tensor("int16"), Image("png"), Json(), Sequence("int64")])
def test_a_type_without_arrays_of_one_rank_says_nothing(kind):
    assert blank_of(kind) is None
