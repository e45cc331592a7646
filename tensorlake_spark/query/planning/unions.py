"""UNION, INTERSECT and EXCEPT: rows of several queries.

Tensors are the same if they are of the same samples. Numbers of tensors are computed, and compared by their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tensorlake_spark.query.planning.names import Scope, stored_node
from tensorlake_spark.query.planning.plan import Computed, Key, Relation
from tensorlake_spark.query.planning.tensor_work import is_number
from tensorlake_spark.query.sources.source_columns import (
    BranchLeaf,
    Lazy,
    Output,
    Ref,
    ScalarLeaf,
    Stored,
)

if TYPE_CHECKING:
    from tensorlake_spark.query.planning.queries import Planner


def united(
    planner: Planner, node: Any, parent: Scope | None, ctes: Mapping[str, Relation]
) -> Relation:
    """Return the rows of two queries together.

    Raises
    ------
    InvalidQueryError
        If they have different numbers of columns, or tensors that cannot be compared.
    """
    left = planner.planned(node.this, parent, ctes)
    right = planner.planned(node.expression, parent, ctes)
    if len(left.outputs) != len(right.outputs):
        raise planner.mistake(
            node, f"{node.key.upper()} joins {len(left.outputs)} columns with {len(right.outputs)}"
        )
    every = isinstance(node, exp.Union) and node.args.get("distinct") is False
    if not every:
        left, right = _with_numbers(planner, left), _with_numbers(planner, right)
    columns = _Columns(planner, node, every)
    for name, output in left.outputs.items():
        columns.add(name, output, [*right.outputs.values()][len(columns.outputs)])
    key = columns.key(left.key, right.key)
    made = type(node)(
        this=columns.select(left.tree, columns.lefts, 0),
        expression=columns.select(right.tree, columns.rights, 1),
        distinct=node.args.get("distinct"),
    )
    relation = Relation(made, columns.outputs, key)
    if not any(node.args.get(key) for key in ("order", "limit", "offset", "arrange", "sample_by")):
        return relation
    return _ordered(planner, node, relation, ctes)


def _with_numbers(planner: Planner, relation: Relation) -> Relation:
    """Return a relation whose numbers of tensors are computed, so that rows can be compared by them."""
    numbers = {
        name: output
        for name, output in relation.outputs.items()
        if isinstance(output, Lazy) and is_number(output, planner.parameters)
    }
    if not numbers:
        return relation
    step = planner.as_step(relation)
    outputs = dict(relation.outputs)
    for name, lazy in numbers.items():
        computed = Computed(planner.fresh("n"), lazy, name)
        step.computed.append(computed)
        outputs[name] = Stored(("", computed.name), None)
    return Relation(exp.select("*").from_(exp.to_table(step.name)), outputs, relation.key)


def _ordered(
    planner: Planner, node: Any, relation: Relation, ctes: Mapping[str, Relation]
) -> Relation:
    """Return a union with the clauses that stand behind it: it becomes a table, and they are those of a SELECT."""
    name = planner.fresh("u")
    outer = exp.select("*").from_(exp.to_table(name))
    for key in ("order", "limit", "offset", "arrange", "sample_by", "expand", "ungroup"):
        if node.args.get(key) is not None:
            outer.set(key, node.args[key])
    return planner.planned(outer, None, {**ctes, name: relation})


class _Columns:
    """The columns of both sides, one beside the other."""

    def __init__(self, planner: Planner, node: Any, every: bool) -> None:
        self.planner, self.node, self.every = planner, node, every
        self.outputs: dict[str, Output] = {}
        self.lefts: list[Ref | None] = []
        self.rights: list[Ref | None] = []
        self._chosen = False

    def add(self, name: str, left: Output, right: Output) -> None:
        """Add a column of each side."""
        if isinstance(left, Stored) and isinstance(right, Stored):
            kind = left.type if left.type == right.type else None
            self.outputs[name] = Stored(self._pair(left.ref, right.ref), kind)
            return
        first, second = _lazy(left), _lazy(right)
        if alike(first, second):
            places = {a: self._pair(a, b) for a, b in zip(first.refs(), second.refs(), strict=True)}
            self.outputs[name] = first.moved(places)
            return
        if not self.every:
            raise self.planner.mistake(
                self.node, f"column {name!r:.80} is a tensor that the two queries compute in different ways, and they "
                "cannot be compared", "take UNION ALL, or leave the column out",
            )  # fmt: skip
        lefts = {ref: self._pair(ref, None) for ref in first.refs()}
        rights = {ref: self._pair(None, ref) for ref in second.refs()}
        self._chosen = True
        leaf = BranchLeaf((first.moved(lefts), second.moved(rights)), ("", "branch"))
        self.outputs[name] = Lazy.of(exp.column("x0"), {"x0": leaf})

    def key(self, left: Key | None, right: Key | None) -> Key | None:
        """Return of which dataset each row is one sample, if both sides are of the same."""
        if left is None or right is None or left[0] is not right[0]:
            return None
        if not self.every and (left[1], right[1]) not in zip(self.lefts, self.rights, strict=True):
            return None
        return left[0], self._pair(left[1], right[1])

    def _pair(self, left: Ref | None, right: Ref | None) -> Ref:
        for number, both in enumerate(zip(self.lefts, self.rights, strict=True)):
            if both == (left, right):
                return ("", f"u{number}")
        self.lefts.append(left)
        self.rights.append(right)
        return ("", f"u{len(self.lefts) - 1}")

    def select(self, tree: Any, refs: list[Ref | None], number: int) -> Any:
        """Return one side with its columns in their places."""
        items = [
            exp.alias_(
                exp.null() if ref is None else stored_node(("q", ref[1])), f"u{i}", quoted=True
            )
            for i, ref in enumerate(refs)
        ]
        if self._chosen:
            items.append(exp.alias_(exp.Literal.number(number), "branch", quoted=True))
        if not items:
            items = [exp.alias_(exp.Literal.number(1), "u0", quoted=True)]
        return exp.select(*items).from_(exp.Subquery(this=tree.copy(), alias="q"))


def _lazy(output: Output) -> Lazy:
    if isinstance(output, Lazy):
        return output
    return Lazy.of(exp.column("x0"), {"x0": ScalarLeaf(output.ref, output.type)})


def alike(left: Lazy, right: Lazy) -> bool:
    """Whether two tensors are the same where their keys are."""
    if len(left.refs()) != len(right.refs()):
        return False
    first, second = (
        one.moved({ref: ("", f"k{i}") for i, ref in enumerate(one.refs())}) for one in (left, right)
    )
    return first == second
