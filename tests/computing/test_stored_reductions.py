"""Reductions of stored tensors as methods: NumPy's answers, and results that go to the lake."""

import ml_dtypes
import numpy as np
import pytest
from computed import array_of, dense, put
from reduced import NAMES, arguments_of, check_like_numpy, check_odd_axes, numpy_of

import tensorlake_spark as tl
from tensorlake_spark.computing.operations.block_reductions import BlockReduction
from tensorlake_spark.computing.stored_reductions import ReductionMethods
from tensorlake_spark.errors import InvalidOptionError, TensorExistsError


@pytest.fixture
def array():
    return array_of("i8", (6, 5), 1)


@pytest.fixture
def ref(lake, array):
    return lake.write("x", array, block_shape=(2, 3))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "min", "max", "any", "all"])
def test_methods_give_what_numpy_gives_with_a_mask_too(ref, array, name):
    start = {"initial": 2} if name in ("min", "max") else {}
    for axis in (None, 0, -1):
        assert np.array_equal(getattr(ref, name)(axis=axis), getattr(array, name)(axis=axis))
        given = {"axis": axis, "where": array[0] % 2 == 0, **start}
        assert np.array_equal(getattr(ref, name)(**given), getattr(array, name)(**given))


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_numpys_in_numpys_order_and_into_is_named(ref, array, name):
    assert arguments_of(getattr(ReductionMethods, name)) == arguments_of(numpy_of(name))
    if "out" in dict(arguments_of(numpy_of(name))):
        with pytest.raises(tl.UnsupportedFunctionError, match=r"out= is not there.*into="):
            getattr(ref, name)(0, out=np.zeros(5))


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_odd_axes_are_refused_as_numpy_does(shared, layout):
    array = array_of("f8", (4, 5), 1)
    ref, scalar = (
        put(shared, array, layout),
        shared.write("scalar " + layout, np.array(3.0), layout=layout),
    )
    for name in NAMES:
        check_odd_axes(name, ref, array)
        for axis in (None, 0, -1, 1, (), (0,)):
            check_like_numpy(
                lambda name=name, axis=axis: dense(getattr(scalar, name)(axis=axis)),
                lambda name=name, axis=axis: numpy_of(name)(np.array(3.0), axis=axis),
                kind="array",
            )
    for x in (ref, ref.view[1:], scalar):
        with pytest.raises(TypeError, match=r"along one axis.*None.*not along"):
            x.argmax(axis=(0, 1))
        with pytest.raises(TypeError, match="along one axis"):
            x.first_index((">", 0), axis=(0,))
    with pytest.raises(ValueError, match="without axes"):
        scalar.nonzero()


@pytest.mark.parametrize("fill", [0, -1])
@pytest.mark.parametrize("dtype", ["i1", "i4", "i8"])
def test_sums_of_negative_integers_in_unsigned_ones_wrap_around(lake, dtype, fill):
    array = np.array([[1, -1], [-1, -1], [-3, 127], [-4, 127], [-3, -1], [-1, 1], [127, -1]], dtype)
    ref = lake.write("x", array, layout="ftsf", block_shape=(2, 1), fill_value=fill)
    for name in ("sum", "nansum", "mean", "prod"):
        for axis in (None, 0, 1):
            for asked in ("u1", "u8"):
                wanted = numpy_of(name)(array, axis=axis, dtype=asked)
                np.testing.assert_array_equal(getattr(ref, name)(axis=axis, dtype=asked), wanted)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "f2", "c8"])
def test_one_short_integer_without_axes_has_a_variance_and_a_norm(lake, dtype):
    array = array_of(dtype, (2, 3), 1, density=1)
    ref, scalar = lake.write("x", array), lake.write("scalar", array[1, 2])
    for one in (ref.view[1, 2], scalar, scalar.view[()]):
        for name in ("var", "std", "norm", "mean", "sum"):
            if (name, dtype) not in [
                ("var", "?"),
                ("std", "?"),
            ]:  # NumPy's bools are not subtracted
                wanted = numpy_of(name)(array[1, 2])
                found = getattr(one, name)()
                assert (found, found.dtype) == (wanted, wanted.dtype), name


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_a_variance_is_as_exact_as_the_dtype_that_is_asked_for(shared, layout):
    array = (np.arange(20).reshape(4, 5) * 0.37 - 1).astype("f4")
    ref = put(shared, array, layout)
    for name in ("var", "std"):
        for axis in (None, 0):
            got = dense(getattr(ref, name)(axis=axis, dtype="f8"))
            np.testing.assert_allclose(got, getattr(np, name)(array, axis, "f8"), rtol=1e-13)
            for dtype in ("i8", "?"):
                with pytest.raises(tl.UnsupportedDtypeError, match=r"cut the mean.*floats"):
                    getattr(ref, name)(axis=axis, dtype=dtype)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "coo"])
def test_a_real_variance_of_complex_numbers_has_their_imaginary_parts_in_the_squares(
    shared, layout
):
    array = np.zeros((6, 7), "c16")
    array[1::2, ::3] = np.arange(9).reshape(3, 3) * (0.5 - 2j) + 1j
    ref = put(shared, array, layout)
    for axis in (None, 0, 1):
        for dtype in ("f8", "f4"):
            got = dense(ref.var(axis=axis, dtype=dtype))
            np.testing.assert_allclose(got, array.var(axis, dtype), rtol=1e-6, atol=1e-6)


def test_the_first_index_where_a_condition_holds(ref, array):
    for axis in (0, 1):
        holds = array > 0
        wanted = np.where(holds.any(axis=axis), holds.argmax(axis=axis), -1)
        assert np.array_equal(ref.first_index((">", 0), axis=axis), wanted)
    assert ref.first_index((">", array.max())) == -1
    assert array.max() in ref
    assert array.max() + 1 not in ref.view[1:]
    assert np.nan not in ref


def test_a_result_goes_into_the_lake_by_one_commit(lake, ref, array):
    before = lake.version
    means = ref.mean(axis=0, into="means")
    assert (means.id, lake.version) == ("means", before + 1)
    assert np.array_equal(lake["means"][...], array.mean(axis=0))
    assert ref.sum(into="total")[()] == array.sum()
    assert np.array_equal(ref.argwhere(into="where")[...], np.argwhere(array))
    with pytest.raises(InvalidOptionError, match="id of a tensor"):
        ref.max(into=3)


def test_an_id_that_exists_is_an_error_before_anything_is_computed(lake, ref, monkeypatch):
    monkeypatch.setattr(ReductionMethods, "_folded", lambda *_: pytest.fail("it was computed"))
    for call in (ref.max, ref.view[1:].argmax, ref.argwhere, ref.view.norm):
        with pytest.raises(TensorExistsError, match=r"'x' exists in .*; give another id"):
            call(into="x")


def test_sparse_results_are_stored_sparse(lake, array):
    ref = put(lake, array, "bsgs")
    found = ref.sum(axis=1, into="sums")
    assert np.array_equal(dense(found[...]), array.sum(axis=1))


def test_a_transaction_takes_no_result(lake, array):
    with lake.transaction() as tx:
        ref = tx.write("t", array)
        with pytest.raises(InvalidOptionError, match="belongs to a transaction"):
            ref.sum(axis=0, into="sums")
        assert ref.sum() == array.sum()


@pytest.mark.parametrize("kind", [np.asarray, tl.SparseTensor.from_dense])
def test_what_a_mask_leaves_out_along_reduced_axes_is_not_read(lake, array, kind, monkeypatch):
    ref, seen, add = lake.write("x", array, block_shape=(1, 5)), [], BlockReduction.add

    def counted(fold, partial, place, block):
        seen.append(block.size)
        return add(fold, partial, place, block)

    monkeypatch.setattr(BlockReduction, "add", counted)
    mask = np.zeros((6, 1), bool)
    mask[[2, 4]] = True
    for axis, rows in ((0, 3), (None, 3), (1, 6)):
        seen.clear()
        found = ref.sum(axis=axis, where=kind(mask))
        assert np.array_equal(found, array.sum(axis=axis, where=mask))
        assert sum(seen) == 5 * rows
    seen.clear()
    assert ref.view[::-1].sum(where=kind(mask)) == array[::-1].sum(where=mask)
    assert sum(seen) == 15
    seen.clear()
    assert ref.sum(where=kind(np.zeros((6, 5), bool))) == 0
    assert sum(seen) <= 5


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_bfloat16_is_computed_in_double_width(lake, layout):
    dtype = ml_dtypes.bfloat16
    array = (np.random.default_rng(0).integers(0, 9, (40, 60)) / 4).astype(dtype)
    ref, exact = put(lake, array, layout), array.astype("f8")
    for name in ("sum", "mean", "var", "std", "prod", "nansum"):
        for axis in (0, 1, None):
            found = dense(getattr(ref, name)(axis=axis))
            assert found.dtype == dtype
            wanted = np.asarray(getattr(np, name)(exact, axis=axis)).astype(dtype)
            np.testing.assert_array_equal(np.asarray(found), wanted, err_msg=f"{name} {axis}")
    np.testing.assert_allclose(dense(ref.norm(axis=0)), np.linalg.norm(exact, axis=0), rtol=1e-12)
    tall = lake.write("tall", np.ones((3000, 1), dtype), block_shape=(100, 1))
    assert tall.sum() == 3008, "3000, as exactly as bfloat16 has it; added one by one they stay 256"


def test_products_of_one_with_bfloat16(lake):
    dtype = ml_dtypes.bfloat16
    array = np.array([1.5, -2], dtype)
    found = lake.write("x", array) @ np.array([[1, 2, 3], [0, 1, 0]], dtype)
    assert found.dtype == dtype
    assert found.astype("f8").tolist() == [1.5, 1.0, 4.5]


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_norms_of_nothing(lake, layout):
    array = np.zeros((3, 4))
    view = put(lake, array + (layout == "ftsf"), layout).view[:, 4:]
    for order in (None, 1, 2, 0, np.inf, -np.inf, 3):
        try:
            wanted = np.linalg.norm(np.zeros((3, 0)), order, axis=1)
        except ValueError as error:  # always of -inf, and of inf in earlier versions
            with pytest.raises(ValueError, match=str(error)):
                view.norm(order, axis=1)
        else:
            np.testing.assert_array_equal(dense(view.norm(order, axis=1)), wanted)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:All-NaN")
@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "coo"])
def test_nan_of_bfloat16_is_nan(lake, layout):
    dtype = ml_dtypes.bfloat16
    array = np.array(
        [[-3, np.nan, 0, -1], [2, 1, np.nan, np.nan], [np.nan] * 4, [-1, -2, -3, 0]], dtype
    )
    ref = put(lake, array, layout)
    for name in ("argmax", "argmin", "nanmin", "nanmax", "max", "min"):
        for axis in (0, 1, None):
            found = np.asarray(dense(getattr(ref, name)(axis=axis))).astype("f8")
            wanted = np.asarray(getattr(np, name)(array.astype("f8"), axis=axis))
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name} {axis}")


@pytest.mark.parametrize(
    "name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e5m2"]
)
@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "coo"])
def test_extremes_of_floats_without_infinities(lake, layout, name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    most = float(ml_dtypes.finfo(dtype).max)
    array = np.array([[-3, 2, 0, -1], [2, 1, -2, 2], [-most] * 4, [most] * 4, [0, -0.0, 0, 1]])
    ref, mask = put(lake, array.astype(dtype), layout), np.array([True, False, True, True])
    for axis in (0, 1, None):
        for function in ("argmax", "argmin", "max", "min", "nanmax", "nanmin"):
            found = np.asarray(dense(getattr(ref, function)(axis=axis))).astype("f8")
            np.testing.assert_array_equal(found, getattr(np, function)(array, axis=axis))
        for function in ("max", "min"):
            given = {"axis": axis, "initial": 1.0, "where": mask}
            found = np.asarray(dense(getattr(ref, function)(**given))).astype("f8")
            np.testing.assert_array_equal(found, getattr(np, function)(array, **given))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "nansum"])
def test_a_dtype_that_numpy_refuses_is_named(ref, name):
    with pytest.raises(tl.UnsupportedDtypeError, match=r"of int64 with dtype='no_such'"):
        getattr(ref, name)(dtype="no_such")


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda x: x.view[:0].min(), ValueError, r"^np\.min of uint8 cannot be computed: zero-size.*give a number for initial="),
        (lambda x: x.view[:0].nanmax(0), ValueError, "zero-size"),
        (lambda x: x.view[:0].argmax(), ValueError, r"^np\.argmax of uint8 .* empty sequence; choose at least one element"),
        (lambda x: x.view[:0].norm(-np.inf, 0), ValueError, r"^np\.norm of uint8 .* choose at least one element"),
        (lambda x: x.max(where=[True]), ValueError, "give a number for initial="),
        (lambda x: x.min(initial="a"), ValueError, "'a'; give a number for initial="),
        (lambda x: x.min(initial=-2), OverflowError, "-2 out of bounds for uint8; astype"),
        (lambda x: x.sum(initial=-2), OverflowError, "-2 out of bounds for uint64; astype"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("layout", ["ftsf", "coo", None])
def test_values_that_numpy_refuses_are_told_by_an_error_of_ours(lake, call, kind, says, layout):
    array = np.arange(12, dtype="u1").reshape(3, 4)
    ref = tl.SparseTensor.from_dense(array)
    if layout:
        ref = lake.write("x", array, layout=layout)
    elif "view" in call.__code__.co_names:
        return
    with pytest.raises(kind, match=says) as told:
        call(ref)
    assert isinstance(told.value, tl.InvalidTensorError)


@pytest.mark.parametrize("dtype", ["m8[s]", "M8[s]"])
@pytest.mark.parametrize("order", [None, 1, 3, np.inf, -np.inf])
def test_norms_of_times_are_numpys(lake, dtype, order):
    times = np.arange(12).reshape(3, 4).astype(dtype)
    wanted = np.linalg.norm(times, order, axis=0)
    for layout in ("ftsf", "coo"):
        got = lake.write(layout, times, layout=layout).norm(order, axis=0)
        np.testing.assert_allclose(dense(got), wanted)


@pytest.mark.parametrize("ddof", ["a", None, 1j])
def test_what_is_taken_off_the_number_of_elements_is_a_number(ref, ddof):
    for function in (ref.var, ref.std):
        with pytest.raises(TypeError, match=r"ddof=.* is not a number"):
            function(ddof=ddof)
