"""UNION, INTERSECT and EXCEPT: rows of several queries.

Rows are compared by the values of their columns, of whole tensors by digests of these. UNION ALL compares nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tensorlake_spark.query.language.clauses import CLAUSES
from tensorlake_spark.query.planning.names import Scope, stored_node
from tensorlake_spark.query.planning.plan import DIGEST, VALUE, Computed, Key, Relation
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

_CLAUSES = ("order", "limit", "offset", *CLAUSES)


def united(
    planner: Planner, node: Any, parent: Scope | None, ctes: Mapping[str, Relation]
) -> Relation:
    """Return the rows of two queries together.

    Raises
    ------
    InvalidQueryError
        If they have different numbers of columns, or INTERSECT ALL or EXCEPT ALL would have to count tensors.
    """
    left = planner.planned(node.this, parent, ctes)
    right = planner.planned(node.expression, parent, ctes)
    if len(left.outputs) != len(right.outputs):
        raise planner.mistake(
            node, f"{node.key.upper()} joins {len(left.outputs)} columns with {len(right.outputs)}"
        )
    every = node.args.get("distinct") is False
    if every and isinstance(node, exp.Union):
        relation = _one_below_the_other(node, left, right, True)
    else:
        relation = _compared(planner, node, left, right, every)
    if not any(node.args.get(key) for key in _CLAUSES):
        return relation
    return _ordered(planner, node, relation, ctes)


def _one_below_the_other(node: Any, left: Relation, right: Relation, every: bool) -> Relation:
    """Return the rows of two queries as DuckDB has them."""
    columns = _Columns()
    for name, first, second in _pairs(left, right):
        columns.add(name, first, second)
    key = columns.key(left.key, right.key, every)
    made = type(node)(
        this=columns.select(left.tree, columns.lefts, 0),
        expression=columns.select(right.tree, columns.rights, 1),
        distinct=node.args.get("distinct"),
    )
    return Relation(made, columns.outputs, key)


def _compared(
    planner: Planner, node: Any, left: Relation, right: Relation, every: bool
) -> Relation:
    """Return the rows of two queries, compared by their values; of rows that are equal the first one stays."""
    whole = [
        any(isinstance(one, Lazy) and not is_number(one, planner.parameters) for one in (a, b))
        for _, a, b in _pairs(left, right)
    ]
    left, left_digests = _with_values(planner, left, whole)
    right, right_digests = _with_values(planner, right, whole)
    if not any(whole):
        return _one_below_the_other(node, left, right, False)
    if every:
        raise planner.mistake(
            node, f"{node.key.upper()} ALL counts equal rows, and it cannot count tensors",
            f"write {node.key.upper()}",
        )  # fmt: skip
    columns = _Columns()
    same = [columns.pair(*both) for both in zip(left_digests, right_digests, strict=True)]
    is_union = isinstance(node, exp.Union)
    for number, (name, first, second) in enumerate(_pairs(left, right)):
        columns.add(name, first, second if is_union or not whole[number] else None)
        added = columns.outputs[name]
        if not whole[number] and isinstance(added, Stored):
            same.append(added.ref)
    if is_union:
        key = columns.key(left.key, right.key, True)
    else:
        key = left.key and (left.key[0], columns.pair(left.key[1], None))
    first, second = (
        columns.select(left.tree, columns.lefts, 0),
        columns.select(right.tree, columns.rights, 1),
    )
    made = exp.select("*")
    if is_union:
        rows = exp.Union(this=first, expression=second, distinct=False)
        made = made.from_(exp.Subquery(this=rows, alias="q"))
    else:
        made = made.from_(exp.Subquery(this=first, alias="q"))
        made.append("joins", _partners(node, second, same))
    on = [stored_node(("q", name)) for _, name in same]
    made.set("distinct", exp.Distinct(on=exp.Tuple(expressions=on)))
    if key is not None:
        place = exp.Ordered(this=stored_node(("q", key[1][1])), nulls_first=False)
        made.set("order", exp.Order(expressions=[place]))
    return Relation(made, columns.outputs, key)


def _partners(node: Any, right: Any, same: list[Ref]) -> Any:
    """Return the join that keeps the rows that the right side has, or has not."""
    equal = [
        exp.NullSafeEQ(this=stored_node(("q", name)), expression=stored_node(("r", name)))
        for _, name in same
    ]
    return exp.Join(
        this=exp.Subquery(this=right, alias="r"),
        kind="SEMI" if isinstance(node, exp.Intersect) else "ANTI",
        on=exp.and_(*equal, copy=False),
    )


def _pairs(left: Relation, right: Relation) -> Iterator[tuple[str, Output, Output]]:
    """Yield the columns of both sides that stand one above the other, with the name that they have together."""
    for (name, first), second in zip(left.outputs.items(), right.outputs.values(), strict=True):
        yield name, first, second


def _with_values(
    planner: Planner, relation: Relation, whole: list[bool]
) -> tuple[Relation, list[Ref]]:
    """Return a relation whose numbers of tensors are computed, and the digests of the columns that are `whole`."""
    if not any(whole) and not any(isinstance(one, Lazy) for one in relation.outputs.values()):
        return relation, []
    step = planner.as_step(relation)
    outputs, digests = dict(relation.outputs), []
    for (name, output), is_whole in zip(relation.outputs.items(), whole, strict=True):
        if not is_whole and isinstance(output, Stored):
            continue
        computed = Computed(
            planner.fresh("n"), _lazy(output), name, form=DIGEST if is_whole else VALUE
        )
        step.computed.append(computed)
        if is_whole:
            digests.append(("", computed.name))
        else:
            outputs[name] = Stored(("", computed.name), None)
    tree = exp.select("*").from_(exp.to_table(step.name))
    return Relation(tree, outputs, relation.key), digests


def _ordered(
    planner: Planner, node: Any, relation: Relation, ctes: Mapping[str, Relation]
) -> Relation:
    """Return a union with the clauses that stand behind it: it becomes a table, and they are those of a SELECT."""
    name = planner.fresh("u")
    outer = exp.select("*").from_(exp.to_table(name))
    for key in _CLAUSES:
        if node.args.get(key) is not None:
            outer.set(key, node.args[key])
    return planner.planned(outer, None, {**ctes, name: relation})


class _Columns:
    """The columns of both sides, one beside the other."""

    def __init__(self) -> None:
        self.outputs: dict[str, Output] = {}
        self.lefts: list[Ref | None] = []
        self.rights: list[Ref | None] = []
        self._chosen = False

    def add(self, name: str, left: Output, right: Output | None) -> None:
        """Add a column of each side, or of the left side alone."""
        if right is None:
            alone = {ref: self.pair(ref, None) for ref in _lazy(left).refs()}
            self.outputs[name] = (
                left.moved(alone) if isinstance(left, Lazy) else Stored(alone[left.ref], left.type)
            )
            return
        if isinstance(left, Stored) and isinstance(right, Stored):
            kind = left.type if left.type == right.type else None
            self.outputs[name] = Stored(self.pair(left.ref, right.ref), kind)
            return
        first, second = _lazy(left), _lazy(right)
        if alike(first, second):
            places = {a: self.pair(a, b) for a, b in zip(first.refs(), second.refs(), strict=True)}
            self.outputs[name] = first.moved(places)
            return
        lefts = {ref: self.pair(ref, None) for ref in first.refs()}
        rights = {ref: self.pair(None, ref) for ref in second.refs()}
        self._chosen = True
        leaf = BranchLeaf((first.moved(lefts), second.moved(rights)), ("", "branch"))
        self.outputs[name] = Lazy.of(exp.column("x0"), {"x0": leaf})

    def key(self, left: Key | None, right: Key | None, added: bool) -> Key | None:
        """Return of which dataset each row is one sample, if both sides are of the same.

        Unless it may be `added`, it is told only where it is among the columns that are compared.
        """
        if left is None or right is None or left[0] is not right[0]:
            return None
        if not added and (left[1], right[1]) not in zip(self.lefts, self.rights, strict=True):
            return None
        return left[0], self.pair(left[1], right[1])

    def pair(self, left: Ref | None, right: Ref | None) -> Ref:
        """Return the place of a column of each side, which is null where a side has none."""
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
