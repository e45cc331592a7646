"""The laws of a layout as tests that anybody can run on a layout of their own.

Subclass `LayoutLaws`, or `SparseLaws`, name the layout, and pytest finds the laws; needs pytest and
hypothesis::

    class TestFtsf(LayoutLaws):
        layout = layout_of("ftsf")

The oracle is NumPy on plain arrays, and where an array would be too large a loop over elements
(`tensorlake_spark.layouts.testing.oracle`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError, InvalidOptionError
from tensorlake_spark.indexing import (
    AnySelection,
    Box,
    Predicate,
    select,
    select_orthogonal,
    select_points,
)
from tensorlake_spark.layouts.layout import Layout, grid_of
from tensorlake_spark.layouts.testing.oracle import (
    assert_picked,
    bits,
    combined,
    mask_of,
    plain_pick,
)
from tensorlake_spark.layouts.testing.strategies import (
    DTYPES,
    array_keys,
    arrays,
    elements,
    few,
    keys,
    mixed_keys,
    points,
)
from tensorlake_spark.rows.row import Row, Totals, corners, data_batch
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec

__all__ = ["DTYPES", "Case", "LayoutLaws", "SparseLaws", "arrays", "bits", "keys"]

Array = np.ndarray[Any, Any]

HALF = settings(max_examples=max(1, settings().max_examples // 2))
"""For laws of which others test a part too: half of the profile's examples."""

Part = tuple[tuple[int, ...], Any]
"""Lower corner in the tensor, and the array or `SparseTensor` that lies there."""


@dataclass(frozen=True)
class Case:
    """A tensor that laws are tried on.

    Attributes
    ----------
    spec : TensorSpec
        The tensor, all appends done.
    batch : pyarrow.RecordBatch
        Its rows.
    dense : ndarray
        What NumPy has in its place.
    stored : bool ndarray
        Which elements a sparse layout has to store.
    """

    spec: TensorSpec
    batch: pa.RecordBatch
    dense: Array
    stored: Array


class LayoutLaws:
    """The laws 1 to 5 and 7; the sixth is the test of the golden tables."""

    layout: ClassVar[Layout]

    def array(self, data: st.DataObject) -> Array:
        """Draw an array that the layout can hold."""
        drawn: Array = data.draw(arrays(), label="array")
        return drawn

    def make(
        self, data: st.DataObject, shape: tuple[int, ...], dtype: np.dtype[Any], codec: str
    ) -> TensorSpec:
        """Draw a spec: blocks, and what parameters the layout has."""
        block: tuple[int, ...] = ()
        if self.layout.has_blocks:
            scale = data.draw(st.sampled_from([1, 1, 3, 8]), label="scale")
            block = tuple(data.draw(st.integers(1, 4), label="block") * scale for _ in shape)
        return TensorSpec(
            "x",
            shape,
            dtype,
            self.layout.name,
            block,
            codec=codec,
            params=self.params(data, len(shape)),
        )

    def codec(self, data: st.DataObject, dense: Array) -> str:
        """Return the codec of a tensor that holds an array; by default the one that a writer chooses."""
        return self.layout.choose_codec(np.ascontiguousarray(dense))

    def params(self, data: st.DataObject, ndim: int) -> dict[str, Any]:
        """Draw parameters; those that the layout does not know it refuses."""
        order = data.draw(st.none() | st.permutations(range(ndim)), label="order")
        rows = data.draw(st.none() | st.permutations(range(ndim)), label="row_axes")
        rows = rows and rows[: data.draw(st.integers(0, ndim))]
        for options in ((order, None), (None, rows)):
            try:
                found = self.layout.choose_params(ndim, *options)
            except InvalidOptionError:
                continue
            if found:
                return found
        return self.layout.choose_params(ndim, None, None)

    def encode(self, spec: TensorSpec, part: Any, lo: tuple[int, ...]) -> list[Row]:
        """Encode a part of a tensor as a writer does."""
        if isinstance(part, SparseTensor):
            return self.layout.encode(part, lo, spec)
        box = Box(lo, tuple(a + n for a, n in zip(lo, part.shape, strict=True)))
        shape = tuple(max(a, b) for a, b in zip(spec.shape, box.hi, strict=True))
        rows = []
        for piece in self.layout.pieces(replace(spec, shape=shape), box):
            inside = piece.shift([-a for a in lo]).slices()
            rows += self.layout.encode(part[inside], piece.lo, spec)
        return rows

    def draw(self, data: st.DataObject) -> Case:
        """Draw a tensor of a few parts, each an append to those before it, and encode it."""
        whole: Any = self.array(data)
        if self.layout.is_sparse and data.draw(st.booleans(), label="few elements"):
            whole = data.draw(few(), label="tensor")
        dense = whole.todense() if isinstance(whole, SparseTensor) else whole
        dtype = dense.dtype.newbyteorder("=")
        sparse = whole if isinstance(whole, SparseTensor) else SparseTensor.from_dense(dense)
        cuts = self.cuts(data, dense.shape)
        spec = self.make(data, cuts[0][1].hi, dtype, self.codec(data, dense))
        rows: list[Row] = []
        for axis, box in cuts:
            if axis is not None:
                grid = grid_of(spec).extend(axis, box.shape[axis])
                spec = replace(spec, segments=grid.segments)
            rows += self.encode(spec, part_of(whole, box), box.lo)
            spec = replace(spec, shape=box.hi)
        return Case(spec, data_batch(spec, range(len(rows)), rows), dense, mask_of(sparse))

    @staticmethod
    def cuts(data: st.DataObject, shape: tuple[int, ...]) -> list[tuple[int | None, Box]]:
        """Draw how a tensor grew: the box of its first part, then axis and box of every append."""
        out: list[tuple[int | None, Box]] = []
        hi = list(shape)
        for _ in range(data.draw(st.integers(0, 2), label="appends") if shape else 0):
            axis = data.draw(st.integers(0, len(shape) - 1), label="axis")
            at = data.draw(st.integers(0, hi[axis]), label="at")
            lo = tuple(at if k == axis else 0 for k in range(len(hi)))
            out.insert(0, (axis, Box(lo, tuple(hi))))
            hi[axis] = at
        return [(None, Box.whole(hi)), *out]

    def read(
        self, batches: Sequence[pa.RecordBatch], spec: TensorSpec, selection: AnySelection
    ) -> tuple[Any, Totals]:
        """Decode batches for a selection."""
        result = self.layout.new_result(spec, selection, False)
        totals = Totals()
        for batch in batches:
            totals += self.layout.decode(batch, spec, selection, result)
        return self.layout.finish(spec, selection, result), totals

    def check(self, case: Case, selection: AnySelection, key: Any) -> None:
        """Decode the rows that match a selection, and check the answer against NumPy's."""
        lo, hi = corners(case.batch, case.spec.ndim)
        matching = Predicate.of("x", selection).matches(lo, hi)
        assert not (selection.hits(lo, hi) & ~matching).any()
        got, _ = self.read([case.batch.filter(pa.array(matching))], case.spec, selection)
        assert_picked(got, case.dense[key], case.stored[key])

    @given(st.data())
    def test_round_trip(self, data: st.DataObject) -> None:
        case = self.draw(data)
        got, totals = self.read([case.batch], case.spec, select(..., case.spec.shape))
        assert_picked(got, case.dense, case.stored)
        if self.layout.is_sparse:
            assert totals.nnz == case.stored.sum() == sum(case.batch.column("nnz").to_pylist())

    @given(st.data())
    def test_inclusive_and_tight(self, data: st.DataObject) -> None:
        case = self.draw(data)
        key = data.draw(keys(case.dense.shape), label="key")
        selection = select(key, case.dense.shape)
        self.check(case, selection, key)
        matching = Predicate.of("x", selection).matches(*corners(case.batch, case.spec.ndim))
        assert matching.sum() <= self.layout.row_bound(case.spec, selection)

    @HALF
    @given(st.data())
    def test_index_arrays(self, data: st.DataObject) -> None:
        case = self.draw(data)
        shape = case.dense.shape
        if not shape:
            return
        key = data.draw(array_keys(shape), label="key")
        self.check(case, select(key, shape), key)
        each = tuple(
            np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=3)) if n else [], np.int64)
            for n in shape[:2]
        )
        if all(map(len, each)):
            selection = select_orthogonal(each, shape)
            got, _ = self.read([case.batch], case.spec, selection)
            rest = tuple(map(np.arange, shape[2:]))
            assert_picked(got, case.dense[np.ix_(*each, *rest)], case.stored[np.ix_(*each, *rest)])

    @given(st.data())
    def test_mixed_keys(self, data: st.DataObject) -> None:
        """Several index arrays and masks, with slices, integers, newaxis and Ellipsis beside them."""
        case = self.draw(data)
        key = data.draw(mixed_keys(case.dense.shape), label="key")
        try:
            selection = select(key, case.dense.shape)
        except InvalidKeyError:
            return
        self.check(case, selection, key)

    @HALF
    @given(st.data())
    def test_points(self, data: st.DataObject) -> None:
        case = self.draw(data)
        if case.dense.shape:
            key = data.draw(points(case.dense.shape), label="points")
            self.check(case, select_points(key, case.dense.shape), key)

    @HALF
    @given(st.data())
    def test_order_split_and_extra_rows(self, data: st.DataObject) -> None:
        case = self.draw(data)
        key = data.draw(keys(case.dense.shape), label="key")
        order = data.draw(st.permutations(range(case.batch.num_rows)), label="order")
        shuffled = case.batch.take(pa.array(order, pa.int64()))
        cut = data.draw(st.integers(0, case.batch.num_rows), label="cut")
        parts = [shuffled.slice(0, cut), shuffled.slice(cut)]
        got, _ = self.read(parts, case.spec, select(key, case.dense.shape))
        assert_picked(got, case.dense[key], case.stored[key])

    @HALF
    @given(st.data())
    def test_pure(self, data: st.DataObject) -> None:
        array = self.array(data)
        dtype = array.dtype.newbyteorder("=")
        spec = self.make(data, array.shape, dtype, self.codec(data, array))
        batches = [
            data_batch(spec, range(len(rows)), rows)
            for rows in (
                self.encode(spec, part, (0,) * spec.ndim) for part in (array, array.copy())
            )
        ]
        assert batches[0].equals(batches[1])


class SparseLaws(LayoutLaws):
    """The laws of a layout that stores non-zeros: those of any layout, and two of its own."""

    @HALF
    @given(st.data())
    def test_shared_boxes(self, data: st.DataObject) -> None:
        """Elements that several rows store are combined in the order of ``seq``, or are an error."""
        first = data.draw(few(max_rank=5), label="first")
        # Which of two NaN is left over by a sum, NumPy does not say.
        sums = first.dtype.kind in "iufcm" and first.dtype.itemsize > 1
        sums = sums and bool(np.isfinite(first.values).all())
        rule = data.draw(st.sampled_from(["last", "sum"] if sums else ["last"]), label="rule")
        spec = self.make(data, first.shape, first.dtype, "zstd")
        spec = replace(spec, params={**spec.params, "duplicates": rule})
        tensors = [first, *_others(first, data.draw(st.integers(0, 3), label="others"))]
        rows = [self.encode(spec, tensor, (0,) * spec.ndim) for tensor in tensors]
        flat = [row for some in rows for row in some]
        batch = data_batch(spec, range(len(flat)), flat)
        order = data.draw(st.permutations(range(len(flat))), label="order")
        key = data.draw(keys(first.shape), label="key")
        dense, stored = combined(tensors, rule)
        shuffled = batch.take(pa.array(order, pa.int64()))
        got, _ = self.read([shuffled], spec, select(key, first.shape))
        assert_picked(got, dense[key], stored[key])

    @HALF
    @given(st.data())
    def test_long_axes(self, data: st.DataObject) -> None:
        """Axes that take up to 62 bits together, of which no array can be made."""
        shape, coords = data.draw(long_axes(), label="tensor")
        tensor = SparseTensor(coords, np.arange(coords.shape[1]) - 1.0, shape, duplicates="last")
        density = data.draw(st.sampled_from([1.0, 1e-5, 1e-12]), label="density")
        block = self.layout.default_block(shape, tensor.dtype, density)
        params = self.params(data, len(shape))
        spec = TensorSpec("x", shape, tensor.dtype, self.layout.name, block, params=params)
        rows = self.encode(spec, tensor, (0,) * len(shape))
        batch = data_batch(spec, range(len(rows)), rows)
        for selection in long_selections(data, tensor):
            try:
                got, _ = self.read([batch], spec, selection)
            except InvalidKeyError:  # an index may be picked many times
                assert math.prod(selection.storage_shape) >= 2**63
                continue
            want = plain_pick(tensor, selection)
            assert got.shape == selection.storage_shape
            assert list(zip(*got.coords.tolist(), strict=True)) == sorted(want)
            assert [v.tobytes() for v in got.values] == [want[c] for c in sorted(want)]


def part_of(whole: Any, box: Box) -> Any:
    """Return a box of an array or sparse tensor, by NumPy alone."""
    if not isinstance(whole, SparseTensor):
        return whole[box.slices()]
    lo, hi = (np.array(side, np.int64).reshape(-1, 1) for side in (box.lo, box.hi))
    inside = ((whole.coords >= lo) & (whole.coords < hi)).all(axis=0)
    return SparseTensor(whole.coords[:, inside] - lo, whole.values[inside], box.shape)


def _others(first: SparseTensor, count: int) -> Iterator[SparseTensor]:
    """Yield tensors of the shape of another one that store some of its elements, and others."""
    rng = np.random.default_rng(count)
    for number in range(count):
        places = np.asarray(rng.random(first.shape) < 0.02)
        places[tuple(first.coords[:, rng.random(first.nnz) < 0.5])] = True
        coords = np.array(np.nonzero(places) if first.ndim else np.zeros((0, 1)), np.int64)
        values = elements(
            first.dtype, coords.shape[1], ("steps", "blocks", "zeros")[number % 3], number
        )
        yield SparseTensor(coords, values, first.shape)


def _long_axes(draw: st.DrawFn) -> tuple[tuple[int, ...], Array]:
    shape: list[int] = []
    left = 62
    while left and (not shape or draw(st.booleans())):
        width = draw(st.integers(1, left))
        shape.append(draw(st.integers(1 << (width - 1), 1 << width)))
        left -= width
    near = [st.integers(0, n - 1) | st.integers(max(0, n - 9), n - 1) for n in shape]
    found = draw(st.lists(st.tuples(*near), min_size=1, max_size=12))
    return tuple(shape), np.array(found, np.int64).T


long_axes = st.composite(_long_axes)


def long_selections(data: st.DataObject, tensor: SparseTensor) -> Iterator[AnySelection]:
    """Draw what is picked of a tensor with long axes: runs near its elements, index arrays, points."""
    shape, at = tensor.shape, tensor.coords
    yield select(..., shape)
    around = [np.concatenate([c, c + 1, c // 2]).tolist() for c in at]
    key = []
    for axis, n in zip(around, shape, strict=True):
        ends = sorted(data.draw(st.lists(st.sampled_from([*axis, 0, n]), min_size=2, max_size=2)))
        step = data.draw(st.integers(1, 5) | st.integers(1, n))
        key.append(slice(min(ends[0], n), min(ends[1], n), step))
    yield select(tuple(key), shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    yield select((*key[:axis], at[axis][::-1], *key[axis + 1 :]), shape)
    if len(shape) > 1:
        other = axis - 1 if axis else len(shape) - 1
        key[axis], key[other] = at[axis], at[other][::-1]
        yield select(tuple(key), shape)
    yield select_points(tuple(at[:, ::-1]), shape)
