"""Cells that are encoded a bounded number at a time: none is lost, and blocks that arrive whole stay whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.indexing import Grid
from tensorlake_spark.spark.source.write import cell_buffer as buffer
from tensorlake_spark.spark.source.write.cell_buffer import CellBuffer
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.source import SparseSource

SHAPE, BLOCK = (6, 10, 9), (2, 4, 4)
SIZE = int(np.prod(SHAPE))


def spec_of(layout):
    nothing = tl.SparseTensor(np.zeros((3, 0), np.int64), np.zeros(0), SHAPE)
    block = BLOCK if layout == "bsgs" else None
    return new_spec("x", SparseSource(nothing), WriteOptions(layout=layout, block_shape=block))


def flushed(spec, coords, values, sizes):
    """Send cells through a buffer in batches of some sizes; return the parts that came of every flush."""
    waiting, out = CellBuffer(spec, SHAPE), []
    for batch in np.array_split(np.arange(len(values)), np.cumsum(sizes)):
        start = 0
        while start < len(batch):
            start += waiting.add(coords[:, batch[start:]], values[batch[start:]])
            if waiting.is_full:
                before = len(waiting)
                out.append([part for _, part in waiting.regions(spec, last=False)])
                assert len(waiting) <= before / 2, "what waits on leaves room"
    if len(waiting):
        out.append([part for _, part in waiting.regions(spec, last=True)])
    assert len(waiting) == 0
    return out


@pytest.mark.parametrize("layout", ["bsgs", "coo", "csc", "csf"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_cell_comes_out_once(layout, data):
    capacity = data.draw(st.integers(1, 60), label="capacity")
    places = data.draw(st.lists(st.integers(0, SIZE - 1), max_size=200, unique=True))
    sizes = data.draw(st.lists(st.integers(0, 50), max_size=6))
    coords = np.array(np.unravel_index(np.array(places, np.int64), SHAPE))
    values = np.arange(1.0, len(places) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffer, "BUFFER_CELLS", capacity)
        parts = [p for flush in flushed(spec_of(layout), coords, values, sizes) for p in flush]
    want = np.zeros(SHAPE)
    want[tuple(coords)] = values
    assert sum(part.nnz for part in parts) == len(places)
    found = sum((part.todense() for part in parts), np.zeros(SHAPE))
    np.testing.assert_array_equal(found, want)


def test_blocks_that_arrive_one_after_another_come_out_whole(monkeypatch):
    """As `group_cells` sends them: every block is in one flush, though flushes cut the cells anywhere."""
    spec = spec_of("bsgs")
    rng = np.random.default_rng(0)
    places = rng.permutation(SIZE)[:400]
    coords = np.array(np.unravel_index(places, SHAPE))
    grid = Grid(SHAPE, BLOCK, spec.segments)
    blocks = buffer.numbers_of(grid, coords)
    by = np.argsort(blocks, kind="stable")
    monkeypatch.setattr(buffer, "BUFFER_CELLS", 3 * int(np.bincount(blocks).max()))
    flushes = flushed(spec, coords[:, by], np.ones(len(by)), [150, 7])
    assert len(flushes) > 2
    held = [{*np.concatenate([buffer.numbers_of(grid, p.coords) for p in f])} for f in flushes]
    assert sum(len(numbers) for numbers in held) == len(set().union(*held)) == len({*blocks})
