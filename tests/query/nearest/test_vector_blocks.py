"""Vectors where they lie in files, as matrices."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.nearest import vector_blocks
from tensorlake_spark.query.nearest.vector_blocks import blocks_of, buffers, is_kept


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(2).normal(size=(3000, 24)).astype("f4")


@pytest.fixture
def stored(tmp_path, vectors, monkeypatch):
    monkeypatch.setattr(vector_blocks, "_ROWS", 700)
    monkeypatch.setattr(vector_blocks, "_PIECE", 100 * 29)
    ds = tl.dataset(str(tmp_path / "ds"), {"note": "string", "e": types.Embedding(24)})
    for first in range(0, 3000, 600):
        part = vectors[first : first + 600]
        ds.extend({"note": ["x" * (first % 7)] * len(part), "e": part})
    return ds.stored


@pytest.mark.parametrize("keep", [False, True])
def test_products_and_squares_are_those_of_the_vectors(stored, vectors, keep):
    blocks = blocks_of(stored, ("e",), 24)
    assert len(blocks) > 1
    assert is_kept(stored)
    q = np.random.default_rng(3).normal(size=24).astype("f4")
    (buffer,) = buffers(1)
    for _ in range(2):
        seen = []
        for block in blocks:
            values, norms = block.products(q, buffer, keep)
            at = stored.positions_at(block.number, np.arange(block.first, block.last))
            assert np.allclose(values, vectors[at] @ q, rtol=1e-5, atol=1e-5)
            assert np.allclose(norms, (vectors[at] ** 2).sum(1), rtol=1e-5)
            assert len(block) == len(at)
            values[:] = 0  # what is kept is not what was handed out
            seen.append(at)
        assert np.array_equal(np.concatenate(seen), np.arange(3000))
    assert blocks_of(stored, ("e",), 24) is blocks


def test_other_sizes_and_nulls_have_no_products(tmp_path):
    ds = tl.dataset(
        str(tmp_path / "ds"), {"e": types.Embedding(4), "f": types.Tensor("float32", (None,))}
    )
    ds.extend({"e": [[1, 2, 3, 4], None], "f": [[1.0], [2.0, 3.0]]})
    (buffer,) = buffers(1)
    for column, size in ((("e",), 4), (("f",), 1)):
        (block,) = blocks_of(ds.stored, column, size)
        assert block.products(np.ones(size, "f4"), buffer, True) is None


def test_a_file_that_was_cut_short_is_an_error(tmp_path, vectors):
    ds = tl.dataset(str(tmp_path / "ds"), {"e": types.Embedding(24)})
    ds.extend({"e": vectors})
    (block,) = blocks_of(ds.stored, ("e",), 24)
    (buffer,) = buffers(1)
    assert block.products(vectors[0], buffer, True) is not None
    (path,) = (tmp_path / "ds").glob("*.parquet")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(tl.CorruptDataError, match="bytes"):
        block.products(vectors[0], buffer, True)
