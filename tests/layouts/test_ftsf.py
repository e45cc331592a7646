"""FTSF keeps the laws, and cuts as the paper does."""

import numpy as np
import pytest
from hypothesis import strategies as st

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.indexing import select
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.coding.chain import CODECS, TRANSPOSE
from tensorlake_spark.layouts.coding.pco import number_of
from tensorlake_spark.layouts.ftsf import CHUNK_BYTES, paper_block
from tensorlake_spark.layouts.testing.laws import LayoutLaws
from tensorlake_spark.rows.row import data_batch
from tensorlake_spark.tensor.spec import TensorSpec


class TestFtsf(LayoutLaws):
    layout = layout_of("ftsf")

    def codec(self, data, dense):
        """Any codec, and often the one that a writer chooses."""
        name = data.draw(st.none() | st.sampled_from(list(CODECS)), label="codec")
        if name is None or (CODECS[name].pco and number_of(dense.dtype) is None):
            return super().codec(data, dense)
        return data.draw(st.sampled_from(["", "", TRANSPOSE]), label="first") + name


@pytest.mark.parametrize("chunk_rank", range(5))
def test_the_papers_chunks(chunk_rank):
    """Section IV-A: (24, 3, 1024, 1024) makes 24 rows with Dc = 3 and 72 with Dc = 2."""
    block = paper_block((24, 3, 1024, 1024), chunk_rank)
    assert int(np.prod(block)) == int(np.prod((24, 3, 1024, 1024)[4 - chunk_rank :]))
    with pytest.raises(InvalidOptionError, match="between 0 and the rank 4"):
        paper_block((24, 3, 1024, 1024), 5)


@pytest.mark.parametrize(
    "shape",
    [(), (0,), (7,), (10**9,), (100_000, 768), (512, 512, 512), (64, 3, 1024, 1024), (50_000, 3, 32, 32),
     (2, 3, 100, 100, 100), (1, 1, 1, 10**8)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_default_chunks_are_neither_large_nor_empty(shape, dtype):
    dtype = np.dtype(dtype)
    block = layout_of("ftsf").default_block(shape, dtype)
    assert len(block) == len(shape)
    assert all(1 <= b <= max(1, n) for b, n in zip(block, shape))
    assert np.prod([float(b) for b in block]) * dtype.itemsize <= CHUNK_BYTES + 16


def test_chunks_of_the_fill_value_are_not_stored():
    layout = layout_of("ftsf")
    spec = TensorSpec("x", (4,), np.dtype("f8"), "ftsf", (2,))
    assert layout.encode(np.zeros(2), (0,), spec) == []
    assert len(layout.encode(np.array([0.0, -0.0]), (0,), spec)) == 1, "-0.0 has other bits"


def test_a_row_that_does_not_fit_its_tensor_is_refused():
    layout = layout_of("ftsf")
    spec = TensorSpec("x", (4,), np.dtype("f8"), "ftsf", (4,))
    batch = data_batch(spec, [0], layout.encode(np.arange(4.0), (0,), spec))
    smaller = TensorSpec("x", (3,), np.dtype("f8"), "ftsf", (4,))
    selection = select(..., (3,))
    with pytest.raises(CorruptDataError, match="does not fit the tensor's shape"):
        layout.decode(batch, smaller, selection, layout.new_result(smaller, selection, True))
