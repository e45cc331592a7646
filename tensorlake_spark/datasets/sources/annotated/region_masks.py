"""Regions of an image as masks: polygons, and COCO's run lengths, as lists of numbers or as texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidSampleError

_CROSSINGS = 1 << 26  # of the sides of a polygon with rows of pixels
_PIXELS = 1 << 30


def mask_of(region: Any, height: int, width: int) -> np.ndarray:
    """Return a region of COCO as bools, one a pixel.

    Parameters
    ----------
    region : list of lists, or mapping
        Polygons, as ``[x, y, x, y, ...]`` each, which together are the region; or ``{"size": [height, width],
        "counts": ...}``, lengths of runs down the columns, as numbers or as COCO's text.
    height, width : int
        Of the image.

    Raises
    ------
    InvalidSampleError
        If it is none of them, or does not fit the image.

    Examples
    --------
    >>> mask_of({"size": [2, 2], "counts": [1, 2, 1]}, 2, 2).astype(int)
    array([[0, 1],
           [1, 0]])
    >>> mask_of([[0, 0, 2, 0, 2, 1, 0, 1]], 2, 2).astype(int)
    array([[1, 1],
           [0, 0]])
    """
    if not (height > 0 and width > 0 and height * width <= _PIXELS):
        raise InvalidSampleError(f"a mask of {height} x {width} pixels; at most {_PIXELS} are read")
    if isinstance(region, Mapping):
        return _of_runs(region, height, width)
    mask = np.zeros((height, width), bool)
    for points in polygons_of(region):
        _fill(mask, points)
    return mask


def polygons_of(region: Any) -> list[np.ndarray]:
    """Return polygons as float arrays of shape (points, 2), x before y.

    Raises
    ------
    InvalidSampleError
        If it is no list of polygons.
    """
    if not isinstance(region, list):
        raise InvalidSampleError(
            f"a region is a list of polygons or run lengths, not {region!r:.60}"
        )
    found = []
    for one in region:
        try:
            points = np.asarray(one, np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidSampleError(f"a polygon is a list of numbers, not {one!r:.60}") from error
        if points.ndim != 1 or len(points) < 6 or len(points) % 2:
            raise InvalidSampleError(
                f"a polygon has x and y of three points at least, and this one has {points.size} numbers"
            )
        if not np.isfinite(points).all():
            raise InvalidSampleError("a polygon has a coordinate that is not a finite number")
        found.append(points.reshape(-1, 2))
    return found


def runs_of_text(text: str | bytes) -> list[int]:
    """Return the run lengths that COCO's text holds: six bits a character, differences to the run before the last.

    Examples
    --------
    >>> runs_of_text("121")
    [1, 2, 1]
    """
    raw = text.encode("ascii", "replace") if isinstance(text, str) else text
    runs: list[int] = []
    place = 0
    while place < len(raw):
        value = shift = 0
        while True:
            if place >= len(raw) or not 0 <= raw[place] - 48 < 64 or shift > 60:
                raise InvalidSampleError(f"run lengths that are damaged: {text!r:.60}")
            six = raw[place] - 48
            value |= (six & 31) << shift
            place, shift = place + 1, shift + 5
            if not six & 32:
                break
        if six & 16:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
    return runs


def _of_runs(region: Mapping[str, Any], height: int, width: int) -> np.ndarray:
    size, counts = region.get("size"), region.get("counts")
    if not isinstance(size, Sequence) or list(size) != [height, width]:
        raise InvalidSampleError(
            f"run lengths of size {size!r:.60}, and the image is {height} x {width}"
        )
    if isinstance(counts, (str, bytes)):
        counts = runs_of_text(counts)
    if not isinstance(counts, Sequence) or not all(type(one) is int and one >= 0 for one in counts):
        raise InvalidSampleError(f"run lengths are numbers from 0 on, not {counts!r:.60}")
    if sum(counts) != height * width:
        raise InvalidSampleError(
            f"run lengths of {sum(counts)} pixels, and the image has {height} x {width} = {height * width}"
        )
    inside = np.arange(len(counts)) % 2 == 1
    mask: np.ndarray = np.repeat(inside, np.asarray(counts, np.int64)).reshape(width, height).T
    return mask


def _fill(mask: np.ndarray, points: np.ndarray) -> None:
    """Set the pixels whose centres are inside of a polygon: those with an odd number of its sides to the left."""
    height, width = mask.shape
    x, y = points[:, 0], points[:, 1]
    next_x, next_y = np.roll(x, -1), np.roll(y, -1)
    # A side crosses the rows whose centres lie in [low, high).
    low, high = np.minimum(y, next_y), np.maximum(y, next_y)
    first = np.clip(np.ceil(low - 0.5), 0, height).astype(np.int64)
    last = np.clip(np.ceil(high - 0.5), 0, height).astype(np.int64)
    count = last - first
    total = int(count.sum())
    if total > _CROSSINGS:
        raise InvalidSampleError(f"a polygon of {len(x)} points whose sides cross {total} rows")
    if not total:
        return
    side = np.repeat(np.arange(len(x)), count)
    row = np.arange(total) - np.repeat(np.cumsum(count) - count, count) + first[side]
    with np.errstate(all="ignore"):
        share = (row + 0.5 - y[side]) / (next_y - y)[side]
        crossing = x[side] + share * (next_x - x)[side]
    column = np.clip(np.ceil(crossing - 0.5), 0, width).astype(np.int64)
    top, bottom = int(row.min()), int(row.max()) + 1
    flips = np.zeros((bottom - top, width + 1), np.int64)
    np.add.at(flips, (row - top, column), 1)
    mask[top:bottom] |= np.cumsum(flips, axis=1)[:, :width] % 2 == 1
