"""JPEGs of a batch, decoded one beside the other into memory that was used before, as far down as they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import Type, field_of
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.loader.columns.stored_column import field_numbers
from tensorlake_spark.loader.decoding.image_batches import ImageFacts, decode_images
from tensorlake_spark.query.functions.needed_parts import Key, box_of
from tensorlake_spark.rows.binary_views import payloads

_SIZES = ("height", "width", "channels")


def image_batch(
    kind: Type, array: pa.Array, memory: BatchBuffers | None = None, key: Key | str | None = None
) -> Any:
    """Return the pixels of JPEGs; None if the column, or one of its values, is not so, or its type does as well.

    Parameters
    ----------
    kind : Type
        Of the column.
    array : pyarrow.Array
        As it is stored.
    memory : BatchBuffers, optional
        Where the pixels of images of one size go. Who holds a part of them keeps their memory.
    key : tuple or str, optional
        What is needed of each image: pixels below it may be anything.

    Returns
    -------
    ndarray, list of ndarray or None
        An image a row if there is memory, and all have one size. Else a list, if `key` says how far they are needed.
    """
    facts = _facts(kind, array)
    if facts is None:
        return None
    sizes = zip(facts.heights.tolist(), facts.widths.tolist(), facts.channels.tolist(), strict=True)
    shapes = [size if size[2] > 1 else size[:2] for size in sizes]
    needed = {shape: _rows(key, shape) for shape in {*shapes}}
    rows = [count for shape in shapes if (count := needed[shape]) is not None]
    is_known = len(rows) == len(shapes)
    out = None
    if memory is not None and len(needed) == 1:
        out = memory.array((len(shapes), *shapes[0]), np.uint8)
    elif not is_known:
        return None
    data = payloads(field_of(array, "data"), range(len(array)))
    try:
        found = decode_images(data, facts, None, out, rows if is_known else None)
    except CorruptDataError:
        return None  # the type says which sample it is, and what is wrong
    return [*found] if out is None else found


def _facts(kind: Type, array: pa.Array) -> ImageFacts | None:
    """Return what is known of a column of JPEGs without a null, None if it is another."""
    if not isinstance(kind, Image) or kind.file_format() != "jpeg" or not len(array):
        return None
    if field_of(array, "data").null_count:
        return None
    heights, widths, channels = (field_numbers(array, name) for name in _SIZES)
    return ImageFacts("jpeg", heights, widths, channels, field_numbers(array, "crc", -1))


def _rows(key: Key | str | None, shape: Sequence[int]) -> int | None:
    """Return how many first rows of an image a key needs, None if that is not known to be less than all."""
    box = box_of(key, tuple(shape)) if isinstance(key, tuple) else None
    return None if box is None else int(box[0].stop)
