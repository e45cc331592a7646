"""Tiles of an answer become one where they lie over each other, and the whole where that takes less memory."""

import numpy as np
import pytest

from tensorlake_spark.computing.operations import tiles as tiles_module
from tensorlake_spark.computing.operations.reduction_kernels import UfuncKernel
from tensorlake_spark.computing.operations.tiles import Tiles, absorbed, by_slabs, unite, whole

INT = np.dtype("i8")
ADD = UfuncKernel(np.add, INT, INT)
LARGE = (1000, 1000)


def tile(first, values, shape=LARGE):
    values = np.asarray(values)
    return Tiles.of(shape, (slice(first, first + len(values)), slice(0, shape[1])), (values,))


def test_tiles_in_one_place_become_one():
    ones = np.ones((2, 1000), np.uint16)
    found = unite(unite(tile(4, ones), tile(4, ones), ADD), tile(8, ones), ADD)
    assert len(found.parts) == 2
    assert whole(found, ADD)[0][4:6].sum() == 4000


def test_a_narrow_state_does_not_overflow():
    most = np.full((2, 1000), 65_000, np.uint16)
    found = unite(tile(0, most), tile(0, most), ADD)
    assert whole(found, ADD)[0][0, 0] == 130_000


def test_tiles_that_take_much_memory_become_the_whole():
    found = tile(0, np.ones((400, 1000), INT))
    for first in (400, 800):
        found = unite(found, tile(first, np.ones((200, 1000), INT)), ADD)
    assert [*found.parts] == [()]
    assert whole(found, ADD)[0].sum() == 800_000


def test_places_may_be_indices():
    places = (np.array([0, 3]), np.array([1, 2, 4]))
    found = Tiles.of((5, 6), places, (np.ones((2, 3), INT),))
    found = unite(found, Tiles.of((5, 6), (slice(0, 5), slice(0, 6)), (np.ones((5, 6), INT),)), ADD)
    assert whole(found, ADD)[0].sum() == 36


PLACES = {
    "slices": (slice(1, 5), slice(2, 9)),
    "indices": (slice(0, 4), np.array([0, 3, 3, 4, 8, 8, 9])),
    "all": (slice(0, 6), slice(0, 10)),
}


@pytest.mark.parametrize("count", [1, 3, 4, 10, 25])
@pytest.mark.parametrize("name", PLACES)
def test_cut_into_ranges_each_tile_is_there_once(name, count):
    shape = [i.stop - i.start if isinstance(i, slice) else len(i) for i in PLACES[name]]
    state = np.arange(np.prod(shape)).reshape(shape)
    parts = dict(Tiles.of((6, 10), PLACES[name], (state.copy(),)).cut(count))
    assert set(parts) <= set(range(count))
    assert count < 4 or len(parts) > 2
    held = [array for part in parts.values() for _, (array,) in part.parts.values()]
    assert sorted(np.concatenate([array.ravel() for array in held])) == sorted(state.ravel())
    found = None
    for part in parts.values():
        found = part if found is None else unite(found, part, ADD)
    want = Tiles.of((6, 10), PLACES[name], (state,))
    np.testing.assert_array_equal(whole(found, ADD)[0], whole(want, ADD)[0])


def test_parts_of_one_number_lie_over_each_other_however_they_were_cut():
    one, other = tile(0, np.ones((300, 1000), INT)), tile(100, np.ones((900, 1000), INT))
    sums = {}
    for tiles in (one, other):
        for number, part in tiles.cut(7):
            sums[number] = unite(sums[number], part, ADD) if number in sums else part
    found = sum(sum(a.sum() for _, (a,) in part.parts.values()) for part in sums.values())
    assert found == 1_200_000
    for number, part in sums.items():
        rows = whole(part, ADD)[0].any(axis=1).nonzero()[0]
        assert rows.min() == 1000 * number // 7
        assert rows.max() == 1000 * (number + 1) // 7 - 1


def test_packed_tiles_are_widened_before_others_are_put_into_them():
    found = unite(tile(0, np.full((2, 1000), 60_000)), tile(0, np.full((2, 1000), 5_000)), ADD)
    sent = found.packed(ADD.packed)
    assert [array.dtype for _, (array,) in sent.parts.values()] == [np.uint16]
    both = unite(sent, tile(0, np.full((2, 1000), 9_000)), ADD)
    assert whole(both, ADD)[0][0, 0] == 74_000


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2), ()])
@pytest.mark.parametrize("dtype", ["u1", "f8"])
def test_a_block_that_is_computed_slab_by_slab_gives_what_it_gives_at_once(
    axes, dtype, monkeypatch
):
    monkeypatch.setattr(tiles_module, "_SLAB", 100)
    monkeypatch.setattr(tiles_module, "_RUN", 16)
    block = np.random.default_rng(1).integers(0, 250, (5, 6, 70)).astype(dtype)
    sizes = []

    def add(slab, along):
        sizes.append(slab.size)
        return (slab.sum(axis=along, dtype=INT),)

    np.testing.assert_array_equal(by_slabs(add, block, axes)[0], block.sum(axis=axes, dtype=INT))
    assert len(sizes) > 1
    assert sum(sizes) == block.size


@pytest.mark.parametrize("first", [None, 0, 4])
def test_a_block_is_absorbed_by_a_tile_in_its_place_or_by_the_whole(first, monkeypatch):
    monkeypatch.setattr(tiles_module, "_SLAB", 100)

    def add(state, slab):
        ADD.absorb(state, (slab.sum(axis=0, dtype=np.uint16),))

    block, place = np.full((3, 2, 1000), 250, np.uint8), (slice(4, 6), slice(0, 1000))
    before = None if first is None else tile(first, np.full((2, 1000), 65_000, np.uint16))
    if first == 0:
        assert absorbed(before, place, ADD, add, block, (0,)) is None
        whole(before, ADD)
    found = absorbed(before, place, ADD, add, block, (0,))
    if first is None:
        assert found is None
        return
    wanted = np.zeros(LARGE, INT)
    wanted[first : first + 2] = 65_000
    wanted[4:6] += 750
    np.testing.assert_array_equal(whole(found, ADD)[0], wanted)
    assert absorbed(found, (np.array([4, 5]), place[1]), ADD, add, block, (0,)) is None
