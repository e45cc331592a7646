"""The tables that a SELECT for Spark can name: which of them has a column, and how large their product is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.functions.expressions import name_of
from tensorlake_spark.query.functions.tree_names import own_nodes
from tensorlake_spark.query.language.mistakes import check_given_names, mistake, no_table
from tensorlake_spark.spark.queries.result_kinds import ARRAY, SCALAR, Kind

Columns = Mapping[str, Kind]

MOST_PRODUCT = 1_000_000
"""Rows that a join without a condition may make."""


@dataclass(frozen=True)
class Table:
    """What a SELECT reads under an alias.

    Attributes
    ----------
    columns : dict of str to Kind
        Its columns.
    hidden : frozenset of str
        Those that ``*`` does not mean.
    count : callable, or None
        Returns how many rows it has, None if only Spark could tell.
    """

    columns: Columns
    hidden: frozenset[str] = frozenset()
    count: Callable[[], int | None] | None = field(default=None, compare=False)

    def find(self, name: str) -> str | None:
        """Return a column by a name with dots or slashes, without regard to case."""
        wanted = name.replace(".", "/").casefold()
        return next((one for one in self.columns if one.casefold() == wanted), None)

    def renamed(self, sql: str, place: Any, names: Sequence[str]) -> tuple[Table, dict[str, str]]:
        """Return the table with other names for its first columns, and how each column was called.

        Raises
        ------
        InvalidQueryError
            If these are too many, or two columns would have one name.
        """
        seen = [name for name in self.columns if name not in self.hidden]
        check_given_names(sql, place, names, seen)
        taken = {name.casefold() for name in [*names, *seen[len(names) :]]}
        fields = tuple(f"{name}/" for name in seen[: len(names)])  # they go with their columns
        hidden = [
            name
            for name in self.columns
            if name in self.hidden and not name.startswith(fields) and name.casefold() not in taken
        ]
        before = dict(zip([*names, *seen[len(names) :], *hidden], [*seen, *hidden], strict=True))
        columns = {name: self.columns[old] for name, old in before.items()}
        return Table(columns, frozenset(hidden), self.count), before


class Tables(dict[str, Table]):
    """The tables of one SELECT by their aliases.

    Attributes
    ----------
    merged : set of str
        Columns that USING or NATURAL make one of two.
    unseen : set of str
        Aliases of tables that only a condition of a join can name, as of SEMI JOIN.
    given : Table
        What a SELECT gives under names that come before those of columns, as in ORDER BY.
    """

    def __init__(self) -> None:
        super().__init__()
        self.merged: set[str] = set()
        self.unseen: set[str] = set()
        self.given = Table({})

    def behind(self, items: Sequence[Any], kinds: Columns) -> Tables:
        """Return the same tables as ORDER BY sees them.

        Parameters
        ----------
        items : sequence of sqlglot Alias
            What the SELECT gives.
        kinds : dict of str to Kind
            What they are, by their names.
        """
        out = Tables()
        out.update(self)
        out.merged, out.unseen = self.merged, self.unseen
        out.given = Table({one.alias: kinds[one.alias] for one in items if not self._has(one)})
        return out

    def _has(self, item: Any) -> bool:
        """Whether an item is the column that its name means without it."""
        found = self.having([item.alias])
        if len(found) != 1 or not isinstance(item.this, exp.Column):
            return False
        return self.having([part.name for part in item.this.parts]) == found

    def add(self, sql: str, alias: str, table: Table, join: Any = None) -> None:
        """Add a table, and what its join says of columns.

        Raises
        ------
        InvalidQueryError
            If another table is called so, or USING names a tensor.
        """
        if alias and alias in self:
            raise mistake(
                sql, join, f"two tables are called {alias!r:.80}", "give one another name by AS"
            )
        if join is not None:
            if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
                self.unseen.add(alias)
            if str(join.args.get("method") or "").upper() == "NATURAL":
                self._name_columns(join, table)
            names = [one.name for one in join.args.get("using") or ()]
            for name in names:
                found = table.find(name)
                if found is not None and table.columns[found].name == ARRAY:
                    raise mistake(sql, join, f"USING names {name!r:.80}, which is a tensor")
            self.merged |= {name.casefold() for name in names}
        self[alias] = table

    def _name_columns(self, join: Any, table: Table) -> None:
        """Let a NATURAL join say which columns it means: Spark would take hidden ones too, such as the sid."""
        known = {
            name.casefold()
            for one in self.values()
            for name in one.columns
            if name not in one.hidden
        }
        both = [n for n in table.columns if n not in table.hidden and n.casefold() in known]
        join.set("method", None)
        join.set("using", [exp.to_identifier(name, quoted=True) for name in both] or None)

    def having(self, parts: Sequence[str]) -> list[tuple[str, Table, str]]:
        """Return the aliases and tables that have a column, and its name there."""
        item = self.given.find(parts[0]) if len(parts) == 1 else None
        if item is not None:
            return [("", self.given, item)]
        if len(parts) > 1 and parts[0].casefold() in self:
            alias = parts[0].casefold()
            name = self[alias].find("/".join(parts[1:]))
            if name is not None:
                return [(alias, self[alias], name)]
        found = [(alias, table, table.find("/".join(parts))) for alias, table in self.items()]
        return [(alias, table, name) for alias, table, name in found if name is not None]


def only(table: Table) -> Tables:
    """Return what a clause can name that sees the columns of one table, without an alias."""
    found = Tables()
    found[""] = table
    return found


def called_by(sql: str, node: Any, table: Table) -> Table:
    """Return the columns of a query as the names behind it call them, as in ``(SELECT 1, 2) AS s(a, b)``.

    Raises
    ------
    InvalidQueryError
        If these are not as many as the columns, or two are alike.
    """
    names = node.alias_column_names
    count = sum(name not in table.hidden for name in table.columns)
    if names and len(names) != count:
        raise mistake(sql, node, f"{len(names)} names are given to {count} columns")
    return table.renamed(sql, node, names)[0] if names else table


def renaming(view: str, before: Mapping[str, str]) -> Any:
    """Return a query that gives the columns of a view other names.

    Examples
    --------
    >>> renaming("v", {"a": "x"}).sql()
    'SELECT "x" AS "a" FROM v'
    """
    columns = [
        exp.alias_(exp.column(exp.to_identifier(old, quoted=True)), name, quoted=True)
        for name, old in before.items()
    ]
    return exp.select(*columns).from_(exp.to_table(view))


def starred(sql: str, item: Any, star: Any, tables: Tables, used: set[str]) -> Iterator[Any]:
    """Yield the columns that ``*`` or ``table.*`` means, under their names.

    Parameters
    ----------
    sql : str
        The text, for messages.
    item, star : sqlglot expression
        What the SELECT has, and the star in it.
    tables : Tables
    used : set of str
        Columns of USING, which are there once.

    Raises
    ------
    InvalidQueryError
        If there is no such table; it may be a group of columns.
    """
    gone = star.args.get("except_") or star.args.get("except") or []
    without = {one.name.replace(".", "/").casefold() for one in gone}
    seen: set[str] = set()
    for alias, table in _meant(sql, item, tables):
        for name in table.columns:
            folded = name.casefold()
            if name in table.hidden or folded in without or (folded in used and folded in seen):
                continue
            seen.add(folded)
            column = exp.column(exp.to_identifier(name, quoted=True))
            if alias and folded not in used:
                column.set("table", exp.to_identifier(alias, quoted=True))
            yield exp.alias_(column, name, quoted=True)


def _meant(sql: str, item: Any, tables: Tables) -> list[tuple[str, Table]]:
    wanted = item.table if isinstance(item, exp.Column) else None
    found = [one for one in tables.items() if wanted is None or one[0] == wanted.casefold()]
    if not found and wanted is not None:
        start = f"{wanted.casefold()}/"
        inside = [
            name
            for table in tables.values()
            for name in table.columns
            if name.casefold().startswith(start) and name not in table.hidden
        ]
        raise no_table(sql, item, wanted, [*tables], inside)
    return found


def of_values(node: Any) -> Table:
    """Return the columns of rows that stand in the text, and give them their names: those that DuckDB gives.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> rows = parse("SELECT * FROM (VALUES (1, 'x')) AS v(a)").find(exp.Values)
    >>> [*of_values(rows).columns], rows.alias_column_names
    (['a', 'col1'], ['a', 'col1'])
    """
    first = node.expressions[0].expressions
    names = node.alias_column_names
    names += [f"col{number}" for number in range(len(names), len(first))]
    called = exp.TableAlias(
        this=exp.to_identifier(node.alias or "values"),
        columns=[exp.to_identifier(name, quoted=True) for name in names],
    )
    node.set("alias", called)
    kinds = (
        Kind(ARRAY, 1, listed=True) if isinstance(one, exp.Array) else Kind(SCALAR) for one in first
    )
    return Table(dict(zip(names, kinds, strict=False)), count=lambda: len(node.expressions))


def of_both(sql: str, place: Any, how: str, left: Table, right: Table) -> Table:
    """Return the columns of two queries together: those of the left, of classes only where both have the same.

    Raises
    ------
    InvalidQueryError
        If they have different numbers of columns.
    """
    sizes = [sum(name not in one.hidden for name in one.columns) for one in (left, right)]
    if sizes[0] != sizes[1]:
        raise mistake(sql, place, f"{how} joins {sizes[0]} columns with {sizes[1]}")
    columns = dict(left.columns)
    for (name, first), second in zip(left.columns.items(), right.columns.values(), strict=False):
        if first.classes != second.classes:
            columns[name] = replace(first, classes=None)
    return Table(columns, left.hidden, left.count)


def column_in(sql: str, column: Any, scopes: Sequence[Tables]) -> tuple[str, Table, str] | None:
    """Return the alias and the table of a column, and its name there; None if no table has it.

    Raises
    ------
    InvalidQueryError
        If several tables of one SELECT have it.
    """
    parts = [part.name for part in column.parts]
    for tables in scopes:
        found = tables.having(parts)
        seen = [one for one in found if one[0] not in tables.unseen]
        if len(seen) > 1 and seen[0][2].casefold() not in tables.merged:
            names = ", ".join(f"{alias}.{name_of(column)}" for alias, _, _ in seen)
            raise mistake(
                sql, column, f"column {name_of(column)!r} is in several tables", f"write {names}"
            )
        if found:
            return (seen or found)[0]
    return None


def with_table(sql: str, scopes: Sequence[Tables], column: Any) -> Any:
    """Return a column with the alias of its table, as it is if that has none, and None if no table has it.

    Raises
    ------
    InvalidQueryError
        If several tables of one SELECT have it.
    """
    found = column_in(sql, column, scopes)
    if found is None or not found[0] or found[2].casefold() in scopes[0].merged:
        return None if found is None else column
    return exp.column(
        exp.to_identifier(found[2], quoted=True), table=exp.to_identifier(found[0], quoted=True)
    )


def sid_beside(sql: str, column: Any, tables: Tables) -> Any:
    """Return the column with the numbers of the samples that a column is of, None if its table has none."""
    found = column_in(sql, column, [tables])
    if found is None or SID not in found[1].hidden:
        return None
    return exp.column(SID, table=exp.to_identifier(found[0], quoted=True))


def check_product(sql: str, select: Any, tables: Tables) -> None:
    """Refuse tables without a condition between them whose product is large.

    Raises
    ------
    InvalidQueryError
        If they would make more than `MOST_PRODUCT` rows.
    """
    joins = select.args.get("joins") or []
    if len(tables) < 2:
        return
    where = select.args.get("where")
    conditions = [join.args["on"] for join in joins if join.args.get("on") is not None]
    conditions += [] if where is None else [where.this]
    parts = [
        part
        for one in conditions
        for part in (one.flatten() if isinstance(one, exp.And) else [one])
    ]
    groups = [{alias} for alias in tables]
    for link in [*(_aliases(sql, part, tables) for part in parts), *_by_name(tables, joins)]:
        together = [group for group in groups if group & link]
        if len(together) > 1:
            groups = [group for group in groups if not group & link] + [set().union(*together)]
    if len(groups) < 2:
        return
    rows = {alias: table.count() if table.count else None for alias, table in tables.items()}
    most = [max(rows[alias] or 1 for alias in group) for group in groups]
    if math.prod(most) > MOST_PRODUCT:
        shown = " x ".join(f"{n:,}" for n in most)
        raise mistake(
            sql, joins[0] if joins else select,
            f"tables without a condition between them make {shown} rows, and at most {MOST_PRODUCT:,} are made",
            "join them by ON or USING",
        )  # fmt: skip


def _by_name(tables: Tables, joins: Sequence[Any]) -> Iterator[set[str]]:
    """Yield the tables that USING joins."""
    aliases = [*tables]
    for number, join in enumerate(joins, 1):
        names = [one.name for one in join.args.get("using") or ()]
        if names:
            before = (alias for alias in aliases[:number] if tables[alias].find(names[0]))
            yield {next(before, aliases[0]), aliases[number]}


def _aliases(sql: str, condition: Any, tables: Tables) -> set[str]:
    """Return the tables that a condition names, itself and not in a query inside it."""
    out = set()
    for one in own_nodes(condition):
        if isinstance(one, exp.Column):
            try:
                found = column_in(sql, one, [tables])
            except InvalidQueryError:  # it is said later
                continue
            if found is not None:
                out.add(found[0])
    return out
