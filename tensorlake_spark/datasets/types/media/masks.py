"""Masks: a class for every pixel, or yes and no. They are kept as PNG, which other tools open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tensorlake_spark.datasets.types.base import Array, Place, check_names, check_one_of, shown
from tensorlake_spark.datasets.types.media import image_codecs
from tensorlake_spark.datasets.types.media.image_headers import Facts, HeaderError, png_header
from tensorlake_spark.datasets.types.media.images import Picture
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.tensor.sparse import check_unmasked


@dataclass(frozen=True, repr=False)
class Mask(Picture):
    """What masks share."""

    def file_format(self) -> str:
        return "png"

    def pixels(self, value: Any, number: int, place: Place) -> Array:
        """Return an array, or an image of Pillow, as an array of two axes."""
        if not image_codecs.is_pil(value) and not hasattr(value, "__array__"):
            raise place.wrong_type(
                number, self.expected(), shown(value), "give an array, or bytes or a path of a PNG"
            )
        try:
            check_unmasked(value)
            array = np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise place.wrong_type(
                number, self.expected(), shown(value), f"{error}", error
            ) from error
        if array.ndim == 3 and array.shape[2] == 1:
            array = array[..., 0]
        if array.ndim != 2 or 0 in array.shape:
            raise place.wrong(
                number, self.expected(), f"shape {array.shape}", "give height x width"
            )
        return array


@dataclass(frozen=True, repr=False)
class BinaryMask(Mask):
    """A bool for every pixel: an array of height x width, stored as a PNG of one bit.

    You may also give a PNG of one channel. It is stored as it is, and all values but 0 are True.

    Examples
    --------
    >>> mask = np.eye(3, dtype=bool)
    >>> bool((BinaryMask().decode(BinaryMask().encode([mask], "mask"))[0] == mask).all())
    True
    """

    kind: ClassVar[str] = "binary_mask"

    @property
    def header(self) -> Callable[[Any], Facts]:
        return self._facts

    def _facts(self, data: bytes) -> Facts:
        height, width, colour, depth = png_header(data)
        if colour != 0 or depth > 8:
            raise HeaderError(
                f"a PNG of colour type {colour} and {depth} bits, not of one grey channel"
            )
        return height, width, 1, "bool"

    def encoded(self, value: Any, number: int, place: Place) -> bytes:
        array = self.pixels(value, number, place)
        if array.dtype != bool:
            if array.dtype.kind not in "iu" or not np.isin(array, (0, 1)).all():
                raise place.wrong_type(
                    number, self.expected(), shown(array), "compare it with a bound: mask > 0"
                )
            array = array.astype(bool)
        return image_codecs.encoded(np.ascontiguousarray(array), "png", 0)

    def decoded(self, data: bytes) -> Array:
        return np.asarray(image_codecs.indices_of(data) != 0)


@dataclass(frozen=True, repr=False)
class SegmentMask(Mask):
    """The number of a class for every pixel: an array of height x width, stored as a grey PNG.

    You may also give a PNG of one channel or with a palette. It is stored as it is, and its pixels are the numbers.

    Parameters
    ----------
    names : sequence of str, optional
        Names of the classes, in the order of their numbers. A larger number in an array is an error; in a PNG,
        `Dataset.check` with ``deep=True`` finds it.
    dtype : str
        ``uint8`` or ``uint16``.
    ignore : int, optional
        A number that is allowed without being a class, such as 255.

    Examples
    --------
    >>> mask = SegmentMask(["sky", "road"])
    >>> mask.decode(mask.encode([np.eye(2, dtype="u1")], "mask"))[0].tolist()
    [[1, 0], [0, 1]]
    """

    names: tuple[str, ...] | None = None
    dtype: str = "uint8"
    ignore: int | None = None
    kind: ClassVar[str] = "segment_mask"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.names is not None:
            object.__setattr__(self, "names", check_names(self.names))
        check_one_of(self.dtype, ("uint8", "uint16"), "dtype")
        most = np.iinfo(self.dtype).max
        if self.ignore is not None and (
            type(self.ignore) is not int or not 0 <= self.ignore <= most
        ):
            raise InvalidOptionError(f"ignore={self.ignore!r:.80} is not a number from 0 to {most}")

    @property
    def header(self) -> Callable[[Any], Facts]:
        return self._facts

    def _facts(self, data: bytes) -> Facts:
        height, width, colour, depth = png_header(data)
        if colour not in (0, 3) or (depth == 16) > (self.dtype == "uint16"):
            raise HeaderError(
                f"a PNG of colour type {colour} and {depth} bits, not of one channel of {self.dtype}"
            )
        return height, width, 1, self.dtype

    def encoded(self, value: Any, number: int, place: Place) -> bytes:
        array = self.pixels(value, number, place)
        if array.dtype.kind not in "biu":
            raise place.wrong_type(number, self.expected(), shown(array), "give numbers of classes")
        least, most = int(array.min()), int(array.max())
        bound = np.iinfo(self.dtype).max
        if least < 0 or most > bound:
            raise place.wrong(
                number,
                f"numbers from 0 to {bound}",
                f"{least} to {most}",
                _out_of_range(least, self.dtype),
            )
        largest = self._largest(array)
        if self.names is not None and largest >= len(self.names):
            raise place.wrong(
                number, f"numbers of {len(self.names)} classes", largest,
                "add its name, or declare ignore=",
            )  # fmt: skip
        return image_codecs.encoded(array.astype(self.dtype), "png", 0)

    def _largest(self, array: Array) -> int:
        """Return the largest number of a class, -1 if there is none."""
        rest = array[array != self.ignore] if self.ignore is not None else array
        return int(rest.max()) if rest.size else -1

    def decoded(self, data: bytes) -> Array:
        return image_codecs.indices_of(data).astype(self.dtype, copy=False)

    def fault(self, value: Array) -> str | None:
        largest = self._largest(value)
        if self.names is None or largest < len(self.names):
            return None
        return f"it has a pixel of class {largest}, but the column has {len(self.names)} classes"


def _out_of_range(least: int, dtype: str) -> str:
    """Return the remedy for numbers of classes that a dtype does not hold."""
    if least < 0:
        return "give what is no class a number from 0 on, and name it by ignore="
    return "declare dtype='uint16'" if dtype == "uint8" else "number the classes from 0 on"
