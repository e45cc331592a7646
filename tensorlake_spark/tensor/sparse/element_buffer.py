"""Elements that may change: some in order, and behind them what was put since, sorted when order is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.errors import BuilderClosedError
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.coords import ravel, sort_places, unravel
from tensorlake_spark.ops.elements import Elements

Array = np.ndarray[Any, Any]

_LEAST = 64  # elements that a buffer has room for from the first put on
_LOOK = (
    4096  # so many puts are looked through for a single element; of more, sorting them costs less
)


class ElementBuffer:
    """The elements of a tensor that may change, by their places in C order.

    Elements in order are never written to: what is read shares them. Puts are appended to a buffer, which doubles
    when it is full. When order is needed next they are sorted and merged with the others. That also happens when a
    full buffer holds as many puts as there are others: then it costs no more than the puts did, and an element
    that is put over and over takes no more memory.

    Parameters
    ----------
    places, values : ndarray, shape (n,)
        What it begins with: ascending, each place once, no zeros. They are not copied and not changed.
    shape : tuple of int
        Fewer than 2**63 elements.
    coords : int64 ndarray, shape (ndim, n), optional
        Their coordinates, if they are known.

    Examples
    --------
    >>> buffer = ElementBuffer(np.array([1, 4]), np.array([5.0, 7.0]), (3, 2))
    >>> buffer.put(0, 3.0)
    >>> buffer.put(4, 0.0)
    >>> buffer.elements().coords.tolist()
    [[0, 0], [0, 1]]
    """

    __slots__ = (
        "_coords",
        "_count",
        "_new_places",
        "_new_values",
        "_places",
        "_values",
        "closed",
        "dtype",
        "shape",
    )

    def __init__(
        self, places: Array, values: Array, shape: tuple[int, ...], coords: Array | None = None
    ) -> None:
        self.shape = shape
        self.dtype = values.dtype
        self.closed = False
        self._places, self._values, self._coords = places, values, coords
        self._forget_puts()

    def __reduce__(self) -> tuple[Any, ...]:
        self._settle()
        return ElementBuffer, (self._places, self._values, self.shape, self._coords)

    def _forget_puts(self) -> None:
        self._count = 0
        self._new_places: Array = np.empty(0, np.int64)
        self._new_values: Array = np.empty(0, self.dtype)

    def close(self) -> None:
        """Let go of all elements; every use from now on raises BuilderClosedError."""
        self.closed = True
        self._places, self._values, self._coords = self._new_places[:0], self._new_values[:0], None
        self._forget_puts()

    def _check_open(self) -> None:
        if self.closed:
            raise BuilderClosedError(
                "the builder gave its elements away with build(); tensor.builder() begins a new one with them"
            )

    @property
    def capacity(self) -> int:
        """Elements that there is room for before a buffer is made larger."""
        self._check_open()
        return len(self._places) + len(self._new_places)

    def reserve(self, count: int) -> None:
        """Make room for so many elements altogether."""
        self._check_open()
        self._resize(max(self._count, count - len(self._places)))

    def put(self, place: int, value: Any) -> None:
        """Put one element, as NumPy assigns a scalar to an element of an array."""
        at = self._count
        if at == len(self._new_places):  # so it is, too, once the buffer is closed
            at = self._make_room(1)
        self._new_values[at] = value  # which may raise
        self._new_places[at] = place
        self._count = at + 1

    def extend(self, places: Array, values: Array) -> None:
        """Put elements; of one that is there twice the last counts."""
        at = self._make_room(len(places))
        self._new_places[at : at + len(places)] = places
        self._new_values[at : at + len(places)] = values
        self._count = at + len(places)

    def replace(self, places: Array, values: Array, coords: Array | None = None) -> None:
        """Take other elements instead of all that are there: ascending, each place once; zeros are left out."""
        self._check_open()
        kept = self._stored(values)
        if not kept.all():
            places, values, coords = places[kept], values[kept], None
        self._places, self._values, self._coords = places, values, coords
        self._count = 0

    def get(self, place: int) -> Any:
        """Return one element as a scalar."""
        self._check_open()
        if self._count > _LOOK:
            self._settle()
        found = np.flatnonzero(self._new_places[: self._count] == place)
        if len(found):
            value = self._new_values[found[-1]]
            return value if self._stored(value) else self._zero
        at = self._places.searchsorted(place)
        there = at < len(self._places) and self._places[at] == place
        return self._values[at] if there else self._zero

    @property
    def nnz(self) -> int:
        """Number of elements that are not zero."""
        self._settle()
        return len(self._places)

    def elements(self, box: Box | None = None) -> Elements:
        """Return what there is now, canonical; of a box, at least what lies in it."""
        self._settle()
        first, stop = 0, len(self._places)
        if box is not None and all(box.shape):
            ends = np.array([box.lo, box.hi], np.int64).T - [0, 1]
            low, high = ravel(ends, self.shape).tolist()
            first, stop = np.searchsorted(self._places, (low, high + 1)).tolist()
        run = slice(first, stop)
        places, values = self._places[run], self._values[run]
        if self._coords is None and len(places) < len(self._places):
            return Elements._trusted(unravel(places, self.shape), values, self.shape, places)
        if self._coords is None:
            self._coords = unravel(self._places, self.shape)
        return Elements._trusted(self._coords[:, run], values, self.shape, places)

    @property
    def _zero(self) -> Any:
        return np.zeros((), self.dtype)[()]

    def _stored(self, values: Any) -> Any:
        """Whether values are not zero. NaN is not, and a date is zero in 1970."""
        return values != self._zero

    def _settle(self) -> None:
        """Merge what was put with what is in order."""
        self._check_open()
        if not self._count:
            return
        puts, by = _last_puts(self._new_places[: self._count])
        values = self._new_values[by]
        stored = self._stored(values)
        at = np.searchsorted(self._places, puts)
        there = at < len(self._places)
        there[there] = self._places[at[there]] == puts[there]
        self._remove(at[there & ~stored])
        self._insert(puts[stored & ~there], values[stored & ~there])
        again = stored & there
        if again.any():
            changed = self._values.copy()
            changed[np.searchsorted(self._places, puts[again])] = values[again]
            self._values = changed
        self._count = 0

    def _remove(self, at: Array) -> None:
        """Leave out elements in order."""
        if not len(at):
            return
        kept = np.ones(len(self._places), bool)
        kept[at] = False
        self._places, self._values = self._places[kept], self._values[kept]
        self._coords = None if self._coords is None else self._coords[:, kept]

    def _insert(self, places: Array, values: Array) -> None:
        """Put new elements, which ascend, between those in order."""
        if not len(places):
            return
        spots = np.searchsorted(self._places, places) + np.arange(len(places))
        is_old = np.ones(len(self._places) + len(places), bool)
        is_old[spots] = False
        if self._coords is not None:
            # Cheaper than dividing all places again, unless there were few.
            few = len(places) < len(self._places)
            coords = unravel(places, self.shape)
            self._coords = _woven(self._coords, coords, spots, is_old) if few else None
        self._places = _woven(self._places, places, spots, is_old)
        self._values = _woven(self._values, values, spots, is_old)

    def _make_room(self, extra: int) -> int:
        """Make room for more puts; return where they go."""
        self._check_open()
        room = len(self._new_places)
        if self._count + extra > room:
            if self._count >= max(1, len(self._places)):
                self._settle()
            if self._count + extra > room:
                self._resize(max(_LEAST, 2 * room, self._count + extra))
        return self._count

    def _resize(self, room: int) -> None:
        if room > len(self._new_places):
            places, values = np.empty(room, np.int64), np.empty(room, self.dtype)
            places[: self._count] = self._new_places[: self._count]
            values[: self._count] = self._new_values[: self._count]
            self._new_places, self._new_values = places, values


def _last_puts(places: Array) -> tuple[Array, Array]:
    """Return places in ascending order, each once, and which put was the last of each."""
    if (places[1:] > places[:-1]).all():
        return places.copy(), np.arange(len(places))
    places, by = sort_places(places)
    last = np.append(places[1:] != places[:-1], True)
    return places[last], by[last]


def _woven(old: Array, new: Array, spots: Array, is_old: Array) -> Array:
    """Return old and new elements, along the last axis, the new ones at some spots."""
    out = np.empty((*old.shape[:-1], len(is_old)), old.dtype)
    # Row by row: NumPy is quick at masks of one axis.
    for row, before, put in zip(*map(np.atleast_2d, (out, old, new)), strict=True):
        row[is_old] = before
        row[spots] = put
    return out
