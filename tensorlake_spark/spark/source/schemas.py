"""What Spark sees: the struct TENSOR, the schema of every view, and arrays as their rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type

from tensorlake_spark.errors import InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.indexing import Points, Selection
from tensorlake_spark.tensor.spec import TensorSpec, dtype_name, dtype_of, native
from tensorlake_spark.writing.source import native_dtype

Array = np.ndarray[Any, Any]

_LONGS = t.ArrayType(t.LongType())

SPARK_TYPES: dict[pa.DataType, t.DataType] = {
    pa.bool_(): t.BooleanType(),
    pa.int8(): t.ByteType(),
    pa.int16(): t.ShortType(),
    pa.int32(): t.IntegerType(),
    pa.int64(): t.LongType(),
    pa.uint8(): t.ShortType(),
    pa.uint16(): t.IntegerType(),
    pa.uint32(): t.LongType(),
    pa.uint64(): t.DecimalType(20, 0),
    pa.float32(): t.FloatType(),
    pa.float64(): t.DoubleType(),
    pa.date32(): t.DateType(),
}
"""Spark's types for numbers and dates of Arrow: the narrowest that hold all values."""

TENSOR = t.StructType(
    [
        t.StructField("dtype", t.StringType()),
        t.StructField("shape", _LONGS),
        t.StructField("data", t.BinaryType()),
    ]
)
"""A tensor as a value of Spark: NumPy name of the dtype, shape, little-endian elements in C order."""

SLABS = t.StructType([t.StructField("lo", _LONGS), t.StructField("tensor", TENSOR)])
"""A part of a tensor in a row, with its lower corner."""

BLOCKS = t.StructType(
    [
        t.StructField("id", t.StringType()),
        t.StructField("lo", _LONGS),
        t.StructField("offset", _LONGS),
        t.StructField("tensor", TENSOR),
    ]
)

CATALOG = t.StructType(
    [
        t.StructField("id", t.StringType()),
        t.StructField("shape", _LONGS),
        t.StructField("dtype", t.StringType()),
        t.StructField("layout", t.StringType()),
        t.StructField("block_shape", _LONGS),
        t.StructField("codec", t.StringType()),
        t.StructField("axes", t.ArrayType(t.StringType())),
        t.StructField("nnz", t.LongType()),
        t.StructField("nbytes", t.LongType()),
        t.StructField("stored_bytes", t.LongType()),
        t.StructField("rows", t.LongType()),
        t.StructField("attrs", t.StringType()),
    ]
)

_VALUE_TYPES: dict[str, t.DataType] = {
    "bool": t.BooleanType(),
    "int8": t.ByteType(),
    "int16": t.ShortType(),
    "int32": t.IntegerType(),
    "int64": t.LongType(),
    "uint8": t.ShortType(),
    "uint16": t.IntegerType(),
    "uint32": t.LongType(),
    "uint64": t.DecimalType(20, 0),
    "float16": t.FloatType(),
    "float32": t.FloatType(),
    "float64": t.DoubleType(),
}


def value_type(dtype: np.dtype[Any]) -> t.DataType:
    """Return the Spark type of an element: the narrowest that holds all of its values.

    Spark has no unsigned integers, so ``uint8`` becomes a short and ``uint64`` a decimal; a complex
    number becomes a struct of two doubles, ``datetime64`` and ``timedelta64`` the number of their
    units as a long, and the small floats of ml_dtypes a float.

    Examples
    --------
    >>> value_type(np.dtype("uint8"))
    ShortType()
    """
    if dtype.kind == "c":
        return t.StructType(
            [t.StructField("re", t.DoubleType()), t.StructField("im", t.DoubleType())]
        )
    if dtype.kind in "mM":
        return t.LongType()
    return _VALUE_TYPES.get(dtype.name, t.FloatType())


def cell_schema(spec: TensorSpec) -> t.StructType:
    """Return the schema of the view ``cells``: a coordinate for every axis, and the value.

    Examples
    --------
    >>> cell_schema(TensorSpec("x", (2,), np.dtype("int8"), "ftsf", (2,))).names
    ['i0', 'value']
    """
    names = spec.axes or tuple(f"i{k}" for k in range(spec.ndim))
    fields = [t.StructField(name, t.LongType()) for name in names]
    return t.StructType([*fields, t.StructField("value", value_type(spec.dtype))])


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of `schema` with just its types: Spark compares the first batch to the letter."""
    columns = [batch.column(f.name).cast(f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def arrow_schema(schema: t.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects for a schema of its own.

    Raises
    ------
    UnsupportedDtypeError
        If Spark does not hand over a type, such as intervals of months, in Arrow.
    """
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except PySparkTypeError:
        for field in schema:
            arrow_type(field.dataType, f"column {field.name!r}")
        raise


def arrow_type(kind: t.DataType, of: str = "a column") -> pa.DataType:
    """Return the Arrow type in which Spark has a type of its own, which a column is of.

    Raises
    ------
    UnsupportedDtypeError
        If Spark does not hand over the type in Arrow.

    Examples
    --------
    >>> arrow_type(BLOCKS) == pa.struct(list(arrow_schema(BLOCKS)))
    True
    """
    try:
        return to_arrow_type(kind, timezone="UTC")
    except PySparkTypeError as error:
        raise UnsupportedDtypeError(
            f"{of} has the type {kind.simpleString()}, which Spark does not hand over in Arrow; cast it to a type of "
            "numbers, or leave it out"
        ) from error


def _binary(parts: Sequence[Array]) -> pa.Array:
    """Return arrays as one binary column: one copy, straight into Arrow's buffer."""
    ends = np.cumsum([0, *(p.nbytes for p in parts)]).astype(np.int32)
    data = np.empty(int(ends[-1]), np.uint8)
    for part, start, stop in zip(parts, ends, ends[1:], strict=False):
        if stop > start:
            data[start:stop].view(part.dtype).reshape(part.shape)[...] = part
    return pa.Array.from_buffers(
        pa.binary(), len(parts), [None, pa.py_buffer(ends), pa.py_buffer(data)]
    )


def tensor_column(parts: Sequence[Array]) -> pa.StructArray:
    """Return arrays, in native byte order, as a column of type `TENSOR`."""
    return pa.StructArray.from_arrays(
        [
            pa.array([dtype_name(p.dtype) for p in parts], pa.string()),
            pa.array([p.shape for p in parts], pa.list_(pa.int64())),
            _binary(parts),
        ],
        names=["dtype", "shape", "data"],
    )


def stack_column(stack: Array) -> pa.StructArray:
    """Return the arrays along the first axis of one array as a column of type `TENSOR`, without a copy.

    Examples
    --------
    >>> stack_column(np.ones((2, 3), "f4"))[1]["shape"]
    <pyarrow.ListScalar: [3]>
    """
    count, shape = len(stack), stack.shape[1:]
    flat = np.ascontiguousarray(stack).reshape(-1).view(np.uint8)
    ends, marks = (
        np.arange(count + 1, dtype=np.int32) * n for n in (flat.size // max(1, count), len(shape))
    )
    lengths = pa.array(np.tile(np.array(shape, np.int64), count))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(flat)]
    return pa.StructArray.from_arrays(
        [
            pa.repeat(dtype_name(stack.dtype), count),
            pa.ListArray.from_arrays(pa.array(marks), lengths),
            pa.Array.from_buffers(pa.binary(), count, buffers),
        ],
        names=["dtype", "shape", "data"],
    )


class TensorColumn:
    """A column of type `TENSOR` as arrays.

    Parameters
    ----------
    column : pyarrow.StructArray
        With the fields of `TENSOR`, and perhaps others.

    Attributes
    ----------
    valid : bool ndarray
        Which rows are not null.
    kinds : list of (str, tuple of int)
        Dtype and shape of every row; None for what is null.

    Raises
    ------
    InvalidTensorError
        If a field is missing.
    """

    def __init__(self, column: pa.StructArray) -> None:
        fields = [field.name for field in column.type]
        if not set(TENSOR.names) <= set(fields):
            raise InvalidTensorError(
                f"a struct of {', '.join(fields)} is no tensor; a tensor is a struct of "
                f"{', '.join(TENSOR.names)}"
            )
        names, shapes, data = (column.flatten()[fields.index(name)] for name in TENSOR.names)
        self.valid: Array = column.is_valid().to_numpy(zero_copy_only=False)
        self.kinds = [
            (name, None if shape is None else tuple(shape))
            for name, shape in zip(names.to_pylist(), shapes.to_pylist(), strict=True)
        ]
        data = data.cast(pa.large_binary())
        self._raw = np.frombuffer(data.buffers()[2] or b"", np.uint8)
        ends = np.frombuffer(data.buffers()[1] or b"", np.int64)
        self._ends = ends[data.offset : data.offset + len(data) + 1]
        self._given: Array = data.is_valid().to_numpy(zero_copy_only=False)

    def stack(self, numbers: Array) -> Array:
        """Return rows of one dtype and shape as one array with a first axis more; a view where they adjoin.

        Raises
        ------
        InvalidTensorError
            If a field of a row is null, or the bytes do not fit dtype and shape.
        """
        first, ends = int(numbers[0]), self._ends
        name, shape = self.kinds[first]
        if name is None or shape is None or None in shape or not self._given[numbers].all():
            raise InvalidTensorError(f"row {first} of the batch has a null dtype, shape or data")
        dtype = dtype_of(name)
        size = math.prod(shape) * dtype.itemsize
        sizes = ends[numbers + 1] - ends[numbers]
        if min(shape, default=0) < 0 or (sizes != size).any():
            wrong = int(numbers[np.argmax(sizes != size)])
            raise InvalidTensorError(
                f"row {wrong} of the batch has {int(ends[wrong + 1] - ends[wrong])} bytes of data; shape "
                f"{shape} and dtype {name} need {size}"
            )
        start, stop = int(ends[first]), int(ends[numbers[-1] + 1])
        if stop - start == size * len(numbers):  # one after the other: no copy
            flat = self._raw[start:stop]
        else:
            flat = np.concatenate([self._raw[ends[i] : ends[i + 1]] for i in numbers.tolist()])
        stack = native(flat.view(dtype.newbyteorder("<"))).astype(native_dtype(dtype), copy=False)
        return stack.reshape(len(numbers), *shape)


def tensors_of(column: pa.StructArray) -> Iterator[Array]:
    """Yield the arrays of a column of type `TENSOR`.

    Raises
    ------
    InvalidTensorError
        If a part is null, or the bytes do not fit dtype and shape.
    """
    tensors = TensorColumn(column)
    for number in range(len(column)):
        yield tensors.stack(np.array([number]))[0]


def cell_batches(
    block: Array, lo: Sequence[int], selection: Selection, schema: t.StructType, rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the elements of a block as rows of the view ``cells``, `rows` at a time.

    Parameters
    ----------
    block : ndarray
        All axes kept.
    lo : sequence of int
        Coordinates of its first element in the tensor.
    selection : Selection
        Says the step of every axis.
    schema : StructType
        Of the view.
    rows : int
        Rows of a batch at the most.
    """
    steps = [getattr(axis, "step", 1) for axis in selection.axes]
    flat = block.reshape(-1)
    arrow = arrow_schema(schema)
    for start in range(0, flat.size, rows):
        numbers = np.arange(start, min(start + rows, flat.size))
        index = np.unravel_index(numbers, block.shape) if block.ndim else ()
        columns = [pa.array(i * s + a) for i, s, a in zip(index, steps, lo, strict=True)]
        columns.append(_values(flat[start : start + rows], arrow.field("value").type))
        yield pa.RecordBatch.from_arrays(columns, names=schema.names)


def coordinate_batch(
    places: Array, values: Array, selection: Selection, spec: TensorSpec
) -> pa.RecordBatch:
    """Return stored elements as rows of the view ``cells``.

    Parameters
    ----------
    places : int64 ndarray, shape (ndim, n)
        In the selection's storage shape.
    values : ndarray, shape (n,)
    selection : Selection
        The slice.
    spec : TensorSpec
        The tensor.
    """
    schema = cell_schema(spec)
    columns = []
    for axis, place in zip(selection.axes, places, strict=True):
        if isinstance(axis, Points):
            place = axis.indices[place]
        elif axis.step != 1 or axis.start:
            place = place * axis.step + axis.start
        columns.append(pa.array(place))
    columns.append(_values(values, arrow_schema(schema).field("value").type))
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def _values(values: Array, kind: pa.DataType) -> pa.Array:
    if values.dtype.kind == "c":
        return pa.StructArray.from_arrays(
            [pa.array(values.real.astype(np.float64)), pa.array(values.imag.astype(np.float64))],
            names=["re", "im"],
        )
    if values.dtype.kind in "mM":
        return pa.array(values.view(np.int64))
    if values.dtype.name not in _VALUE_TYPES or values.dtype == np.float16:
        values = values.astype(
            np.float32
        )  # the small floats of ml_dtypes; one claims NumPy's own kind
    return pa.array(values).cast(kind)
