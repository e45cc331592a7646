"""From the tree of a query to a plan."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from sqlglot import exp

from tensorlake_spark.errors import InvalidOptionError, InvalidQueryError, did_you_mean
from tensorlake_spark.query.language.mistakes import check_given_names, mistake, no_value
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.query.planning.names import Scope, Table, stored_node
from tensorlake_spark.query.planning.plan import Computed, Plan, Relation, Step
from tensorlake_spark.query.planning.selects import SelectPlanner
from tensorlake_spark.query.planning.unions import united
from tensorlake_spark.query.sources.dataset_source import SID, DatasetSource
from tensorlake_spark.query.sources.source_columns import Named, Parts, Stored
from tensorlake_spark.query.sources.source_opening import Source, check_names, source_of

FROM = "from_" if "from_" in exp.Select.arg_types else "from"
WITH = "with_" if "with_" in exp.Select.arg_types else "with"

MOST_PRODUCT = 1_000_000
"""Rows that a join without a condition may make."""


def plan_query(
    sql: str, sources: Mapping[str, Any], parameters: Mapping[str, Any] | None = None, seed: int = 0
) -> Plan:
    """Return what a query does.

    Parameters
    ----------
    sql : str
        The query.
    sources : mapping of str to object
        What it may read: see `source_opening.source_of`.
    parameters : mapping of str to object, optional
        Values of ``:name``.
    seed : int
        For SAMPLE BY.

    Raises
    ------
    InvalidQueryError
        If the text is no query, or names what is not there; it shows the place.
    InvalidOptionError
        If a source or a parameter is nothing that a query takes.
    """
    tree = parse(sql)
    check_names(sources)
    planner = Planner(sql, sources, dict(parameters or {}), seed)
    result = planner.planned(tree, None, {})
    return Plan(
        sql, planner.steps, result, planner.opened, planner.called, planner.parameters, seed
    )


class Planner:
    """Plans one query.

    Parameters
    ----------
    sql, sources, parameters, seed
        As for `plan_query`.
    """

    def __init__(
        self, sql: str, sources: Mapping[str, Any], parameters: dict[str, Any], seed: int
    ) -> None:
        self.sql, self.given, self.parameters, self.seed = sql, dict(sources), parameters, seed
        self.steps: list[Step] = []
        self.opened: dict[str, Source] = {}
        self.called: dict[str, str] = {}
        self._known: dict[Any, str] = {}
        self._count = 0

    def fresh(self, letter: str) -> str:
        """Return a name that nothing else has."""
        self._count += 1
        return f"{letter}{self._count}"

    def mistake(self, node: Any, message: str, remedy: str = "") -> InvalidQueryError:
        """Return the error for a place in the text."""
        return mistake(self.sql, node, message, remedy)

    # ------------------------------------------------------------------ queries

    def planned(self, node: Any, parent: Scope | None, ctes: Mapping[str, Relation]) -> Relation:
        """Return a query inside the plan."""
        ctes = self._with(node, ctes)
        if isinstance(node, exp.Subquery):
            if any(node.args.get(key) for key in ("order", "limit", "offset")):
                inner = exp.select("*").from_(exp.Subquery(this=node.this))
                for key in ("order", "limit", "offset"):
                    inner.set(key, node.args.get(key))
                return self.planned(inner, parent, ctes)
            return self.planned(node.this, parent, ctes)
        if isinstance(node, exp.SetOperation):
            return united(self, node, parent, ctes)
        if not isinstance(node, exp.Select):
            raise self.mistake(node, "this is not a SELECT")
        return SelectPlanner(self, node, parent, ctes).planned()

    def _with(self, node: Any, ctes: Mapping[str, Relation]) -> Mapping[str, Relation]:
        clause = node.args.get(WITH)
        if clause is None:
            return ctes
        known = dict(ctes)
        for cte in clause.expressions:
            relation = self.planned(cte.this, None, known)
            columns = cte.args["alias"].args.get("columns") or []
            known[cte.alias.casefold()] = self._renamed(relation, columns, cte)
        return known

    def _renamed(self, relation: Relation, columns: list[Any], node: Any) -> Relation:
        if not columns:
            return relation
        if len(columns) != len(relation.outputs):
            raise self.mistake(
                node, f"{len(columns)} names are given to {len(relation.outputs)} columns"
            )
        names = [one.name for one in columns]
        check_given_names(self.sql, node, names, [*relation.outputs])
        outputs = dict(zip(names, relation.outputs.values(), strict=True))
        return Relation(relation.tree, outputs, relation.key)

    def as_step(self, relation: Relation, computed: list[Computed] | None = None) -> Step:
        """Make a relation a table that later parts of the plan can read more than once."""
        step = Step(self.fresh("r"), relation.tree, computed or [])
        self.steps.append(step)
        return step

    # ------------------------------------------------------------------ tables

    def table(self, node: Any, scope: Scope, ctes: Mapping[str, Relation]) -> tuple[Any, Table]:
        """Return what stands in FROM as DuckDB has it, and its columns."""
        alias = self.fresh("t")
        called = node.alias_or_name
        columns = _alias_columns(node)
        if isinstance(node, exp.Table):
            name = ".".join(part.name for part in node.parts)
            known = ctes.get(name.casefold())
            if known is None or node.args.get("version") is not None:
                source = self._source(node, name)
                found = Table(alias, called, dict(source.columns), len(source), source)
                found.key = _key_of(source, alias)
                return self._aliased(exp.to_table(source.name), alias), self._columns(
                    found, columns, node
                )
            relation = known
        elif isinstance(node, exp.Subquery):
            relation = self.planned(node, None, ctes)
        elif isinstance(node, exp.Values):
            return self._values(node, alias, called, columns)
        else:
            raise self.mistake(
                node, "this cannot stand in FROM", "name a source, or a query in brackets"
            )
        relation = self._renamed(relation, columns, node)
        inner = exp.Subquery(this=relation.tree.copy())
        named = {
            tuple(part.casefold() for part in name.split("/")): Named(name, output)
            for name, output in relation.outputs.items()
        }
        made = Table(alias, called, named)
        if relation.key is not None:
            made.key = relation.key[0], (alias, relation.key[1][1])
        return self._aliased(inner, alias), made

    def _aliased(self, node: Any, alias: str) -> Any:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        return node

    def _columns(self, table: Table, names: list[Any], node: Any) -> Table:
        if not names:
            return table
        starred = {parts: one for parts, one in table.columns.items() if one.starred}
        given = [one.name for one in names]
        check_given_names(self.sql, node, given, [one.name for one in starred.values()])
        gone = [*starred][: len(given)]
        new: dict[Parts, Named] = {
            (name.casefold(),): Named(name, starred[parts].output)
            for name, parts in zip(given, gone, strict=True)
        }
        new |= {parts: one for parts, one in starred.items() if parts not in gone}
        hidden = {
            parts: one
            for parts, one in table.columns.items()
            if not one.starred
            and parts not in new
            and not any(parts[: len(first)] == first for first in gone)  # fields of a column
        }
        table.columns = new | hidden
        return table

    def _values(self, node: Any, alias: str, called: str, columns: list[Any]) -> tuple[Any, Table]:
        rows = node.expressions
        width = len(rows[0].expressions) if rows and isinstance(rows[0], exp.Tuple) else 1
        names = [c.name for c in columns] or [f"col{i}" for i in range(width)]
        if len(names) != width:
            raise self.mistake(node, f"{len(names)} names are given to {width} columns")
        made = node.copy()
        inner = [exp.to_identifier(f"c{i}") for i in range(width)]
        made.set("alias", exp.TableAlias(this=exp.to_identifier(alias), columns=inner))
        named: dict[Parts, Named] = {
            (name.casefold(),): Named(name, Stored(("", f"c{i}"))) for i, name in enumerate(names)
        }
        return made, Table(alias, called, named, len(rows))

    def _source(self, node: Any, name: str) -> Source:
        by_fold = {key.casefold(): key for key in self.given}
        key = by_fold.get(name.casefold())
        if key is None:
            near = did_you_mean(name, self.given).removeprefix("; ")
            raise self.mistake(
                node, f"there is no source {name!r:.80}",
                near or f"give it: query(sql, {name}=...); there are {', '.join(self.given) or 'none'}",
            )  # fmt: skip
        version = node.args.get("version")
        said = None if version is None else (version.name, self._constant(version.expression))
        if (key, said) not in self._known:
            base = self._base(key)
            if said is not None:
                base = self._at(base, node, *said)
            self.opened[base.name] = base
            self.called[base.name] = key if said is None else f"{key} VERSION {said[1]}"
            self._known[key, said] = base.name
        return self.opened[self._known[key, said]]

    def _base(self, key: str) -> Source:
        if (key, None) in self._known:
            return self.opened[self._known[key, None]]
        return source_of(self.given[key], self.fresh("s"), key)

    def _at(self, base: Source, node: Any, kind: str, value: Any) -> Source:
        try:
            if kind == "VERSION":
                return base.at(self.fresh("s"), value, None)  # type: ignore[no-any-return]
            return base.at(self.fresh("s"), None, value)  # type: ignore[no-any-return]
        except InvalidOptionError as error:
            raise self.mistake(node, f"{error}") from error

    def _constant(self, node: Any) -> Any:
        if isinstance(node, exp.Placeholder):
            return self.parameter(node)
        value = node.this
        return value if node.is_string else int(value)

    def parameter(self, node: Any) -> Any:
        """Return the value of a parameter.

        Raises
        ------
        InvalidQueryError
            If it has none.
        """
        if node.name not in self.parameters:
            raise no_value(self.sql, node, self.parameters)
        return self.parameters[node.name]

    def number(self, node: Any, what: str) -> int:
        """Return a number of rows that a clause names: a literal or a parameter.

        Raises
        ------
        InvalidQueryError
            If it is none.
        """
        value: Any = self.parameter(node) if isinstance(node, exp.Placeholder) else None
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            value = int(node.this)
        right = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not right or value < 0:
            raise self.mistake(
                node, f"{what} takes a number of rows", "such as 10, or :n with a parameter"
            )
        return int(value)


def output_nodes(relation: Relation, keyed: bool = True) -> list[Any]:
    """Return the columns of a relation's tree that its outputs need, and with `keyed` that of its sids."""
    refs = dict.fromkeys(
        ref
        for output in relation.outputs.values()
        for ref in ([output.ref] if isinstance(output, Stored) else output.refs())
    )
    if relation.key is not None and keyed:
        refs[relation.key[1]] = None
    return [stored_node(("q", name)) for _, name in refs]


def _key_of(source: Source, alias: str) -> Any:
    if isinstance(source, DatasetSource):
        return source, (alias, SID)
    return None if source.key is None else (source.key[0], (alias, source.key[1]))


def _alias_columns(node: Any) -> list[Any]:
    alias = node.args.get("alias")
    return list(alias.args.get("columns") or []) if isinstance(alias, exp.TableAlias) else []


def moment(value: Any) -> str | dt.datetime:
    """Return a time as `tl.dataset` takes it."""
    return value if isinstance(value, dt.datetime) else str(value)


logging.getLogger("sqlglot").addHandler(logging.NullHandler())
