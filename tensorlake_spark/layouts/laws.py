"""The laws of a layout as tests that anybody can run on a layout of their own.

Subclass `LayoutLaws`, name the layout, and pytest finds the laws; needs pytest and hypothesis::

    class TestFtsf(LayoutLaws):
        layout = layout_of("ftsf")
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.indexing import Box, Predicate, Selection, select
from tensorlake_spark.layouts.base import Layout
from tensorlake_spark.row import Totals, corners, data_batch
from tensorlake_spark.spec import TensorSpec, dtype_of

Array = np.ndarray[Any, Any]

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
    "datetime64[ns]", "datetime64[D]", "timedelta64[s]",
    "bfloat16", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
"""Every dtype that a layout has to hold."""


@st.composite
def arrays(draw: st.DrawFn, max_rank: int = 4) -> Array:
    """Draw an array of any dtype, rank and byte order, with bits that no arithmetic would keep."""
    dtype = dtype_of(draw(st.sampled_from(DTYPES)))
    shape = tuple(draw(st.lists(st.integers(0, 7), max_size=max_rank)))
    size = int(np.prod(shape))
    kind = draw(st.sampled_from(["noise", "zeros", "steps", "blocks"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if dtype.kind == "b":
        raw = rng.integers(0, 2, size).astype(bool)
    elif kind == "noise":
        raw = rng.integers(0, 256, size * dtype.itemsize, np.uint8).view(dtype)
    else:
        raw = (np.arange(size) % 11 if kind == "steps" else np.zeros(size, np.int64)).astype(dtype)
    array = raw.reshape(shape)
    if kind == "zeros":
        array = np.zeros(shape, dtype)
    elif kind == "blocks" and shape:
        array = array.copy()
        array[: shape[0] // 2] = np.ones((), dtype)
    if draw(st.booleans()) and dtype.kind in "iufcmM" and dtype.itemsize > 1:
        array = array.astype(dtype.newbyteorder(">"))
    if draw(st.booleans()) and array.ndim > 1:
        array = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 0, -1)), -1, 0)
    return array


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Draw a basic key that fits a shape."""
    key: list[Any] = []
    for size in shape:
        if size and draw(st.integers(0, 3)) == 0:
            key.append(draw(st.integers(-size, size - 1)))
        else:
            key.append(draw(st.slices(size)))
    return tuple(key[: draw(st.integers(0, len(key)))])


def bits(array: Any) -> tuple[Any, ...]:
    """Return what must be the same for two arrays to be the same, bit by bit."""
    array = np.asarray(array)
    native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    return array.shape, native.dtype, np.ascontiguousarray(native).tobytes()


class LayoutLaws:
    """The laws 1 to 5 and 7; the sixth is the test of the golden tables."""

    layout: ClassVar[Layout]

    def make(self, array: Array, block: tuple[int, ...], codec: str) -> TensorSpec:
        """Return a spec for an array."""
        dtype = array.dtype.newbyteorder("=")
        params = self.layout.choose_params(array.ndim, None, None)
        block = block if self.layout.has_blocks else ()
        return TensorSpec(
            "x", array.shape, dtype, self.layout.name, block, codec=codec, params=params
        )

    def rows(self, array: Array, spec: TensorSpec) -> pa.RecordBatch:
        """Encode a whole array."""
        out = []
        for part in self.layout.pieces(spec, Box.whole(array.shape)):
            out += self.layout.encode(array[part.slices()], part.lo, spec)
        return data_batch(spec, range(len(out)), out)

    def read(
        self, batches: list[pa.RecordBatch], spec: TensorSpec, selection: Selection
    ) -> tuple[Any, Totals]:
        """Decode batches for a selection."""
        result = self.layout.new_result(spec, selection, False)
        totals = Totals()
        for batch in batches:
            totals += self.layout.decode(batch, spec, selection, result)
        return self.layout.finish(spec, selection, result), totals

    @staticmethod
    def draw_case(data: st.DataObject, layout: Layout) -> tuple[Array, tuple[int, ...], str]:
        """Draw an array, a block shape and a codec."""
        array = data.draw(arrays(), label="array")
        block = tuple(data.draw(st.integers(1, 4), label="block") for _ in array.shape)
        if data.draw(st.booleans(), label="large blocks"):
            block = tuple(b * 8 for b in block)
        sample = array[tuple(slice(0, b) for b in block)] if array.shape else array
        return array, block, layout.choose_codec(sample)

    @given(st.data())
    def test_round_trip(self, data: st.DataObject) -> None:
        array, block, codec = self.draw_case(data, self.layout)
        spec = self.make(array, block, codec)
        result, _ = self.read([self.rows(array, spec)], spec, select(..., array.shape))
        assert bits(result) == bits(array)

    @given(st.data())
    def test_inclusive_and_tight(self, data: st.DataObject) -> None:
        array, block, codec = self.draw_case(data, self.layout)
        spec = self.make(array, block, codec)
        selection = select(data.draw(keys(array.shape), label="key"), array.shape)
        batch = self.rows(array, spec)
        lo, hi = corners(batch, spec.ndim)
        matching = Predicate.of("x", selection).matches(lo, hi)
        assert not (selection.hits(lo, hi) & ~matching).any()
        assert matching.sum() <= self.layout.row_bound(spec, selection)
        chosen = batch.filter(pa.array(matching))
        result, _ = self.read([chosen], spec, selection)
        whole = select(..., array.shape)
        full, _ = self.read([batch], spec, whole)
        assert bits(result) == bits(selection_of(np.asarray(full), selection))

    @given(st.data())
    def test_order_split_and_extra_rows(self, data: st.DataObject) -> None:
        array, block, codec = self.draw_case(data, self.layout)
        spec = self.make(array, block, codec)
        selection = select(data.draw(keys(array.shape), label="key"), array.shape)
        batch = self.rows(array, spec)
        want, _ = self.read([batch], spec, selection)
        order = data.draw(st.permutations(range(batch.num_rows)), label="order")
        shuffled = batch.take(pa.array(order, pa.int64()))
        cut = data.draw(st.integers(0, batch.num_rows), label="cut")
        parts = [shuffled.slice(0, cut), shuffled.slice(cut)]
        got, _ = self.read(parts, spec, selection)
        assert bits(got) == bits(want)

    @given(st.data())
    def test_pure(self, data: st.DataObject) -> None:
        array, block, codec = self.draw_case(data, self.layout)
        spec = self.make(array, block, codec)
        assert self.rows(array, spec).equals(self.rows(array.copy(), spec))
        whole = select(..., array.shape)
        assert self.layout.row_bound(spec, whole) >= self.rows(array, spec).num_rows


def selection_of(array: Array, selection: Selection) -> Any:
    """Pick from an array as a selection says, by NumPy alone: the slow, obvious way."""
    index = np.ix_(*(np.arange(a.start, a.stop, a.step) for a in selection.axes))  # type: ignore[union-attr]
    return selection.finish(array[index] if array.ndim else array)
