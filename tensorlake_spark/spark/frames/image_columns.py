"""Columns of images in Arrow: decoded to tensors, and resized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import is_valid
from tensorlake_spark.datasets.types.media import image_codecs
from tensorlake_spark.datasets.types.media.image_headers import FACTS, HeaderError, pixel_bound
from tensorlake_spark.datasets.types.media.media_bytes import Media
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    InvalidTensorError,
    TensorLakeError,
)
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.spark.source.schemas import TENSOR, TensorColumn, arrow_type, tensor_column
from tensorlake_spark.tensor.spec import dtype_of

Array = np.ndarray[Any, Any]

ON_ERROR = ("raise", "null")
"""What may become of a sample whose bytes are bad."""

HOW = {"bilinear": 2, "nearest": 0, "bicubic": 3, "lanczos": 1, "box": 4}
"""How pixels are made of others: Pillow's numbers by their names."""

_MOST_BYTES = 2**31 - 1  # Arrow's offsets have 32 bits
_TENSOR = arrow_type(TENSOR)


def images_of(
    name: str, column: pa.Array, sids: pa.Array | None, on_error: str
) -> list[Array | None]:
    """Return the pixels of images, None for null.

    Parameters
    ----------
    name : str
        Of the function, for messages.
    column : pyarrow.Array
        Structs of images as datasets have them, bytes of JPEG, PNG or WebP, or tensors.
    sids : pyarrow.Array, optional
        The samples' numbers, for messages.
    on_error : str
        ``"raise"``, or ``"null"`` for null in the place of what cannot be decoded.

    Raises
    ------
    CorruptDataError
        If bytes cannot be decoded, with ``"raise"``; names the sample.
    InvalidTensorError
        If the column has no images.
    """
    check_on_error(name, on_error)
    decode = _decoder(name, column)
    out: list[Array | None] = []
    for number, there in enumerate(is_valid(column).tolist()):
        try:
            out.append(decode(number) if there else None)
        except (CorruptDataError, InvalidTensorError) as error:
            if on_error == "raise":
                raise _named(name, error, number, sids) from error
            out.append(None)
    return out


def check_on_error(name: str, on_error: Any) -> None:
    """Raise InvalidOptionError if it is not said what becomes of bad samples."""
    if on_error not in ON_ERROR:
        raise InvalidOptionError(f"{name}: on_error={on_error!r:.80} is not 'raise' or 'null'")


def _named(
    name: str, error: TensorLakeError, number: int, sids: pa.Array | None
) -> TensorLakeError:
    place = f"row {number} of the batch"
    if sids is not None and sids[number].is_valid:
        place = f"the sample with sid {sids[number].as_py()}"
    return type(error)(f"{name}: {place}: {error}; on_error => 'null' makes it null")


def _decoder(name: str, column: pa.Array) -> Callable[[int], Array]:
    """Return what gives the image of a row."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda number: of_file(column[number].as_py())
    fields = {field.name for field in kind} if pa.types.is_struct(kind) else set()
    if {"data", "format"} <= fields:
        return _Stored(column)
    if {*TENSOR.names} <= fields:
        tensors = TensorColumn(column)
        return lambda number: tensors.stack(np.array([number]))[0]
    raise InvalidTensorError(
        f"{name} does not take {kind}; it takes images of a dataset (a struct with data and format), bytes of "
        "JPEG, PNG or WebP, and tensors"
    )


class _Stored:
    """Images as datasets have them."""

    def __init__(self, column: pa.Array) -> None:
        self.media = Media(column)
        self.forms = self.media.facts("format")
        names = ("height", "width", "channels", "dtype")
        self.facts = list(zip(*map(self.media.facts, names), strict=True))

    def __call__(self, number: int) -> Array:
        form, facts = self.forms[number], self.facts[number]
        if form == "raw":
            return self._raw(number, *facts)
        if form not in FACTS:
            known = ", ".join([*FACTS, "raw"])
            raise InvalidTensorError(f"it has the format {form!r:.80}, which is not one of {known}")
        data = self.media.checked(number)
        if facts[3] == "bool":  # a mask, whose one bit is no grey
            return np.asarray(image_codecs.indices_of(data) != 0)
        if form == "png" and facts[2] == 1 and data[25:26] == b"\x03":  # one with a palette
            return image_codecs.indices_of(data)
        return image_codecs.decoded(data, form)

    def _raw(self, number: int, height: Any, width: Any, channels: Any, dtype: Any) -> Array:
        if None in (height, width, channels, dtype):
            raise CorruptDataError("its pixels are raw, and their size or dtype is not known")
        if self.media.data[number] is None:
            raise CorruptDataError(
                f"it is {height} x {width} and kept as tiles, which are not in its row; read it by "
                "tensorlake_spark.spark.samples"
            )
        kind = dtype_of(dtype)
        shape = (height, width) if channels == 1 else (height, width, channels)
        data = self.media.checked(number)
        if min(shape) < 0 or len(data) != int(np.prod(shape, dtype=object)) * kind.itemsize:
            raise CorruptDataError(f"{len(data)} bytes are not {dtype} of shape {shape}")
        return np.frombuffer(data, kind.newbyteorder("<")).astype(kind, copy=False).reshape(shape)


def of_file(data: bytes) -> Array:
    """Return the pixels of the bytes of a file, by what they begin with.

    Raises
    ------
    CorruptDataError
        If they are not a JPEG, PNG or WebP.
    """
    for form, facts in FACTS.items():
        try:
            facts(data)
        except HeaderError:
            continue
        return image_codecs.decoded(data, form)
    raise CorruptDataError(f"{len(data)} bytes are not a JPEG, PNG or WebP")


def resized(image: Array, height: int, width: int, how: str) -> Array:
    """Return an image of another size, of the same dtype and channels.

    Parameters
    ----------
    image : ndarray, shape (height, width) or (height, width, channels)
        Of bools, integers or floats.
    height, width : int
        Of the result.
    how : str
        One of `HOW`.

    Raises
    ------
    InvalidTensorError
        If it is no image.

    Examples
    --------
    >>> resized(np.arange(4, dtype="u1").reshape(2, 2), 4, 2, "nearest").tolist()
    [[0, 1], [0, 1], [2, 3], [2, 3]]
    """
    if image.ndim not in (2, 3) or 0 in image.shape or image.dtype.kind not in "biuf":
        raise InvalidTensorError(
            f"{image.dtype} of shape {image.shape} is not an image, which is height x width [x channels] of real "
            "numbers"
        )
    pillow, method = image_codecs.pillow(), HOW[how]
    if how == "nearest":  # numbers of classes stay what they are, of any dtype
        rows = (np.arange(height) * 2 + 1) * image.shape[0] // (2 * height)
        columns = (np.arange(width) * 2 + 1) * image.shape[1] // (2 * width)
        return np.asarray(image[rows[:, None], columns])
    if image.dtype == np.uint8 and (image.ndim == 2 or image.shape[2] in (3, 4)):
        whole = pillow.fromarray(np.ascontiguousarray(image))
        return np.asarray(whole.resize((width, height), method))
    planes = image.reshape(*image.shape[:2], -1).astype(np.float32)
    out = np.stack(
        [
            np.asarray(
                pillow.fromarray(np.ascontiguousarray(planes[..., n])).resize(
                    (width, height), method
                )
            )
            for n in range(planes.shape[2])
        ],
        axis=-1,
    ).reshape(height, width, *image.shape[2:])
    if image.dtype == bool:
        return np.asarray(out >= 0.5)
    if image.dtype.kind in "iu":
        bounds = np.iinfo(image.dtype)
        # As a float the largest integer of 32 or 64 bits is rounded up, and what is clipped to it does not fit.
        most = float(bounds.max) if bounds.max < 2**53 else np.nextafter(float(bounds.max), 0)
        out = np.clip(np.rint(out.astype(np.float64)), bounds.min, most)
        return np.asarray(out.astype(image.dtype))
    return np.asarray(out.astype(image.dtype))


def check_size(name: str, height: Any, width: Any) -> None:
    """Raise InvalidOptionError if an image cannot have a size."""
    for what, length in (("height", height), ("width", width)):
        if not isinstance(length, (int, np.integer)) or isinstance(length, bool) or length < 1:
            raise InvalidOptionError(f"{name}: {what}={length!r:.80} is not a number from 1")
    if height * width > pixel_bound():
        raise InvalidOptionError(
            f"{name}: {height} x {width} is more than {pixel_bound()} pixels, the bound of an image"
        )


def check_how(name: str, how: Any) -> None:
    """Raise InvalidOptionError if there is no such way to resize."""
    if how not in HOW:
        raise InvalidOptionError(f"{name}: how={how!r:.80} is not one of {', '.join(HOW)}")


def tensors_with_nulls(name: str, arrays: Sequence[Array | None]) -> pa.Array:
    """Return arrays as a column of type `TENSOR`, null where there is None.

    Raises
    ------
    InvalidOptionError
        If they are too large for one batch of Spark.
    """
    there = [array for array in arrays if array is not None]
    size = sum(array.nbytes for array in there)
    if size > _MOST_BYTES:
        raise InvalidOptionError(
            f"{name}: the tensors of {len(arrays)} rows take {size_text(size)}, and a column of one batch holds less "
            f"than {size_text(_MOST_BYTES + 1)}; set spark.sql.execution.arrow.maxRecordsPerBatch below {len(arrays)}"
        )
    if not there:
        return pa.nulls(len(arrays), _TENSOR)
    column = tensor_column(there).cast(_TENSOR)
    if len(there) == len(arrays):
        return column
    valid = np.array([array is not None for array in arrays])
    return column.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
