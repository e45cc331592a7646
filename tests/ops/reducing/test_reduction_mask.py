"""Masks: arrays and elements of bools say the same, of blocks, elements and axes."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.ops.reducing.reduction_mask import Mask

SHAPE = (4, 5, 6)


@pytest.mark.parametrize("own", [(), (6,), (5, 1), (4, 1, 6), (1, 1, 1), SHAPE])
@pytest.mark.parametrize("kind", [np.asarray, tl.SparseTensor.from_dense])
def test_a_mask_is_as_if_it_had_the_shape(own, kind):
    array = np.random.default_rng(1).random(own) < 0.5
    whole = np.broadcast_to(array, SHAPE)
    mask = Mask.of(kind(array), SHAPE)
    coords = np.stack(np.nonzero(np.ones(SHAPE)))
    assert np.array_equal(mask.of_elements(coords), whole.reshape(-1))
    for axes in ((), (1,), (0, 2), (0, 1, 2)):
        kept = [n for k, n in enumerate(SHAPE) if k not in axes]
        wanted = np.count_nonzero(whole, axis=axes)
        assert np.array_equal(np.broadcast_to(mask.counts(axes), kept), wanted)
    place = slice(1, 3), np.array([0, 2, 4]), slice(2, 6)
    block = whole[1:3, [0, 2, 4], 2:6]
    assert np.array_equal(np.broadcast_to(mask.at(place), block.shape), block)
    for axes in ((), (1,), (0, 2), (0, 1, 2)):
        span = mask.span(axes)
        assert np.count_nonzero(whole[span]) == np.count_nonzero(whole)
        for k, (side, n) in enumerate(zip(span, SHAPE)):
            others = tuple(j for j in range(3) if j != k)
            found = (
                np.flatnonzero(whole.any(axis=others)) if k in axes and array.any() else [0, n - 1]
            )
            assert (side.start, side.stop) == (found[0], found[-1] + 1)
    part = mask.part((slice(1, 4), slice(None), slice(0, 6, 2)))
    assert part.shape == (3, 5, 3)
    assert np.array_equal(part.counts(()) + np.zeros(part.shape, int), whole[1:4, :, ::2])


def test_what_is_no_mask_of_the_shape_is_refused():
    with pytest.raises(tl.UnsupportedDtypeError, match="bools, not of float64"):
        Mask.of(np.ones(3), (3,))
    for own in ((2,), (1, 3), (4, 3)):
        with pytest.raises(tl.InvalidTensorError, match="does not broadcast"):
            Mask.of(np.ones(own, bool), (3,))
