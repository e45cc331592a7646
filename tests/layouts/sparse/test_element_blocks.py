"""Elements sorted by block: every one is where it was, in the block that holds it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.layouts.sparse.element_blocks import block_sides, gather, widths


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 40)), min_size=1, max_size=3),
    st.integers(1, 60), st.integers(0, 999), st.data(),
)  # fmt: skip
def test_elements_are_found_again_in_their_blocks(axes, count, seed, data):
    shape = tuple(n for n, _ in axes)
    sides = block_sides([b for _, b in axes], shape)
    cuts = [data.draw(st.sets(st.integers(1, n - 1), max_size=2)) if n > 1 else () for n in shape]
    segments = [[0, *sorted(cut)] for cut in cuts]
    order = data.draw(st.permutations(range(len(shape))))
    places = np.unique(np.random.default_rng(seed).integers(0, np.prod(shape), count))
    places = np.random.default_rng(seed).permutation(places)
    coords = np.array(np.unravel_index(places, shape))
    found = gather(coords, places, sides, segments, order, shape)
    boxes = [tuple(box) for box in np.hstack([found.lo, found.hi]).tolist()]
    assert len({*boxes}) == len(boxes)
    seen = []
    for start, stop, lo, hi in zip(found.starts, found.stops, found.lo, found.hi):
        offset = found.offset[start:stop].copy()
        assert (offset[1:] > offset[:-1]).all(), "each offset once, in order"
        at = np.empty((len(shape), len(offset)), np.int64)
        for k in reversed(order):
            at[k] = lo[k] + (offset & ((1 << widths(sides)[k]) - 1))
            offset >>= widths(sides)[k]
        assert (offset == 0).all()
        assert (at < hi[:, None]).all()
        assert all(not lo[k] < cut < hi[k] for k, axis in enumerate(segments) for cut in axis)
        assert (np.ravel_multi_index(at, shape) == found.values[start:stop]).all()
        seen += found.values[start:stop].tolist()
    assert sorted(seen) == sorted(places.tolist())
