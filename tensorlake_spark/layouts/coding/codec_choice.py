"""Which codec a tensor's blocks get: candidates are tried on a sample, and what is slow to decode must earn it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorlake_spark.kernel_switch import choice
from tensorlake_spark.layouts.coding import pco
from tensorlake_spark.layouts.coding.chain import CODECS, codec_of
from tensorlake_spark.layouts.coding.codec import encode
from tensorlake_spark.layouts.coding.filters import float_lorenzo
from tensorlake_spark.layouts.coding.filters.decimals import places_of

Array = np.ndarray[Any, Any]

BY_TRYING = ("auto", "smallest")
"""What stands for a codec that is chosen by trying: when it is decoded fast enough, or by its size alone."""

_SAMPLE_BYTES = 256 << 10
_WHOLE_BYTES = 2 << 20  # the sample of `smallest_codec`: as much as most blocks have


def candidates(dtype: np.dtype[Any], ndim: int) -> tuple[tuple[str, float], ...]:
    """Return the codecs worth trying for a dtype and rank, cheapest to decode first.

    With each comes the share of the size that it must save over the best one before it. Undoing
    ``delta(-2)`` or ``zigzag`` takes a tenth of the time more, ``delta(-1)`` a fifth, and several times more
    where words are bytes. ``nibbles`` takes a fifth more than ``shuffle``, ``lorenzo`` a third more and
    ``lorenzo(float)`` a third more than that, and ``bins`` twice as long.

    Examples
    --------
    >>> candidates(np.dtype("uint8"), 1)
    (('zstd', 0.02), ('delta(-1)+zstd', 0.1))
    """
    wide = dtype.itemsize > 1
    middle = "+shuffle+zstd" if wide else "+zstd"
    is_number = dtype.kind not in "bc"
    out = [("zstd", 0.02)]
    if wide:
        out.append(("shuffle+zstd", 0.02))
    if dtype.kind != "b" and ndim >= 2:
        out.append((f"delta(-2){middle}", 0.02))
        if wide:
            out.append((f"delta(-2)+zigzag{middle}", 0.01))
    if is_number and ndim >= 1:
        out.append((f"delta(-1){middle}", 0.03 if wide else 0.1))
        if wide:
            out.append((f"delta(-1)+zigzag{middle}", 0.02))
    if is_number and ndim >= 2:
        out.append((f"lorenzo+zigzag{middle}" if wide else f"lorenzo{middle}", 0.04))
    if float_lorenzo.takes(dtype) and ndim >= 2:
        out.append((f"lorenzo(float)+zigzag{middle}", 0.04))
    if dtype.kind == "i" and dtype.itemsize <= 4 and ndim >= 1:  # such as quantised values
        out.append((f"delta({-min(ndim, 2)})+zigzag+nibbles+zstd", 0.03))
        if ndim >= 2:
            out.append(("lorenzo+zigzag+nibbles+zstd", 0.03))
    if is_number and wide:
        out.append(("bins+zstd", 0.025))
        if ndim >= 1:
            out.append((f"delta({-min(ndim, 2)})+zigzag+bins+zstd", 0.025))
    return tuple(out)


def packed_candidates(dtype: np.dtype[Any], ndim: int) -> tuple[tuple[str, float], ...]:
    """Return the codecs that are worth trying where compiled loops decode, after all of `candidates`.

    They are decoded more than twice as fast as zstd there, and half as fast by NumPy. So they may be a tenth larger
    than the best one before them, and are no candidates where NumPy decodes.

    Examples
    --------
    >>> packed_candidates(np.dtype("f4"), 3), packed_candidates(np.dtype("i4"), 3)
    ((('lorenzo(float)+zigzag+pack', -0.1),), ())
    """
    is_taken = float_lorenzo.takes(dtype) and ndim >= 2
    return (("lorenzo(float)+zigzag+pack", -0.1),) if is_taken else ()


def choose_codec(sample: Array) -> str:
    """Return the codec that makes a sample smallest, by trying.

    A codec that is slower to decode must earn it; `candidates` says by how much. A sample that nothing
    makes 2 % smaller is stored ``raw``. Floats that all have few decimal places are tried as integers too.

    Parameters
    ----------
    sample : ndarray
        A block of the tensor, C-contiguous and in native byte order; its first 256 KiB count.

    Examples
    --------
    >>> choose_codec(np.zeros((64, 64), np.uint8))
    'zstd'
    """
    if sample.size == 0:
        return "zstd"
    block = _part(sample, _SAMPLE_BYTES)
    tried = candidates(block.dtype, block.ndim)
    if choice() == "fast":
        tried += packed_candidates(block.dtype, block.ndim)
    places = places_of(block)
    if places is not None:
        integer = np.dtype(f"i{block.itemsize}")
        scaled = candidates(integer, block.ndim)
        tried += tuple((f"decimal({places})+{name}", saving) for name, saving in scaled)
    return _best(block, tried)


def smallest_codec(sample: Array) -> str:
    """Return the codec that makes a sample smallest, of all that are installed, however slow.

    Parameters
    ----------
    sample : ndarray
        A block of the tensor, C-contiguous and in native byte order; its first 2 MiB count.

    Examples
    --------
    >>> smallest_codec(np.cumsum(np.arange(1000)) ** 2) != "raw"
    True
    """
    if sample.size == 0:
        return "zstd"
    block = _part(sample, _WHOLE_BYTES)
    places = places_of(block)
    names = []
    for name, codec in CODECS.items():
        if codec.pco and not (pco.number_of(block.dtype) is not None and pco.installed()):
            continue
        # Steps that do nothing to this block are left out.
        if -codec.delta > block.ndim or (codec.lorenzo and not block.ndim):
            continue
        if name != "raw" and codec.places in (None, places):
            names.append((name, 0.0))
    return _best(block, names)


def _best(block: Array, tried: Iterable[tuple[str, float]]) -> str:
    best, least = "raw", block.nbytes
    for name, saving in tried:
        size = len(encode(block, codec_of(name))[1])
        if size < (1 - saving) * least:
            best, least = name, size
    return best


def _part(block: Array, nbytes: int) -> Array:
    """Return the first part of a block, about so many bytes."""
    while block.nbytes > nbytes and block.ndim > 1:
        if block.shape[0] > 1:
            keep = max(1, int(block.shape[0] * nbytes / block.nbytes))
            block = block[:keep]
            if block.ndim > 1 and keep > 1:
                break
        else:
            block = block[0]
    if block.ndim == 1:
        block = block[: max(1, nbytes // block.itemsize)]
    return np.ascontiguousarray(block)
