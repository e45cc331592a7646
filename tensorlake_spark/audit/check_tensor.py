"""All rows of one tensor held against its metadata and against each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from tensorlake_spark.audit.inventory import Description, Part, Sides
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.indexing import Box, cells_along, select
from tensorlake_spark.indexing.overlaps import meeting
from tensorlake_spark.layouts import LAYOUTS, grid_of, layout_of
from tensorlake_spark.layouts.layout_registry import unread_layout
from tensorlake_spark.layouts.verification import box_text
from tensorlake_spark.reading.gaps import uncovered
from tensorlake_spark.reading.read import read
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Totals, block_of
from tensorlake_spark.tensor.spec import TensorSpec, dtype_name
from tensorlake_spark.writing.options import FEATURES

Array = np.ndarray[Any, Any]

DESCRIBED = "described"
"""Kind of a row whose ``shape`` or ``block_shape`` is not what its tensor's metadata say: nothing is read by these."""

# Tasks that do not know how long a tensor gets write a length that none has.
_OPEN_END = 1 << 40  # of that axis
_OPEN_SIZE = 1 << 61  # or elements of the whole, where the other axes are long

_AT_ONCE = 1 << 22  # elements that are decoded together to look for duplicates
_SHOWN = 5  # findings of one kind in a tensor
_EARLIER = "lake.restore(id, version) brings an earlier version of the tensor back"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a tensor: a kind, where, and a sentence."""

    kind: str
    place: str
    text: str


@dataclass(slots=True)
class Stock:
    """All rows of one tensor."""

    parts: list[Part] = field(default_factory=list)
    descriptions: list[Description] = field(default_factory=list)

    @property
    def last(self) -> Description | None:
        """The metadata row that holds."""
        return max(self.descriptions, key=lambda d: d.seq, default=None)

    @property
    def last_seq(self) -> int:
        """The greatest place of a row."""
        ends = [int(part.seq.max()) for part in self.parts if len(part.seq)]
        return max([*ends, *(d.seq for d in self.descriptions)], default=-1)

    @property
    def totals(self) -> Totals:
        """What the data rows add up to."""
        return sum(
            (Totals(len(p.seq), int(p.nnz.sum()), int(p.nbytes.sum())) for p in self.parts),
            Totals(),
        )

    @property
    def is_uncounted(self) -> bool:
        """Whether the metadata row that holds has other totals than the data rows."""
        meta = None if self.last is None else self.last.meta
        return meta is not None and meta.totals != self.totals


def check_tensor(snapshot: Snapshot, tensor_id: str, stock: Stock, is_sound: bool) -> list[Problem]:
    """Return what is wrong with a tensor as a whole.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    tensor_id : str
        The tensor.
    stock : Stock
        All of its rows.
    is_sound : bool
        Whether they can be decoded: what a damaged row, or file, does not tell is left out.
    """
    where = f"tensor {tensor_id!r}"
    if stock.last is None:
        text = f"{stock.totals.rows} rows have no metadata row, so nobody finds them; {_EARLIER}, or write or purge it"
        return [Problem("metadata", where, text)]
    meta = stock.last.meta
    if meta is None:
        return [Problem("metadata", where, f"the metadata row that holds is damaged; {_EARLIER}")]
    problems = [Problem(kind, where, text) for kind, text in _places(stock, meta)]
    problems += [Problem("row", where, text) for text in _strangers(stock, meta)]
    problems += [
        Problem(DESCRIBED, f"{where}, {row}", text) for row, text in _described(stock, meta)
    ]
    have, want = stock.totals, meta.totals
    if have != want:
        text = (
            f"there are {have.rows} rows with {have.nnz} elements and {have.nbytes} bytes, the metadata row says "
            f"{want.rows} rows with {want.nnz} elements and {want.nbytes} bytes"
        )
        problems.append(Problem("totals", where, text))
    parts = [part for part in stock.parts if part.lo.shape[1] == meta.spec.ndim]
    if not parts or any(problem.kind == "row" for problem in problems):
        return problems
    if meta.spec.layout not in LAYOUTS:
        return [*problems, Problem("metadata", where, unread_layout(meta.spec.layout))]
    lo, hi, nnz = (np.concatenate([getattr(p, n) for p in parts]) for n in ("lo", "hi", "nnz"))
    seq = np.concatenate([part.seq for part in parts])
    if layout_of(meta.spec.layout).is_sparse:
        if is_sound and meta.spec.params.get("duplicates", "error") == "error":
            found = islice(_duplicates(snapshot, meta, lo, hi, nnz), _SHOWN)
            problems += [Problem("duplicate", f"{where}, box {box}", text) for box, text in found]
        return problems
    for i, j in meeting(lo, hi, _SHOWN)[:_SHOWN]:
        text = (
            f"row {seq[i]} meets row {seq[j]} with box {box_text(lo[j], hi[j])}, and rows of a dense tensor do "
            f"not overlap; delete one of them with plain Delta and repair, or {_EARLIER}"
        )
        problems.append(Problem("overlap", f"{where}, box {box_text(lo[i], hi[i])}", text))
    if have.rows < want.rows and not any(problem.kind == "overlap" for problem in problems):
        text = f"no row is there; {_EARLIER}, if it was not deleted on purpose"
        holes = islice(_gaps(meta, lo, hi), _SHOWN)
        problems += [Problem("gap", f"{where}, box {hole}", text) for hole in holes]
    return problems


def _places(stock: Stock, meta: Meta) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the places of rows in the storage order."""
    seqs = np.sort(np.concatenate([part.seq for part in stock.parts] or [np.zeros(0, np.int64)]))
    twice = seqs[1:][seqs[1:] == seqs[:-1]]
    if len(twice):
        text = f"{len(twice)} places are taken by more than one row, the first of them {twice[0]}"
        yield "seq", text
    if len(seqs) and seqs[-1] >= meta.seq:
        text = f"row {seqs[-1]} comes after the metadata row {meta.seq}, which should be the last"
        yield "order", text
    rivals = [d.meta for d in stock.descriptions if d.seq == meta.seq]
    if any(rival != meta for rival in rivals):
        yield "seq", f"{len(rivals)} metadata rows have the place {meta.seq}, and differ"


def _strangers(stock: Stock, meta: Meta) -> Iterator[str]:
    """Yield rows that do not fit the tensor: another layout, dtype or rank, or outside of it."""
    spec = meta.spec
    want = (spec.layout, dtype_name(spec.dtype), spec.ndim)
    shape = np.array(spec.shape, np.int64)
    for part in stock.parts:
        have = (part.layout, part.dtype, part.lo.shape[1])
        if have != want:
            yield (
                f"{len(part.seq)} rows in {part.path} have (layout, dtype, rank) {have}, the tensor has {want}"
            )
            continue
        outside = np.flatnonzero((part.hi > shape).any(axis=1))
        if len(outside):
            i = outside[0]
            yield (
                f"{len(outside)} rows in {part.path} lie outside of shape {spec.shape}, such as "
                f"{box_text(part.lo[i], part.hi[i])}"
            )


def _described(stock: Stock, meta: Meta) -> Iterator[tuple[str, str]]:
    """Yield rows whose columns say a shape that the tensor never had, or other blocks than it has."""
    spec = meta.spec
    want = block_of(spec)
    for part in stock.parts:
        if part.lo.shape[1] != spec.ndim:
            continue  # a stranger
        for (shape, block), rows in part.said.items():
            if block == want and _may_have_been(shape, spec):
                continue
            for i in rows:
                row = f"row {part.seq[i]}, box {box_text(part.lo[i], part.hi[i])}"
                yield (
                    row,
                    f"its columns say shape {_sides(shape)} and block_shape {_sides(block)}, the metadata of the "
                    f"tensor say {_sides(spec.shape)} and {_sides(want)} ({part.path}); no checksum covers these "
                    f"columns and our reads do not need them; {_EARLIER}",
                )


def _may_have_been(said: Sides, spec: TensorSpec) -> bool:
    """Whether a row may say a shape of its tensor: that of now, a smaller one before it grew, or an open end.

    Features can be dropped, so their tensors may have had more of them.
    """
    sides = [-1 if side is None else side for side in said or ()]
    if min(sides, default=0) < 0:
        return False
    fixed = 1 if FEATURES in spec.attrs else spec.ndim
    pairs = zip(sides[:fixed], spec.shape[:fixed], strict=True)
    return math.prod(sides) > _OPEN_SIZE or all(side <= n or side >= _OPEN_END for side, n in pairs)


def _sides(sides: Sides) -> str:
    return "null" if sides is None else str(list(sides))


def _duplicates(
    snapshot: Snapshot, meta: Meta, lo: Array, hi: Array, nnz: Array
) -> Iterator[tuple[str, str]]:
    """Yield regions in which rows store an element more than once; only where boxes meet is looked at."""
    shape = meta.spec.shape
    regions = [Box.whole(shape)]
    while regions:
        box = regions.pop()
        first, last = np.maximum(lo, box.lo), np.minimum(hi, box.hi)
        near = (first < last).all(axis=1)
        if near.sum() < 2 or not meeting(first[near], last[near], 1):
            continue
        if nnz[near].sum() > _AT_ONCE < box.size:
            axis = int(np.argmax(box.shape))
            cut = (box.lo[axis] + box.hi[axis]) // 2
            regions += [_part(box, axis, box.lo[axis], cut), _part(box, axis, cut, box.hi[axis])]
            continue
        try:
            read(snapshot, meta, select(box.slices(), shape), verify=False)
        except CorruptDataError as error:
            yield box_text(np.array(box.lo), np.array(box.hi)), f"{error}; {_EARLIER}"


def _part(box: Box, axis: int, lo: int, hi: int) -> Box:
    return Box((*box.lo[:axis], lo, *box.lo[axis + 1 :]), (*box.hi[:axis], hi, *box.hi[axis + 1 :]))


def _gaps(meta: Meta, lo: Array, hi: Array) -> Iterator[str]:
    """Yield boxes that no row covers and that should be: only for a tensor of which rows are missing.

    A chunk without a row is full of the fill value. So where the totals say that rows cover all of the
    tensor, each box without one is a gap; else only what is less than a chunk can be told.
    """
    spec = meta.spec
    grid = grid_of(spec)
    cells: Iterable[Box] = grid.cells(Box.whole(spec.shape))
    if meta.totals.nnz != spec.size:
        cells = _broken_cells(meta, lo, hi)
    for hole in uncovered(cells, lo, hi):
        yield box_text(np.array(hole.lo), np.array(hole.hi))


def _broken_cells(meta: Meta, lo: Array, hi: Array) -> list[Box]:
    """Return the cells of the grid that rows cover in part."""
    grid = grid_of(meta.spec)
    whole = np.ones(len(lo), bool)
    for k, (side, starts) in enumerate(zip(grid.chunk, grid.segments, strict=True)):
        _, start = cells_along(lo[:, k], side, starts)
        ends = np.append(np.array(starts[1:], np.int64), grid.shape[k])
        stop = np.minimum(start + side, ends[np.searchsorted(ends, start, side="right")])
        whole &= (lo[:, k] == start) & (hi[:, k] == stop)
    found: dict[Box, None] = {}
    for i in np.flatnonzero(~whole).tolist():
        found |= dict.fromkeys(grid.cells(Box(tuple(lo[i].tolist()), tuple(hi[i].tolist()))))
    return list(found)
