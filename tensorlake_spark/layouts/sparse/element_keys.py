"""What the sparse layouts share: elements as keys, gathered from many rows, sorted once.

While a slice is read, an element is one integer: its place in C order in the slice
(`Selection.storage_shape`). Rows are decoded in batches, in any order and by several threads; each
batch leaves its keys and values in a `Gathered`, and `finish` makes a `SparseTensor` of them.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidKeyError,
    InvalidOptionError,
    InvalidTensorError,
    did_you_mean,
)
from tensorlake_spark.indexing import AnySelection, Box, Selection, place
from tensorlake_spark.indexing.coords import LONG_RUN, combine, sort_places, unravel
from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.layouts import result_memory
from tensorlake_spark.layouts.layout import Layout
from tensorlake_spark.layouts.quantization.rounded_values import rounded_for
from tensorlake_spark.layouts.verification import Payloads, boxes, checked, integers, naming
from tensorlake_spark.rows.row import Row, Totals, numbers
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.threads import threads

Array = np.ndarray[Any, Any]

LOOPS = "tensorlake_spark.layouts.kernels.sparse"
"""What `kernel_switch` loads for sparse rows."""

CODECS = ("zstd", "raw")
"""Codecs of the sparse layouts: whether zstd follows the filters that a layout fixes."""

_REGION = 1 << 22  # elements of a dense region that are looked through at a time
_ALONE = 1 << 17  # so few elements are not worth a second thread
_MANY = 256  # so many parts are sorted all at once
_NONE = np.zeros(0, np.int64)


Part = tuple[Array, Array, Array]
"""Sorted keys, values, and the rows' places where duplicates are combined, else nothing."""


class Rows(NamedTuple):
    """Some rows of a batch that hold elements of a selection.

    Attributes
    ----------
    lo, hi : int64 ndarray, shape (rows, ndim)
        Their boxes.
    counts : list of int
        Elements that each says it stores.
    seqs : int64 ndarray, shape (rows,)
        Their places in the tensor's storage order.
    payloads : Payloads
        Checked, not decoded.
    """

    lo: Array
    hi: Array
    counts: list[int]
    seqs: Array
    payloads: Payloads


class Gathered:
    """Elements that a read has found so far; each part is sorted, if the order is wanted.

    Values may be shorter than the tensor's dtype: it takes less time to widen them last.
    """

    def __init__(self, in_order: bool = True) -> None:
        self.parts: list[Part] = []
        self._in_order = in_order

    def add(self, keys: Array, values: Array, seqs: Array) -> None:
        """Add some elements: keys, their values, and, where it matters, their rows' places."""
        if len(keys):
            part = sort_elements(keys, values, seqs) if self._in_order else (keys, values, seqs)
            self.parts.append(part)  # one append: threads need no lock


class SparseLayout(Layout):
    """A layout whose rows hold non-zeros; `decode` gives a `SparseTensor`."""

    columns = (
        "seq", "lo", "hi", "nnz", "layout", "params", "dtype", "codec", "index", "values", "crc",
    )  # fmt: skip

    is_sparse = True
    row_group_bytes = 512 << 10

    @abstractmethod
    def encode_elements(
        self, coords: Array, values: Array, spec: TensorSpec, hi: Sequence[int]
    ) -> list[Row]:
        """Return the rows of some elements.

        Parameters
        ----------
        coords : int64 ndarray, shape (ndim, n)
            In the tensor, without duplicates, in C order; at least one.
        values : ndarray, shape (n,)
            In the machine's byte order.
        spec : TensorSpec
            The tensor.
        hi : sequence of int
            Upper corner of the tensor as it will be, which no box passes.
        """

    @abstractmethod
    def pick(
        self, rows: Rows, spec: TensorSpec, selection: AnySelection
    ) -> tuple[Array, Array, Array]:
        """Return what a selection picks of some rows.

        Returns
        -------
        keys : int64 ndarray, shape (m,)
            Places in C order in ``selection.storage_shape``, in any order.
        values : ndarray, shape (m,)
            Of the tensor's dtype, or of a shorter one that holds the same numbers.
        row : integer ndarray, shape (m,)
            Which of the rows each is from; empty unless the tensor `combines` duplicates.
        """

    def choose_codec(self, sample: Any) -> str:
        return "zstd"

    def check_codec(self, name: str) -> str:
        if name not in CODECS:
            raise InvalidOptionError(
                f"unknown codec {name!r}{did_you_mean(name, ('auto', 'smallest', *CODECS))}; those of layout "
                f"{self.name} are auto, smallest, {', '.join(CODECS)}"
            )
        return name

    def pieces(self, spec: TensorSpec, box: Box) -> Iterator[Box]:
        """Yield slabs of whole blocks along axis 0: what a dense region is searched through in."""
        if not box.shape or 0 in box.shape:
            yield box
            return
        height = spec.block_shape[0] if spec.block_shape else 1
        step = height * max(1, _REGION // (math.prod(box.shape[1:]) * height))
        at, stop = box.lo[0], box.hi[0]
        while at < stop:
            # A run of the grid begins anew at each start: blocks are counted from there.
            run = max(start for start in spec.segments[0] if start <= at)
            later = [start for start in spec.segments[0] if start > at]
            end = min(*later, stop, run + (at - run) // height * height + step)
            yield Box((at, *box.lo[1:]), (end, *box.hi[1:]))
            at = end

    def encode(self, part: Any, lo: Sequence[int], spec: TensorSpec) -> list[Row]:
        found = part if isinstance(part, SparseTensor) else SparseTensor.from_dense(part)
        if not found.nnz:
            return []
        offset = np.array(lo, np.int64).reshape(-1, 1)
        hi = tuple(max(n, a + m) for n, a, m in zip(spec.shape, lo, found.shape, strict=True))
        if math.prod(hi) >= 2**63:
            raise InvalidTensorError(
                f"tensor {spec.id!r} would have shape {hi}; fewer than 2**63 elements can be counted"
            )
        coords = found.coords + offset if offset.any() else found.coords
        values = rounded_for(spec, found.values, coords)
        return self.encode_elements(coords, values, spec, hi)

    def new_result(self, spec: TensorSpec, selection: AnySelection, full: bool) -> Gathered:
        if math.prod(selection.storage_shape) >= 2**63:
            raise InvalidKeyError(
                f"a result of shape {selection.storage_shape} has 2**63 elements or more"
            )
        return Gathered()

    def decode(
        self, batch: pa.RecordBatch, spec: TensorSpec, selection: AnySelection, result: Gathered
    ) -> Totals:
        result_memory.keep_freed()
        lo, hi = boxes(batch, spec.ndim)
        wanted = np.flatnonzero(selection.hits(lo, hi))
        found = checked(batch, spec, wanted.tolist(), lo, hi, CODECS)
        if not len(wanted):
            return Totals()
        with naming(spec):
            counts = _counts(batch, wanted, hi[wanted] - lo[wanted])
            seqs = numbers(batch.column("seq"))[wanted]
            rows = Rows(lo[wanted], hi[wanted], counts, seqs, found)
            keys, values, row = self.pick(rows, spec, selection)
        if combines(spec):
            result.add(keys, values.astype(spec.dtype, copy=False), seqs[row])
        else:
            result.add(keys, values, seqs[:0])
        return Totals(len(wanted), len(keys), found.nbytes)

    def finish(self, spec: TensorSpec, selection: AnySelection, result: Gathered) -> Any:
        runs = unite(result.parts, spec)
        if selection.is_scalar:
            return runs[0][1].astype(spec.dtype)[0] if runs else np.zeros((), spec.dtype)[()]
        # Axes that come or go have one element: a place in C order stays the same without them.
        in_place = isinstance(selection, Selection) and not (selection.flips or selection.moved)
        shape = selection.result_shape if in_place else selection.storage_shape
        ends = np.cumsum([len(keys) for keys, _ in runs], dtype=np.int64).tolist()
        out = result_memory.empty((len(shape), ends[-1] if ends else 0), np.dtype(np.int64))
        values = result_memory.empty((out.shape[1],), spec.dtype)

        is_plain = len(shape) > 1 and math.prod(shape[-2:]) < 1 << 52

        def put(run: tuple[Array, Array], end: int) -> None:
            span = slice(end - len(run[0]), end)
            loops = compiled(LOOPS, "unravel", nbytes=run[0].nbytes) if is_plain else None
            if loops is None:
                unravel(run[0], shape, out[:, span])
            else:
                loops.unravel(run[0], shape, out, span.start)
            values[span] = run[1]

        if out.shape[1] < _ALONE:
            for run, end in zip(runs, ends, strict=True):
                put(run, end)
        else:
            list(threads().map(put, runs, ends))
        if in_place:
            return SparseTensor._trusted(out, values, shape)
        return SparseTensor(place(selection, out), values, selection.result_shape)

    def row_bound(self, spec: TensorSpec, selection: AnySelection) -> int:
        return 2**63  # boxes follow the elements; nothing but the elements bounds their number


def _counts(batch: pa.RecordBatch, wanted: Array, sides: Array) -> list[int]:
    """Return how many elements rows say that they hold: at least one, and no more than their boxes."""
    counts: Array = numbers(batch.column("nnz"))[wanted]
    if ((counts < 1) | (counts > sides.prod(axis=1))).any():
        raise CorruptDataError("a row holds no element, or more than its box")
    out: list[int] = counts.tolist()
    return out


def combines(spec: TensorSpec) -> bool:
    """Return whether elements of a sparse tensor that share a place are combined, and are no error."""
    return bool(spec.params.get("duplicates", "error") != "error")


def sort_elements(keys: Array, values: Array, seqs: Array = _NONE) -> Part:
    """Return elements in the order of their keys; stable. The memory of the keys may be used for it."""
    size = values.dtype.itemsize
    if len(keys) and not len(seqs) and size in (1, 2, 4, 8):
        loops = compiled(LOOPS, "sort", size, nbytes=keys.nbytes)
        found = None if loops is None else loops.sort(keys, values, LONG_RUN)
        if found is not None:
            return *found, seqs
    if bool((keys[1:] >= keys[:-1]).all()):
        return keys, values, seqs
    keys, by = sort_places(keys)
    return keys, values[by], seqs[by] if len(seqs) else seqs


def unite(parts: Sequence[Part], spec: TensorSpec) -> list[tuple[Array, Array]]:
    """Return keys and values of all parts as ascending runs, with duplicates combined as the tensor says.

    Raises
    ------
    CorruptDataError
        If an element is stored twice and the tensor does not say what that means.
    """
    groups = _overlapping(parts)
    if sum(len(keys) for keys, _, _ in parts) < _ALONE:
        return [_united(group, spec) for group in groups]
    return list(threads().map(_united, groups, repeat(spec)))


def _united(parts: Sequence[Part], spec: TensorSpec) -> tuple[Array, Array]:
    """Return keys and values of some parts, ascending, each key once."""
    rule = spec.params.get("duplicates", "error")
    keys, values, seqs = (
        parts[0]
        if len(parts) == 1
        else (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    )
    if rule != "error":
        by = np.lexsort((seqs, keys))
        keys, values, seqs = keys[by], values[by], seqs[by]
        if ((keys[1:] == keys[:-1]) & (seqs[1:] == seqs[:-1])).any():
            raise CorruptDataError(f"tensor {spec.id!r}: a row stores an element twice")
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        with np.errstate(all="ignore"):  # infinity less infinity is what the writer asked for
            keys, values = keys[starts], combine(values, starts, rule)
    elif len(parts) > 1:
        keys, values, _ = sort_elements(keys, values)
    repeats = np.count_nonzero(keys[1:] == keys[:-1])
    if repeats:
        raise CorruptDataError(
            f"tensor {spec.id!r}: {repeats} elements are stored more than once; somebody changed "
            "the table with plain Delta, or a writer was not told how to combine them"
        )
    return keys, values


def _overlapping(parts: Sequence[Part]) -> list[list[Part]]:
    """Cut sorted parts into groups that ascend: only parts of one group have keys between each other's."""
    parts = sorted(parts, key=lambda part: int(part[0][0]))
    if not 1 < len(parts) <= _MANY:
        return [parts] if parts else []
    firsts = np.array([part[0][0] for part in parts], np.int64)
    groups: list[list[Part]] = [[] for _ in parts]
    for part in parts:
        cuts = [*np.searchsorted(part[0], firsts).tolist(), len(part[0])]
        for group, a, b in zip(groups, cuts[:-1], cuts[1:], strict=True):
            if b > a:
                group.append((part[0][a:b], part[1][a:b], part[2][a:b]))
    return [group for group in groups if group]


def checked_order(order: Sequence[int], ndim: int) -> list[int]:
    """Return the order of the axes that a writer asks for.

    Raises
    ------
    InvalidOptionError
        If it is no permutation of the axes.
    """
    axes = checked_axes(order, ndim, "order")
    if len(axes) != ndim:
        raise InvalidOptionError(f"order {tuple(axes)} does not name each of {ndim} axes once")
    return axes


def checked_axes(axes: Sequence[int], ndim: int, what: str) -> list[int]:
    """Return the axes that a writer names as a list of ints from 0 on; negative ones count from the end.

    Raises
    ------
    InvalidOptionError
        If they are not integers, or not distinct axes.

    Examples
    --------
    >>> checked_axes((2, -3), 3, "row_axes")
    [2, 0]
    """
    try:
        found = [operator.index(k) for k in axes]
    except TypeError:
        raise InvalidOptionError(f"{what} {axes!r} is not a sequence of axes") from None
    out = [k + ndim if k < 0 else k for k in found]
    if len(set(out)) != len(out) or not all(0 <= k < ndim for k in out):
        raise InvalidOptionError(
            f"{what} {tuple(found)} are not distinct axes of a tensor of rank {ndim}"
        )
    return out


def axis_order(params: Mapping[str, Any], ndim: int) -> tuple[int, ...]:
    """Return the order of the axes that parameters name, C order where they name none.

    Raises
    ------
    CorruptDataError
        If it is no permutation of the axes.
    """
    order = integers(params.get("order", list(range(ndim))), ndim, "an order of the axes")
    if sorted(order) != list(range(ndim)):
        raise CorruptDataError(f"{order!r} is no order of {ndim} axes")
    return tuple(order)
