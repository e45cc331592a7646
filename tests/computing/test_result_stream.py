"""A large answer goes to the lake region by region."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from computed import LAYOUTS, array_of, dense, put

from tensorlake_spark.computing import result_stream
from tensorlake_spark.computing.operations.block_reductions import reduction
from tensorlake_spark.computing.operations.index_searches import search
from tensorlake_spark.computing.operations.products import contractions
from tensorlake_spark.computing.result_stream import ResultStream, stream_of
from tensorlake_spark.computing.thread_runner import compute
from tensorlake_spark.indexing import Box
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.writing import source


@pytest.fixture
def small_regions(monkeypatch):
    """Regions of a few elements, however much is read again for them."""
    monkeypatch.setattr(source, "REGION_BYTES", 200)
    monkeypatch.setattr(result_stream, "REGION_BYTES", 200)
    monkeypatch.setattr(result_stream, "_AGAIN", 1e9)


def halves(shape):
    """Return boxes that tile a shape: two along each axis."""
    cuts = [[(0, n // 2), (n // 2, n)] if n > 1 else [(0, n)] for n in shape]
    return [Box(tuple(a for a, _ in sides), tuple(b for _, b in sides)) for sides in product(*cuts)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "fold",
    [
        lambda x: reduction(x, "var", 1),
        lambda x: reduction(x, "sum", (0, 2), keepdims=True),
        lambda x: search(x, "argmax", 0),
        lambda x: search(x, "argmin", -1, keepdims=True),
        lambda x: contractions.ttm(x, np.arange(12.0).reshape(3, 4), 2),
        lambda x: contractions.tensordot(x, np.arange(30.0).reshape(2, 5, 3), (1, 1)),
        lambda x: contractions.tensordot(x, SparseTensor.from_dense(np.eye(4, 3)), 1),
        lambda x: contractions.mttkrp(x, [None, np.ones((5, 2)), np.ones((4, 2))], 0),
    ],
)
def test_parts_of_an_answer_are_the_answer(lake, layout, fold):
    stored = put(lake, array_of("f8", (6, 5, 4), 7), layout).view[::-1]._stored
    whole = fold(stored)
    wanted = dense(compute(whole, stored))
    assert whole.answer_shape == wanted.shape
    for box in halves(wanted.shape):
        key, part = whole.part(box)
        found = compute(part, stored.part(key))
        np.testing.assert_allclose(dense(found), wanted[box.slices()])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_results_are_streamed_by_one_commit(lake, small_regions, monkeypatch, layout):
    array = array_of("i2", (500, 800, 3), 3)
    ref = put(lake, array, layout)
    parts, part = [], ResultStream.part
    monkeypatch.setattr(
        ResultStream, "part", lambda self, box: parts.append(box) or part(self, box)
    )
    before = lake.version
    means = ref.mean(axis=2, into="means")
    assert lake.version == before + 1
    assert len(parts) > 3
    np.testing.assert_allclose(dense(means[...]), array.mean(axis=2))
    found = ref.view[:, ::-2].ttm(np.ones((2, 3)), 2, into="product")
    np.testing.assert_allclose(dense(found[...]), array[:, ::-2] @ np.ones((3, 2)))


def test_what_regions_would_read_again_and_again_is_held(lake, small_regions, monkeypatch):
    monkeypatch.setattr(result_stream, "_AGAIN", 1.5)
    array = array_of("f8", (4, 50, 40), 3)
    ref = lake.write("x", array, layout="ftsf", block_shape=(1, 50, 40))
    stored = ref.view[...]._stored
    assert stream_of(reduction(stored, "sum", 0), stored, compute) is None
    np.testing.assert_allclose(ref.sum(axis=0, into="sums")[...], array.sum(axis=0))


def test_small_answers_are_held(lake):
    stored = put(lake, array_of("f8", (9, 8), 3), "ftsf").view[...]._stored
    assert stream_of(reduction(stored, "sum", 0), stored, compute) is None
    assert stream_of(reduction(stored, "sum"), stored, compute) is None


@pytest.mark.local_disk
def test_an_interrupted_stream_leaves_nothing(lake, small_regions, monkeypatch):
    ref = put(lake, array_of("i2", (500, 800, 3), 3), "ftsf")

    def there():
        return sorted(lake), lake.version, sorted(Path(lake.uri).rglob("*.parquet"))

    before, part, calls = there(), ResultStream.part, []

    def broken(self, box):
        calls.append(box)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return part(self, box)

    monkeypatch.setattr(ResultStream, "part", broken)
    with pytest.raises(KeyboardInterrupt):
        ref.sum(axis=2, into="sums")
    assert there() == before
