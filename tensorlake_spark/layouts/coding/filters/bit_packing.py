"""The step ``pack``: words in as few bits as the largest of each sixteen needs. It stands in place of a compressor.

A word is found without those before it: a part of a block is unpacked alone, and no entropy has to be decoded. So
compiled loops decode packed differences several times as fast as compressed ones.

A payload is the width of each group of `GROUP` words (one byte), and then the bits of all words, each in as many
as its group is wide, lowest first, one word after the other. The last group is filled up with zeros, so that every
group has whole bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.layouts.coding.filters.bin_coding import SHORT, add_bits, joined_bits
from tensorlake_spark.layouts.kernels.steps import GROUP

Array = np.ndarray[Any, Any]

_PACKING = "tensorlake_spark.layouts.kernels.packing"
_PIECE = 1 << 10  # groups that NumPy looks at together: what is made of them stays in the cache


def encode(words: Array) -> bytes:
    """Return the payload of some words.

    Parameters
    ----------
    words : unsigned integer ndarray, not empty
        Any shape; C order counts.

    Examples
    --------
    >>> payload = encode(np.array([3, 1, 2], np.uint32))
    >>> len(payload), decode(payload, (3,), (3,), np.dtype("<u4")).tolist()
    (5, [3, 1, 2])
    """
    flat = np.ascontiguousarray(words).reshape(-1)
    loops = _compiled("pack", flat.size, flat.dtype)
    if loops is not None:
        return bytes(loops.encode(flat))
    groups = np.zeros((-(-flat.size // GROUP), GROUP), flat.dtype)
    groups.reshape(-1)[: flat.size] = flat
    powers = np.ones(8 * flat.itemsize, flat.dtype) << np.arange(
        8 * flat.itemsize, dtype=flat.dtype
    )
    # A word has as many bits as there are powers of two up to it.
    joined = np.bitwise_or.reduce(groups, axis=1)
    widths = np.asarray(np.searchsorted(powers, joined, side="right"))
    parts = [widths.astype(np.uint8).tobytes()]
    for start in range(0, len(groups), _PIECE):  # every group has whole bytes
        each = np.repeat(widths[start : start + _PIECE].astype(np.uint64), GROUP)
        some = groups[start : start + _PIECE].reshape(-1).astype(np.uint64)
        parts.append(joined_bits(some, each))
    return b"".join(parts)


def decode(payload: Any, shape: Sequence[int], near: Sequence[int], word: np.dtype[Any]) -> Array:
    """Return the words of the beginning of a block, those before `near` on every axis.

    Parameters
    ----------
    payload : bytes-like
        What `encode` returned for a block of `shape`.
    shape, near : sequence of int
        Of one rank, 1 at least. Nothing after the last word that is wanted is unpacked.
    word : numpy.dtype
        Unsigned dtype of the words.

    Returns
    -------
    ndarray, shape (math.prod(near),)

    Raises
    ------
    CorruptDataError
        If the payload does not hold just a block of `shape`.

    Examples
    --------
    >>> x = np.arange(40, dtype=np.uint16).reshape(4, 10)
    >>> decode(encode(x), (4, 10), (2, 3), x.dtype).tolist()
    [0, 1, 2, 10, 11, 12]
    """
    widths, data = parts(payload, math.prod(shape), word)
    lines = np.arange(math.prod(shape[:-1])).reshape(tuple(shape[:-1]))
    wanted = lines[tuple(slice(0, n) for n in near[:-1])].reshape(-1)
    loops = _compiled("unpack", math.prod(near), word)
    if loops is not None:
        out = np.empty((wanted.size, near[-1]), word)
        loops.decode_into(data, widths, wanted, shape[-1], out)
        return out.reshape(-1)
    if not wanted.size:
        return np.empty(0, word)
    rows, columns = int(wanted[-1]) + 1, shape[-1]
    groups = -(-((rows - 1) * columns + near[-1]) // GROUP)
    words = np.zeros(max(groups * GROUP, rows * columns), word)
    _unpack(data, widths[:groups], words)
    part = words[: rows * columns].reshape(rows, columns)[wanted, : near[-1]]
    return np.ascontiguousarray(part).reshape(-1)


def parts(payload: Any, count: int, word: np.dtype[Any]) -> tuple[Array, Array]:
    """Return the widths of the groups of a payload, and the bytes of its bits: read-only uint8 arrays.

    Raises
    ------
    CorruptDataError
        If it does not hold just so many words.

    Examples
    --------
    >>> parts(encode(np.array([3, 1, 2], np.uint32)), 3, np.dtype("u4"))[0].tolist()
    [2]
    """
    held = np.frombuffer(payload, np.uint8)
    held.flags.writeable = False  # numba has a loop of its own for memory that may be written to
    groups = -(-count // GROUP)
    widths, data = held[:groups], held[groups:]
    if len(widths) != groups:
        raise CorruptDataError(f"{len(widths)} widths of packed words where {groups} are needed")
    most = int(widths.max(initial=0))
    if most > 8 * word.itemsize:
        raise CorruptDataError(f"words of {8 * word.itemsize} bits are packed in {most}")
    needed = int(widths.sum(dtype=np.int64)) * GROUP // 8
    if len(data) != needed:
        raise CorruptDataError(f"{len(data)} bytes of packed words where {needed} are needed")
    return widths, data


def _unpack(data: Array, widths: Array, out: Array) -> None:
    """Add the words of the first groups to zeros, by NumPy."""
    nbytes = int(widths.sum(dtype=np.int64)) * GROUP // 8
    held = np.zeros((nbytes >> 3) + 2, "<u8")
    held.view(np.uint8)[:nbytes] = data[:nbytes]
    begin = 0
    for start in range(0, len(widths), _PIECE):
        some = np.repeat(widths[start : start + _PIECE], GROUP)
        part = out[start * GROUP : start * GROUP + len(some)]
        begin = add_bits(held, begin, some, part)


def _compiled(loop: str, count: int, word: np.dtype[Any]) -> Any:
    """Return the module of compiled loops if so many words are worth a call, else None."""
    nbytes = count * word.itemsize
    return compiled(_PACKING, loop, word.itemsize, nbytes=nbytes) if nbytes > SHORT else None
