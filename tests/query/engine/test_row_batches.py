"""Batches of rows are bounded by the bytes of their tensors, wherever these lie."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.engine import row_batches

LINES = 8 << 10  # of a large scan, each of 16 bytes


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    """Scans of which some are kept as tiles."""
    schema = {"scan": types.Tensor("uint8", (None, 16)), "even": "bool"}
    made = tl.dataset(str(tmp_path_factory.mktemp("batches") / "ds"), schema, tile_bytes=64 << 10)
    scans = [np.full((LINES if n % 3 else 10, 16), n, np.uint8) for n in range(24)]
    made.extend({"scan": scans, "even": [n % 2 == 0 for n in range(24)]})
    return made


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Raw images apart, of which some are kept as tiles."""
    schema = {"scan": types.Image("raw", apart=True), "n": "int32"}
    made = tl.dataset(str(tmp_path_factory.mktemp("apart") / "ds"), schema, tile_bytes=64 << 10)
    scans = [np.full((LINES if n % 3 else 10, 16), n, np.uint8) for n in range(24)]
    made.extend({"scan": scans, "n": range(24)})
    return made


@pytest.fixture
def bound(monkeypatch):
    """Bytes of two large scans and some small ones."""
    monkeypatch.setattr(row_batches, "BATCH_BYTES", 2 * LINES * 16 + 1000)


def sizes(ds, text, **parameters):
    view = ds.query(text, **parameters)
    return [len(next(iter(batch.values()))) for batch in view.batches()]


def test_large_samples_count_as_they_are_in_memory(ds, bound):
    found = sizes(ds, "SELECT scan FROM dataset")
    assert sum(found) == 24
    assert max(found) <= 4  # two large, and a small one on either side
    assert sizes(ds, "SELECT even, array_sum(scan) AS s FROM dataset") == found
    view = ds.query("SELECT scan FROM dataset WHERE array_max(scan) >= 20")
    assert [scan.max() for batch in view.batches() for scan in batch["scan"]] == [20, 21, 22, 23]


def test_large_images_apart_count_as_they_are_in_memory(images, bound):
    found = sizes(images, "SELECT array_max(scan) AS m FROM dataset")
    assert sum(found) == 24
    assert max(found) <= 4
    assert images.query("SELECT array_max(scan) AS m FROM dataset")["m"].tolist() == [*range(24)]


def test_of_slices_only_the_pages_count(ds, bound):
    assert sizes(ds, "SELECT scan[:3] AS top FROM dataset") == [24]
    assert sizes(ds, "SELECT scan[:n] AS top FROM (SELECT *, 3 AS n FROM dataset)")[0] <= 4
    assert max(sizes(ds, "SELECT scan[:, 3] AS line FROM dataset")) <= 4
    assert sizes(ds, "SELECT shape(scan) AS s FROM dataset") == [24]


def test_samples_of_groups_count_together(ds, bound):
    text = "SELECT even, array_agg(scan) AS scans FROM dataset GROUP BY even"
    assert sizes(ds, text) == [1, 1]


def test_rows_that_are_asked_for_are_not_cut(ds, bound):
    view = ds.query("SELECT scan FROM dataset")
    assert [len(batch["scan"]) for batch in view.batches(rows=20)] == [20, 4]


def test_the_size_of_a_sample_is_that_of_the_rows_that_are_read(tmp_path, monkeypatch):
    """The first two files told it, which a condition rules out: they were opened, and batches were too large."""
    monkeypatch.setattr(row_batches, "BATCH_BYTES", 64 << 10)
    schema = {"n": "int32", "x": types.Tensor("uint8", (None,)), "image": types.Image("png")}
    ds = tl.dataset(tmp_path, schema)
    for side in (1, 1, 100):
        scans = [np.zeros(side * side, np.uint8)] * 40
        ds.extend({"n": [side] * 40, "x": scans, "image": [np.zeros((side, side), np.uint8)] * 40})
    for column in ("x", "image"):
        late = tl.dataset(tmp_path, create=False)
        found = sizes(late, f"SELECT n FROM dataset WHERE n = 100 AND array_sum({column}) = 0")
        assert found == [40]
        assert [file.is_opened for file in late.stored.files] == [False, False, True]
        assert sum(sizes(late, f"SELECT {column} FROM dataset WHERE n = 100")) == 40
        assert max(sizes(late, f"SELECT {column} FROM dataset WHERE n = 100")) <= 6
