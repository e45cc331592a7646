"""The partial of a dense answer: tiles of it, each with the state that its elements have so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol

import numpy as np

from tensorlake_spark.computing.fold import Place

Array = np.ndarray[Any, Any]

State = tuple[Array, ...]
"""What is known of each element of a tile: arrays of one shape, such as means and sums of squares."""

_PIECE = 2 << 20  # bytes of a block that a mask is laid over at a time
_SMALL = 1 << 20  # an answer of fewer bytes is put together at once
_SLAB = 1 << 20  # bytes of a block that are computed at a time, to stay in the cache
_RUN = 4 << 10  # bytes of the last axis that are not cut


class Merger(Protocol):
    """What tiles need to know of states; `reduction_kernels` has them."""

    def blank(self, shape: Sequence[int]) -> State:
        """Return the state of elements that no block has touched."""

    def wide(self, state: State) -> State:
        """Return a state that others can be put into: a block's own may be too narrow for it."""

    def absorb(self, state: State, other: State) -> None:
        """Change a wide state into that of the blocks of both."""


@dataclass
class Tiles:
    """Tiles of an answer.

    Attributes
    ----------
    shape : tuple of int
        Of the answer.
    parts : dict
        Place and state of each tile, by a key that is equal for equal places. One tile that is the whole answer has
        the key ``()``.
    is_wide : set
        Keys of tiles whose states others can be put into.
    """

    shape: tuple[int, ...]
    parts: dict[Any, tuple[Place, State]] = field(default_factory=dict)
    is_wide: set[Any] = field(default_factory=set)

    @classmethod
    def of(cls, shape: tuple[int, ...], place: Place, state: State) -> Tiles:
        """Return one tile."""
        arrays = tuple(
            np.asarray(array) for array in state
        )  # not scalars, which nothing can be put into
        return cls(shape, {_key(shape, place): (place, arrays)})

    def cut(self, count: int) -> Iterator[tuple[int, Tiles]]:
        """Yield what lies in each of `count` ranges of the longest axis of the answer, where there is something.

        Examples
        --------
        >>> tiles = Tiles.of((9,), (slice(2, 6),), (np.array([5, 6, 7, 8]),))
        >>> [(number, *part.parts.values()) for number, part in tiles.cut(3)]
        [(0, ((slice(2, 3, None),), (array([5]),))), (1, ((slice(3, 6, None),), (array([6, 7, 8]),)))]
        """
        if not self.shape:
            yield 0, self
            return
        axis = max(range(len(self.shape)), key=lambda k: self.shape[k])
        length = self.shape[axis]
        for number in range(count):
            lo, hi = length * number // count, length * (number + 1) // count
            out = Tiles(self.shape)
            for key, (place, state) in self.parts.items():
                here, inside = _within(place[axis], lo, hi)
                if inside.start >= inside.stop:
                    continue
                some = (*place[:axis], here, *place[axis + 1 :])
                side = (*(slice(None) for _ in range(axis)), inside)
                new = _key(self.shape, some)
                out.parts[new] = some, tuple(array[side] for array in state)
                if key in self.is_wide:
                    out.is_wide.add(new)
            if out.parts:
                yield number, out

    def packed(self, pack: Callable[[State], State]) -> Tiles:
        """Return tiles with other states of the same elements, which are not wide."""
        return Tiles(
            self.shape, {key: (at, pack(state)) for key, (at, state) in self.parts.items()}
        )


def unite(one: Tiles, other: Tiles, merger: Merger) -> Tiles:
    """Return the tiles of both, united where they overlap; those that need more memory than the answer become it."""
    if len(other.parts) > len(one.parts) or () in other.parts:
        one, other = other, one
    for key, (place, state) in other.parts.items():
        if () in one.parts or key == ():
            _spread(one, merger)
            _put(one.parts[()][1], place, state, merger)
        elif key in one.parts:
            merger.absorb(_widened(one, key, merger), state)
        else:
            one.parts[key] = place, state
            if key in other.is_wide:
                one.is_wide.add(key)
    if () not in one.parts and len(one.parts) > 1 and _is_much(one):
        _spread(one, merger)
    return one


def gathered(
    tiles: Tiles | None,
    shape: tuple[int, ...],
    place: Place,
    merger: Merger,
    reduce: Callable[[State, Place], bool],
) -> Tiles | None:
    """Return tiles after a block was reduced straight into their state; None, and they unchanged, if it could not be.

    Parameters
    ----------
    tiles : Tiles, optional
        Those of blocks before; they may be changed.
    shape : tuple of int
        Of the answer.
    place : tuple of slice or ndarray
        Where in it the block lies.
    merger : Merger
        What knows their states.
    reduce : callable
        Takes a state that can be written to, and the block's place in it; returns whether it has reduced the block.
    """
    if not all(isinstance(index, slice) for index in place):
        return None
    key = _key(shape, place)
    if tiles is not None and () in tiles.parts:
        _spread(tiles, merger)
        return tiles if reduce(tiles.parts[()][1], place) else None
    lengths = tuple(index.stop - index.start for index in place if isinstance(index, slice))
    state = merger.blank(lengths)
    if not reduce(state, tuple(slice(0, n) for n in lengths)):
        return None
    new = Tiles(shape, {key: (place, state)}, {key})
    return new if tiles is None else unite(tiles, new, merger)


def whole(tiles: Tiles, merger: Merger) -> State:
    """Return the state of all elements of the answer."""
    _spread(tiles, merger)
    return tiles.parts[()][1]


def _widened(tiles: Tiles, key: Any, merger: Merger) -> State:
    """Return the state of a tile that others can be put into."""
    place, state = tiles.parts[key]
    if key not in tiles.is_wide:
        state = merger.wide(state)
        tiles.parts[key] = place, state
        tiles.is_wide.add(key)
    return state


def _spread(tiles: Tiles, merger: Merger) -> None:
    """Put all tiles into one that is the whole answer, and can be written to."""
    if () in tiles.parts:
        _widened(tiles, (), merger)
        return
    state = merger.blank(tiles.shape)
    while tiles.parts:
        _, (place, part) = tiles.parts.popitem()
        _put(state, place, part, merger)
    tiles.parts[()] = tuple(slice(0, n) for n in tiles.shape), state
    tiles.is_wide = {()}


def _put(state: State, place: Place, part: State, merger: Merger) -> None:
    """Absorb a tile into a whole answer."""
    if all(isinstance(index, slice) for index in place):
        here = (*place, ...)
        merger.absorb(tuple(array[here] for array in state), part)
        return
    mesh = np.ix_(*(np.arange(i.start, i.stop) if isinstance(i, slice) else i for i in place))
    some = tuple(array[mesh] for array in state)
    merger.absorb(some, part)
    for array, values in zip(state, some, strict=True):
        array[mesh] = values


def _is_much(tiles: Tiles) -> bool:
    """Whether tiles take as much memory as the answer would, or that is little."""
    _, state = next(iter(tiles.parts.values()))
    cell = sum(array.itemsize for array in state)
    held = sum(sum(array.nbytes for array in state) for _, state in tiles.parts.values())
    answer = math.prod(tiles.shape) * cell
    return answer <= _SMALL or held > answer // 2


def _within(index: slice | Array, lo: int, hi: int) -> tuple[slice | Array, slice]:
    """Return what of indices lies in a range, and where it lies among them."""
    if isinstance(index, slice):
        first, stop = max(lo, index.start), min(hi, index.stop)
        return slice(first, stop), slice(first - index.start, stop - index.start)
    inside = slice(*np.searchsorted(index, [lo, hi]).tolist())
    return index[inside], inside


def _key(shape: tuple[int, ...], place: Place) -> Any:
    key = tuple(
        (index.start, index.stop) if isinstance(index, slice) else index.tobytes()
        for index in place
    )
    return () if key == tuple((0, n) for n in shape) else key


Finish = Callable[[State, int], Array]
"""Makes the answer of a state, and the number of elements that each of its elements has been computed from."""


def by_slabs(
    compute: Callable[[Array, tuple[int, ...]], State], block: Array, axes: tuple[int, ...]
) -> State:
    """Return the state of a block, computed slab by slab.

    Parameters
    ----------
    compute : callable
        Takes a part of the block and the axes to reduce; returns its state.
    block : ndarray
        The block.
    axes : tuple of int
        The axes to reduce, ascending.
    """
    out: State = ()
    for key, here in _slabs(block, axes):
        state = compute(block[key], axes)
        if block[key].size == block.size:
            return state
        if not out:
            shape = [n for k, n in enumerate(block.shape) if k not in axes]
            out = tuple(np.empty(shape, array.dtype) for array in state)
        for array, part in zip(out, state, strict=True):
            array[here] = part
    return out


def absorbed(
    tiles: Tiles | None,
    place: Place,
    merger: Merger,
    reduce: Callable[[State, Array], None],
    block: Array,
    axes: tuple[int, ...],
) -> Tiles | None:
    """Return tiles after a block was put into one that is there, slab by slab; None, and they unchanged, if none is.

    What is computed of a slab is still in the cache when it is absorbed.

    Parameters
    ----------
    tiles, place, merger
        As for `gathered`.
    reduce : callable
        Takes a state that can be written to, and the part of the block that is reduced into it.
    block, axes
        As for `by_slabs`.
    """
    if tiles is None or not all(isinstance(index, slice) for index in place):
        return None
    key = () if () in tiles.parts else _key(tiles.shape, place)
    if key not in tiles.parts:
        return None
    state = _widened(tiles, key, merger)
    there: Any = (*place, ...) if key == () else ...
    state = tuple(array[there] for array in state)
    for some, here in _slabs(block, axes):
        inside: Any = (*here, ...)
        reduce(tuple(array[inside] for array in state), block[some])
    return tiles


def _slabs(
    block: Array, axes: tuple[int, ...]
) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Yield keys of parts of a block, along axes that are not reduced, and where each is in what is not reduced.

    Parts are about `_SLAB` bytes, and the last axis is not cut into short runs.

    Examples
    --------
    >>> block = np.zeros((4, 2, 400_000), np.uint8)
    >>> [here for _, here in _slabs(block, (0,))][1:3]
    [(slice(0, 1, None), slice(262144, 400000, None)), (slice(1, 2, None), slice(0, 262144, None))]
    """
    steps = list(block.shape)
    nbytes = block.nbytes
    for k, length in enumerate(block.shape):
        if nbytes <= _SLAB:
            break
        if k not in axes:
            least = max(1, _RUN // block.itemsize) if k == block.ndim - 1 else 1
            steps[k] = min(length, max(least, _SLAB * length // nbytes))
            nbytes = nbytes * steps[k] // length
    ranges = [
        [slice(at, min(at + step, n)) for at in range(0, max(1, n), max(1, step))]
        for n, step in zip(block.shape, steps, strict=True)
    ]
    for key in product(*ranges):
        yield key, tuple(some for k, some in enumerate(key) if k not in axes)


def pieces(place: Place, block: Array) -> Iterator[tuple[Place, Array]]:
    """Yield parts of a block, and where they lie: each so small that what is computed of it takes little memory.

    Examples
    --------
    >>> block = np.zeros((2, 200, 1000))
    >>> places = [where for where, _ in pieces((slice(4, 6), slice(0, 200), slice(0, 1000)), block)]
    >>> len(places), places[0][0], places[-1][0]
    (2, slice(4, 5, None), slice(5, 6, None))
    """
    axis = next((k for k, n in enumerate(block.shape) if n > 1), None)
    if block.nbytes <= _PIECE or axis is None:
        yield place, block
        return
    length = block.shape[axis]
    step = max(1, _PIECE * length // block.nbytes)
    for first in range(0, length, step):
        some, here = slice(first, min(first + step, length)), place[axis]
        part = (
            slice(here.start + some.start, here.start + some.stop)
            if isinstance(here, slice)
            else here[some]
        )
        key = (*(slice(None) for _ in range(axis)), some)
        yield from pieces((*place[:axis], part, *place[axis + 1 :]), block[key])
