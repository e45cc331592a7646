"""Where files of samples are cut into blocks, by what the log says of them alone."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MOST_BYTES = 2 << 20
"""Bytes of a block of a large table: some row groups."""

_LEAST_BYTES = 64 << 10
_WANTED = 256  # blocks of a small table, or a shuffle of blocks would move little


def block_starts(counts: Array, sizes: Array) -> Array:
    """Return where blocks begin, and at the end how many samples there are.

    A block is a run of samples of one file. Blocks have about the same number of bytes: 2 MiB, or less where the
    table is smaller than 512 MiB. No footer is read for it.

    Parameters
    ----------
    counts : int64 ndarray
        The samples of each file, in the order in which they lie.
    sizes : int64 ndarray
        The bytes of each file.

    Examples
    --------
    >>> block_starts(np.array([4, 3]), np.array([128 << 10, 64 << 10])).tolist()
    [0, 2, 4, 7]
    """
    aim = min(max(int(sizes.sum()) // _WANTED, _LEAST_BYTES), MOST_BYTES)
    blocks = np.minimum(np.maximum(1, sizes // aim), np.maximum(1, counts))
    file = np.repeat(np.arange(len(counts)), blocks)
    within = np.arange(len(file)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    starts = (np.cumsum(counts) - counts)[file] + within * counts[file] // blocks[file]
    found = np.append(starts, counts.sum()).astype(np.int64)
    out: Array = found[np.append(True, np.diff(found) > 0)]
    return out
