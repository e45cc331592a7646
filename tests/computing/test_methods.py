"""NumPy's functions, ufuncs and operators on stored tensors, and results that go to the lake."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sparse
from computed import array_of, dense, put

import tensorlake_spark as tl
from tensorlake_spark.computing.methods import NAMES, Computing
from tensorlake_spark.errors import UnsupportedDtypeError, UnsupportedFunctionError


@pytest.fixture
def array():
    return array_of("i8", (6, 5), 1)


@pytest.fixture
def ref(lake, array):
    return lake.write("x", array, block_shape=(2, 3))


@pytest.mark.parametrize("name", ["sum", "max", "var", "any", "argmin", "count_nonzero", "mean"])
def test_a_function_of_numpy_is_a_method(ref, array, name):
    function = getattr(np, name)
    for given in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}):
        assert np.array_equal(function(ref, **given), function(array, **given))
    assert np.array_equal(function(ref.view[1:, ::-1], 1), function(array[1:, ::-1], 1))
    assert np.sum(ref, dtype="f4").dtype == np.dtype("f4")


def test_every_name_is_a_method():
    assert {*NAMES.values()} - {"shape", "ndim", "size"} <= {*dir(Computing)}


def test_norms_shapes_and_reductions_of_ufuncs(ref, array):
    assert np.linalg.norm(ref) == np.linalg.norm(array)
    assert np.array_equal(np.linalg.norm(ref, axis=1), np.linalg.norm(array, axis=1))
    assert (np.shape(ref), np.ndim(ref), np.size(ref), np.size(ref, 1)) == ((6, 5), 2, 30, 5)
    assert np.array_equal(np.var(ref, axis=1, correction=1), np.var(array, axis=1, correction=1))
    assert np.array_equal(np.add.reduce(ref), array.sum(axis=0))
    assert np.maximum.reduce(ref, axis=None) == array.max()


def test_functions_and_ufuncs_take_masks(ref, array):
    mask = array > 0
    assert np.array_equal(np.sum(ref, axis=0, where=mask), np.sum(array, axis=0, where=mask))
    assert np.max(ref, initial=-9, where=mask[0]) == np.max(array, initial=-9, where=mask[0])
    found = np.maximum.reduce(ref, axis=1, initial=2, where=mask)
    assert np.array_equal(found, np.maximum.reduce(array, axis=1, initial=2, where=mask))
    assert np.add.reduce(ref, axis=None, initial=3) == array.sum() + 3


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sort(x),
        lambda x: np.count_nonzero(x.view[0], axis=0) + np.logical_or.reduce(x, initial=True),
        lambda x: np.sum(x, out=np.zeros(())),
        lambda x: np.add.accumulate(x),
        lambda x: np.add(x, 1, out=np.zeros((6, 5))),
        lambda x: np.divmod(x, 2),
        lambda x: x.map(len),
    ],
)
def test_what_is_not_there_is_said_with_a_way_out(ref, call):
    with pytest.raises(UnsupportedFunctionError, match=r"read it|view \+ 1|ufunc"):
        call(ref)


@pytest.mark.parametrize(
    ("call", "way_out"),
    [
        (lambda x: np.sort(x), "np.sort(ref[...])"),
        (lambda x: np.percentile(x, 50, axis=0), "np.percentile(ref[...], ..., axis=...)"),
        (lambda x: np.concatenate([x, x.view[1:]]), "np.concatenate([ref[...], ref[...]])"),
        (lambda x: np.stack([np.eye(2), x, x]), "np.stack([..., ref[...], ...])"),
        (lambda x: np.save("x.npy", x), "np.save(..., ref[...])"),
        (lambda x: np.sum(a=x, out=np.zeros(())), "np.sum(a=ref[...], out=...)"),
    ],
)
def test_the_way_out_has_the_arguments_of_the_call(ref, call, way_out):
    with pytest.raises(UnsupportedFunctionError) as error:
        call(ref)
    assert way_out in str(error.value)


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_dtypes_that_numpy_refuses_are_named(lake, layout):
    ref = put(lake, array_of("f8", (6, 5), 1), layout)
    for call in (lambda: ref & 1, lambda: 1 & ref.view[1:], lambda: np.bitwise_and(ref, ref)):
        with pytest.raises(UnsupportedDtypeError, match=r"np\.bitwise_and of .*float64"):
            call()


def test_in_place_operators_are_refused(ref):
    with pytest.raises(UnsupportedFunctionError, match=r"view\[...\] = view \+ 1"):
        ref.view[0] += 1


def test_operators_are_of_views(ref, array):
    view = ref.view[1:, ::-1]
    x = array[1:, ::-1]
    for found, wanted in (
        (view * 2 + 1, x * 2 + 1), (3 - view, 3 - x), (view > 0, x > 0), (-view, -x), (view == x, x == x),
        (view + ref.view[:5], x + array[:5]), (view % 3, x % 3), (abs(view), abs(x)), (view / 4, x / 4),
        (view * ref.view[0], x * array[0]), (ref.view[:, :1] - ref.view[0], array[:, :1] - array[0]),
    ):  # fmt: skip
        assert np.array_equal(found, wanted)
        assert found.dtype == wanted.dtype


def test_operators_of_a_reference(ref, array):
    assert np.array_equal(ref + 1, array + 1)
    assert np.array_equal(2 - ref.view[1:], 2 - array[1:])
    assert np.array_equal(-ref, -array)
    assert np.array_equal(ref > 3, array > 3)
    sparse = tl.SparseTensor.from_dense(array)
    for product in (sparse * ref, ref * sparse):
        assert np.array_equal(product.todense(), array * array)
    with pytest.raises(UnsupportedFunctionError, match="out="):
        ref += 1


def test_masked_arrays_are_no_operands(ref, array):
    masked = np.ma.array(array, mask=array > 3)
    for compute in (lambda: ref + masked, lambda: ref.map(np.add, masked)):
        with pytest.raises(tl.InvalidTensorError, match="masked; fill"):
            compute()
    assert np.array_equal(ref + np.ma.array(array), array + array)


def test_references_are_compared_as_objects_and_views_by_element(lake, ref, array):
    other = lake["x"]
    assert ref == ref
    assert ref != other
    assert len({ref, other}) == 2
    assert np.array_equal(ref.view == 3, array == 3)


def test_matrix_products_are_those_of_dot(ref, array):
    vector, matrix = np.arange(5), np.arange(10).reshape(5, 2)
    assert np.array_equal(ref @ vector, array @ vector)
    assert np.array_equal(ref @ matrix, array @ matrix)
    assert np.array_equal(matrix.T @ ref.view[:5], matrix.T @ array[:5])
    stack = np.arange(20).reshape(2, 5, 2)
    assert np.array_equal(ref @ stack, array @ stack)
    assert np.array_equal(stack.mT @ ref.view[:5], stack.mT @ array[:5])
    assert np.array_equal(np.inner(ref, matrix.T), np.inner(array, matrix.T))
    assert np.array_equal(np.inner(matrix.T, ref), np.inner(matrix.T, array))
    with pytest.raises(UnsupportedFunctionError, match=r"np\.matmul"):
        np.matmul(ref, stack, dtype="f4")


@pytest.mark.parametrize("layout", ["bsgs", "coo"])
def test_a_sparse_tensor_in_front_leaves_the_stored_one_sparse(lake, array, layout):
    ref, sparse = put(lake, array, layout), tl.SparseTensor.from_dense(array.T)
    for found in (
        sparse @ ref, sparse.dot(ref), sparse.tensordot(ref, 1), np.dot(sparse, ref), np.tensordot(sparse, ref, 1),
        np.matmul(sparse, ref), np.einsum("ij,jk", sparse, ref),
    ):  # fmt: skip
        assert isinstance(found, tl.SparseTensor)
        assert np.array_equal(found.todense(), array.T @ array)


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_comparisons_of_whole_tensors_read_them(lake, array, layout):
    ref = put(lake, array, layout)
    for other in (array, ref, ref.view[...], tl.SparseTensor.from_dense(array)):
        assert np.array_equal(ref, other)
        assert np.array_equal(other, ref)
        assert np.allclose(ref, other)
    assert not np.array_equal(ref, array + 1)
    assert not np.array_equal(ref.view[1:], array)


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
@pytest.mark.parametrize("make", [scipy.sparse.csr_array, sparse.COO.from_numpy])
def test_sparse_arrays_of_other_packages_are_operands(lake, layout, make):
    array = np.arange(12.0).reshape(3, 4) % 5
    ref = lake.write("x", array, layout=layout)
    for got, wanted in (
        (ref * make(array), array * array),
        (ref.map(np.add, make(array)), array + array),
        (ref.dot(make(array.T)), array @ array.T),
        (ref.tensordot(make(array), 2), np.tensordot(array, array, 2)),
    ):
        np.testing.assert_array_equal(dense(got), wanted, strict=True)
    stored = lake.write("sparse", array, layout="coo")
    for call in (ref.ttm, ref.ttv):
        with pytest.raises(UnsupportedFunctionError, match=r"takes arrays; .* todense\(\)"):
            call(make(array), 1)
        for factor in (stored, stored.view[:2]):
            with pytest.raises(UnsupportedFunctionError, match=r" \[\.\.\.\]\.todense\(\)"):
                call(factor, 1)
    for call in (lambda: ref * [[None] * 4], lambda: ref.ttv([None] * 4, 1), lambda: ref.dot("a")):
        with pytest.raises(TypeError, match=r"dtype (object|<U1)"):
            call()


def test_what_pandas_has_counts_as_an_array_on_either_side(ref, array):
    row, table = pd.Series(np.arange(5)), pd.DataFrame(np.ones((6, 5), int))
    for other in (row, table):
        values = other.to_numpy()
        np.testing.assert_array_equal(ref * other, array * values, strict=True)
        np.testing.assert_array_equal(other - ref, values - array, strict=True)
        np.testing.assert_array_equal(other < ref.view[:], values < array, strict=True)
