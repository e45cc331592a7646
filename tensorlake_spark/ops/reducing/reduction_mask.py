"""Masks: which elements of a tensor take part in a reduction, as `where=` says it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.indexing import select
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.lookup import look_up
from tensorlake_spark.ops.slicing import part

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Mask:
    """An array, or elements, of bools that broadcasts to a tensor's shape. It is never repeated to that shape.

    Attributes
    ----------
    chosen : ndarray or Elements of bool
        With an axis for each of the tensor, of its length or of length 1.
    shape : tuple of int
        Of the tensor.

    Examples
    --------
    >>> mask = Mask.of([[True], [False]], (2, 3))
    >>> mask.counts((1,)), mask.counts((0, 1)), mask.at((slice(0, 1), slice(1, 3)))
    (array([3, 0]), array(3), array([[ True]]))
    """

    chosen: Any
    shape: tuple[int, ...]

    @classmethod
    def of(cls, where: Any, shape: tuple[int, ...]) -> Mask:
        """Return what `where` says of a tensor of a shape.

        Raises
        ------
        UnsupportedDtypeError
            If it is not of bools.
        InvalidTensorError
            If it does not broadcast to the shape.
        """
        mask = where if isinstance(where, Elements) else np.asarray(where)
        if mask.dtype != bool:
            raise UnsupportedDtypeError(f"where is an array of bools, not of {mask.dtype}")
        try:
            fits = np.broadcast_shapes(mask.shape, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise InvalidTensorError(f"where of shape {mask.shape} does not broadcast to {shape}")
        own = (1,) * (len(shape) - mask.ndim) + tuple(mask.shape)
        if not isinstance(mask, Elements):
            return cls(mask.reshape(own), shape)
        return cls(Elements._trusted(None, mask.values, own, mask.places), shape)

    def of_elements(self, coords: Array) -> Array:
        """Return which elements take part, from their coordinates, shape (ndim, n)."""
        return np.broadcast_to(look_up(self.chosen, coords), coords.shape[1:])

    def counts(self, axes: Sequence[int]) -> Array:
        """Return how many elements take part along axes; it broadcasts to the shape of the axes that stay."""
        own, kept = self.chosen.shape, [k for k in range(len(self.shape)) if k not in axes]
        if isinstance(self.chosen, Elements):
            left = tuple(own[k] for k in kept)
            coords = self.chosen.coords[:, self.chosen.values.astype(bool)]
            cells = ravel(coords[kept], left) if kept else np.zeros(coords.shape[1], np.int64)
            counts = np.bincount(cells, minlength=math.prod(left)).reshape(left)
        else:
            counts = np.asarray(np.count_nonzero(self.chosen, axis=tuple(axes)))
        return np.asarray(counts * math.prod(self.shape[k] for k in axes if own[k] == 1))

    def at(self, place: Sequence[slice | Array]) -> Array:
        """Return the part for a block, which broadcasts to it.

        Parameters
        ----------
        place : sequence of slice or int64 ndarray
            Where the block lies: for each axis a slice with a start and a stop, or ascending indices.
        """
        sides: list[Any] = []
        for here, length in zip(place, self.chosen.shape, strict=True):
            if length == 1:
                sides.append(slice(None))
            elif isinstance(here, slice):
                sides.append(here)
            else:
                sides.append(slice(int(here[0]), int(here[-1]) + 1) if len(here) else slice(0, 0))
        found: Any = self.part(sides).chosen
        found = found.todense() if isinstance(found, Elements) else found
        for axis, here in enumerate(place):
            if not isinstance(here, slice) and len(here) and self.chosen.shape[axis] != 1:
                found = found.take(here - here[0], axis)
        return np.asarray(found)

    def span(self, axes: Sequence[int]) -> tuple[slice, ...]:
        """Return a slice for each axis of the tensor: of `axes` what holds all that takes part, of the others all.

        Examples
        --------
        >>> Mask.of([False, True, True, False], (2, 4)).span((0, 1))
        (slice(0, 2, None), slice(1, 3, None))
        """
        sides = [slice(0, n) for n in self.shape]
        for axis in axes:
            if self.chosen.shape[axis] > 1:
                found = self._chosen_indices(axis)
                sides[axis] = (
                    slice(int(found[0]), int(found[-1]) + 1) if len(found) else slice(0, 1)
                )
        return tuple(sides)

    def _chosen_indices(self, axis: int) -> Array:
        """Return the indices along an axis at which any element takes part, ascending."""
        if isinstance(self.chosen, Elements):
            return np.unique(self.chosen.coords[axis, self.chosen.values.astype(bool)])
        others = tuple(k for k in range(len(self.shape)) if k != axis)
        return np.flatnonzero(self.chosen.any(axis=others))

    def part(self, key: Sequence[slice]) -> Mask:
        """Return the mask of a part of the tensor, which a slice for each axis picks."""
        own = self.chosen.shape
        sides = tuple(slice(None) if n == 1 else k for n, k in zip(own, key, strict=True))
        shape = tuple(len(range(n)[k]) for n, k in zip(self.shape, key, strict=True))
        if not isinstance(self.chosen, Elements):
            return Mask(self.chosen[sides], shape)
        return Mask(part(self.chosen, select(sides, own)) if own else self.chosen, shape)
