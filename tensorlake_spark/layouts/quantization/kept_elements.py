"""Elements that a step cannot hold, kept apart with their own bits: NaN, infinities, and what would miss a bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.buffers import pack_ints, pack_values, unpack_values
from tensorlake_spark.layouts.coding.integer_sequences import gaps, unpack_ascending

Array = np.ndarray[Any, Any]


class Kept(NamedTuple):
    """Some elements of a block.

    Attributes
    ----------
    places : integer ndarray, shape (n,)
        Where they are in the block, in C order, ascending.
    values : ndarray, shape (n,)
        What they are, bit by bit.
    """

    places: Array
    values: Array


def pack(values: Array, kept: Array) -> tuple[int, bytes, bytes]:
    """Return how many elements of a block are kept, a buffer of their places and one of their bits.

    Parameters
    ----------
    values : ndarray
        The block.
    kept : bool ndarray of the same shape
        Which of its elements.

    Examples
    --------
    >>> block = np.array([1.0, np.nan, 2.0])
    >>> count, places, bits = pack(block, np.isnan(block))
    >>> unpack(count, places, bits, 3, block.dtype)
    Kept(places=array([1], dtype=uint32), values=array([nan]))
    """
    places = np.flatnonzero(kept)
    if not len(places):
        return 0, b"", b""
    return (
        len(places),
        pack_ints(gaps(places, np.array([0]))),
        pack_values(values.reshape(-1)[places]),
    )


def unpack(count: int, places: Any, bits: Any, size: int, dtype: np.dtype[Any]) -> Kept | None:
    """Return the elements that `pack` packed, None where there are none.

    Parameters
    ----------
    count, places, bits
        What `pack` returned.
    size : int
        Elements of the block.
    dtype : numpy.dtype
        Theirs.

    Raises
    ------
    CorruptDataError
        If they are not so many, or one lies outside of the block.
    """
    if count > size:
        raise CorruptDataError(f"{count} of {size} elements are kept apart")
    if not count:
        if len(places) or len(bits):
            raise CorruptDataError("no element is kept apart, but its bits are there")
        return None
    found = unpack_ascending(places, np.array([count]), size)
    return Kept(found, unpack_values([bits], [count], dtype))
