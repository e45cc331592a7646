"""Partial writes of sparse tensors: NumPy is the oracle."""

import deltalake
import numpy as np
import pytest
from deltalake import Field

import tensorlake_spark as tl
from tensorlake_spark.layouts import LAYOUTS
from tensorlake_spark.layouts.testing.laws import bits

SPARSE = [name for name, layout in LAYOUTS.items() if layout.is_sparse]


def sparse_array(shape=(40, 30, 15), count=400, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros(shape)
    x.reshape(-1)[rng.choice(x.size, count, replace=False)] = rng.normal(size=count)
    return x


@pytest.mark.parametrize("layout", SPARSE)
def test_a_part_is_assigned(lake, layout):
    x = sparse_array()
    ref = lake.write("x", tl.SparseTensor.from_dense(x), layout=layout)
    more = sparse_array((10, 15), 9, seed=1)

    def check():
        assert bits(ref[...]) == bits(x)
        assert ref.nnz == np.count_nonzero(x)

    for key, values in [
        (np.s_[3:9, ::2, -1], 0), (np.s_[3:13, ::2, -1], more), (np.s_[5], 1.5), (np.s_[1, 2, 3], 8),
        (np.s_[:, [3, 3, 4], 2], np.arange(120.0).reshape(40, 3)), (np.s_[..., ::-1], x.copy()),
    ]:  # fmt: skip
        ref[key] = values
        x[key] = values
        check()
    ref.vindex[[1, 2, 1], [1, 2, 1], [3, 3, 3]] = [1.0, 2.0, 0.0]
    x[[1, 2, 1], [1, 2, 1], [3, 3, 3]] = [1.0, 2.0, 0.0]
    check()
    ref[7:17, ::2, 3] = tl.SparseTensor.from_dense(more)
    x[7:17, ::2, 3] = more
    check()
    ref[...] = 0
    assert ref[...].nnz == 0


def test_an_assignment_that_does_not_fit(lake):
    ref = lake.write("x", tl.SparseTensor([[1]], [1], (10**6,)), layout="coo")
    with pytest.raises(tl.InvalidTensorError, match=r"shape \(3,\)"):
        ref[2:4] = [1, 2, 3]
    with pytest.raises(tl.InvalidTensorError, match=r"sparse tensor of shape \(3,\)"):
        ref[2:4] = tl.SparseTensor([[0]], [1], (3,))
    with pytest.raises(tl.InvalidTensorError, match=r"float64.*without loss"):
        ref[2:4] = np.array([1.5, 2])
    huge = lake.write("huge", tl.SparseTensor([[1], [1]], [1], (10**6, 10**6)))
    with pytest.raises(tl.InvalidTensorError, match=r"1000000000000 elements.*would be stored"):
        huge[...] = 1
    huge[...] = 0
    assert huge[...].nnz == 0
    assert lake["x"].nnz == 1


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_lost_rows_do_not_become_zeros_for_good(lake, layout):
    """A tensor that is not full reads slice by slice, and no slice can tell what is missing beside it."""
    x = np.random.default_rng(0).integers(1, 9, (8, 16, 16))
    x[0] = 0
    lake.write("x", x, layout=layout, block_shape=(1, 16, 16))
    deltalake.DeltaTable(lake.uri).delete("id = 'x' and lo.d0 = 7 and nnz > 0")
    for options in ({"layout": "coo"}, {"layout": "ftsf", "block_shape": (8, 8, 8)}):
        with pytest.raises(tl.CorruptDataError, match="rows were lost"):
            lake.convert("x", **options)
    with pytest.raises(tl.CorruptDataError):
        lake["x"][...]
    x[7] = 0
    lost = tl.open(lake.uri, verify=False).convert("x", layout="coo")
    np.testing.assert_array_equal(lost[...].todense(), x)


def test_assignments_keep_what_users_added_to_rows(lake):
    """Where the rows that are replaced agree; of others nobody can tell what a new one stands for."""
    x = tl.SparseTensor([[0, 1, 2, 3], [0, 1, 2, 3]], [1, 2, 3, 4], (4, 4))
    lake.write("x", x, layout="bsgs", block_shape=(1, 4))
    table = deltalake.DeltaTable(lake.uri)
    table.alter.add_columns([Field("who", "string"), Field("when", "long")])
    table.update(updates={"who": "'ann'", "when": "lo.d0"}, predicate="id = 'x' and nnz > 0")
    lake["x"][1:3] = 7
    rows = deltalake.DeltaTable(lake.uri).to_pandas().query("nnz > 0").sort_values("seq")
    assert rows["who"].tolist() == ["ann"] * len(rows)
    at = {lo["d0"]: when for lo, when in zip(rows["lo"], rows["when"], strict=True)}
    assert (at[0], at[3]) == (0, 3)
    assert np.isnan(at[1])
    assert np.isnan(at[2])
    lake["x"][3, 0] = 5
    rows = deltalake.DeltaTable(lake.uri).to_pandas().query("nnz == 2")
    assert rows["when"].tolist() == [3]


@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 1), (1, 1, 3, 4), (1,), ()])
def test_sparse_values_are_repeated_as_numpy_repeats_them(lake, shape):
    array = np.arange(24.0).reshape(2, 3, 4)
    ref = lake.write("stretched", tl.SparseTensor.from_dense(array), layout="bsgs")
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3 * 2.0
    ref[1] = tl.SparseTensor.from_dense(values)
    array[1] = values
    assert np.array_equal(ref[...].todense(), array)
    with pytest.raises(tl.InvalidTensorError, match=r"\(3,\) cannot be assigned"):
        ref[1] = tl.SparseTensor.from_dense(np.ones(3))
