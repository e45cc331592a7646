"""Shapes and dtypes of stored tensors, from what is stored beside their elements: these are not read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.datasets.types.tensor_struct import TENSOR
from tensorlake_spark.datasets.types.tensors import ArrayType
from tensorlake_spark.tensor.spec import dtype_of

Array = np.ndarray[Any, Any]

_SIZES = ("height", "width", "channels")


def shape_fields(parts: StoredParts, column: str) -> tuple[str, ...]:
    """Return the fields of a column that say shapes and dtypes; none where the values have to be looked at.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    column : str
        The column.
    """
    path, found = parts.path_of(column), _fields_of(parts.schema[column])
    table = parts.table_of(column) if parts.is_apart(column) else parts.stored
    there = [] if table is None else table.under([(*path, name) for name in found])
    return found if len(there) >= len(found) else ()


def stand_ins(
    parts: StoredParts, column: str, positions: Array
) -> tuple[list[Array | None], int] | None:
    """Return for each sample zeros of its shape and dtype, which take no memory, and the bytes that were read.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    column : str
        The column.
    positions : int64 ndarray
        Of the samples.

    Returns
    -------
    (list of (ndarray or None), int), or None
        None for a null; None instead of all where the values have to be looked at.
    """
    names = shape_fields(parts, column)
    if not names:
        return None
    columns = _columns(parts, column, names, positions)
    nbytes = sum(int(column.nbytes) for column in columns.values())
    if "shape" in columns:
        shapes = [None if shape is None else tuple(shape) for shape in columns["shape"].to_pylist()]
    else:
        sizes = zip(*(_numbers(columns[name]) for name in _SIZES), strict=True)
        shapes = [(h, w) if c == 1 else (h, w, c) for h, w, c in sizes]
    known: dict[Any, Array | None] = {}
    out: list[Array | None] = []
    for key in zip(columns["dtype"].to_pylist(), shapes, strict=True):
        if key not in known:
            name, shape = key
            known[key] = None
            if name is not None and shape is not None:
                known[key] = np.broadcast_to(np.zeros((), dtype_of(name)), shape)
        out.append(known[key])
    return out, nbytes


def _columns(
    parts: StoredParts, column: str, names: tuple[str, ...], positions: Array
) -> dict[str, Any]:
    """Return fields of a column."""
    if parts.is_apart(column):
        found = {name: parts.column(column, positions, inside=(name,)) for name in names}
        return {name: pc.struct_field(one, name) for name, one in found.items()}
    path = parts.path_of(column)
    inside = parts.stored.rows([(*path, name) for name in names], positions).column(path[0])
    for part in path[1:]:
        inside = pc.struct_field(inside, part)
    return {name: pc.struct_field(inside, name) for name in names}


def _fields_of(kind: Type) -> tuple[str, ...]:
    if isinstance(kind, ArrayType) and kind.storage() == TENSOR:
        return "dtype", "shape"
    return ("dtype", *_SIZES) if isinstance(kind, Image) else ()


def _numbers(column: pa.ChunkedArray) -> list[int]:
    out: list[int] = column.fill_null(0).to_pylist()
    return out
