"""Many stored images of one column as pixels, straight into one array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.datasets.types.media import image_codecs
from tensorlake_spark.datasets.types.media.image_headers import MAX_PIXELS, pixel_bound
from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.loader.decoding.bad_image import BadImage
from tensorlake_spark.loader.decoding.jpegs import jpeg_pixels, scale_for
from tensorlake_spark.loader.decoding.region import WHOLE, Region
from tensorlake_spark.loader.decoding.resizing import shaped
from tensorlake_spark.loader.decoding.thread_limit import ThreadLimit
from tensorlake_spark.rows.checksum import crc32
from tensorlake_spark.tensor.spec import dtype_of


class ImageFacts(NamedTuple):
    """What is known of the images of a batch without their bytes.

    Attributes
    ----------
    format : str
        ``jpeg``, ``png``, ``webp`` or ``raw``.
    heights, widths, channels : int ndarray, shape (images,)
        Of each; anything where there is no image.
    crcs : int64 ndarray, shape (images,), or None
        CRC-32 of the bytes, -1 where it is not known. None where nothing is to be checked.
    dtype : str
        Of the pixels.
    """

    format: str
    heights: Array
    widths: Array
    channels: Array
    crcs: Array | None = None
    dtype: str = "uint8"


def decode_images(
    payloads: Sequence[Any],
    facts: ImageFacts,
    wanted: Sequence[Region | None] | None = None,
    out: Array | None = None,
) -> Array | list[Array | None]:
    """Return the pixels of a batch of images, in this thread.

    Parameters
    ----------
    payloads : sequence of bytes or memoryview, or None
        The bytes of each; None where a sample has no image.
    facts : ImageFacts
        Of each.
    wanted : sequence of Region or None, optional
        The part of each that is wanted; None for all of it.
    out : ndarray, optional
        Where to put them. It is used if it is C-contiguous and has the dtype and the shape; it may be longer than the
        batch.

    Returns
    -------
    ndarray or list
        One array where all have one shape, that is images x height x width (x channels); else a list with an array
        for each, and None where there is no image.

    Raises
    ------
    BadImage
        If an image cannot be decoded, or is not what was written. It is a CorruptDataError, and has its `number`.
    InvalidOptionError
        If a region does not lie in its image.

    Examples
    --------
    >>> image = np.zeros((4, 6, 3), "u1")
    >>> facts = ImageFacts("raw", *np.array([[4, 4], [6, 6], [3, 3]]))
    >>> decode_images([image.tobytes()] * 2, facts, [Region((0, 0, 2, 2))] * 2).shape
    (2, 2, 2, 3)
    """
    dtype = dtype_of(facts.dtype)
    regions = _regions(payloads, facts, wanted)
    shapes = _shapes(payloads, facts, regions)
    images: Any = [None] * len(payloads)
    if len(shapes) == 1 and None not in shapes:
        images = _target(out, (len(payloads), *shapes.pop()), dtype)  # type: ignore[misc]
    _check_crcs(payloads, facts.crcs)
    rows = images if isinstance(images, np.ndarray) else None
    columns = (
        payloads,
        regions,
        facts.heights.tolist(),
        facts.widths.tolist(),
        facts.channels.tolist(),
    )
    total = sum(len(payload) for payload in payloads if payload is not None)
    with ThreadLimit(total / max(1, len(payloads)) if facts.format == "jpeg" else np.inf):
        number = 0
        try:
            for number, (payload, region, height, width, channels) in enumerate(zip(*columns)):
                if payload is not None:
                    row = None if rows is None else rows[number]
                    image = _image(
                        payload, facts.format, height, width, channels, dtype, region, row
                    )
                    if rows is None:
                        images[number] = image
        except CorruptDataError as error:
            raise BadImage(number, str(error)) from error
    return images  # type: ignore[no-any-return]


def _image(
    payload: Any,
    form: str,
    height: int,
    width: int,
    channels: int,
    dtype: Any,
    region: Region | None,
    out: Array | None,
) -> Array:
    """Return one image, written into `out` if there is one."""
    if form == "jpeg":
        if type(payload) is not bytes and payload.format != "B":
            payload = payload.cast("B")
        if region is None:
            return jpeg_pixels(payload, height, width, channels, 1, out)
        scale = scale_for(region, height, width)
        image = jpeg_pixels(payload, height, width, channels, scale)
        image = shaped(image, region, scale, (height, width), out)
    else:
        image = _pixels(payload, form, height, width, channels, dtype)
        image = shaped(image, region or WHOLE, out=out)
    return image if out is not None else np.array(image, dtype)


def _regions(
    payloads: Sequence[Any], facts: ImageFacts, wanted: Sequence[Region | None] | None
) -> list[Region | None]:
    """Return what is wanted of each image, None for all of it."""
    if wanted is None:
        return [None] * len(payloads)
    out = [None if region is None or region == WHOLE else region for region in wanted]
    for number, region in enumerate(out):
        if region is None or payloads[number] is None:
            continue
        height, width = int(facts.heights[number]), int(facts.widths[number])
        for box, size in (
            (region.box, (height, width)),
            (region.window, region.size or (height, width)),
        ):
            if box is not None and not (
                0 <= box[0] <= size[0] - box[2]
                and 0 <= box[1] <= size[1] - box[3]
                and box[2] > 0
                and box[3] > 0
            ):
                raise InvalidOptionError(
                    f"a transform wants {box} (top, left, height, width) of image {number} of the batch, which is "
                    f"{size[0]} x {size[1]} there"
                )
    return out


def _shapes(
    payloads: Sequence[Any], facts: ImageFacts, regions: list[Region | None]
) -> set[tuple[int, ...] | None]:
    """Return the shapes that the results have; None if an image is not there."""
    out: set[tuple[int, ...] | None] = set()
    if len(payloads) and int((facts.heights.astype(np.int64) * facts.widths).max()) > pixel_bound():
        number = int((facts.heights.astype(np.int64) * facts.widths).argmax())
        raise BadImage(
            number,
            f"it says that it is {facts.heights[number]} x {facts.widths[number]}, more than {pixel_bound()} "
            f"pixels; if it is no bomb, set {MAX_PIXELS} to more",
        )
    sizes = zip(
        payloads, facts.heights.tolist(), facts.widths.tolist(), facts.channels.tolist(), regions
    )
    for payload, height, width, channels, region in sizes:
        if payload is None:
            out.add(None)
            continue
        if region is not None:
            height, width = region.shape(height, width)
        out.add((height, width) if channels == 1 else (height, width, channels))
    return out


def _check_crcs(payloads: Sequence[Any], crcs: Array | None) -> None:
    if crcs is None:
        return
    found = [-1 if payload is None else crc32(payload) for payload in payloads]
    wrong = np.flatnonzero(
        (np.array(found, np.int64) != crcs) & (crcs >= 0) & (np.array(found) >= 0)
    )
    if wrong.size:
        number = int(wrong[0])
        raise BadImage(
            number,
            f"its {len(payloads[number])} bytes are not those that were written (CRC-32 {found[number]}, not "
            f"{crcs[number]}); read an earlier version, or write the sample again",
        )


def _target(out: Array | None, shape: tuple[int, ...], dtype: Any) -> Array:
    if (
        out is not None
        and out.dtype == dtype
        and out.shape[1:] == shape[1:]
        and len(out) >= shape[0]
        and out.flags.c_contiguous
        and out.flags.writeable
    ):
        return out[: shape[0]]
    return np.empty(shape, dtype)


def _pixels(payload: Any, form: str, height: int, width: int, channels: int, dtype: Any) -> Array:
    """Return all pixels of one image that is no JPEG."""
    shape = (height, width) if channels == 1 else (height, width, channels)
    if form == "raw":
        if len(payload) != math.prod(shape) * dtype.itemsize:
            raise CorruptDataError(
                f"it has {len(payload)} bytes, which is not {dtype} of shape {shape}"
            )
        return np.frombuffer(payload, dtype.newbyteorder("<")).reshape(shape)
    image = image_codecs.decoded(bytes(payload), form)
    if image.shape != shape or image.dtype != dtype:
        raise CorruptDataError(
            f"it is {image.dtype} of shape {image.shape}, and its sample says {dtype} of {shape}"
        )
    return image
