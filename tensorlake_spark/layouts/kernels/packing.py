"""Loops over packed words that numba compiles: groups of a width each, their bits one after the other.

Every loop runs without the interpreter lock. Their other bodies, in NumPy, are the oracle of the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.layouts.kernels.steps import GROUP
from tensorlake_spark.loop_compiler import compiled_loop

Array = np.ndarray[Any, Any]

MORE = 512
"""Bytes by which a line may need more than its words have: those of its first and last group, and a load."""


def warm(loop: str, itemsize: int) -> None:
    """Have a loop compiled, or loaded from numba's cache, for words of so many bytes.

    Parameters
    ----------
    loop : {"pack", "unpack"}
        Which one.
    itemsize : int
        Bytes of a word.
    """
    words = np.zeros(1, f"u{itemsize}")
    payload = encode(words)
    if loop == "unpack":
        held = np.frombuffer(payload, np.uint8)
        decode_into(held[1:], held[:1], np.zeros(1, np.int64), 1, words.reshape(1, 1))


def encode(words: Array) -> bytes:
    """Return the widths of the groups of some words, and their bits.

    Parameters
    ----------
    words : unsigned integer array
        One axis, C-contiguous.
    """
    groups = -(-words.size // GROUP)
    first = -(-groups // 8)  # the widths end where a word of eight bytes does
    most = groups * GROUP * words.itemsize
    if words.size % GROUP:
        words = np.concatenate([words, np.zeros(-words.size % GROUP, words.dtype)])
    held = np.empty(first + (most >> 3) + 2, np.uint64)
    widths = held.view(np.uint8)[8 * first - groups : 8 * first]
    nbytes = pack(words, widths, held[first:]) // 8
    return held.view(np.uint8)[8 * first - groups : 8 * first + nbytes].tobytes()


def decode_into(data: Array, widths: Array, lines: Array, columns: int, out: Array) -> None:
    """Unpack the beginnings of some lines.

    Parameters
    ----------
    data : uint8 array
        The bits, as many as the widths say; read-only.
    widths : uint8 array
        Of each group; read-only.
    lines : int64 array
        Numbers of lines, of `columns` words each, that ascend.
    columns : int
        Words of a line.
    out : unsigned integer array, shape (lines, at most `columns`)
        Where they go, C-contiguous.
    """
    unpack(data, tail_of(data, out.shape[1] * out.itemsize), widths, lines, columns, out)


def tail_of(data: Array, line_bytes: int) -> Array:
    """Return the end of the data with zeros behind it, for the last lines: loops read eight bytes at once."""
    kept = line_bytes + MORE
    tail = np.zeros(kept + 16, np.uint8)
    rest = data[max(0, data.size - kept) :]
    tail[: rest.size] = rest
    return tail


@compiled_loop
def pack(words: Array, widths: Array, out: Array) -> Any:
    """Write how many bits the words of each group need, and their bits; return how many bits these are.

    Parameters
    ----------
    words : unsigned integer array
        One axis, C-contiguous, whole groups.
    widths : uint8 array
        Has room for one width a group.
    out : uint64 array
        Has room for all bits, and one word more.
    """
    one, last = np.uint64(1), np.uint64(63)
    held, used, place = np.uint64(0), np.uint64(0), 0
    for g in range(widths.size):
        some = words[g * GROUP : (g + 1) * GROUP]
        joined = np.uint64(0)
        for k in range(GROUP):
            joined |= np.uint64(some[k])
        width = _width(joined)
        widths[g] = width
        if width <= np.uint64(32):  # two are put as one
            # Both branches have the loop: one that they call hands on what it holds, and takes three times as long.
            two = width + width
            for k in range(GROUP // 2):
                both = np.uint64(some[2 * k]) | (np.uint64(some[2 * k + 1]) << width)
                held |= both << used
                end = used + two
                if end > last:
                    out[place] = held
                    place += 1
                    held = (both >> one) >> (last - used)
                used = end & last
            continue
        for k in range(GROUP):
            word = np.uint64(some[k])
            held |= word << used
            end = used + width
            if end > last:
                out[place] = held
                place += 1
                held = (word >> one) >> (last - used)
            used = end & last
    out[place] = held
    return 64 * place + np.int64(used)


@compiled_loop
def _width(word: Any) -> Any:
    """Return how many bits a word needs: numba makes one instruction of the loop, which counts ones."""
    word |= word >> np.uint64(1)
    word |= word >> np.uint64(2)
    word |= word >> np.uint64(4)
    word |= word >> np.uint64(8)
    word |= word >> np.uint64(16)
    word |= word >> np.uint64(32)
    width = np.uint64(0)
    while word:
        word &= word - np.uint64(1)
        width += np.uint64(1)
    return width


@compiled_loop
def unpack(data: Array, tail: Array, widths: Array, lines: Array, columns: int, out: Array) -> None:
    """Do `decode_into`; `tail` is what `tail_of` gives."""
    place = (0, np.uint64(0))
    for n in range(lines.size):
        place = unpack_line(data, tail, widths, place, lines[n] * columns, out[n])


@compiled_loop
def unpack_line(
    data: Array, tail: Array, widths: Array, place: tuple[int, Any], at: int, row: Array
) -> tuple[int, Any]:
    """Write the words from number `at` on into a row.

    Parameters
    ----------
    place : (int, uint64)
        A group at or before that of the first word, and the bit at which it begins.

    Returns
    -------
    (int, uint64)
        The group behind the last word, in the same way, or that of the last word if it has more.
    """
    g, bit = place
    while g < at // GROUP:
        bit += np.uint64(widths[g]) * np.uint64(GROUP)
        g += 1
    kept = row.size * row.itemsize + MORE
    if np.int64(bit >> np.uint64(3)) + kept <= data.size:
        return _unpack_line(data, widths, g, bit, at % GROUP, row)
    away = np.uint64(8 * max(0, data.size - kept))
    g, bit = _unpack_line(tail, widths, g, bit - away, at % GROUP, row)
    return g, bit + away


@compiled_loop
def _unpack_line(
    data: Array, widths: Array, g: int, bit: Any, first: int, row: Array
) -> tuple[int, Any]:
    """Do `unpack_line` from word `first` of a group on."""
    done = 0
    if first:
        done = min(GROUP - first, row.size)
        _unpack_some(data, widths[g], bit, first, row[:done])
        if first + done == GROUP:
            bit += np.uint64(widths[g]) * np.uint64(GROUP)
            g += 1
    whole = (row.size - done) // GROUP
    bit = _unpack_groups(data, widths[g : g + whole], bit, row[done : done + whole * GROUP])
    g += whole
    done += whole * GROUP
    if done < row.size:
        _unpack_some(data, widths[g], bit, 0, row[done:])
    return g, bit


@compiled_loop
def _unpack_some(data: Array, width: Any, bit: Any, first: int, out: Array) -> None:
    """Write some words of a group that begins at a bit."""
    _unpack_words(data, np.uint64(width), bit + np.uint64(first) * np.uint64(width), out)


@compiled_loop
def _unpack_groups(data: Array, widths: Array, bit: Any, out: Array) -> Any:
    """Write the words of whole groups; return the bit behind them.

    Nearly all lines of 32 bits have pairs alone. A loop that does not ask takes three quarters of the time.
    """
    paired = True
    for q in range(widths.size):
        paired &= _is_paired(widths[q])
    if paired:
        for q in range(widths.size):
            width = np.uint64(widths[q])
            _unpack_pairs(data, width, bit, out[q * GROUP : q * GROUP + GROUP])
            bit += width * np.uint64(GROUP)
        return bit
    for q in range(widths.size):
        width, some = np.uint64(widths[q]), out[q * GROUP : q * GROUP + GROUP]
        if _is_paired(widths[q]):
            _unpack_pairs(data, width, bit, some)
        else:
            _unpack_wide(data, width, bit, some)
        bit += width * np.uint64(GROUP)
    return bit


@compiled_loop
def _is_paired(width: Any) -> Any:
    """Whether two words lie in eight bytes: of 29 bits they begin at an even one, of 30 at a fourth one."""
    return (width <= np.uint8(32)) & (width != np.uint8(31))


@compiled_loop
def _unpack_pairs(data: Array, width: Any, bit: Any, out: Array) -> None:
    """Write the words of a group, two by two."""
    mask = _mask(width)
    half = GROUP // 2  # so many words are whole bytes
    for k in range(0, half, 2):
        here = bit + np.uint64(k) * width
        both, later = _word(data, here), _word(data, here + np.uint64(half) * width)
        out[k] = out.dtype.type(both & mask)
        out[k + 1] = out.dtype.type((both >> width) & mask)
        out[half + k] = out.dtype.type(later & mask)
        out[half + k + 1] = out.dtype.type((later >> width) & mask)


@compiled_loop
def _unpack_wide(data: Array, width: Any, bit: Any, out: Array) -> None:
    """Write the words of any group: loops of a known length are unrolled, others LLVM makes slow vectors of."""
    mask = _mask(width)
    if width <= np.uint64(57):
        for k in range(GROUP):
            out[k] = out.dtype.type(_word(data, bit) & mask)
            bit += width
    else:
        for k in range(GROUP):
            out[k] = out.dtype.type((_word(data, bit) | _ninth(data, bit)) & mask)
            bit += width


@compiled_loop
def _unpack_words(data: Array, width: Any, bit: Any, out: Array) -> None:
    mask = _mask(width)
    for k in range(out.size):
        found = _word(data, bit)
        if width > np.uint64(57):
            found |= _ninth(data, bit)
        out[k] = out.dtype.type(found & mask)
        bit += width


@compiled_loop
def _ninth(data: Array, bit: Any) -> Any:
    """Return the bits of the ninth byte of a word, where they belong in it."""
    found = np.uint64(data[(bit >> np.uint64(3)) + np.uint64(8)]) << np.uint64(1)
    return found << (np.uint64(63) - (bit & np.uint64(7)))


@compiled_loop
def _mask(width: Any) -> Any:
    half = width >> np.uint64(1)  # a shift by 64 bits is none
    return ((np.uint64(1) << half) << (width - half)) - np.uint64(1)


@compiled_loop
def _word(data: Array, bit: Any) -> Any:
    """Return the 57 bits and more from one on."""
    b, offset = bit >> np.uint64(3), bit & np.uint64(7)
    # LLVM makes one load of eight bytes of this.
    found = np.uint64(data[b])
    found |= np.uint64(data[b + np.uint64(1)]) << np.uint64(8)
    found |= np.uint64(data[b + np.uint64(2)]) << np.uint64(16)
    found |= np.uint64(data[b + np.uint64(3)]) << np.uint64(24)
    found |= np.uint64(data[b + np.uint64(4)]) << np.uint64(32)
    found |= np.uint64(data[b + np.uint64(5)]) << np.uint64(40)
    found |= np.uint64(data[b + np.uint64(6)]) << np.uint64(48)
    found |= np.uint64(data[b + np.uint64(7)]) << np.uint64(56)
    return found >> offset
