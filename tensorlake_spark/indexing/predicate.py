"""Which rows a slice needs: one overlap test for every sliced axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing.mixed_selection import AnySelection

Array = np.ndarray[Any, Any]

STORED_AXES = 8
"""Axes with coordinate columns of their own (``lo.d0`` .. ``lo.d7``); the decoder trims the others."""

_FAR = 2**62
"""A bound beyond it says nothing: no axis is so long, and one whose length is not known ends there."""


def rows_sql(
    tensor_id: str | None, ranges: Iterable[tuple[int, int, int]] = (), data: bool = True
) -> str:
    """Return the condition on rows as SQL that Spark, Delta and DataFusion understand alike.

    What holds for every box, such as a range that begins at 0, is left out.

    Parameters
    ----------
    tensor_id : str or None
        The tensor; with None the rows of all tensors.
    ranges : iterable of (axis, lo, hi)
        Half-open range for every axis that is not wanted whole.
    data : bool
        Whether data rows are wanted, or the metadata rows.

    Examples
    --------
    >>> rows_sql("it's", [(0, 30, 40), (2, 0, 7)])
    "id = 'it''s' AND nnz > 0 AND lo.d0 < 40 AND hi.d0 > 30 AND lo.d2 < 7"
    >>> rows_sql(None, [(1, 3, 3)])
    'nnz < 0'
    """
    named = [] if tensor_id is None else [f"id = {_literal(tensor_id)}"]
    terms = [*named, "nnz > 0" if data else "nnz = 0"]
    for axis, lo, hi in ranges:
        if lo >= hi:
            return " AND ".join([*named, "nnz < 0"])
        if axis < STORED_AXES:
            terms += [f"lo.d{axis} < {hi}"] if hi <= _FAR else []
            terms += [f"hi.d{axis} > {lo}"] if lo > 0 else []
    return " AND ".join(terms)


def _literal(text: str) -> str:
    quoted = "'" + text.replace("'", "''") + "'"
    # In a literal of Spark a backslash escapes what follows, in one of standard SQL it does not.
    quoted = quoted.replace("\\", "' || chr(92) || '")
    # Spark puts the value of a setting for ${its.name}, in literals too.
    return quoted.replace("${", "$' || '{")


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
    def of(cls, tensor_id: str, selection: AnySelection) -> Predicate:
        """Return the predicate of a selection.

        Examples
        --------
        >>> from tensorlake_spark.indexing import select
        >>> Predicate.of("x", select((slice(None), 5), (9, 7))).ranges
        ((1, 5, 6),)
        """
        return cls(tensor_id, selection.ranges())

    def to_sql(self) -> str:
        """Return the condition as SQL; see `rows_sql`.

        Examples
        --------
        >>> print(Predicate("it's").to_sql())
        id = 'it''s' AND nnz > 0
        """
        return rows_sql(self.id, self.ranges, self.data)

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
            if axis < STORED_AXES:
                out &= (lo[:, axis] < stop) & (hi[:, axis] > first)
        return out
