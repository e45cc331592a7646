"""Grids: cells tile, counts agree, appends extend."""

import itertools
import pickle

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing import Box, Grid


@st.composite
def grids(draw):
    rank = draw(st.sampled_from([0, 1, 1, 2, 2, 3]))
    lengths = st.sampled_from([0, *range(1, 8), *range(1, 8)])
    chunk = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    grid = Grid(tuple(draw(lengths) for _ in range(rank)), chunk)
    for _ in range(draw(st.integers(0, 3)) if rank else 0):
        grid = grid.extend(draw(st.integers(0, rank - 1)), draw(st.integers(0, 5)))
    return grid


@st.composite
def boxes(draw, shape):
    sides = [sorted((draw(st.integers(0, n)), draw(st.integers(0, n)))) for n in shape]
    return Box(tuple(a for a, _ in sides), tuple(b for _, b in sides))


@times(3)
@given(st.data())
def test_cells_tile_the_box_once_and_counts_agree(data):
    grid = data.draw(grids())
    box = data.draw(boxes(grid.shape))
    hits = np.zeros(grid.shape, int)
    cells = list(grid.cells(box))
    for cell in cells:
        assert cell.overlaps(box)
        hits[cell.slices()] += 1
    assert (hits[box.slices()] == 1).all()
    assert hits.max(initial=0) <= 1
    assert len(cells) == grid.count(box)
    assert grid.n_cells == len(list(grid.cells(Box.whole(grid.shape))))
    for index, cell in zip(np.ndindex(*grid.counts), grid.cells(Box.whole(grid.shape))):
        assert grid.cell_box(index) == cell


@given(st.data())
def test_an_append_keeps_the_cells_that_were_there(data):
    grid = data.draw(grids().filter(lambda g: g.shape))
    axis = data.draw(st.integers(0, len(grid.shape) - 1))
    longer = grid.extend(axis, data.draw(st.integers(0, 6)))
    before = set(grid.cells(Box.whole(grid.shape)))
    after = set(longer.cells(Box.whole(longer.shape)))
    assert before <= after


@given(st.integers(0, 30), st.integers(1, 5), st.lists(st.integers(0, 9), max_size=6))
def test_appends_start_a_segment_where_a_cell_is_cut_short(first, chunk, sizes):
    grid = Grid((first,), (chunk,))
    for size in sizes:
        end, last = grid.shape[0], grid.segments[0][-1]
        longer = grid.extend(0, size)
        assert longer.shape == (end + size,)
        fresh = size > 0 and (end - last) % chunk != 0
        assert longer.segments[0] == (grid.segments[0] + (end,) if fresh else grid.segments[0])
        assert set(grid.cuts(0).tolist()) <= set(longer.cuts(0).tolist())
        grid = longer
    assert pickle.loads(pickle.dumps(grid)) == grid


def test_a_grid_without_axes_has_one_cell():
    grid = Grid((), ())
    assert (grid.n_cells, grid.counts, grid.count(Box((), ()))) == (1, (), 1)
    assert list(grid.cells(Box((), ()))) == [grid.cell_box(())] == [Box((), ())]


def test_an_axis_of_length_0_has_one_cut_and_no_cell():
    grid = Grid((0, 3), (4, 2))
    assert (grid.cuts(0).tolist(), grid.counts, grid.n_cells) == ([0], (0, 2), 0)
    assert list(grid.cells(Box.whole(grid.shape))) == []


def test_bad_grids_are_refused():
    with pytest.raises(InvalidKeyError, match="differ in rank"):
        Grid((4, 4), (2,))
    with pytest.raises(InvalidKeyError, match="below 1"):
        Grid((4,), (0,))
    with pytest.raises(InvalidKeyError, match="do not rise"):
        Grid((4,), (2,), ((0, 3, 3),))
    with pytest.raises(InvalidKeyError, match="cannot append"):
        Grid((4,), (2,)).extend(1, 1)


@given(st.data())
def test_a_box_past_the_grid_has_the_cells_of_the_part_inside(data):
    grid = data.draw(grids())
    box = data.draw(boxes(tuple(n + 3 for n in grid.shape)))
    cells = list(grid.cells(box))
    assert len(cells) == grid.count(box)
    numbers = itertools.product(*grid.cell_ranges(box))
    assert cells == [grid.cell_box(number) for number in numbers]


@given(grids())
def test_cuts_are_the_sides_of_the_cells(grid):
    for axis, n in enumerate(grid.shape):
        cuts = grid.cuts(axis).tolist()
        assert len(cuts) == grid.counts[axis] + 1
        assert (cuts[0], cuts[-1]) == (0, n)
        assert all(0 < b - a <= grid.chunk[axis] for a, b in itertools.pairwise(cuts))


@pytest.mark.parametrize("cell", [-1, 3])
def test_a_cell_that_is_not_there(cell):
    with pytest.raises(InvalidKeyError, match=f"cell {cell} is out of bounds for axis 0 with 3"):
        Grid((10,), (4,)).cell_box((cell,))


def test_a_box_of_another_rank_is_refused():
    grid = Grid((4, 4), (2, 2))
    with pytest.raises(ValueError, match="zip"):
        grid.count(Box((0,), (2,)))
    with pytest.raises(ValueError, match="zip"):
        list(grid.cells(Box((0,), (2,))))


def test_a_grid_of_a_huge_axis_costs_nothing():
    """Slabs that still arrive are cut on a grid whose end is not known."""
    grid = Grid((2**50, 5), (16, 5)).extend(0, 3).extend(0, 2**50)
    assert grid.count(Box((2**50 - 1, 0), (2**50 + 20, 5))) == 4
    cells = list(grid.cells(Box((2**49, 0), (2**49 + 17, 5))))
    assert [c.lo[0] - 2**49 for c in cells] == [0, 16]
    assert grid.cell_box((2**45, 0)).lo == (2**49, 0)
