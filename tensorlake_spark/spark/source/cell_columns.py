"""The columns of a DataFrame of cells: which are coordinates, and their values as NumPy has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from tensorlake_spark.errors import InvalidTensorError, UnsupportedDtypeError, did_you_mean
from tensorlake_spark.spark.source.schemas import value_type
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]

_NUMBERED = re.compile(r"i\d+")
_MOST = np.iinfo(np.int64).max
_LONGS, _TWENTY = 18, 20  # digits that int64 and uint64 hold
_COMPLEX = value_type(np.dtype(np.complex128)).simpleString()

_DTYPES: dict[str, str] = {
    "boolean": "bool", "tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64",
    "float": "float32", "double": "float64", _COMPLEX: "complex128",
}  # fmt: skip


def quoted(name: str) -> str:
    """Return the name of a column as Spark takes it literally.

    Examples
    --------
    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def has_cells(schema: t.StructType, options: SparkWriteOptions) -> bool:
    """Return whether a DataFrame is meant as cells: it has values, or a coordinate of one of their names."""
    coordinates = {name for name in schema.names if _NUMBERED.fullmatch(name)}
    return "value" in schema.names or bool(
        coordinates | ({*(options.write.axes or ())} & {*schema.names})
    )


def coordinate_columns(
    schema: t.StructType, options: SparkWriteOptions, old: TensorSpec | None
) -> tuple[str, ...]:
    """Return the names of the columns with the coordinates, axis by axis.

    They are the names of the axes, by the option ``axes`` or of the tensor that is there, or ``i0`` to
    ``iN`` for axes of any name.

    Raises
    ------
    InvalidTensorError
        If a column is missing or surplus, or coordinates are not integers.
    """
    have = set(schema.names) - {"value"}
    axes = tuple(options.write.axes or (old.axes if old is not None else None) or ())
    numbered = sum(1 for name in have if _NUMBERED.fullmatch(name))
    ndim = numbered
    if old is not None:
        ndim = old.ndim
    elif options.shape is not None or axes:
        ndim = len(axes if options.shape is None else options.shape)
    elif have and not numbered:
        found = [name for name in schema.names if name != "value"]
        raise InvalidTensorError(
            f"the DataFrame has the columns {', '.join(found)} and value, and nothing says which are axes, and in "
            f"what order; option('axes', '{','.join(found)}') does"
        )
    names = axes if have & set(axes) else tuple(f"i{k}" for k in range(ndim))
    given = schema.names
    for name in (*names, "value"):
        if name not in schema.names:
            near = did_you_mean(name, have - set(names))
            raise InvalidTensorError(
                f"the DataFrame has no column {name!r}{near}; cells of this tensor have "
                f"{', '.join((*names, 'value'))}, and it has {', '.join(given)}"
            )
    surplus = [name for name in schema.names if name not in (*names, "value")]
    if surplus or len(schema.names) != len(names) + 1:
        name = surplus[0] if surplus else next(n for n in given if given.count(n) > 1)
        remedy = f"df.drop({name!r}) leaves it out" if surplus else "name each of them once"
        raise InvalidTensorError(
            f"the DataFrame has a column too many, {name!r}; cells of this tensor have "
            f"{', '.join((*names, 'value'))}, and it has {', '.join(given)}: {remedy}"
        )
    if not names and ndim == 0 and old is None and options.shape is None:
        raise InvalidTensorError(
            "the DataFrame has values but no coordinates (i0, i1, ...); option('axes', ...) says how the "
            "columns of the axes are named"
        )
    for name in names:
        kind = schema[name].dataType
        whole = isinstance(kind, t.IntegralType) or (
            isinstance(kind, t.DecimalType) and kind.scale == 0 and kind.precision <= _LONGS
        )
        if not whole:
            raise InvalidTensorError(
                f"the column {name!r} is {kind.simpleString()}; coordinates are integers: make them so with "
                f"df.withColumn({name!r}, df[{name!r}].cast('long')), which cuts off fractions"
            )
    return names


def value_dtype(kind: t.DataType) -> np.dtype[Any]:
    """Return the NumPy dtype of a Spark type of numbers.

    Raises
    ------
    UnsupportedDtypeError
        If it is no type of numbers.

    Examples
    --------
    >>> value_dtype(t.ShortType())
    dtype('int16')
    """
    name = _DTYPES.get(kind.simpleString())
    if isinstance(kind, t.DecimalType) and kind.scale == 0 and kind.precision <= _TWENTY:
        name = "int64" if kind.precision <= _LONGS else "uint64"
    if name is None:
        raise UnsupportedDtypeError(
            f"the column 'value' is {kind.simpleString()}, which is not a number that a tensor holds; cast it to "
            f"one of {', '.join(_DTYPES)}"
        )
    return np.dtype(name)


def coordinates_of(
    batch: pa.RecordBatch, names: Sequence[str], shape: Sequence[int] | None
) -> Array:
    """Return the coordinates of a batch of cells.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    names : sequence of str
        Columns, axis by axis.
    shape : sequence of int, optional
        The tensor's, where it is known.

    Returns
    -------
    int64 ndarray, shape (len(names), rows)

    Raises
    ------
    InvalidTensorError
        If one is null, negative or out of bounds; names column, value, bound and remedy.
    """
    out = np.empty((len(names), batch.num_rows), np.int64)
    for k, name in enumerate(names):
        column = batch.column(name)
        if column.null_count:
            raise InvalidTensorError(
                f"{column.null_count} coordinates in column {name!r} are null; df.dropna(subset=[{name!r}]) "
                "leaves such cells out"
            )
        out[k] = column.cast(pa.int64()).to_numpy()
        least, most = int(out[k].min(initial=0)), int(out[k].max(initial=-1))
        if least < 0:
            raise InvalidTensorError(
                f"coordinate {least} in column {name!r} is below 0, from where coordinates count; "
                f"df.where(df[{name!r}] >= 0) leaves such cells out"
            )
        if shape is not None and most >= shape[k]:
            raise InvalidTensorError(
                f"coordinate {most} in column {name!r} is out of bounds for axis {k} with size {shape[k]}; give "
                "a longer option('shape', ...), or none"
            )
        if most == _MOST:
            raise InvalidTensorError(
                f"coordinate {most} in column {name!r} is beyond what a tensor of fewer than 2**63 elements has"
            )
    return out


def holds(dtype: np.dtype[Any]) -> str:
    """Return which integers a dtype holds, as the end of a sentence; nothing of other dtypes.

    Examples
    --------
    >>> holds(np.dtype(np.int8))
    ', which holds -128 to 127'
    """
    if dtype.kind not in "iu":
        return ""
    bounds = np.iinfo(dtype)
    return f", which holds {bounds.min} to {bounds.max}"


def values_of(column: pa.Array, dtype: np.dtype[Any]) -> Array:
    """Return the values of a batch of cells in the tensor's dtype.

    Raises
    ------
    InvalidTensorError
        If one is null, or the dtype does not hold it exactly.
    """
    if column.null_count:
        raise InvalidTensorError(
            f"{column.null_count} values in column 'value' are null; df.dropna(subset=['value']) leaves such "
            "cells out"
        )
    given = _numbers(column)
    if dtype.kind in "mM" and given.dtype.kind in "iu":
        return np.asarray(given.astype(np.int64).view(dtype))
    with np.errstate(all="ignore"):
        # NumPy warns where the other part of a complex number is left out; below, it is compared.
        one_part = given.dtype.kind == "c" != dtype.kind
        out = (given.real if one_part else given).astype(dtype)
        one_part = dtype.kind == "c" != given.dtype.kind
        back = (out.real if one_part else out).astype(given.dtype)
    lost = (back != given) & ~((given != given) & (back != back))
    if dtype.kind in "iu" and given.dtype.kind in "iu":  # there and back a sign may change twice
        lost |= (out < 0) != (given < 0)
    wrong = np.flatnonzero(lost)
    if len(wrong) or (dtype.kind in "mM") != (given.dtype.kind in "mM"):
        value = given[wrong[0] if len(wrong) else 0].item()
        raise InvalidTensorError(
            f"value {value!r} in column 'value' is no {dtype}, the dtype of the tensor{holds(dtype)}; cast the "
            "column, or write a new tensor with another option('dtype', ...)"
        )
    return out


def _numbers(column: pa.Array) -> Array:
    if pa.types.is_struct(column.type):
        parts = [column.field(name) for name in ("re", "im")]
        if parts[0].null_count or parts[1].null_count:
            raise InvalidTensorError(
                "a complex value in column 'value' has a part that is null; df.where('value.re is not null and "
                "value.im is not null') leaves such cells out"
            )
        real, imaginary = (part.to_numpy() for part in parts)
        return np.asarray(real + 1j * imaginary)
    if pa.types.is_decimal(column.type):
        kind = pa.int64() if column.type.precision <= _LONGS else pa.uint64()
        try:
            column = pc.cast(column, kind)
        except pa.ArrowInvalid as error:
            least, most = pc.min_max(column).as_py().values()
            raise InvalidTensorError(
                f"value {least if least < 0 else most} in column 'value' is no {kind}, as which "
                f"decimal({column.type.precision}) is taken; cast the column to bigint or double"
            ) from error
    return np.asarray(column.to_numpy(zero_copy_only=False))
