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
from tensorlake_spark.rows.row import payloads

_SIZES = ("height", "width", "channels")


def image_batch(
    kind: Type, array: pa.Array, memory: BatchBuffers, key: Key | str | None = None
) -> np.ndarray[Any, Any] | None:
    """Return the pixels of JPEGs of one size, an image a row; None if the column, or one of its values, is not so.

    Parameters
    ----------
    kind : Type
        Of the column.
    array : pyarrow.Array
        As it is stored.
    memory : BatchBuffers
        Where the pixels go. Who holds a part of them keeps their memory.
    key : tuple or str, optional
        What is needed of each image: pixels below it may be anything.
    """
    facts = _facts(kind, array)
    if facts is None:
        return None
    sizes = facts.heights, facts.widths, facts.channels
    shape: tuple[int, ...] = tuple(int(size[0]) for size in sizes)
    if any((size != n).any() for size, n in zip(sizes, shape, strict=True)):
        return None
    shape = shape if shape[2] > 1 else shape[:2]
    rows = _rows(key, shape)
    wanted = None if rows is None else [rows] * len(array)
    out = memory.array((len(array), *shape), np.uint8)
    try:
        found = decode_images(_payloads(array), facts, None, out, wanted)
    except CorruptDataError:
        return None  # the type says which sample it is, and what is wrong
    return found if isinstance(found, np.ndarray) else None


def image_tops(kind: Type, array: pa.Array, key: Key) -> list[Any] | None:
    """Return the pixels of JPEGs of any sizes; None if the column, or one of its values, is not so.

    Parameters
    ----------
    kind : Type
        Of the column.
    array : pyarrow.Array
        As it is stored.
    key : tuple
        What is needed of each image: pixels below it may be anything.
    """
    facts = _facts(kind, array)
    if facts is None:
        return None
    shapes = np.stack([facts.heights, facts.widths, facts.channels], axis=1).tolist()
    found = [_rows(key, shape if shape[2] > 1 else shape[:2]) for shape in shapes]
    wanted = [rows for rows in found if rows is not None]
    if len(wanted) < len(found):
        return None
    try:
        return [*decode_images(_payloads(array), facts, None, None, wanted)]
    except CorruptDataError:
        return None  # as above


def _facts(kind: Type, array: pa.Array) -> ImageFacts | None:
    """Return what is known of a column of JPEGs without a null, None if it is another."""
    if not isinstance(kind, Image) or kind.file_format() != "jpeg" or not len(array):
        return None
    if field_of(array, "data").null_count:
        return None
    heights, widths, channels = (field_numbers(array, name) for name in _SIZES)
    return ImageFacts("jpeg", heights, widths, channels, field_numbers(array, "crc", -1))


def _payloads(array: pa.Array) -> Any:
    return payloads(field_of(array, "data"), range(len(array)))


def _rows(key: Key | str | None, shape: Sequence[int]) -> int | None:
    """Return how many first rows of an image a key needs, None if that is not known to be less than all."""
    box = box_of(key, tuple(shape)) if isinstance(key, tuple) else None
    return None if box is None else int(box[0].stop)
