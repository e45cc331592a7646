"""Cells of a DataFrame that cannot be written: what the error says, and that the lake is as it was."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from examples import mostly
from writing import write_here

import tensorlake_spark as tl
from tensorlake_spark.spark.cluster.task_errors import plain_errors
from tensorlake_spark.spark.source.cell_columns import coordinates_of, values_of

CELLS = "i0 int, i1 int, value double"
DENSE = np.arange(12.0).reshape(3, 4) + 1
WHOLE = "i0 int, i1 int, value int"


def decimals(*values):
    """A column of the type that Spark has for uint64."""
    return pa.array([Decimal(n) for n in values], pa.decimal128(20, 0))


def one(dtype):
    """A sparse tensor with the one element (1, 1)."""
    return tl.SparseTensor(np.array([[1], [1]]), np.array([7]).astype(dtype), (3, 4))


@pytest.fixture(scope="module")
def stored(new_place):
    """Where a lake lies with a sparse tensor of each of some dtypes, and a dense one."""
    path = new_place()
    lake = tl.open(path)
    for dtype in ("int8", "float64", "datetime64[s]"):
        lake.write(dtype, one(dtype))
    lake.write("dense", DENSE, layout="ftsf")
    return path


def save_by_spark(spark, place, rows, schema, tensor, options):
    """Append cells of one task, and raise our own error where Spark wrapped it."""
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    with plain_errors():
        frame.write.format("tensor").mode("append").options(id=tensor, **options).save(place)


def save_here(spark, place, rows, schema, tensor, options):
    """Do the same with no task of Spark between."""
    write_here(rows, schema, {"path": place, "id": tensor, **options})


CASES = [
    ([(0, 0, 1.0), (0, None, 2.0)], CELLS, "x", {}, ["1 coordinates in column 'i1' are null", "df.dropna(subset=['i1'])"]),
    ([(0, 0, 1.0), (0, 1, None)], CELLS, "x", {}, ["1 values in column 'value' are null", "df.dropna(subset=['value'])"]),
    ([(0.5, 0, 1.0)], "i0 double, i1 int, value double", "x", {}, ["column 'i0' is double", "df['i0'].cast('long')"]),
    ([(0, Decimal("0.5"), 1.0)], "i0 int, i1 decimal(9,1), value double", "x", {}, ["column 'i1' is decimal(9,1)", "cast('long')"]),
    ([(0, 0, "a")], "i0 int, i1 int, value string", "x", {}, ["column 'value' is string", "cast it to one of boolean"]),
    ([(0, 0, 300)], WHOLE, "int8", {}, ["value 300 in column 'value' is no int8", "holds -128 to 127", "option('dtype'"]),
    ([(0, 0, 1.5)], CELLS, "int8", {}, ["value 1.5 in column 'value' is no int8", "cast the column"]),
    ([(0, 0, 1.0)], "day int, place int, value double", "x", {}, ["nothing says which are axes", "option('axes', 'day,place')"]),
    ([(0, 0, 1.0, 2)], CELLS + ", z int", "x", {"axes": "i0,i1"}, ["a column too many, 'z'", "df.drop('z')"]),
    ([(0, 0, 1.0)], "i0 int, value int, value double", "x", {}, ["a column too many, 'value'", "name each of them once"]),
    ([(0, 1.0)], "i0 int, value double", "float64", {}, ["no column 'i1'", "have i0, i1, value, and it has i0, value"]),
    ([(1.0,)], "value double", "x", {}, ["values but no coordinates", "option('axes', ...)"]),
    ([(0, 0, 1.0)], CELLS, "x", {"layout": "ftsf"}, ["layout ftsf holds arrays", "bsgs, coo, csr, csc or csf"]),
    ([(0, 0, 1.0)], CELLS, "x", {"chunkRank": "1"}, ["layout bsgs has no chunk_rank"]),
    ([(0, 0, 1.0)], CELLS, "dense", {}, ["tensor 'dense' is dense (layout ftsf)", "mode('overwrite')"]),
    ([], CELLS, "x", {}, ["tensor 'x' would have no cell and no shape", "option('shape', 'n0,n1,...')"]),
    ([(0, -1, 1.0)], CELLS, "x", {}, ["coordinate -1 in column 'i1' is below 0", "df.where(df['i1'] >= 0)"]),
    ([(0, 5, 1.0)], CELLS, "x", {"shape": "3,4"}, ["coordinate 5 in column 'i1' is out of bounds for axis 1 with size 4", "a longer option('shape'"]),
    ([(0, 0, 1)], WHOLE, "int8", {"dtype": "int16"}, ["tensor 'int8' has dtype int8", "leave out the option dtype='int16'"]),
    ([(0, 0, 1.0)], CELLS, "float64", {"shape": "3,4,5"}, ["(3, 4, 5) has 3 axes, tensor 'float64' has 2"]),
    ([(0, 2, 1.0), (2, 0, 5.0), (0, 2, 3.0)], CELLS, "x", {}, ["the first of them (0, 2)", "duplicates='sum'"]),
    ([(1, 1, 1.0)], CELLS, "float64", {}, ["cell (1, 1) of tensor 'float64'", "or is stored already", "option('duplicates', 'sum')"]),
    ([(1, 1, 1)], WHOLE, "datetime64[s]", {"duplicates": "sum"}, ["datetime64[s] have no sum", "duplicates='last'"]),
]  # fmt: skip
# Found before anything runs, by a task, and when all is brought together.
BY_SPARK = [
    case
    for case in CASES
    if case[-1][0].startswith(("1 coordinates", "column 'i0' is", "cell (1, 1)"))
]


@pytest.mark.parametrize(
    ("save", "rows", "schema", "tensor", "options", "says"),
    [
        *((save_here, *case) for case in CASES),
        *mostly(
            [(save_by_spark, *case) for case in CASES],
            [(save_by_spark, *case) for case in BY_SPARK],
        ),
    ],
)
def test_bad_cells_say_so_and_write_nothing(
    spark, stored, save, rows, schema, tensor, options, says
):
    before = tl.open(stored)
    with pytest.raises(tl.TensorLakeError) as told:
        save(spark, stored, rows, schema, tensor, options)
    for text in says:
        assert text in str(told.value)
    after = tl.open(stored)
    assert (after.version, list(after)) == (before.version, list(before))
    for name in after:
        got = after[name][...]
        assert np.array_equal(got, DENSE) if name == "dense" else got.equals(one(name))
    assert not after.check().findings, "no orphan is left"


def test_a_coordinate_that_no_tensor_has():
    batch = pa.record_batch({"i0": [0, 2**63 - 1]})
    says = rf"coordinate {2**63 - 1} in column 'i0' is beyond .* fewer than 2\*\*63 elements"
    with pytest.raises(tl.InvalidTensorError, match=says):
        coordinates_of(batch, ["i0"], None)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("column", "dtype", "says"),
    [
        (pa.array([1.0, np.nan]), "int8", ["value nan in column 'value' is no int8, the dtype", "holds -128 to 127"]),
        (pa.array([1.0, 1e300]), "float32", ["value 1e+300 in column 'value' is no float32", "option('dtype', ...)"]),
        (pa.array([1.0, 2.0]), "datetime64[s]", ["value 1.0 in column 'value' is no datetime64[s]", "cast the column"]),
        (pa.array([2**53 + 1]), "float64", [f"value {2**53 + 1} in column 'value' is no float64", "cast the column"]),
        (pa.array([{"re": 1.0, "im": 2.0}]), "float64", ["value (1+2j) in column 'value' is no float64", "cast the column"]),
        (pa.array([{"re": 1.0, "im": None}]), "complex64", ["column 'value' has a part that is null", "df.where('value.re"]),
        (decimals(3, -5), "uint64", ["value -5 in column 'value' is no uint64", "decimal(20)", "cast the column to bigint"]),
        (decimals(3, 2**64), "int8", [f"value {2**64} in column 'value' is no uint64", "cast the column"]),
    ],
)  # fmt: skip
def test_values_that_a_dtype_does_not_hold(column, dtype, says):
    with pytest.raises(tl.InvalidTensorError) as told:
        values_of(column, np.dtype(dtype))
    for text in says:
        assert text in str(told.value)


@pytest.mark.filterwarnings("error")
def test_real_numbers_become_complex_ones_and_back():
    """NumPy's warning of its cast was printed by each task."""
    assert values_of(pa.array([1.5, -0.0]), np.dtype("complex64")).tolist() == [1.5, 0]
    column = pa.array([{"re": 1.5, "im": 0.0}])
    assert values_of(column, np.dtype("float32")).tolist() == [1.5]


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (pa.array([-1], pa.int8()), "uint8"),
        (pa.array([-1], pa.int8()), "uint64"),
        (pa.array([-1], pa.int64()), "uint64"),
        (decimals(2**63), "int64"),
    ],
)
def test_no_integer_changes_its_sign(column, dtype):
    with pytest.raises(tl.InvalidTensorError, match=f"in column 'value' is no {dtype}"):
        values_of(column, np.dtype(dtype))
