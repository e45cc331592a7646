"""The steps of one SELECT: tables of the rows that are left, with what is computed of their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sqlglot import exp

from tensorlake_spark.query.functions.expressions import text_of
from tensorlake_spark.query.functions.tree_names import own_nodes
from tensorlake_spark.query.language.mistakes import NOT_SELECTED
from tensorlake_spark.query.planning.names import columns_name, stored_node
from tensorlake_spark.query.planning.plan import DIGEST, VALUE, Best, Computed, Expand, Step
from tensorlake_spark.query.planning.select_text import (
    KEPT,
    PICKING,
    PRESENT,
    SelectText,
    has_windows,
    lazy_text,
)
from tensorlake_spark.query.planning.tensor_work import (
    ARRAY,
    NUMBER,
    SAID,
    SCALAR,
    has_tensors,
    kind_of,
    lazy_of,
    with_parts,
)
from tensorlake_spark.query.sources.source_columns import Lazy, Ref, TensorLeaf, refs_of

BASE_ALIAS = "b"
FROM_KEY = "from_" if "from_" in exp.Select.arg_types else "from"


class SelectSteps(SelectText):
    """Makes the steps of a SELECT that was read: see `SelectText`.

    Attributes
    ----------
    base : dict
        FROM, JOIN and WHERE of what is left.
    grouped : bool
        Whether rows become groups.
    key_node, key_source
        The sids of the rows, where each is one sample of a dataset.
    digests : dict of int to node
        For DISTINCT: what items that are tensors are compared by, by their numbers.
    """

    base: dict[str, Any]
    grouped: bool
    key_node: Any
    key_source: Any
    digests: dict[int, Any]

    _made: frozenset[str] = frozenset()

    def _all(self) -> list[Any]:
        """Return all resolved trees that are still to be done."""
        out = [node for _, node in self.items]
        for value in self.clauses.values():
            out += value if isinstance(value, list) else [value]
        return [
            *out,
            *self.arranged,
            *(one for one in (self.weight, self.key_node) if one is not None),
        ]

    def _to_base(self, more: list[Any]) -> tuple[Any, dict[Ref, Ref]]:
        """Return a SELECT of all columns that are still needed, and their new places."""
        refs: dict[Ref, None] = {}
        aliases = {table.alias for table in self.scope.tables} | {BASE_ALIAS + self._base_id}
        for tree in [*self._all(), *more]:
            for column in tree.find_all(exp.Column):
                if column.table in aliases:
                    refs[column.table, column.name] = None
                elif not column.table:
                    leaf = self.scope.leaves.get(column.name)
                    if leaf is not None:
                        refs |= dict.fromkeys(ref for ref in refs_of(leaf))
        places = {ref: (self._alias(), f"c{i}") for i, ref in enumerate(refs)}
        items = [
            exp.alias_(stored_node(ref), place[1], quoted=True) for ref, place in places.items()
        ]
        tree = exp.Select(
            expressions=items or [exp.alias_(exp.Literal.number(1), "c")], **self._sorted_base()
        )
        return tree, places

    _base_id = ""

    def _alias(self) -> str:
        return f"{BASE_ALIAS}{self._base_id}"

    def _sorted_base(self) -> dict[str, Any]:
        """Return FROM, JOIN and WHERE, and the order of the samples where files do not have it."""
        base = dict(self.base)
        tables = self.scope.tables
        if len(tables) == 1 and tables[0].source is not None and not tables[0].source.is_ordered:
            base.setdefault(
                "order",
                exp.Order(
                    expressions=[
                        exp.Ordered(this=stored_node((tables[0].alias, "sid")), nulls_first=False)
                    ]
                ),
            )
        return base

    def _step(self, more: list[Any]) -> Step:
        """Make a table of the rows so far: all that is left names its columns."""
        if not self._base_id:
            self._base_id = self.planner.fresh("")
            tree, places = self._to_base(more)
            self._move(places, more)
        else:
            tree = exp.Select(expressions=[exp.Star()], **self.base)
        step = Step(self.planner.fresh("r"), tree)
        self.planner.steps.append(step)
        self._made |= {step.name}
        table = exp.to_table(step.name)
        table.set("alias", exp.TableAlias(this=exp.to_identifier(self._alias())))
        self.base = {FROM_KEY: exp.From(this=table)}
        return step

    def _move(self, places: dict[Ref, Ref], more: list[Any]) -> None:
        moved: dict[int, None] = {}
        for tree in [*self._all(), *more]:
            if id(tree) in moved:
                continue
            moved[id(tree)] = None
            for column in tree.find_all(exp.Column):
                place = places.get((column.table, column.name))
                if place is not None:
                    column.set("table", exp.to_identifier(place[0]))
                    column.meta.setdefault(SAID, column.name)
                    column.set("this", exp.to_identifier(place[1], quoted=True))
        self.scope.types |= {
            places[ref]: kind for ref, kind in self.scope.types.items() if ref in places
        }
        for name, leaf in self.scope.leaves.items():
            if all(ref in places for ref in refs_of(leaf)):
                self.scope.leaves[name] = _leaf_moved(leaf, places)

    def _computed(self, step: Step, node: Any, condition: bool = False, form: str = VALUE) -> Any:
        """Add a column to a step for a part of a tree; return the node that stands for it."""
        lazy = self._lazy(node)
        for known in step.computed:
            if known.lazy == lazy and known.form == form:
                return stored_node((self._alias(), known.name))
        name = self.planner.fresh("n")
        step.computed.append(Computed(name, lazy, self._said(node), node, condition, form))
        return stored_node((self._alias(), name))

    def _lazy(self, node: Any) -> Lazy:
        """Return a part of a tree as what NumPy computes.

        Raises
        ------
        InvalidQueryError
            If it has a sub-query inside, whose value only DuckDB knows.
        """
        if node.find(exp.Query) is not None:
            outside = own_nodes(node)
            raise self.planner.mistake(
                next((one for one in outside if isinstance(one, exp.Column)), node),
                "a sub-query cannot stand inside a function of tensors or their brackets",
                "name it in FROM, and its column here",
            )  # fmt: skip
        return lazy_of(node, self.scope.leaves, self.scope.types)

    def _said(self, node: Any) -> str:
        """Return a part of the text as the user wrote it."""
        named = node.copy()
        for column in list(named.find_all(exp.Column)):
            leaf = None if column.table else self.scope.leaves.get(column.name)
            if isinstance(leaf, TensorLeaf):
                column.set("this", exp.to_identifier(leaf.column, quoted="/" in leaf.column))
            elif SAID in column.meta:  # it was moved to a table that only this planner knows
                column.replace(exp.column(column.meta[SAID]))
        for parameter in list(named.find_all(exp.Placeholder)):
            parameter.replace(exp.Var(this=f":{parameter.name}"))
        return text_of(named)

    def _filter(self, conditions: list[Any]) -> None:
        """Keep the rows for which conditions on tensors are true: for each, make a table of the rows so far."""
        todo = [exp.Where(this=condition) for condition in conditions]
        while todo:
            step = self._step(todo)  # the first table has the columns of all of them
            made = partial(self._computed, step, condition=True)
            self.base["where"] = with_parts(todo.pop(0), self.parameters, made)

    def _compute(self, best: tuple[Best, Any] | None) -> None:
        """Compute what clauses need of the tensors of the rows that are left."""
        trees, whole, picked_by = self._needing(), self._whole_tensors(), self._picked_by()
        self.digests = {}
        needing = [*trees, *picked_by]
        if not whole and not any(has_tensors(tree, self.parameters) for tree in needing):
            return
        mixed = [self._is_mixed(node) for _, node in self.items]  # before the step renames columns
        step = self._step([])
        if best is not None:
            step.best = best[0]
        for tree in trees:
            with_parts(tree, self.parameters, lambda part: self._computed(step, part))
        self.items = [
            (name, with_parts(node, self.parameters, lambda p: self._computed(step, p)))
            if needed
            else (name, node)
            for needed, (name, node) in zip(mixed, self.items, strict=True)
        ]
        for key in picked_by:
            key.replace(with_parts(key, self.parameters, lambda p: self._computed(step, p)))
        self.arranged = [
            with_parts(one, self.parameters, lambda p: self._computed(step, p))
            for one in self.arranged
        ]
        if self.weight is not None:
            self.weight = with_parts(
                self.weight, self.parameters, lambda p: self._computed(step, p)
            )
        for number in whole:
            self.digests[number] = self._computed(step, self.items[number][1], form=DIGEST)

    def _is_mixed(self, node: Any) -> bool:
        """Whether DuckDB needs a value of a tensor for an item."""
        if self._collected(node) is not None:
            return False
        kind = kind_of(node, self.parameters)
        if kind == SCALAR:
            return has_tensors(node, self.parameters)
        if kind == NUMBER and self._compares_rows():
            return True
        return self.grouped and self._is_key(node)

    def _picked_by(self) -> list[Any]:
        """Return what rows are compared by where an item picks a tensor of a group, as ``arg_max(x, key)`` does, what
        tells whether that is there, and what FILTER says."""
        picks = (
            n for _, n in self.items if isinstance(n, PICKING) and self._collected(n) is not None
        )
        found = (node.args.get(key) for node in picks for key in ("expression", PRESENT, KEPT))
        return [one for one in found if isinstance(one, exp.Expression)]

    def _compares_rows(self) -> bool:
        """Whether rows with the same values become one."""
        distinct = self.clauses.get("distinct")
        return distinct is not None and distinct.args.get("on") is None

    def _whole_tensors(self) -> list[int]:
        """Return the numbers of the items that DISTINCT compares as whole tensors.

        Raises
        ------
        InvalidQueryError
            If one is what GROUP BY collects, which is there only after the groups are.
        """
        if not self._compares_rows():
            return []
        for _, node in self.items:
            if self._collected(node) is not None:
                raise self.planner.mistake(
                    node, "DISTINCT cannot compare the tensors that GROUP BY collects",
                    "write the GROUP BY in a query in brackets, and SELECT DISTINCT from that",
                )  # fmt: skip
        return [
            number
            for number, (_, node) in enumerate(self.items)
            if kind_of(node, self.parameters) == ARRAY
        ]

    def _check_order(self) -> None:
        """Refuse an order of DISTINCT by what it does not select: equal rows may have several values of that."""
        order = self.node.args.get("order")
        if order is None or not self._compares_rows():
            return
        selected = {lazy_text(node) for _, node in self.items}
        waiting = [one.this for one in reversed(order.expressions)]
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.Query):
                continue
            if lazy_text(self.scope.with_values(self.resolved(node, True))) in selected:
                continue
            if isinstance(node, (exp.Column, exp.Dot)):
                said, remedy = NOT_SELECTED
                raise self.planner.mistake(node, said.format(columns_name(node)), remedy)
            waiting += reversed([*node.iter_expressions()])

    def _is_key(self, node: Any) -> bool:
        group = self.clauses.get("group")
        if group is None:
            return False
        if not hasattr(self, "_keys"):
            self._keys = [lazy_text(g) for g in group.expressions]
        return lazy_text(node) in self._keys

    def _needing(self) -> list[Any]:
        out: list[Any] = []
        if "group" in self.clauses:
            self._is_key(exp.null())  # their texts, before they change
        for key in ("group", "having", "qualify", "distinct", "order"):
            if key in self.clauses:
                out.append(self.clauses[key])
        out += self.clauses.get("windows", [])
        out += [exp.Tuple(expressions=[one]) for one in self.arranged]
        out += [exp.Tuple(expressions=[self.weight])] if self.weight is not None else []
        out += [exp.Tuple(expressions=[node]) for _, node in self.items if self._is_mixed(node)]
        return out

    def _nearest(self, tensors: list[Any]) -> tuple[Best, Any] | None:
        """Return how many rows the least values of ORDER BY keep, None if it is not that kind of query."""
        order = self.clauses.get("order")
        others = ("having", "qualify", "distinct", "windows", "group")
        if order is None or len(order.expressions) != 1 or self.limit is None or self.grouped:
            return None
        if any(key in self.clauses for key in others) or self.arranged or self.weight is not None:
            return None
        if any(has_windows(node) for _, node in self.items) or self.node.args.get("ungroup"):
            return None
        key = order.expressions[0]
        if kind_of(key.this, self.parameters) == SCALAR or key.args.get("nulls_first"):
            return None
        count = self.planner.number(self.limit.expression, "LIMIT")
        if self.offset is not None:
            count += self.planner.number(self.offset.expression, "OFFSET")
        return Best(count, bool(key.args.get("desc"))), key

    def _expand(self, tensors: list[Any]) -> None:
        """Find the samples, add those beside them, and go on from there."""
        node = self.node.args["expand"]
        tables = self.scope.tables
        source = tables[0].source if len(tables) == 1 else None
        key = source.columns.get(("sid",)) if source is not None else None
        if source is None or key is None:
            raise self.planner.mistake(node, "EXPAND BY takes a SELECT from one dataset")
        source.used.add("sid")
        sid = stored_node((tables[0].alias, "sid"))
        holder = exp.Tuple(expressions=[sid])
        kept = (self.items, self.clauses, self.arranged, self.weight, self.key_node)
        leaves, types = dict(self.scope.leaves), dict(self.scope.types)
        self.items, self.clauses, self.arranged = [("sid", holder)], {}, []
        self.weight = self.key_node = None
        froms, joins = (
            self.base[FROM_KEY].copy(),
            [join.copy() for join in self.base["joins"] or []],
        )
        self._filter(tensors)
        step = self._step([])
        overlap = node.args.get("overlap")
        step.expand = Expand(
            holder.expressions[0].name, source,
            self.planner.number(node.args["before"], "EXPAND BY"),
            self.planner.number(node.args["after"], "EXPAND BY"),
            bool(overlap is not None and overlap.this),
        )  # fmt: skip
        self.items, self.clauses, self.arranged, self.weight, self.key_node = kept
        self.scope.leaves, self.scope.types, self._base_id = leaves, types, ""
        found = exp.to_table(step.name)
        found.set("alias", exp.TableAlias(this=exp.to_identifier("found")))
        join = exp.Join(
            this=found,
            on=exp.EQ(
                this=stored_node((tables[0].alias, "sid")), expression=stored_node(("found", "sid"))
            ),
        )
        place = exp.Ordered(this=stored_node(("found", "place")), nulls_first=False)
        self.base = {
            FROM_KEY: froms,
            "joins": [*joins, join],
            "order": exp.Order(expressions=[place]),
        }

    def _collected(self, node: Any) -> Any:
        """Return the tensor that an item of a grouped SELECT collects or picks, None if it does neither."""
        if not self.grouped:
            return None
        if isinstance(node, (exp.ArrayAgg, *PICKING)) and isinstance(node.this, exp.Expression):
            return node.this if kind_of(node.this, self.parameters) != SCALAR else None
        if kind_of(node, self.parameters) in (ARRAY, NUMBER) and not self._is_key(node):
            return node
        return None


def _leaf_moved(leaf: Any, places: Mapping[Ref, Ref]) -> Any:
    return Lazy.of(exp.column("x0"), {"x0": leaf}).moved(places).leaves["x0"]
