"""SparseTensor: NumPy on the dense array is the oracle, bit by bit."""

import pickle
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import (
    InvalidKeyError,
    InvalidOptionError,
    InvalidTensorError,
    MissingDependencyError,
    UnsupportedDtypeError,
)
from tensorlake_spark.layouts.testing.laws import DTYPES, arrays, bits, keys
from tensorlake_spark.ops.elements import nonzero_bits
from tensorlake_spark.tensor.sparse import SparseTensor, sparse_of
from tensorlake_spark.tensor.spec import dtype_of


def same(got, want):
    """Whether an answer is NumPy's, bit by bit, and as sparse as it may be."""
    if isinstance(want, np.ndarray):
        assert isinstance(got, SparseTensor)
        check(got)
        return bits(got.todense()) == bits(want)
    return type(got) is type(want) and bits(got) == bits(want)


def check(tensor):
    """The invariants of every tensor, whatever made it."""
    coords, values = tensor.coords, tensor.values
    assert coords.dtype == np.int64
    assert coords.shape == (tensor.ndim, tensor.nnz)
    assert coords.flags.c_contiguous
    assert values.dtype.isnative
    assert not coords.flags.writeable
    assert not values.flags.writeable
    assert SparseTensor(coords, values, tensor.shape).equals(tensor)
    assert all(type(n) is int for n in tensor.shape)


def native(array):
    """The array in native byte order, which is all that a sparse tensor keeps."""
    return array.astype(array.dtype.newbyteorder("="))


@given(arrays())
def test_dense_there_and_back(array):
    tensor = SparseTensor.from_dense(array)
    check(tensor)
    assert same(tensor, native(array))
    assert bits(np.asarray(tensor)) == bits(array)
    words = np.frombuffer(bits(array)[2], np.uint8).reshape(array.size, array.itemsize)
    assert tensor.nnz == words.any(axis=1).sum(), "what is left out is zero in all bits"
    assert bits(nonzero_bits(array).reshape(-1)) == bits(words.any(axis=1))
    assert tensor.size == array.size
    assert tensor.density == (tensor.nnz / array.size if array.size else 0)
    assert tensor.nbytes == tensor.nnz * (8 * array.ndim + array.itemsize)


@times(2)
@given(st.data())
def test_a_key_picks_what_numpy_picks(data):
    array = native(data.draw(arrays()))
    tensor = SparseTensor.from_dense(array)
    parts = list(data.draw(keys(array.shape)))
    for item in data.draw(st.sampled_from([(), (), (None,), (None, None)])):
        parts.insert(data.draw(st.integers(0, len(parts))), item)
    parts += data.draw(st.sampled_from([[], [...], [..., None]]))
    assert same(tensor[tuple(parts)], array[tuple(parts)])


@times(2)
@given(st.data())
def test_index_arrays_pick_what_numpy_picks(data):
    array = native(data.draw(arrays().filter(lambda x: x.ndim and x.size)))
    tensor = SparseTensor.from_dense(array)
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    counts = [data.draw(st.integers(0, 9)) for _ in array.shape]
    index = [rng.integers(-n, n, m) for n, m in zip(array.shape, counts)]
    assert same(tensor.oindex[tuple(index)], array[np.ix_(*index)])
    k = data.draw(st.integers(0, array.ndim - 1))
    one = [slice(None, None, -1)] * array.ndim
    one[k] = data.draw(
        st.sampled_from([index[k], index[k][:, None], rng.random(array.shape[k]) < 0.5])
    )
    assert same(tensor[tuple(one)], array[tuple(one)])
    grid = data.draw(st.sampled_from([(), (7,), (2, 3), (0, 2)]))
    points = tuple(rng.integers(-n, n, grid) for n in array.shape)
    assert same(tensor.vindex[points], array[points])
    mask = rng.random(array.shape) < 0.4
    assert same(tensor.vindex[mask], array[mask])


def test_keys_of_a_tensor_without_axes():
    for array in (np.array(7.5), np.array(0.0)):
        tensor = SparseTensor.from_dense(array)
        for key in [(), ..., None, (None, ..., None)]:
            assert same(tensor[key], array[key])
        assert same(tensor.vindex[()], array[()])
    assert SparseTensor(np.zeros((0, 1), int), [7.5], ()).equals(SparseTensor.from_dense(7.5))
    assert SparseTensor(np.zeros((0, 0), int), [], ()).equals(SparseTensor.from_dense(0.0))


@pytest.mark.parametrize("name", DTYPES)
def test_an_element_that_is_not_stored_is_a_zero_of_the_dtype(name):
    array = np.zeros(3, dtype_of(name))
    array[1] = 1
    for k in range(3):
        assert same(SparseTensor.from_dense(array)[k], array[k])


def test_keys_that_do_not_fit():
    tensor = SparseTensor.from_dense(np.eye(3))
    with pytest.raises(InvalidKeyError, match="index 3 is out of bounds for axis 0"):
        tensor[3]
    with pytest.raises(InvalidTensorError, match="fewer than 2"):
        SparseTensor([[0], [0]], [1.0], (2, 2**61)).oindex[[0] * 8, :]
    assert SparseTensor([[5]], [1.0], (2**62,))[5::2].coords.tolist() == [[0]]


@given(arrays(), st.data())
def test_the_order_of_what_is_given_does_not_matter(array, data):
    want = SparseTensor.from_dense(array)
    shuffled = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(want.nnz)
    dtype = data.draw(st.sampled_from(["int8", "uint16", ">i4", "uint64"]))
    got = SparseTensor(want.coords[:, shuffled].astype(dtype), want.values[shuffled], array.shape)
    check(got)
    assert got.equals(want)


def test_what_is_sorted_is_not_copied_and_the_callers_flags_stay():
    coords, values = np.array([[0, 2], [1, 0]]), np.array([5.0, 7.0])
    tensor = SparseTensor(coords, values, (3, 2))
    assert np.shares_memory(tensor.coords, coords)
    assert np.shares_memory(tensor.values, values)
    assert coords.flags.writeable
    assert values.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        tensor.values[0] = 1
    with pytest.raises(AttributeError):
        tensor.shape = (6,)
    assert np.shares_memory(tensor[...].values, values)


def test_explicit_zeros_stay():
    tensor = SparseTensor([[2, 0]], [0, 3], (4,))
    assert (tensor.nnz, tensor.values.tolist()) == (2, [3, 0])
    assert tensor[1:].nnz == 1
    assert not tensor.equals(SparseTensor.from_dense(tensor.todense()))


def test_either_part_of_a_complex_number_makes_it_non_zero():
    array = np.array([0, 1j, 1, complex(0, -0.0), complex(-0.0, 0)])[::-1]
    assert SparseTensor.from_dense(array).coords.tolist() == [[0, 1, 2, 3]]
    assert same(SparseTensor.from_dense(array), array)


def test_equal_is_bit_by_bit():
    def one(value, dtype="float64", at=1, shape=(3,)):
        return SparseTensor([[at]], np.array([value], dtype), shape)

    assert one(np.nan).equals(one(np.nan))
    for other in (one(2), one(1, "float32"), one(1, at=2), one(1, shape=(4,)), one(-1)):
        assert not one(1).equals(other)
    assert not one(0.0).equals(one(-0.0))
    assert one(1j, complex).equals(one(1j, complex))
    assert not one(1).equals(1)
    assert one(1).__eq__("text") is NotImplemented
    with pytest.raises(TypeError, match="unhashable"):
        hash(one(1))


@pytest.mark.parametrize(
    ("coords", "values", "shape", "match"),
    [
        ([[0.5]], [1], (3,), "coordinates are integers, not float64"),
        ([[0, 1]], [1, 2], (3, 3), r"coordinates of shape \(1, 2\)"),
        ([[-1]], [1], (3,), "coordinate -1 is out of bounds for axis 0 with size 3"),
        ([[0], [3]], [1], (3, 3), "coordinate 3 is out of bounds for axis 1 with size 3"),
        ([[0]], [1], (2**63,), "fewer than 2"),
        ([[0, 1]], [1], (3,), r"values of shape \(1,\) for 2 coordinates"),
        ([[0]], 1, (3,), r"values of shape \(\) for 1 coordinates"),
        ([[2, 0, 2, 0, 0]], [1] * 5, (3,), r"coordinate: 3, the first of them \(0,\)"),
    ],
)
def test_what_is_no_tensor(coords, values, shape, match):
    with pytest.raises(InvalidTensorError, match=match) as info:
        SparseTensor(coords, values, shape)
    assert isinstance(info.value, ValueError)


@pytest.mark.parametrize("dtype", ["O", "S3", "U3", "M8", "i4,i4", "V4"])
def test_dtypes_that_no_row_holds(dtype):
    values = np.zeros(1, dtype)
    for make in (
        lambda: SparseTensor([[0]], values, (3,)),
        lambda: SparseTensor.from_dense(values),
    ):
        with pytest.raises(UnsupportedDtypeError, match="cannot be stored"):
            make()
    with pytest.raises(UnsupportedDtypeError, match="cannot be stored"):
        SparseTensor([[0]], [1], (3,)).astype(dtype)


def test_duplicates():
    given_twice = [[2, 0, 2]], np.array([1, 2, 255], "uint8"), (3,)
    assert SparseTensor(*given_twice, duplicates="sum").todense().tolist() == [2, 0, 0]
    assert SparseTensor(*given_twice, duplicates="sum").nnz == 2, "a sum of zero stays"
    assert SparseTensor(*given_twice, duplicates="last").todense().tolist() == [2, 0, 255]
    with pytest.raises(InvalidOptionError, match="'lats'; did you mean 'last'"):
        SparseTensor(*given_twice, duplicates="lats")


def test_it_looks_like_an_array():
    tensor = SparseTensor.from_dense(np.eye(4)[:3])
    assert len(tensor) == 3
    assert tensor.ndim == 2
    assert repr(tensor) == "SparseTensor(shape=(3, 4), dtype=float64, nnz=3, density=0.25)"
    assert "3 of 12 elements" in tensor._repr_html_()
    with pytest.raises(TypeError, match="len"):
        len(SparseTensor.from_dense(7))
    with pytest.raises(TypeError, match="iteration"):
        iter(SparseTensor.from_dense(7))
    assert [row.todense().tolist() for row in tensor] == np.eye(4)[:3].tolist()
    assert np.array(tensor, "int8").tolist() == np.eye(4)[:3].tolist()
    with pytest.raises(ValueError, match="copy"):
        np.asarray(tensor, copy=False)
    assert bits(tensor.astype(">i2").todense()) == bits(np.eye(4, dtype="int16")[:3])


@given(arrays())
def test_pickle(array):
    tensor = SparseTensor.from_dense(array)
    there = pickle.loads(pickle.dumps(tensor))
    check(there)
    assert there.equals(tensor)


SCIPY = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("name", SCIPY)
def test_scipy_there_and_back(name, kind):
    rng = np.random.default_rng(0)
    dense = rng.integers(1, 9, (5, 8)) * (rng.random((5, 8)) < 0.3)
    for dtype in ("int8", "float64", "complex64", "bool"):
        want = dense.astype(dtype)
        given = getattr(scipy.sparse, f"{name}_{kind}")(want)
        tensor = SparseTensor.from_scipy(given)
        assert same(tensor, want)
        assert sparse_of(given).equals(tensor)
        back = tensor.to_scipy()
        assert isinstance(back, scipy.sparse.coo_array)
        assert bits(back.toarray()) == bits(want)
        back.data[:] = 1  # is its own
        assert same(tensor, want)


def test_scipy_of_rank_one_with_duplicates_and_explicit_zeros():
    line = scipy.sparse.coo_array(([1.0, 2.0, 0.0], ([4, 4, 1],)), shape=(6,))
    tensor = SparseTensor.from_scipy(line)
    assert (tensor.coords.tolist(), tensor.values.tolist()) == ([[1, 4]], [0.0, 3.0])
    assert line.nnz == 3, "what is given stays as it is"
    twice = scipy.sparse.csr_array((np.array([1, 2, 4]), np.array([1, 1, 0]), np.array([0, 2, 3])))
    assert SparseTensor.from_scipy(twice).todense().tolist() == twice.toarray().tolist()
    far = SparseTensor([[0], [2**40]], [1], (1, 2**41))
    assert SparseTensor.from_scipy(far.to_scipy()).equals(far)


def test_what_scipy_does_not_take():
    with pytest.raises(InvalidTensorError, match="rank 2, this tensor has 1"):
        SparseTensor([[0]], [1], (3,)).to_scipy()
    with pytest.raises(InvalidTensorError, match="float16"):
        SparseTensor([[0], [0]], np.ones(1, "float16"), (3, 3)).to_scipy()
    with pytest.raises(InvalidTensorError, match="ndarray is not a sparse array of SciPy"):
        SparseTensor.from_scipy(np.eye(3))


@pytest.mark.parametrize("name", ["sparse", "torch"])
def test_a_package_that_is_not_installed(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    tensor = SparseTensor.from_dense(np.eye(2))
    short = "pydata" if name == "sparse" else name
    for call in (getattr(tensor, f"to_{short}"), lambda: getattr(SparseTensor, f"from_{short}")(0)):
        with pytest.raises(MissingDependencyError, match=f"pip install {name}") as info:
            call()
        assert isinstance(info.value, ImportError)
    assert sparse_of(np.eye(2)) is None


def test_sparse_of_other_data():
    tensor = SparseTensor.from_dense(np.eye(2))
    assert sparse_of(tensor) is tensor
    for data in (np.eye(2), [[1, 0]], 5, None, "text"):
        assert sparse_of(data) is None


def test_pydata_there_and_back():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Numba
        import sparse
    rng = np.random.default_rng(0)
    for shape in [(), (4,), (3, 5), (2, 3, 4), (0, 3)]:
        for dtype in ("int8", "float64", "complex64", "bool", "datetime64[s]"):
            array = (rng.integers(1, 9, shape) * (rng.random(shape) < 0.5)).astype(dtype)
            tensor = SparseTensor.from_dense(array)
            given = tensor.to_pydata()
            assert bits(given.todense()) == bits(array)
            assert SparseTensor.from_pydata(given).equals(tensor)
            assert sparse_of(given).equals(tensor)
            for name in ("gcxs", "dok") if array.ndim > 1 else ():
                assert SparseTensor.from_pydata(given.asformat(name)).equals(tensor)
    with pytest.raises(InvalidTensorError, match="fill value"):
        SparseTensor.from_pydata(sparse.COO([[1]], [2.0], shape=(3,), fill_value=np.nan))
    with pytest.raises(InvalidTensorError, match="ndarray is not an array of the package sparse"):
        SparseTensor.from_pydata(np.eye(2))
