"""The tree of a query as Spark SQL: parts on tensors become calls of functions, names those of temporary views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sqlglot import exp

from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.errors import did_you_mean
from tensorlake_spark.query.functions.boxes import with_forms
from tensorlake_spark.query.functions.expressions import name_of
from tensorlake_spark.query.functions.tree_names import own_nodes
from tensorlake_spark.query.language.class_names import with_class_numbers
from tensorlake_spark.query.language.dialect import TensorDialect
from tensorlake_spark.query.language.listed_values import constant, with_listed
from tensorlake_spark.query.language.mistakes import mistake, no_value, span_of
from tensorlake_spark.query.planning.select_text import distinct_names, no_number
from tensorlake_spark.spark.queries.divisions import like_numpy
from tensorlake_spark.spark.queries.group_orders import named_in_order, put_around, with_keys
from tensorlake_spark.spark.queries.group_values import (
    by_names,
    collect,
    collected,
    is_grouped,
    item_kind,
    kept_where,
    list_of,
    passing_nulls,
)
from tensorlake_spark.spark.queries.in_queries import as_in, with_nulls
from tensorlake_spark.spark.queries.result_kinds import (
    ARRAY,
    EQUAL,
    EQUALS,
    SCALAR,
    Kind,
    kind_of,
    outside,
)
from tensorlake_spark.spark.queries.select_checks import (
    check_aggregate,
    check_alone,
    check_keys,
    check_places,
)
from tensorlake_spark.spark.queries.tables_in_reach import (
    Columns,
    Table,
    Tables,
    called_by,
    check_product,
    column_in,
    of_both,
    of_values,
    only,
    renaming,
    sid_beside,
    starred,
    with_table,
)


@dataclass
class SparkPrinter:
    """Makes Spark SQL of a tree.

    Attributes
    ----------
    sql : str
        The text, for messages.
    parameters : mapping of str to object
        Values of ``:name``.
    table_of : callable
        Takes a table of the tree; returns what it has, and the name of its temporary view.
    function_of : callable
        Takes an expression; the kind of its result, or `EQUAL` or `EQUALS` for a column as it is compared; the names of
        its columns, in the order of the function's arguments; and whether the last argument is the sid of the row, for
        messages. Returns the name of a function of Spark.
    """

    sql: str
    parameters: Mapping[str, Any]
    table_of: Callable[[Any], tuple[Table, str]]
    function_of: Callable[..., str]
    ctes: dict[str, Table] = field(default_factory=dict)
    cte_nodes: dict[str, Any] = field(default_factory=dict)

    def printed(self, tree: Any) -> str:
        """Return the SQL of a tree, which is changed by it."""
        self._query(tree, [])
        return str(tree.sql(dialect="spark"))

    # ------------------------------------------------------------------ queries in each other

    def _query(self, node: Any, outer: list[Tables]) -> Table:
        """Rewrite a query, and return its columns."""
        known, nodes = dict(self.ctes), dict(self.cte_nodes)
        holder = node.args.get("with_") or node.args.get("with")
        for cte in holder.expressions if holder is not None else ():
            self.ctes[cte.alias.casefold()] = called_by(self.sql, cte, self._query(cte.this, outer))
            self.cte_nodes[cte.alias] = cte
        if isinstance(node, exp.SetOperation):
            place = span_of(node)  # which is lost when its parts are rewritten
            found = self._query(node.this, outer)
            other = self._query(node.expression, outer)
            found = of_both(self.sql, place, node.key.upper(), found, other)
            if not isinstance(node, exp.Union) or node.args.get("distinct"):
                self._compare(node.this, found)
                self._compare(node.expression, other)
            for key in ("order", "limit", "offset"):
                if node.args.get(key) is not None:
                    node.set(key, node.args[key].transform(self._literal))
        elif isinstance(node, exp.Subquery):
            found = self._query(node.this, outer)
        else:
            found = self._select(node, outer)
        self.ctes, self.cte_nodes = known, nodes
        return found

    def _select(self, node: Any, outer: list[Tables]) -> Table:
        tables = Tables()
        source = node.args.get("from_") or node.args.get("from")
        joins = node.args.get("joins") or []
        for one, join in [
            *([(source.this, None)] if source is not None else []),
            *((join.this, join) for join in joins),
        ]:
            alias, table = self._from(one, outer)
            tables.add(self.sql, alias.casefold(), table, join)
        check_product(self.sql, node, tables)
        scopes = [tables, *outer]
        written = self._name_items(node, scopes, joins)
        named_in_order(node, written, partial(with_table, self.sql, scopes))
        aliases = {item.alias.casefold(): item.this for item in node.expressions}
        self._put_in_aliases(node, scopes, aliases)
        self._number_classes(node, scopes, aliases)
        resolve = self._resolver(scopes)
        if is_grouped(node, resolve, self.parameters):
            collect(node, resolve, self.parameters, partial(self._same, scopes))
        out = {
            item.alias: item_kind(item, self._resolver(scopes), self.parameters)
            for item in node.expressions
        }
        same = partial(self._same, scopes)
        by_names(node, same)
        check_keys(self.sql, node, same)
        ordered = {name.casefold(): kind for name, kind in out.items()}
        behind = {name: outside(kind) for name, kind in out.items()}
        orders = [tables.behind(node.expressions, behind), *outer]
        resolvers = self._resolver(scopes, ordered), self._resolver(orders)
        check_places(self.sql, node, *resolvers, self.parameters)
        has_keys = with_keys(node)
        for key, value in list(node.args.items()):
            if key in ("with", "with_", "from", "from_") or value is None:
                continue
            if key == "order" and has_keys and node.args.get("distinct") is None:
                continue  # only names are left
            seen = orders if key == "order" else scopes
            if key == "order" and node.args.get("distinct") is not None:
                seen = [only(Table(out)), *outer]  # what DISTINCT has left
            resolve = self._resolver(seen, ordered if key == "having" else {})
            values = value if isinstance(value, list) else [value]
            new = [
                self._rewritten(one, resolve, seen) if isinstance(one, exp.Expression) else one
                for one in values
            ]
            if key == "joins":
                continue  # rewritten in their places, for their tables are done
            node.set(key, new if isinstance(value, list) else new[0])
        if has_keys:
            put_around(node, [*out])
        if node.args.get("distinct") is not None:
            self._compare(node, Table(out))
        return Table(behind)

    def _compare(self, node: Any, table: Table) -> None:
        """Give tensors of a query, which is rewritten, the same bytes where they are equal: Spark compares bytes."""
        kinds = {
            name: kind
            for name, kind in table.columns.items()
            if kind.name == ARRAY and not kind.listed
        }
        if not kinds or (isinstance(node, exp.SetOperation) and node.args.get("distinct")):
            return
        if not (
            isinstance(node, exp.Select)
            and all(isinstance(one, exp.Alias) for one in node.expressions)
        ):
            inner = (
                node.copy() if isinstance(node, exp.Subquery) else exp.Subquery(this=node.copy())
            )
            inner.set("alias", exp.TableAlias(this=exp.to_identifier("__side")))
            columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in table.columns]
            outer = exp.select(*(exp.alias_(one, one.name, quoted=True) for one in columns)).from_(
                inner
            )
            node.replace(outer)
            node = outer
        for item in node.expressions:
            kind = kinds.get(item.alias)
            if kind is not None:
                name = self.function_of(exp.column("x"), EQUALS if kind.collected else EQUAL)
                item.set("this", exp.Anonymous(this=name, expressions=[item.this]))

    def _from(self, one: Any, outer: list[Tables]) -> tuple[str, Table]:
        if isinstance(one, exp.Subquery):
            return one.alias or "", called_by(self.sql, one, self._query(one.this, outer))
        if isinstance(one, exp.Values):
            one.transform(self._literal, copy=False)
            return one.alias, of_values(one)
        if not isinstance(one, exp.Table):
            raise mistake(
                self.sql, one, "Spark does not read this", "name a source, or a query in brackets"
            )
        name = one.name
        alias = one.alias or name
        if name.casefold() in self.ctes and one.args.get("version") is None:
            return alias, called_by(self.sql, one, self.ctes[name.casefold()])
        table, view = self.table_of(one)
        names = one.alias_column_names
        called = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
        if names:
            table, before = table.renamed(self.sql, one, names)
            one.replace(exp.Subquery(this=renaming(view, before), alias=called))
        one.set("this", exp.to_identifier(view))
        one.set("version", None)
        one.set("alias", called)
        return alias, table

    # ------------------------------------------------------------------ names

    def _name_items(self, node: Any, scopes: list[Tables], joins: list[Any]) -> dict[str, str]:
        """Give every item of a SELECT a name, a star those of its columns. Return what names that AS gives became."""
        used = {
            one.name.casefold() for join in joins for one in join.args.get("using") or () if one
        }
        items: list[Any] = []
        written: dict[str, Any] = {}
        for item in node.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                items += starred(self.sql, item, star, scopes[0], used)
                continue
            if isinstance(item, exp.Alias):
                items.append(item)
                written[item.alias.casefold()] = item
                continue
            name = item.sql(dialect=TensorDialect)
            if isinstance(item, exp.Column):
                found = self._found(item, scopes)
                name = name_of(item).rpartition(".")[2] if found is None else found[1]
                if found is not None and name in found[0].hidden:  # a field, such as image.height
                    name = name.rpartition("/")[2]
            items.append(exp.alias_(item.copy(), name, quoted=True))
        for name, item in distinct_names([(one.alias, one) for one in items]):
            if item.alias != name:
                item.set("alias", exp.to_identifier(name, quoted=True))
        node.set("expressions", items)
        return {name: item.alias for name, item in written.items()}

    def _put_in_aliases(self, node: Any, scopes: list[Tables], aliases: dict[str, Any]) -> None:
        """Put the expressions of aliases in the places where Spark knows only columns."""
        for key in ("where", "group", "having", "qualify"):
            clause = node.args.get(key)
            for one in own_nodes(clause) if clause is not None else ():
                if (
                    isinstance(one, exp.Column)
                    and not one.table
                    and self._found(one, scopes) is None
                ):
                    meant = aliases.get(one.name.casefold())
                    if meant is not None:
                        one.replace(exp.Paren(this=no_number(meant.copy())))

    def _number_classes(self, node: Any, scopes: list[Tables], aliases: dict[str, Any]) -> None:
        """Let a SELECT compare columns of classes with numbers, where it compares them with names."""

        def classes_of(one: Any) -> Sequence[str] | None:
            one = one.unnest()
            if not isinstance(one, exp.Column):
                return None
            found = self._found(one, scopes)
            if found is not None:
                return found[0].columns[found[1]].classes
            meant = aliases.get(one.name.casefold())
            return None if meant is None else classes_of(meant)

        for one in node.iter_expressions():
            if not isinstance(one, (exp.From, exp.With)):
                with_class_numbers(self.sql, one, classes_of, self.parameters)
                with_listed(one, self.parameters)

    def _found(self, column: Any, scopes: list[Tables]) -> tuple[Table, str] | None:
        """Return the table of a column, and its name there; groups may be written with dots."""
        found = column_in(self.sql, column, scopes)
        return None if found is None else found[1:]

    def _resolver(
        self, scopes: list[Tables], aliases: Columns | None = None
    ) -> Callable[[Any], Kind]:
        def resolve(column: Any) -> Kind:
            found = self._found(column, scopes)
            if found is not None:
                return found[0].columns[found[1]]
            kind = (aliases or {}).get(column.name.casefold())
            if kind is not None:
                return outside(kind)
            reached = [table for tables in scopes for table in tables.values()]
            known = [name for table in reached for name in table.columns]
            shown = [n for table in reached for n in table.columns if n not in table.hidden]
            raise mistake(
                self.sql,
                column,
                f"there is no column {name_of(column)!r:.80}",
                did_you_mean(name_of(column), known) or f"there are {', '.join(shown[:20])}",
            )

        return resolve

    # ------------------------------------------------------------------ expressions

    def _rewritten(self, node: Any, resolve: Any, scopes: list[Tables]) -> Any:
        if isinstance(node, (exp.Query, exp.Subquery)):
            self._query(node, scopes)
            return node
        if isinstance(node, exp.Table):
            return node
        node = as_in(self.sql, node)
        check_aggregate(self.sql, node, resolve, self.parameters)
        where = node.expression if isinstance(node, exp.Filter) else None
        inner = list_of(node if where is None else node.this)
        if inner is not None:
            return self._list(inner, where, resolve, scopes)
        kind = kind_of(node, resolve, self.parameters)
        if isinstance(node, exp.Alias):
            node.set("this", self._rewritten(node.this, resolve, scopes))
            return node
        if kind.name != SCALAR and not isinstance(node, (exp.Column, exp.Placeholder)):
            return self._call(node, kind, scopes)
        if isinstance(node, exp.Column):
            return self._column(node, scopes)
        if isinstance(node, exp.Placeholder):
            return self._literal(node)
        if isinstance(node, exp.Anonymous) and node.name.casefold() == "mean":
            node = exp.Avg(this=node.expressions[0])
        if isinstance(node, exp.DateTrunc):  # Spark's TRUNC gives dates, and null for an hour
            node = exp.TimestampTrunc(this=node.this, unit=node.args["unit"])
        for key, value in list(node.args.items()):
            if isinstance(node, exp.Join) and key in ("this", "using"):  # done, or names
                continue
            if isinstance(value, exp.Expression):
                node.set(key, self._rewritten(value, resolve, scopes))
            elif isinstance(value, list) and value and isinstance(value[0], exp.Expression):
                node.set(key, [self._rewritten(one, resolve, scopes) for one in value])
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            return with_nulls(node)
        return passing_nulls(like_numpy(node))

    def _list(self, inner: Any, where: Any, resolve: Any, scopes: list[Tables]) -> Any:
        """Return what collects a group: tensors in the order of their samples, as do all lists of that group."""
        is_tensor = kind_of(inner, resolve, self.parameters).name != SCALAR
        value = self._rewritten(inner, resolve, scopes)
        where = None if where is None else self._rewritten(where, resolve, scopes)
        if not is_tensor:
            return kept_where(exp.ArrayAgg(this=value), where)
        keys = [
            exp.column(SID, table=exp.to_identifier(alias, quoted=True))
            for alias, table in scopes[0].items()
            if SID in table.hidden
        ]
        return collected(value, keys, where)

    def _same(self, scopes: list[Tables], node: Any) -> str:
        """Return the same text for parts of a SELECT that mean the same."""

        def named(one: Any) -> Any:
            found = column_in(self.sql, one, scopes) if isinstance(one, exp.Column) else None
            return one if found is None else exp.column(f"{found[0]}.{found[2]}")

        return str(node.transform(named).sql())

    def _literal(self, node: Any) -> Any:
        """Return the value of a parameter as a literal of Spark, any other node as it is."""
        if not isinstance(node, exp.Placeholder):
            return node
        if node.name not in self.parameters:
            raise no_value(self.sql, node, self.parameters)
        value = self.parameters[node.name]
        value = value.item() if isinstance(value, np.generic) else value
        if value is None or isinstance(value, (bool, int, float, str)):
            return constant(value).transform(like_numpy)
        raise mistake(
            self.sql, node, f"the parameter :{node.name} is {type(value).__name__}", "Spark takes numbers and texts "
            "here, and arrays only in expressions on tensors",
        )  # fmt: skip

    def _column(self, node: Any, scopes: list[Tables]) -> Any:
        found = self._found(node, scopes)
        if found is None or isinstance(node.this, exp.Star):
            return node
        out = exp.column(exp.to_identifier(found[1], quoted=True))
        if node.table and len(node.parts) > 1:
            first = node.parts[0].name
            if any(first.casefold() in tables for tables in scopes):
                out.set("table", exp.to_identifier(first, quoted=True))
        return out

    def _call(self, node: Any, kind: Kind, scopes: list[Tables]) -> Any:
        """Return the call of a function that computes a part of the tree."""
        check_alone(self.sql, node)
        columns: dict[str, Any] = {}
        names: dict[str, str] = {}
        forms: dict[str, str] = {}
        resolve = self._resolver(scopes)
        sid = None

        def renamed(one: Any) -> Any:
            nonlocal sid
            if not isinstance(one, exp.Column):
                return one
            column = self._column(one, scopes)
            text = column.sql(dialect="spark")
            if text not in names:
                plain = column.name if column.name not in names.values() else f"x{len(names)}"
                names[text] = plain
            columns[text] = column
            if self._found(one, scopes) is not None:
                kind = resolve(one)
                if kind.form is not None:
                    forms[names[text]] = kind.form
                if kind.name == ARRAY and sid is None:
                    sid = sid_beside(self.sql, one, scopes[0])
            return exp.column(exp.to_identifier(names[text]))

        inner = node.copy().transform(renamed)
        if {*forms.values()} - {"xyxy"}:
            inner = with_forms(inner, forms)
        given = "texts" if kind.listed else kind.name
        name = self.function_of(inner, given, [*names.values()], sid is not None)
        arguments = [columns[text] for text in names] or [exp.Literal.number(1)]
        return exp.Anonymous(this=name, expressions=arguments + ([] if sid is None else [sid]))
