"""Slices of a tensor by blocks: NumPy is the oracle, from many threads too."""

import threading

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.loader.sources.tensor_blocks import TensorBlocks

DENSE = np.random.default_rng(3).integers(0, 50, (40, 6, 5))
PICKS = [[0], [39, 0, 39], [5, 6, 7], [31, 2, 2, 17, 8], list(range(40))]


@pytest.mark.parametrize("most", [1, 1 << 20], ids=["nothing kept", "all kept"])
@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "coo", "csf", "csr"])
@pytest.mark.parametrize("picks", PICKS, ids=range(len(PICKS)))
def test_slices_are_numpys(lake, most, layout, picks):
    given = DENSE if layout == "ftsf" else np.where(DENSE > 40, DENSE, 0)
    if layout == "csr":
        given = given[:, 0]
    blocks = TensorBlocks(lake.write("x", given, layout=layout), 0, most)
    for _ in range(2):
        found = blocks.read(np.array(picks))
        assert isinstance(found, tl.SparseTensor) == blocks.is_sparse
        found = found.todense() if blocks.is_sparse else found
        np.testing.assert_array_equal(found, given[picks])


def test_an_array_of_a_batch_is_its_own(lake):
    blocks = TensorBlocks(lake.write("x", DENSE, block_shape=(8, 6, 5)), 0, 1 << 20)
    picks = np.arange(8)
    blocks.read(picks)[:] = -1
    np.testing.assert_array_equal(blocks.read(picks), DENSE[:8])


def test_many_threads_ask(lake):
    blocks = TensorBlocks(lake.write("x", DENSE, block_shape=(5, 6, 5)), 0, 8000)
    wrong = []

    def ask(seed):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            picks = rng.integers(0, 40, 7)
            if (blocks.read(picks) != DENSE[picks]).any():
                wrong.append(picks)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert blocks._nbytes <= blocks.most


def test_an_error_is_not_kept(tmp_path):
    lake = tl.open(tmp_path / "lake")
    ref = lake.write("x", DENSE, block_shape=(8, 6, 5))
    (file,) = (tmp_path / "lake").glob("part-*.parquet")
    blocks = TensorBlocks(tl.open(tmp_path / "lake")["x"], 0, 1 << 20)
    file.rename(tmp_path / "away")
    with pytest.raises(tl.MissingDataError):
        blocks.read(np.arange(3))
    (tmp_path / "away").rename(file)
    np.testing.assert_array_equal(blocks.read(np.arange(3)), DENSE[:3])
    assert len(ref) == len(blocks)
