"""A mistake in the text of a query, shown where it is: the line, the column, and a caret under the word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from sqlglot import exp

from tensorlake_spark.errors import InvalidQueryError, did_you_mean

WIDEST = 120
"""So many characters of a line are shown."""


NOT_SELECTED = (
    "ORDER BY names {!r:.80}, and SELECT DISTINCT does not select it",
    "select it too, or leave out DISTINCT",
)
"""What is wrong with such an order, with the name of a column in it, and what can be done."""

NO_FILTER = (
    "{} of tensors takes no FILTER",
    "write its condition in WHERE, or in what picks, as in arg_max(x, CASE WHEN label > 0 THEN score END)",
)
"""What is wrong with the FILTER of an aggregate, with its name, and what can be done."""


def numbered_item(sql: str, key: Any, said: str, items: Sequence[Any]) -> Any:
    """Return the item of a SELECT whose number a key of one of its clauses is, None if the key is no number.

    Raises
    ------
    InvalidQueryError
        If there is no such item; `said` is what the clause is called.

    Examples
    --------
    >>> from sqlglot import exp
    >>> numbered_item("", exp.Literal.number(2), "ORDER BY", ["a", "b"])
    'b'
    """
    if not isinstance(key, exp.Literal) or key.is_string or not key.name.isdigit():
        return None
    if not 1 <= int(key.name) <= len(items):
        raise mistake(sql, key, f"{said} {key.name} names no column", f"there are {len(items)}")
    return items[int(key.name) - 1]


def mistake(sql: str, place: Any, message: str, remedy: str = "") -> InvalidQueryError:
    """Return the error for a mistake in a query.

    Parameters
    ----------
    sql : str
        The whole text.
    place : sqlglot expression, int, or None
        The node that is wrong, or the position of its first character. None, or a node that does not know where it
        stands, shows no place.
    message : str
        What is wrong.
    remedy : str
        What can be done.

    Returns
    -------
    InvalidQueryError
        To be raised.

    Examples
    --------
    >>> print(mistake("SELECT imges", 7, "there is no column 'imges'", "did you mean 'images'?"))
    there is no column 'imges'; did you mean 'images'? (line 1, column 8)
    SELECT imges
           ^^^^^
    """
    text = message
    if remedy:
        text += f"; {remedy.removeprefix('; ')}"
    span = place if isinstance(place, tuple) else span_of(place)
    if span is None or not 0 <= span[0] <= len(sql):
        return InvalidQueryError(text)
    start, end = span
    line = sql.count("\n", 0, start) + 1
    first = sql.rfind("\n", 0, start) + 1
    last = sql.find("\n", start)
    shown = sql[first : len(sql) if last < 0 else last]
    column = start - first
    if isinstance(place, int):
        end = start + _word(sql[start:])
    width = max(1, min(end - start, len(shown) - column))
    left = max(0, column - WIDEST // 2)
    shown = shown[left : left + WIDEST]
    width = min(width, max(1, len(shown) - (column - left)))
    caret = "".join("\t" if c == "\t" else " " for c in shown[: column - left]) + "^" * width
    return InvalidQueryError(f"{text} (line {line}, column {column + 1})\n{shown}\n{caret}")


def no_value(sql: str, node: Any, parameters: Iterable[str]) -> InvalidQueryError:
    """Return the error for a parameter that nobody gave.

    Parameters
    ----------
    sql : str
        The whole text.
    node : sqlglot expression
        The parameter.
    parameters : iterable of str
        Those that were given.

    Examples
    --------
    >>> from sqlglot import exp
    >>> print(no_value("", exp.Placeholder(this="most"), []))
    the parameter :most has no value; give it: parameters={'most': ...}
    """
    near = did_you_mean(node.name, parameters)
    remedy = near or f"give it: parameters={{{node.name!r}: ...}}"
    return mistake(sql, node, f"the parameter :{node.name} has no value", remedy)


def no_table(
    sql: str, place: Any, table: str, tables: Sequence[str], inside: Sequence[str]
) -> InvalidQueryError:
    """Return the error for ``table.*`` where there is no such table.

    Parameters
    ----------
    sql : str
        The whole text.
    place : sqlglot expression
        The item.
    table : str
        What it names.
    tables : sequence of str
        Those that are there.
    inside : sequence of str
        Columns of the group of that name.

    Examples
    --------
    >>> print(no_table("", None, "g", ["t"], ["g/a", "g/b"]))
    'g' is a group of columns, not a table; write g.a, g.b
    """
    if not inside:
        return mistake(sql, place, f"there is no table {table!r:.80}", did_you_mean(table, tables))
    some = ", ".join(name.replace("/", ".") for name in inside[:20])
    return mistake(sql, place, f"{table!r:.80} is a group of columns, not a table", f"write {some}")


def place_named(sql: str, said: str) -> int | None:
    """Return where a text has the first word that a message quotes, None if it is not there just once.

    Parameters
    ----------
    sql : str
        The whole text.
    said : str
        What an engine says of it.

    Examples
    --------
    >>> place_named("SELECT a FROM t", 'column "a" must appear in GROUP BY')
    7
    """
    named = re.findall(r"[\"'](\w+)[\"' (]", f"{said} ")
    places = [one.start() for word in named[:1] for one in re.finditer(rf"(?i)\b{word}\b", sql)]
    return places[0] if len(places) == 1 else None


def check_given_names(sql: str, place: Any, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse names that are given to the columns of a table, as in ``FROM t AS s(a, b)``, if two would be alike.

    Parameters
    ----------
    sql : str
        The whole text.
    place : sqlglot expression
        The table.
    names : sequence of str
        What its first columns are called from here on.
    known : sequence of str
        What all its columns were called.

    Raises
    ------
    InvalidQueryError
        If these are too many, or two columns would have one name.

    Examples
    --------
    >>> check_given_names("", None, ["a"], ["x", "y"])
    >>> check_given_names("", None, ["y"], ["x", "y"])
    Traceback (most recent call last):
    tensorlake_spark.errors.InvalidQueryError: two columns would be called 'y'; give one another name
    """
    if len(names) > len(known):
        raise mistake(sql, place, f"{len(names)} names are given to {len(known)} columns")
    seen: set[str] = set()
    for name in [*names, *known[len(names) :]]:
        if name.casefold() in seen:
            raise mistake(
                sql, place, f"two columns would be called {name!r:.80}", "give one another name"
            )
        seen.add(name.casefold())


def span_of(place: Any) -> tuple[int, int] | None:
    """Return where a node begins and ends in the text, or None if it does not say.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> span_of(parse("SELECT a FROM t").selects[0])
    (7, 8)
    """
    if place is None:
        return None
    if isinstance(place, int):
        return place, place + 1
    own = _meta(place)
    if own is not None:
        return own
    spans = [span for node in place.walk() if (span := _meta(node)) is not None]
    return min(spans) if spans else None


def _meta(node: Any) -> tuple[int, int] | None:
    said = node.meta
    return (said["start"], said["end"] + 1) if "start" in said and "end" in said else None


def _word(rest: str) -> int:
    length = 0
    while length < len(rest) and (rest[length].isalnum() or rest[length] in "_."):
        length += 1
    return max(1, length)
