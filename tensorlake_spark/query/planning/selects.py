"""One SELECT: what DuckDB does of it before tensors are computed, and what after."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from tensorlake_spark.errors import did_you_mean
from tensorlake_spark.query.functions.expressions import text_of
from tensorlake_spark.query.planning.joins import from_clause
from tensorlake_spark.query.planning.names import columns_name, stored_node
from tensorlake_spark.query.planning.plan import LENGTH, Computed, Relation, Sample, Step
from tensorlake_spark.query.planning.select_steps import FROM_KEY, SelectSteps
from tensorlake_spark.query.planning.select_text import KEPT, PICKING, PRESENT, is_strict
from tensorlake_spark.query.planning.tensor_work import (
    SCALAR,
    conjuncts,
    has_tensors,
    is_number,
    kind_of,
)
from tensorlake_spark.query.sources.dataset_source import DatasetSource
from tensorlake_spark.query.sources.source_columns import (
    CollectedLeaf,
    ItemLeaf,
    Lazy,
    Output,
    Ref,
    ScalarLeaf,
    Stored,
    is_collected,
)

_CONSTANTS = (exp.Literal, exp.Boolean, exp.Null, exp.Placeholder)


class SelectPlanner(SelectSteps):
    """Plans one SELECT; its parameters are those of `SelectText`."""

    def planned(self) -> Relation:
        """Return the SELECT as what DuckDB runs at its end; its steps are in the planner by then."""
        node, scope = self.node, self.scope
        self.froms, self.joins, moved = from_clause(self, node)
        keyed = [table.key for table in scope.tables if table.key is not None and not table.hidden]
        self.key_node = stored_node(keyed[0][1]) if len(keyed) == 1 else None
        self.key_source = keyed[0][0] if keyed else None
        self._read_items()
        where = self._clause("where", False)
        conditions = [*moved, *(conjuncts(where.this) if where is not None else [])]
        self._tell_sources(conditions[len(moved) :])
        self._read_clauses()
        self.grouped = self._is_grouped()
        self._check_aggregates()
        self._check_order()
        tensors = [one for one in conditions if has_tensors(one, self.parameters)]
        scalars = [one for one in conditions if one not in tensors]
        self.base = {FROM_KEY: self.froms, "joins": self.joins}
        if scalars:
            self.base["where"] = exp.Where(this=exp.and_(*scalars, copy=False))
        self.outputs: dict[str, Output] = {}
        if node.args.get("expand") is not None:
            self._expand(tensors)
            tensors = []
        best = self._nearest(tensors)
        self._filter(tensors)
        self._compute(best)
        relation = self._final(best is not None)
        if node.args.get("ungroup") is not None:
            relation = self._ungrouped(relation)
        if scope.correlated and any(step.name in self._made for step in self.planner.steps):
            raise self.planner.mistake(
                node, "a sub-query that names the query around it cannot compute with tensors",
                "join the tables",
            )  # fmt: skip
        return relation

    def _tell_sources(self, conditions: list[Any]) -> None:
        """Let datasets know what is asked of their stored columns; EXPAND BY needs samples beside those, too."""
        for table in self.scope.tables:
            if isinstance(table.source, DatasetSource):
                said = conditions if self.node.args.get("expand") is None else []
                table.source.say(said, table.alias, self.parameters)

    def _final(self, nearest: bool) -> Relation:
        """Return what DuckDB does at the end, with the keys of tensors that are not computed yet."""
        columns: list[Any] = []
        keys: dict[tuple[Ref, bool], Ref] = {}

        def key(ref: Ref, listed: bool) -> Ref:
            if (ref, listed) not in keys:
                keys[ref, listed] = ("", f"k{len(keys)}")
                node = stored_node(ref)
                made = exp.ArrayAgg(this=node) if listed else node
                made.meta["keys"] = listed
                columns.append(exp.alias_(made, keys[ref, listed][1], quoted=True))
            return keys[ref, listed]

        outputs: dict[str, Output] = {}
        for number, (name, node) in enumerate(self.items):
            outputs[name] = self._output(node, number, columns, key)
        _put_in_order(columns)
        found: Any = None
        if self.key_node is not None and not self.grouped and "distinct" not in self.clauses:
            found = self.key_source, key((self.key_node.table, self.key_node.name), False)
        post = bool(self.arranged) or self.weight is not None
        for number, one in enumerate(self.arranged):
            columns.append(exp.alias_(one, f"a{number}", quoted=True))
        if self.weight is not None:
            columns.append(exp.alias_(self.weight, "w", quoted=True))
        if not columns:
            columns.append(exp.alias_(exp.Literal.number(1), "c", quoted=True))
        base = self.base if self._base_id else self._sorted_base()
        if self.grouped or "distinct" in self.clauses:
            base = {name: value for name, value in base.items() if name != "order"}
        clauses = {name: value for name, value in self.clauses.items() if name != "order" or value}
        if self.digests:
            clauses |= self._by_values([ref for ref, listed in keys if not listed])
        tree = exp.Select(expressions=columns, **{**base, **clauses})
        if not post:
            tree.set("limit", self.limit.copy() if self.limit is not None else None)
            tree.set("offset", self.offset.copy() if self.offset is not None else None)
            return Relation(tree, outputs, found)
        return Relation(self._after(tree), outputs, found)

    def _after(self, tree: Any) -> Any:
        """Return what DuckDB does of a result whose rows NumPy has put in order, or has drawn by weight."""
        step = Step(self.planner.fresh("r"), tree)
        step.arrange = [f"a{number}" for number in range(len(self.arranged))]
        if self.weight is not None:
            sampled = self.node.args["sample_by"]
            replace = sampled.args.get("replace")
            count = (
                None if self.limit is None else self.planner.number(self.limit.expression, "LIMIT")
            )
            step.sample = Sample("w", replace is not None and bool(replace.this), count)
        self.planner.steps.append(step)
        after = exp.select("*").from_(exp.to_table(step.name))
        if self.weight is None and self.limit is not None:
            after.set("limit", self.limit.copy())
        if self.offset is not None:
            after.set("offset", self.offset.copy())
        return after

    def _by_values(self, keys: list[Ref]) -> dict[str, Any]:
        """Return DISTINCT and ORDER BY of rows that are compared by the values of tensors; the first one stays."""
        found = [self.digests.get(number, node) for number, (_, node) in enumerate(self.items)]
        on = [one.copy() for one in found if not isinstance(one, _CONSTANTS)]
        out: dict[str, Any] = {"distinct": exp.Distinct(on=exp.Tuple(expressions=on))}
        written = self.clauses.get("order")
        order = [*written.expressions] if written is not None else []
        order += [exp.Ordered(this=stored_node(ref), nulls_first=False) for ref in keys]
        return out | ({"order": exp.Order(expressions=order)} if order else {})

    def _output(self, node: Any, number: int, columns: list[Any], key: Any) -> Output:
        collected = self._collected(node)
        if collected is not None:
            return self._group_value(collected, node, columns, key)
        if kind_of(node, self.parameters) != SCALAR:
            lazy = self._lazy(node)
            return lazy.moved({ref: key(ref, False) for ref in lazy.refs()})
        columns.append(exp.alias_(node, f"c{number}", quoted=True))
        return Stored(("", f"c{number}"), self.scope.type_of(node))

    def _group_value(self, inner: Any, node: Any, columns: list[Any], key: Any) -> Output:
        lazy = self._lazy(inner)
        if not isinstance(node, PICKING):
            moved = lazy.moved({ref: key(ref, True) for ref in lazy.refs()})
            return Lazy.of(exp.column("x0"), {"x0": CollectedLeaf(moved)})
        refs = lazy.refs()
        if len(refs) != 1:
            raise self.planner.mistake(
                node, f"{node.sql_name().lower()} picks a column of tensors, not what is computed of several",
                "compute in the query around this one",
            )  # fmt: skip
        picked: Any = node.copy()
        chosen, present = stored_node(refs[0]), picked.args.get(PRESENT)
        if present is not None:
            picked.set(PRESENT, None)
            chosen = exp.Case(ifs=[exp.If(this=present, true=chosen)])
        picked.set("this", chosen)
        kept = picked.args.get(KEPT)
        if kept is not None:
            picked.set(KEPT, None)
            picked = exp.Filter(this=picked, expression=exp.Where(this=kept))
        name = f"p{len(columns)}"
        columns.append(exp.alias_(picked, name, quoted=True))
        lazy = lazy.moved({refs[0]: ("", name)})
        if node.args.get("count") is None:
            return lazy if is_strict(lazy.node) else _null_without(("", name), lazy)
        return Lazy.of(exp.column("x0"), {"x0": CollectedLeaf(lazy)})  # arg_max(x, key, n) picks n

    def _ungrouped(self, relation: Relation) -> Relation:
        """Return a row for each element of some columns; the others are repeated."""
        named = {}
        for one in self.node.args["ungroup"].expressions:
            is_column = isinstance(one, (exp.Column, exp.Dot))
            name = columns_name(one) if is_column else text_of(one)
            known = {key.casefold(): key for key in relation.outputs}
            if is_column and name.casefold() not in known:  # a.b is selected as "a/b", t.x as x
                named_so = self._column_name(one)
                name = named_so if named_so.casefold() in known else name
            if name.casefold() not in known:
                near = did_you_mean(name, known).removeprefix("; ")
                raise self.planner.mistake(
                    one, f"UNGROUP BY names {name!r:.80}, which is not selected", near
                )
            named[known[name.casefold()]] = one
        step = self.planner.as_step(relation)
        lengths = {}
        for name, one in named.items():
            output = relation.outputs[name]
            if self._is_one_a_row(output):
                raise self.planner.mistake(
                    one, f"UNGROUP BY names {name!r:.80}, which is a value a row, not an array"
                )
            lazy = output if isinstance(output, Lazy) else _stored_lazy(output)
            shape = exp.Anonymous(this="shape", expressions=[lazy.node.copy()])
            said = f"UNGROUP BY names {name!r:.80}"
            counted = Computed(
                self.planner.fresh("n"), Lazy.of(shape, lazy.leaves), said, one, form=LENGTH
            )
            step.computed.append(counted)
            lengths[name] = counted.name
        step.lengths = list(lengths.values())
        outputs: dict[str, Output] = {}
        for name, output in relation.outputs.items():
            if name in lengths or is_collected(output):
                lazy = output if isinstance(output, Lazy) else _stored_lazy(output)
                outputs[name] = Lazy.of(exp.column("x0"), {"x0": ItemLeaf(lazy, ("", "item"))})
            else:
                outputs[name] = output
        return Relation(exp.select("*").from_(exp.to_table(step.name)), outputs, relation.key)

    def _is_one_a_row(self, output: Output) -> bool:
        """Whether it is known that an output has no array in any row."""
        if isinstance(output, Lazy):
            return is_number(output, self.parameters)
        return output.type is not None and not pa.types.is_nested(output.type.storage())


def _put_in_order(columns: list[Any]) -> None:
    """Let all lists of keys have the same order: that of the keys themselves."""
    lists = [one.this for one in columns if one.this.meta.get("keys")]
    keys = [one.this.copy() for one in lists]
    for one in lists:
        order = [exp.Ordered(this=key.copy(), nulls_first=False) for key in keys]
        one.set("this", exp.Order(this=one.this, expressions=order))


def _null_without(ref: Ref, lazy: Lazy) -> Lazy:
    """Return an expression that is null where no row was picked, also if it makes something of nulls."""
    name = "picked"
    while name in lazy.leaves:
        name += "_"
    there = exp.not_(exp.Is(this=exp.column(name), expression=exp.null()), copy=False)
    node = exp.Case(ifs=[exp.If(this=there, true=lazy.node.copy())])
    return Lazy.of(node, {**lazy.leaves, name: ScalarLeaf(ref)})


def _stored_lazy(output: Stored) -> Lazy:
    return Lazy.of(exp.column("x0"), {"x0": ScalarLeaf(output.ref, output.type)})
