"""What COO, CSR, CSC and CSF share: a row is a run of sorted non-zeros, with their tight bounding box.

The layouts differ in the order of the elements, where a run may be cut, and what the index of a run is.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.indexing import AnySelection, Box, locate
from tensorlake_spark.indexing.coords import ravel, sort_places
from tensorlake_spark.layouts.coding.buffers import MAX_ELEMENTS, pack_values, unpack_values
from tensorlake_spark.layouts.sparse.element_keys import Rows, SparseLayout
from tensorlake_spark.rows.row import Row
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]

RUN = 128 << 10
"""Elements of a row (DESIGN: about 128 Ki)."""


class RunLayout(SparseLayout):
    """A layout whose rows are runs of sorted non-zeros."""

    has_blocks = False

    def default_block(
        self, shape: Sequence[int], dtype: np.dtype[Any], density: float = 1.0
    ) -> tuple[int, ...]:
        return ()

    @abstractmethod
    def storage_order(self, spec: TensorSpec) -> tuple[int, ...]:
        """Return the order of the axes in which elements are sorted, slowest first."""

    def whole_axes(self, spec: TensorSpec) -> int:
        """Return how many axes of the order elements share that a run does not divide, if it can."""
        return 0

    def row_params(self, spec: TensorSpec) -> str | None:
        """Return the column ``params`` of all rows of a tensor."""
        return None

    @abstractmethod
    def encode_run(self, inside: Array, sides: Sequence[int], spec: TensorSpec) -> bytes:
        """Return the index of a run.

        Parameters
        ----------
        inside : int64 ndarray, shape (ndim, n)
            Coordinates in the run's box, in storage order; at least one.
        sides : sequence of int
            Lengths of the box.
        spec : TensorSpec
            The tensor.
        """

    @abstractmethod
    def decode_run(
        self, index: Any, count: int, sides: Sequence[int], params: str | None, wanted: Box
    ) -> tuple[Array | None, Array]:
        """Return coordinates of elements in the run's box: the inverse of `encode_run`.

        Parameters
        ----------
        index : bytes-like
            As `encode_run` made it.
        count : int
            Elements of the run.
        sides : sequence of int
            Lengths of its box.
        params : str or None
            The column of the row.
        wanted : Box
            A part of the run's box; elements outside of it may be left out.

        Returns
        -------
        places : int64 ndarray, or None
            Which of the elements are returned, ascending; None for all.
        coords : int64 ndarray, shape (ndim, len(places))

        Raises
        ------
        CorruptDataError
            If the index does not hold just `count` elements, all of them inside of the box.
        """

    def leading_axis(self, spec: TensorSpec) -> int:
        return (*self.storage_order(spec), 0)[0]

    def arrangement(self, spec: TensorSpec) -> str:
        order = ", ".join(map(str, self.storage_order(spec)))
        return (
            f"{self.name}, runs sorted by the axes {order}: a slice on the first of them skips most"
        )

    def encode_elements(
        self, coords: Array, values: Array, spec: TensorSpec, hi: Sequence[int]
    ) -> list[Row]:
        order = self.storage_order(spec)
        if order != tuple(range(spec.ndim)):
            _, by = sort_places(ravel(coords[list(order)], [hi[k] for k in order]))
            coords, values = coords[:, by], values[by]
        params = self.row_params(spec)
        rows = []
        for start, stop in self._cut(coords[list(order[: self.whole_axes(spec)])]):
            part = coords[:, start:stop]
            low, high = part.min(axis=1), part.max(axis=1) + 1
            index = self.encode_run(part - low[:, None], (high - low).tolist(), spec)
            packed = pack_values(values[start:stop], spec.codec != "raw")
            box = tuple(low.tolist()), tuple(high.tolist())
            rows.append(Row(*box, stop - start, spec.codec, packed, index, params))
        return rows

    @staticmethod
    def _cut(group: Array) -> list[tuple[int, int]]:
        """Return runs of about `RUN` elements; groups stay whole unless they are far larger."""
        count = group.shape[1]
        if len(group):
            changes = (group[:, 1:] != group[:, :-1]).any(axis=0)
            edges = np.concatenate([[0], np.flatnonzero(changes) + 1, [count]])
        spans, start = [], 0
        while start < count:
            stop = min(start + RUN, count)
            if len(group) and stop < count:
                near = int(edges[np.searchsorted(edges, stop, side="right") - 1])
                after = int(edges[np.searchsorted(edges, stop)])
                stop = near if near > start else min(after, start + 8 * RUN)
            spans.append((start, stop))
            start = stop
        return spans

    def pick(
        self, rows: Rows, spec: TensorSpec, selection: AnySelection
    ) -> tuple[Array, Array, Array]:
        found = []
        low, high = (np.array(corner, np.int64) for corner in (selection.box.lo, selection.box.hi))
        for i, (payload, count) in enumerate(zip(rows.payloads.each(), rows.counts, strict=True)):
            sides = rows.hi[i] - rows.lo[i]
            if payload.index is None or count > MAX_ELEMENTS:
                raise CorruptDataError(f"a run of {count} elements has no index, or is too long")
            wanted = Box(
                tuple(np.maximum(low - rows.lo[i], 0).tolist()),
                tuple(np.minimum(high - rows.lo[i], sides).tolist()),
            )
            kept, inside = self.decode_run(
                payload.index, count, sides.tolist(), payload.params, wanted
            )
            for axis, start in zip(inside, rows.lo[i].tolist(), strict=True):
                if start:
                    axis += start
            take, out = locate(selection, inside)
            if len(take):
                places = take if kept is None else kept[take]
                values = unpack_values([payload.values], [count], spec.dtype, places)
                found.append((ravel(out, selection.storage_shape), values, np.full(len(take), i)))
        if not found:
            none = np.zeros(0, np.int64)
            return none, np.zeros(0, spec.dtype), none
        keys, values, row = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return keys, values, row


def volume(sides: Sequence[int], axes: Sequence[int]) -> int:
    """Return the number of cells that some axes of a box span.

    Examples
    --------
    >>> volume((2, 3, 5), (0, 2))
    10
    """
    return math.prod(sides[k] for k in axes)
