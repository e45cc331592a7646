"""The search for rows that slide: which are linked, how chains are laid out and over each other."""

import numpy as np
import pytest

from tensorlake_spark.layouts.timelines import sliding


def rows_at(starts, width=32, seed=0):
    """Return rows that begin at some places of one line of ids."""
    line = np.random.default_rng(seed).integers(0, 1 << 60, 1000)
    return line[np.asarray(starts)[:, None] + np.arange(width)]


def laid_out(rows):
    placed, chains = sliding.place_chains(rows, sliding.find_links(rows))
    return placed, sliding.overlay(placed, chains)


def read_back(placed, width):
    return placed.timeline[placed.starts[:, None] + np.arange(width)]


@pytest.mark.parametrize("step", [-20, -3, -1, 0, 1, 3, 20])
def test_rows_that_slide_are_linked(step):
    rows = rows_at(400 + step * np.arange(15))
    links = sliding.find_links(rows)
    assert links.is_linked.tolist() == [False, *[True] * 14]
    assert links.shift.tolist() == [0, *[-step] * 14]
    placed, _ = laid_out(rows)
    assert len(placed.timeline) == 32 + 14 * abs(step)
    assert np.array_equal(read_back(placed, 32), rows)


@pytest.mark.parametrize("column", [0, 31, 16, 7])
def test_one_edited_id_hides_no_link(column):
    rows = rows_at(400 - 2 * np.arange(9))
    rows[4, column] = 5
    links = sliding.find_links(rows)
    assert links.is_linked[1:].all()
    assert links.shift[1:].tolist() == [2] * 8


def test_rows_of_others_are_not_linked_and_begin_a_chain():
    rows = np.concatenate([rows_at([9, 8, 6]), rows_at([9, 8, 6], seed=1)])
    links = sliding.find_links(rows)
    assert links.is_linked.tolist() == [False, True, True, False, True, True]
    assert links.new_ids(32).tolist() == [32, 1, 2, 32, 1, 2]
    assert links.part(1, 4).is_linked.tolist() == [False, True, False]
    assert links.part(1, 4).shift.tolist() == [0, 2, 0]
    assert sliding.place_chains(rows, links)[1].tolist() == [0, 35]


def test_rows_that_turn_round_are_not_linked_but_laid_over_each_other():
    rows = rows_at([100, 102, 104, 101, 99, 103])
    assert sliding.find_links(rows).is_linked.tolist() == [False, True, True, False, True, False]
    chains, over = laid_out(rows)
    assert len(over.timeline) == 32 + 5
    assert len(chains.timeline) > len(over.timeline)
    assert np.array_equal(read_back(over, 32), rows)


def test_rows_in_any_order_share_the_timelines_of_their_users():
    rng = np.random.default_rng(2)
    rows = np.concatenate([rows_at(rng.permutation(20), seed=user) for user in range(7)])
    rows = rows[rng.permutation(len(rows))]
    _, over = laid_out(rows)
    assert len(over.timeline) == 7 * (32 + 19)
    assert np.array_equal(read_back(over, 32), rows)


def test_noise_is_left_alone():
    rows = np.random.default_rng(3).integers(0, 1 << 60, (50, 8))
    chains, over = laid_out(rows)
    assert over is chains
    assert np.array_equal(chains.timeline, rows.reshape(-1))


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (40, 2)])
@pytest.mark.parametrize("most", [1, 2, 1000])
def test_few_rows_columns_and_ids(shape, most):
    rows = np.random.default_rng(4).integers(0, most, shape)
    _, over = laid_out(rows)
    assert over.starts.min() >= 0
    assert over.starts.max() + shape[1] <= len(over.timeline) <= rows.size


def test_a_row_that_bridges_two_groups_joins_one_of_them():
    rows = rows_at([0, 40, 20])
    _, over = laid_out(rows)
    assert len(over.timeline) in (96, 84)
    differ = np.count_nonzero(read_back(over, 32) != rows)
    assert differ <= 12
