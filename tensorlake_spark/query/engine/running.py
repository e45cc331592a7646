"""A plan is run: steps one after the other, then what is left."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.engine.duckdb_session import DuckSession
from tensorlake_spark.query.engine.evaluation import Evaluation, in_one_piece
from tensorlake_spark.query.engine.neighbours import best_of_all, best_rows
from tensorlake_spark.query.engine.row_orders import arranged, expanded, sampled, split
from tensorlake_spark.query.functions.tree_names import REMAINDERS, remainder_by_zero
from tensorlake_spark.query.language.mistakes import mistake, place_named
from tensorlake_spark.query.planning.plan import Expand, Plan, Relation, Statement, Step
from tensorlake_spark.query.planning.queries import output_nodes

_OF_TYPES = ("Conversion Error", "Binder Error")
"""How DuckDB begins what it says of values that do not fit."""


class PlanRun:
    """The rows of a query, and what it took to find them.

    Parameters
    ----------
    plan : Plan
        The query.
    keyed : bool
        Whether the sids of the rows are wanted, too, where no tensor needs them.

    Attributes
    ----------
    table : pyarrow.Table
        The columns that the plan's outputs need.
    evaluation : Evaluation
        Computes tensors; it counts what is read of them.
    statements : list of str
        The SQL that DuckDB was given.
    rows : dict of str to int
        How many rows each step had, before and after its conditions.
    """

    def __init__(self, plan: Plan, keyed: bool = False) -> None:
        self.plan = plan
        self.evaluation = Evaluation(plan.parameters)
        self.statements: list[str] = []
        self.rows: dict[str, int] = {}
        files = [file for source in plan.sources.values() for file in source.files()]
        with DuckSession(files) as session:
            for source in plan.sources.values():
                source.attach(session)
            for step in plan.steps:
                session.register(step.name, self._step(step, session))
            last = plan.statements.get(keyed)
            if last is None:
                last = plan.statements[keyed] = statement_of(final_tree(plan.result, keyed))
            self.table = narrowed(self._rows(session, last))

    def _rows(self, session: DuckSession, asked: Statement) -> pa.Table:
        self.statements.append(asked.sql)
        given = {name: plain(self.plan.parameters[name]) for name in asked.parameters}
        try:
            return session.rows(asked.sql, given)
        except InvalidQueryError as error:
            raise _placed(self.plan, str(error), given) from error

    def _step(self, step: Step, session: DuckSession) -> pa.Table:
        table = best_of_all(
            self.evaluation, step, self.plan.sources,
            lambda tree: self._rows(session, statement_of(tree)),
        )  # fmt: skip
        is_found = table is not None
        if table is None:
            table = self._rows(session, statement_of(step.tree))
        self.rows[step.name] = table.num_rows
        for computed in step.computed[is_found:]:
            if step.best is not None and computed is step.computed[0]:
                table = best_rows(self.evaluation, computed, table, step.best)
            else:
                table = table.append_column(computed.name, self.evaluation.column(computed, table))
        if step.expand is not None:
            table = self._expanded(step.expand, table)
        if step.sample is not None:
            count = table.num_rows if step.sample.count is None else step.sample.count
            weights = in_one_piece(table.column(step.sample.weight))
            drawn = sampled(weights, count, step.sample.replace, self.plan.seed)
            table = table.take(pa.array(drawn))
        if step.arrange:
            table = table.take(pa.array(arranged(table, step.arrange)))
        if step.lengths:
            rows, items = split([in_one_piece(table.column(name)) for name in step.lengths])
            table = table.take(pa.array(rows)).append_column("item", pa.array(items))
        return table

    def _expanded(self, expand: Expand, table: pa.Table) -> pa.Table:
        stored = expand.source.stored
        if stored is None:
            return pa.table({"sid": pa.array([], pa.int64()), "place": pa.array([], pa.int64())})
        sids = np.asarray(table.column(expand.key).to_numpy(), np.int64)
        found = expanded(
            stored.positions_of(sids), expand.before, expand.after, len(stored), expand.overlap
        )
        return pa.table({"sid": stored.sids_of(found), "place": np.arange(len(found))})


def final_tree(relation: Relation, keyed: bool = True) -> Any:
    """Return what DuckDB is asked at the end.

    Parameters
    ----------
    relation : Relation
        What is left of the query.
    keyed : bool
        Whether the sids are wanted, too, where no tensor needs them.
    """
    tree, columns = relation.tree, output_nodes(relation, keyed)
    if not isinstance(tree, exp.Select):
        columns = columns or [exp.alias_(exp.Literal.number(1), "c", quoted=True)]
        return exp.Select(expressions=columns).from_(exp.Subquery(this=tree, alias="q"))
    needed = {column.name for column in columns}
    made = [one for one in tree.expressions if isinstance(one, exp.Star) or one.alias in needed]
    if len(made) == len(tree.expressions):
        return tree
    tree = tree.copy()
    kept = [one for one in tree.expressions if isinstance(one, exp.Star) or one.alias in needed]
    tree.set("expressions", kept or tree.expressions[:1])
    return tree


def narrowed(table: pa.Table) -> pa.Table:
    """Return a table in which sums of integers are int64 where they fit: DuckDB makes them 128 bits wide.

    Examples
    --------
    >>> from decimal import Decimal
    >>> narrowed(pa.table({"n": pa.array([Decimal(3)], pa.decimal128(38, 0))})).schema.field("n").type
    DataType(int64)
    """
    for place, field in enumerate(table.schema):
        if field.type == pa.decimal128(38, 0):
            try:
                table = table.set_column(place, field.name, table.column(place).cast(pa.int64()))
            except pa.ArrowInvalid:
                continue
    return table


def _placed(plan: Plan, said: str, given: Mapping[str, Any]) -> InvalidQueryError:
    """Return what DuckDB says of its text, and of the parameters in it, as a mistake in the text of the user."""
    sql = plan.text
    single = re.search(r'column "?(.+?)"? must appear in the GROUP BY', said)
    called = _called(plan.steps, single[1]) if single is not None else ""
    name = called.replace("/", ".")
    found = re.search(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", sql) if name else None
    if found is None and given and said.startswith(_OF_TYPES):
        # DuckDB names a value or a type, but not the parameter that it came from.
        quoted = [n for n, value in given.items() if f"'{value}'" in said or f'"{value}"' in said]
        names = quoted or [*given]
        values = ", ".join(f":{name}={given[name]!r:.80}" for name in names)
        spans = [re.search(rf"[:$]{re.escape(name)}\b", sql) for name in names]
        alone = spans[0].span() if len(spans) == 1 and spans[0] else None
        place = alone if quoted else place_named(sql, said) or alone
        return mistake(
            sql, place, f"{said}; given is {values}",
            "a parameter needs the type of what it is compared with, or a CAST",
        )  # fmt: skip
    if single is None:
        return mistake(sql, place_named(sql, said), said)
    name = name if found is None else found[0]
    return mistake(
        sql, found.span() if found is not None else None, f"{name} is neither in GROUP BY nor in an aggregate",
        f"name it in GROUP BY, or choose one value of each group by any_value({name})",
    )  # fmt: skip


def _called(steps: Sequence[Step], column: str) -> str:
    """Return what the text calls a column that DuckDB names, which may be one of a step."""
    for step in steps:
        for one in step.computed:
            if one.name == column:
                return one.what
        for item in step.tree.expressions:
            if item.alias == column and isinstance(item.this, exp.Column):
                return _called(steps[: steps.index(step)], item.this.name)
    return column


def statement_of(tree: Any) -> Statement:
    """Return what DuckDB is asked for a tree."""
    names = dict.fromkeys(one.name for one in tree.find_all(exp.Placeholder))
    return Statement(duckdb_sql(tree), tuple(names))


def duckdb_sql(tree: Any) -> str:
    """Return a tree as SQL for DuckDB, in which a remainder by zero is NumPy's.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> duckdb_sql(parse("SELECT a % 3, a % b FROM t"))
    'SELECT a % 3, COALESCE(a % b, CASE WHEN NOT (b) IS NULL THEN (a) * 0 END) FROM t'
    """
    if tree.find(*REMAINDERS) is not None:
        tree = tree.transform(partial(remainder_by_zero, made=_zero_where_null))
    sql = str(tree.sql(dialect="duckdb"))
    # A statement of DuckDB 1.5 ends at a character of code 0.
    return str(tree.transform(_spelled).sql(dialect="duckdb")) if "\0" in sql else sql


def _spelled(node: Any) -> Any:
    """Return a text with characters of code 0 as its parts, with `chr(0)` between them."""
    if not (isinstance(node, exp.Literal) and node.is_string and "\0" in node.this):
        return node
    zero = exp.Anonymous(this="chr", expressions=[exp.Literal.number(0)])
    first, *rest = node.this.split("\0")
    out: Any = exp.Literal.string(first)
    for part in rest:
        before = exp.DPipe(this=out, expression=zero.copy())
        out = exp.DPipe(this=before, expression=exp.Literal.string(part))
    return exp.paren(out)


def _zero_where_null(node: Any) -> Any:
    """Return a remainder that is 0 by zero, where DuckDB has null for whole numbers, and null by null."""
    nothing = exp.Mul(this=exp.paren(node.this), expression=exp.Literal.number(0))
    given = exp.not_(exp.Is(this=exp.paren(node.expression), expression=exp.null()), copy=False)
    by_zero = exp.Case(ifs=[exp.If(this=given, true=nothing)])
    return exp.Coalesce(this=node, expressions=[by_zero])


def plain(value: Any) -> Any:
    """Return a parameter as DuckDB takes it."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return value


__all__ = ["PlanRun", "duckdb_sql", "pc"]
