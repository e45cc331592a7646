"""What a name in a query means: a column of one of the tables in reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.class_label import classes_in
from tensorlake_spark.errors import did_you_mean
from tensorlake_spark.query.language.class_names import with_class_numbers
from tensorlake_spark.query.language.listed_values import with_listed
from tensorlake_spark.query.language.mistakes import mistake, no_table
from tensorlake_spark.query.planning.tensor_work import SCALAR, kind_of
from tensorlake_spark.query.sources.source_columns import (
    Lazy,
    Leaf,
    Named,
    Output,
    Parts,
    Ref,
    ScalarLeaf,
    Stored,
    TensorLeaf,
    folded,
)


@dataclass
class Table:
    """A table in FROM.

    Attributes
    ----------
    alias : str
        What DuckDB calls it; no other table of the query is called so.
    called : str
        What the user calls it; empty where it has no name.
    columns : dict
        What it has, over columns of its own.
    rows : int, or None
        How many, where that is known.
    source : Source, or None
        What it reads.
    hidden : bool
        Whether its columns cannot be named, as of SEMI JOIN.
    key : Key, or None
        Of which dataset each row is one sample.
    """

    alias: str
    called: str
    columns: dict[Parts, Named]
    rows: int | None = None
    source: Any = None
    hidden: bool = False
    key: Any = None

    def output(self, parts: Parts) -> Output | None:
        """Return a column over those of the query."""
        named = self.columns.get(parts)
        if named is None:
            return None
        output = named.output
        if self.source is not None:
            used = output.refs() if isinstance(output, Lazy) else [output.ref]
            self.source.used |= {column for _, column in used}
        if isinstance(output, Stored):
            return Stored((self.alias, output.ref[1]), output.type)
        return output.moved({ref: (self.alias, ref[1]) for ref in output.refs()})


@dataclass
class Scope:
    """The tables that a SELECT can name.

    Attributes
    ----------
    sql : str
        The whole query, for messages.
    parent : Scope, or None
        That of the query around it.
    tables : list of Table
        In the order of FROM.
    merged : dict of str to object
        Columns that USING names, as resolved nodes.
    aliases : dict of str to object
        What the SELECT calls its items, as resolved nodes.
    given : dict of str to object
        Items without such a name that are columns, by the names of these: what ORDER BY can name behind a SELECT.
    leaves : dict of str to Leaf
        Tensors, by the names of their columns in resolved trees.
    types : dict of Ref to Type
        Of stored columns of datasets.
    correlated : bool
        Whether a name of the query around it was met.
    parameters : mapping of str to object
        Values of ``:name``.
    """

    sql: str
    parent: Scope | None = None
    tables: list[Table] = field(default_factory=list)
    merged: dict[str, Any] = field(default_factory=dict)
    aliases: dict[str, Any] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    types: dict[Ref, Type] = field(default_factory=dict)
    correlated: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    # ------------------------------------------------------------------ names

    def column(self, node: Any, aliases: bool = False) -> Any:
        """Return a column of the text as a resolved node.

        Parameters
        ----------
        node : sqlglot Column or Dot
        aliases : bool
            Whether it may be what the SELECT calls an item.

        Raises
        ------
        InvalidQueryError
            If there is no such column, or several.
        """
        parts = tuple(part for one in identifiers(node) for part in folded(one.name))
        for known in (self.aliases, self.given) if aliases and len(parts) == 1 else ():
            if parts[0] in known:
                return known[parts[0]].copy()
        if len(parts) == 1 and parts[0] in self.merged:
            return self.merged[parts[0]].copy()
        found = self._found(parts, node)
        if found is None and len(parts) == 1 and parts[0] in self.aliases:
            return self.aliases[parts[0]].copy()
        if found is None:
            raise self._unknown(node, parts)
        return placed(self.node_of(found), node)

    def _found(self, parts: Parts, node: Any) -> Output | None:
        tables = [table for table in self.tables if not table.hidden]
        if len(parts) > 1:
            for table in tables:
                if table.called.casefold() == parts[0] and parts[1:] in table.columns:
                    return table.output(parts[1:])
        having = [table for table in tables if parts in table.columns]
        if len(having) > 1:
            names = ", ".join(f"{table.called}.{columns_name(node)}" for table in having)
            raise mistake(
                self.sql,
                node,
                f"column {columns_name(node)!r} is in several tables",
                f"write {names}",
            )
        if having:
            return having[0].output(parts)
        if self.parent is None:
            return None
        found = self.parent._found(parts, node)
        if isinstance(found, Lazy):
            raise mistake(
                self.sql, node,
                f"{columns_name(node)!r} is a tensor of the query around this one, which a sub-query cannot compute "
                "with",
                "join the tables",
            )  # fmt: skip
        if found is not None:
            self.correlated = True
        return found

    def node_of(self, output: Output) -> Any:
        """Return a resolved node for a column."""
        if isinstance(output, Stored):
            if output.type is not None:
                self.types[output.ref] = output.type
            return stored_node(output.ref)
        names = {name: self._leaf_node(leaf) for name, leaf in output.leaves.items()}

        def placed_leaf(one: Any) -> Any:
            return names[one.name].copy() if isinstance(one, exp.Column) else one

        made = output.node.copy().transform(placed_leaf, copy=False)
        return made if isinstance(made, (exp.Column, exp.Func)) else exp.paren(made, copy=False)

    def _leaf_node(self, leaf: Leaf) -> Any:
        if isinstance(leaf, ScalarLeaf):
            if leaf.type is not None:
                self.types[leaf.ref] = leaf.type
            return stored_node(leaf.ref)
        for name, known in self.leaves.items():
            if known == leaf:
                return exp.column(name)
        name = f"x{len(self.leaves)}"
        self.leaves[name] = leaf
        return exp.column(name)

    def type_of(self, node: Any) -> Type | None:
        """Return what a dataset says of a stored column, None if the node is none."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column) or not node.table:
            return None
        return self.types.get((node.table, node.name))

    def _unknown(self, node: Any, parts: Parts) -> Exception:
        tables = [table for table in self.tables if not table.hidden]
        for table in tables:
            if len(parts) > 1 and table.called.casefold() == parts[0]:
                tables, parts = [table], parts[1:]
                break
        self._check_apart(node, parts, tables)
        names = [named.name for table in tables for named in table.columns.values()]
        names += [*self.aliases]
        shown = ".".join(parts)
        near = did_you_mean(shown, names)
        have = [named.name for table in tables for named in table.columns.values() if named.starred]
        remedy = near.removeprefix("; ") or (
            f"there are {', '.join(have[:20])}" if have else "there is no table in FROM"
        )
        return mistake(self.sql, node, f"there is no column {columns_name(node)!r:.80}", remedy)

    def _check_apart(self, node: Any, parts: Parts, tables: Sequence[Table]) -> None:
        """Refuse a field of an apart column: it is there, but DuckDB does not see the table that has it."""
        for named in (table.columns.get(parts[:-1]) for table in tables):
            leaf = (
                named.output.bare if named is not None and isinstance(named.output, Lazy) else None
            )
            if leaf is None or leaf.source is None:
                continue
            if leaf.source.dataset.schema[leaf.column].apart:
                raise mistake(
                    self.sql,
                    node,
                    f"{columns_name(node)!r:.80} is a field of an apart column, and a query reads no fields of these",
                    f"take shape({leaf.column}, 0), or find samples with where=, as in ds.to_arrow(['sid'], where=...)",
                )

    # ------------------------------------------------------------------ stars

    def starred(self, table: str | None, node: Any) -> list[tuple[str, Any]]:
        """Return the columns that ``*`` or ``table.*`` means: names, and resolved nodes."""
        tables = [one for one in self.tables if not one.hidden]
        if table is not None:
            tables = [one for one in tables if one.called.casefold() == table.casefold()]
            if not tables:
                names = [one.called for one in self.tables]
                inside = [
                    named.name
                    for one in self.tables
                    for parts, named in one.columns.items()
                    if len(parts) > 1 and parts[0] == table.casefold() and named.starred
                ]
                raise no_table(self.sql, node, table, names, inside)
        out, seen = [], set()
        for one in tables:
            for parts, named in one.columns.items():
                if not named.starred:
                    continue
                merged = len(parts) == 1 and parts[0] in self.merged and table is None
                if merged:
                    if parts[0] not in seen:
                        out.append((named.name, self.merged[parts[0]].copy()))
                        seen.add(parts[0])
                    continue
                output = one.output(parts)
                if output is not None:
                    out.append((named.name, self.node_of(output)))
        return out

    # ------------------------------------------------------------------ values

    def with_values(self, node: Any) -> Any:
        """Replace names of classes by their numbers where they are compared with such a column, and lists after IN.

        A list that a parameter brings becomes its values, so that DuckDB looks them up, and skips row groups. Beside
        tensors it stays an array.

        Raises
        ------
        InvalidQueryError
            If there is no such class, or classes are compared by order.
        """

        def classes_of(one: Any) -> Sequence[str] | None:
            leaf = self.leaves.get(one.name) if isinstance(one, exp.Column) else None
            if isinstance(leaf, TensorLeaf) and leaf.source is not None:
                return classes_in(leaf.source.dataset.schema.get(leaf.column))
            return classes_in(self.type_of(one))

        node = with_class_numbers(self.sql, node, classes_of, self.parameters)
        return with_listed(node, self.parameters, lambda of: kind_of(of, self.parameters) == SCALAR)


def stored_node(ref: Ref) -> Any:
    """Return a resolved node of a stored column."""
    return exp.column(exp.to_identifier(ref[1], quoted=True), table=ref[0])


def identifiers(node: Any) -> list[Any]:
    """Return the identifiers of a column, also of one with many parts."""
    parts: list[Any] = []
    while isinstance(node, exp.Dot):
        parts.append(node.expression)
        node = node.this
    return [*node.parts, *reversed(parts)]


def columns_name(node: Any) -> str:
    """Return a column as the user wrote it."""
    return ".".join(one.name for one in identifiers(node))


def placed(node: Any, place: Any) -> Any:
    """Note in a resolved node where it stands in the text."""
    for one in place.walk():
        if "start" in one.meta and "end" in one.meta:
            node.meta.update(
                {key: one.meta[key] for key in ("start", "end", "line", "col") if key in one.meta}
            )
            break
    return node
