"""Many dense blocks of one shape, decoded at once: each alone would cost Python a step of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tensorlake_spark.layouts.coding import pco
from tensorlake_spark.layouts.coding.block_words import delta_axis, shape_of_words, stored_dtype
from tensorlake_spark.layouts.coding.chain import Codec
from tensorlake_spark.layouts.coding.decompression import inflate
from tensorlake_spark.layouts.coding.filters import (
    bin_coding,
    bit_packing,
    byte_planes,
    decimals,
    deltas,
    float_lorenzo,
    lorenzo,
    nibbles,
    zigzag,
)

Array = np.ndarray[Any, Any]


def decode_stack(
    payloads: Sequence[Any], codec: Codec, shape: Sequence[int], dtype: np.dtype[Any]
) -> Array:
    """Decode many blocks of one shape at once: small ones cost Python a step each otherwise.

    Parameters
    ----------
    payloads : sequence of bytes-like
        What `encode` returned for each block.
    codec, shape, dtype
        As for `decode`.

    Returns
    -------
    ndarray
        Shape ``(len(payloads), *shape)``.
    """
    count = len(payloads)
    if codec.turned is not None:
        turned = decode_stack(payloads, codec.turned, shape[::-1], dtype)
        return np.transpose(turned, (0, *range(len(shape), 0, -1)))
    if codec.pco:
        for payload in payloads:
            pco.check(payload, math.prod(shape))
        blocks = np.empty((count, *shape), dtype)
        for block, payload in zip(blocks.reshape(count, -1), payloads, strict=True):
            pco.decode_to(payload, block)
        return blocks
    kind = stored_dtype(codec, dtype)
    stack = _stack(payloads, codec, shape, kind)
    whole = stack.reshape(-1).view(kind).reshape(count, *shape)
    if codec.places is None:
        return whole
    floats = np.empty(whole.shape, dtype)
    decimals.put_floats(whole, codec.places, floats)
    return floats


def _stack(
    payloads: Sequence[Any], codec: Codec, shape: Sequence[int], dtype: np.dtype[Any]
) -> Array:
    """Return the words of many blocks, C-contiguous."""
    word_shape, word = shape_of_words(shape, dtype)
    count, size = len(payloads), math.prod(word_shape)
    if codec.bins:
        stack = bin_coding.decode(payloads, size, word).reshape(-1)
    elif codec.nibbles:
        nbytes = nibbles.size_of(size, word)
        stack = np.empty((count, size), word)
        for row, payload in zip(stack, payloads, strict=True):
            row[...] = nibbles.join(inflate(payload, codec.compress, nbytes), size, word)
        stack = stack.reshape(-1)
    elif codec.packed:
        stack = np.empty((count, size), word)
        for row, payload in zip(stack, payloads, strict=True):
            row[...] = bit_packing.decode(payload, (size,), (size,), word)
        stack = stack.reshape(-1)
    else:
        flat: Array = np.empty((count, size * word.itemsize), np.uint8)
        for row, payload in zip(flat, payloads, strict=True):
            row[...] = inflate(payload, codec.compress, flat.shape[1])
        if codec.shuffle and word.itemsize > 1:
            flat = byte_planes.join(flat.reshape(count, word.itemsize, -1))
        stack = flat.reshape(-1).view(word)
    if codec.zigzag:
        zigzag.unfold(stack)
    axis = delta_axis(codec, len(shape))
    if axis == -2:
        coded = stack.reshape(count, word_shape[-2], *word_shape[:-2], word_shape[-1])
        every = slice(0, word_shape[-1])
        rows = deltas.add_rows(np.moveaxis(coded, 1, 0), 0, word_shape[-2], every)
        return np.ascontiguousarray(np.moveaxis(rows, 0, -2))
    if axis == -1:
        rows = np.moveaxis(stack.reshape(count, *word_shape), -1, 0)
        for before, row in pairwise(rows):
            np.add(row, before, out=row)
    elif codec.floats and shape:
        float_lorenzo.add(stack.reshape(count, *word_shape), 1)
    elif codec.lorenzo and shape:
        blocks = stack.reshape(count, *word_shape)
        with deltas.ONE_AT_A_TIME:
            lorenzo.add(blocks, 1)
        lorenzo.add_last(blocks, blocks)
        if lorenzo.has_order(dtype):
            lorenzo.turn(stack)
    return stack
