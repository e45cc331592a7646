"""TQL's clauses by Spark: a SELECT that has them becomes a DataFrame of its own, wherever it stands in the query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.errors import InvalidQueryError, did_you_mean
from tensorlake_spark.query.functions.expressions import name_of
from tensorlake_spark.query.language.clauses import ARRANGE, CLAUSES, EXPAND, SAMPLE_BY, UNGROUP
from tensorlake_spark.query.language.mistakes import mistake, numbered_item
from tensorlake_spark.spark.queries.batch_functions.frame_rows import (
    PLACE,
    PLACE_SID,
    arranged,
    drawn,
    neighbours,
    ungrouped,
)
from tensorlake_spark.spark.queries.group_orders import without_names
from tensorlake_spark.spark.queries.result_kinds import ARRAY, SCALAR, Kind
from tensorlake_spark.spark.queries.spark_sql import SparkPrinter
from tensorlake_spark.spark.queries.tables_in_reach import Columns, Table, Tables
from tensorlake_spark.spark.source.cell_columns import quoted

_FROM = "from_" if "from_" in exp.Select.arg_types else "from"
_WITH = "with_" if "with_" in exp.Select.arg_types else "with"


@dataclass
class ClauseFrames(SparkPrinter):
    """Makes a DataFrame of a tree.

    Attributes
    ----------
    frame_of : callable
        Takes Spark SQL; returns its rows as a DataFrame.
    view_of : callable
        Takes a DataFrame; returns the name of a temporary view of it.
    seed : int
        For SAMPLE BY.
    """

    frame_of: Callable[[str], Any] = field(kw_only=True)
    view_of: Callable[[Any], str] = field(kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def frame(self, tree: Any) -> Any:
        """Return the rows of a tree as a DataFrame; the tree is changed by it."""
        tree = with_unions_inside(tree)
        clauses = taken_clauses(tree)
        if clauses:
            return self._apart(tree, clauses)[0]
        return self.frame_of(self.printed(tree))

    def _query(self, node: Any, outer: list[Tables]) -> Table:
        clauses = taken_clauses(node)
        if not clauses:
            return super()._query(node, outer)
        frame, table = self._apart(node, clauses)
        becomes_view(node, self.view_of(frame))
        return table

    def _apart(self, node: Any, clauses: Mapping[str, Any]) -> tuple[Any, Table]:
        """Return a SELECT whose clauses SQL has not as a DataFrame of its own, and its columns."""
        limit = offset = None
        if ARRANGE in clauses or SAMPLE_BY in clauses:  # they come before LIMIT
            limit, offset = (self._taken_number(node, key) for key in ("limit", "offset"))
        if SAMPLE_BY in clauses and limit is None:
            raise InvalidQueryError(
                "SAMPLE BY needs a LIMIT that is a number: how many rows are drawn"
            )
        if EXPAND in clauses:
            self._expand(node, clauses[EXPAND])
        weights = [clauses[SAMPLE_BY].this] if SAMPLE_BY in clauses else []
        keys = list(clauses[ARRANGE].expressions) if ARRANGE in clauses else []
        items = {
            one.alias.casefold(): one.this for one in node.expressions if isinstance(one, exp.Alias)
        }
        keys = [without_names(self._item(node, one), items) for one in keys]
        weights = [without_names(one, items) for one in weights]
        hidden = [f"__key{number}" for number in range(len(weights) + len(keys))]
        for name, one in zip(hidden, [*weights, *keys], strict=True):
            node.append("expressions", exp.alias_(one.copy(), name, quoted=True))
        columns = dict(self._query(node, []).columns)
        frame = self.frame_of(self._text(node))
        if weights:
            replace = clauses[SAMPLE_BY].args.get("replace")
            weight = frame[hidden[0]].cast("double")
            again = replace is not None and bool(replace.this)
            frame = drawn(frame, weight, again, limit or 0, self.seed)
        if keys:
            frame = arranged(frame, hidden[len(weights) :])
        for name in hidden:
            del columns[name]
        frame = frame.select(*map(quoted, columns))
        frame = frame if offset is None else frame.offset(offset)
        frame = frame if limit is None or weights else frame.limit(limit)
        if UNGROUP not in clauses:
            return frame, Table(columns)
        named = self._named(clauses[UNGROUP], columns)
        axes = {
            name: kind.ndim for name, kind in columns.items() if name in named or kind.collected
        }
        columns |= {name: _element(columns[name]) for name in axes}
        return ungrouped(frame, axes), Table(columns)

    def _item(self, node: Any, key: Any) -> Any:
        """Return a key of ARRANGE BY: the item of a SELECT whose number it is, any other as it is."""
        item = numbered_item(self.sql, key, "ARRANGE BY", node.expressions)
        if item is None:
            return key
        if any(one.is_star for one in node.expressions[: int(key.name)]):
            said = "with Spark, a number behind a star names no column"
            raise mistake(self.sql, key, said, "name the column")
        return item.unalias()

    def _text(self, node: Any) -> str:
        """Return the SQL of a query that was rewritten, with what WITH means around it."""
        own = node.args.get(_WITH)
        around = [
            exp.CTE(
                this=cte.this.copy(),
                alias=exp.TableAlias(
                    this=exp.to_identifier(name, quoted=True),
                    columns=[one.copy() for one in cte.args["alias"].args.get("columns") or []],
                ),
            )
            for name, cte in self.cte_nodes.items()
        ]
        if around:
            node.set(_WITH, exp.With(expressions=[*around, *(own.expressions if own else [])]))
        return str(node.sql(dialect="spark"))

    def _taken_number(self, node: Any, key: str) -> int | None:
        found = node.args.get(key)
        node.set(key, None)
        return None if found is None else self._number(found.expression, key.upper())

    def _number(self, node: Any, what: str) -> int:
        found = self._literal(node)
        if not isinstance(found, exp.Literal) or not found.is_int:
            raise mistake(self.sql, node, f"{what} takes a whole number that is not below 0")
        return int(found.this)

    def _expand(self, node: Any, clause: Any) -> None:
        """Let a SELECT read the samples that it finds and those beside them."""
        source = node.args.get(_FROM)
        one = None if source is None else source.this
        wrong = mistake(self.sql, clause, "EXPAND BY takes a SELECT from one dataset")
        if not isinstance(one, exp.Table) or one.name.casefold() in self.ctes:
            raise wrong
        table, view = self.table_of(one)
        if node.args.get("joins") or SID not in table.hidden:
            raise wrong
        alias = one.alias or one.name
        sid = exp.column(exp.to_identifier(SID), table=exp.to_identifier(alias, quoted=True))
        found = exp.Select(
            expressions=[exp.alias_(sid.copy(), SID)],
            **{key: node.args[key].copy() for key in (_WITH, _FROM, "where") if node.args.get(key)},
        )
        self._query(found, [])
        around = neighbours(
            self.frame_of(self._text(found)),
            self.frame_of(f"SELECT {SID} FROM {view}"),  # nosec B608 # our own names
            self._number(clause.args["before"], "EXPAND BY"),
            self._number(clause.args["after"], "EXPAND BY"),
            bool(clause.args.get("overlap") is not None and clause.args["overlap"].this),
        )
        name = self.view_of(around)
        places = dict.fromkeys((PLACE_SID, PLACE), Kind(SCALAR))
        self.ctes[name.casefold()] = Table(places, frozenset(places))
        same = exp.EQ(this=sid, expression=exp.column(PLACE_SID, table=name))
        node.set("where", None)
        node.append("joins", exp.Join(this=exp.to_table(name), on=same))
        if not any(node.args.get(key) for key in ("order", "group", "distinct")):
            place = exp.Ordered(this=exp.column(PLACE, table=name), nulls_first=False)
            node.set("order", exp.Order(expressions=[place]))

    def _named(self, clause: Any, columns: Columns) -> list[str]:
        """Return the columns that UNGROUP BY names.

        Raises
        ------
        InvalidQueryError
            If one is not selected, or is no array.
        """
        out = []
        for one in clause.expressions:
            name = Table(columns).find(name_of(one))
            if name is None:
                near = did_you_mean(name_of(one), columns)
                raise mistake(
                    self.sql,
                    one,
                    f"UNGROUP BY names {name_of(one)!r:.80}, which is not selected{near}",
                )
            if columns[name].name != ARRAY:
                raise mistake(
                    self.sql, one, f"UNGROUP BY names {name!r:.80}, which is not an array"
                )
            out.append(name)
        return out


def _element(kind: Kind) -> Kind:
    """Return what an element of an array is, along its first axis."""
    if kind.ndim == 1:
        return Kind(SCALAR, classes=kind.classes)
    return Kind(ARRAY, None if kind.ndim is None else kind.ndim - 1)


def taken_clauses(node: Any) -> dict[str, Any]:
    """Take TQL's clauses off a query, and return them."""
    found = {key: node.args[key] for key in CLAUSES if node.args.get(key) is not None}
    for key in found:
        node.set(key, None)
    return found


def with_unions_inside(tree: Any) -> Any:
    """Return a tree in which only a SELECT has TQL's clauses, and orders by expressions: a UNION that has some becomes
    a table of one."""
    for node in list(tree.find_all(exp.SetOperation)):
        order = node.args.get("order")
        keys = [one.this.unnest() for one in order.expressions] if order is not None else []
        is_plain = all(isinstance(one, (exp.Column, exp.Literal)) for one in keys)
        if is_plain and not any(node.args.get(key) is not None for key in CLAUSES):
            continue
        outer = exp.select("*")
        for key in ("order", "limit", "offset", *CLAUSES):
            if node.args.get(key) is not None:
                outer.set(key, node.args[key])
                node.set(key, None)
        if node is tree:
            tree = outer
        else:
            node.replace(outer)
        outer.set(
            _FROM,
            exp.From(
                this=exp.Subquery(this=node, alias=exp.TableAlias(this=exp.to_identifier("u")))
            ),
        )
    return tree


def becomes_view(node: Any, name: str) -> None:
    """Make a SELECT one of all columns of a temporary view."""
    for key in list(node.args):
        node.set(key, None)
    node.set("expressions", [exp.Star()])
    node.set(_FROM, exp.From(this=exp.to_table(name)))
