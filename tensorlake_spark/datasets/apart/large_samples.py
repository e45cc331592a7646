"""Samples that are so large that they are kept as tiles: which ones, and how they are read part by part."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import Place, Tiled, Type, field_of, is_valid
from tensorlake_spark.datasets.types.media import image_codecs
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.datasets.types.tensors import ArrayType, PointCloud, Tensor, converted
from tensorlake_spark.errors import (
    FormatError,
    InvalidOptionError,
    InvalidSampleError,
    InvalidSampleTypeError,
)
from tensorlake_spark.tensor.spec import dtype_of

Array = np.ndarray[Any, Any]


TILE_BYTES = 8 << 20
"""A sample that is larger becomes tiles, if the dataset says no other bound."""

TILE_PROPERTY = "tensorlake.tileBytes"
"""The property of the dataset's table that has its bound, so that all writers do the same."""


def tile_bytes_of(properties: Mapping[str, str]) -> int:
    """Return the bound above which samples of a dataset become tiles, in bytes.

    Examples
    --------
    >>> tile_bytes_of({}), tile_bytes_of({"tensorlake.tileBytes": "1000"})
    (8388608, 1000)
    """
    text = properties.get(TILE_PROPERTY, str(TILE_BYTES))
    if not text.isdecimal():
        raise FormatError(
            f"the table's property {TILE_PROPERTY} is {text!r:.80}, which is not a number of bytes; set it with ALTER "
            "TABLE ... SET TBLPROPERTIES"
        )
    return int(text)


def checked_bound(tile_bytes: Any) -> int:
    """Return the bound that a user gave for a new dataset; raises InvalidOptionError if it is none."""
    if tile_bytes is None:
        return TILE_BYTES
    if (
        not isinstance(tile_bytes, (int, np.integer))
        or isinstance(tile_bytes, bool)
        or tile_bytes < 1
    ):
        raise InvalidOptionError(
            f"tile_bytes={tile_bytes!r:.80} is not a number of bytes above 0; leave it out for {TILE_BYTES}"
        )
    return int(tile_bytes)


def is_tileable(kind: Type) -> bool:
    """Whether samples of a type may be kept as tiles: arrays, clouds of points and raw images.

    Examples
    --------
    >>> is_tileable(Tensor("uint8")), is_tileable(Image("raw")), is_tileable(Image("jpeg"))
    (True, True, False)
    """
    return isinstance(kind, (Tensor, PointCloud)) or (
        isinstance(kind, Image) and kind.format == "raw"
    )


class NumpyFile:
    """An array in a file of NumPy, which is mapped anew for every part: what was read does not stay in memory.

    Parameters
    ----------
    path : str or path
        Of the file.

    Raises
    ------
    OSError, ValueError
        If it cannot be read, or is no such file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        mapped = self._mapped()
        self.shape: tuple[int, ...] = mapped.shape
        self.dtype: np.dtype[Any] = mapped.dtype

    def _mapped(self) -> Array:
        found: Array = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if not isinstance(found, np.ndarray):
            raise ValueError("it has many arrays; give one of them")
        return found

    def __getitem__(self, key: Any) -> Array:
        found: Array = self._mapped()[key]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        found = np.array(self._mapped())
        return found if dtype is None else found.astype(dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


class LargeSample:
    """A sample that is written as tiles; it has ``shape``, ``dtype`` and slices, and is read part by part.

    Parameters
    ----------
    data : array-like
        With ``shape``, ``dtype`` and ``__getitem__``.
    kind : Type
        Of its column.
    number : int
        Of the sample in `place`.
    place : Place
        For messages.
    """

    def __init__(self, data: Any, kind: Type, number: int, place: Place) -> None:
        self._data, self._number, self._place = data, number, place
        self._rounds = isinstance(kind, ArrayType) and kind.lenient
        self.dtype = element_type(kind)
        shape = tuple(int(n) for n in data.shape)
        # A raw image of one channel is height x width.
        self._is_flat = isinstance(kind, Image) and len(shape) == 3 and shape[2] == 1
        self.shape = shape[:2] if self._is_flat else shape
        given = np.dtype(data.dtype)
        if isinstance(kind, Image) and given.newbyteorder("=") != self.dtype:
            raise place.wrong_type(
                number, str(kind), f"{given} of shape {shape}", f"cast it to {self.dtype.name}"
            )
        # What the type says to a shape or a dtype that does not fit; an empty part shows the latter.
        kind.encode([Tiled(self.shape, self.dtype.name)], place.column, place.first + number)
        try:
            self[tuple(slice(0, 0) for _ in self.shape)]
        except InvalidSampleTypeError as error:  # which has the shape of the part
            expected, remedy = (
                f"dtype {self.dtype.name}",
                "cast it with astype, or declare its dtype",
            )
            raise place.wrong_type(number, expected, f"{given} of shape {shape}", remedy) from error

    @property
    def nbytes(self) -> int:
        """Bytes of the array, as it is stored."""
        return math.prod(self.shape) * self.dtype.itemsize

    def check(self) -> None:
        """Look at all elements; raises InvalidSampleError if one does not fit."""
        self[tuple(slice(None) for _ in self.shape)]

    def release(self) -> None:
        """Let go of the data, which may be large: what has written them may wait for the garbage collector."""
        self._data = None

    def __getitem__(self, key: tuple[Any, ...]) -> Array:
        place = (*key, 0) if self._is_flat else key
        found = self._data[place]
        return converted(found, self.dtype.name, self._number, self._place, self._rounds)


def element_type(kind: Type) -> np.dtype[Any]:
    """Return the dtype of the samples of a column that may be tiled."""
    name = kind.fixed()[0] if isinstance(kind, ArrayType) else kind.dtype  # type: ignore[attr-defined]
    return dtype_of(name)


def opened(values: Any, kind: Type, place: Place) -> Any:
    """Return the samples of a column with files as arrays, which are mapped and not read.

    Parameters
    ----------
    values : list, ndarray or pyarrow.Array
        As a user gave them.
    kind : Type
        Of the column, one that may be tiled.
    place : Place
        For messages.

    Raises
    ------
    InvalidSampleError
        If a file cannot be read, or if a sample is only the shape of one whose tiles lie in another dataset.
    """
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(values, kind, place)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values
    if not any(isinstance(v, (str, os.PathLike, Tiled)) for v in values):
        return values
    return [_open(value, number, place) for number, value in enumerate(values)]


def _open(value: Any, number: int, place: Place) -> Any:
    if isinstance(value, Tiled):
        raise _no_elements(number, place)
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value).endswith(".npy"):
        return value
    try:
        return NumpyFile(value)
    except (OSError, ValueError, EOFError) as error:
        raise place.wrong(
            number, "a file of NumPy", f"{os.fspath(value)!r:.200}", f"{error}", error
        ) from error


def _from_arrow(values: Any, kind: Type, place: Place) -> Any:
    """Return what Arrow has; structs without elements are refused, for their tiles lie elsewhere."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_struct(values.type) and values.type.get_field_index("data") >= 0:
        bare = is_valid(values) & ~is_valid(field_of(values, "data"))
        if bare.any():
            raise _no_elements(int(np.argmax(bare)), place)
    return values


def _no_elements(number: int, place: Place) -> InvalidSampleError:
    return place.wrong(
        number,
        "an array",
        "the shape of one, whose elements are tiles of another dataset",
        "give what indexing its column returns",
    )


def large_ones(values: Any, kind: Type, tile_bytes: int) -> dict[int, Any]:
    """Return the samples that have more bytes than `tile_bytes`, by their numbers.

    Parameters
    ----------
    values : list, ndarray or pyarrow.Array
        As `opened` returned them.
    kind : Type
        Of the column, one that may be tiled.
    tile_bytes : int
        The bound.
    """
    if isinstance(values, pa.Array):
        if values.nbytes <= tile_bytes or not pa.types.is_struct(values.type):
            return {}
        values = kind.decode(values)
    itemsize = element_type(kind).itemsize
    if isinstance(values, np.ndarray) and values.dtype != object:
        large = math.prod(values.shape[1:]) * itemsize > tile_bytes
        return dict(enumerate(values)) if large else {}
    found = {}
    for number, value in enumerate(values):
        array = _array_like(value, tile_bytes)
        if array is not None and math.prod(map(int, array.shape)) * itemsize > tile_bytes:
            found[number] = array
    return found


def _array_like(value: Any, tile_bytes: int) -> Any:
    """Return a value with a shape, a dtype of NumPy and slices; None where it has none, or is small."""
    if value is None or isinstance(value, np.ndarray):
        return value
    if image_codecs.is_pil(value):
        if value.width * value.height * 16 <= tile_bytes:
            return None
        try:
            array = image_codecs.array_of(value)
        except (OSError, ValueError, SyntaxError):  # its type says what is wrong
            return None
        return array.astype(np.uint8) * 255 if array.dtype == bool else array
    if not all(hasattr(value, name) for name in ("shape", "dtype", "__getitem__")):
        return None
    try:
        np.dtype(value.dtype)
    except TypeError:  # of another library, as of PyTorch
        with suppress(TypeError, RuntimeError):  # its type says what is wrong
            return np.asarray(value)
        return None
    return value
