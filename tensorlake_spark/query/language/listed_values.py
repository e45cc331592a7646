"""Lists that parameters bring: after IN, their values stand in the place of the parameter."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from sqlglot import exp

from tensorlake_spark.query.functions.tree_names import own_nodes

_MOST_LITERALS = 1000
"""Of a longer list of numbers or texts a literal for each would take longer than to look the values up in a set."""

_KINDS = (str, bool, (int, float, Decimal), dt.date)
"""What is compared with its own kind: a list has values of one of them, and nulls."""


def with_listed(
    node: Any, parameters: Mapping[str, Any], is_taken: Callable[[Any], bool] = lambda of: True
) -> Any:
    """Put the values of a parameter with a list in its place after IN, so that the engine looks them up.

    Parameters
    ----------
    node : sqlglot expression
        A part of a query, which is changed. Queries inside it are not.
    parameters : mapping of str to object
        Values of ``:name``. A very long list, and one of other values or of lists, stays a parameter.
    is_taken : callable
        Whether it is done for what stands before an IN.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT k IN (:some, 7), k IN (:none) FROM d")
    >>> made = [with_listed(one, {"some": [1, None], "none": []}) for one in tree.selects]
    >>> [one.sql() for one in made]
    ['k IN (1, NULL, 7)', 'FALSE']
    """
    for one in own_nodes(node):
        if not isinstance(one, exp.In) or not is_taken(one.this):
            continue
        found = [_listed(item, parameters) for item in one.expressions]
        if all(values is None for values in found):
            continue
        pairs = zip(one.expressions, found, strict=True)
        items = [v for item, values in pairs for v in ([item] if values is None else values)]
        if items:
            one.set("expressions", items)
            continue
        none = exp.false()
        one.replace(none)
        node = none if one is node else node
    return node


def constant(value: Any) -> Any:
    """Return a value of a parameter as a literal of SQL.

    Examples
    --------
    >>> constant(float("inf")).sql(), constant(dt.date(2024, 1, 31)).sql(), constant(None).sql()
    ("CAST('inf' AS DOUBLE)", "CAST('2024-01-31' AS DATE)", 'NULL')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return _cast(str(value), "double")
    if _is_null(value):
        return exp.null()
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
        return _cast(str(np.datetime64(value, "us")).replace("T", " "), "timestamp")
    if isinstance(value, dt.date):
        return _cast(value.isoformat(), "date")
    return exp.Literal.number(f"{value:f}") if isinstance(value, Decimal) else exp.convert(value)


def _cast(text: str, kind: str) -> Any:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(kind))


def _is_null(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT


def _listed(node: Any, parameters: Mapping[str, Any]) -> list[Any] | None:
    """Return the values of a list that a parameter brings as literals, None for any other node."""
    value = parameters.get(node.name) if isinstance(node, exp.Placeholder) else None
    if isinstance(value, np.ndarray) and value.ndim == 1:
        # Moments in nanoseconds would become integers.
        value = (value.astype("datetime64[us]") if value.dtype.kind == "M" else value).tolist()
    if not isinstance(value, (list, tuple)):
        return None
    if len(value) > _MOST_LITERALS and np.asarray(value).dtype.kind in "iufU":
        return None
    values = [one.item() if isinstance(one, np.generic) else one for one in value]
    given = [one for one in values if not _is_null(one)]
    for kind in _KINDS:
        is_bool = kind is bool
        if all(isinstance(one, kind) and isinstance(one, bool) == is_bool for one in given):
            return [constant(one) for one in values]
    return None
