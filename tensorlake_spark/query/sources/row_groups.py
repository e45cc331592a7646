"""Which files and row groups a query may need: those that its conditions on stored columns do not rule out by bounds.

What is kept is never less than what the conditions are true of, however DuckDB compares: numbers with a point are given
some room, and types that are compared by rules of their own rule out nothing.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tensorlake_spark.delta.log.replaying.live_files import LEAST, MOST, numbers
from tensorlake_spark.delta.samples.stored_samples import StoredSamples

Parts = tuple[str, ...]

_MOST = 1000  # values of IN that are looked at
_ENDS: dict[type[Any], tuple[bool, bool]] = {
    exp.EQ: (True, True), exp.GT: (True, False), exp.GTE: (True, False),
    exp.LT: (False, True), exp.LTE: (False, True),
}  # fmt: skip
_FLIPPED = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.EQ: exp.EQ}


@dataclass(frozen=True)
class Span:
    """Values that a column may have: from a least to a greatest one, None where there is no such end.

    Attributes
    ----------
    path : tuple of str
        The column, with the structs around it.
    kind : pyarrow.DataType
        Its type.
    least, most : object
        The ends.
    """

    path: Parts
    kind: pa.DataType
    least: Any
    most: Any

    def expressions(self) -> tuple[pc.Expression, pc.Expression]:
        """Return what bounds are compared with: where values may be NaN, which is above all numbers, and where not."""
        field = pc.field(*self.path)
        ends = [pc.scalar(True)]
        if self.least is not None:
            ends.append(field >= self.least)
        if self.most is not None:
            ends.append(field <= self.most)
        every = reduce(lambda a, b: a & b, ends)
        may_be_nan = pa.types.is_floating(self.kind) and self.most is None
        return (pc.scalar(True) if may_be_nan else every), every


def spans(
    conditions: Iterable[Any],
    alias: str,
    columns: Mapping[str, tuple[Parts, pa.DataType]],
    parameters: Mapping[str, Any],
) -> tuple[Span, ...]:
    """Return what conditions say of the columns of one table: only what is sure.

    Parameters
    ----------
    conditions : iterable of sqlglot expression
        They are all true of the rows that are wanted.
    alias : str
        The table.
    columns : dict of str to (tuple of str, pyarrow.DataType)
        For each column its path in the file, and its type.
    parameters : mapping of str to object
        Values of ``:name``.
    """
    out = []
    for one in conditions:
        while isinstance(one, exp.Paren):
            one = one.this
        found = _ends(one, parameters)
        if found is None:
            continue
        column, least, most, is_strict = found
        if column.table != alias or column.name not in columns:
            continue
        path, kind = columns[column.name]
        ends = _fitting(least, most, kind, is_strict)
        if ends is not None:
            out.append(Span(path, kind, *ends))
    return tuple(out)


def _ends(node: Any, parameters: Mapping[str, Any]) -> tuple[Any, Any, Any, bool] | None:
    """Return the column that a condition compares with values, two ends for it, and whether it is neither of them."""
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        found = [_value(node.args[key], parameters) for key in ("low", "high")]
        return None if None in found or not _is_column(node.this) else (node.this, *found, False)
    if isinstance(node, exp.In):
        values = [_value(one, parameters) for one in node.expressions[:_MOST]]
        if (
            not values
            or None in values
            or len(node.expressions) > _MOST
            or not _is_column(node.this)
        ):
            return None
        if len({isinstance(one, str) for one in values}) > 1:
            return None
        return node.this, min(values), max(values), False
    kind = type(node)
    if kind not in _ENDS:
        return None
    column, given = node.this, node.expression
    if not _is_column(column):
        column, given, kind = given, column, _FLIPPED[kind]
    value = _value(given, parameters)
    if value is None or not _is_column(column):
        return None
    from_it, to_it = _ENDS[kind]
    is_strict = kind in (exp.GT, exp.LT)
    return column, value if from_it else None, value if to_it else None, is_strict


def _is_column(node: Any) -> bool:
    return isinstance(node, exp.Column) and bool(node.table)


def _value(node: Any, parameters: Mapping[str, Any]) -> Any:
    """Return a number or a text, None of all else."""
    if isinstance(node, exp.Paren):
        return _value(node.this, parameters)
    if isinstance(node, exp.Neg):
        found = _value(node.this, parameters)
        # Not -found, which rounds to 28 digits: DuckDB compares with 38 of them.
        return None if found is None or isinstance(found, str) else found.copy_negate()
    if isinstance(node, exp.Placeholder):
        given = parameters.get(node.name)
        given = given.item() if isinstance(given, np.generic) else given
        if isinstance(given, bool) or not isinstance(given, (int, float, str)):
            return None
        if isinstance(given, str):
            return given
        return decimal.Decimal(given) if isinstance(given, int) or math.isfinite(given) else None
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return str(node.this)
    try:
        return decimal.Decimal(node.this)
    except decimal.InvalidOperation:
        return None


def _fitting(least: Any, most: Any, kind: pa.DataType, is_strict: bool) -> tuple[Any, Any] | None:
    """Return two ends in the type of a column, with some room where numbers are rounded; None if they do not fit."""
    ends = [one for one in (least, most) if one is not None]
    if pa.types.is_string(kind):
        return (least, most) if all(isinstance(one, str) for one in ends) else None
    if any(isinstance(one, str) or abs(one) > 1e15 for one in ends):
        return None
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return (
            None if least is None else float(np.nextafter(np.float32(least), np.float32(-np.inf))),
            None if most is None else float(np.nextafter(np.float32(most), np.float32(np.inf))),
        )
    if not pa.types.is_signed_integer(kind) or kind.bit_width < 32:
        return None
    low = None if least is None else int(least.to_integral_value(decimal.ROUND_FLOOR)) + is_strict
    high = None if most is None else int(most.to_integral_value(decimal.ROUND_CEILING)) - is_strict
    bounds = np.iinfo(f"int{kind.bit_width}")
    outside = any(not bounds.min <= one <= bounds.max for one in (low, high) if one is not None)
    return None if outside else (low, high)


def needed_groups(
    stored: StoredSamples, uses: Sequence[Sequence[Span]]
) -> dict[int, list[int]] | None:
    """Return the row groups that some SELECT may need, by the numbers of their files; None for all.

    Parameters
    ----------
    stored : StoredSamples
        The version.
    uses : sequence of sequence of Span
        For each SELECT on it what it says of the columns.
    """
    if not uses or not all(uses):
        return None
    out: dict[int, set[int]] = {}
    for use in uses:
        for number, groups in stored.near(*_asked(use)):
            out.setdefault(number, set()).update(groups)
    return {number: sorted(groups) for number, groups in sorted(out.items())}


def _asked(use: Sequence[Span]) -> tuple[pc.Expression, list[Parts], pc.Expression]:
    """Return what spans ask, as `StoredSamples.near` takes it."""
    pairs = [span.expressions() for span in use]
    loose, ordered = (reduce(lambda a, b: a & b, some) for some in zip(*pairs, strict=True))
    return loose, [span.path for span in use], ordered


def needed_files(stored: StoredSamples, uses: Sequence[Sequence[Span]]) -> list[int]:
    """Return the numbers of the files that some SELECT may need by the log's bounds, in order.

    No file is opened for it.

    Parameters
    ----------
    stored : StoredSamples
        The version.
    uses : sequence of sequence of Span
        As for `needed_groups`.
    """
    actions, every = stored.snapshot.file_actions, range(len(stored.files))
    if not uses or not all(uses):
        return [*every]
    needed: set[int] = set()
    for use in uses:
        kept = np.ones(len(every), bool)
        for span in use:
            if pa.types.is_integer(span.kind):
                name = ".".join(span.path)
                kept &= numbers(actions, f"min.{name}", LEAST) <= (
                    MOST if span.most is None else span.most
                )
                kept &= numbers(actions, f"max.{name}", MOST) >= (
                    LEAST if span.least is None else span.least
                )
        paths = {path for path, one in zip(stored.snapshot.files.path, kept, strict=True) if one}
        found = {number for number in every if stored.files.paths[number] in paths}
        others = [span for span in use if not pa.types.is_integer(span.kind)]
        if others:  # not of all: whole numbers are compared at once above, which takes less time
            found &= {*stored.files_near(*_asked(others))}
        needed |= found
    return sorted(needed)
