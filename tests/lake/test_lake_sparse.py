"""Sparse tensors through the Python door; NumPy and SciPy are the oracles."""

import logging

import numpy as np
import pytest
import scipy.sparse

import tensorlake_spark as tl
from tensorlake_spark.layouts import LAYOUTS
from tensorlake_spark.layouts.testing.laws import DTYPES, bits
from tensorlake_spark.tensor.spec import dtype_of
from tensorlake_spark.writing import source

SPARSE = [name for name, layout in LAYOUTS.items() if layout.is_sparse]


class ArrayLike:
    """An array that is none of NumPy's."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, key):
        return self.array[key]


def sparse_array(shape=(40, 30, 15), count=400, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros(shape)
    x.reshape(-1)[rng.choice(x.size, count, replace=False)] = rng.normal(size=count)
    return x


@pytest.mark.parametrize("layout", SPARSE)
def test_a_slice_is_what_numpy_picks(lake, layout):
    x = sparse_array()
    ref = lake.write("x", tl.SparseTensor.from_dense(x), layout=layout)
    assert (ref.layout, ref.nnz, ref.shape) == (layout, 400, x.shape)
    for key in (np.s_[...], np.s_[3], np.s_[:, 4], np.s_[..., -1], np.s_[5:20:3, ::-2, 2:9],
                np.s_[None, 7, :, [1, 1, 4]], np.s_[x[:, 0, 0] == 0]):  # fmt: skip
        got = ref[key]
        assert isinstance(got, tl.SparseTensor)
        assert bits(got) == bits(x[key])
    at = tuple(np.argwhere(x)[7])
    assert ref[at] == x[at]
    assert isinstance(ref[at], np.float64)
    assert ref[0, 0, 0] == x[0, 0, 0]
    assert bits(ref.oindex[[0, 3], :, [1, 2]]) == bits(x[np.ix_([0, 3], range(30), [1, 2])])
    assert bits(ref.vindex[[0, 3, 3], [1, 1, 1], [2, 2, 2]]) == bits(x[[0, 3, 3], 1, 2])
    np.testing.assert_array_equal(np.asarray(ref), x)


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_comes_back_bit_by_bit(lake, layout, name):
    dtype = dtype_of(name)
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        values = np.ones(50, bool)
    else:
        values = rng.integers(0, 256, 50 * dtype.itemsize, np.uint8).view(dtype)
    st = tl.SparseTensor([np.arange(50) * 7, np.arange(50) % 9], values, (400, 9))
    assert lake.write("x", st, layout=layout)[...].equals(st)


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("rank", range(1, 9))
def test_ranks(lake, layout, rank):
    x = sparse_array(tuple([3, 2, 4, 2, 2, 3, 2, 2][:rank]), 2)
    ref = lake.write("x", x, layout=layout)
    assert bits(ref[...]) == bits(x)
    assert bits(ref[..., -1]) == bits(x[..., -1])


@pytest.mark.parametrize("layout", SPARSE)
def test_explicit_zeros_stay_and_empty_tensors_have_no_rows(lake, layout):
    st = tl.SparseTensor([[1, 2], [3, 0]], [0.0, -0.0], (5, 4))
    assert lake.write("zeros", st, layout=layout)[...].equals(st)
    ref = lake.write("empty", np.zeros((5, 4)), layout=layout)
    assert (ref.nnz, ref[2:].nnz, ref[1, 1]) == (0, 0, 0)
    assert lake.write("none", np.zeros((0, 4)), layout=layout)[...].shape == (0, 4)
    full = np.arange(1, 21.0).reshape(5, 4)
    assert bits(lake.write("full", full, layout=layout)[...]) == bits(full)


def test_scipy_matrices_go_in_and_come_out(lake):
    matrix = scipy.sparse.csr_array(sparse_array((50, 70), 70))
    ref = lake.write("m", matrix)
    assert ref.layout == "bsgs"
    assert (ref[...].to_scipy() != matrix).nnz == 0
    assert (ref[3:9].to_scipy() != matrix[3:9]).nnz == 0


def test_dense_tensors_take_sparse_data(lake):
    x, more = np.ones((5, 12)), sparse_array((2, 12), 6)
    ref = lake.write("x", x, layout="ftsf")
    for k, kind in enumerate(
        [scipy.sparse.csr_array, scipy.sparse.coo_matrix, tl.SparseTensor.from_dense]
    ):
        more[0, k] = k + 1
        ref[k : k + 2] = kind(more)
        x[k : k + 2] = more
        assert bits(ref[...]) == bits(x)
    slabs = [scipy.sparse.csr_array(more), more, tl.SparseTensor.from_dense(more)]
    ref = lake.write("slabs", iter(slabs), layout="ftsf")
    assert bits(ref[...]) == bits(np.concatenate([more] * 3))


@pytest.mark.parametrize("layout", SPARSE)
def test_appends_along_an_axis(lake, layout):
    x = sparse_array((11, 30, 15))
    lake.write("x", tl.SparseTensor.from_dense(x), layout=layout)
    for axis in (0, 1, 2):
        more = sparse_array(tuple(7 if k == axis else n for k, n in enumerate(x.shape)), 30, axis)
        ref = lake.write("x", tl.SparseTensor.from_dense(more), mode="append", axis=axis)
        x = np.concatenate([x, more], axis)
        assert bits(ref[...]) == bits(x)
        assert bits(ref[9:13, 2:35:3]) == bits(x[9:13, 2:35:3])
    with pytest.raises(tl.InvalidTensorError, match="axis 1 has length 3"):
        lake.write("x", np.zeros((1, 3, 22)), mode="append")


@pytest.mark.parametrize("layout", SPARSE)
def test_elements_are_added_where_they_lie(lake, layout):
    first = tl.SparseTensor([[0, 3], [1, 2]], [1.0, 2.0], (4, 5))
    lake.write("x", first, layout=layout)
    ref = lake.write("x", tl.SparseTensor([[5], [1]], [7.0], (6, 3)), mode="append", axis=None)
    assert ref.shape == (6, 5), "the shape grows to hold what is added"
    assert ref[5, 1] == 7
    again = tl.SparseTensor([[0, 5], [0, 1]], [4.0, 5.0], (6, 5))
    version = lake.version
    with pytest.raises(
        tl.InvalidTensorError, match=r"1 elements are in tensor 'x' already.*\(5, 1\)"
    ):
        lake.write("x", again, mode="append", axis=None)
    assert lake.version == version
    ref = lake.write("x", again, mode="append", axis=None, duplicates="sum")
    assert (ref[5, 1], ref[0, 0], ref[...].nnz) == (12, 4, 4)
    assert ref[5:].todense().tolist() == [[0, 12, 0, 0, 0]]
    with pytest.raises(tl.InvalidOptionError, match="combines duplicates by 'sum'"):
        lake.write("x", again, mode="append", axis=None, duplicates="last")
    ref = lake.convert("x", layout="ftsf", block_shape=(2, 2))
    assert ref[5, 1] == 12


@pytest.mark.parametrize("form", [np.asarray, ArrayLike])
def test_elements_of_an_array_are_not_added_twice(lake, form, monkeypatch):
    monkeypatch.setattr(source, "REGION_BYTES", 64)  # so that an array has many parts
    x = sparse_array((30, 20), 40)
    ref = lake.write("x", x, layout="coo")
    more = np.zeros((31, 20))
    more[30, 3] = more[2, 7] = 5
    more[tuple(np.argwhere(x)[-1])] = 9
    version = lake.version
    with pytest.raises(tl.InvalidTensorError, match="1 elements are in tensor 'x' already"):
        lake.write("x", form(np.where(more == 9, 9, 0.0)), mode="append", axis=None)
    assert lake.version == version
    more[(x != 0).nonzero()[0], (x != 0).nonzero()[1]] = 0
    ref = lake.write("x", form(more), mode="append", axis=None)
    more[:30] += x
    assert bits(ref[...]) == bits(more)


def test_an_iterator_has_no_elements_to_add(lake):
    lake.write("x", sparse_array((4, 5), 3), layout="coo")
    with pytest.raises(tl.InvalidTensorError, match=r"axis=0.*axis=None"):
        lake.write("x", iter([np.ones((2, 5))]), mode="append", axis=None)


def test_times_have_no_sum(lake):
    """They were written, and then no read could put them together."""
    x = tl.SparseTensor([[1, 3]], np.array([5, 6], "M8[s]"), (9,))
    with pytest.raises(tl.InvalidOptionError, match=r"datetime64\[s\] have no sum.*'last'"):
        lake.write("x", x, layout="coo", duplicates="sum")
    assert len(lake) == 0
    ref = lake.write("x", x, layout="coo")
    with pytest.raises(tl.InvalidOptionError, match="have no sum"):
        lake.write("x", x, mode="append", axis=None, duplicates="sum")
    assert ref.version == lake.version
    ref = lake.write("x", x, mode="append", axis=None, duplicates="last")
    assert ref[3] == x.values[1]


def test_an_append_keeps_the_layout(lake):
    x = tl.SparseTensor([[1], [2]], [1.0], (4, 5))
    lake.write("x", x, layout="coo")
    for axis in (0, None):
        with pytest.raises(tl.InvalidOptionError, match="unknown layout 'cooo'"):
            lake.write("x", x, mode="append", axis=axis, layout="cooo")
        with pytest.raises(tl.InvalidOptionError, match="layout coo, and an append keeps it"):
            lake.write("x", x, mode="append", axis=axis, layout="csr")
        with pytest.raises(tl.InvalidOptionError, match="unknown duplicates 'mean'"):
            lake.write("x", x, mode="append", axis=axis, duplicates="mean")
    assert lake.write("x", x, mode="append", layout="coo").shape == (8, 5)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"layout": None}, "unknown layout None"),
        ({"layout": ["coo"]}, "unknown layout"),
        ({"layout": "bsgs", "block_shape": (2.5, 2)}, r"block shape \(2.5, 2\) is not a sequence"),
        ({"layout": "bsgs", "block_shape": 5}, "block shape 5 is not a sequence"),
        ({"layout": "bsgs", "block_shape": "ab"}, "block shape 'ab' is not a sequence"),
        ({"codec": 5}, "unknown codec 5; give the name of a codec, or 'auto'"),
        ({"layout": "bsgs", "codec": ["zstd"]}, "unknown codec"),
        ({"chunk_rank": "a"}, "chunk_rank='a' is not a whole number"),
        ({"threshold": "a"}, "threshold 'a' is not a share between 0 and 1"),
        ({"labels": 3}, "labels=3 is not a mapping; give a dict"),
        ({"attrs": 5}, "attrs=5 is not a mapping; give a dict"),
    ],
)
def test_bad_options_say_so(lake, options, problem):
    with pytest.raises(tl.TensorLakeError, match=problem):
        lake.write("x", sparse_array((4, 5), 3), **options)
    assert len(lake) == 0


@pytest.mark.parametrize("layout", ["bsgs", "csf"])
def test_the_largest_shapes_are_converted(lake, layout):
    """Not a region for each of 2**37 parts of the shape, nor a read for each of many that are empty."""
    x = tl.SparseTensor([[3, 2**31 - 1], [0, 2**31 - 2]], [1.0, 2.0], (2**31 - 1 + 1, 2**31 - 1))
    lake.write("x", x, layout="coo")
    ref = lake.convert("x", layout=layout)
    assert ref.layout == layout
    assert ref[...].equals(x)
    ref = lake.convert("x", layout="ftsf", block_shape=(32, 32))
    assert ref._meta.totals.rows == 2
    assert ref[2**31 - 1, -9:].tolist() == [0] * 8 + [2]
    assert ref[:7, 0].tolist() == [0, 0, 0, 1, 0, 0, 0]


def test_the_last_one_counts(lake):
    ref = lake.write("x", tl.SparseTensor([[1]], [1], (30,)), layout="bsgs", duplicates="last")
    for value in (2, 3):
        ref = lake.write(
            "x", tl.SparseTensor([[1, 9]], [value, value], (30,)), mode="append", axis=None
        )
    assert (ref[1], ref[9]) == (3, 3)
    ref[9] = 8
    assert (ref[1], ref[9]) == (3, 8)


def test_dense_tensors_take_no_single_elements(lake):
    lake.write("x", np.ones(3))
    with pytest.raises(tl.InvalidOptionError, match="'x' has layout ftsf"):
        lake.write("x", tl.SparseTensor([[1]], [1.0], (3,)), mode="append", axis=None)


def test_auto_follows_the_share_of_non_zeros(lake, caplog):
    caplog.set_level(logging.INFO, "tensorlake_spark")
    x = np.zeros((100, 10))
    x[:10] = 1
    assert lake.write("dense", x).layout == "ftsf"
    assert "0.1 of its elements are not zero, at least 0.1" in caplog.text
    x[0, 0] = 0
    assert lake.write("sparse", x).layout == "bsgs"
    assert lake.write("threshold", x, threshold=0.05).layout == "ftsf"
    assert lake.write("filled", np.full(3, 7.0), fill_value=7).layout == "ftsf"
    st = tl.SparseTensor.from_dense(np.eye(3))
    assert isinstance(lake.write("eye", st)[...], np.ndarray), "a third is not zero"
    big = np.zeros((1000, 300, 100), np.uint8)
    assert lake.write("sampled", big).layout == "bsgs"


class ArrayLike:
    """Not a NumPy array, so that it is read in regions."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, key):
        return self.array[key]


@pytest.mark.parametrize("layout", SPARSE)
def test_slabs_and_array_likes(lake, layout):
    x = np.random.default_rng(0).integers(0, 5, (7, 4, 6)).astype("int16")
    lake.write("slabs", (x[i : i + 1] for i in range(5)), layout=layout)
    ref = lake.write("slabs", (x[i : i + 1] for i in range(5, 7)), layout=layout, mode="append")
    assert ref[...].equals(tl.SparseTensor.from_dense(x))
    assert ref.nnz == np.count_nonzero(x)
    assert lake.write("like", ArrayLike(x), layout=layout)[...].equals(
        tl.SparseTensor.from_dense(x)
    )
    assert tl.estimate(ArrayLike(x), layouts=[layout]).rows[0] > 0
    ref = lake.write("empty", np.zeros((0,), "int16"), layout=layout)
    ref = lake.write("empty", iter([x[0, 0], x[1, 1]]), mode="append")
    assert ref[...].todense().tolist() == [*x[0, 0], *x[1, 1]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "bsgs", "block_shape": (2,)}, "one length for every axis"),
        ({"layout": "bsg"}, "did you mean 'bsgs'"),
        ({"layout": "coo", "block_shape": (2, 2)}, "layout coo has no block_shape"),
        ({"layout": "coo", "order": (1, 0)}, "layout coo has no order"),
        ({"layout": "csf", "order": (1, 1)}, "are not distinct axes of a tensor of rank 2"),
        ({"layout": "csr", "row_axes": (2,)}, "are not distinct axes of a tensor of rank 2"),
        ({"layout": "bsgs", "fill_value": 1}, "layout bsgs has no fill_value"),
        ({"layout": "bsgs", "chunk_rank": 1}, "layout bsgs has no chunk_rank"),
        ({"layout": "bsgs", "duplicates": "mean"}, "unknown duplicates 'mean'"),
        ({"layout": "ftsf", "duplicates": "sum"}, "layout ftsf has no duplicates"),
        (
            {"layout": "bsgs", "codec": "delta(-2)+zstd"},
            "those of layout bsgs are auto, smallest, zstd, raw",
        ),
        ({"threshold": 10}, "not a share between 0 and 1"),
    ],
)
def test_options_that_do_not_go_with_the_layout(lake, options, message):
    with pytest.raises(ValueError, match=message):
        lake.write("x", np.zeros((4, 4)), **options)
    assert "x" not in lake


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_the_order_of_the_axes_is_a_parameter(lake, order):
    x = sparse_array()
    for layout in ("csf", "bsgs"):
        assert bits(lake.write(layout, x, layout=layout, order=order)[3:9, 2]) == bits(x[3:9, 2])
    for layout in ("csr", "csc"):
        ref = lake.write(layout, x, layout=layout, row_axes=order[:2])
        assert bits(ref[3:9, 2]) == bits(x[3:9, 2])


def test_a_slice_reads_only_the_blocks_that_overlap(lake):
    x = sparse_array((64, 64, 64), 20_000)
    ref = lake.write("x", tl.SparseTensor.from_dense(x), layout="bsgs", block_shape=(16, 16, 16))
    assert ref._meta.totals.rows == 64
    whole = ref.explain()
    assert whole.n_rows == 64
    read = []
    layout = type(LAYOUTS["bsgs"])
    decode = layout.pick

    def spy(self, rows, spec, selection):
        read.append(len(rows.counts))
        return decode(self, rows, spec, selection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "pick", spy)
        assert bits(ref[..., 5]) == bits(x[..., 5])
    assert sum(read) == 16, "a slice on the last axis alone needs a quarter of the blocks"


@pytest.mark.parametrize(
    ("layout", "options", "order"),
    [
        ("coo", {}, (0, 1, 2)),
        ("csr", {}, (0, 1, 2)),
        ("csc", {}, (2, 0, 1)),
        ("csf", {}, (0, 1, 2)),
        ("csf", {"order": (2, 0, 1)}, (2, 0, 1)),
        ("csr", {"row_axes": (1,)}, (1, 0, 2)),
    ],
)
def test_runs_prune_what_their_order_allows(lake, layout, options, order):
    """A slice on the leading axis reads a part of the rows, and is right; on the last one it reads them all."""
    x = sparse_array((80, 80, 80), 300_000)
    ref = lake.write("x", tl.SparseTensor.from_dense(x), layout=layout, **options)
    rows = ref._meta.totals.rows
    assert rows >= 3
    leading, last = (
        tuple(5 if k == axis else slice(None) for k in range(3)) for axis in (order[0], order[2])
    )
    plan = ref.explain(leading)
    assert plan.n_rows < rows
    axes = ", ".join(map(str, order))
    assert f"stored     {layout}, runs sorted by the axes {axes}: a slice on the first" in str(plan)
    assert f"lo.d{order[0]} < 6 AND hi.d{order[0]} > 5" in str(plan)
    assert ref.explain(last).n_rows == rows
    assert bits(ref[leading]) == bits(x[leading])


def test_two_writers_of_one_tensor(lake):
    ref = lake.write("x", sparse_array(), layout="bsgs")
    other = tl.open(lake.uri)["x"]
    other[0] = 0
    with pytest.raises(tl.ConcurrentWriteError, match="changed after version"):
        ref[1] = 0
