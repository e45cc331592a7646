"""Stored blocks of a sparse tensor as arrays: elements of many rows are put into their blocks at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.indexing import Selection
from tensorlake_spark.indexing.coords import combine, unravel
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.sparse.element_keys import Gathered
from tensorlake_spark.tensor.spec import TensorSpec, dtype_name

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Parts:
    """What a selection of runs picks of some boxes.

    Attributes
    ----------
    begin, end : int64 ndarray, shape (boxes, ndim)
        Where it lies in ``selection.storage_shape``.
    lo : int64 ndarray, shape (boxes, ndim)
        Its lower corner in the tensor.
    """

    begin: Array
    end: Array
    lo: Array

    @classmethod
    def of(cls, selection: Selection, lo: Array, hi: Array) -> Parts:
        """Return the parts of boxes of a tensor."""
        firsts = np.array([axis.bounds[0] for axis in selection.axes], np.int64)
        steps = np.array([getattr(axis, "step", 1) for axis in selection.axes], np.int64)
        counts = np.array(selection.storage_shape, np.int64)
        begin = np.clip(-(-(lo - firsts) // steps), 0, counts)
        end = np.clip(-(-(hi - firsts) // steps), begin, counts)
        return cls(begin, end, firsts + begin * steps)

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def sizes(self) -> Array:
        """Elements of each part."""
        return np.asarray((self.end - self.begin).prod(axis=1))

    def take(self, some: slice) -> Parts:
        """Return some of the parts."""
        return Parts(self.begin[some], self.end[some], self.lo[some])


class Scattered:
    """What a dense layout decodes into: an array for every box, nothing for what lies between them.

    Attributes
    ----------
    arrays : dict of tuple of int to ndarray
        By the lower corner of each in the result.
    """

    def __init__(self, arrays: dict[tuple[int, ...], Array]) -> None:
        self.arrays = arrays

    @classmethod
    def of(cls, parts: Parts, arrays: Sequence[Array]) -> Scattered:
        """Return the arrays of some parts.

        Raises
        ------
        CorruptDataError
            If two parts begin at one element: both rows hold it.
        """
        made = dict(zip(map(tuple, parts.begin.tolist()), arrays, strict=True))
        if len(made) < len(arrays):
            raise CorruptDataError(
                "rows of a dense tensor cover the same box; somebody changed the table with plain Delta: "
                "restore the tensor, or look for it with lake.check()"
            )
        return cls(made)

    def __getitem__(self, where: tuple[Any, ...]) -> Array:
        return self.arrays[tuple(s.start for s in where if s is not Ellipsis)]

    def __setitem__(self, where: tuple[Any, ...], part: Array) -> None:
        self[where][...] = part


def blank(parts: Parts, dtype: np.dtype[Any]) -> tuple[Array, list[Array]]:
    """Return a buffer for the elements of all parts, one part after the other, and each part as a view of it."""
    ends = np.cumsum(parts.sizes).tolist()
    data = np.empty(ends[-1] if ends else 0, dtype)
    sides = (parts.end - parts.begin).tolist()
    starts = [0, *ends][: len(ends)]
    return data, [data[a:b].reshape(n) for a, b, n in zip(starts, ends, sides, strict=True)]


def dense_batch(
    data: Array, arrays: Sequence[Array], parts: Parts, spec: TensorSpec, selection: Selection
) -> pa.RecordBatch:
    """Return what was decoded into the arrays of `blank` as rows of the view ``blocks``."""
    if selection.flips:
        turned = [selection.finish(block).reshape(-1) for block in arrays]
        data = np.concatenate([data[:0], *turned])
    return batch_of(data, parts, spec, selection)


@dataclass(frozen=True, eq=False)
class Elements:
    """Stored elements that know their rows.

    Attributes
    ----------
    keys : int64 ndarray, shape (n,)
        Places in C order in the selection's storage shape.
    values : ndarray, shape (n,)
    seqs : int64 ndarray, shape (n,)
        The place of the row of each in the tensor's storage order.
    """

    keys: Array
    values: Array
    seqs: Array

    @classmethod
    def of(cls, batch: pa.RecordBatch, spec: TensorSpec, selection: Selection) -> Elements:
        """Decode the elements of some rows that a selection picks."""
        # Rows are told apart where the last one counts; so they are here, whatever the tensor's rule.
        known = replace(spec, params={**spec.params, "duplicates": "last"})
        gathered = Gathered()
        layout_of(spec.layout).decode(batch, known, selection, gathered)
        none = np.zeros(0, np.int64)
        return cls.join(
            [cls(none, np.zeros(0, spec.dtype), none), *(cls(*p) for p in gathered.parts)]
        )

    @classmethod
    def join(cls, parts: list[Elements]) -> Elements:
        """Return the elements of all parts, at least one."""
        return cls(
            np.concatenate([p.keys for p in parts]),
            np.concatenate([p.values for p in parts]),
            np.concatenate([p.seqs for p in parts]),
        )


def runs_of(sizes: Array, limit: int) -> Iterator[slice]:
    """Cut things into runs of neighbours whose sizes add up to at most `limit`, or that are one alone.

    Examples
    --------
    >>> list(runs_of(np.array([3, 3, 9, 1]), 6))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + limit, side="right")))
        yield slice(start, stop)
        start = stop


def block_batch(
    elements: Elements, owner: Array, parts: Parts, spec: TensorSpec, selection: Selection
) -> pa.RecordBatch:
    """Return blocks as rows of the view ``blocks``.

    Parameters
    ----------
    elements : Elements
        All that is stored in the blocks, and nothing else.
    owner : integer ndarray, shape (elements,)
        The block in which each lies.
    parts : Parts
        The blocks, trimmed.
    spec, selection
        The tensor, and the slice.

    Raises
    ------
    CorruptDataError
        If an element is stored twice and the tensor does not say what that means.
    """
    sides = parts.end - parts.begin
    ends = np.concatenate([[0], np.cumsum(parts.sizes)])
    places = unravel(elements.keys, selection.storage_shape)
    flat, stride = ends[:-1][owner], np.ones(len(parts), np.int64)
    for k in reversed(range(spec.ndim)):
        inside = places[k] - parts.begin[owner, k]
        if k in selection.flips:
            inside = sides[owner, k] - 1 - inside
        flat = flat + inside * stride[owner]
        stride = stride * sides[:, k]
    flat, values = _united(flat, elements, spec)
    data = np.zeros(int(ends[-1]), spec.dtype)
    data[flat] = values
    return batch_of(data, parts, spec, selection)


def batch_of(data: Array, parts: Parts, spec: TensorSpec, selection: Selection) -> pa.RecordBatch:
    """Return the elements of blocks as rows of the view ``blocks``, without a copy.

    Parameters
    ----------
    data : ndarray, shape (elements,)
        All elements of the first block as the result has them, in C order, then those of the next.
    parts, spec, selection
        As for `block_batch`.
    """
    sides = parts.end - parts.begin
    ends = np.concatenate([[0], np.cumsum(parts.sizes)])
    ends = (ends * spec.dtype.itemsize).astype(np.int32)
    tensor = pa.StructArray.from_arrays(
        [
            pa.repeat(dtype_name(spec.dtype), len(parts)),
            _lists(_shown(sides, 1, selection)),
            pa.Array.from_buffers(
                pa.binary(),
                len(parts),
                [None, pa.py_buffer(ends), pa.py_buffer(data.view(np.uint8))],
            ),
        ],
        names=["dtype", "shape", "data"],
    )
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(spec.id, len(parts)),
            _lists(parts.lo),
            _lists(_shown(_offsets(parts, selection), 0, selection)),
            tensor,
        ],
        names=["id", "lo", "offset", "tensor"],
    )


def _united(flat: Array, elements: Elements, spec: TensorSpec) -> tuple[Array, Array]:
    """Return places and values, with what is stored of one element combined as the tensor says."""
    by = np.lexsort((elements.seqs, flat))
    flat, values = flat[by], elements.values[by]
    fresh = np.ones(len(flat), bool)
    fresh[1:] = flat[1:] != flat[:-1]
    if fresh.all():
        return flat, values
    rule = spec.params.get("duplicates", "error")
    if rule == "error":
        raise CorruptDataError(
            f"tensor {spec.id!r}: {int((~fresh).sum())} elements are stored more than once; somebody "
            "changed the table with plain Delta, or a writer was not told how to combine them"
        )
    starts = np.flatnonzero(fresh)
    return flat[starts], combine(values, starts, rule)


def _offsets(parts: Parts, selection: Selection) -> Array:
    """Return where the blocks lie in the result, apart from the axes that it does not have."""
    out: Array = parts.begin.copy()
    for k in selection.flips:
        out[:, k] = selection.axes[k].count - parts.end[:, k]
    return out


def _shown(columns: Array, new: int, selection: Selection) -> Array:
    """Return a number for every axis of the result from one for every axis of the tensor."""
    kept = [columns[:, k] for k in range(columns.shape[1]) if k not in selection.drops]
    for position in selection.newaxes:
        kept.insert(position, np.full(len(columns), new, np.int64))
    return np.stack(kept, axis=1) if kept else np.zeros((len(columns), 0), np.int64)


def _lists(rows: Array) -> pa.ListArray:
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(np.ascontiguousarray(rows).reshape(-1))
    )
