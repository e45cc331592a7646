"""Many stored images of one column as pixels, straight into one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.datasets.types.base import Array
from tensorlake_spark.datasets.types.media import image_codecs
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.decoding.bad_image import BadImage
from tensorlake_spark.loader.decoding.region import WHOLE, Region
from tensorlake_spark.loader.decoding.resizing import shaped
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
    bad: dict[int, BadImage] | None = None,
) -> Array | list[Array | None]:
    """Return the pixels of a batch of images, in this thread.

    Parameters
    ----------
    payloads : sequence of memoryview or bytes, or None
        The bytes of each; None where a sample has no image.
    facts : ImageFacts
        Of each.
    wanted : sequence of Region or None, optional
        The part of each that is wanted; None for all of it.
    out : ndarray, optional
        Where to put them. It is used if it is C-contiguous, has the right dtype and shape, or is longer than the batch.
    bad : dict, optional
        Takes the error of each image that cannot be decoded; the image is zeros, or None in a list.

    Returns
    -------
    ndarray or list
        One array where all have one shape, that is images x height x width (x channels); else a list with an array
        for each, and None where there is no image.

    Raises
    ------
    BadImage
        If an image cannot be decoded, and `bad` is not given. It is a CorruptDataError.

    Examples
    --------
    >>> image = np.zeros((4, 6, 3), "u1")
    >>> facts = ImageFacts("raw", *np.array([[4, 4], [6, 6], [3, 3]]))
    >>> decode_images([image.tobytes()] * 2, facts, [Region((0, 0, 2, 2))] * 2).shape
    (2, 2, 2, 3)
    """
    regions = [WHOLE if region is None else region for region in wanted or [WHOLE] * len(payloads)]
    heights, widths, channels = (
        column.tolist() for column in (facts.heights, facts.widths, facts.channels)
    )
    dtype = dtype_of(facts.dtype)
    shapes = [
        None if payload is None else region.shape(h, w) + (() if c == 1 else (c,))
        for payload, region, h, w, c in zip(payloads, regions, heights, widths, channels)
    ]
    alike = {*shapes}
    images: Any = [None] * len(payloads)
    if len(alike) == 1 and None not in alike:
        images = _target(out, (len(payloads), *next(iter(alike))), dtype)  # type: ignore[misc]
    crcs = None if facts.crcs is None else facts.crcs.tolist()
    for number, payload in enumerate(payloads):
        if payload is None:
            continue
        try:
            if crcs is not None and crcs[number] >= 0 and crc32(payload) != crcs[number]:
                raise CorruptDataError(
                    f"its {len(payload)} bytes are not those that were written (CRC-32 {crc32(payload)}, not "
                    f"{crcs[number]}); read an earlier version, or write the sample again"
                )
            image = _pixels(
                payload, facts.format, heights[number], widths[number], channels[number], dtype
            )
            images[number] = shaped(image, regions[number])
        except CorruptDataError as error:
            found = BadImage(number, str(error))
            if bad is None:
                raise found from error
            bad[number] = found
            if isinstance(images, np.ndarray):
                images[number] = 0
    return images  # type: ignore[no-any-return]


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
    """Return all pixels of one image."""
    shape = (height, width) if channels == 1 else (height, width, channels)
    if form == "raw":
        if len(payload) != int(np.prod(shape, dtype=object)) * dtype.itemsize:
            raise CorruptDataError(
                f"it has {len(payload)} bytes, which is not {dtype} of shape {shape}"
            )
        return np.frombuffer(payload, dtype.newbyteorder("<")).reshape(shape)
    image = image_codecs.decoded(bytes(payload), form)
    if image.shape != shape or image.dtype != dtype:
        raise CorruptDataError(
            f"it is {image.dtype} of shape {image.shape}, and its sample says {dtype} of shape {shape}"
        )
    return image
