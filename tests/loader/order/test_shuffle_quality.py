"""Measures of a shuffle on orders whose quality is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.order.block_shuffle import BlockShuffle
from tensorlake_spark.loader.order.permutation import Permutation
from tensorlake_spark.loader.order.shuffle_quality import expected_labels, quality_of

COUNT, CLASSES = 100_000, 100
LABELS = np.arange(COUNT) * CLASSES // COUNT


def test_data_in_order():
    found = quality_of(np.arange(COUNT), LABELS, 64)
    assert found.displacement == 0
    assert found.run_length == COUNT / CLASSES
    assert found.labels_in_a_batch < 1.1


def test_a_true_shuffle():
    found = quality_of(Permutation(COUNT, 1).at(np.arange(COUNT)), LABELS, 64)
    assert found.displacement == pytest.approx(1 / 3, rel=0.01)
    assert found.run_length == pytest.approx(1 / (1 - 1 / CLASSES), rel=0.005)
    assert found.of_true_shuffle == pytest.approx(1, rel=0.01)


def test_blocks_come_near_it_and_a_larger_buffer_comes_nearer():
    starts = np.append(np.arange(0, COUNT, 100), COUNT)
    small, large = (
        quality_of(BlockShuffle(starts, 1, buffer, 16).at(0, COUNT), LABELS, 64)
        for buffer in (500, 16_000)
    )
    assert large.displacement == pytest.approx(1 / 3, rel=0.05)
    assert large.of_true_shuffle > 0.85
    assert 0.2 < small.of_true_shuffle < large.of_true_shuffle


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.data())
def test_expected_labels_are_those_of_all_batches(labels, data):
    """Against ten thousand batches without replacement."""
    batch = data.draw(st.integers(1, len(labels)))
    chance = np.random.default_rng(1)
    shuffled = chance.permuted(np.tile(labels, (4000, 1)), axis=1)[:, :batch]
    found = np.mean([len(set(row)) for row in shuffled.tolist()])
    assert expected_labels(np.bincount(labels), batch) == pytest.approx(found, abs=0.12)


@pytest.mark.parametrize("batch", [0, 9])
def test_no_whole_batch(batch):
    with pytest.raises(InvalidOptionError, match=f"batch={batch} is not in 1 to 8"):
        quality_of(np.arange(8), np.zeros(8, int), batch)
