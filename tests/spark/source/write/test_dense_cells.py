"""Cells grouped by block become chunks: all of them, once each, whatever the batches."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark.source.schemas import tensors_of
from tensorlake_spark.spark.source.write.dense_cells import ChunkBuilder

SHAPE, BLOCK = (7, 5), (3, 2)


def batch(cells):
    columns = [pa.array([c[k] for c in cells]) for k in range(3)]
    return pa.RecordBatch.from_arrays(columns, names=["y", "x", "value"])


def cells_of(x):
    places = sorted(np.argwhere(x).tolist(), key=lambda p: (p[0] // 3, p[1] // 2, p[1], -p[0]))
    return [(*p, int(x[tuple(p)])) for p in places]


@pytest.mark.parametrize("step", [1, 4, 100])
def test_chunks_hold_all_cells(step):
    x = np.random.default_rng(0).integers(0, 3, SHAPE, np.int16)
    x[3:6, 2:4] = 0
    cells = cells_of(x)
    batches = [batch(cells[i : i + step]) for i in range(0, len(cells), step)]
    empty = batch(cells).slice(0, 0)
    chunks = ChunkBuilder("t", ("y", "x"), SHAPE, BLOCK, np.dtype(np.int16))
    out, corners = np.zeros(SHAPE, np.int16), []
    for slab in chunks.slabs(iter([empty, *batches])):
        [lo] = slab.column("lo").to_pylist()
        [part] = tensors_of(slab.column("tensor"))
        corners.append(tuple(lo))
        out[lo[0] : lo[0] + part.shape[0], lo[1] : lo[1] + part.shape[1]] = part
        assert part.dtype == np.int16
    np.testing.assert_array_equal(out, x)
    filled = {(i // 3 * 3, j // 2 * 2) for i, j in np.argwhere(x).tolist()}
    assert sorted(corners) == sorted(filled), "a chunk without a cell is left out"
    assert (3, 2) not in filled


@pytest.mark.parametrize("split", [1, 2])
def test_a_cell_that_is_there_twice(split):
    cells = [(4, 3, 1), (4, 3, 2)]
    chunks = ChunkBuilder("t", ("y", "x"), SHAPE, BLOCK, np.dtype(np.int16))
    parts = [batch(cells)] if split == 1 else [batch(cells[:1]), batch(cells[1:])]
    with pytest.raises(
        tl.InvalidTensorError, match=r"cell \(4, 3\) of tensor 't' is given more than"
    ):
        list(chunks.slabs(iter(parts)))
