"""Which type fits the values of a column, when nobody says."""

from __future__ import annotations

import datetime as dt
import decimal
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.base import Type, shown
from tensorlake_spark.datasets.types.media.image_codecs import is_pil
from tensorlake_spark.datasets.types.media.image_headers import format_of
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.datasets.types.media.medical import Dicom
from tensorlake_spark.datasets.types.media.recordings import Audio, Video, sound_format
from tensorlake_spark.datasets.types.media.video_facts import video_format
from tensorlake_spark.datasets.types.nested import Sequence
from tensorlake_spark.datasets.types.scalars import Scalar
from tensorlake_spark.datasets.types.tensors import Tensor
from tensorlake_spark.datasets.types.texts import Json, Text
from tensorlake_spark.errors import InvalidOptionError, UnsupportedDtypeError

_ENDINGS: dict[str, Type] = {
    ".jpg": Image("jpeg"), ".jpeg": Image("jpeg"), ".png": Image("png"), ".webp": Image("webp"),
    ".wav": Audio("wav"), ".flac": Audio("flac"), ".mp3": Audio("mp3"),
    ".mp4": Video(), ".mkv": Video(), ".webm": Video(), ".dcm": Dicom(),
}  # fmt: skip


def guess(name: str, values: Iterable[Any], remedy: str = "give schema=") -> Type:
    """Return the type that fits some values.

    Numbers and dates give scalars, texts `Text`, arrays `Tensor` (with the lengths that all of them share), bytes
    and images of Pillow `Image` or `Audio`, lists `Sequence` and dicts `Json`.

    Parameters
    ----------
    name : str
        Of the column, for messages.
    values : iterable
        Some of its values; None counts for nothing.
    remedy : str
        How a user says the type, for messages.

    Raises
    ------
    InvalidOptionError
        If there is no value, or no type fits all of them.

    Examples
    --------
    >>> guess("x", [1, 2.5]), guess("y", [[1, 2], []])
    (Scalar('float64'), Sequence(Scalar('int64')))
    """
    there = [value for value in values if value is not None]
    if not there:
        raise InvalidOptionError(f"column {name!r} has no value to tell its type by; {remedy}")
    found = [*dict.fromkeys(_one(name, value, remedy) for value in there)]
    out = found[0]
    for other in found[1:]:
        joined = _joined(out, other)
        if joined is None:
            raise InvalidOptionError(
                f"column {name!r} has values of {out} and of {other}; {remedy}"
            )
        out = joined
    return out


def _one(name: str, value: Any, remedy: str) -> Type:
    if is_pil(value):
        return Image("jpeg" if value.format == "JPEG" else "png")
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
        return _of_array(name, np.asarray(value))
    if isinstance(value, bool):
        return Scalar("bool")
    if isinstance(value, decimal.Decimal):
        return Scalar("decimal(38, 18)")
    for python in (int, float, dt.datetime, dt.date):
        if isinstance(value, python):
            return Scalar(python)  # type: ignore[arg-type]
    if isinstance(value, str):
        return Text()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _of_bytes(bytes(value))
    if isinstance(value, os.PathLike):
        ending = os.path.splitext(os.fspath(value))[1].lower()
        if ending in _ENDINGS:
            return _ENDINGS[ending]
    if isinstance(value, dict):
        return Json()
    if isinstance(value, (list, tuple)):
        return _of_list(name, value, remedy)
    raise InvalidOptionError(f"column {name!r} has {shown(value)}, which no type takes; {remedy}")


def _of_array(name: str, array: np.ndarray[Any, Any]) -> Type:
    try:
        return Tensor(array.dtype.name, array.shape) if array.ndim else Scalar(array.dtype)  # type: ignore[arg-type]
    except (InvalidOptionError, UnsupportedDtypeError) as error:
        raise InvalidOptionError(f"column {name!r}: {error}") from error


def _of_bytes(data: bytes) -> Type:
    image, sound = format_of(data), sound_format(data)
    if image:
        return Image(
            image, dtype="uint16" if image == "png" and data[24:25] == b"\x10" else "uint8"
        )
    if video_format(data):
        return Video()
    if data[128:132] == b"DICM":
        return Dicom()
    # Two bytes make no MP3: only where its tag is there.
    return Audio(sound) if sound and (sound != "mp3" or data[:3] == b"ID3") else Scalar("bytes")


def _of_list(name: str, values: Any, remedy: str) -> Type:
    inner = [v for v in values if v is not None]
    if not inner:
        return _EMPTY
    return (
        Json() if any(isinstance(v, dict) for v in inner) else Sequence(guess(name, inner, remedy))
    )


_EMPTY = Sequence("float64")
"""What a list without values gives, when no other list says more."""


def _joined(one: Type, other: Type) -> Type | None:
    """Return the type that takes what both take, None where there is none."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return _joined_tensors(one, other)
    if isinstance(one, Scalar) and isinstance(other, Scalar):
        numbers = _is_number(one.dtype) and _is_number(other.dtype)
        return Scalar(np.promote_types(one.dtype, other.dtype).name) if numbers else None
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        if _EMPTY in (one, other):
            return other if one == _EMPTY else one
        inner = _joined(one.of, other.of)
        return None if inner is None else Sequence(inner)
    return Json() if {type(one), type(other)} <= {Json, Sequence, Text} else None


def _is_number(name: str) -> bool:
    return name.startswith(("int", "uint", "float"))


def _joined_tensors(one: Tensor, other: Tensor) -> Type | None:
    if one.dtype != other.dtype:
        return None
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return Tensor(one.dtype)
    return Tensor(one.dtype, tuple(a if a == b else None for a, b in zip(one.shape, other.shape)))
