"""What can be written, as regions: together they are the array, and each is cut between blocks."""

from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.writing import source
from tensorlake_spark.writing.source import (
    ArraySource,
    SlabSource,
    SparseSource,
    bands,
    source_of,
    suited,
)

X = np.random.default_rng(0).integers(-9, 9, (20, 7, 5)).astype("i2")


class Lazy:
    """An array that is no NumPy array."""

    def __init__(self, data, shape=None, dtype=None):
        self.data, self.shape = data, shape or data.shape
        self.dtype = dtype or data.dtype
        self.reads = 0

    def __getitem__(self, key):
        self.reads += 1
        return self.data[key]


def joined(found, block, shape=X.shape):
    """Return what regions make; none is cut within a block."""
    out, seen = np.zeros(shape, found.dtype), np.zeros(shape, int)
    for offset, region in found.regions(block):
        part = region.todense() if isinstance(region, tl.SparseTensor) else region
        place = tuple(slice(a, a + n) for a, n in zip(offset, part.shape, strict=True))
        assert all(a % b == 0 for a, b in zip(offset, block, strict=True))
        out[place] += part
        seen[place] += 1
    assert (seen <= 1).all()
    return out


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(source, "REGION_BYTES", 500)
    monkeypatch.setattr(source, "_REGION_NNZ", 50)


@pytest.mark.parametrize("block", [(1, 1, 1), (3, 2, 5), (20, 7, 5), (64, 64, 64)])
def test_regions_are_the_array(small, block):
    lazy = Lazy(X)
    assert np.array_equal(joined(source_of(lazy), block), X)
    assert lazy.reads >= 1
    assert np.array_equal(joined(source_of(X), block), X)
    assert np.array_equal(joined(source_of(tl.SparseTensor.from_dense(X)), block), X)


@pytest.mark.parametrize("height", [1, 3, 8, 50])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("thick", [1, 2, 6])
def test_slabs_are_joined_to_whole_blocks(height, axis, thick):
    parts = [
        np.take(X, range(i, min(i + thick, X.shape[axis])), axis)
        for i in range(0, X.shape[axis], thick)
    ]
    slabs = source_of(iter(parts), axis)
    assert isinstance(slabs, SlabSource)
    block = [64, 64, 64]
    block[axis] = height
    assert np.array_equal(joined(slabs, tuple(block)), X)
    assert slabs.length == X.shape[axis]
    with pytest.raises(tl.InvalidTensorError, match="an iterator of slabs can be written once"):
        next(slabs.regions(block))


@pytest.mark.parametrize(
    ("parts", "axis", "says"),
    [
        ([], 0, "an iterator without a slab has no shape and no dtype"),
        ([X], 3, r"slabs of shape \(20, 7, 5\) cannot be joined along axis 3"),
        (
            [X, X[:, :6]],
            0,
            r"slab 1 has shape \(20, 6, 5\) .* does not continue slab 0 of shape \(20, 7, 5\)",
        ),
        ([X, X.astype("f4")], 0, "slab 1 .* dtype float32, which does not continue"),
        ([X, X[0]], 0, r"slab 1 has shape \(7, 5\)"),
    ],
)
def test_slabs_that_do_not_go_together(parts, axis, says):
    with pytest.raises(tl.InvalidTensorError, match=says):
        list(source_of(iter(parts), axis).regions((4, 7, 5)))


def test_bands_tile_a_shape_in_order(small):
    for block in ((3, 2, 5), (1, 1, 1), (20, 7, 5)):
        boxes = list(bands(X.shape, block, 2))
        assert sum(box.size for box in boxes) == X.size
        assert [box.lo for box in boxes] == sorted(box.lo for box in boxes)
        assert all(a % b == 0 for box in boxes for a, b in zip(box.lo, block, strict=True))
    assert list(bands((0, 7), (2, 2), 2)) == []


def test_an_array_that_is_not_what_it_says():
    lies = (Lazy(X, shape=(21, 7, 5)), Lazy(X, dtype=np.dtype("f8")))
    for data in lies:
        with pytest.raises(
            tl.InvalidTensorError, match=r"Lazy says that it has shape .* but from .* it gave"
        ):
            list(source_of(data).regions(()))


def test_density_is_exact_of_small_arrays_and_near_of_large_ones(monkeypatch):
    x = np.zeros((200, 300), "u1")
    x[::4] = 1
    assert source_of(x).density() == 0.25
    assert source_of(tl.SparseTensor.from_dense(x)).density() == 0.25
    monkeypatch.setattr(source, "_SAMPLE_CELLS", 256)
    assert source_of(Lazy(x)).density() == pytest.approx(0.25, abs=0.05)
    assert source_of(np.zeros((0, 3))).density() == source_of(5.0).density() == 1.0
    dates = np.array(["NaT", "1970-01-01", "2020-01-01"], "M8[D]")
    assert source.count_nonzero(dates) == 2


def test_a_sample_is_a_block_from_the_middle():
    np.testing.assert_array_equal(source_of(X).sample((4, 7, 2)), X[8:12, :, 1:3])
    assert source_of(X).sample((64, 64, 64)).shape == X.shape
    one = tl.SparseTensor([[13], [2], [4]], [5], X.shape)
    assert np.count_nonzero(source_of(one).sample((4, 4, 4))) == 1
    none = tl.SparseTensor(np.zeros((2, 0), int), np.zeros(0), (9, 9))
    assert source_of(none).sample((3, 3)).tolist() == np.zeros((3, 3)).tolist()


def test_which_source_something_is():
    assert isinstance(source_of(tl.SparseTensor.from_dense(X)), SparseSource)
    assert isinstance(source_of([[1, 2], [3, 4]]), ArraySource)
    assert source_of(7).shape == ()
    assert source_of(X).nbytes == X.nbytes
    sparse = source_of(tl.SparseTensor.from_dense(X))
    assert suited(sparse, True, 2).leading_axis == 2
    assert isinstance(suited(sparse, False, 0), ArraySource)
    assert suited(source_of(X), True, 2).data is X
    with pytest.raises(tl.UnsupportedDtypeError):
        source_of(np.array(["a"], object))


MASKED = np.ma.array(X, mask=X > 5)


@pytest.mark.parametrize("data", [MASKED, [*MASKED], [[np.ma.masked, 1.0]]], ids=lambda x: type(x))
def test_masked_elements_are_no_values(data):
    with pytest.raises(tl.InvalidTensorError, match="masked; fill"):
        source_of(data)
    assert joined(source_of(np.ma.array(X)), (1, 1, 1)).tolist() == X.tolist()


def test_masked_parts_of_lazy_arrays_and_of_iterators():
    lazy = source_of(Lazy(MASKED))
    with pytest.raises(tl.InvalidTensorError, match="elements are masked; fill them"):
        [*lazy.regions((1, 1, 1))]
    slabs = source_of(iter([X, MASKED]))
    with pytest.raises(tl.InvalidTensorError, match="elements are masked; fill them"):
        [*slabs.regions((1, 1, 1))]


@pytest.mark.parametrize("data", ["photos.npy", Path("photos.npy")], ids=["text", "path"])
def test_the_name_of_a_file_is_no_array(lake, data):
    with pytest.raises(tl.UnsupportedDtypeError, match=r"photos\.npy'?\)? is no array; .*np\.load"):
        lake.write("x", data)
    assert "x" not in lake
