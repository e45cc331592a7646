"""Products of two stored tensors: NumPy and SciPy are the oracles, and only a band of the second is in memory."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from computed import LAYOUTS, array_of, dense, keys, put
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from work import peak_bytes

import tensorlake_spark as tl
from tensorlake_spark.computing import row_blocks, thread_runner
from tensorlake_spark.computing.operations.products import array_contractions, contractions
from tensorlake_spark.computing.thread_runner import compute
from tensorlake_spark.delta.files import scan
from tensorlake_spark.errors import CorruptDataError, InvalidTensorError
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.writing import source


@pytest.fixture
def small_bands(monkeypatch):
    monkeypatch.setattr(source, "REGION_BYTES", 256)


def bands_of(x, y, axes):
    """Shapes of what is read of the second factor at a time."""
    fold = contractions.tensordot(x._stored, y._stored, axes)
    return [box.shape for box in fold._bands()]


@given(
    st.data(),
    st.sampled_from(("f8", "i2", "c8", "?")),
    st.sampled_from(LAYOUTS),
    st.sampled_from(LAYOUTS),
    st.integers(0, 50),
)
@times(0.4)
def test_products_are_numpys(shared, data, dtype, one, two, seed):
    array, other = array_of(dtype, (5, 6, 4), 3 * seed + 1), array_of("f4", (4, 5, 6), 3 * seed + 2)
    key = data.draw(keys(array.shape))
    x, view = array[key], put(shared, array, one).view[key]
    some = data.draw(st.integers(0, min(3, x.ndim)))
    mine = data.draw(st.permutations(range(x.ndim)))[:some]
    theirs = data.draw(st.permutations(range(3)))[:some]
    y = other
    for a, b in zip(mine, theirs, strict=True):
        y = np.take(y, np.arange(x.shape[a]) % y.shape[b], axis=b)
    with pytest.MonkeyPatch.context() as patch:
        stored = put(shared, y, two)
        patch.setattr(source, "REGION_BYTES", data.draw(st.sampled_from((1, 64, 256))))
        found = np.tensordot(view, stored, (mine, theirs))
    wanted = np.tensordot(x, y, (mine, theirs))
    np.testing.assert_allclose(dense(found), wanted, rtol=1e-4, atol=1e-6)
    assert np.asarray(dense(found)).dtype == wanted.dtype
    if isinstance(found, SparseTensor):
        assert found.equals(SparseTensor.from_dense(dense(found)))


@pytest.mark.parametrize("one", LAYOUTS)
@pytest.mark.parametrize("two", LAYOUTS)
def test_matrices_are_multiplied_as_scipy_does(lake, small_bands, one, two):
    a, b = array_of("f8", (20, 30), 1, 0.2), array_of("f8", (30, 25), 2, 0.2)
    x, y = put(lake, a, one), put(lake, b, two)
    wanted = (sp.csr_array(a) @ sp.csr_array(b)).todense()
    assert len(bands_of(x, y, 1)) > 1
    for found in (x @ y, x.dot(y), np.dot(x, y), np.tensordot(x, y, 1)):
        np.testing.assert_allclose(dense(found), wanted, atol=1e-12)
        assert isinstance(found, SparseTensor) == (x._stored.is_sparse and y._stored.is_sparse)
    product = x.dot(y, into="product")
    np.testing.assert_allclose(dense(product[...]), wanted, atol=1e-12)


def test_bands_are_cut_along_summed_axes_and_end_with_blocks_of_both(lake, monkeypatch):
    x = lake.write("x", np.ones((6, 60)), block_shape=(2, 6))
    y = lake.write("y", np.ones((8, 60)), block_shape=(8, 4))
    monkeypatch.setattr(source, "REGION_BYTES", 2 * 12 * 8 * 8)
    assert bands_of(x, y, (1, 1)) == [(8, 24), (8, 24), (8, 12)]
    monkeypatch.setattr(source, "REGION_BYTES", 8 * 8 * 8)
    assert bands_of(x, y, (1, 1)) == [(8, 8)] * 7 + [(8, 4)]
    assert bands_of(x, y, 0) == [(8, 8)] * 7 + [(8, 4)]
    np.testing.assert_array_equal(np.tensordot(x, y, (1, 1)), np.full((6, 8), 60))
    np.testing.assert_array_equal(np.tensordot(x, y, 0), np.ones((6, 60, 8, 60)))


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
@pytest.mark.parametrize("axes", [(1, 0), (0, 1)])
def test_the_second_factor_is_never_in_memory_as_a_whole(lake, monkeypatch, layout, axes):
    shape = (16_000, 100) if axes == (1, 0) else (100, 16_000)
    rng = np.random.default_rng(0)
    big = rng.random(shape) + 1  # 12.8 MB, sparse three times as much
    small = rng.random((6, 16_000) if axes == (1, 0) else (16_000, 6))
    block = tuple(min(n, 500) for n in shape)
    y = lake.write("y", big, layout=layout, block_shape=block)
    x = lake.write("x", small, layout="ftsf", block_shape=small.shape)
    found = []
    whole = peak_bytes(lambda: found.append(np.tensordot(x, y[...], axes)))
    monkeypatch.setattr(source, "REGION_BYTES", 1 << 20)
    peak = peak_bytes(lambda: found.append(np.tensordot(x, y, axes)))
    np.testing.assert_allclose(dense(found[1]), np.tensordot(small, big, axes))
    assert whole > big.nbytes
    assert peak < 7 << 20


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_large_answer_is_in_memory_once(lake, monkeypatch, in_memory):
    """Every row adds to all of it: a partial for each thread, or for each band, would be as large again."""
    rng = np.random.default_rng(0)
    a, b = rng.random((1024, 1024)), rng.random((1024, 1024))
    x = lake.write("x", a, block_shape=(128, 256), codec="raw")
    y = lake.write("y", b, block_shape=(128, 256), codec="raw")
    other = b if in_memory else y
    for room, name in (
        (source, "REGION_BYTES"), (scan, "JOB_BYTES"), (thread_runner, "_JOB_BYTES"), (row_blocks, "BLOCK_BYTES"),
        (array_contractions, "_PIECE"),
    ):  # fmt: skip
        monkeypatch.setattr(room, name, 1 << 20)
    found, peaks = [], []
    for large in (1 << 40, 1 << 20):
        monkeypatch.setattr(thread_runner, "_LARGE_BYTES", large)
        peaks.append(peak_bytes(lambda: found.append(np.tensordot(x, other, (0, 0)))))
    assert found[0].nbytes == 8 << 20
    np.testing.assert_allclose(found[1], a.T @ b)
    assert peaks[1] < (2 * 8 + 1) << 20 < peaks[0]


def test_nothing_of_the_second_factor_is_read_where_the_first_is_empty(lake, small_bands):
    x, y = put(lake, np.ones((4, 30)), "ftsf"), put(lake, np.ones((30, 20)), "ftsf")
    assert np.tensordot(x.view[:0], y, 1).shape == (0, 20)
    assert not np.tensordot(x.view[:, :0], y.view[:0], 1).any()


def test_lost_rows_of_either_are_an_error(lake, small_bands):
    x = put(lake, array_of("f8", (20, 30), 1), "coo")
    y = put(lake, array_of("f8", (30, 25), 2), "coo")
    for lost in (0, 1):
        pair = [x._stored, y._stored]
        totals = pair[lost].meta.totals
        meta = replace(pair[lost].meta, totals=replace(totals, rows=totals.rows + 1))
        pair[lost] = replace(pair[lost], meta=meta)
        with pytest.raises(CorruptDataError, match="rows were lost"):
            compute(contractions.tensordot(*pair, 1), pair[0])


def test_lengths_that_differ_are_refused_before_anything_is_read(lake, small_bands):
    x, y = put(lake, np.ones((20, 30)), "ftsf"), put(lake, np.ones((20, 30)), "ftsf")
    with pytest.raises(InvalidTensorError, match="of the second 20"):
        x @ y


def test_steps_are_pickled(lake, small_bands):
    x, y = put(lake, np.ones((4, 30)), "ftsf"), put(lake, np.ones((30, 20)), "coo")
    step, part = next(contractions.dot(x._stored, y._stored).steps(x._stored))
    assert pickle.loads(pickle.dumps(step)).box == step.box
    assert part.shape[1] < 30


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
@pytest.mark.parametrize("dtype", ["timedelta64[s]", "datetime64[D]"])
@pytest.mark.parametrize(
    "product",
    [
        lambda x: np.einsum("ij,kj->ik", x, x),
        lambda x: np.dot(x, np.ones(3, np.int64)),
        lambda x: x @ np.ones((3, 2), np.int64),
        lambda x: x.ttv(np.ones(3, np.int64), axis=1),
        lambda x: x.mttkrp([np.ones((2, 2), np.int64), np.ones((3, 2), np.int64)], 0),
    ],
)
def test_times_have_no_products(lake, layout, dtype, product):
    """Seconds times seconds are no seconds; NumPy has no such loop, and its error came through, or an answer."""
    given_times = np.arange(6).reshape(2, 3).astype(dtype)
    x = lake.write(
        "x",
        given_times if layout == "ftsf" else tl.SparseTensor.from_dense(given_times),
        layout=layout,
    )
    with pytest.raises(tl.UnsupportedDtypeError, match=r"astype\('int64'\) counts units"):
        product(x)
