"""Loaders of tensors of a lake: batches are NumPy's slices, dense and sparse, on disk and in an object store."""

import pickle

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.sources.tensor_samples import TensorSamples

DENSE = np.random.default_rng(0).integers(0, 99, (23, 5, 7)).astype("i4")
SPARSE = np.where(DENSE > 80, DENSE, 0)


def rows(batches, name="x"):
    """Return the slices of all batches, and those in the order of their first element for a comparison."""
    return np.concatenate([np.asarray(batch[name]) for batch in batches])


def in_order(slices):
    flat = slices.reshape(len(slices), -1)
    return flat[np.lexsort(flat.T[::-1])]


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("blocks", [(1, 5, 7), (4, 5, 7), (23, 2, 3)])
def test_slices_come_in_order_as_numpy_has_them(lake, axis, blocks):
    ref = lake.write("x", DENSE, block_shape=blocks)
    with ref.loader(3, axis) as loader:
        batches = list(loader)
    assert len(batches) == len(loader) == -(-DENSE.shape[axis] // 3)
    np.testing.assert_array_equal(rows(batches), np.moveaxis(DENSE, axis, 0))


@pytest.mark.parametrize("shuffle", [True, "global"])
@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "csf"])
def test_a_shuffled_epoch_has_each_slice_once(lake, shuffle, layout):
    given = DENSE if layout == "ftsf" else SPARSE
    ref = lake.write("x", given, layout=layout)
    with ref.loader(4, shuffle=shuffle, seed=3, collate="dense") as loader:
        first, second = (rows(loader) for _ in range(2))
    assert (first != second).any()
    for found in (first, second):
        np.testing.assert_array_equal(in_order(found), in_order(given))


def test_a_sparse_tensor_gives_sparse_batches(lake):
    ref = lake.write("x", tl.SparseTensor.from_dense(SPARSE), layout="bsgs", block_shape=(4, 5, 7))
    with ref.loader(6) as loader:
        batches = [batch["x"] for batch in loader]
    assert all(isinstance(batch, tl.SparseTensor) for batch in batches)
    np.testing.assert_array_equal(np.concatenate([b.todense() for b in batches]), SPARSE)


def test_transforms_of_sparse_slices(lake):
    ref = lake.write("x", tl.SparseTensor.from_dense(SPARSE), layout="coo")
    with ref.loader(6, transform={"x": lambda one: one.todense().sum(axis=0)}) as loader:
        np.testing.assert_array_equal(rows(loader), SPARSE.sum(axis=1))
    with ref.loader(6, transform=lambda sample: {"y": sample["x"] * 2}) as loader:
        found = [batch["y"] for batch in loader]
    np.testing.assert_array_equal(np.concatenate([b.todense() for b in found]), SPARSE * 2)
    with ref.loader(23, collate="list") as loader:
        (batch,) = loader
    np.testing.assert_array_equal(batch["x"][4].todense(), SPARSE[4])


def test_an_axis_that_was_appended_to(lake):
    lake.write("x", DENSE[:10], block_shape=(4, 5, 7))
    ref = lake.write("x", DENSE[10:], mode="append")
    with ref.loader(5, shuffle=True) as loader:
        np.testing.assert_array_equal(in_order(rows(loader)), in_order(DENSE))


def test_the_version_stays_while_others_write(lake):
    ref = lake.write("x", DENSE, block_shape=(4, 5, 7))
    with ref.loader(2, prefetch=1) as loader:
        batches = iter(loader)
        found = [next(batches)]
        ref[...] = 0
        lake.write("x", DENSE, mode="append")
        found += batches
        np.testing.assert_array_equal(rows(found), DENSE)
        np.testing.assert_array_equal(rows(loader), DENSE)


def test_weights_draw_slices(lake):
    ref = lake.write("x", np.arange(20))
    weights = np.zeros(20)
    weights[[3, 5]] = 1
    with ref.loader(8, weights=weights, samples=40) as loader:
        assert set(rows(loader).tolist()) == {3, 5}
    with pytest.raises(InvalidOptionError, match="give weights or balance too"):
        ref.loader(8, samples=40)


def test_blocks_are_read_once_an_epoch(lake, monkeypatch):
    ref = lake.write("x", DENSE, block_shape=(4, 5, 7))
    source = TensorSamples({"x": ref}, 0, 1 << 20)
    read = []
    blocks = source._blocks["x"]
    plain = blocks._slices
    monkeypatch.setattr(blocks, "_slices", lambda some: read.extend(some.tolist()) or plain(some))
    for positions in np.random.default_rng(1).permutation(23).reshape(1, -1)[:, :21].reshape(7, 3):
        np.testing.assert_array_equal(source.fetch(positions).values({})["x"], DENSE[positions])
    assert len(read) == len(set(read))


def test_what_is_kept_is_bounded(lake):
    ref = lake.write("x", DENSE, block_shape=(4, 5, 7))
    blocks = TensorSamples({"x": ref}, 0, 4 * 4 * 5000)._blocks["x"]
    for _ in range(3):
        for start in range(20):
            blocks.read(np.array([start, start + 3]))
    assert 0 < blocks._nbytes <= blocks.most


@pytest.mark.parametrize("axis", [3, -4, 0.5, None, "image", True])
def test_an_axis_that_is_not_there(lake, axis):
    ref = lake.write("x", DENSE)
    with pytest.raises(InvalidOptionError, match="has 3 axes"):
        ref.loader(2, axis)


def test_tensors_without_slices(lake):
    with pytest.raises(InvalidOptionError, match="has no samples"):
        lake.write("empty", np.zeros((0, 3))).loader(2)
    with pytest.raises(InvalidOptionError, match="has 0 axes"):
        lake.write("number", np.float64(3)).loader(2)


def test_it_pickles(lake):
    source = TensorSamples({"x": lake.write("x", DENSE, block_shape=(4, 5, 7))}, 1, 1 << 20)
    again = pickle.loads(pickle.dumps(source))
    assert again.identity == source.identity
    np.testing.assert_array_equal(
        again.fetch(np.array([3, 0])).values({})["x"], np.moveaxis(DENSE, 1, 0)[[3, 0]]
    )


def test_a_lost_file_names_the_tensor(tmp_path):
    lake = tl.open(tmp_path / "lake")
    ref = lake.write("x", DENSE)
    for file in (tmp_path / "lake").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(tl.MissingDataError, match="slice 0 along axis 0 of tensor 'x'"):
        list(ref.loader(2))


def test_in_an_object_store_a_cache_serves_the_next_loader(s3, road, tmp_path):
    options = {**s3.options, "AWS_ENDPOINT_URL": road.endpoint}
    ref = tl.open("s3://bucket/tensor-samples", storage_options=options).write(
        "x", DENSE, block_shape=(2, 5, 7)
    )
    cache = f"{tmp_path / 'cache'}:10MB"
    asked = []
    for _ in range(2):
        road.requests()
        with ref.loader(5, shuffle=True, cache=cache) as loader:
            np.testing.assert_array_equal(in_order(rows(loader)), in_order(DENSE))
        asked.append(sum("part-" in one or ".parquet" in one for one in road.requests()))
    assert asked[0] > 0
    assert asked[1] == 0
