"""Reductions of stored tensors: NumPy is the oracle, whatever the layout, the key and the axes."""

import pickle
import warnings

import numpy as np
import pytest
from computed import LAYOUTS, array_of, arrays, axes, dense, equal, keys, put
from examples import times
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.computing.operations import tiles
from tensorlake_spark.computing.operations.block_reductions import (
    KERNELS,
    norm_axes,
    reduced_axes,
    reduction,
)
from tensorlake_spark.computing.thread_runner import compute, partials
from tensorlake_spark.errors import UnsupportedFunctionError
from tensorlake_spark.indexing import Box
from tensorlake_spark.tensor.sparse import SparseTensor


def numpy_of(name):
    return np.linalg.norm if name == "norm" else getattr(np, name)


def answer_of(function, *args, **kwargs):
    """What NumPy answers, or the type of what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError) as error:
            return type(error)


@given(st.data(), arrays(), st.sampled_from(sorted(KERNELS)), st.sampled_from(LAYOUTS))
@times(1.5)
def test_a_reduction_is_numpys(shared, data, array, name, layout):
    key = data.draw(keys(array.shape))
    x = array[key]
    axis = data.draw(axes(x.ndim))
    if name == "norm" and (
        (isinstance(axis, tuple) and len(axis) > 2) or (axis is None and not x.ndim)
    ):
        axis = None
    options = {"keepdims": data.draw(st.booleans())} if x.ndim else {}
    view = put(shared, array, layout).view[key]
    wanted = answer_of(numpy_of(name), x, axis=axis, **options)
    method = getattr(view, name)
    if isinstance(wanted, type):
        with pytest.raises(wanted):
            method(axis=axis, **options)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = method(axis=axis, **options)
    if np.isscalar(found):
        wanted, found = np.asarray(wanted), np.asarray(found)
    equal(found, wanted)


MASKED = sorted({*KERNELS} - {"norm", "count_nonzero"})


@given(st.data(), arrays(), st.sampled_from(MASKED), st.sampled_from(LAYOUTS))
@times(1.5)
def test_a_reduction_of_what_a_mask_chooses_is_numpys(shared, data, array, name, layout):
    key = data.draw(keys(array.shape))
    x = array[key]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    shape = [data.draw(st.sampled_from((1, n))) for n in x.shape]
    mask = rng.random(shape[data.draw(st.integers(0, x.ndim)) :]) < 0.6
    options = {"axis": data.draw(axes(x.ndim)), "keepdims": data.draw(st.booleans()) and x.ndim > 0}
    if name in ("min", "max", "nanmin", "nanmax", "sum") and data.draw(st.integers(0, 4)):
        options["initial"] = 1
    if name in ("var", "std"):
        options["ddof"] = data.draw(st.integers(0, 2))
    view = put(shared, array, layout).view[key]
    wanted = answer_of(numpy_of(name), x, where=mask, **options)
    where = data.draw(st.sampled_from((mask, SparseTensor.from_dense(mask))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(wanted, type):
            with pytest.raises(wanted):
                getattr(view, name)(where=where, **options)
            return
        found = getattr(view, name)(where=where, **options)
    equal(np.asarray(found) if np.isscalar(found) else found, np.asarray(wanted))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_mask_is_cut_by_blocks_and_by_regions_of_an_answer(lake, monkeypatch):
    monkeypatch.setattr(tiles, "_PIECE", 64)
    array = array_of("f4", (9, 8, 7), 1)
    mask = array_of("?", (8, 7), 2)
    for layout in LAYOUTS:
        view = put(lake, array, layout).view[:, [5, 2, 3]]
        x, some = array[:, [5, 2, 3]], mask[[5, 2, 3]]
        for name in ("var", "prod", "mean"):
            fold = reduction(view._stored, name, 0, where=some)
            wanted = getattr(np, name)(x, axis=0, where=some)
            equal(compute(fold, view._stored), wanted)
            key, part = fold.part(Box((1, 2), (3, 5)))
            equal(compute(part, view._stored.part(key)), wanted[1:3, 2:5])


def test_a_mask_reads_only_the_rows_of_the_view(lake):
    array = np.arange(24.0).reshape(6, 4)
    ref = lake.write("x", array, block_shape=(1, 4))
    seen = []
    fold = reduction(ref.view[2:4]._stored, "sum", where=array[2:4] > 9)
    add = type(fold).add
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            type(fold), "add", lambda x, out, at, b: seen.append(b.size) or add(x, out, at, b)
        )
        found = compute(fold, ref.view[2:4]._stored)
    assert (found, sum(seen)) == (array[2:4].sum(where=array[2:4] > 9), 8)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_masks_that_do_not_fit_and_what_a_mask_leaves_empty(lake, layout):
    array = array_of("f8", (4, 5), 1)
    ref = put(lake, array, layout)
    with pytest.raises(tl.InvalidTensorError, match="does not broadcast"):
        ref.sum(where=np.ones(4, bool))
    with pytest.raises(tl.UnsupportedDtypeError, match="bools"):
        ref.sum(where=np.ones(5))
    with pytest.raises(ValueError, match="initial"):
        ref.min(where=np.ones(5, bool))
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        assert np.isnan(ref.mean(where=False))
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        assert not np.isfinite(dense(ref.var(axis=0, where=[[True]] * 4, ddof=4))).any()
    assert ref.sum(where=array > 0, into="some")[()] == array.sum(where=array > 0)


@given(st.data(), st.sampled_from(sorted(KERNELS)), st.sampled_from(LAYOUTS))
@times(0.5)
def test_partials_may_be_combined_in_any_order_and_are_pickled(shared, data, name, layout):
    array = array_of("f8", (6, 5, 4), 1)
    axis = data.draw(axes(3))
    if name == "norm" and isinstance(axis, tuple):
        axis = axis[0]
    stored = put(shared, array, layout)._stored
    fold = pickle.loads(pickle.dumps(reduction(stored, name, axis)))

    def parts():
        """Partials of single planes, as blocks come: their number is that of the first axis."""
        found = [*partials(fold, stored)]
        for k in range(6):
            piece = stored.box((k, 0, 0), (k + 1, 5, 4))
            block = piece.read()
            place = (slice(k, k + 1), slice(0, 5), slice(0, 4))
            if stored.is_sparse:
                coords = block.coords + np.array([[k], [0], [0]])
                block, place = (
                    type(block)(coords, block.values, (6, 5, 4)),
                    tuple(slice(0, n) for n in array.shape),
                )
            found.append(fold.map(place, block))
        return [pickle.loads(pickle.dumps(p)) for p in found[-6:]]

    a, b, c, d, e, f = parts()
    left = fold.combine(fold.combine(fold.combine(fold.combine(fold.combine(a, b), c), d), e), f)
    a, b, c, d, e, f = parts()
    right = fold.combine(fold.combine(f, fold.combine(d, a)), fold.combine(c, fold.combine(e, b)))
    wanted = numpy_of(name)(array, axis=axis)
    for partial in (left, right):
        found = fold.finish(partial)
        equal(np.asarray(found) if np.isscalar(found) else found, np.asarray(wanted))


@given(st.data(), arrays(), st.sampled_from(sorted(KERNELS)), st.sampled_from(LAYOUTS))
@times(1.5)
def test_partials_that_are_cut_and_packed_give_the_same_answer(shared, data, array, name, layout):
    key = data.draw(keys(array.shape))
    stored = put(shared, array, layout).view[key]._stored
    options = {"keepdims": data.draw(st.booleans())} if stored.shape else {}
    axis, count = data.draw(axes(len(stored.shape))), data.draw(st.integers(2, 5))
    if name == "norm" and not isinstance(axis, int):
        axis = 0 if stored.shape else None
    elif name not in ("norm", "count_nonzero") and data.draw(st.booleans()):
        options["where"] = np.random.default_rng(1).random(stored.shape) < 0.6
    fold = answer_of(reduction, stored, name, axis, **options)
    if isinstance(fold, type) or 0 in stored.shape or not fold.answer_shape:
        return
    parts = {}
    for partial in partials(fold, stored):
        for number, part in fold.cut(partial, count):
            assert 0 <= number < count
            sent = pickle.loads(pickle.dumps(fold.packed(part)))
            parts[number] = fold.combine(parts[number], sent) if number in parts else sent
    sent = (fold.packed(parts[number]) for number in data.draw(st.permutations(sorted(parts))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        equal(fold.finish(fold.combine_all(sent)), dense(compute(fold, stored)))


def test_sums_of_short_integers_do_not_wrap_where_numpys_do_not(lake):
    array = np.full((300, 700), 255, np.uint8)
    ref = lake.write("x", array, block_shape=(7, 700))
    assert ref.sum() == array.sum(dtype=np.uint64)
    assert ref.sum(axis=0)[0] == 300 * 255
    assert ref.sum(axis=0).dtype == np.uint64


def test_sums_of_long_integers_wrap_as_numpys_do(lake):
    array = np.full((4, 3), 2**62, np.int64)
    ref = lake.write("x", array, block_shape=(1, 3))
    assert ref.sum() == array.sum()
    assert np.array_equal(ref.prod(axis=0), array.prod(axis=0))


def test_the_variance_of_numbers_far_from_zero_is_exact(lake):
    array = 1e9 + np.random.default_rng(0).random((64, 50))
    ref = lake.write("x", array, block_shape=(3, 50))
    np.testing.assert_allclose(ref.var(axis=0), array.var(axis=0), rtol=1e-6)
    np.testing.assert_allclose(ref.std(ddof=1), array.std(ddof=1), rtol=1e-6)


def test_missing_chunks_count_as_the_fill_value(lake):
    array = np.full((9, 8), 7, np.int32)
    array[4:6, 1:3] = [[1, 2], [3, 99]]
    ref = lake.write("x", array, block_shape=(3, 4), fill_value=7)
    assert ref.nnz < array.size
    for name in ("sum", "min", "max", "var", "mean", "count_nonzero"):
        for axis in (None, 0, 1):
            equal(
                np.asarray(getattr(ref, name)(axis=axis)),
                np.asarray(getattr(np, name)(array, axis=axis)),
            )
    assert ref.view[0:3].sum() == 7 * 24, "no row at all"


@pytest.mark.parametrize("name", ["min", "max", "nanmin"])
@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_nothing_has_no_least_element(lake, name, layout):
    ref = lake.write("x", np.zeros((0, 3)), layout=layout)
    with pytest.raises(ValueError, match="zero-size array"):
        getattr(ref, name)()
    assert getattr(ref, name)(axis=1).shape == (0,)


def test_axes_that_are_not_there_are_refused(lake):
    ref = lake.write("x", np.zeros((2, 3)))
    with pytest.raises(tl.AxisError):
        ref.sum(axis=2)
    with pytest.raises(tl.AxisError, match="given twice"):
        ref.sum(axis=(0, -2))
    assert reduced_axes((-1, 0), 3) == (0, 2)


def test_norms_are_of_vectors_or_frobenius(lake):
    array = array_of("f8", (4, 5), 1)
    ref = lake.write("x", array)
    for ord_ in (None, 1, 2, 3, 0, np.inf, -np.inf, 0.5):
        np.testing.assert_allclose(ref.norm(ord_, axis=1), np.linalg.norm(array, ord_, axis=1))
    np.testing.assert_allclose(ref.norm("fro"), np.linalg.norm(array, "fro"))
    with pytest.raises(UnsupportedFunctionError, match="read it"):
        ref.norm(2)
    with pytest.raises(tl.InvalidTensorError, match="norm"):
        norm_axes((0, 1, 2), 2, 3)


def test_all_of_a_slice_nan_warns_as_numpy_does(lake):
    ref = lake.write("x", np.array([[np.nan, np.nan], [1, np.nan]]))
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        assert np.isnan(ref.nanmax(axis=1)[0])


def test_a_fold_is_computed_once_for_each_row(lake, monkeypatch):
    ref = lake.write("x", np.arange(24.0).reshape(6, 4), block_shape=(2, 4))
    fold = reduction(ref._stored, "sum", 0)
    assert np.array_equal(compute(fold, ref._stored), np.arange(24.0).reshape(6, 4).sum(0))


@pytest.mark.parametrize("value", [3.0, np.nan, np.inf])
@pytest.mark.parametrize("ddof", [0, 1])
def test_the_deviation_of_one_element_alone_is_numpys(lake, value, ddof):
    array = np.array([[value, 0.0], [0.0, 2.0]])
    ref = put(lake, array, "bsgs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key in (np.s_[:1, :1], np.s_[:1], np.s_[:]):
            for axis in (None, 0, 1):
                found = dense(ref.view[key].std(axis=axis, ddof=ddof))
                assert np.allclose(found, array[key].std(axis=axis, ddof=ddof), equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["nanmin", "nanmax"])
@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]"])
def test_what_is_nat_throughout_stays_nat(lake, dtype, name, layout):
    array = np.array([["NaT"] * 4, [1, "NaT", 3, 0], ["NaT", "NaT", 5, 7]], dtype)
    options = {"block_shape": (1, 2)} if layout in ("ftsf", "bsgs") else {}
    ref = lake.write("x", array, layout=layout, **options)
    for axis in (0, 1, ()):
        with pytest.warns(RuntimeWarning, match="All-NaN slice"):
            wanted = getattr(np, name)(array, axis=axis)
        for x in (ref, SparseTensor.from_dense(array)):
            with pytest.warns(RuntimeWarning, match="All-NaN slice"):
                found = dense(getattr(x, name)(axis=axis))
            np.testing.assert_array_equal(found, wanted, strict=True)
    assert getattr(ref, name)() == getattr(np, name)(array)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_an_initial_value_is_rounded_to_the_result(lake, layout):
    array = np.array([[0, 3], [1, 2]], "f2")
    ref = put(lake, array, layout)
    for name, initial in (("prod", 1e10), ("sum", 1e10), ("prod", 1 / 3), ("sum", 2049)):
        found = dense(getattr(ref, name)(axis=1, initial=initial))
        wanted = getattr(np, name)(array, axis=1, initial=initial)
        np.testing.assert_array_equal(found, wanted, strict=True)
