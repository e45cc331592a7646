"""Means, sums, extremes, norms and contents of arrays, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorlake_spark as tl
from tensorlake_spark.query.functions.expressions import evaluate
from tensorlake_spark.query.functions.registry import find
from tensorlake_spark.query.functions.row_values import Constant, RowError, expanded
from tensorlake_spark.query.functions.summaries import axes_of, contains, histogram, mean
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.tensor.spec import dtype_of

ORACLE = {
    "array_mean": np.mean,
    "array_sum": np.sum,
    "array_min": np.min,
    "array_max": np.max,
    "array_std": np.std,
    "array_norm": lambda x, axis=None: np.sqrt(
        np.sum(np.abs(x.astype(np.float64)) ** 2, axis=axis)
    ),
    "array_argmax": np.argmax,
    "any": np.any,
    "all": np.all,
}


def call(name, *arguments):
    rows = next((len(one) for one in arguments if not isinstance(one, Constant)), 1)
    return expanded(find(name)(list(arguments), rows), rows)


@pytest.mark.parametrize("name", sorted(ORACLE))
@pytest.mark.parametrize("axis", [None, 0, -1, 1])
@pytest.mark.parametrize("size", [3, 60])  # rows are computed together, and one by one
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64, np.bool_])
def test_summaries_are_those_of_numpy(name, axis, size, dtype):
    if dtype is np.bool_ and name == "array_std":
        dtype = np.int8
    rng = np.random.default_rng(5)
    stack = (rng.random((4, size, size, 2)) * 200).astype(dtype)
    ragged = [one[: i + 1] for i, one in enumerate(stack)] * 3
    axes = () if axis is None else (Constant(axis),)
    for values in (stack, stack[:, ::2, ::-1], ragged):
        found = call(name, values, *axes)
        for got, one in zip(found, values, strict=True):
            wanted = ORACLE[name](one, axis=axis)
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
            assert np.shape(got) == np.shape(wanted)


@settings(max_examples=100, deadline=None)
@given(
    hnp.arrays(
        st.sampled_from([np.uint8, np.int16, np.float32, np.float64]),
        hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5),
    ),
    st.sampled_from(["array_sum", "array_min", "array_max", "any", "all", "array_mean"]),
    st.data(),
)
def test_any_array_and_any_axes(x, name, data):
    axes = data.draw(
        st.one_of(st.none(), st.lists(st.integers(0, x.ndim - 1), unique=True).map(tuple))
    )
    given_ = [np.stack([x, x])] + ([] if axes is None else [Constant(np.array(axes))])
    with np.errstate(all="ignore"):
        found = call(name, *given_)
        wanted = ORACLE[name](x, axis=axes)
    for got in found:
        assert np.shape(got) == np.shape(wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-4)


def test_null_gives_null():
    assert call("array_mean", [None, np.ones(2)]) == [None, 1.0]
    assert call("array_max", np.ones((2, 3)), Constant(None)) == [None, None]


def test_empty_arrays():
    empty = [np.zeros((0, 4)), np.ones((1, 4))]
    assert np.isnan(call("array_mean", empty)[0])
    assert np.isnan(call("array_std", empty)[0])
    assert call("array_sum", empty).tolist() == [0, 4]
    for name in ("array_min", "array_max", "array_argmax"):
        assert call(name, empty)[0] is None
    assert call("any", empty).tolist() == [False, True]
    assert call("all", empty).tolist() == [True, True]
    assert np.isnan(call("array_mean", [np.zeros((0, 4))], Constant(0))[0]).all()


@pytest.mark.parametrize("name", ["array_min", "array_max", "array_sum", "array_mean", "any"])
def test_along_no_axis_each_element_is_its_own(name):
    x = np.array([[3, 0], [5, 7]], "i4")
    for values in (x, [*x]):
        found = call(name, values, Constant(np.array([])))  # what [] is in a query
        assert np.array_equal(found, ORACLE[name](x, axis=()))


def test_nan_goes_through():
    x = np.array([[1.0, np.nan], [2.0, 3.0]])
    assert np.array_equal(call("array_max", x), [np.nan, 3], equal_nan=True)
    assert np.array_equal(call("array_mean", x), [np.nan, 2.5], equal_nan=True)


@pytest.mark.parametrize("axis", [5, -3, 1.5, "x", True])
def test_axes_that_are_not_there(axis):
    with pytest.raises(RowError, match="axis") as caught:
        call("array_mean", np.ones((2, 3, 3)), Constant(axis))
    assert caught.value.row == 0


def test_axes():
    assert axes_of([0, -1], 3) == (0, 2)
    with pytest.raises(ValueError, match="twice"):
        axes_of([0, -3], 3)
    with pytest.raises(RowError, match="one axis"):
        call("array_argmax", np.ones((2, 3, 3)), Constant(np.array([0, 1])))


def test_texts_are_no_numbers():
    with pytest.raises(RowError, match="not numbers"):
        call("array_mean", ["a", "b"])


def test_the_axis_may_differ_from_row_to_row():
    x = np.arange(8.0).reshape(2, 2, 2)
    found = call("array_sum", x, np.array([0, 1]))
    assert found.tolist() == [[2, 4], [9, 13]]


@pytest.mark.parametrize(
    ("x", "value", "wanted"),
    [
        (np.arange(5), 3, True),
        (np.arange(5), 7, False),
        (np.arange(5), np.array([1, 4]), True),
        (np.arange(5), np.array([1, 5]), False),
        (np.array(["a", "b"]), "a", True),
        (np.array(["a", "b"]), 1, False),
        (np.arange(3), "a", False),
        ("lake", "ak", True),
        ("lake", "x", False),
        (np.zeros((2, 2)), 0, True),
        (np.zeros(0), 0, False),
        (np.array([0.1], np.float32), 0.1, True),
        (np.array([0.1], np.float32), np.float64(0.1), False),
        (np.zeros(1, np.uint8), 256, False),
    ],
)
def test_contains(x, value, wanted):
    assert contains(x, value) is wanted


def test_a_text_contains_no_number():
    with pytest.raises(TypeError, match="a text contains texts"):
        contains("lake", 5)


def test_nonzero_is_argwhere():
    x = np.array([[[0, 1], [2, 0]], [[0, 0], [0, 3]]])
    found = call("nonzero", x)
    assert all(np.array_equal(got, np.argwhere(one)) for got, one in zip(found, x, strict=True))


@pytest.mark.parametrize("arguments", [(), (5,), (4, 0, 100), (3, -1.5, 2.5)])
def test_histogram_is_that_of_numpy(arguments):
    x = np.random.default_rng(1).integers(0, 90, (3, 5, 5))
    options = {"bins": 10} | dict(zip(["bins"], arguments))
    if len(arguments) == 3:
        options["range"] = arguments[1:]
    found = call("histogram", x, *map(Constant, arguments))
    assert all(
        np.array_equal(got, np.histogram(one, **options)[0])
        for got, one in zip(found, x, strict=True)
    )


@pytest.mark.parametrize("arguments", [(0,), (10**9,), (2.5,), (5, 1), (5, 3, 1), (5, 0, np.inf)])
def test_bins_that_make_no_sense(arguments):
    with pytest.raises((ValueError, TypeError)):
        histogram(np.arange(3), *arguments)


def test_ends_of_bins_are_named():
    with pytest.raises(ValueError, match=r"the bins 5\.0 and 1\.0 are not in order"):
        histogram(np.arange(3), 2, 5, 1)


def test_shapes_and_dtypes():
    stack, ragged = np.zeros((2, 3, 4), np.uint8), [np.zeros((2, 3)), None, np.zeros(5)]
    assert call("shape", stack).tolist() == [[3, 4], [3, 4]]
    assert call("shape", stack, Constant(-1)).tolist() == [4, 4]
    assert call("shape", stack[:1]).tolist() == [[3, 4]]
    found = call("shape", ragged)
    assert [None if one is None else one.tolist() for one in found] == [[2, 3], None, [5]]
    assert list(call("dtype", stack)) == ["uint8", "uint8"]
    assert list(call("dtype", np.array(["a", "bc"]))) == ["text", "text"]
    with pytest.raises(RowError, match="out of bounds"):
        call("shape", ragged, Constant(1))
    assert find("shape").reads == find("dtype").reads == "shape"


def test_truths_have_bins_and_complex_numbers_have_none():
    assert histogram(np.array([True, False, True]), 2).tolist() == [1, 2]
    with pytest.raises(TypeError, match="no order"):
        histogram(np.ones(3, complex))


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "i4", "u8", "f2", "f4"])
@pytest.mark.parametrize("axis", [None, 0, (0, 2)])
def test_means_of_parts_are_those_of_numpy(dtype, axis):
    rng = np.random.default_rng(4)
    kind = np.dtype(dtype)
    whole = rng.integers(0, 120, (9, 40, 30, 3)).astype(kind)
    if kind.kind == "i":
        whole -= 60
    part = whole[3, 5:25, ::-2]
    found = mean(part, axis)
    wanted = np.mean(part, axis=axis)
    assert np.array_equal(found, wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    rows = whole.reshape(9, -1)
    assert np.array_equal(mean(rows, 1), np.mean(rows, axis=1))


@pytest.mark.parametrize("value", [np.uint8(255), np.int8(-128)])
def test_sums_of_many_small_numbers_do_not_wrap_around(value):
    for count in (1 << 23, (1 << 31) // 255, (1 << 31) // 255 + 3):
        assert mean(np.full(count, value)) == value


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "f4"])
def test_means_of_many_large_arrays_are_those_of_each(dtype):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 100, (6, 90, 80, 3)).astype(dtype)
    part = x[:, 3:80, ::2]
    node = [
        one.this for one in parse("SELECT array_mean(x) AS a, array_mean(x, 0) AS b FROM t").selects
    ]
    found = evaluate(node[0], {"x": part}, 6)
    assert np.array_equal(found, [np.mean(one, dtype="f8") for one in part]) or dtype == "f4"
    assert np.allclose(found, part.reshape(6, -1).mean(1), rtol=1e-5)
    assert np.allclose(evaluate(node[1], {"x": part}, 6), part.mean(1), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_are_numbers(dtype, tmp_path):
    x = np.arange(12).reshape(3, 4).astype(dtype_of(dtype))
    ds = tl.dataset(str(tmp_path), {"x": tl.types.Tensor(dtype, (4,))})
    ds.extend({"x": x})
    wide = x.astype("f4")
    for name in ORACLE:
        found = ds.query(f"SELECT {name}(x) AS found FROM dataset")["found"][:]
        np.testing.assert_allclose(found, [ORACLE[name](row) for row in wide], rtol=1e-6)
    far = ds.query(
        "SELECT max(x[3]) AS most, max(l2_distance(x, [0, 0, 0, 0])) AS far FROM dataset"
    )
    assert far["most"][0] == wide[2, 3]
    assert far["far"][0] == pytest.approx(np.linalg.norm(wide[2]))
    assert len(ds.query("SELECT * FROM dataset WHERE mean(x) > 5 ORDER BY x[0]")) == 2


def test_all_inside_of_other_functions(tmp_path):
    x = np.array([[[1, 1], [0, 1]], [[0, 1], [1, 0]], [[1, 1], [1, 1]]], "i1")
    ds = tl.dataset(str(tmp_path), {"x": tl.types.Tensor("int8", (2, 2)), "k": "int32"})
    ds.extend({"x": x, "k": [0, 0, 1]})
    view = ds.query(
        "SELECT any(all(x > 0, 1)) AS a, array_sum(all(x, 0)) AS n, coalesce(FALSE, all(x)) AS f FROM dataset"
    )
    assert view["a"].tolist() == [True, False, True]
    assert view["n"].tolist() == [1, 0, 2]
    assert view["f"].tolist() == [False] * 3
    counts = ds.query(
        "SELECT k, count_if(all(x)) AS n, bool_or(all(x)) AS o FROM dataset GROUP BY k ORDER BY k"
    )
    assert (counts["n"].tolist(), counts["o"].tolist()) == ([0, 1], [False, True])
