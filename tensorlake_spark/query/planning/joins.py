"""FROM and JOIN: tables side by side, and the conditions between them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.planning.names import Table
from tensorlake_spark.query.planning.tensor_work import conjuncts, has_tensors
from tensorlake_spark.query.sources.source_columns import Stored

if TYPE_CHECKING:
    from tensorlake_spark.query.planning.selects import SelectPlanner

FROM = "from_" if "from_" in exp.Select.arg_types else "from"

MOST_PRODUCT = 1_000_000
"""Rows that a join without a condition may make."""


def from_clause(select: SelectPlanner, node: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return FROM and JOINs as DuckDB has them, and the conditions of joins on tensors, which are asked later.

    Raises
    ------
    InvalidQueryError
        If a table is not there, or a join has no condition and would make too many rows.
    """
    start = node.args.get(FROM)
    if start is None:
        return None, [], []
    scope, planner = select.scope, select.planner
    first, table = planner.table(start.this, scope, select.ctes)
    scope.tables.append(table)
    joins, moved = [], []
    inner = [*(start.this.args.get("joins") or []), *(node.args.get("joins") or [])]
    for join in inner:
        made, more = _joined(select, join)
        joins.append(made)
        moved += more
    _check_names(select)
    _check_product(select, node, joins)
    return exp.From(this=first), joins, moved


def _joined(select: SelectPlanner, join: Any) -> tuple[Any, list[Any]]:
    scope, planner = select.scope, select.planner
    before = list(scope.tables)
    node, table = planner.table(join.this, scope, select.ctes)
    scope.tables.append(table)
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    method = str(join.args.get("method") or "").upper()
    on, moved = None, []
    using = [one.name for one in join.args.get("using") or []]
    if method == "NATURAL":
        known = {parts for one in before for parts, named in one.columns.items() if named.starred}
        using = [n.name for parts, n in table.columns.items() if n.starred and parts in known]
    if using:
        on = exp.and_(
            *[_same(select, join, before, table, name, side) for name in using], copy=False
        )
    elif join.args.get("on") is not None:
        on = scope.with_values(select.resolved(join.args["on"]))
        parts = conjuncts(on)
        tensors = [one for one in parts if has_tensors(one, select.parameters)]
        if tensors:
            if side or kind not in ("", "INNER", "CROSS"):
                raise planner.mistake(
                    join, f"a {side or kind} JOIN has no conditions on tensors",
                    "compute a number of each tensor in a query in FROM, and join by that",
                )  # fmt: skip
            moved = tensors
            rest = [one for one in parts if one not in tensors]
            on = exp.and_(*rest, copy=False) if rest else exp.true()
    if kind in ("SEMI", "ANTI"):
        table.hidden = True
    if on is None:
        kind, side = "CROSS", ""
    return exp.Join(this=node, on=on, side=side or None, kind=kind or None), moved


def _same(
    select: SelectPlanner, join: Any, before: list[Table], table: Table, name: str, side: str
) -> Any:
    """Return that a column of USING is the same on both sides, and note what its name means from here on."""
    scope = select.scope
    parts = tuple(name.casefold().split("/"))
    left = next((one for one in before if parts in one.columns), None)
    if left is None or parts not in table.columns:
        raise select.planner.mistake(
            join, f"USING names {name!r:.80}, which is not in both tables", "write JOIN ... ON"
        )
    outputs = [one.output(parts) for one in (left, table)]
    if not all(isinstance(output, Stored) for output in outputs):
        raise select.planner.mistake(join, f"USING names {name!r:.80}, which is a tensor")
    nodes = [scope.node_of(output) for output in outputs if output is not None]
    chosen = nodes[1] if side == "RIGHT" else nodes[0]
    if side == "FULL":
        chosen = exp.Coalesce(this=nodes[0].copy(), expressions=[nodes[1].copy()])
    scope.merged[name.casefold()] = chosen.copy()
    return exp.EQ(this=nodes[0], expression=nodes[1])


def _check_names(select: SelectPlanner) -> None:
    seen: set[str] = set()
    for table in select.scope.tables:
        name = table.called.casefold()
        if name and name in seen:
            raise select.planner.mistake(
                select.node,
                f"two tables are called {table.called!r:.80}",
                "give one another name by AS",
            )
        seen.add(name)


def _check_product(select: SelectPlanner, node: Any, joins: list[Any]) -> None:
    """Refuse tables without a condition between them whose product is large."""
    tables = select.scope.tables
    if len(tables) < 2:
        return
    groups = [{table.alias} for table in tables]
    conditions = [join.args["on"] for join in joins if join.args.get("on") is not None]
    where = node.args.get("where")
    links = [_aliases(one) for condition in conditions for one in conjuncts(condition)]
    if where is not None:
        try:
            found = [select.resolved(one) for one in conjuncts(where.this) if not _has_query(one)]
        except InvalidQueryError:  # a name of an item, or a mistake, which is said later
            return
        links += [_aliases(one) for one in found]
    for link in links:
        if len(link) > 1:
            together = [group for group in groups if group & link]
            groups = [g for g in groups if not g & link] + [set().union(*together)]
    if len(groups) < 2:
        return
    rows = {table.alias: table.rows for table in tables}
    most = [max((rows[alias] or 1 for alias in group), default=1) for group in groups]
    total = math.prod(most)
    if total > MOST_PRODUCT:
        shown = " x ".join(f"{n:,}" for n in most)
        raise select.planner.mistake(
            node.args["joins"][0] if node.args.get("joins") else node,
            f"tables without a condition between them make {shown} rows, and at most {MOST_PRODUCT:,} are made",
            "join them by ON or USING",
        )


def _aliases(node: Any) -> set[str]:
    return {column.table for column in node.find_all(exp.Column) if column.table}


def _has_query(node: Any) -> bool:
    return node.find(exp.Query) is not None
