"""Tensors, embeddings and clouds of points."""

import hypothesis
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import Embedding, PointCloud, Tensor, Tiled, Type

DTYPES = [
    "bool",
    "int8",
    "uint16",
    "int64",
    "float16",
    "float32",
    "complex64",
    "datetime64[ns]",
    "bfloat16",
]


def same(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == np.ascontiguousarray(wanted).tobytes()


@hypothesis.given(
    st.lists(
        st.none() | hnp.arrays("float32", hnp.array_shapes(min_dims=0, max_dims=4, min_side=0)),
        max_size=6,
    ),
    st.integers(0, 3),
)
def test_ragged_arrays_come_back_bit_by_bit(arrays, start):
    kind = Tensor("float32")
    column = kind.encode(arrays, "x")
    column.validate(full=True)
    assert column.type == kind.storage()
    for found, wanted in zip(kind.decode(column.slice(start)), arrays[start:], strict=True):
        if wanted is None:
            assert found is None
        else:
            same(found, wanted)
            assert found.flags.writeable


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_come_back(dtype):
    kind = Tensor(dtype, (None, 3))
    array = np.arange(6).reshape(2, 3).astype(getattr(ml_dtypes, dtype, dtype))
    column = kind.encode([array, None, array[:0], array[::-1]], "x")
    found = kind.decode(column)
    same(found[0], array)
    assert found[1] is None
    same(found[2], array[:0])
    same(found[3], array[::-1])
    again = kind.encode(column, "x")
    assert again == column
    assert Type.from_json(kind.to_json()) == kind


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 0)])
def test_fixed_shapes_are_one_array_both_ways(shape):
    kind = Tensor("int16", shape)
    array = np.arange(5 * int(np.prod(shape))).reshape(5, *shape).astype("int16")
    for given in (array, list(array), array.astype(">i2"), array.astype("int8")):
        column = kind.encode(given, "x")
        column.validate(full=True)
        same(kind.stack(column), array)
        same(kind.stack(column.slice(2)), array[2:])
        for found, wanted in zip(kind.decode(column), array, strict=True):
            same(found, wanted)
    assert kind.encode(array, "x") == kind.encode(list(array), "x")
    assert kind.stack(kind.encode([], "x")).shape == (0, *shape)


def test_fixed_size_lists_of_arrow_are_taken():
    array = np.arange(6, dtype="float32")
    column = pa.FixedSizeListArray.from_arrays(pa.array(array), 3)
    same(
        Tensor("float32", (3,)).stack(Tensor("float32", (3,)).encode(column, "x")),
        array.reshape(2, 3),
    )
    lists = pa.array([[1.0, 2.0], None, []])
    assert [
        None if a is None else a.tolist()
        for a in Tensor("float32", (None,)).decode(Tensor("float32", (None,)).encode(lists, "x"))
    ] == [[1, 2], None, []]
    cube = pa.FixedShapeTensorArray.from_numpy_ndarray(
        np.arange(12, dtype="float32").reshape(2, 2, 3)
    )
    assert Tensor("float32", (2, 3)).encode(cube, "x") == Tensor("float32", (2, 3)).encode(
        np.arange(12, dtype="float32").reshape(2, 2, 3), "x"
    )


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (Tensor("float32", (None, 3)), np.zeros((2, 4), "f4"), "expected shape (None, 3) (None: any length), got shape (2, 4)"),
        (Tensor("float32", (None, 3)), np.zeros(3, "f4"), "it has 1 axis, not 2"),
        (Tensor("float32"), np.zeros(3), "expected dtype float32, got float64 of shape (3,); cast it with astype"),
        (Tensor("int8"), [300], "dtype int8"),
        (Tensor("int8"), [1.5], "dtype int8"),
        (Tensor("uint8"), [-1], "dtype uint8"),
        (Tensor("uint64"), [-1], "dtype uint64"),
        (Tensor("float32"), [[1, 2], [3]], "an array of float32"),
        (Tensor("float32"), "text", "an array of float32"),
        (Tensor("float32"), {"a": 1}, "an array of float32"),
        (Tensor("float32"), [True, False][:1] and np.array(["a"]), "dtype float32"),
        (Tensor("int64"), np.ma.array([1, 2], mask=[0, 1]), "masked"),
        (Tensor("float32", (3,)), Tiled((4,), "float32"), "of shape (4,)"),
        (PointCloud(), np.zeros((5, 2)), "shape (None, 3)"),
        (Embedding(3), np.zeros(2), "shape (3,)"),
        (Embedding(3), ["a", "b", "c"], "dtype float32"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_named(kind, value, says):
    with pytest.raises(tl.InvalidSampleError) as error:
        kind.encode([None, value], "x", first=5)
    assert "column 'x', sample 6: expected " in str(error.value)
    assert says in str(error.value)


def test_a_whole_array_that_does_not_fit_is_refused():
    with pytest.raises(tl.InvalidSampleError, match="got shape"):
        Tensor("float32", (3,)).encode(np.zeros((5, 4), "f4"), "x")
    with pytest.raises(tl.InvalidSampleTypeError, match="float64"):
        Tensor("float32", (4,)).encode(np.zeros((5, 4)), "x")


@pytest.mark.parametrize("length", [0, 3, 5])
def test_lists_of_arrow_of_another_length_are_refused(length):
    column = pa.array([[0.5] * length], pa.list_(pa.float32(), length))
    with pytest.raises(
        tl.InvalidSampleError, match=rf"column 'x', sample 0: .* got shape \({length},\)"
    ):
        Embedding(2).encode(column, "x")


def test_tiled_samples_have_a_shape_and_no_data():
    kind = Tensor("int16", (None, None))
    given = [np.ones((1, 2), "i2"), Tiled((100, 200), "int16"), None]
    column = kind.encode(given, "x")
    assert column[1].as_py() == {"dtype": "int16", "shape": [100, 200], "data": None}
    assert column.null_count == 1
    found = kind.decode(column)
    assert found[1:] == given[1:]
    same(found[0], given[0])


def test_changed_tables_are_found():
    kind = Tensor("int16", (2,))
    for row in (
        {"dtype": "int16", "shape": [2], "data": b"123"},
        {"dtype": "int16", "shape": [3], "data": b"1234"},
        {"dtype": "int16", "shape": [-1, -2], "data": b"1234"},
        {"dtype": "int16", "shape": [None, 2], "data": b"1234"},
        {"dtype": "int32", "shape": [1], "data": b"1234"},
        {"dtype": "int16", "shape": None, "data": b"1234"},
        {"dtype": None, "shape": [2], "data": b"1234"},
    ):
        good = {"dtype": "int16", "shape": [2], "data": b"abcd"}
        column = pa.array([good, row, None], kind.storage())
        with pytest.raises((tl.CorruptDataError, tl.InvalidSampleError)):
            kind.decode(column)
        with pytest.raises(tl.CorruptDataError):
            kind.stack(column.slice(0, 2))
    with pytest.raises(tl.CorruptDataError, match="no field"):
        kind.decode(pa.array([{"x": 1}]))


# ------------------------------------------------------------------ embeddings

VECTORS = np.random.default_rng(0).normal(size=(50, 16)).astype("f4")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    ("quantize", "bound"),
    [
        (None, 0),
        ("float16", 1e-3),
        ("bfloat16", 8e-3),
        ("float8_e4m3fn", 7e-2),
        ("float8_e5m2", 0.15),
        ("int8", 5e-2),
    ],
)
def test_embeddings_come_back_within_the_bound(dtype, quantize, bound):
    kind = Embedding(16, dtype, quantize)
    vectors = VECTORS.astype(getattr(ml_dtypes, dtype, dtype))
    column = kind.encode(vectors, "e")
    column.validate(full=True)
    assert column.type == kind.storage()
    found = kind.stack(column)
    assert found.dtype == vectors.dtype
    off = np.abs(found.astype(float) - vectors.astype(float))
    size = np.abs(vectors.astype(float))
    coarse = 4e-3 if dtype == "bfloat16" else 0.0  # it rounds once more
    assert (off <= np.maximum(size * (bound + coarse), 0 if quantize is None else 2e-2)).all()
    mixed = kind.encode([vectors[0], None, vectors[1].tolist()], "e")
    there = kind.decode(mixed)
    assert there[1] is None
    same(np.stack([there[0], there[2]]), found[:2])
    assert Type.from_json(kind.to_json()) == kind
    assert kind.encode(mixed, "e").null_count == 1


@pytest.mark.parametrize(("quantize", "size"), [(None, 64), ("float16", 32), ("int8", 16)])
def test_quantised_embeddings_take_fewer_bytes(quantize, size):
    column = Embedding(16, quantize=quantize).encode(VECTORS, "e")
    assert len(column[0]["data"].as_py()) == size
    native = Embedding(16, quantize=quantize).decode(column, native=True)[0]
    assert native.nbytes == size


@pytest.mark.parametrize(
    ("quantize", "value"), [("float16", 1e6), ("int8", np.nan), ("int8", np.inf)]
)
def test_numbers_that_the_quantisation_does_not_hold_are_refused(quantize, value):
    with pytest.raises(tl.InvalidSampleError, match=r"sample 2: .* at \[1\]; leave quantize out"):
        Embedding(2, quantize=quantize).encode([[1, 2], None, [0, value]], "e")


@pytest.mark.parametrize("scale", [None, np.nan, np.inf, -1.0])
def test_a_vector_whose_scale_is_damaged_is_not_read_as_numbers(scale):
    kind = Embedding(2, quantize="int8")
    column = kind.encode([[1, 2], None, [3, 4]], "e")
    scales = pa.array([1.0, None, scale], pa.float32())
    damaged = pa.StructArray.from_arrays(
        [*column.flatten()[:3], scales], fields=[*column.type], mask=column.is_null()
    )
    with pytest.raises(tl.CorruptDataError, match=r"a sample has the scale .* of at least 0; its"):
        kind.decode(damaged)
    assert kind.decode(damaged, native=True)[0].tolist() == [64, 127]


def test_points_are_rounded_to_the_dtype():
    kind = PointCloud(["x", "y", "z", "intensity"])
    array = np.random.default_rng(0).random((7, 4))
    same(kind.decode(kind.encode([array], "x"))[0], array.astype("f4"))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Tensor, ("object",)), (Tensor, ("float32", 3)), (Tensor, ("float32", (-1,))), (Tensor, ("float32", (1.5,))),
        (Tensor, ("float32", (True,))), (Tensor, ("float32", (1,) * 33)), (Embedding, (0,)), (Embedding, (3, "int8")),
        (Embedding, (3, "float32", "int4")), (PointCloud, (["x", "x"],)), (PointCloud, ([],)), (Embedding, ("3",)),
    ],
)  # fmt: skip
def test_options_are_checked(kind, arguments):
    with pytest.raises(tl.InvalidOptionError):
        kind(*arguments)


@pytest.mark.parametrize("values", [[[1, 2]], [[1, 2], None]])
def test_vectors_in_views_of_files_are_decoded(values):
    kind = Embedding(2, quantize="float16")
    column = kind.encode(values, "x")
    fields = [pa.field(f.name, pa.binary_view()) if f.name == "data" else f for f in column.type]
    found = kind.decode(column.cast(pa.struct(fields)))
    assert [None if v is None else v.tolist() for v in found] == values


@pytest.mark.filterwarnings("ignore:.*masked element")  # of NumPy
def test_what_is_masked_is_no_number():
    masked = np.ma.array([[1.0, 2], [3, 4]], mask=[[1, 0], [0, 0]])
    for value in (masked, [*masked], [np.ma.masked, 1.0], [[1.0, np.ma.masked]]):
        for kind in (Tensor("float32"), Embedding(2)):
            with pytest.raises(tl.InvalidSampleTypeError, match="masked"):
                kind.encode([value], "x")
    whole = np.ma.array([1.0, 2], mask=False)
    assert Embedding(2).encode([whole, [np.nan, 1]], "x").null_count == 0
    column = Tensor("int64").encode(np.ma.array([[1, 2], [3, 4]], mask=[[1, 1], [0, 0]]), "x")
    assert column.is_valid().to_pylist() == [False, True]


def test_scalars_of_arrow_are_what_they_hold():
    with pytest.raises(tl.InvalidSampleTypeError):
        Embedding(3).encode([pa.scalar("cat")], "x")
    three = pa.scalar([1.0, 2, 3])
    assert Embedding(3).decode(Embedding(3).encode([three], "x"))[0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("value", [[1, 2**64 - 1], [[0], [2**63]], (np.uint64(2**63), np.int64(5))])
def test_lists_of_small_and_largest_whole_numbers_are_taken_as_they_are(value):
    kind = Tensor("uint64")
    (found,) = kind.decode(kind.encode([value], "x"))
    assert found.dtype == np.uint64
    assert found.tolist() == np.array(value, object).tolist()
    with pytest.raises(tl.InvalidSampleTypeError, match="expected dtype uint64, got float64"):
        kind.encode([[1.5, 2**63]], "x")
    with pytest.raises(tl.InvalidSampleTypeError, match="expected dtype uint64, got float64"):
        kind.encode([[-1, 2**63]], "x")


def test_complex_numbers_are_refused_without_a_warning():
    with pytest.raises(tl.InvalidSampleTypeError, match="complex128"):
        Embedding(2).encode([np.array([1j, 2])], "x")


def test_lists_beyond_a_dtype_are_not_told_to_cast_which_would_change_them():
    for given in ([1, 300], (1, 300), [[-129]]):
        with pytest.raises(
            tl.InvalidSampleError,
            match=r"expected dtype int8, got numbers from .*; declare a wider dtype",
        ):
            Tensor("int8").encode([given], "x")
    with pytest.raises(tl.InvalidSampleTypeError, match=r"give an array, or the path of a \.npy"):
        Tensor("int8").encode(["a.npz"], "x")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Embedding(2), [1, 1e39]),
        (tl.types.BoundingBox(), [[0, 0, 1e39, 1]]),
        (tl.types.Polygon(), [[0, 0, 1e39, 0, 1, 1]]),
        (Tensor("bfloat16", (None,)), [1e39]),
    ],
)
def test_numbers_that_a_dtype_does_not_hold_are_told_with_their_sample(kind, value):
    small = (np.asarray(value) * 0).tolist()
    given = [[small, small, value]]
    if kind != Tensor("bfloat16", (None,)):  # which takes no other dtype as an array
        given.append(np.array(given[0]))
    for values in given:
        with pytest.raises(
            tl.InvalidSampleError, match=r"sample 12: expected numbers that .* with 1e\+39; declare"
        ):
            kind.encode(values, "x", first=10)


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_an_array_of_another_dtype_is_told_with_the_shape_of_a_sample(shape):
    # It was told with that of all samples.
    with pytest.raises(tl.InvalidSampleError) as error:
        Tensor("float32", shape).encode(np.zeros((4, *shape), "M8[s]"), "x")
    assert f"sample 0: expected dtype float32, got datetime64[s] of shape {shape}" in str(
        error.value
    )
    with pytest.raises(tl.InvalidSampleError, match=r"got float64 of shape \(2,\); cast it"):
        Tensor("float32", (2,)).encode(np.zeros((4, 2)), "x")
