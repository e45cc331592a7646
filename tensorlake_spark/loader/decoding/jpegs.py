"""JPEG by simplejpeg, at its size or at a half, a quarter or an eighth of it. Pillow does what simplejpeg does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.datasets.types.media import image_codecs
from tensorlake_spark.datasets.types.media.image_headers import HeaderError, jpeg_facts
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.decoding.jpeg_tops import decode_top, frame_header
from tensorlake_spark.loader.decoding.region import Region

_HEAD = 1024  # bytes in which the frame header of most files lies


def jpeg_pixels(
    payload: Any,
    height: int,
    width: int,
    channels: int,
    scale: int = 1,
    out: Array | None = None,
    rows: int | None = None,
) -> Array:
    """Return the pixels of one JPEG.

    Parameters
    ----------
    payload : bytes or memoryview
        Of unsigned bytes.
    height, width, channels : int
        Of the whole image, as its sample says. More is never decoded.
    scale : int
        1, 2, 4 or 8, no more than height and width: how many pixels of the image become one, along each axis.
    out : uint8 ndarray, optional
        C-contiguous, of the shape of the result.
    rows : int, optional
        How many first rows are needed, with a `scale` of 1: those below may be anything. By default all.

    Raises
    ------
    CorruptDataError
        If it cannot be decoded, or has another shape.
    """
    shape: tuple[int, ...] = -(-height // scale), -(-width // scale)
    if channels != 1:
        shape = *shape, channels
    fast = image_codecs.simplejpeg()
    if fast is not None and _is_plain(payload, height, width, channels):
        if out is None:
            out = np.empty(shape, np.uint8)
        if (
            rows is not None
            and scale == 1
            and decode_top(fast.decode_jpeg, payload, rows, channels, out)
        ):
            return out
        color = "RGB" if channels == 3 else "GRAY"
        try:
            if scale == 1:
                found = fast.decode_jpeg(payload, color, buffer=out)
            else:
                found = fast.decode_jpeg(payload, color, False, False, *shape[:2], buffer=out)
            if found.shape[:2] == shape[:2]:
                return out
        except ValueError:
            pass  # Pillow decodes more, and says more
    image = _by_pillow(bytes(payload), height, width, channels, scale)
    if image.shape != shape:
        raise CorruptDataError(f"a JPEG at 1/{scale} of its size is {image.shape}, not {shape}")
    if out is None:
        return image
    out[...] = image
    return out


def jpeg_rows(
    payloads: Sequence[Any], out: Array, rows: Sequence[int] | None = None
) -> Iterator[int]:
    """Write JPEGs of one size into the rows of an array; yield the numbers of those that `jpeg_pixels` has to decode.

    Nothing but simplejpeg is called for an image that is as it is said to be.

    Parameters
    ----------
    payloads : sequence of bytes or memoryview
        Of unsigned bytes.
    out : uint8 ndarray, shape (images, height, width) or (images, height, width, 3)
        C-contiguous.
    rows : sequence of int, optional
        How many first rows of each are needed: those below may be anything. By default all.
    """
    shape = out.shape[1:] if out.ndim == 4 else (*out.shape[1:], 1)
    simplejpeg = image_codecs.simplejpeg()
    if simplejpeg is None or shape[2] not in (1, 3):
        yield from range(len(payloads))
        return
    decode, color = simplejpeg.decode_jpeg, "RGB" if shape[2] == 3 else "GRAY"
    frame = frame_header(*shape)
    for number, (payload, row) in enumerate(zip(payloads, out)):
        if rows is not None and decode_top(decode, payload, rows[number], shape[2], row):
            continue
        if frame in bytes(payload[:_HEAD]):
            try:
                if decode(payload, color, False, False, 0, 0, 1, row).shape == shape:
                    continue
            except ValueError:
                pass
        yield number


def scale_for(region: Region, height: int, width: int) -> int:
    """Return at which part of its size a JPEG is decoded for a region: 1, 2, 4 or 8 pixels become one.

    Examples
    --------
    >>> scale_for(Region(size=(224, 224)), 1500, 2000), scale_for(Region((0, 0, 500, 500), (224, 224)), 1500, 2000)
    (4, 2)
    """
    if region.size is None or region.exact:
        return 1
    if region.box is not None:
        height, width = region.box[2:]
    most = min(height // region.size[0], width // region.size[1])
    return 1 if most < 2 else 2 if most < 4 else 4 if most < 8 else 8


def _is_plain(payload: Any, height: int, width: int, channels: int) -> bool:
    """Whether a JPEG has the frame header that it should have; one in CMYK has not, and Pillow turns it into RGB."""
    if channels not in (1, 3):
        return False
    frame = frame_header(height, width, channels)
    return frame in bytes(payload[:_HEAD]) or frame in bytes(payload)


def _by_pillow(data: bytes, height: int, width: int, channels: int, scale: int) -> Array:
    try:
        found = jpeg_facts(data)[:3]
    except HeaderError as error:
        raise CorruptDataError(f"it is {error}") from error
    if found != (height, width, channels):
        raise CorruptDataError(
            f"it is a JPEG of {found}, and its sample says {height, width, channels}"
        )
    image = image_codecs.opened(data, "jpeg", scale)
    mode = "L" if channels == 1 else "RGB"
    return np.asarray(image if image.mode == mode else image.convert(mode))
