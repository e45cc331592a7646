"""A dense block laid out for the compiled loops: which of its axes they go along, and where its lines begin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tensorlake_spark.layouts.kernels import loops
from tensorlake_spark.layouts.kernels.packing import MORE
from tensorlake_spark.layouts.kernels.steps import BAND, GROUP, PREDICTED, Steps, long_axes

Array = np.ndarray[Any, Any]
Coded = tuple[Array, Array, bool, bool]  # the first arguments of every loop that decodes


def warm(loop: str, itemsize: int, encodes: bool) -> None:
    """Have a loop compiled, or loaded from numba's cache, for words of so many bytes, by a block of zeros.

    Parameters
    ----------
    loop : str
        `Steps.loop`.
    itemsize : int
        Bytes of a word.
    encodes : bool
        Which of its two directions.
    """
    axis = {"lines": -1, "rows": -2}.get(loop, 0)
    floats = loop in ("float_lorenzo", "packed_floats")
    steps = Steps(axis, loop == "lorenzo" or floats, not floats, True, True, floats)
    block = np.zeros((2, 3, 4), f"u{itemsize}")
    whole = [slice(0, n) for n in block.shape]
    if loop == "fits":
        fits(block)
    elif loop == "packed_floats":
        zeros = np.frombuffer(bytes(2), np.uint8)  # the widths of its two groups
        first = np.zeros((1, 3), np.int64)
        decode_packed_into([zeros], steps, block.shape, first, first + block.shape, first, block)
    elif encodes:
        encode(block, steps)
    else:
        flat = np.zeros(block.nbytes, np.uint8)
        decode_into(flat, steps, block.shape, whole, block)


def fits(words: Array) -> bool:
    """Return whether all floats of a block lie between the magnitudes that ``lorenzo(float)`` adds, or are zero."""
    low, high = PREDICTED[words.itemsize]
    word = words.dtype.type
    return bool(loops.lie_between(words.reshape(-1), word(low), word(high)))


def encode(words: Array, steps: Steps) -> Array:
    """Return the bytes of a block's words after the steps.

    Parameters
    ----------
    words : unsigned integer ndarray
        C-contiguous, not empty, of rank 1 at least.
    steps : Steps
        What to do.
    """
    plain = np.empty(words.size, words.dtype)
    flat = plain.view(np.uint8)
    shuffled = steps.shuffled and words.itemsize > 1
    columns = words.shape[-1]
    if steps.lorenzo:
        block = words.reshape(_three(words.shape))
        if steps.floats:
            what = block, _floats(block), *_guess(columns, words.dtype)
            loops.take_float_lorenzo(*what, steps.zigzag, shuffled, flat, plain)
        else:
            loops.take_lorenzo(block, steps.ordered, steps.zigzag, shuffled, flat, plain)
    elif steps.axis == -2:
        rows = words.shape[-2]
        loops.take_rows(words.reshape(-1, rows, columns), steps.zigzag, shuffled, flat, plain)
    elif steps.axis == -1:
        loops.take_lines(words.reshape(-1, columns), steps.zigzag, shuffled, flat, plain)
    else:
        loops.take_plain(words.reshape(-1), steps.zigzag, shuffled, flat, plain)
    return flat


def _three(shape: Sequence[int]) -> tuple[int, int, int]:
    long = [shape[k] for k in long_axes(shape)]
    a, b, c = [1] * (3 - len(long)) + long
    return a, b, c


def decode_into(
    flat: Array, steps: Steps, shape: Sequence[int], src: Sequence[slice], out: Array
) -> None:
    """Undo the steps of a block, and put a part of it into a result.

    Parameters
    ----------
    flat : uint8 array
        The decompressed bytes, C-contiguous.
    steps : Steps
        What was done.
    shape : sequence of int
        Of the block's words, rank 1 at least.
    src : sequence of slice
        The part, with steps of one.
    out : unsigned integer ndarray
        Where it goes, of the part's shape, with any strides.
    """
    if not out.size:
        return
    plain = flat.view(out.dtype)
    how = (flat, plain, steps.shuffled and out.itemsize > 1, steps.zigzag)
    if steps.lorenzo:
        put = partial(loops.put_lorenzo, *how, steps.ordered)
        if steps.floats:
            put = partial(_put_floats, loops.put_float_lorenzo, how)
        _put_lorenzo(put, shape, src, out)
    elif steps.axis == -2:
        _put_rows(how, shape, src, out)
    elif steps.axis == -1:
        _put_lines(how, shape, src, out)
    else:
        is_whole = out.size == plain.size and out.flags.c_contiguous
        whole = out.reshape(-1) if is_whole else np.empty(plain.size, out.dtype)
        loops.put_plain(*how, whole)
        if not is_whole:
            out[...] = whole.reshape(shape)[tuple(src)]


def decode_packed_into(
    payloads: Sequence[Array],
    steps: Steps,
    shape: Sequence[int],
    starts: Array,
    stops: Array,
    places: Array,
    out: Array,
) -> int | None:
    """Undo lorenzo(float) of blocks of packed words, and put a part of each into a result.

    Parameters
    ----------
    payloads : sequence of uint8 array
        As `packing.encode` made them, at least one; read-only.
    steps, shape
        As for `decode_into`, of every block.
    starts, stops : int64 ndarray, shape (blocks, ndim)
        Which part of each.
    places : int64 ndarray, shape (blocks, ndim)
        Where in the result it begins.
    out : unsigned integer ndarray
        The result.

    Returns
    -------
    int or None
        The number of the first payload that is none of such a block, -1 if all are right; None if the result does not
        ascend in memory, so that nothing was done.
    """
    found = _memory(out, out.ndim)
    if found is None:
        return None
    memory, _, strides = found
    long = long_axes(shape)
    leap, step = [0, 0, *(strides[k] for k in long[:-1])][-2:]
    first, last = np.zeros((len(payloads), 3), np.int64), np.ones((len(payloads), 3), np.int64)
    first[:, -len(long) :], last[:, -len(long) :] = starts[:, long], stops[:, long]
    before = (last[:, :2].prod(axis=1) * (last[:, 2] - first[:, 2]))[first[:, :2].any(axis=1)]
    scratch = np.empty(before.max(initial=0), out.dtype)
    held, begins = _together(payloads)
    sizes = np.array([payload.size for payload in payloads])
    _, rows, columns = _three(shape)
    line = np.empty(columns, out.dtype)
    tail = np.empty(line.nbytes + MORE + 16, np.uint8)
    return int(
        loops.put_packed_blocks(
            held, begins, sizes, steps.zigzag, -(-math.prod(shape) // GROUP), rows, columns,
            first, last, places @ np.array([*strides, 1]), memory, _floats(memory), step, leap,
            scratch, _floats(scratch), line, *_guess(columns, out.dtype), tail,
        )
    )  # fmt: skip


def _together(arrays: Sequence[Array]) -> tuple[Array, Array]:
    """Return one array of bytes in which all of some arrays lie, and where each begins in it.

    Nothing is copied: what is between them may be anybody's memory, and nobody may look at it.
    """
    at = [int(array.__array_interface__["data"][0]) for array in arrays]
    low, high = min(at), max(a + array.size for a, array in zip(at, arrays, strict=True))
    lowest = arrays[at.index(low)]
    held = np.lib.stride_tricks.as_strided(lowest, (high - low,), (1,), writeable=False)
    return held, np.array(at) - low


def _put_lines(how: Coded, shape: Sequence[int], src: Sequence[slice], out: Array) -> None:
    wanted = _numbers(shape[:-1], src[:-1])
    first, stop = src[-1].start, src[-1].stop
    found = _memory(out, 1) if first == 0 else None
    if found is not None:
        memory, places, _ = found
        loops.put_lines(*how, shape[-1], wanted, stop, memory, places)
        return
    lines = np.empty((wanted.size, stop), out.dtype)
    places = np.arange(wanted.size, dtype=np.int64) * stop
    loops.put_lines(*how, shape[-1], wanted, stop, lines.reshape(-1), places)
    out[...] = lines[:, first:].reshape(out.shape)


def _put_rows(how: Coded, shape: Sequence[int], src: Sequence[slice], out: Array) -> None:
    others, columns = math.prod(shape[:-2]), shape[-1]
    wanted = _numbers(shape[:-2], src[:-2])
    begin, last = src[-2].start, src[-2].stop
    band = begin - begin % BAND
    first, stop = src[-1].start, src[-1].stop
    found = _memory(out, 2) if first == 0 and band == begin else None
    if found is not None:
        memory, places, strides = found
        loops.put_rows(*how, others, columns, wanted, band, last, stop, memory, places, strides[0])
        return
    lines = np.empty((wanted.size, last - band, stop), out.dtype)
    places = np.arange(wanted.size, dtype=np.int64) * lines[0].size
    loops.put_rows(*how, others, columns, wanted, band, last, stop, lines.reshape(-1), places, stop)
    out[...] = lines[:, begin - band :, first:].reshape(out.shape)


def _put_lorenzo(
    put: Callable[..., None], shape: Sequence[int], src: Sequence[slice], out: Array
) -> None:
    _, rows, columns = _three(shape)
    long = long_axes(shape)
    a, b, c = [1] * (3 - len(long)) + [src[k].stop for k in long]
    stops = (a, b, c)
    part = out[tuple(slice(None) if k in long else 0 for k in range(out.ndim))]
    found = _memory(part, len(long)) if not any(src[k].start for k in long) else None
    if found is not None:
        memory, _, strides = found
        leap, step = [0, 0, *strides][-2:]
        put(rows, columns, *stops, memory, step, leap)
        return
    whole = np.empty(stops, out.dtype)
    put(rows, columns, *stops, whole.reshape(-1), c, b * c)
    keep = [slice(0, 1)] * (3 - len(long)) + [slice(src[k].start, None) for k in long]
    out[...] = whole[tuple(keep)].reshape(out.shape)


def _put_floats(
    loop: Callable[..., None], how: Sequence[Any],
    rows: int, columns: int, planes: int, lines: int, stop: int, memory: Array, step: int, leap: int,
) -> None:  # fmt: skip
    guess = _guess(stop, memory.dtype)
    loop(*how, rows, columns, planes, lines, stop, memory, _floats(memory), *guess, step, leap)


def _floats(words: Array) -> Array:
    return words.view(f"f{words.itemsize}")


def _guess(columns: int, word: np.dtype[Any]) -> tuple[Array, Array]:
    """Return room for a line of floats, and the same memory as words."""
    words = np.empty(columns, word)
    return _floats(words), words


def _numbers(shape: Sequence[int], src: Sequence[slice]) -> Array:
    """Return the numbers, in C order, of the cells of a grid that a part of it has."""
    return np.arange(math.prod(shape)).reshape(shape)[tuple(src)].reshape(-1)


def _memory(out: Array, axes: int) -> tuple[Array, Array, list[int]] | None:
    """Return the memory of an array for writing by lines; None if it does not ascend along its last axes.

    Returns
    -------
    memory : ndarray
        From the first element to the last one, with what lies between.
    places : int64 array
        Where in it each of the cells on the axes before the last `axes` ones begins.
    strides : list of int
        Of the last axes, but of the last one, which is 1.
    """
    steps = [s // out.itemsize for s in out.strides]
    if out.strides[-1] != out.itemsize and out.shape[-1] > 1:
        return None
    if any(s % out.itemsize or s < 0 for s in out.strides):
        return None
    span = 1 + sum((n - 1) * s for n, s in zip(out.shape, steps, strict=True))
    memory = np.lib.stride_tricks.as_strided(out, (span,), (out.itemsize,))
    places = np.zeros(1, np.int64)
    for n, s in zip(out.shape[: out.ndim - axes], steps, strict=False):
        places = (places[:, None] + np.arange(n) * s).reshape(-1)
    return memory, places, steps[out.ndim - axes : -1]
