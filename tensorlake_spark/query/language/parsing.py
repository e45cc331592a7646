"""From the text of a query to its tree, which has nothing that queries may not do."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined,unused-ignore]

from tensorlake_spark.errors import InvalidQueryError, check_text
from tensorlake_spark.query.functions.registry import FUNCTIONS
from tensorlake_spark.query.language.clauses import Arrange, Expand, SampleBy, Ungroup
from tensorlake_spark.query.language.dialect import CLAUSE_TOKENS, TensorDialect
from tensorlake_spark.query.language.harmless import check
from tensorlake_spark.query.language.mistakes import mistake

MOST_CHARACTERS, MOST_TOKENS = 1 << 20, 50_000
"""A longer text is refused; long lists of values are parameters."""

MOST_NESTED, MOST_DEEP, MOST_TYPES = 24, 100, 4
"""More brackets in each other, operations of operations, or types of types are refused: they are walked by recursion,
and sqlglot reads types in each other many times."""

_NO_OPERATIONS = (exp.Query, exp.Alias, exp.Column, exp.Paren)
"""What is around operations, and in them."""

_SHORT, _KNOWN = 4096, 64
"""Trees of so many texts of at most so many characters are kept."""

logging.getLogger("sqlglot").addHandler(logging.NullHandler())

_BEGINS = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_TURNING = {TokenType.NOT, *(TensorDialect.Tokenizer.SINGLE_TOKENS[sign] for sign in "-~+")}


def parse(sql: Any) -> Any:
    """Return the tree of a query.

    Parameters
    ----------
    sql : str
        One SELECT, or several with UNION, INTERSECT or EXCEPT; WITH may stand before it.

    Returns
    -------
    sqlglot.exp.Query
        Its nodes say where they stand, in ``meta["start"]`` and ``meta["end"]``.

    Raises
    ------
    InvalidQueryError
        If it is no query, or has what queries may not have: it says what, and where.

    Examples
    --------
    >>> tree = parse("SELECT images[100:500, ::-1] AS crop FROM dataset WHERE label = :label")
    >>> tree.named_selects
    ['crop']
    >>> parse("COPY dataset TO 'x.csv'")
    Traceback (most recent call last):
    tensorlake_spark.errors.InvalidQueryError: a query begins with SELECT or WITH, not COPY (line 1, column 1)
    COPY dataset TO 'x.csv'
    ^^^^
    """
    if not isinstance(sql, str):
        raise InvalidQueryError(f"sql={sql!r:.80} is {type(sql).__name__}; a query is a text")
    check_text(sql, "the query", InvalidQueryError)
    if len(sql) > MOST_CHARACTERS:
        raise InvalidQueryError(
            f"the query has {len(sql)} characters, at most {MOST_CHARACTERS} are taken; give long lists as parameters"
        )
    if len(sql) > _SHORT:
        return _parsed(sql)
    users = tuple(one.name for one in FUNCTIONS if one.users)
    return _known(sql, users).copy()  # planning changes it


@lru_cache(maxsize=_KNOWN)
def _known(sql: str, users: tuple[str, ...]) -> Any:
    """Return the tree of a text that is asked again: it depends on what functions users have given, too."""
    return _parsed(sql)


def _parsed(sql: str) -> Any:
    dialect = TensorDialect()
    try:
        tokens = _checked(sql, dialect.tokenize(sql))
        trees = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, sql)
        tree = trees[0] if trees else None
        if tree is None or not isinstance(tree, exp.Query):
            raise mistake(sql, tree, "this is not a query", "a query begins with SELECT or WITH")
        _check_clauses(sql, tokens, tree)
        _with_limits(sql, tree)
        _check_depth(sql, tree)
        check(sql, tree)
        return tree
    except InvalidQueryError:
        raise
    except ParseError as error:
        raise _unparsed(sql, error) from error
    except SqlglotError as error:
        raise InvalidQueryError(
            f"the query cannot be read: {error!s:.200}; is there a quote without its end?"
        ) from error
    except RecursionError as error:
        raise InvalidQueryError(
            "the query has too many brackets in each other; take WITH"
        ) from error
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        # sqlglot fails so where it knows a function, and its arguments are not as it expects.
        raise InvalidQueryError(
            f"the query cannot be read: {type(error).__name__}: {error!s:.100}; are all arguments there?"
        ) from error


def _checked(sql: str, tokens: list[Any]) -> list[Any]:
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise InvalidQueryError("the query is empty; it begins with SELECT or WITH")
    if len(tokens) > MOST_TOKENS:
        raise InvalidQueryError(
            f"the query has {len(tokens)} words, at most {MOST_TOKENS} are taken; give long lists as parameters"
        )
    first = tokens[0]
    if first.token_type not in _BEGINS:
        word = first.text.split(maxsplit=1)[0].upper() if first.text.strip() else first.text
        raise mistake(sql, _span(first), f"a query begins with SELECT or WITH, not {word:.40}")
    run = 0
    inside: list[bool] = []  # for each open bracket, whether the name of a type stands before it
    before = first
    for token in tokens:
        kind = token.token_type
        if kind == TokenType.SEMICOLON:
            raise mistake(
                sql,
                _span(token),
                "a query is one statement",
                "leave out what follows the semicolon",
            )
        if kind == TokenType.CARET:
            raise mistake(
                sql, _span(token), "^ is not taken in a query: it is a power in DuckDB, and xor in Spark and NumPy",
                "write power(a, b) or xor(a, b)",
            )  # fmt: skip
        if kind in _OPENING:
            inside.append(before.token_type in TensorDialect.Parser.TYPE_TOKENS)
        elif kind in _CLOSING and inside:
            inside.pop()
        is_joined = before.token_type == TokenType.NUMBER and token.start == before.end + 1
        if is_joined and kind == TokenType.VAR:  # as in 1_000: the rest would be an alias
            span = before.start, token.end + 1
            raise mistake(sql, span, f"{sql[slice(*span)]:.40} is not a number")
        before = token
        run = run + 1 if kind in _TURNING else 0
        if len(inside) > MOST_NESTED or run > MOST_NESTED or sum(inside) > MOST_TYPES:
            raise mistake(
                sql, _span(token), f"more than {MOST_NESTED} brackets or signs are in each other", "take WITH"
            )  # fmt: skip
    return tokens


def _span(token: Any) -> tuple[int, int]:
    return token.start, token.end + 1


def _check_clauses(sql: str, tokens: list[Any], tree: Any) -> None:
    """Refuse a clause of TQL's that stands twice: versions of sqlglot before 28 forget the first."""
    written = [token for token in tokens if token.token_type in CLAUSE_TOKENS]
    if written and len(written) > sum(1 for _ in tree.find_all(Arrange, Expand, SampleBy, Ungroup)):
        raise mistake(sql, _span(written[-1]), "the clause stands twice")


def _with_limits(sql: str, tree: Any) -> None:
    """Let FETCH FIRST 3 ROWS ONLY be LIMIT 3."""
    for node in list(tree.find_all(exp.Fetch)):
        said = node.args.get("limit_options") or node
        if any(said.args.get(key) for key in ("percent", "with_ties")):
            raise mistake(
                sql, node, "FETCH takes a number of rows, and no PERCENT or TIES", "write LIMIT 10"
            )
        node.replace(exp.Limit(expression=node.args.get("count") or exp.Literal.number(1)))


def _check_depth(sql: str, tree: Any) -> None:
    """Refuse what is too deep for recursion; chains of AND and OR are flat, and brackets have a bound of their own."""
    todo = [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        if depth > MOST_DEEP:
            raise mistake(
                sql, node, f"more than {MOST_DEEP} operations are in each other",
                "put parts of them into brackets, as in (a + b) + (c + d), or take WITH, or IN",
            )  # fmt: skip
        for child in node.iter_expressions():
            same = isinstance(node, exp.Connector) and type(child) is type(node)
            todo.append((child, depth + (not same and not isinstance(node, _NO_OPERATIONS))))


def _unparsed(sql: str, error: ParseError) -> InvalidQueryError:
    said: dict[str, Any] = dict(error.errors[0]) if error.errors else {}
    word = str(said.get("highlight") or "")
    what = _plain(str(said.get("description") or error).split("\n", maxsplit=1)[0].rstrip("."))
    place = _place(sql, said, word)
    shown = f" at {word[:60]!r}" if word else ""
    return mistake(sql, place, f"this is not a query: {what:.200}{shown}")


def _plain(said: str) -> str:
    """Return what sqlglot says without the names of its classes."""
    missing = re.search(r"missing for <class '[\w.]*\.(\w+)'>", said)
    if missing:
        return f"something is missing in {missing[1].upper()}"
    return re.sub(r" but got <Token.*", "", said)


def _place(sql: str, said: dict[str, Any], word: str) -> tuple[int, int] | None:
    before = str(said.get("start_context") or "")
    found = sql.find(before + word) if before or word else -1
    if found < 0:
        return None
    return found + len(before), found + len(before) + max(1, len(word))
