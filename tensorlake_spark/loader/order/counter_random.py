"""Random numbers by counting: number `c` of a key is a function of both, so that any of them can be had at once.

The function is splitmix64 (Steele, Lea and Flood, 2014): number `c` of key `k` is output `c` of a generator that was
seeded with `k`. NumPy's own generators may change what they give from version to version; this never changes, because
an epoch that was begun with one version of the package must go on with another.
"""

from __future__ import annotations

import hashlib
import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from tensorlake_spark.errors import InvalidOptionError

U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_MASK = (1 << 64) - 1


def key_of(*parts: SupportsIndex | str | bytes) -> int:
    """Return a key of 64 bits for integers, texts and bytes, by BLAKE2b.

    Other parts, another order, or the same characters cut otherwise give another key.

    Raises
    ------
    InvalidOptionError
        A part is of another kind, such as a float.

    Examples
    --------
    >>> key_of(0, 1, "blocks") == key_of(0, 1, "blocks"), key_of(0, 11, "") == key_of(0, 1, "1")
    (True, False)
    """
    found = hashlib.blake2b(digest_size=8)
    for part in parts:
        if isinstance(part, bytes):
            kind, raw = b"b", part
        elif isinstance(part, str):
            kind, raw = b"s", part.encode()
        else:
            kind, raw = b"i", str(_integer(part)).encode()
        found.update(kind + len(raw).to_bytes(8, "little") + raw)
    return int.from_bytes(found.digest(), "little")


def hashed(key: int, counters: NDArray[Any]) -> U64:
    """Return random integers of 64 bits: number `counters[i]` of `key`.

    Parameters
    ----------
    key : int
        Its lower 64 bits count.
    counters : integer ndarray of any shape

    Examples
    --------
    >>> hashed(1234567, np.arange(2))
    array([6457827717110365317, 3203168211198807973], dtype=uint64)
    """
    out = np.array(counters, np.uint64)  # a copy, which is worked in
    out *= _GAMMA
    # A scalar that overflows warns, an array does not: so the first step is added here, not to the counters.
    out += np.uint64((key + int(_GAMMA)) & _MASK)
    out ^= out >> np.uint64(30)
    out *= _FIRST
    out ^= out >> np.uint64(27)
    out *= _SECOND
    out ^= out >> np.uint64(31)
    return out


def uniform(key: int, counters: NDArray[Any]) -> F64:
    """Return random numbers in [0, 1): multiples of 2**-53, all equally likely.

    Examples
    --------
    >>> uniform(1234567, np.arange(2)).round(5).tolist()
    [0.35008, 0.17364]
    """
    return np.asarray((hashed(key, counters) >> np.uint64(11)) * 2.0**-53)


def exponential(key: int, counters: NDArray[Any]) -> F64:
    """Return random numbers of the exponential distribution with mean 1, none of them zero or infinite.

    The logarithm is a series of sums, products and quotients, which IEEE 754 fixes to the last bit. That of a
    mathematical library differs from machine to machine, and so would what is drawn.

    Examples
    --------
    >>> bool(abs(exponential(5, np.arange(10_000)).mean() - 1) < 0.02)
    True
    """
    # (2 h + 1) / 2**53 lies between 0 and 1, and is neither. It is m * 2**e with m in [1/2, 1).
    odd = (hashed(key, counters) >> np.uint64(12)) * 2.0 + 1.0
    fraction, power = np.frexp(odd * 2.0**-53)
    ratio = (fraction - 1.0) / (fraction + 1.0)
    square = ratio * ratio
    total = np.zeros_like(ratio)
    for term in range(35, 0, -2):  # |ratio| <= 1/3: what is left out is below 2**-60
        total *= square
        total += 1.0 / term
    logarithm = 2.0 * ratio * total + power * 0.6931471805599453
    return np.asarray(-logarithm)


def _integer(part: SupportsIndex) -> int:
    try:
        return operator.index(part)
    except TypeError:
        kind = type(part).__name__
        raise InvalidOptionError(
            f"a key is made of integers, texts and bytes; {part!r} is a {kind}"
        ) from None
