"""JPEGs of a batch, decoded one beside the other into memory that was used before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import Type, field_of
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.loader.columns.stored_column import field_numbers
from tensorlake_spark.loader.decoding.image_batches import ImageFacts, decode_images
from tensorlake_spark.rows.row import payloads

_SIZES = ("height", "width", "channels")


def image_batch(kind: Type, array: pa.Array, memory: BatchBuffers) -> np.ndarray[Any, Any] | None:
    """Return the pixels of JPEGs of one size, an image a row; None if the column, or one of its values, is not so.

    Parameters
    ----------
    kind : Type
        Of the column.
    array : pyarrow.Array
        As it is stored.
    memory : BatchBuffers
        Where the pixels go. Who holds a part of them keeps their memory.
    """
    if not isinstance(kind, Image) or kind.file_format() != "jpeg" or not len(array):
        return None
    data = field_of(array, "data")
    if data.null_count:
        return None
    heights, widths, channels = (field_numbers(array, name) for name in _SIZES)
    shape = int(heights[0]), int(widths[0]), int(channels[0])
    if any((one != n).any() for one, n in zip((heights, widths, channels), shape, strict=True)):
        return None
    crcs = field_numbers(array, "crc", -1)
    facts = ImageFacts("jpeg", heights, widths, channels, crcs)
    out = memory.array((len(array), *(shape if shape[2] > 1 else shape[:2])), np.uint8)
    try:
        found = decode_images(payloads(data, range(len(array))), facts, None, out)
    except CorruptDataError:
        return None  # the type says which sample it is, and what is wrong
    return found if isinstance(found, np.ndarray) else None
