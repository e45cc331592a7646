"""Which codec a tensor's blocks get: candidates are tried on a sample, and what is slow to decode must earn it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.layouts.coding.codec import codec_of, encode

Array = np.ndarray[Any, Any]

_SAMPLE_BYTES = 256 << 10


def candidates(dtype: np.dtype[Any], ndim: int) -> tuple[tuple[str, float], ...]:
    """Return the codecs worth trying for a dtype and rank, cheapest to decode first.

    With each comes the share of the size that it must save over the best one before it: undoing
    ``delta(-1)`` is a running sum, several times slower than adding whole rows.

    Examples
    --------
    >>> candidates(np.dtype("uint8"), 1)
    (('zstd', 0.02), ('delta(-1)+zstd', 0.1))
    """
    wide = dtype.itemsize > 1
    middle = "+shuffle+zstd" if wide else "+zstd"
    out = [("zstd", 0.02)]
    if wide:
        out.append(("shuffle+zstd", 0.02))
    if dtype.kind != "b" and ndim >= 2:
        out.append((f"delta(-2){middle}", 0.02))
    if dtype.kind not in "bc" and ndim >= 1:
        out.append((f"delta(-1){middle}", 0.1))
    return tuple(out)


def choose_codec(sample: Array) -> str:
    """Return the codec that makes a sample smallest, by trying.

    A codec that is slower to decode must earn it; `candidates` says by how much. A sample that nothing
    makes 2 % smaller is stored ``raw``.

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
    block = sample
    while block.nbytes > _SAMPLE_BYTES and block.ndim > 1:
        if block.shape[0] > 1:
            keep = max(1, int(block.shape[0] * _SAMPLE_BYTES / block.nbytes))
            block = block[:keep]
            if block.ndim > 1 and keep > 1:
                break
        else:
            block = block[0]
    if block.ndim == 1:
        block = block[: max(1, _SAMPLE_BYTES // block.itemsize)]
    block = np.ascontiguousarray(block)
    best, least = "raw", block.nbytes
    for name, saving in candidates(block.dtype, block.ndim):
        size = len(encode(block, codec_of(name)))
        if size < (1 - saving) * least:
            best, least = name, size
    return best
