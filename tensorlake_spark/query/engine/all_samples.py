"""Steps that begin with all samples of a dataset: which they are, and the rows of a few samples alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from tensorlake_spark.query.planning.names import stored_node
from tensorlake_spark.query.sources.dataset_source import SID, DatasetSource

Array = np.ndarray[Any, Any]

_FROM = "from_" if "from_" in exp.Select.arg_types else "from"

FEW = 4096
"""So many samples are named to DuckDB one by one."""


def source_of_all(tree: Any, sources: Mapping[str, Any]) -> DatasetSource | None:
    """Return the dataset of which a SELECT takes columns of all samples, None if it does anything else.

    Parameters
    ----------
    tree : sqlglot Query
        Of a step.
    sources : mapping of str to Source
        By what DuckDB calls them.
    """
    if not isinstance(tree, exp.Select):
        return None
    said = {key for key, value in tree.args.items() if value}
    if not said <= {"expressions", _FROM, "order"}:
        return None
    table = tree.args[_FROM].this if _FROM in said else None
    if not isinstance(table, exp.Table):
        return None
    source = sources.get(table.name)
    if not isinstance(source, DatasetSource) or source.stored is None:
        return None
    if (
        "order" in said and source.is_ordered
    ):  # else it is that of the samples, which the planner adds
        return None
    plain = all(isinstance(one.unalias(), exp.Column) for one in tree.expressions)
    return source if plain else None


def rows_of(tree: Any, source: DatasetSource, positions: Array) -> pa.Table | Any:
    """Return the rows of some samples, or the SELECT of these where DuckDB has to read more than their numbers.

    Parameters
    ----------
    tree : sqlglot Select
        As `source_of_all` took it.
    source : DatasetSource
        The dataset.
    positions : int64 ndarray
        Of `FEW` samples at most, in order.
    """
    stored = source.stored
    assert stored is not None  # nosec B101 # for mypy
    sids = stored.sids_of(positions)
    columns = {one.alias_or_name: one.unalias() for one in tree.expressions}
    if all(column.name == SID for column in columns.values()):
        return pa.table(dict.fromkeys(columns, sids))
    table = next(iter(columns.values())).table
    some = tree.copy()
    listed = [exp.Literal.number(number) for number in sids.tolist()]
    some.set("where", exp.Where(this=exp.In(this=stored_node((table, SID)), expressions=listed)))
    order = exp.Ordered(this=stored_node((table, SID)), nulls_first=False)
    some.set("order", exp.Order(expressions=[order]))
    return some
