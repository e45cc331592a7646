"""Sequences that slide: one row is a run of samples on a timeline that holds every id once.

Each sample (a user's last clicks, say) has most ids of one before it, moved by a few places: some are
dropped at one end, as many are new at the other. Reading is one gather. Samples that do not slide are stored
as `ftsf` has them, run by run: whichever is smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.indexing import AnySelection, Box
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.chain import TRANSPOSE
from tensorlake_spark.layouts.dense_rows import DenseRows
from tensorlake_spark.layouts.ftsf import Ftsf, is_fill
from tensorlake_spark.layouts.layout import grid_of
from tensorlake_spark.layouts.timelines.sliding import (
    Links,
    Placement,
    find_links,
    overlay,
    place_chains,
)
from tensorlake_spark.layouts.timelines.timeline import MAX_ROWS, Timeline
from tensorlake_spark.layouts.verification import Payload, boxes, checked, naming
from tensorlake_spark.rows.row import Row, Totals
from tensorlake_spark.tensor.spec import TensorSpec, native

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 16 << 20
"""Size of a block of samples before coding. A timeline begins anew with every block, so that it is large."""

PLAIN_BYTES = 1 << 20
"""Size of a chunk of samples that do not slide, and of the longest timeline."""

SHORT_BYTES = 32 << 10
"""Size from which a timeline ends where a chain does: what a read of one sample decompresses."""

SAMPLE_BYTES = 4 << 20
"""So much of a tensor is put on a timeline to choose its codec."""

_LONGEST = 1 << 31  # a timeline and its patches are counted in 32 bits

_WIDE_BYTES = 64 << 10  # samples are kept whole up to this
_MERGED = 0.75  # a block has one timeline if that gets so much shorter where chains are laid over each other


class Window(Ftsf):
    """Runs of samples that slide."""

    name = "window"
    has_index = True
    has_threads = False  # one goes through timelines
    row_group_bytes = 512 << 10

    def check_tensor(self, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        if dtype.kind not in "iu":
            raise UnsupportedDtypeError(
                f"layout window stores sequences of integers; {dtype} is not an integer dtype: choose "
                "layout='ftsf', or convert the ids with .astype('int64')"
            )
        if len(shape) != 2:
            raise InvalidTensorError(
                f"layout window stores tensors of rank 2 (sample, position); shape {tuple(shape)} is not "
                "such a shape: choose layout='ftsf', or reshape the tensor"
            )

    def default_block(
        self, shape: Sequence[int], dtype: np.dtype[Any], density: float = 1.0
    ) -> tuple[int, ...]:
        """Return a block of whole samples of about `BLOCK_BYTES`.

        Examples
        --------
        >>> Window().default_block((1_000_000, 256), np.dtype("int64"))
        (8192, 256)
        """
        self.check_tensor(shape, dtype)
        width = min(max(1, shape[1]), _WIDE_BYTES // dtype.itemsize)
        return min(max(1, shape[0]), BLOCK_BYTES // (width * dtype.itemsize), MAX_ROWS), width

    def check_codec(self, name: str) -> str:
        known = super().check_codec(name)
        if known.startswith(TRANSPOSE):
            raise InvalidOptionError(
                "layout window has no step transpose, for a timeline has one axis; take codec "
                f"{known.removeprefix(TRANSPOSE)!r}"
            )
        return known

    def choose_codec(self, sample: Array) -> str:
        return super().choose_codec(_typical(sample))

    def smallest_codec(self, sample: Array) -> str:
        return super().smallest_codec(_typical(sample))

    def arrangement(self, spec: TensorSpec) -> str:
        return f"window, blocks of {spec.block_shape}: a slice on samples skips blocks"

    def encode(self, part: Any, lo: Sequence[int], spec: TensorSpec) -> list[Row]:
        part = np.ascontiguousarray(native(part))
        if part.size == 0 or is_fill(part, spec.fill_value):
            return []  # of a block that has rows, every sample has one
        links = find_links(part)
        heights = [piece.hi[0] - lo[0] for piece in _chunks(spec, lo, part.shape)]
        rows: list[Row] = []
        for first, stop, placed in _runs(part, links, heights):
            some, at = part[first:stop], (lo[0] + first, lo[1])
            slid = self._slid(some, at, placed, spec)
            rows += self._plain(some, at, spec, slid) or ([slid] if slid else [])
        return rows

    def encode_again(self, part: Any, lo: Sequence[int], spec: TensorSpec) -> list[Row]:
        part = np.ascontiguousarray(native(part))
        plain = self.chunk(part, lo, spec)
        slid = self._slid(part, lo, overlay(*place_chains(part, find_links(part))), spec)
        return [slid if slid is not None and slid.nbytes < plain.nbytes else plain]

    def _plain(
        self, part: Array, lo: Sequence[int], spec: TensorSpec, slid: Row | None
    ) -> list[Row]:
        """Return samples as chunks, or nothing where these are larger than the row of them as they slide."""
        rows: list[Row] = []
        for piece in _chunks(spec, lo, part.shape):
            chunk = part[piece.shift([-n for n in lo]).slices()]
            rows.append(self.chunk(np.ascontiguousarray(chunk), piece.lo, spec))
            if slid is not None and sum(row.nbytes for row in rows) > slid.nbytes:
                return []
        return rows

    @staticmethod
    def _slid(part: Array, lo: Sequence[int], placed: Placement, spec: TensorSpec) -> Row | None:
        """Return samples as one row that holds every id once, or None where that is not shorter."""
        length = len(placed.timeline)
        if length >= part.size or length > _LONGEST or len(part) > MAX_ROWS:
            return None
        timeline = Timeline.of(part, *placed)
        if len(timeline.edits) > MAX_ROWS:
            return None
        index, codec, values = timeline.pack(codecs.codec_of(spec.codec))
        hi = tuple(a + n for a, n in zip(lo, part.shape, strict=True))
        return Row(tuple(lo), hi, part.size, codec, values, index)

    def decode(
        self, batch: pa.RecordBatch, spec: TensorSpec, selection: AnySelection, result: Array
    ) -> Totals:
        lo, hi = boxes(batch, spec.ndim)
        wanted = np.flatnonzero(selection.hits(lo, hi)).tolist()
        payloads = checked(batch, spec, wanted, lo, hi, codecs.CODECS)
        found = dict(zip(wanted, payloads.each(), strict=True))
        plain = {i: payload for i, payload in found.items() if payload.index is None}
        with naming(spec):
            totals = DenseRows(plain, lo, hi, spec, selection).put(result)
            for i, payload in found.items():
                if payload.index is not None:
                    box = lo[i].tolist(), hi[i].tolist()
                    totals += _gather(payload, box, spec, selection, result)
        return totals

    def row_bound(self, spec: TensorSpec, selection: AnySelection) -> int:
        return 2 * grid_of(_chunked(spec)).count(selection.box)  # runs need not end where chunks do


def _typical(sample: Array) -> Array:
    """Return what a codec is chosen for: the timeline of samples that slide, else the samples."""
    sample = np.ascontiguousarray(native(sample))
    if sample.size and sample.ndim == 2:
        sample = sample[: max(1, SAMPLE_BYTES // (sample.shape[1] * sample.itemsize))]
        placed = overlay(*place_chains(sample, find_links(sample)))
        if placed.timeline.nbytes * 2 < sample.nbytes:
            return placed.timeline
    return sample


def _chunked(spec: TensorSpec) -> TensorSpec:
    """Return a tensor as it is cut where its samples do not slide: into parts of its blocks."""
    height, width = spec.block_shape
    parts = -(-height * width * spec.dtype.itemsize // PLAIN_BYTES)
    return replace(spec, block_shape=(max(1, height // parts), width))


def _chunks(spec: TensorSpec, lo: Sequence[int], shape: Sequence[int]) -> list[Box]:
    """Return the boxes in which a part is stored where it does not slide."""
    box = Box(tuple(lo), tuple(a + n for a, n in zip(lo, shape, strict=True)))
    whole = tuple(max(a, b) for a, b in zip(spec.shape, box.hi, strict=True))
    grid = grid_of(_chunked(replace(spec, shape=whole)))
    return [cell.intersect(box) for cell in grid.cells(box)]


def _runs(part: Array, links: Links, stops: Sequence[int]) -> Iterator[tuple[int, int, Placement]]:
    """Yield the runs of a block that have a timeline of their own, of at most `PLAIN_BYTES`.

    Parameters
    ----------
    part : ndarray
        The block.
    links : Links
        Of its samples.
    stops : sequence of int
        Where plain chunks end, ascending.

    Yields
    ------
    tuple
        First sample, the one after the last, and all of them placed on a timeline.
    """
    chains = place_chains(part, links)
    whole = overlay(*chains)
    length, merged = len(chains[0].timeline), len(whole.timeline)
    if merged < _MERGED * length and merged * part.itemsize <= PLAIN_BYTES:
        yield 0, len(part), whole
        return
    new = np.cumsum(links.new_ids(part.shape[1])) * part.itemsize
    first = 0
    for stop in _ends(new, ~links.is_linked, stops[0]):
        placed, heads = place_chains(part[first:stop], links.part(first, stop))
        yield first, stop, overlay(placed, heads) if merged < length else placed
        first = stop


def _ends(new: Array, is_head: Array, least: int) -> Iterator[int]:
    """Yield where runs end: of at least so many samples, before a chain begins if there is one in time.

    Parameters
    ----------
    new : int64 ndarray, shape (samples,)
        Bytes of the timeline of each sample and all before it.
    is_head : bool ndarray, shape (samples,)
        Whether a chain begins.
    least : int
        Samples.
    """
    count, first = len(new), 0
    while first < count:
        before = int(new[first - 1]) if first else 0
        soonest = max(first + least, int(np.searchsorted(new, before + SHORT_BYTES)) + 1)
        latest = max(first + least, int(np.searchsorted(new, before + PLAIN_BYTES, side="right")))
        heads = np.flatnonzero(is_head[soonest : latest + 1])
        stop = soonest + int(heads[0]) if len(heads) else latest
        first = stop if stop + least <= count else count
        yield first


def _gather(
    payload: Payload,
    box: tuple[list[int], list[int]],
    spec: TensorSpec,
    selection: AnySelection,
    result: Array,
) -> Totals:
    """Put what is asked for of one row of samples that slide into the result."""
    lo, hi = box
    shape = [b - a for a, b in zip(lo, hi, strict=True)]
    codec = codecs.codec_of(payload.codec)
    timeline = Timeline.unpack(payload.index, payload.values, codec, shape, spec.dtype)
    size = len(payload.values) + len(payload.index)
    src, dst = selection.project(lo, hi)
    if isinstance(src[1], slice):
        view = result[dst] if isinstance(dst[0], slice) else None
        part = view if view is not None else np.empty(result[dst].shape, spec.dtype)
        columns = slice(*src[1].indices(shape[1]))
        timeline.take(src[0], columns, part)
        if view is None:
            result[dst] = part
        return Totals(1, part.size, size)
    rows = np.arange(shape[0])[src[0], None] if isinstance(src[0], slice) else src[0]
    part = timeline.pick(rows, src[1])
    result[dst] = part
    return Totals(1, part.size, size)
