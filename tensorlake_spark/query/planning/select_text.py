"""The text of one SELECT: names resolved, stars spread out, sub-queries planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tensorlake_spark.errors import did_you_mean
from tensorlake_spark.query.functions.expressions import text_of
from tensorlake_spark.query.functions.registry import AGGREGATES
from tensorlake_spark.query.language.mistakes import NO_FILTER, numbered_item
from tensorlake_spark.query.planning.names import Scope, columns_name, stored_node
from tensorlake_spark.query.planning.plan import Relation
from tensorlake_spark.query.planning.tensor_work import ARRAY, SCALAR, children, kind_of
from tensorlake_spark.query.sources.source_columns import BranchLeaf, ItemLeaf, Stored, TensorLeaf

if TYPE_CHECKING:
    from tensorlake_spark.query.planning.queries import Planner

PICKING = (exp.First, exp.Last, exp.AnyValue, exp.ArgMax, exp.ArgMin)
"""Aggregates that give a value of one of the rows."""

PASSING_NULLS = (exp.AnyValue, exp.ArgMax, exp.ArgMin)
"""Those that give a null only where all rows have one."""

PRESENT = "present"
"""In the args of one that picks a tensor: what tells whether the tensor of a row is there."""

KEPT = "kept"
"""There too: what FILTER says."""

OVER_ROWS = (exp.AggFunc, exp.Window)
"""What reads rows before a SELECT gives its items: in it, names are those of columns first."""

_STRICT = (
    exp.Bracket, exp.Slice, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Tuple, exp.Column,
    exp.Identifier, exp.Literal,
)  # fmt: skip
"""What gives null where the tensor in it is null, and only there."""


class SelectText:
    """Reads one SELECT.

    Parameters
    ----------
    planner : Planner
        Of the whole query.
    node : sqlglot Select
        The SELECT.
    parent : Scope, or None
        That of the query around it, which it may name.
    ctes : mapping of str to Relation
        What WITH defines.

    Attributes
    ----------
    items : list of (str, node)
        What is selected, resolved.
    clauses : dict
        The other clauses, resolved: ``group``, ``having``, ``order``, ``distinct``, ``qualify``, ``windows``.
    arranged : list of node
        What ARRANGE BY names.
    weight : node, or None
        What SAMPLE BY names.
    """

    def __init__(
        self, planner: Planner, node: Any, parent: Scope | None, ctes: Mapping[str, Relation]
    ) -> None:
        self.planner, self.node, self.ctes = planner, node, ctes
        self.scope = Scope(planner.sql, parent, parameters=planner.parameters)
        self.parameters = planner.parameters
        self.items: list[tuple[str, Any]] = []
        self.clauses: dict[str, Any] = {}
        self._planned: dict[Any, Any] = {}
        self._written: dict[str, Any] = {}  # items as the text has them, by what it calls them

    def resolved(self, node: Any, aliases: bool = False) -> Any:
        """Return a part of the text with its names resolved, and sub-queries planned."""
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            raise self.planner.mistake(node, "a star cannot stand here")
        if isinstance(node, (exp.Column, exp.Dot)):
            return self.scope.column(node, aliases)
        aliases = aliases and not isinstance(node, OVER_ROWS)
        if isinstance(node, exp.Placeholder):
            self.planner.parameter(node)
            return node.copy()
        if isinstance(node, exp.Query):
            return self._subquery(node)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            presence = self._presence(self.resolved(node.this, aliases))
            if presence is not None:
                return presence
        if isinstance(node, exp.Connector):  # a long chain of them is a deep tree
            made, *others = (self.resolved(term, aliases) for term in children(node))
            for term in others:
                made = type(node)(this=made, expression=term)
            return made
        if _is_list(node):
            node = exp.ArrayAgg(this=node.expressions[0])
        made = type(node)()
        made.meta.update(node.meta)
        for key, value in node.args.items():
            if isinstance(value, exp.Expression):
                made.set(key, self.resolved(value, aliases))
            elif isinstance(value, list):
                made.set(
                    key,
                    [
                        self.resolved(v, aliases) if isinstance(v, exp.Expression) else v
                        for v in value
                    ],
                )
            else:
                made.set(key, value)
        if isinstance(made, exp.Count):
            self._count(made)
        return made

    def _subquery(self, node: Any) -> Any:
        """Return a sub-query planned; a repeated one has the same text, by which DuckDB recognises keys of GROUP BY."""
        key = len(self.scope.tables), isinstance(node.parent, exp.Exists), node
        if key not in self._planned:
            self._planned[key] = self._planned_query(node)
        return self._planned[key].copy()

    def _planned_query(self, node: Any) -> Any:
        relation = self.planner.planned(node, self.scope, self.ctes)
        stored = [output.ref for output in relation.outputs.values() if isinstance(output, Stored)]
        if len(stored) < len(relation.outputs) and not isinstance(node.parent, exp.Exists):
            raise self.planner.mistake(
                node, "a sub-query inside an expression gives numbers or texts, not tensors",
                "reduce the tensor, as array_mean(x) does, in a table of WITH or FROM",
            )  # fmt: skip
        inner = exp.select(
            *[stored_node(("q", name)) for _, name in stored] or [exp.Literal.number(1)]
        )
        inner = inner.from_(exp.Subquery(this=relation.tree.copy(), alias="q"))
        return exp.Subquery(this=inner) if isinstance(node, exp.Subquery) else inner

    def _presence(self, node: Any) -> Any:
        """Return whether a tensor is null as DuckDB tells it, None if it cannot."""
        if not isinstance(node, exp.Column) or node.table:
            return None
        leaf = self.scope.leaves[node.name]
        if not isinstance(leaf, TensorLeaf):
            return None
        table = next((t for t in self.scope.tables if t.alias == leaf.key[0]), None)
        if table is None or table.source is not leaf.source:
            return None
        name = leaf.source.presence(leaf.column)
        if name is None:
            return None
        leaf.source.used.add(name)
        return stored_node((leaf.key[0], name))

    def _passing_nulls(self, node: Any) -> Any:
        """Let what picks a tensor know where it is null: DuckDB picks its key, which is never null."""
        if isinstance(node, exp.Filter) and isinstance(node.this, PICKING):
            if kind_of(node.this.this, self.parameters) == SCALAR:
                return node
            picked = node.this.copy()
            picked.set(KEPT, node.expression.this.copy())
            return self._passing_nulls(picked)
        is_picked = isinstance(node, PASSING_NULLS) and isinstance(node.this, exp.Expression)
        if not is_picked or kind_of(node.this, self.parameters) == SCALAR:
            return node
        inner = node.this
        tensors = [one for one in inner.find_all(exp.Column) if not one.table]
        if len(tensors) == 1 and is_strict(inner):
            inner = tensors[0]
        absent = self._presence(inner)
        if absent is None:
            if isinstance(inner, exp.Column):  # to know its shape, not all of it is read
                inner = exp.Anonymous(this="shape", expressions=[inner.copy()])
            absent = exp.Is(this=inner.copy(), expression=exp.null())
        node = node.copy()
        node.set(PRESENT, exp.not_(absent, copy=False))
        return node

    def _count(self, node: Any) -> None:
        presence = self._presence(node.this) if isinstance(node.this, exp.Column) else None
        if presence is not None:
            yes = exp.If(this=exp.not_(presence, copy=False), true=exp.Literal.number(1))
            node.set("this", exp.Case(ifs=[yes]))

    def _read_items(self) -> None:
        given: list[tuple[str, Any]] = []
        for item in self.node.expressions:
            star = item if isinstance(item, exp.Star) else item.this
            if isinstance(star, exp.Star) and isinstance(item, (exp.Star, exp.Column)):
                given += self._read_star(star, item)
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            node = self.scope.with_values(self.resolved(inner))
            if isinstance(item, exp.Alias):
                name = item.alias
                self.scope.aliases[name.casefold()] = node
                self._written[name.casefold()] = inner
            elif isinstance(inner, (exp.Column, exp.Dot)):
                name = self._column_name(inner)
                given.append((name, node))
            else:
                name = text_of(inner)
            self.items.append((name, self._passing_nulls(node)))
        self.items = distinct_names(self.items)
        count = Counter(name.casefold() for name, _ in given)
        self.scope.given = {
            name.casefold(): node for name, node in given if count[name.casefold()] == 1
        }

    def _column_name(self, node: Any) -> str:
        written = columns_name(node).replace(".", "/").casefold()
        for table in self.scope.tables:
            for parts, named in table.columns.items():
                full = "/".join(parts)
                if named.starred and (
                    full == written or f"{table.called.casefold()}/{full}" == written
                ):
                    return named.name
        last = node.name if isinstance(node, exp.Column) else node.expression.name
        return str(last)

    def _read_star(self, star: Any, item: Any) -> list[tuple[str, Any]]:
        table = item.table if isinstance(item, exp.Column) else None
        left_out = star.args.get("except_") or star.args.get("except") or []
        gone = {
            columns_name(one).replace(".", "/").casefold()
            if isinstance(one, (exp.Column, exp.Dot))
            else one.name.casefold(): one
            for one in left_out
        }
        for key in ("replace", "rename"):
            if star.args.get(key):
                raise self.planner.mistake(
                    item, f"* {key.upper()} is not taken", "name the columns"
                )
        found = self.scope.starred(table or None, item)
        names = {name.casefold() for name, _ in found}
        for name, one in gone.items():
            if name not in names:
                near = did_you_mean(name, [n for n, _ in found]).removeprefix("; ")
                raise self.planner.mistake(
                    one, f"there is no column {name!r:.80} to leave out", near
                )
        kept = [(name, node) for name, node in found if name.casefold() not in gone]
        self.items += kept
        if not found and not self.scope.tables:
            raise self.planner.mistake(item, "there is no table in FROM that * could mean")
        return kept

    def _clause(self, key: str, aliases: bool) -> Any:
        node = self.node.args.get(key)
        return None if node is None else self.scope.with_values(self.resolved(node, aliases))

    def _having(self) -> Any:
        """Return HAVING: a name in it that is no key of GROUP BY is that of an item first, as in DuckDB and Spark."""
        node = self.node.args["having"]
        group = self.clauses.get("group")
        keys = {lazy_text(one) for one in group.expressions} if group is not None else set()

        def meant(one: Any) -> Any:
            if isinstance(one, (exp.Query, *OVER_ROWS)):
                return one.copy()
            if not isinstance(one, exp.Condition) or isinstance(one, exp.Identifier):
                return one
            if lazy_text(self.scope.with_values(self.resolved(one))) in keys:
                return one.copy()  # which ends the walk
            is_name = isinstance(one, exp.Column) and not one.table
            item = self._written.get(one.name.casefold()) if is_name else None
            return one if item is None else exp.paren(item.copy(), copy=False)

        if any(one.name.casefold() in self._written for one in node.find_all(exp.Column)):
            node = node.transform(meant)
        return self.scope.with_values(self.resolved(node))

    def _read_clauses(self) -> None:
        for key in ("group", "qualify", "distinct"):
            found = self._clause(key, False)
            if found is not None:
                self.clauses[key] = found
        if "group" in self.clauses:
            self._put_in_items("group", "GROUP BY")
        if self.node.args.get("having") is not None:
            self.clauses["having"] = self._having()
        if self.node.args.get("windows"):
            self.clauses["windows"] = [
                self.scope.with_values(self.resolved(w)) for w in self.node.args["windows"]
            ]
        order = self.node.args.get("order")
        if order is not None:
            self.clauses["order"] = self.scope.with_values(self.resolved(order, True))
            self._put_in_items("order", "ORDER BY")
        self.arranged: list[Any] = []
        if self.node.args.get("arrange") is not None:
            found = self.node.args["arrange"].expressions
            self.arranged = [
                self._positional(
                    one, self.scope.with_values(self.resolved(one, True)), "ARRANGE BY"
                )
                for one in found
            ]
        sampled = self.node.args.get("sample_by")
        self.weight = None
        if sampled is not None:
            self.weight = self.scope.with_values(self.resolved(sampled.this, True))
        self.limit, self.offset = self.node.args.get("limit"), self.node.args.get("offset")
        for clause, name in ((self.limit, "LIMIT"), (self.offset, "OFFSET")):
            if clause is not None:
                self.planner.number(clause.expression, name)

    def _put_in_items(self, clause: str, what: str) -> None:
        """Let keys of a clause be the items whose numbers they are."""
        made, written = self.clauses[clause], self.node.args[clause].expressions
        keys = []
        for key, one in zip(made.expressions, written, strict=True):
            if isinstance(key, exp.Ordered):
                key.set("this", self._positional(one.this, key.this, what))
                keys.append(key)
            else:
                keys.append(self._positional(one, key, what))
        made.set("expressions", keys)

    def _positional(self, node: Any, made: Any, what: str) -> Any:
        """Return a key: the item whose number the text has, else what was `made` of the text."""
        item = numbered_item(self.planner.sql, node, what, self.items)
        return no_number(made if item is None else item[1].copy())

    def _is_grouped(self) -> bool:
        if "group" in self.clauses or "having" in self.clauses:
            return True
        nodes = [node for _, node in self.items]
        return any(_aggregates(node, self.parameters) for node in nodes)

    def _check_aggregates(self) -> None:
        nodes = [node for _, node in self.items]
        nodes += [
            self.clauses[key] for key in ("having", "order", "qualify") if key in self.clauses
        ]
        for node in nodes:
            for one in node.find_all(exp.AggFunc):
                inner = one.this
                if isinstance(inner, exp.Distinct):
                    inner = inner.expressions[0]
                takes_tensors = isinstance(one, (exp.ArrayAgg, *PICKING))
                if not isinstance(inner, exp.Expression) or (
                    takes_tensors and not isinstance(one.parent, exp.Filter)
                ):
                    continue
                if kind_of(inner, self.parameters) == ARRAY and not self._may_be_number(inner):
                    name = one.sql_name().lower()
                    if takes_tensors:
                        said, remedy = NO_FILTER
                        raise self.planner.mistake(one, said.format(name), remedy)
                    raise self.planner.mistake(
                        one, f"{name} takes a value a row, and this is a tensor a row",
                        "reduce each tensor first, as array_mean(x) or array_max(x) does",
                    )  # fmt: skip

    def _may_be_number(self, node: Any) -> bool:
        """Whether only values tell if a text is one value a row: an element of a tensor, what is computed of
        one, or a part of a UNION.
        """
        tensors = [column for column in node.find_all(exp.Column) if not column.table]
        leaves = [self.scope.leaves.get(column.name) for column in tensors]
        if any(isinstance(leaf, (ItemLeaf, BranchLeaf)) for leaf in leaves):
            return True
        picked = {id(c) for one in node.find_all(exp.Bracket) for c in one.find_all(exp.Column)}
        return isinstance(node, exp.Bracket) or (
            bool(tensors) and all(id(column) in picked for column in tensors)
        )


def is_strict(node: Any) -> bool:
    """Whether a tree of one tensor is known to be null where that is, and only there."""
    return all(isinstance(one, _STRICT) for one in node.walk())


def _is_list(node: Any) -> bool:
    """Whether a node is DuckDB's ``list(x)``, which collects as ``array_agg`` does."""
    named = isinstance(node, exp.List) or (
        isinstance(node, exp.Anonymous) and node.name.casefold() == "list"
    )
    return named and len(node.expressions) == 1


def _aggregates(node: Any, parameters: Mapping[str, Any]) -> bool:
    """Whether a tree has an aggregate that is not over a window."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.AggFunc):
        return True
    if isinstance(node, exp.Anonymous):
        name = node.name.casefold()
        if name in AGGREGATES or (name == "mean" and kind_of(node, parameters) == SCALAR):
            return True
    inner = node.this if isinstance(node, exp.Window) else node
    return any(_aggregates(child, parameters) for child in children(inner))


def no_number(node: Any) -> Any:
    """Return a key so that no engine reads it as the number of an item, which a constant item would be.

    Examples
    --------
    >>> no_number(exp.column("a")).sql(), no_number(exp.Literal.number(2)).sql()
    ('a', 'CASE WHEN TRUE THEN 2 END')
    """
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner.unnest(), (exp.Literal, exp.Boolean, exp.Null, exp.Placeholder)):
        return node
    return exp.Case(ifs=[exp.If(this=exp.true(), true=node)])


def lazy_text(node: Any) -> str:
    """Return a resolved tree as text, by which two are compared."""
    while isinstance(node, exp.Paren):
        node = node.this
    return str(node.sql())


def has_windows(node: Any) -> bool:
    return node.find(exp.Window) is not None


def distinct_names(items: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Give items that have the same name a number each."""
    seen: set[str] = set()
    out = []
    for name, node in items:
        new, number = name, 0
        while new.casefold() in seen:
            number += 1
            new = f"{name}_{number}"
        seen.add(new.casefold())
        out.append((new, node))
    return out
