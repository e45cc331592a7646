"""Slices of one tensor, read by blocks along an axis: a block is read once for all batches that need it soon."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from concurrent.futures import Future
from functools import cached_property
from typing import Any

import numpy as np

from tensorlake_spark.delta.files.statistics import BOUNDED
from tensorlake_spark.delta.samples.known_snapshot import known_snapshot
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.layouts import grid_of, stored_layout
from tensorlake_spark.loader.columns.values import Array
from tensorlake_spark.tensor.sparse import SparseTensor

_MOST_BLOCK = 4
"""A block is read whole if at least so many of its size may be kept."""


class TensorBlocks:
    """Slices of a tensor along an axis.

    Parameters
    ----------
    ref : TensorRef
        The tensor, at the version that it shows.
    axis : int
        Not negative.
    most : int
        Bytes of blocks that are kept; those that were used longest ago go first.

    Examples
    --------
    >>> import tempfile, tensorlake_spark as tl
    >>> ref = tl.open(tempfile.mkdtemp()).write("x", np.arange(12).reshape(3, 4), block_shape=(3, 2))
    >>> TensorBlocks(ref, 1, 1 << 20).read(np.array([3, 0])).tolist()
    [[3, 7, 11], [0, 4, 8]]
    """

    def __init__(self, ref: TensorRef, axis: int, most: int) -> None:
        self.ref, self.axis, self.most = ref, axis, most
        self._kept: OrderedDict[int, Future[Any]] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorBlocks, (self.ref, self.axis, self.most)

    def __len__(self) -> int:
        return self.ref.shape[self.axis]

    @property
    def is_sparse(self) -> bool:
        """Whether batches are sparse tensors."""
        return stored_layout(self.ref._meta.spec).is_sparse

    @cached_property
    def cuts(self) -> Array:
        """Where blocks begin along the axis, and at the end its length."""
        return grid_of(self.ref._meta.spec).cuts(self.axis)

    def known_ref(self) -> TensorRef:
        """Return the tensor for other processes: of one in a store they read no log."""
        snapshot = self.ref._snapshot
        if snapshot.storage.is_local:
            return self.ref
        ours = snapshot.files.may_hold(self.ref.id)
        return TensorRef(known_snapshot(snapshot, BOUNDED, ours), self.ref._meta, self.ref._verify)

    def files_of(self, positions: Array) -> list[int]:
        """Return the places in the version of the files that have slices at ascending positions, by the log."""
        lo, hi = self._reach
        found: list[int] = self._files[
            np.searchsorted(positions, hi) > np.searchsorted(positions, lo)
        ].tolist()
        return found

    @cached_property
    def _files(self) -> Array:
        return self.ref._snapshot.files.places_of(self.ref.id, data=True)

    @cached_property
    def _reach(self) -> tuple[Array, Array]:
        """Where the slices in each of the files begin and end."""
        lo, hi = self.ref._snapshot.files.boxes(self.ref.shape, self._files)
        return lo[:, self.axis], hi[:, self.axis]

    @cached_property
    def sample_nbytes(self) -> int:
        """Bytes of a slice in memory, of a sparse tensor on average."""
        shape = self.ref.shape
        if self.is_sparse:  # a place and a value for each element, about
            width = 8 * len(shape) + self.ref.dtype.itemsize
            return max(1, self.ref.nnz * width // max(1, len(self)))
        return self.ref.dtype.itemsize * math.prod(
            length for axis, length in enumerate(shape) if axis != self.axis
        )

    @cached_property
    def _keeps(self) -> bool:
        """Whether blocks are read whole and kept: they have several slices, and are not too large for it."""
        longest = int(np.diff(self.cuts).max(initial=0))
        return 1 < longest <= self.most / _MOST_BLOCK / max(1, self.sample_nbytes)

    def read(self, positions: Array) -> Any:
        """Return slices at positions along the axis, in any order, some perhaps twice.

        Returns
        -------
        ndarray or SparseTensor
            The slices along its first axis.

        Raises
        ------
        CorruptDataError
            If stored bytes are not what was written, or rows are missing.
        """
        if not self._keeps:
            some, places = np.unique(positions, return_inverse=True)
            found = self._slices(some)
            is_all = len(some) == len(positions) and bool((places == np.arange(len(some))).all())
            return found if is_all else found[places]
        blocks = np.searchsorted(self.cuts, positions, side="right") - 1
        wanted = np.unique(blocks)
        parts = self._blocks(wanted.tolist())
        if self.is_sparse:
            return self._joined(parts, wanted, blocks, positions)
        out = np.empty((len(positions), *parts[0].shape[1:]), self.ref.dtype)
        for number, part in zip(wanted.tolist(), parts, strict=True):
            here = np.flatnonzero(blocks == number)
            out[here] = part[positions[here] - self.cuts[number]]
        return out

    def _joined(self, parts: list[Any], wanted: Array, blocks: Array, positions: Array) -> Any:
        order = np.argsort(blocks, kind="stable")
        chosen = [
            part[positions[order[blocks[order] == number]] - self.cuts[number]]
            for number, part in zip(wanted.tolist(), parts, strict=True)
        ]
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        whole: Any = chosen[0] if len(chosen) == 1 else np.concatenate(chosen)
        return whole if bool((back == np.arange(len(back))).all()) else whole[back]

    def _blocks(self, numbers: list[int]) -> list[Any]:
        """Return blocks; those that are not kept are read at once, but for those that another thread reads."""
        with self._lock:
            missing = [number for number in numbers if number not in self._kept]
            for number in missing:
                self._kept[number] = Future()
            futures = [self._kept[number] for number in numbers]
            for number in numbers:
                self._kept.move_to_end(number)
        if missing:
            self._read_in(missing)
        return [future.result() for future in futures]

    def _read_in(self, numbers: list[int]) -> None:
        spans = [np.arange(*self.cuts[number : number + 2]) for number in numbers]
        with self._lock:
            futures = [self._kept[number] for number in numbers]
        try:
            found = self._slices(np.concatenate(spans))
        except BaseException as error:  # handed to who waits; the next one reads again
            with self._lock:
                for number in numbers:
                    del self._kept[number]
            for future in futures:
                future.set_exception(error)
            return
        first = 0
        for span, future in zip(spans, futures, strict=True):
            part = found[first : first + len(span)]
            # A copy, or all that was read together would stay as long as one block of it.
            is_view = isinstance(part, np.ndarray) and len(numbers) > 1
            future.set_result(part.copy() if is_view else part)
            first += len(span)
        with self._lock:
            self._nbytes += sum(int(future.result().nbytes) for future in futures)
            self._evict()

    def _evict(self) -> None:
        for number in [number for number, future in self._kept.items() if future.done()]:
            if self._nbytes <= self.most:
                return
            self._nbytes -= int(self._kept.pop(number).result().nbytes)

    def _slices(self, positions: Array) -> Any:
        """Return slices at ascending positions, read now."""
        low, high = int(positions[0]), int(positions[-1]) + 1
        pick: Any = slice(low, high) if high - low == len(positions) else positions
        key = (*[slice(None)] * self.axis, pick)
        found = self.ref.oindex[key]
        if self.axis == 0:
            return found
        moved = np.moveaxis(found, self.axis, 0)
        return moved if isinstance(moved, SparseTensor) else np.ascontiguousarray(moved)
