"""Rows of ids as windows on a timeline: a start for each row, and patches where a row differs from it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.buffers import pack_ints, unpack_ints
from tensorlake_spark.layouts.coding.integer_sequences import fold, join, split, unfold

Array = np.ndarray[Any, Any]

MAX_ROWS = 1 << 20
"""Rows that one timeline may serve, and elements that its patches may change."""

_FAR = 1 << 40  # no place on a timeline, and no row, is as far as this

_FEW = 500  # fewer integers of patches are not compressed, as that would cost a read more than it saves

_GATHERED = 256 << 10  # bytes gathered at a time: they stay in the cache until they are copied

TIMELINES = "tensorlake_spark.layouts.kernels.timeline_loops"
"""What `kernel_switch` loads for rows of a timeline."""

SHORT = 4 << 10
"""Bytes of rows below which NumPy is as fast as a call of a compiled loop."""


class Timeline(NamedTuple):
    """Rows of one width as windows on a timeline.

    Attributes
    ----------
    values : integer ndarray, shape (n,)
        The timeline.
    starts : int64 ndarray, shape (rows,)
        Where each row begins on it.
    width : int
        Length of a row.
    edited : int64 ndarray, shape (edits,)
        Elements that are not what the timeline says: their numbers in C order, ascending.
    edits : integer ndarray, shape (edits,)
        What they are.
    """

    values: Array
    starts: Array
    width: int
    edited: Array
    edits: Array

    @classmethod
    def of(cls, rows: Array, values: Array, starts: Array) -> Timeline:
        """Return rows as windows that begin at `starts`, with an edit for each element that differs.

        Examples
        --------
        >>> Timeline.of(np.array([[2, 1], [3, 7]]), np.array([3, 2, 1]), np.array([1, 0])).edits.tolist()
        [7]
        """
        width = rows.shape[1]
        differ = rows != _windows(values, width)[starts]
        return cls(values, starts, width, np.flatnonzero(differ), rows[differ])

    def take(self, rows: Any, columns: slice, out: Array) -> None:
        """Write some rows into an array: their `columns`, a slice with bounds.

        Parameters
        ----------
        rows : slice or int64 ndarray
            Which rows.
        columns : slice
            Which elements of them.
        out : ndarray
            Of the shape of what is asked for.
        """
        if out.nbytes > SHORT and out.flags.c_contiguous:
            loops = compiled(TIMELINES, out.itemsize, nbytes=out.nbytes)
            if loops is not None:
                words = np.dtype(f"u{out.itemsize}")
                numbers = np.ascontiguousarray(np.arange(len(self.starts))[rows])
                loops.put(
                    self.values.view(words), self.starts, numbers,
                    self.width, columns.start, columns.step,
                    self.edited, self.edits.view(words), out.view(words),
                )  # fmt: skip
                return
        windows = _windows(self.values, self.width)[:, columns]
        starts = self.starts[rows]
        step = max(1, _GATHERED // max(1, out[:1].nbytes))
        for at in range(0, len(starts), step):
            out[at : at + step] = windows[starts[at : at + step]]
        if len(self.edited):
            self._edit(np.arange(len(self.starts))[rows], columns, out)

    def _edit(self, rows: Array, columns: slice, out: Array) -> None:
        """Put what is edited into some rows, of which `out` has some columns."""
        first = rows * self.width
        low, high = np.searchsorted(self.edited, (first, first + self.width))
        held = high - low
        if not held.any():
            return
        which = np.arange(held.sum()) + np.repeat(low - np.cumsum(held) + held, held)
        place = np.full(self.width, -1)
        place[columns] = np.arange(out.shape[1])
        column = place[self.edited[which] % self.width]
        kept = column >= 0
        row = np.repeat(np.arange(len(rows)), held)
        out[row[kept], column[kept]] = self.edits[which[kept]]

    def pick(self, rows: Array, columns: Array) -> Array:
        """Return single elements, by their rows and columns, which are broadcast.

        Examples
        --------
        >>> Timeline.of(np.array([[2, 1], [3, 7]]), np.array([3, 2, 1]), np.array([1, 0])).pick(
        ...     np.array([1, 0]), np.array([1, 1])
        ... ).tolist()
        [7, 1]
        """
        out: Array = self.values[self.starts[rows] + columns]
        if len(self.edited):
            asked = rows * self.width + columns
            place = np.minimum(np.searchsorted(self.edited, asked), len(self.edited) - 1)
            hit = self.edited[place] == asked
            out[hit] = self.edits[place[hit]]
        return out

    def pack(self, codec: codecs.Codec) -> tuple[bytes, str, bytes]:
        """Return ``index``, ``codec`` and ``values`` of a row, as FORMAT.md has them."""
        place, first, count, values = self._patches()
        patches = np.concatenate([np.diff(place, prepend=0), first, count - 1])
        index = join(
            [
                struct.pack("<II", len(self.values), len(place)),
                pack_ints(fold(np.diff(self.starts, prepend=0))),
                pack_ints(patches, len(patches) > _FEW),
            ]
        )
        return index, *codecs.encode(np.concatenate([self.values, values]), codec)

    def _patches(self) -> tuple[Array, Array, Array, Array]:
        """Return edits of one place of the timeline as one: place, first row, number of rows, value."""
        row, column = np.divmod(self.edited, self.width)
        place = self.starts[row] + column
        order = np.lexsort((row, place))
        row, place, edits = row[order], place[order], self.edits[order]
        goes_on = (np.diff(row) == 1) & (np.diff(place) == 0) & (edits[1:] == edits[:-1])
        begins = np.flatnonzero(np.concatenate([np.ones(min(1, len(row)), bool), ~goes_on]))
        return place[begins], row[begins], np.diff(begins, append=len(row)), edits[begins]

    @classmethod
    def unpack(
        cls,
        index: Any,
        values: Any,
        codec: codecs.Codec,
        shape: Sequence[int],
        dtype: np.dtype[Any],
    ) -> Timeline:
        """Return what `pack` packed of rows of a shape.

        Raises
        ------
        CorruptDataError
            If the buffers do not hold just such rows.
        """
        count, width = shape
        if count > MAX_ROWS:
            raise CorruptDataError(
                f"{count} rows of one timeline are more than the limit {MAX_ROWS}"
            )
        parts = split(index, 3)
        if len(parts[0]) != 8:
            raise CorruptDataError(
                f"{len(parts[0])} bytes are not two lengths of a timeline: 8 bytes"
            )
        length, patches = struct.unpack("<II", parts[0])
        if not width <= length <= count * width or patches > MAX_ROWS:
            raise CorruptDataError(
                f"a timeline of {length} elements with {patches} patches does not fit rows of shape "
                f"{tuple(shape)}"
            )
        numbers = unpack_ints(parts[1:], [count, 3 * patches])
        starts: Array = np.cumsum(unfold(numbers[:count]))
        if starts.min() < 0 or starts.max() > length - width:
            raise CorruptDataError(f"a row begins outside of its timeline of {length} elements")
        edited, which = _edited(numbers[count:], starts, width)
        found = codecs.decode(values, codec, (length + patches,), dtype)
        return cls(found[:length], starts, width, edited, found[length:][which])


def _windows(values: Array, width: int) -> Array:
    """Return all windows of a width on a contiguous timeline, a view of it."""
    # What NumPy's sliding_window_view makes, in a tenth of the time.
    size = values.itemsize
    windows: Array = np.ndarray(
        (len(values) - width + 1, width), values.dtype, values, 0, (size, size)
    )
    return windows


def _edited(patches: Array, starts: Array, width: int) -> tuple[Array, Array]:
    """Return which elements patches change, ascending, and by which patch.

    Raises
    ------
    CorruptDataError
        If a patch lies outside of a row that it changes, or two change one element.
    """
    rows = len(starts)
    if not len(patches):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if patches.max() >= _FAR:
        raise CorruptDataError(f"{patches.max()} in a patch is no place of a timeline, and no row")
    gaps, first, more = patches.astype(np.int64).reshape(3, -1)
    count = more + 1
    stops = np.cumsum(count)
    if (first + more).max() >= rows or stops[-1] > MAX_ROWS:
        raise CorruptDataError(f"a patch changes other rows than the {rows} of its timeline")
    which = np.repeat(np.arange(len(count)), count)
    row = np.arange(len(which)) + (first - stops + count)[which]
    column = np.cumsum(gaps)[which] - starts[row]
    if column.view(np.uint64).max() >= width:  # those below 0 are large here
        raise CorruptDataError("a patch lies outside of the row that it changes")
    elements = row * width + column
    order = np.argsort(elements)
    elements = elements[order]
    if (elements[1:] == elements[:-1]).any():
        raise CorruptDataError("two patches change one element of a row")
    return elements, which[order]
