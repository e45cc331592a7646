"""Elements that may change: some in order, and behind them what was put since, sorted when order is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.errors import BuilderClosedError
from tensorlake_spark.indexing.coords import sort_places
from tensorlake_spark.ops.elements import Elements, nonzero

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

    __slots__ = ("_count", "_new_places", "_new_values", "_now", "closed", "dtype", "shape")

    def __init__(
        self, places: Array, values: Array, shape: tuple[int, ...], coords: Array | None = None
    ) -> None:
        self.shape = shape
        self.dtype = values.dtype
        self.closed = False
        self._now = Elements._trusted(coords, values, shape, places)
        self._forget_puts()

    def __reduce__(self) -> tuple[Any, ...]:
        now = self.elements()
        return ElementBuffer, (now.places, now.values, self.shape, now._coords)

    def _forget_puts(self) -> None:
        self._count = 0
        self._new_places: Array = np.empty(0, np.int64)
        self._new_values: Array = np.empty(0, self.dtype)

    def close(self) -> None:
        """Let go of all elements; every use from now on raises BuilderClosedError."""
        self.closed = True
        self._now = Elements._trusted(None, self._new_values[:0], self.shape, self._new_places[:0])
        self._forget_puts()

    def _check_open(self) -> None:
        if self.closed:
            raise BuilderClosedError(
                "build() has ended this builder; tensor.builder() makes a new one with the same elements"
            )

    @property
    def capacity(self) -> int:
        """Elements that there is room for before a buffer is made larger."""
        self._check_open()
        return self._now.nnz + len(self._new_places)

    def reserve(self, count: int) -> None:
        """Make room for so many elements altogether."""
        self._check_open()
        self._resize(max(self._count, count - self._now.nnz))

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
        kept = nonzero(values)
        if not kept.all():
            places, values, coords = places[kept], values[kept], None
        self._now = Elements._trusted(coords, values, self.shape, places)
        self._count = 0

    def get(self, place: int) -> Any:
        """Return one element as a scalar."""
        self._check_open()
        if self._count > _LOOK:
            self.elements()
        found = np.flatnonzero(self._new_places[: self._count] == place)
        if len(found):
            value = self._new_values[found[-1]]
            return value if nonzero(value) else np.zeros((), self.dtype)[()]
        at = self._now.places.searchsorted(place)
        there = at < self._now.nnz and self._now.places[at] == place
        return self._now.values[at] if there else np.zeros((), self.dtype)[()]

    def elements(self) -> Elements:
        """Return what there is now, canonical."""
        self._check_open()
        if self._count:
            puts, by = _last_puts(self._new_places[: self._count])
            self._now = _merged(self._now, puts, self._new_values[by])
            self._count = 0
        return self._now

    def _make_room(self, extra: int) -> int:
        """Make room for more puts; return where they go."""
        self._check_open()
        room = len(self._new_places)
        if self._count + extra > room:
            if self._count >= max(1, self._now.nnz):
                self.elements()
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


def _merged(x: Elements, places: Array, values: Array) -> Elements:
    """Return elements with others put into them, which ascend; zeros remove."""
    stored = nonzero(values)
    at = np.searchsorted(x.places, places)
    there = at < x.nnz
    there[there] = x.places[at[there]] == places[there]
    again, fresh, gone = stored & there, stored & ~there, at[there & ~stored]
    if len(gone):
        x = _without(x, gone)
    if fresh.any():
        x = _with(x, places[fresh], values[fresh])
    if not again.any():
        return x
    changed = x.values.copy()
    changed[np.searchsorted(x.places, places[again])] = values[again]
    return Elements._trusted(x._coords, changed, x.shape, x.places)


def _without(x: Elements, at: Array) -> Elements:
    """Return elements without some of them."""
    kept = np.ones(x.nnz, bool)
    kept[at] = False
    coords = None if x._coords is None else x._coords[:, kept]
    return Elements._trusted(coords, x.values[kept], x.shape, x.places[kept])


def _with(x: Elements, places: Array, values: Array) -> Elements:
    """Return elements with new ones between them, which ascend."""
    spots = np.searchsorted(x.places, places) + np.arange(len(places))
    is_old = np.ones(x.nnz + len(places), bool)
    is_old[spots] = False
    # Coordinates are divided from places when they are asked for; most of what follows does not.
    new_values = _woven(x.values, values, spots, is_old)
    return Elements._trusted(None, new_values, x.shape, _woven(x.places, places, spots, is_old))


def _woven(old: Array, new: Array, spots: Array, is_old: Array) -> Array:
    """Return old and new elements, the new ones at some spots."""
    out = np.empty(len(is_old), old.dtype)
    out[is_old] = old
    out[spots] = new
    return out
