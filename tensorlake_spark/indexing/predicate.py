"""Which rows a slice needs: one overlap test for every sliced axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing.point_selection import PointSelection
from tensorlake_spark.indexing.selection import Selection

Array = np.ndarray[Any, Any]

COLUMNS = 8
"""Axes with coordinate columns; the decoder trims the others."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on the rows of a table; it may keep too many rows, never too few.

    Attributes
    ----------
    id : str
        The tensor.
    ranges : tuple of (axis, lo, hi)
        Half-open range for every axis that is not wanted whole.
    data : bool
        Whether data rows are wanted, or the metadata rows, which have no box.

    Raises
    ------
    InvalidKeyError
        If metadata rows are asked for by ranges.

    Examples
    --------
    >>> Predicate("x", ((0, 30, 40),)).to_sql()
    "id = 'x' AND nnz > 0 AND lo.d0 < 40 AND hi.d0 > 30"
    >>> Predicate("x", data=False).to_sql()
    "id = 'x' AND nnz = 0"
    """

    id: str
    ranges: tuple[tuple[int, int, int], ...] = ()
    data: bool = True

    def __post_init__(self) -> None:
        if self.ranges and not self.data:
            raise InvalidKeyError(
                f"metadata rows of tensor {self.id!r} have no box, so no range {self.ranges[0]} finds them"
            )

    @classmethod
    def of(cls, tensor_id: str, selection: Selection | PointSelection) -> Predicate:
        """Return the predicate of a selection.

        Examples
        --------
        >>> from tensorlake_spark.indexing import select
        >>> Predicate.of("x", select((slice(None), 5), (9, 7))).ranges
        ((1, 5, 6),)
        """
        return cls(tensor_id, selection.ranges())

    def to_sql(self) -> str:
        """Return the condition as SQL that Spark, Delta and DataFusion understand alike.

        Examples
        --------
        >>> print(Predicate("it's").to_sql())
        id = 'it''s' AND nnz > 0
        """
        quoted = "'" + self.id.replace("'", "''") + "'"
        # In a literal of Spark a backslash escapes what follows, in one of standard SQL it does not.
        quoted = quoted.replace("\\", "' || chr(92) || '")
        # Spark puts the value of a setting for ${its.name}, in literals too.
        quoted = quoted.replace("${", "$' || '{")
        terms = [f"id = {quoted}", "nnz > 0" if self.data else "nnz = 0"]
        for axis, lo, hi in self.ranges:
            if lo >= hi:
                return f"id = {quoted} AND nnz < 0"
            if axis < COLUMNS:
                terms.append(f"lo.d{axis} < {hi} AND hi.d{axis} > {lo}")
        return " AND ".join(terms)

    def matches(self, lo: Array, hi: Array) -> Array:
        """Return for each box whether its row passes, if it is a row of this tensor and kind.

        Parameters
        ----------
        lo, hi : int64 ndarray, shape (n, ndim)
            Corners of the rows' boxes.

        Returns
        -------
        bool ndarray, shape (n,)

        Examples
        --------
        >>> p = Predicate("x", ((0, 30, 40),))
        >>> p.matches(np.array([[0], [32]]), np.array([[30], [48]])).tolist()
        [False, True]
        """
        out = np.ones(len(lo), bool)
        for axis, first, stop in self.ranges:
            if first >= stop:
                return np.zeros(len(lo), bool)
            if axis < COLUMNS:
                out &= (lo[:, axis] < stop) & (hi[:, axis] > first)
        return out
