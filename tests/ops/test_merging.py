"""What compiled code makes of two tensors, held to NumPy; and what is left to NumPy."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.ops import csr_matrix
from tensorlake_spark.ops.csr_matrix import splits
from tensorlake_spark.ops.merging import merge

UFUNCS = [
    np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.not_equal, np.less, np.greater,
]  # fmt: skip


def pair(dtype, shape=(30, 20)):
    rng = np.random.default_rng(3)
    dense = [rng.integers(-3, 4, shape) * (rng.random(shape) < 0.4) for _ in range(2)]
    return [some.astype(dtype) for some in dense]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["i1", "u8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(600,), (30, 20), (5, 6, 20)])
def test_functions_are_numpys(ufunc, dtype, shape):
    dense = pair(dtype, shape)
    found = merge(ufunc, *map(tl.SparseTensor.from_dense, dense))
    wanted = ufunc(*dense)
    np.testing.assert_array_equal(found.todense(), wanted)
    assert found.dtype == wanted.dtype
    assert found.values.all()


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda f: f.__name__)
def test_a_matrix_pays_for_one_tensor_and_not_for_the_other(ufunc, monkeypatch):
    monkeypatch.setattr(csr_matrix, "_MANY", 0)
    dense, few = pair("f8")[0], np.zeros((30, 20))
    few[[3, 29], [4, 0]] = 2, -1
    x, y = map(tl.SparseTensor.from_dense, (dense, few))
    assert [splits(one, 1) for one in (x, y)] == [True, False]
    np.testing.assert_array_equal(merge(ufunc, x, y).todense(), ufunc(dense, few))
    np.testing.assert_array_equal(merge(ufunc, y, x).todense(), ufunc(few, dense))


def test_the_rest_is_left_to_numpy():
    x, y = map(tl.SparseTensor.from_dense, pair("f8"))
    assert merge(np.hypot, x, y) is None
    assert merge(np.add, x, y.astype("f4")) is None
    assert merge(np.add, x.astype("c16"), y.astype("c16")) is None
    nan = np.zeros((30, 20))
    nan[3, 4] = np.nan
    assert merge(np.maximum, x, tl.SparseTensor.from_dense(nan)) is None, "SciPy's depends on order"
    assert merge(np.add, x, tl.SparseTensor.from_dense(nan)) is not None
