"""Arrays and PIL images as bytes of JPEG, PNG and WebP, and back.

simplejpeg decodes JPEG where it is installed; Pillow does the rest. Pillow is imported when it is needed.
"""

from __future__ import annotations

import importlib
import io
from functools import cache
from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.datasets.types.media.image_headers import (
    FACTS,
    TRUSTED,
    HeaderError,
    pixel_bound,
    png_header,
)
from tensorlake_spark.errors import CorruptDataError, MissingDependencyError

_PLUGINS = {"jpeg": "Jpeg", "png": "Png", "webp": "WebP"}
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


@cache
def pillow() -> Any:
    """Return the module ``PIL.Image``.

    Raises
    ------
    MissingDependencyError
        If Pillow is not installed.
    """
    try:
        return importlib.import_module("PIL.Image")
    except ImportError as error:
        raise MissingDependencyError(
            "images need the package pillow: pip install 'tensorlake-spark[images]'"
        ) from error


@cache
def simplejpeg() -> Any:
    """Return the module ``simplejpeg``, None if it is not installed."""
    try:
        return importlib.import_module("simplejpeg")
    except ImportError:
        return None


def is_pil(value: Any) -> bool:
    """Whether a value is an image of Pillow; asks without importing it."""
    return any(kind.__module__ == "PIL.Image" for kind in type(value).__mro__)


def array_of(image: Any) -> Array:
    """Return an image of Pillow as an array: one of a palette as RGB, one of 1 bit as bools."""
    if image.mode == "P":
        image = image.convert("RGB")
    return np.asarray(image)


def encoded(array: Array, form: str, quality: int) -> bytes:
    """Return an array as bytes of a format.

    Parameters
    ----------
    array : ndarray, shape (height, width) or (height, width, channels)
        uint8; for PNG also uint16 or bool of one channel.
    form : str
        ``jpeg``, ``png`` or ``webp``.
    quality : int
        For JPEG and WebP.
    """
    image = pillow().fromarray(array)
    out = io.BytesIO()
    options = {"quality": quality} if form != "png" else {}
    image.save(out, form, **options)
    return out.getvalue()


def decoded(data: bytes, form: str) -> Array:
    """Return the pixels of an image: height x width, x channels where it has more than one.

    Raises
    ------
    CorruptDataError
        If they cannot be decoded.
    """
    try:
        height, width, channels, dtype = FACTS[form](data)
    except (HeaderError, KeyError) as error:
        raise CorruptDataError(f"an image cannot be decoded: it is {error}") from error
    if height * width > pixel_bound():
        raise CorruptDataError(
            f"an image says that it is {height} x {width}, more than {pixel_bound()} pixels; {TRUSTED}"
        )
    if form == "jpeg" and simplejpeg() is not None and _components(data) != 4:
        try:
            pixels = simplejpeg().decode_jpeg(data, "GRAY" if channels == 1 else "RGB")
            return np.asarray(pixels[..., 0] if channels == 1 else pixels)
        except ValueError:
            pass  # Pillow decodes more, and says more
    image = opened(data, form)
    if dtype == "uint16":
        array = np.asarray(image).astype(np.uint16)
    else:
        if image.mode != _MODES[channels]:
            image = image.convert(_MODES[channels])
        array = np.array(image)  # a copy, for Pillow's own cannot be written
    if array.shape[:2] != (height, width):
        raise CorruptDataError(f"an image of {array.shape[:2]} says that it is {height} x {width}")
    return array


def opened(data: bytes, form: str, scale: int = 1) -> Any:
    """Return an image of Pillow with its pixels decoded.

    The class of its format opens it: ``PIL.Image.open`` would try others, and warn of images that our own bound
    allows. With a `scale` of 2, 4 or 8, a JPEG is decoded at that part of its size.

    Raises
    ------
    CorruptDataError
        If it cannot be decoded.
    """
    images = pillow()
    plugin = importlib.import_module(f"PIL.{_PLUGINS[form]}ImagePlugin")
    try:
        image = getattr(plugin, f"{_PLUGINS[form]}ImageFile")(io.BytesIO(data))
        if scale > 1:
            image.draft(None, (max(1, image.width // scale), max(1, image.height // scale)))
        image.load()
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError) as error:
        raise CorruptDataError(
            f"an image of {len(data)} bytes cannot be decoded as {form}: {error}"
        ) from error
    except images.DecompressionBombError as error:
        raise CorruptDataError(
            f"an image is larger than Pillow decodes: {error}; if you trust it, raise PIL.Image.MAX_IMAGE_PIXELS"
        ) from error
    return image


def indices_of(data: bytes) -> Array:
    """Return the pixels of a PNG of one channel, or of a palette, as numbers: no scaling, no colours."""
    try:
        height, width, _, depth = png_header(data)
    except HeaderError as error:
        raise CorruptDataError(f"a mask cannot be decoded: it is {error}") from error
    if height * width > pixel_bound():
        raise CorruptDataError(f"a mask says that it is {height} x {width}, too many pixels")
    image = opened(data, "png")
    if image.mode not in ("1", "L", "P", "I;16", "I"):
        raise CorruptDataError(f"a mask has the mode {image.mode}; its table was changed by others")
    array = np.array(image)
    if depth == 16:
        return array.astype(np.uint16)
    if image.mode == "L" and depth in (2, 4):  # Pillow scales these to 0 ... 255
        return array // (255 // ((1 << depth) - 1))
    return array


def _components(data: bytes) -> int:
    """Return the number of components of a JPEG, whose header is known to be right."""
    at = 2
    while (
        data[at + 1] == 0xFF
        or not 0xC0 <= data[at + 1] <= 0xCF
        or data[at + 1] in (0xC4, 0xC8, 0xCC)
    ):
        if data[at + 1] == 0xFF:
            at += 1
        elif data[at + 1] == 0x01 or 0xD0 <= data[at + 1] <= 0xD7:
            at += 2
        else:
            at += 2 + (data[at + 2] << 8 | data[at + 3])
    return data[at + 9]
