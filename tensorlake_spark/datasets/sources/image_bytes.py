"""Bytes of images: their format by how they begin, and into another format where a column wants that."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.base import Place, check_one_of
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidSampleError,
    MissingDependencyError,
)

SUFFIXES = {
    ".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png", ".webp": "webp", ".bmp": "bmp", ".gif": "gif",
    ".tif": "tiff", ".tiff": "tiff", ".ppm": "ppm", ".pgm": "ppm",
}  # fmt: skip
"""Formats by the ends of names, in lower case."""

STORED = ("jpeg", "png", "webp", "raw")
"""Formats that a column of images may have."""

MAX_PIXELS = 1 << 30

_PILLOW = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")  # none that starts a program


def suffix_format(name: str) -> str | None:
    """Return the format that the end of a name tells, None if it is not that of an image.

    Examples
    --------
    >>> suffix_format("a/B.JPEG"), suffix_format("labels.txt")
    ('jpeg', None)
    """
    return SUFFIXES.get(f".{name.rpartition('.')[2].lower()}")


def format_of(data: bytes) -> str | None:
    """Return the format of an image by its first bytes.

    Examples
    --------
    >>> format_of(b"\\xff\\xd8\\xff\\xe0"), format_of(b"hello")
    ('jpeg', None)
    """
    if data[:3] == b"\xff\xd8\xff":
        return "jpeg"
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return "png"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    begins = {b"GIF8": "gif", b"II*\0": "tiff", b"MM\0*": "tiff"}
    if data[:4] in begins:
        return begins[data[:4]]
    return {b"BM": "bmp", b"P5": "ppm", b"P6": "ppm"}.get(data[:2])


def column_format(formats: Iterable[str], wanted: str | None, where: str) -> str:
    """Return the format of a column for images of these formats.

    Parameters
    ----------
    formats : iterable of str
        One for each image, as far as they are known.
    wanted : str, optional
        What the user said.
    where : str
        For messages.

    Raises
    ------
    InvalidOptionError
        If they differ, or cannot be stored as they are, and the user did not say what to make of them.

    Examples
    --------
    >>> column_format(["png", "png"], None, "x")
    'png'
    """
    if wanted is not None:
        check_one_of(wanted, STORED, "image_format")
        return wanted
    count = Counter(formats)
    if len(count) == 1 and next(iter(count)) in STORED:
        return next(iter(count))
    seen = ", ".join(f"{number} {name}" for name, number in count.most_common())
    raise InvalidOptionError(
        f"{where}: a column of images has one format of jpeg, png and webp, and there are {seen}; with "
        "image_format='png' others are stored as PNG without loss, with 'jpeg' or 'webp' smaller and with some"
    )


def image_value(data: bytes, kind: Image, where: str, convert: bool = False) -> Any:
    """Return the bytes of an image as a column takes them, and as they are if they have its format.

    Parameters
    ----------
    data : bytes
        Of a file.
    kind : Image
        Of the column.
    where : str
        For messages: the file, so that a bad one is found.
    convert : bool
        Whether an image of another format is converted.

    Raises
    ------
    InvalidSampleError
        If the bytes are no image, have another format, break off, or more than 2**30 pixels.
    """
    found, wanted, place = format_of(data), kind.format, _File(where)
    if found == wanted:
        kind.check_file(data, 0, place)
        return data
    if found is None:
        raise InvalidSampleError(
            f"{where}: {len(data)} bytes that are not an image of a known format"
        )
    if not convert:
        raise InvalidSampleError(
            f"{where}: the image is {found}, and the column takes {wanted}; give image_format={wanted!r} to have "
            "other formats converted"
        )
    pixels = pixels_of(data, where)
    return pixels if wanted == "raw" else kind.encoded(pixels, 0, place)


class _File(Place):
    """The place of an image that is a file."""

    def _error(
        self, kind: Any, number: int, expected: str, got: Any, remedy: str, cause: Any
    ) -> InvalidSampleError:
        if f"{got}".endswith(" channels"):
            remedy = "give image_format='png', which has 1 to 4 channels"
        error: InvalidSampleError = kind(
            f"{self.column}: expected {expected}, got {got}{f'; {remedy}' if remedy else ''}"
        )
        error.__cause__ = cause
        return error


def pixels_of(data: bytes, where: str) -> np.ndarray:
    """Return the pixels of an image, as the camera held it (its EXIF orientation is applied).

    Raises
    ------
    InvalidSampleError
        If it cannot be decoded, or has more than 2**30 pixels by its header.
    """
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError as error:
        raise MissingDependencyError("images need Pillow: pip install pillow") from error
    bound = PIL.Image.MAX_IMAGE_PIXELS
    PIL.Image.MAX_IMAGE_PIXELS = None  # the header is compared with our own bound
    try:
        with PIL.Image.open(io.BytesIO(data), formats=_PILLOW) as image:
            if image.width * image.height > MAX_PIXELS:
                raise InvalidSampleError(
                    f"{where}: an image of {image.width} x {image.height} pixels, more than {MAX_PIXELS}"
                )
            upright = PIL.ImageOps.exif_transpose(image)
            if upright.mode in ("P", "PA"):
                upright = upright.convert("RGBA" if "transparency" in upright.info else "RGB")
            elif upright.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
                upright = upright.convert("RGB")
            elif upright.mode == "1":
                upright = upright.convert("L")
            return np.asarray(upright)
    except InvalidSampleError:
        raise
    except Exception as error:  # Pillow raises many kinds for bytes that are not what they claim
        raise InvalidSampleError(f"{where}: the image cannot be decoded: {error}") from error
    finally:
        PIL.Image.MAX_IMAGE_PIXELS = bound
