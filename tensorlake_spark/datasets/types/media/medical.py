"""Medical images, as the bytes of their files."""

from __future__ import annotations

import importlib
import io
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import Array, Place
from tensorlake_spark.datasets.types.media import media_bytes
from tensorlake_spark.datasets.types.media.recordings import Recording
from tensorlake_spark.errors import CorruptDataError, MissingDependencyError

DICOM = pa.struct(
    [
        pa.field("data", pa.binary()),
        pa.field("height", pa.int32()),
        pa.field("width", pa.int32()),
        pa.field("frames", pa.int32()),
        pa.field("channels", pa.int32()),
        pa.field("modality", pa.string()),
        pa.field("crc", pa.int64()),
    ]
)
"""Storage of a DICOM file."""


class Size(NamedTuple):
    """What the header of a file says of its pixels; None for what it does not say."""

    height: int | None
    width: int | None
    frames: int

    @property
    def pixels(self) -> int:
        """Of all frames."""
        return (self.height or 1) * (self.width or 1) * self.frames

    def __str__(self) -> str:
        return f"{self.frames} x {self.height} x {self.width}"


@dataclass(frozen=True, repr=False)
class Dicom(Recording):
    """A medical image in each sample, stored as the bytes of a DICOM file, and read as pixels (extra ``dicom``)."""

    kind: ClassVar[str] = "dicom"

    def storage(self) -> pa.DataType:
        return DICOM

    def facts(self, data: bytes, number: int, place: Place) -> dict[str, Any]:
        if data[128:132] != b"DICM":
            raise place.wrong(
                number, "a DICOM file", f"{len(data)} bytes without its mark at byte 128"
            )
        pydicom = _pydicom()
        try:
            head = pydicom.dcmread(io.BytesIO(data), stop_before_pixels=True)
            size = _size(head)
            found = size._asdict() | {
                "channels": _whole(head, "SamplesPerPixel"),
                "modality": str(head.get("Modality", "")) or None,
            }
        except Exception as error:  # the parser raises what it meets
            raise place.wrong(
                number, "a DICOM file", f"one that cannot be read: {error}", cause=error
            ) from error
        bound = media_bytes.pixel_bound()
        if size.pixels > bound:
            raise place.wrong(number, f"at most {bound} pixels", f"{size}", media_bytes.TRUSTED)
        return found

    def decoded(self, data: bytes) -> Array:
        pydicom, bound = _pydicom(), media_bytes.pixel_bound()
        try:
            head = pydicom.dcmread(io.BytesIO(data))
            size = _size(head)
            if size.pixels > bound:
                raise ValueError(
                    f"it says that it is {size}, more than {bound} pixels; {media_bytes.TRUSTED}"
                )
            return np.asarray(head.pixel_array)
        except Exception as error:
            said = " ".join(str(error).split())  # pydicom names its plugins in a line each
            if "missing dependencies" in said:
                raise MissingDependencyError(
                    f"a DICOM file of {len(data)} bytes needs a package to be decoded: {said}"
                ) from error
            raise CorruptDataError(
                f"a DICOM file of {len(data)} bytes cannot be decoded: {said}"
            ) from error


def _size(head: Any) -> Size:
    """Return what a header says of the pixels; what it does not say counts as one."""
    return Size(_whole(head, "Rows"), _whole(head, "Columns"), _whole(head, "NumberOfFrames") or 1)


def _whole(head: Any, name: str) -> int | None:
    value = head.get(name)
    return None if value is None else int(value)


def _pydicom() -> Any:
    try:
        return importlib.import_module("pydicom")
    except ImportError as error:
        raise MissingDependencyError(
            "DICOM files need the package pydicom: pip install 'tensorlake-spark[dicom]'"
        ) from error
