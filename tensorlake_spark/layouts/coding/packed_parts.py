"""Parts of blocks of packed floats, put straight into a result: one call of a compiled loop for many blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.layouts.coding.block_words import steps_of, words
from tensorlake_spark.layouts.coding.chain import Codec
from tensorlake_spark.layouts.coding.filters import bit_packing

Array = np.ndarray[Any, Any]

_DENSE = "tensorlake_spark.layouts.kernels.dense"


def put_parts(
    payloads: Sequence[Any],
    codec: Codec,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    starts: Array,
    stops: Array,
    places: Array,
    out: Array,
) -> bool:
    """Decode a part of each of some blocks of one shape straight into a result, by one call, if there is a loop for it.

    Parameters
    ----------
    payloads : sequence of bytes-like
        What `codec.encode` returned for each block; at least one.
    codec, shape, dtype
        As for `codec.decode`, of every block.
    starts, stops, places : int64 ndarray, shape (blocks, ndim)
        Which part of each block, and where in `out` it begins.
    out : ndarray
        The result.

    Returns
    -------
    bool
        False if nothing was done.

    Raises
    ------
    CorruptDataError
        If a payload does not hold just its block.
    """
    steps = steps_of(codec, shape, dtype)
    if not (codec.packed and steps.floats and steps.takes(shape, dtype.itemsize)):
        return False
    nbytes = math.prod(shape) * dtype.itemsize
    loops = compiled(_DENSE, "packed_floats", dtype.itemsize, False, nbytes=nbytes * len(payloads))
    if loops is None:
        return False
    held = [np.frombuffer(payload, np.uint8) for payload in payloads]
    wrong = loops.decode_packed_into(held, steps, shape, starts, stops, places, words(out))
    if wrong is not None and wrong >= 0:
        bit_packing.parts(payloads[wrong], math.prod(shape), np.dtype(f"<u{dtype.itemsize}"))
        raise CorruptDataError("packed words do not fill their block")
    return wrong is not None


def put_part(
    payload: Any,
    codec: Codec,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    src: tuple[slice, ...],
    out: Array,
) -> bool:
    """Do `put_parts` for one block, of which slices choose a part as large as `out`."""
    if any(s.step not in (None, 1) for s in src):
        return False
    starts, stops = np.array([[s.start for s in src]]), np.array([[s.stop for s in src]])
    places = np.zeros_like(starts)
    return put_parts([payload], codec, shape, dtype, starts, stops, places, out)
