"""What no row covers: counted element by element."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.indexing import Box, Grid, select
from tensorlake_spark.reading.gaps import gaps, stored_boxes, touched_cells, uncovered


@given(st.data())
def test_uncovered_is_what_is_left_of_the_cells(data):
    shape = data.draw(st.sampled_from([(), (0,), (9,), (5, 7)]))
    grid = Grid(shape, tuple(data.draw(st.integers(1, 4)) for _ in shape))
    cells = list(grid.cells(Box.whole(shape)))
    stored = data.draw(st.lists(st.sampled_from(cells), max_size=4)) if cells else []
    for n in shape if all(shape) else ():
        cut = data.draw(st.integers(1, n))
        stored += [Box((0,) * len(shape), tuple(min(cut, m) for m in shape))]
    left = np.zeros(shape, int)
    lo = np.array([b.lo for b in stored], np.int64).reshape(len(stored), len(shape))
    hi = np.array([b.hi for b in stored], np.int64).reshape(len(stored), len(shape))
    for box in uncovered(cells, lo, hi):
        left[box.slices()] += 1
    want = np.ones(shape, int)
    for box in stored:
        want[box.slices()] = 0
    np.testing.assert_array_equal(left, want)


def test_gaps_of_a_slice_are_the_chunks_that_are_not_stored(lake):
    x = np.zeros((10, 6))
    x[0, 0] = x[9, 5] = 1
    lake.write("x", x[:5], block_shape=(4, 3), layout="ftsf")
    ref = lake.write("x", x[5:], mode="append")
    spec, selection = ref._meta.spec, select(np.s_[3:6, ::4], x.shape)
    cells = touched_cells(spec, selection)
    assert [c.lo for c in cells[0]] == [(0, 0), (0, 3), (4, 0), (4, 3), (5, 0), (5, 3)]
    stored = stored_boxes(ref._snapshot, spec, cells)
    found = [(b.lo, b.hi) for b in gaps(cells, stored, selection)]
    assert found == [
        ((0, 3), (4, 6)), ((4, 0), (5, 3)), ((4, 3), (5, 6)), ((5, 0), (9, 3)), ((5, 3), (9, 6)),
    ]  # fmt: skip


def test_what_is_not_stored_of_a_cell_is_a_gap_only_where_something_of_it_is_selected():
    lo, hi = np.array([[0]]), np.array([[4]])
    stored = [("a file", np.array([[0]]), np.array([[2]]))]
    for key, want in ((slice(0, 2), []), (slice(1, 3), [Box((2,), (4,))])):
        assert [*gaps(([Box((0,), (4,))], lo, hi), stored, select(key, (4,)))] == want
