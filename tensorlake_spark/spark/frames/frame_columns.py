"""Which column of a DataFrame is which column of a dataset, and its values as types take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t

from tensorlake_spark.datasets.types.base import Type, field_of, is_valid
from tensorlake_spark.datasets.types.schema import KEY, SID, SampleSchema
from tensorlake_spark.datasets.types.tensor_struct import Structs
from tensorlake_spark.datasets.types.tensors import ArrayType, Embedding
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, did_you_mean
from tensorlake_spark.spark.source.schemas import TENSOR, arrow_type, tensors_of
from tensorlake_spark.tensor.spec import dtype_of

Path = tuple[str, ...]


def schema_of(frame: t.StructType) -> SampleSchema:
    """Return the columns of a dataset that a DataFrame says of itself, as one that Spark read from a dataset does.

    Raises
    ------
    InvalidOptionError
        If a column is a struct that says not what it is.
    """
    return SampleSchema(dict(_typed(frame, "")))


def _typed(struct: t.StructType, prefix: str) -> Iterator[tuple[str, Type]]:
    for field in struct.fields:
        name = f"{prefix}{field.name}"
        said = field.metadata.get(KEY.decode())
        if said is not None:
            metadata = {KEY: said.encode()}
            found = SampleSchema.from_arrow(
                pa.schema([pa.field("x", arrow_type(field.dataType), metadata=metadata)])
            )
            yield name, found["x"]
        elif not isinstance(field.dataType, t.StructType):
            plain = pa.schema([pa.field("x", arrow_type(field.dataType))])
            yield name, SampleSchema.from_arrow(plain)["x"]
        elif {*field.dataType.names} & {"data", "shape", "dtype", "url"}:
            raise InvalidOptionError(
                f"column {name!r} is {field.dataType.simpleString():.120}, which does not say of which type its "
                "samples are; give the schema: a dict of names and types"
            )
        else:
            yield from _typed(field.dataType, f"{name}/")


def paths_of(frame: t.StructType, schema: SampleSchema) -> dict[str, Path]:
    """Return for columns of a dataset where they are in a DataFrame: flat under their names, or in structs.

    Raises
    ------
    InvalidOptionError
        If the DataFrame has a column that the dataset has not, or lacks all.

    Examples
    --------
    >>> inner = t.StructType([t.StructField("boxes", TENSOR)])
    >>> frame = t.StructType([t.StructField("training", inner), t.StructField("label", t.LongType())])
    >>> paths_of(frame, SampleSchema({"label": "int64", "training/boxes": "int64"}))
    {'training/boxes': ('training', 'boxes'), 'label': ('label',)}
    """
    found: dict[str, Path] = {}

    def look(struct: t.StructType, prefix: str, path: Path) -> None:
        for field in struct.fields:
            name, here = f"{prefix}{field.name}", (*path, field.name)
            if name == SID:
                raise InvalidOptionError(
                    "the DataFrame has a column sid; samples get new numbers: leave it out by df.drop('sid'), or "
                    "change samples that are there by MERGE"
                )
            if name in schema:
                if name in found:
                    raise InvalidOptionError(f"the DataFrame has the column {name!r} twice")
                found[name] = here
            elif name in schema.groups() and isinstance(field.dataType, t.StructType):
                look(field.dataType, f"{name}/", here)
            else:
                raise InvalidOptionError(
                    f"the dataset has no column {name!r}, which the DataFrame has{did_you_mean(name, schema)}; its "
                    f"columns are {', '.join(schema)}"
                )

    look(frame, "", ())
    if not found:
        raise InvalidOptionError("the DataFrame has no column")
    return found


def column_at(batch: pa.RecordBatch, path: Path) -> pa.Array:
    """Return a column of a batch; null where a struct around it is."""
    column = batch.column(path[0])
    for part in path[1:]:
        column = field_of(column, part)
    return column


def values_for(kind: Type, column: pa.Array) -> Any:
    """Return values of a DataFrame as `Type.encode` takes them: tensors are arrays where the type has another form.

    Examples
    --------
    >>> from tensorlake_spark.datasets.types import Image
    >>> pixels = [{"dtype": "uint8", "shape": [1, 2], "data": b"ab"}]
    >>> values_for(Image("png"), pa.array(pixels, arrow_type(TENSOR)))
    [array([[97, 98]], dtype=uint8)]
    """
    if not pa.types.is_struct(column.type):
        return column
    names = {field.name for field in column.type}
    if not {*TENSOR.names} <= names or names & {"format", "height"}:
        return column
    if isinstance(kind, Embedding) and kind.quantize is not None:
        if "scale" in names or Structs(column).dtype() in (None, dtype_of(kind.quantize)):
            return column  # as it is stored
    elif isinstance(kind, ArrayType):
        return column
    out: list[Any] = []
    for row, there in enumerate(is_valid(column).tolist()):
        # One by one: rows may have other dtypes.
        out += Structs(column.slice(row, 1)).arrays() if there else [None]
    return out


def damaged_tensor(columns: Mapping[str, pa.Array]) -> tuple[str, int, str] | None:
    """Return the first of the tensors whose fields do not go together: its column, its row, and what is wrong.

    Examples
    --------
    >>> cut = [{"dtype": "uint8", "shape": [1, 2], "data": b"a"}]
    >>> damaged_tensor({"x": pa.array(cut, arrow_type(TENSOR))})
    ('x', 0, 'a tensor has 1 bytes of data; shape (1, 2) and dtype uint8 need 2')
    """
    for name, column in columns.items():
        if not pa.types.is_struct(column.type) or {f.name for f in column.type} != {*TENSOR.names}:
            continue
        for row in np.flatnonzero(is_valid(column)).tolist():
            try:
                list(tensors_of(column.slice(row, 1)))
            except InvalidTensorError as error:
                return name, row, str(error).replace("row 0 of the batch", "a tensor")
    return None
