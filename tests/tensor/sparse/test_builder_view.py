"""Views of a builder: what is written to them is written to it. tests of the builder try all keys."""

import numpy as np
import pandas as pd
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import (
    InvalidKeyError,
    InvalidKeyTypeError,
    InvalidTensorError,
    UnsupportedDtypeError,
    UnsupportedFunctionError,
)


def builder(array):
    return tl.SparseTensor.from_dense(np.asarray(array)).builder()


def test_the_view_of_the_paper():
    """Fig. 4.7: a point, a new axis in front and two intervals of a tensor of rank 3."""
    dense = np.zeros((2, 3, 3), int)
    dense[0, 0, 0], dense[0, 1, 1], dense[0, 2, 2], dense[1, 1, 1] = 1, 5, 8, 9
    b = builder(dense)
    view = b.view[None, 0, 1:3, 1:3]
    assert view.shape == (1, 2, 2)
    assert view[...].values.tolist() == [5, 8]
    assert view[...].coords.tolist() == [[0, 0], [0, 1], [0, 1]]
    view[0, 0] = [6, 7]
    assert b[0].todense().tolist() == [[1, 0, 0], [0, 6, 7], [0, 0, 8]]


def test_a_view_sees_what_is_written_elsewhere_and_views_compose():
    b = builder(np.arange(24).reshape(2, 3, 4))
    outer = b.view[:, None, 2, ::-1]
    inner = outer.view[1, 0].view[1:3]
    b[1, 2, 2] = 70
    assert inner[...].todense().tolist() == [70, 21]
    inner[1] = 0
    outer.view[0, ..., -1][()] = 50
    assert b[1, 2].todense().tolist() == [20, 0, 70, 23]
    assert b[0, 2, 0] == 50


def test_a_view_of_one_element_has_no_axes():
    b = builder(np.eye(2))
    for k in range(2):
        view = b.view[0, k]
        assert view.shape == ()
        assert view.nnz == 1 - k
        assert view[()] == 1 - k
    view[...] = 3
    view *= 2
    assert b[0, 1] == 6
    with pytest.raises(TypeError, match="without axes"):
        len(view)


def test_a_view_that_names_an_element_twice():
    b = builder(np.eye(3))
    b.view[[2, 0]][...] = 7
    assert b[...].todense().tolist() == [[7, 7, 7], [0, 1, 0], [7, 7, 7]]
    with pytest.raises(InvalidKeyError, match="twice"):
        b.view[[2, 2]]
    b.view[[2, 2], 0] = [4, 5]
    assert b[2, 0] == 5


def test_a_part_can_be_assigned_to_another_that_overlaps_it():
    array = np.arange(1, 7)
    b = builder(array)
    b[1:] = b.view[:-1]
    b.view[::-1] = b
    assert b[...].todense().tolist() == [5, 4, 3, 2, 1, 1]


def test_operators_of_a_view_in_place_reach_the_builder_and_others_do_not():
    b = builder(np.eye(3))
    b.view[1:] *= 4
    view = b.view[0]
    view += tl.SparseTensor.from_dense(np.array([0, 2.0, 0]))
    assert b[...].todense().tolist() == [[1, 2, 0], [0, 4, 0], [0, 0, 4]]
    assert np.array_equal(np.asarray(view * 2), [2, 4, 0])
    assert b[0, 0] == 1


def test_every_row_takes_a_vector():
    """The paper's addRowVector and its like: along an axis, by operators and by ufuncs."""
    array = np.diag([1.0, 2, 3])[:2]
    b, row, column = builder(array), np.array([0, 0, 5.0]), np.array([0, 7.0])
    b.along(1)[...] += row
    array += row
    rows = b.along(1)
    rows *= np.array([2, 3, 1])
    array *= np.array([2, 3, 1])
    assert isinstance(rows, type(b.along(0)))
    columns = b.along(0)
    assert np.add(columns, column, out=columns) is columns
    array += column[:, None]
    columns[1] = [4, 0]
    array[:, 1] = [4, 0]
    assert np.array_equal(b.todense(), array)
    assert np.array_equal(np.asarray(columns * 2), 2 * array.T)


def test_a_vector_for_every_row_does_not_make_a_large_tensor_dense():
    b = tl.SparseBuilder((1000, 2**40))
    b[3, 5] = 1
    b.along(0)[...] *= np.zeros(1000)
    assert b.nnz == 0


def test_the_tensors_along_axes_are_numbered_in_c_order():
    array = np.arange(24).reshape(2, 3, 4)
    along = builder(array).along((0, 2))
    assert along.shape == (3,)
    assert [np.asarray(part).tolist() for part in along] == array.transpose(1, 0, 2).tolist()
    assert builder(array).along(-1)[-1][...].todense().tolist() == [20, 21, 22, 23]
    assert repr(along) == "TensorsAlong(count=3, shape=(2, 4), dtype=int64)"
    all_axes = builder(array).along((0, 1, 2))
    assert len(all_axes) == 1
    assert np.array_equal(all_axes[0].todense(), array)


@pytest.mark.parametrize(
    ("key", "error"),
    [(6, InvalidKeyError), (-7, InvalidKeyError), ((0,), InvalidKeyError), ((0, 3), InvalidKeyError),
     (slice(2), InvalidKeyTypeError), ("a", InvalidKeyTypeError)],
)  # fmt: skip
def test_tensors_that_are_not_there(key, error):
    along = tl.SparseBuilder((2, 3, 4)).along(2)
    with pytest.raises(error):
        along[key]
    with pytest.raises(error):
        along[key] = 0


@pytest.mark.parametrize(("axis", "error"), [(3, tl.AxisError), ((0, 0), ValueError)])
def test_axes_that_are_not_there_or_twice(axis, error):
    with pytest.raises(error):
        tl.SparseBuilder((2, 3)).along(axis)


def test_a_result_goes_where_out_says_by_numpys_rules():
    array = np.array([[1.0, 0], [4, 9]])
    b, whole = builder(array), builder(np.zeros((2, 2), int))
    assert np.sqrt(b, out=b) is b
    np.sqrt(array, out=array)
    dense = np.empty((2, 2))
    assert np.multiply(b, 3, out=dense) is dense
    assert np.array_equal(dense, 3 * array)
    with pytest.raises(UnsupportedDtypeError, match="float64, which does not go into int64"):
        np.multiply(b, 2, out=whole)
    np.multiply(b, 2, out=whole, casting="unsafe")
    assert np.array_equal(np.asarray(whole), (2 * array).astype(int))
    with pytest.raises(InvalidTensorError, match="does not go into shape"):
        np.multiply(b, 2, out=b.view[0])
    with pytest.raises(UnsupportedFunctionError, match="where="):
        np.multiply(b, 2, out=b, where=False)
    with pytest.raises(TypeError):
        np.add.accumulate(b)
    assert np.array_equal(np.asarray(b), array), "nothing has changed"


def test_the_sum_of_two_tensors_goes_to_a_builder():
    x, b = tl.SparseTensor.from_dense(np.eye(3)), tl.SparseBuilder((3, 3))
    assert np.add(x, x, out=b) is b
    assert np.add(x, b, out=b.view[...])[...].todense().tolist() == (3 * np.eye(3)).tolist()
    with pytest.raises(tl.DenseResultError):
        b += 1


def test_two_results():
    b, q = builder([7, 0, 5]), tl.SparseBuilder((3,), int)
    found = np.divmod(b, 2, out=(q, b))
    assert found[0] is q
    assert found[1] is b
    assert (q.todense().tolist(), b.todense().tolist()) == ([3, 0, 2], [1, 0, 1])


def test_rows_of_a_builder_are_read_one_by_one():
    assert [row.nnz for row in builder(np.tri(3))] == [1, 2, 3]
    assert len(builder(np.eye(3))) == 3


def test_what_pandas_has_counts_as_an_array_on_either_side():
    array, row = np.diag([4.0, 0, 6]), pd.Series([1.0, 2.0, 3.0])
    builder = tl.SparseTensor.from_dense(array).builder()
    for x in (builder, builder.view[:], builder.along(1)):
        np.testing.assert_array_equal(row + x, row.to_numpy() + array, strict=True)
        np.testing.assert_array_equal((x * row).todense(), array * row.to_numpy(), strict=True)
    builder *= row
    np.testing.assert_array_equal(builder.todense(), array * row.to_numpy(), strict=True)
