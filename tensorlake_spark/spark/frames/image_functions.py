"""Functions of columns of images, in Python and in SQL; a null gives null.

They run as Arrow UDFs over batches. What they give is of type TENSOR, so that ``tensor_slice``, ``tensor_mean`` and the
others go on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from tensorlake_spark.errors import InvalidTensorError, TensorLakeError
from tensorlake_spark.spark.cluster.arguments import (
    COLUMN,
    INTEGER,
    NOTHING,
    TEXT,
    refused_arguments,
    takes,
)
from tensorlake_spark.spark.frames import image_columns
from tensorlake_spark.spark.source.schemas import TENSOR, arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column


@takes(image=COLUMN, on_error=TEXT, sid=COLUMN | NOTHING)
def image_decode(image: Any, on_error: str = "raise", sid: Any = None) -> Column:
    """Return the pixels of an image, as a value of type TENSOR.

    In SQL, after `register`: ``image_decode(image)``, ``image_decode(image, on_error => 'null', sid => sid)``. Inside
    of another function of ours give arguments by their places, ``image_decode(image, 'null', sid)``: Spark hands names
    to the outer one only.

    Parameters
    ----------
    image : Column or str
        An image of a dataset, or the bytes of a JPEG, PNG or WebP, such as ``content`` of ``format("binaryFile")``. A
        tensor stays what it is.
    on_error : str
        ``"raise"`` ends the task at the first image that cannot be decoded, ``"null"`` makes it null.
    sid : Column or str, optional
        The sample's number, which the error then names.

    Raises
    ------
    InvalidOptionError
        If `on_error` is neither.

    Notes
    -----
    Where a task runs, it ends with ``CorruptDataError`` for bytes that cannot be decoded, that have another checksum,
    or that say they have more pixels than `TENSORLAKE_MAX_PIXELS`.

    Examples
    --------
    ::

        df.select(tensor_mean(image_decode("image")))
    """
    image_columns.check_on_error("image_decode", on_error)
    args = [image, f.lit(on_error), *([] if sid is None else [sid])]
    return arrow_udf("image_decode")(*args)


@takes(image=COLUMN, height=INTEGER, width=INTEGER, how=TEXT, on_error=TEXT, sid=COLUMN | NOTHING)
def image_resize(
    image: Any,
    height: int,
    width: int,
    how: str = "bilinear",
    on_error: str = "raise",
    sid: Any = None,
) -> Column:
    """Return an image of another size, as a value of type TENSOR; dtype and channels stay.

    In SQL, after `register`: ``image_resize(image, 224, 224)``, ``image_resize(mask, 224, 224, 'nearest')``.

    Parameters
    ----------
    image : Column or str
        As for `image_decode`; also a tensor of height x width [x channels].
    height, width : int
        Of the result, in pixels.
    how : str
        ``bilinear``, ``bicubic``, ``lanczos``, ``box`` or ``nearest``, which is the one for masks.
    on_error, sid
        As for `image_decode`.

    Raises
    ------
    InvalidOptionError
        If an argument is none of these.

    Examples
    --------
    ::

        df.select(image_resize("image", 224, 224))
    """
    image_columns.check_size("image_resize", height, width)
    image_columns.check_how("image_resize", how)
    image_columns.check_on_error("image_resize", on_error)
    args = [image, *map(f.lit, (int(height), int(width), how, on_error))]
    return arrow_udf("image_resize")(*args, *([] if sid is None else [sid]))


def decoded_column(
    image: pa.Array, on_error: pa.Array | None = None, sid: pa.Array | None = None
) -> pa.Array:
    """Return every image as a tensor; the arguments are those of `image_decode`."""
    mode = _one("image_decode", "on_error", on_error, "raise")
    found = image_columns.images_of("image_decode", image, sid, mode)
    return image_columns.tensors_with_nulls("image_decode", found)


def resized_column(
    image: pa.Array,
    height: pa.Array,
    width: pa.Array,
    how: pa.Array | None = None,
    on_error: pa.Array | None = None,
    sid: pa.Array | None = None,
) -> pa.Array:
    """Return every image in another size; the arguments are those of `image_resize`."""
    name = "image_resize"
    mode, method = _one(name, "on_error", on_error, "raise"), _one(name, "how", how, "bilinear")
    image_columns.check_how(name, method)
    found = image_columns.images_of(name, image, sid, mode)
    out: list[Any] = []
    for array, rows, columns in zip(found, height.to_pylist(), width.to_pylist(), strict=True):
        if array is None or rows is None or columns is None:
            out.append(None)
            continue
        image_columns.check_size(name, rows, columns)
        out.append(image_columns.resized(array, rows, columns, method))
    return image_columns.tensors_with_nulls(name, out)


def _one(name: str, argument: str, column: pa.Array | None, usual: str) -> Any:
    """Return the one text that an argument is in all rows."""
    if column is None or not len(column):
        return usual
    found = column.unique().to_pylist()
    if len(found) != 1:
        raise InvalidTensorError(
            f"{name}: {argument} is {found[0]!r} in one row and {found[1]!r} in another; give a constant"
        )
    return found[0]


FUNCTIONS: dict[str, Callable[..., pa.Array]] = {
    "image_decode": decoded_column,
    "image_resize": resized_column,
}
"""For every name in SQL the function of Arrow arrays; all of them give tensors."""


def arrow_udf(name: str) -> Callable[..., Column]:
    """Return a function of `FUNCTIONS` as an Arrow UDF, which takes arguments by their names too."""
    function = FUNCTIONS[name]

    def call(image: pa.Array, *columns: pa.Array, **named: pa.Array) -> pa.Array:
        if pa.types.is_null(image.type):
            return pa.nulls(len(image), arrow_type(TENSOR))
        try:
            return function(image, *columns, **named)
        except (TensorLakeError, MemoryError):
            raise
        except Exception as error:  # SQL does not look at types: any column may be an argument
            raise refused_arguments(name, function, error, (image, *columns), named) from error

    call.__name__ = name
    spark: Any = f  # whose own type hints leave it out
    made: Callable[..., Column] = spark.arrow_udf(call, TENSOR)
    return made
