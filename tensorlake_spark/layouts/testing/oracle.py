"""The slow, obvious version of what layouts do fast: NumPy on plain arrays, and loops over elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tensorlake_spark.indexing import AnySelection, MixedSelection, PointSelection, Run
from tensorlake_spark.tensor.sparse import SparseTensor

Array = np.ndarray[Any, Any]


def bits(array: Any) -> tuple[Any, ...]:
    """Return what must be the same for two arrays to be the same, bit by bit."""
    array = np.asarray(array)
    native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    return array.shape, native.dtype, np.ascontiguousarray(native).tobytes()


def plain_pick(tensor: SparseTensor, selection: AnySelection) -> dict[tuple[int, ...], bytes]:
    """Pick from a sparse tensor as a selection says, element by element: the slow, obvious way.

    Returns
    -------
    dict
        Bytes of every stored element by its coordinates in ``selection.storage_shape``.
    """
    out = {}
    for coord, value in zip(tensor.coords.T.tolist(), tensor.values, strict=True):
        out.update(dict.fromkeys(_where(selection, coord), value.tobytes()))
    return out


def _where(selection: AnySelection, coord: Sequence[int]) -> list[tuple[int, ...]]:
    """Return where in ``selection.storage_shape`` an element goes."""
    if isinstance(selection, PointSelection):
        hits = (np.array(coord, np.int64) == selection.coords.T).all(axis=1)
        return [(int(n),) for n in np.flatnonzero(hits)]
    if isinstance(selection, MixedSelection):
        points = _where(selection.points, [coord[k] for k in selection.axes])
        rest = _where(selection.rest, [coord[k] for k in selection.others])
        k = selection.place
        return [(*at[:k], *number, *at[k:]) for number, at in product(points, rest)]
    return list(product(*map(_places, selection.axes, coord)))


def _places(axis: Any, index: int) -> list[int]:
    if isinstance(axis, Run):
        indices = range(axis.start, axis.stop, axis.step)
        return [indices.index(index)] if index in indices else []
    return [n for n, other in enumerate(axis.indices.tolist()) if other == index]


def mask_of(tensor: SparseTensor) -> Array:
    """Return which elements a sparse tensor stores."""
    mask = np.zeros(tensor.shape, bool)
    for coord in tensor.coords.T:
        mask[tuple(coord)] = True
    return mask


def assert_picked(got: Any, dense: Any, stored: Any) -> None:
    """Check an answer, sparse or not, against what NumPy picked of the elements and of what is stored."""
    if not isinstance(got, SparseTensor):
        assert bits(got) == bits(dense)
        return
    anew = SparseTensor(got.coords, got.values, got.shape)  # checks what it was made of unseen
    assert anew.coords is got.coords or np.array_equal(anew.coords, got.coords), "not in C order"
    assert bits(got.todense()) == bits(dense)
    assert np.array_equal(mask_of(got), stored)


def combined(tensors: Sequence[SparseTensor], rule: str) -> tuple[Array, Array]:
    """Combine sparse tensors one after the other: elements, and which are stored; the slow, obvious way."""
    dense = np.zeros(tensors[0].shape, tensors[0].dtype)
    stored = np.zeros(dense.shape, bool)
    with np.errstate(all="ignore"):
        for tensor in tensors:
            for coord, value in zip(map(tuple, tensor.coords.T), tensor.values, strict=True):
                if rule == "sum" and stored[coord]:
                    value = dense[coord] + value
                dense[coord], stored[coord] = value, True
    return dense, stored
