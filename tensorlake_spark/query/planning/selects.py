"""One SELECT: what DuckDB does of it before tensors are computed, and what after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tensorlake_spark.query.functions.expressions import text_of
from tensorlake_spark.query.planning.joins import from_clause
from tensorlake_spark.query.planning.names import Scope, columns_name, stored_node
from tensorlake_spark.query.planning.plan import Best, Computed, Expand, Relation, Sample, Step
from tensorlake_spark.query.planning.tensor_work import (
    ARRAY,
    NUMBER,
    SCALAR,
    conjuncts,
    has_tensors,
    kind_of,
    lazy_of,
    tensor_parts,
    with_parts,
)
from tensorlake_spark.query.sources.columns import (
    CollectedLeaf,
    ItemLeaf,
    Lazy,
    Output,
    Ref,
    Stored,
    TensorLeaf,
)

if TYPE_CHECKING:
    from tensorlake_spark.query.planning.queries import Planner

_PICKING = (exp.First, exp.Last, exp.AnyValue, exp.ArgMax, exp.ArgMin)


class SelectPlanner:
    """Plans one SELECT.

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
    """

    def __init__(
        self, planner: Planner, node: Any, parent: Scope | None, ctes: Mapping[str, Relation]
    ) -> None:
        self.planner, self.node, self.ctes = planner, node, ctes
        self.scope = Scope(planner.sql, parent)
        self.parameters = planner.parameters
        self.items: list[tuple[str, Any]] = []
        self.clauses: dict[str, Any] = {}

    # ------------------------------------------------------------------ the whole

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
        self._read_clauses()
        self.grouped = self._is_grouped()
        self._check_aggregates()
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
        for condition in tensors:
            self._filter(condition)
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

    # ------------------------------------------------------------------ reading the text

    def resolved(self, node: Any, aliases: bool = False) -> Any:
        """Return a part of the text with its names resolved, and sub-queries planned."""
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            raise self.planner.mistake(node, "a star cannot stand here")
        if isinstance(node, (exp.Column, exp.Dot)):
            return self.scope.column(node, aliases)
        if isinstance(node, exp.Placeholder):
            self.planner.parameter(node)
            return node.copy()
        if isinstance(node, exp.Query):
            return self._subquery(node)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            presence = self._presence(self.resolved(node.this, aliases))
            if presence is not None:
                return presence
        made = type(node)()
        made.meta.update(node.meta)
        for key, value in node.args.items():
            if isinstance(value, exp.Expression):
                made.set(key, self.resolved(value, aliases))
            elif isinstance(value, list):
                made.set(
                    key,
                    [self.resolved(v, aliases) if isinstance(v, exp.Expression) else v for v in value],
                )
            else:
                made.set(key, value)
        if isinstance(made, exp.Count):
            self._count(made)
        return made

    def _subquery(self, node: Any) -> Any:
        relation = self.planner.planned(node, self.scope, self.ctes)
        stored = [output.ref for output in relation.outputs.values() if isinstance(output, Stored)]
        if len(stored) < len(relation.outputs) and not isinstance(node.parent, exp.Exists):
            raise self.planner.mistake(
                node, "a sub-query inside an expression gives numbers or texts, not tensors",
                "reduce the tensor, as array_mean(x) does, in a table of WITH or FROM",
            )  # fmt: skip
        inner = exp.select(*[stored_node(("q", name)) for _, name in stored] or [exp.Literal.number(1)])
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

    def _count(self, node: Any) -> None:
        presence = self._presence(node.this) if isinstance(node.this, exp.Column) else None
        if presence is not None:
            yes = exp.If(this=exp.not_(presence, copy=False), true=exp.Literal.number(1))
            node.set("this", exp.Case(ifs=[yes]))

    def _read_items(self) -> None:
        for item in self.node.expressions:
            star = item if isinstance(item, exp.Star) else item.this
            if isinstance(star, exp.Star) and isinstance(item, (exp.Star, exp.Column)):
                self._read_star(star, item)
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            node = self.scope.with_class_numbers(self.resolved(inner))
            if isinstance(item, exp.Alias):
                name = item.alias
                self.scope.aliases[name.casefold()] = node
            elif isinstance(inner, (exp.Column, exp.Dot)):
                name = self._column_name(inner)
            else:
                name = text_of(inner)
            self.items.append((name, node))
        self.items = _distinct_names(self.items)

    def _column_name(self, node: Any) -> str:
        written = columns_name(node).replace(".", "/").casefold()
        for table in self.scope.tables:
            for parts, named in table.columns.items():
                full = "/".join(parts)
                if named.starred and (full == written or f"{table.called.casefold()}/{full}" == written):
                    return named.name
        last = node.name if isinstance(node, exp.Column) else node.expression.name
        return str(last)

    def _read_star(self, star: Any, item: Any) -> None:
        table = item.table if isinstance(item, exp.Column) else None
        left_out = star.args.get("except_") or star.args.get("except") or []
        gone = {columns_name(one).replace(".", "/").casefold() if isinstance(one, (exp.Column, exp.Dot)) else one.name.casefold(): one for one in left_out}
        for key in ("replace", "rename"):
            if star.args.get(key):
                raise self.planner.mistake(item, f"* {key.upper()} is not taken", "name the columns")
        found = self.scope.starred(table or None, item)
        names = {name.casefold() for name, _ in found}
        for name, one in gone.items():
            if name not in names:
                from tensorlake_spark.errors import did_you_mean

                near = did_you_mean(name, [n for n, _ in found]).removeprefix("; ")
                raise self.planner.mistake(one, f"there is no column {name!r:.80} to leave out", near)
        self.items += [(name, node) for name, node in found if name.casefold() not in gone]
        if not found and not self.scope.tables:
            raise self.planner.mistake(item, "there is no table in FROM that * could mean")

    def _clause(self, key: str, aliases: bool) -> Any:
        node = self.node.args.get(key)
        return None if node is None else self.scope.with_class_numbers(self.resolved(node, aliases))

    def _read_clauses(self) -> None:
        for key in ("group", "having", "qualify", "distinct"):
            found = self._clause(key, False)
            if found is not None:
                self.clauses[key] = found
        if self.node.args.get("windows"):
            self.clauses["windows"] = [self.resolved(w) for w in self.node.args["windows"]]
        order = self.node.args.get("order")
        if order is not None:
            self.clauses["order"] = self.scope.with_class_numbers(self.resolved(order, True))
            for one in self.clauses["order"].expressions:
                one.set("this", self._positional(one.this, "ORDER BY"))
        if "group" in self.clauses:
            group = self.clauses["group"]
            group.set("expressions", [self._positional(g, "GROUP BY") for g in group.expressions])
        self.arranged: list[Any] = []
        if self.node.args.get("arrange") is not None:
            found = self.node.args["arrange"].expressions
            self.arranged = [self._positional(self.resolved(one, True), "ARRANGE BY") for one in found]
        sampled = self.node.args.get("sample_by")
        self.weight = None if sampled is None else self.resolved(sampled.this, True)
        self.limit, self.offset = self.node.args.get("limit"), self.node.args.get("offset")
        if self.limit is not None and isinstance(self.limit, exp.Fetch):
            self.limit = exp.Limit(expression=self.limit.args.get("count"))

    def _positional(self, node: Any, what: str) -> Any:
        if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdigit():
            return node
        place = int(node.this)
        if not 1 <= place <= len(self.items):
            raise self.planner.mistake(
                node, f"{what} {place} names no column", f"there are {len(self.items)}"
            )
        return self.items[place - 1][1].copy()

    def _is_grouped(self) -> bool:
        if "group" in self.clauses or "having" in self.clauses:
            return True
        nodes = [node for _, node in self.items]
        return any(_aggregates(node) for node in nodes)

    def _check_aggregates(self) -> None:
        nodes = [node for _, node in self.items]
        nodes += [self.clauses[key] for key in ("having", "order", "qualify") if key in self.clauses]
        for node in nodes:
            for one in node.find_all(exp.AggFunc):
                inner = one.this
                if isinstance(inner, exp.Distinct):
                    inner = inner.expressions[0]
                if not isinstance(inner, exp.Expression) or isinstance(one, (exp.ArrayAgg, *_PICKING)):
                    continue
                if kind_of(inner, self.parameters) == ARRAY and not isinstance(inner, exp.Bracket):
                    name = one.sql_name().lower()
                    raise self.planner.mistake(
                        one, f"{name} takes a value a row, and this is a tensor a row",
                        "reduce each tensor first, as array_mean(x) or array_max(x) does",
                    )  # fmt: skip

    # ------------------------------------------------------------------ steps

    _made: set[str]

    def _all(self) -> list[Any]:
        """Return all resolved trees that are still to be done."""
        out = [node for _, node in self.items]
        for value in self.clauses.values():
            out += value if isinstance(value, list) else [value]
        return [*out, *self.arranged, *(one for one in (self.weight, self.key_node) if one is not None)]

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
                        refs |= dict.fromkeys(ref for ref in _refs(leaf))
        places = {ref: (self._alias(), f"c{i}") for i, ref in enumerate(refs)}
        items = [
            exp.alias_(stored_node(ref), place[1], quoted=True) for ref, place in places.items()
        ]
        tree = exp.Select(expressions=items or [exp.alias_(exp.Literal.number(1), "c")], **self._sorted_base())
        return tree, places

    _base_id = ""

    def _alias(self) -> str:
        return f"{BASE_ALIAS}{self._base_id}"

    def _sorted_base(self) -> dict[str, Any]:
        """Return FROM, JOIN and WHERE, and the order of the samples where files do not have it."""
        base = dict(self.base)
        tables = self.scope.tables
        if len(tables) == 1 and tables[0].source is not None and not tables[0].source.is_ordered:
            base.setdefault("order", exp.Order(expressions=[exp.Ordered(this=stored_node((tables[0].alias, "sid")), nulls_first=False)]))
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
        self._made = {*getattr(self, "_made", set()), step.name}
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
                    column.set("this", exp.to_identifier(place[1], quoted=True))
        self.scope.types |= {
            places[ref]: kind for ref, kind in self.scope.types.items() if ref in places
        }
        for name, leaf in self.scope.leaves.items():
            if all(ref in places for ref in _refs(leaf)):
                self.scope.leaves[name] = _leaf_moved(leaf, places)

    def _computed(self, step: Step, node: Any, condition: bool = False) -> Any:
        """Add a column to a step for a part of a tree; return the node that stands for it."""
        lazy = lazy_of(node, self.scope.leaves, self.scope.types)
        for known in step.computed:
            if known.lazy == lazy:
                return stored_node((self._alias(), known.name))
        name = self.planner.fresh("n")
        step.computed.append(Computed(name, lazy, self._said(node), node, condition))
        return stored_node((self._alias(), name))

    def _said(self, node: Any) -> str:
        """Return a part of the text as the user wrote it."""
        named = node.copy()
        for column in list(named.find_all(exp.Column)):
            leaf = None if column.table else self.scope.leaves.get(column.name)
            if isinstance(leaf, TensorLeaf):
                column.set("this", exp.to_identifier(leaf.column, quoted="/" in leaf.column))
        return text_of(named)

    def _filter(self, condition: Any) -> None:
        """Make a table of the rows so far, and keep those for which a condition on tensors is true."""
        wrapped = exp.Where(this=condition)
        step = self._step([wrapped])
        found = with_parts(wrapped, self.parameters, lambda part: self._computed(step, part, True))
        self.base["where"] = found

    def _compute(self, best: tuple[Best, Any] | None) -> None:
        """Compute what clauses need of the tensors of the rows that are left."""
        trees = self._needing()
        if not any(has_tensors(tree, self.parameters) for tree in trees):
            return
        step = self._step([])
        if best is not None:
            step.best = best[0]
        for tree in trees:
            with_parts(tree, self.parameters, lambda part: self._computed(step, part))
        self.items = [
            (name, self._mixed(step, node)) for name, node in self.items
        ]
        self.arranged = [with_parts(one, self.parameters, lambda p: self._computed(step, p)) for one in self.arranged]
        if self.weight is not None:
            self.weight = with_parts(self.weight, self.parameters, lambda p: self._computed(step, p))

    def _mixed(self, step: Step, node: Any) -> Any:
        return with_parts(node, self.parameters, lambda p: self._computed(step, p)) if self._is_mixed(node) else node

    def _is_mixed(self, node: Any) -> bool:
        """Whether DuckDB needs a value of a tensor for an item."""
        if self._collected(node) is not None:
            return False
        if kind_of(node, self.parameters) == SCALAR:
            return has_tensors(node, self.parameters)
        return self.grouped and self._is_key(node)

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
        if any(_windows(node) for _, node in self.items) or self.node.args.get("ungroup"):
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
        froms, joins = self.base[FROM_KEY].copy(), [join.copy() for join in self.base["joins"] or []]
        for condition in tensors:
            self._filter(condition)
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
        join = exp.Join(this=found, on=exp.EQ(this=stored_node((tables[0].alias, "sid")), expression=stored_node(("found", "sid"))))
        place = exp.Ordered(this=stored_node(("found", "place")), nulls_first=False)
        self.base = {FROM_KEY: froms, "joins": [*joins, join], "order": exp.Order(expressions=[place])}

    # ------------------------------------------------------------------ the end

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
        tree = exp.Select(expressions=columns, **{**base, **clauses})
        if not post:
            tree.set("limit", self.limit.copy() if self.limit is not None else None)
            tree.set("offset", self.offset.copy() if self.offset is not None else None)
            return Relation(tree, outputs, found)
        step = Step(self.planner.fresh("r"), tree)
        step.arrange = [f"a{number}" for number in range(len(self.arranged))]
        if self.weight is not None:
            sampled = self.node.args["sample_by"]
            replace = sampled.args.get("replace")
            count = None if self.limit is None else self.planner.number(self.limit.expression, "LIMIT")
            step.sample = Sample("w", replace is None or bool(replace.this), count)
        self.planner.steps.append(step)
        after = exp.select("*").from_(exp.to_table(step.name))
        if self.weight is None and self.limit is not None:
            after.set("limit", self.limit.copy())
        if self.offset is not None:
            after.set("offset", self.offset.copy())
        return Relation(after, outputs, found)

    def _output(self, node: Any, number: int, columns: list[Any], key: Any) -> Output:
        collected = self._collected(node)
        if collected is not None:
            return self._group_value(collected, node, columns, key)
        if kind_of(node, self.parameters) != SCALAR:
            lazy = lazy_of(node, self.scope.leaves, self.scope.types)
            return lazy.moved({ref: key(ref, False) for ref in lazy.refs()})
        columns.append(exp.alias_(node, f"c{number}", quoted=True))
        return Stored(("", f"c{number}"), self.scope.type_of(node))

    def _collected(self, node: Any) -> Any:
        """Return the tensor that an item of a grouped SELECT collects or picks, None if it does neither."""
        if not self.grouped:
            return None
        if isinstance(node, (exp.ArrayAgg, *_PICKING)) and isinstance(node.this, exp.Expression):
            return node.this if kind_of(node.this, self.parameters) != SCALAR else None
        if kind_of(node, self.parameters) in (ARRAY, NUMBER) and not self._is_key(node):
            return node
        return None

    def _group_value(self, inner: Any, node: Any, columns: list[Any], key: Any) -> Output:
        lazy = lazy_of(inner, self.scope.leaves, self.scope.types)
        if not isinstance(node, _PICKING):
            moved = lazy.moved({ref: key(ref, True) for ref in lazy.refs()})
            return Lazy.of(exp.column("x0"), {"x0": CollectedLeaf(moved)})
        refs = lazy.refs()
        if len(refs) != 1:
            raise self.planner.mistake(
                node, f"{node.sql_name().lower()} picks a column of tensors, not what is computed of several",
                "compute in the query around this one",
            )  # fmt: skip
        picked = node.copy()
        picked.set("this", stored_node(refs[0]))
        name = f"p{len(columns)}"
        columns.append(exp.alias_(picked, name, quoted=True))
        return lazy.moved({refs[0]: ("", name)})

    def _ungrouped(self, relation: Relation) -> Relation:
        """Return a row for each element of some columns; the others are repeated."""
        named = {}
        for one in self.node.args["ungroup"].expressions:
            name = columns_name(one) if isinstance(one, (exp.Column, exp.Dot)) else text_of(one)
            known = {key.casefold(): key for key in relation.outputs}
            if name.casefold() not in known:
                from tensorlake_spark.errors import did_you_mean

                near = did_you_mean(name, known).removeprefix("; ")
                raise self.planner.mistake(one, f"UNGROUP BY names {name!r:.80}, which is not selected", near)
            named[known[name.casefold()]] = one
        step = self.planner.as_step(relation)
        lengths = {}
        for name, one in named.items():
            output = relation.outputs[name]
            lazy = output if isinstance(output, Lazy) else _stored_lazy(output)
            length = exp.Anonymous(this="shape", expressions=[lazy.node.copy(), exp.Literal.number(0)])
            counted = Computed(self.planner.fresh("n"), Lazy.of(length, lazy.leaves), f"shape({name})[0]", one)
            step.computed.append(counted)
            lengths[name] = counted.name
        step.lengths = list(lengths.values())
        outputs: dict[str, Output] = {}
        for name, output in relation.outputs.items():
            if name in lengths or _is_collected(output):
                lazy = output if isinstance(output, Lazy) else _stored_lazy(output)
                outputs[name] = Lazy.of(exp.column("x0"), {"x0": ItemLeaf(lazy, ("", "item"))})
            else:
                outputs[name] = output
        return Relation(exp.select("*").from_(exp.to_table(step.name)), outputs, relation.key)


BASE_ALIAS = "b"
FROM_KEY = "from_" if "from_" in exp.Select.arg_types else "from"


def _put_in_order(columns: list[Any]) -> None:
    """Let all lists of keys have the same order: that of the keys themselves."""
    lists = [one.this for one in columns if one.this.meta.get("keys")]
    keys = [one.this.copy() for one in lists]
    for one in lists:
        order = [exp.Ordered(this=key.copy(), nulls_first=False) for key in keys]
        one.set("this", exp.Order(this=one.this, expressions=order))


def lazy_text(node: Any) -> str:
    """Return a resolved tree as text, by which two are compared."""
    while isinstance(node, exp.Paren):
        node = node.this
    return str(node.sql())


def _refs(leaf: Any) -> list[Ref]:
    from tensorlake_spark.query.sources.columns import refs_of

    return refs_of(leaf)


def _leaf_moved(leaf: Any, places: Mapping[Ref, Ref]) -> Any:
    return Lazy.of(exp.column("x0"), {"x0": leaf}).moved(places).leaves["x0"]


def _stored_lazy(output: Stored) -> Lazy:
    from tensorlake_spark.query.sources.columns import ScalarLeaf

    return Lazy.of(exp.column("x0"), {"x0": ScalarLeaf(output.ref, output.type)})


def _is_collected(output: Output) -> bool:
    return isinstance(output, Lazy) and any(
        isinstance(leaf, CollectedLeaf) for leaf in output.leaves.values()
    )


def _aggregates(node: Any) -> bool:
    """Whether a tree has an aggregate that is not over a window."""
    if isinstance(node, (exp.Window, exp.Query)):
        return isinstance(node, exp.Window) and any(
            _aggregates(child) for child in node.this.iter_expressions()
        )
    if isinstance(node, exp.AggFunc):
        return True
    return any(_aggregates(child) for child in node.iter_expressions())


def _windows(node: Any) -> bool:
    return node.find(exp.Window) is not None


def _distinct_names(items: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
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


__all__ = ["SelectPlanner", "tensor_parts"]
