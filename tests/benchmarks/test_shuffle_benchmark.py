"""The orders that the shuffle benchmark compares are orders, and mix what it says that they mix."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

COUNT = 20_000


@pytest.fixture(scope="module")
def benchmark():
    sys.path.insert(0, str(Path(__file__).parent))
    module = importlib.import_module("shuffle_quality")
    sys.path.pop(0)
    return module


@pytest.fixture(scope="module")
def rows(benchmark):
    return {row.name: row for row in benchmark.rows(COUNT)}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mds_py1e", (512, 2048, 3)),
        ("webdataset", (512, 1000, 3)),
        ("webdataset", (512, 50_000, 3)),
        ("ours", (64, 1024, 16, 3)),
    ],
)
def test_an_order_has_every_sample_once(benchmark, name, arguments):
    order = getattr(benchmark, name)(COUNT, *arguments)
    assert np.array_equal(np.sort(order), np.arange(COUNT))


def test_shards_of_py1e_spread_over_a_range_of_the_block(benchmark):
    order = benchmark.mds_py1e(COUNT, 500, 4000, 1)
    place = np.argsort(order).reshape(-1, 500)
    assert (np.ptp(place, axis=1) < 4000 + 500).all()
    assert np.ptp(place, axis=1).max() > 3000


def test_webdataset_delivers_nothing_more_than_its_buffer_early(benchmark):
    """With one shard the stream is the table: sample i comes no earlier than place i - buffer."""
    order = benchmark.webdataset(COUNT, COUNT, 1000, 1)
    assert (np.arange(COUNT) - order >= -1000).all()


def test_the_table_has_a_line_for_each_order(benchmark, rows):
    lines = benchmark.table(list(rows.values())).splitlines()
    assert len(lines) == 2 + len(rows)
    assert len({line.count("|") for line in lines}) == 1


def test_a_true_shuffle_is_the_measure_of_all(rows):
    assert rows["as it lies"].quality.displacement == 0
    assert rows["a true shuffle"].quality.of_true_shuffle == pytest.approx(1, abs=0.02)
    assert rows['ours, "global"'].quality.of_true_shuffle == pytest.approx(1, abs=0.02)


def test_smaller_blocks_and_larger_buffers_mix_more(rows):
    found = {
        (block, buffer): rows[
            f"ours, blocks of {block} MiB, buffer {buffer} MiB"
        ].quality.labels_in_a_batch
        for block, buffer in ((8, 128), (8, 1024), (2, 128), (2, 2048))
    }
    assert found[8, 128] < found[8, 1024] < found[2, 2048]
    assert found[8, 128] < found[2, 128]
