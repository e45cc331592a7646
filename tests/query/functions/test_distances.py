"""Distances, products and similarities, against NumPy."""

import numpy as np
import pytest

from tensorlake_spark.query.functions.distances import BLOCK, cosine_similarity, dot, l2_distance
from tensorlake_spark.query.functions.registry import find
from tensorlake_spark.query.functions.row_values import Constant, RowError, expanded

ORACLE = {
    "l2_distance": lambda a, b: np.linalg.norm(a - b),
    "dot": np.dot,
    "cosine_similarity": lambda a, b: np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)),
}


def call(name, a, b, rows):
    return expanded(find(name)([a, b], rows), rows)


@pytest.mark.parametrize("name", sorted(ORACLE))
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float16, np.float32, np.float64])
def test_they_are_those_of_numpy(name, dtype):
    rng = np.random.default_rng(7)
    count = BLOCK // 16 + 7  # more than one block
    x = (rng.random((count, 16)) * 100).astype(dtype)
    q = (rng.random(16) * 100).astype(dtype)
    wide = x.astype(np.float64)
    wanted = [ORACLE[name](one, q.astype(np.float64)) for one in wide]
    for found in (call(name, x, Constant(q), count), call(name, Constant(q), x, count)):
        np.testing.assert_allclose(found, wanted, rtol=1e-3 if dtype == np.float16 else 1e-5)
    pairs = call(name, x, x[::-1], count)
    np.testing.assert_allclose(
        pairs[:5], [ORACLE[name](wide[i], wide[-1 - i]) for i in range(5)], rtol=1e-5
    )


def test_small_floats_stay_small():
    x = np.ones((3, 4), np.float32)
    assert call("l2_distance", x, Constant(np.zeros(4, np.float32)), 3).dtype == np.float32
    assert l2_distance(x[0], x[1]).dtype == np.float32


def test_whole_numbers_do_not_wrap():
    a, b = np.array([0], np.uint8), np.array([200], np.uint8)
    assert l2_distance(a, b) == 200
    assert dot(b, b) == 40000


def test_shapes_of_several_axes_and_ragged_rows():
    a, b = (
        [np.ones((2, 2)), None, np.ones((1, 3))],
        [np.zeros((2, 2)), np.ones(1), np.zeros((1, 3))],
    )
    found = call("l2_distance", a, b, 3)
    assert (found[0], found[1]) == (2, None)
    assert np.isclose(found[2], np.sqrt(3))


def test_zero_has_no_direction():
    assert np.isnan(cosine_similarity([0, 0], [1, 0]))
    assert np.isnan(call("cosine_similarity", np.zeros((2, 3)), Constant(np.ones(3)), 2)).all()


@pytest.mark.parametrize("name", sorted(ORACLE))
def test_shapes_must_be_the_same(name):
    with pytest.raises(RowError, match=r"the shapes \(4,\) and \(3,\) differ") as caught:
        call(name, np.ones((2, 4)), Constant(np.ones(3)), 2)
    assert caught.value.row == 0
    with pytest.raises(RowError, match="no distance"):
        call(name, np.ones((2, 4), complex), Constant(np.ones(4)), 2)


def test_nan_goes_through():
    x = np.array([[np.nan, 1], [1, 1]])
    assert np.isnan(call("l2_distance", x, Constant(np.zeros(2)), 2)).tolist() == [True, False]
