"""A key of a key: NumPy's ``x[a][b]`` is the oracle."""

import numpy as np
import pytest
from computed import array_of, basic_keys, keys
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.computing.composing import axes_of, compose
from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing import PointSelection, Selection, select, select_points

SHAPE = (5, 4, 6)


def picked(array, selection):
    if isinstance(selection, PointSelection):
        return selection.finish(array[tuple(selection.coords)])
    mesh = np.ix_(
        *(
            a.indices if hasattr(a, "indices") else np.arange(a.start, a.stop, a.step)
            for a in selection.axes
        )
    )
    return selection.finish(array[mesh])


@given(st.data())
@times(2)
def test_keys_compose_as_numpys_do(data):
    array = array_of("i8", SHAPE, 1)
    selection, wanted = select(..., SHAPE), array
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(keys(wanted.shape))
        wanted = wanted[key]
        selection = compose(selection, key)
        assert selection.result_shape == wanted.shape
    assert np.array_equal(picked(array, selection), wanted)


@given(st.data())
@times(0.5)
def test_basic_keys_stay_basic(data):
    first = data.draw(basic_keys(SHAPE))
    outer = select(first, SHAPE)
    key = tuple(slice(None, None, -1) for _ in outer.result_shape)
    assert type(compose(outer, key)) is Selection


def test_points_are_picked_of_points():
    array = array_of("i8", SHAPE, 1)
    outer = select_points(([4, 0, 2], 1, [[5], [0]]), SHAPE)
    assert np.array_equal(
        picked(array, compose(outer, (1, slice(None, None, -2)))), array[[2, 4], 1, 0]
    )


def test_too_many_single_elements_are_refused(monkeypatch):
    monkeypatch.setattr("tensorlake_spark.computing.composing.MOST_POINTS", 10)
    outer = select(([[0, 1], [2, 3]],), SHAPE)
    with pytest.raises(InvalidKeyError, match="at most 10"):
        compose(outer, slice(0, 1))


def test_axes_of_an_answer_are_those_of_the_tensor():
    assert axes_of(select((0, slice(None), [1, 2], None), SHAPE)) == [2, 1, None]


def test_indices_of_an_axis_longer_than_the_memory():
    outer = select((slice(None, None, -2), 0), (2**61, 2))
    (axis, _) = compose(outer, [0, 2**60 - 1, 5]).axes
    assert axis.indices.tolist() == [2**61 - 1, 1, 2**61 - 11]
