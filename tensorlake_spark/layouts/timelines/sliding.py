"""Where rows of ids that slide lie on a timeline: the search of the writer; a reader needs nothing of it.

A row slides from the one before if it has most of its ids, moved by a few places: some are dropped at one
end, as many are new at the other. Such rows are a chain. Chains that share most of their ids, such as rows
of one user that stand apart, are then laid over each other. Rows are compared many at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

MISS = 2
"""What an edited element costs, in elements of the timeline: a value, and where it stands."""

_SHARED = 20  # chains are laid over each other if one id in so many is found in another chain
_ROOM = 1 << 40  # places that a group of chains may take while it is laid out


class Links(NamedTuple):
    """How every row lies to the one before.

    Attributes
    ----------
    shift : int64 ndarray, shape (rows,)
        By how many places the ids of the row before have moved towards the end; 0 where `is_linked` is not set.
    is_linked : bool ndarray, shape (rows,)
        Whether the row slides from the one before.
    """

    shift: Array
    is_linked: Array

    def new_ids(self, width: int) -> Array:
        """Return how many ids each row adds to a timeline of chains."""
        return np.where(self.is_linked, np.abs(self.shift), width)

    def part(self, first: int, stop: int) -> Links:
        """Return the links of some rows by themselves."""
        is_linked = self.is_linked[first:stop].copy()
        is_linked[:1] = False
        return Links(np.where(is_linked, self.shift[first:stop], 0), is_linked)


class Placement(NamedTuple):
    """Rows on a timeline; a row may differ from it in some elements.

    Attributes
    ----------
    timeline : ndarray, shape (n,)
        Ids.
    starts : int64 ndarray, shape (rows,)
        Where each row begins.
    """

    timeline: Array
    starts: Array


def find_links(rows: Array) -> Links:
    """Return which rows slide from the one before, and by how much.

    A shift is looked for where the first, the middle and the last id of the row before are found again.
    Rows that turn round, to slide the other way, are not linked.

    Parameters
    ----------
    rows : integer ndarray, shape (rows, width)
        Ids, both lengths at least 1.

    Examples
    --------
    >>> find_links(np.array([[3, 2, 1], [4, 3, 2], [9, 8, 7]])).shift.tolist()
    [0, 1, 0]
    """
    count, width = rows.shape
    shift = np.zeros(count, np.int64)
    cost = np.full(count, width, np.int64)
    cost[1:] = MISS * np.count_nonzero(rows[1:] != rows[:-1], axis=1)
    for anchor, enough in ((0, 0), (width - 1, width // 4), (width // 2, width // 4)):
        at = np.flatnonzero(cost[1:] > enough) + 1
        if not len(at):
            break
        same = rows[at] == rows[at - 1, anchor][:, None]
        place = same.argmax(axis=1)
        found = same[np.arange(len(at)), place]
        at, moved = at[found], place[found] - anchor
        found_cost = np.abs(moved) + MISS * _misses(rows, at, moved)
        better = found_cost < cost[at]
        shift[at[better]], cost[at[better]] = moved[better], found_cost[better]
    is_linked = cost < width
    is_linked[0] = False
    is_linked &= ~_turns(shift, is_linked)
    return Links(np.where(is_linked, shift, 0), is_linked)


def _misses(rows: Array, at: Array, shifts: Array) -> Array:
    """Return how many ids of some rows are not those of the row before, moved by a shift."""
    width = rows.shape[1]
    out = np.zeros(len(at), np.int64)
    for shift in np.unique(shifts).tolist():
        some = np.flatnonzero(shifts == shift)
        here = slice(max(0, shift), width + min(0, shift))
        before = slice(max(0, -shift), width - max(0, shift))
        differ = rows[at[some], here] != rows[at[some] - 1, before]
        out[some] = np.count_nonzero(differ, axis=1)
    return out


def _turns(shift: Array, is_linked: Array) -> Array:
    """Return where a chain turns round."""
    number = np.arange(len(shift))
    moves = is_linked & (shift != 0)
    last = np.maximum.accumulate(np.where(moves, number, -1))
    before = np.concatenate([[-1], last[:-1]])
    head = np.maximum.accumulate(np.where(is_linked, 0, number))
    return np.asarray(moves & (before > head) & (np.sign(shift[before]) != np.sign(shift)))


def place_chains(rows: Array, links: Links) -> tuple[Placement, Array]:
    """Lay every chain of rows on a timeline, one chain after the other.

    Returns
    -------
    Placement, int64 ndarray
        The rows, and where each chain begins on the timeline, ascending.

    Examples
    --------
    >>> rows = np.array([[3, 2, 1], [4, 3, 2], [9, 8, 7]])
    >>> placed, chains = place_chains(rows, find_links(rows))
    >>> placed.timeline.tolist(), placed.starts.tolist(), chains.tolist()
    ([4, 3, 2, 1, 9, 8, 7], [1, 0, 4], [0, 4])
    """
    count, width = rows.shape
    heads = np.flatnonzero(~links.is_linked)
    chain = np.cumsum(~links.is_linked) - 1
    place = -np.cumsum(links.shift)  # a shift towards the end is a step back on the timeline
    least = np.minimum.reduceat(place, heads)
    lengths = np.maximum.reduceat(place, heads) - least + width
    stops = np.cumsum(lengths)
    starts = place - least[chain] + (stops - lengths)[chain]
    new = links.new_ids(width)
    row = np.repeat(np.arange(count), new)
    column = np.arange(len(row)) - np.repeat(np.cumsum(new) - new, new)
    column += np.where(links.shift < 0, width + links.shift, 0)[row]
    timeline = np.empty(int(stops[-1]), rows.dtype)
    timeline[starts[row] + column] = rows[row, column]
    return Placement(timeline, starts), stops - lengths


def overlay(placed: Placement, chains: Array) -> Placement:
    """Lay chains over each other that share most of their ids.

    Each chain in turn goes where most of its ids were met before. Of what lies in one place, the chain that
    came first counts.

    Examples
    --------
    >>> apart = Placement(np.array([5, 4, 3, 2, 6, 5, 4, 3]), np.array([0, 4]))
    >>> overlay(apart, np.array([0, 4]))
    Placement(timeline=array([6, 5, 4, 3, 2]), starts=array([1, 0]))
    """
    timeline, count = placed.timeline, len(chains)
    lengths = np.diff(chains, append=len(timeline))
    before = _met_before(timeline, np.repeat(np.arange(count), lengths))
    if count < 2 or np.count_nonzero(before >= 0) * _SHARED < len(timeline):
        return placed
    places = np.empty(len(timeline), np.int64)  # a group has its own range of them
    at = np.empty(count, np.int64)
    groups: dict[int, tuple[int, int]] = {}
    for k, (first, length) in enumerate(zip(chains.tolist(), lengths.tolist(), strict=True)):
        start = _vote(before[first : first + length], places, groups)
        if start is None:
            start = len(groups) * _ROOM + _ROOM // 2
        low, high = groups.get(start // _ROOM, (start, start))
        groups[start // _ROOM] = min(low, start), max(high, start + length)
        at[k] = start
        places[first : first + length] = np.arange(start, start + length)
    if len(groups) == count:
        return placed
    lows = np.array([low for low, _ in groups.values()])
    sizes = np.array([high - low for low, high in groups.values()])
    base = np.cumsum(sizes) - sizes - lows
    places += base[places // _ROOM]
    out = np.empty(int(sizes.sum()), timeline.dtype)
    out[places[::-1]] = timeline[::-1]  # the last one that NumPy writes is the first
    chain = np.searchsorted(chains, placed.starts, side="right") - 1
    return Placement(out, placed.starts + (at + base[at // _ROOM] - chains)[chain])


def _met_before(timeline: Array, chain: Array) -> Array:
    """Return for each id where it stands last in the chains before its own, -1 where it does not."""
    order = np.argsort(timeline, kind="stable")
    ids, chain = timeline[order], chain[order]
    out = np.full(len(timeline), -1, np.int64)
    met = (ids[1:] == ids[:-1]) & (chain[1:] != chain[:-1])
    out[order[1:][met]] = order[:-1][met]
    return out


def _vote(before: Array, places: Array, groups: dict[int, tuple[int, int]]) -> int | None:
    """Return where a chain begins among the groups, None where it had better be one of its own."""
    length = len(before)
    known = np.flatnonzero(before >= 0)
    if len(known) * 4 < length:
        return None
    starts = places[before[known]] - known
    start = int(np.partition(starts, len(starts) // 2)[len(starts) // 2])  # that of a majority
    agreed = int(np.count_nonzero(starts == start))
    low, high = groups[start // _ROOM]
    shared = min(high, start + length) - max(low, start)
    cost = length - shared + MISS * (shared - agreed)
    return start if cost * 4 < length * 3 else None
