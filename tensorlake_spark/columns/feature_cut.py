"""A tensor of features without its last blocks of features: rows of the others stay in the files that they are in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files.compacting.rewrite import boxes, in_file_order, rewrite
from tensorlake_spark.indexing import select
from tensorlake_spark.layouts import grid_of
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import PAYLOAD, Totals, bools, corners, is_text
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.pipeline import commit_change, writer_of
from tensorlake_spark.writing.uncommitted import Uncommitted

Array = np.ndarray[Any, Any]


def unchanged(spec: TensorSpec, columns: Array) -> int:
    """Return how many features at the beginning of a tensor are whole blocks that an order leaves as they are.

    Parameters
    ----------
    spec : TensorSpec
        The tensor.
    columns : int64 ndarray
        The features that it shall have, by their index.
    """
    moved = np.flatnonzero(columns != np.arange(len(columns)))
    first = int(moved[0]) if len(moved) else len(columns)
    cuts = grid_of(spec).cuts(1)
    return int(cuts[cuts <= first].max())


def cut(changes: Uncommitted, meta: Meta, count: int, **said: Any) -> None:
    """Take out all features but the first ones.

    A file is written anew if it holds a row of those that go, and no other.

    Parameters
    ----------
    changes : Uncommitted
        Takes the change.
    meta : Meta
        The tensor.
    count : int
        How many features stay: whole blocks.
    **said
        What else its spec says then, such as ``labels``.
    """
    spec = meta.spec
    view = changes.changing(meta, spec.id, rewrites=True)
    rest = select((slice(None), slice(count, None)), spec.shape)
    hit = {path for path, lo, _ in boxes(view, spec.id, rest) if (lo[:, 1] >= count).any()}
    gone = Totals()

    def kept(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal gone
        ours = np.asarray(is_text(batch.column("id"), spec.id))
        is_data = np.asarray(batch.column("nnz")) > 0
        data = np.flatnonzero(ours & is_data)
        lo, _ = corners(batch.take(pa.array(data)), spec.ndim)
        goes = np.zeros(len(ours), bool)
        goes[data[lo[:, 1] >= count]] = True
        rows = batch.filter(bools(goes))
        sizes = (pc.sum(pc.binary_length(rows.column(name))).as_py() or 0 for name in PAYLOAD)
        gone += Totals(rows.num_rows, pc.sum(rows.column("nnz")).as_py() or 0, sum(sizes))
        return batch.filter(bools(~goes & (is_data | ~ours)))

    runs = tuple(start for start in spec.segments[1] if start < count)
    with writer_of(view, spec) as writer:
        removes = in_file_order(view, hit)
        for path in removes:
            rewrite(view, path, writer, kept)
        shape = (spec.shape[0], count)
        left = replace(spec, shape=shape, segments=(spec.segments[0], runs), **said)
        writer.add_meta([left], [meta.seq + 1], [meta.totals - gone])
        commit_change(view, spec.id, writer, removes, "drop", None)
