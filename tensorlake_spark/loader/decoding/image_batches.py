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
from tensorlake_spark.loader.decoding.array_stacking import target
from tensorlake_spark.loader.decoding.bad_image import BadImage
from tensorlake_spark.loader.decoding.image_shaping import shaped
from tensorlake_spark.loader.decoding.jpegs import jpeg_pixels, jpeg_rows, scale_for
from tensorlake_spark.loader.decoding.region import WHOLE, Box, Region
from tensorlake_spark.loader.decoding.thread_limit import ThreadLimit
from tensorlake_spark.rows.checksum import crc_held
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
    is_mask : bool
        Whether pixels are numbers of classes: they are read as they are, also those of a palette, and what is resized
        takes the nearest one.
    """

    format: str
    heights: Array
    widths: Array
    channels: Array
    crcs: Array | None = None
    dtype: str = "uint8"
    is_mask: bool = False


def decode_images(
    payloads: Sequence[Any],
    facts: ImageFacts,
    wanted: Sequence[Region | None] | None = None,
    out: Array | None = None,
    rows: Sequence[int] | None = None,
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
    rows : sequence of int, optional
        How many first rows of each image are needed, where all of it is wanted: pixels below them may be anything.

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
    batch = _Batch(payloads, facts, wanted, rows)
    _check_crcs(payloads, facts.crcs)
    total = sum([len(payload) for payload in payloads if payload is not None])
    with ThreadLimit(total / max(1, len(payloads)) if facts.format == "jpeg" else math.inf):
        shape = batch.shape()
        if shape is None:
            return [batch.image(number) for number in range(len(payloads))]
        pixels = target(out, (len(payloads), *shape), batch.dtype)
        if facts.format == "jpeg" and batch.regions is None and pixels.dtype == np.uint8:
            for number in jpeg_rows(batch.payloads, pixels, rows):
                batch.image(number, pixels[number])
        else:
            for number in range(len(payloads)):
                batch.image(number, pixels[number])
        return pixels


class _Batch:
    """What is to be done with each image of a batch."""

    def __init__(
        self, payloads: Sequence[Any], facts: ImageFacts, wanted: Any, rows: Sequence[int] | None
    ) -> None:
        self.payloads, self.rows = payloads, rows
        if facts.format == "jpeg":  # what simplejpeg takes; a buffer of Arrow is of signed bytes
            self.payloads = [
                p
                if p is None or type(p) is bytes or memoryview(p).format == "B"
                else memoryview(p).cast("B")
                for p in payloads
            ]
        self.form, self.dtype, self.is_mask = facts.format, dtype_of(facts.dtype), facts.is_mask
        self.heights, self.widths = facts.heights.tolist(), facts.widths.tolist()
        self.channels = facts.channels.tolist()
        _check_sizes(facts.heights, facts.widths)
        self.regions = None if wanted is None else self._checked(wanted)

    def _checked(self, wanted: Sequence[Region | None]) -> list[Region | None] | None:
        """Return what is wanted of each image, None for all of it."""
        out = [None if region is None or region == WHOLE else region for region in wanted]
        for number, region in enumerate(out):
            if region is not None and self.payloads[number] is not None:
                size = self.heights[number], self.widths[number]
                image = f"image {number} of the batch" if len(out) > 1 else "the image"
                _check_inside(region.box, size, image)
                _check_inside(region.window, region.size or size, image)
        return None if out.count(None) == len(out) else out

    def shape(self) -> tuple[int, ...] | None:
        """Return the one shape that all results have, None if they have several, or an image is not there."""
        # A buffer of Arrow cannot be compared with None.
        if not self.payloads or any(payload is None for payload in self.payloads):
            return None
        sizes = {*zip(self.heights, self.widths, self.channels)}
        if self.regions is not None:
            facts = zip(self.regions, self.heights, self.widths, self.channels)
            sizes = {
                ((h, w) if region is None else region.shape(h, w)) + (c,) for region, h, w, c in facts
            }  # fmt: skip
        if len(sizes) > 1:
            return None
        height, width, channels = sizes.pop()
        return (height, width) if channels == 1 else (height, width, channels)

    def image(self, number: int, out: Array | None = None) -> Array | None:
        """Return an image, written into `out` if there is one."""
        if self.payloads[number] is None:
            return None
        try:
            return self._image(number, out)
        except CorruptDataError as error:
            raise BadImage(number, str(error)) from error

    def _image(self, number: int, out: Array | None) -> Array:
        payload = self.payloads[number]
        region = None if self.regions is None else self.regions[number]
        size = self.heights[number], self.widths[number]
        scale = 1
        if self.form == "jpeg":
            facts = (*size, self.channels[number])
            if region is None:
                rows = None if self.rows is None else self.rows[number]
                return jpeg_pixels(payload, *facts, 1, out, rows)
            scale = scale_for(region, *size)
            rows = None if region.box is None else region.box[0] + region.box[2]
            image = jpeg_pixels(payload, *facts, scale, rows=rows)
        elif self.is_mask:
            image = _classes(bytes(payload), *size, self.dtype)
        else:
            image = _pixels(payload, self.form, *size, self.channels[number], self.dtype)
        image = shaped(image, region or WHOLE, scale, size, out, self.is_mask)
        return image if out is not None else np.array(image, self.dtype)


def _check_sizes(heights: Array, widths: Array) -> None:
    pixels = heights.astype(np.int64) * widths
    if len(pixels) and pixels.max() > pixel_bound():
        number = int(pixels.argmax())
        raise BadImage(
            number,
            f"it says that it is {heights[number]} x {widths[number]}, more than {pixel_bound()} pixels; if it is "
            f"no bomb, set {MAX_PIXELS} to more",
        )


def _check_inside(box: Box | None, size: tuple[int, int], image: str) -> None:
    if box is not None and not (
        0 <= box[0] <= size[0] - box[2]
        and 0 <= box[1] <= size[1] - box[3]
        and box[2] > 0
        and box[3] > 0
    ):
        raise InvalidOptionError(
            f"a transform wants {box} (top, left, height, width) of {image}, which is {size[0]} x {size[1]} there"
        )


def _check_crcs(payloads: Sequence[Any], crcs: Array | None) -> None:
    if crcs is None:
        return
    found = [-1 if payload is None else crc_held(payload) for payload in payloads]
    if found == crcs.tolist():
        return
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


def _classes(data: bytes, height: int, width: int, dtype: Any) -> Array:
    """Return the pixels of a mask."""
    found = image_codecs.indices_of(data)
    if found.shape != (height, width):
        raise CorruptDataError(
            f"it is of shape {found.shape}, and its sample says {(height, width)}"
        )
    if dtype.kind == "b":
        return np.asarray(found != 0)
    if not np.can_cast(found.dtype, dtype):
        raise CorruptDataError(f"it is {found.dtype}, and its sample says {dtype}")
    return found.astype(dtype, copy=False)
