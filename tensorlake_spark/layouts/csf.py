"""CSF, compressed sparse fibres (Delta Tensor, section IV-E): one row is a run of root fibres.

Elements form a tree: a level for every axis, in an order that is a parameter; a node is an index that
occurs below its parent. The index of a run has the number of nodes of every level, the number of
children of every node (the differences of the fibre pointers), and the ids of every level.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.indexing import Box
from tensorlake_spark.layouts.coding.buffers import check_ints, pack_ints, unpack_ints
from tensorlake_spark.layouts.coding.integer_sequences import gaps, join, split, unpack_ascending
from tensorlake_spark.layouts.sparse.element_keys import axis_order, checked_order
from tensorlake_spark.layouts.sparse.element_runs import RunLayout
from tensorlake_spark.layouts.verification import params_of
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]


class Csf(RunLayout):
    """A fibre tree."""

    name = "csf"

    def choose_params(
        self, ndim: int, order: Sequence[int] | None, row_axes: Sequence[int] | None
    ) -> dict[str, Any]:
        super().choose_params(ndim, None, row_axes)
        return {"order": checked_order(range(ndim) if order is None else order, ndim)}

    def storage_order(self, spec: TensorSpec) -> tuple[int, ...]:
        return tuple(spec.params["order"])

    def whole_axes(self, spec: TensorSpec) -> int:
        return min(1, spec.ndim)

    def row_params(self, spec: TensorSpec) -> str | None:
        return json.dumps({"order": list(spec.params["order"])}, separators=(",", ":"))

    def encode_run(self, inside: Array, sides: Sequence[int], spec: TensorSpec) -> bytes:
        compress = spec.codec != "raw"
        count = inside.shape[1]
        fresh = np.zeros(count, bool)
        fresh[0] = True
        starts: list[Array] = []
        ids: list[bytes] = []
        parents = np.zeros(1, np.int64)
        for k in spec.params["order"]:
            fresh[1:] |= inside[k, 1:] != inside[k, :-1]
            nodes = np.flatnonzero(fresh)
            # A parent begins where its first child does.
            below = np.searchsorted(nodes, parents)
            ids.append(pack_ints(gaps(inside[k, nodes], below), compress))
            starts.append(below)
            parents = nodes
        sizes = [len(s) for s in starts[1:]] + [count] if starts else []
        children = [
            pack_ints(np.diff(below, append=size), compress)
            for below, size in zip(starts[1:], sizes[1:], strict=True)
        ]
        return join([pack_ints(np.array(sizes, np.int64), False), *children, *ids])

    def decode_run(
        self, index: Any, count: int, sides: Sequence[int], params: str | None, wanted: Box
    ) -> tuple[Array | None, Array]:
        ndim = len(sides)
        order = axis_order(params_of(params), ndim)
        buffers = split(index, max(1, 2 * ndim))
        sizes = [int(n) for n in unpack_ints([buffers[0]], [ndim])]
        if any(not 1 <= n <= count for n in sizes) or [count, *sizes][-1] != count:
            raise CorruptDataError(f"the levels of a tree of {count} elements have {sizes} nodes")
        check_ints(buffers[1:ndim], sizes[:-1], least=1)
        counts = [np.array(sizes[:1])]
        for level, buffer in enumerate(buffers[1:ndim]):
            found = unpack_ints([buffer], [sizes[level]]).astype(np.int64)
            if (found < 1).any() or (found > count).any() or found.sum() != sizes[level + 1]:
                raise CorruptDataError("the pointers of a tree do not add up to its nodes")
            counts.append(found)
        ids = [
            unpack_ascending(buffer, counts[level], sides[order[level]])
            for level, buffer in enumerate(buffers[ndim:] if ndim else ())
        ]
        out = np.empty((ndim, count), np.int64)
        nodes: Any = slice(None)  # for every leaf its ancestor on the current level
        for level in reversed(range(ndim)):
            out[order[level]] = ids[level][nodes]
            nodes = np.repeat(np.arange(len(counts[level])), counts[level])[nodes]
        return None, out
