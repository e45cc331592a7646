"""SQL conditions on samples: the text is parsed, and becomes an expression of Arrow.

Only what is named here is taken; anything else is an error that says where it is. Names are found as Spark finds
them, without regard to case.
"""

from __future__ import annotations

import decimal
import logging
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Tokenizer as BaseTokenizer

from tensorlake_spark.datasets.samples import comparisons
from tensorlake_spark.datasets.samples.comparisons import NEGATED, Condition
from tensorlake_spark.datasets.samples.operands import (
    Operand,
    RefusedError,
    as_moment,
    family_of,
    literal,
)
from tensorlake_spark.datasets.samples.sample_selection import Beside, Parts, Where
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.errors import InvalidOptionError, check_text, did_you_mean

ALLOWED = (
    "columns and their fields, AND OR NOT, = <> < <= > >=, IN, BETWEEN, LIKE, IS [NOT] NULL, + - * / %, "
    "numbers, 'texts', TRUE, FALSE, NULL, DATE '2026-01-31' and TIMESTAMP '2026-01-31 12:00:00'"
)

MOST_CHARACTERS, MOST_NESTED = 1 << 20, 100
"""A longer text, or one with more brackets in each other, is refused."""

MOST_OPERATIONS = 500
"""More comparisons and operations are refused: Arrow makes a chain of them, and goes down it by recursion."""

logging.getLogger("sqlglot").addHandler(logging.NullHandler())


class SampleConditions(Dialect):
    """SQL as it is here: names may stand in backticks as in Spark, or in double quotes as in the standard."""

    class Tokenizer(BaseTokenizer):
        """Its tokens."""

        IDENTIFIERS: ClassVar[Any] = ['"', "`"]


_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
}  # fmt: skip


def parse_where(text: Any, schema: SampleSchema, table: pa.Schema) -> Where:
    """Return what a text of SQL says about samples.

    Parameters
    ----------
    text : str
        A condition, such as ``image.height > 512 AND label = 'cat'``. A group is written as ``training.label`` or
        ``"training/label"``; names in double quotes or backticks may be words of SQL.
    schema : SampleSchema
        The types of the columns: names of a ClassLabel are compared as its numbers.
    table : pyarrow.Schema
        The columns as they are stored.

    Raises
    ------
    InvalidOptionError
        If it is no such condition; the message names the place, what is near, and what is allowed.

    Examples
    --------
    >>> schema = SampleSchema({"training/label": "int32"})
    >>> parse_where("training.label BETWEEN 1 AND 3", schema, schema.to_arrow()).needed
    (('training', 'label'),)
    """
    if not isinstance(text, str):
        raise InvalidOptionError(
            f"where={text!r:.80} is {type(text).__name__}; it is a text of SQL, such as \"label = 'cat'\""
        )
    check_text(text, "where")
    _check_size(text)
    reader = _Reader(text, schema, table)
    try:
        # As a condition: a column may be called "show", which begins a statement.
        tree = sqlglot.parse_one(text, into=exp.Condition, dialect=SampleConditions)
        found, beside = reader.read(tree)
    except ParseError as error:
        raise InvalidOptionError(_unparsed(text, error)) from error
    except SqlglotError as error:
        raise InvalidOptionError(
            f"where={text!r:.200} is not a condition of SQL: {error!s:.200}; it may have {ALLOWED}"
        ) from error
    except RecursionError as error:
        raise InvalidOptionError(
            f"where={text[:80]!r}... has too many brackets or NOT in each other"
        ) from error
    return Where(text, *found, tuple(dict.fromkeys(reader.needed)), beside)


def _check_size(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise InvalidOptionError(
            f"where has {len(text)} characters, at most {MOST_CHARACTERS} are taken; give the sids themselves"
        )
    try:
        tokens = SampleConditions().tokenize(text)
    except SqlglotError as error:
        raise InvalidOptionError(
            f"where={text!r:.200} is not a condition of SQL: {error!s:.200}; is there a quote without its end?"
        ) from error
    if not tokens:
        raise InvalidOptionError(f"where is empty; it is a condition of {ALLOWED}")
    kinds = BaseTokenizer.SINGLE_TOKENS
    opening, closing = {kinds["("], kinds["["]}, {kinds[")"], kinds["]"]}
    turning = {BaseTokenizer.KEYWORDS["NOT"], kinds["-"]}
    depth, run = 0, 0
    for token in tokens:
        depth += (token.token_type in opening) - (token.token_type in closing)
        run = run + 1 if token.token_type in turning else 0
        if depth > MOST_NESTED or run > MOST_NESTED:
            raise InvalidOptionError(
                f"where={text[:80]!r}... has more than {MOST_NESTED} brackets or NOT in each other, at character "
                f"{token.start + 1}"
            )


def _unparsed(text: str, error: ParseError) -> str:
    said: dict[str, Any] = dict(error.errors[0]) if error.errors else {}
    start = len(str(said.get("start_context") or ""))
    place = (
        f" near {said['highlight']!r:.80}, character {start + 1}" if said.get("highlight") else ""
    )
    return f"where={text!r:.200} is not a condition of SQL{place}; it may have {ALLOWED}"


class _Reader:
    """Turns a tree of sqlglot into expressions, and notes the columns that it meets."""

    def __init__(self, text: str, schema: SampleSchema, table: pa.Schema) -> None:
        self.text = text
        self.schema = schema
        self.table = table
        self.needed: list[Parts] = []
        self.apart: dict[str, tuple[str, Parts]] = {}  # that are asked, see `Beside`
        self.operations = 0

    def read(self, tree: Any) -> tuple[Condition, Beside | None]:
        """Return what a tree asks of the table alone, and with AND what it asks of columns that are kept apart."""
        alone: list[Condition] = []
        others: list[Condition] = []
        needed: tuple[list[Parts], list[Parts]] = [], []
        for part in parts_of(tree, exp.And):
            self.needed, known = [], len(self.apart)
            condition = self.condition(part, False)
            is_apart = len(self.apart) > known
            (others if is_apart else alone).append(condition)
            needed[is_apart].extend(self.needed)
        self.needed = needed[0]
        near = comparisons.joined(alone, True) if alone else Condition.of(pc.scalar(True))
        if not others:
            return near, None
        exact = comparisons.joined(others, True).exact
        return near, Beside(exact, tuple(dict.fromkeys(needed[1])), self.apart)

    # ------------------------------------------------------------------ conditions

    def condition(self, node: Any, negated: bool) -> Condition:
        """Return that a node is true, or with `negated` that it is false: null is neither.

        NOT is carried down to the comparisons, so that below it null and false need not be told apart.
        """
        while isinstance(node, (exp.Not, exp.Paren)):
            negated = negated is not isinstance(node, exp.Not)
            node = node.this
        if isinstance(node, (exp.And, exp.Or)):
            every = isinstance(node, exp.And) is not negated
            parts = [self.condition(part, negated) for part in parts_of(node, type(node))]
            return comparisons.joined(parts, every)
        try:
            return self._leaf(node, negated)
        except RefusedError as error:
            raise self._error(node, str(error)) from error

    def _leaf(self, node: Any, negated: bool) -> Condition:
        self._count(node)
        kind = type(node)
        if kind in _COMPARISONS:
            op = _COMPARISONS[kind]
            left, right = self.operand(node.this), self.operand(node.expression)
            return comparisons.compared(NEGATED[op] if negated else op, left, right)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            this = self.operand(node.this)
            ends = [(">=", node.args["low"]), ("<=", node.args["high"])]
            both = [
                comparisons.compared(NEGATED[op] if negated else op, this, self.operand(end))
                for op, end in ends
            ]
            return comparisons.joined(both, every=not negated)
        if isinstance(node, exp.In) and self._is_list(node):
            values = [self.operand(value) for value in node.expressions]
            for value in values:
                if not value.is_literal:
                    self._count(node)
            return comparisons.among(self.operand(node.this), values, negated)
        if isinstance(node, exp.Is):
            return self._is(node, negated)
        if isinstance(node, exp.Like):
            negated = negated is not bool(node.args.get("negate"))
            return comparisons.alike(
                self.operand(node.this), self.operand(node.expression), negated
            )
        operand = self.operand(node)
        if operand.family not in ("bool", "null"):
            raise self._error(node, f"{operand.text} is neither true nor false; compare it")
        return comparisons.compared("=", operand, literal(not negated, "TRUE"))

    def _count(self, node: Any) -> None:
        self.operations += 1
        if self.operations > MOST_OPERATIONS:
            raise self._error(
                node,
                f"it is one of more than {MOST_OPERATIONS} comparisons and operations; IN takes long lists",
            )

    def _is_list(self, node: exp.In) -> bool:
        others = ("query", "unnest", "field", "is_global")
        return bool(node.expressions) and not any(node.args.get(name) for name in others)

    def _is(self, node: exp.Is, negated: bool) -> Condition:
        value = node.expression
        if isinstance(value, exp.Null):
            return comparisons.null(self.operand(node.this, whole=True), negated)
        if isinstance(value, exp.Boolean):
            this = self.operand(node.this)
            wanted = literal(bool(value.this), value.sql())
            if not negated:
                return comparisons.compared("=", this, wanted)
            other = comparisons.compared("<>", this, wanted)
            return comparisons.joined([other, comparisons.null(this, False)], every=False)
        raise self._error(node, "IS takes NULL, TRUE or FALSE")

    # ------------------------------------------------------------------ operands

    def operand(self, node: Any, whole: bool = False) -> Operand:
        """Return what a node stands for in a comparison; with `whole` it may be any column."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, (exp.Column, exp.Dot)):
            return self._column(node, whole)
        if isinstance(node, exp.Literal):
            value = node.this if node.is_string else decimal.Decimal(node.this)
            return literal(value, repr(value) if node.is_string else node.this)
        if isinstance(node, exp.Boolean):
            return literal(bool(node.this), node.sql())
        if isinstance(node, exp.Null):
            return literal(None, "NULL")
        if isinstance(node, exp.Neg):
            zero = literal(decimal.Decimal(0), "0")
            return comparisons.computed("-", zero, self.operand(node.this))
        if type(node) in _ARITHMETIC:
            self._count(node)
            op = _ARITHMETIC[type(node)]
            left, right = self.operand(node.this), self.operand(node.expression)
            return comparisons.computed(op, left, right)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
            return self._moment(node)
        raise self._error(node, "it is not taken here")

    def _moment(self, node: exp.Cast) -> Operand:
        wanted = node.to.sql().upper()
        moment = as_moment(node.this.this, _said(node))
        if wanted == "DATE":
            return literal(moment.date(), _said(node))
        if wanted in ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "DATETIME"):
            return literal(moment, _said(node))
        raise self._error(node, f"{wanted} is not taken here, only DATE and TIMESTAMP")

    def _column(self, node: Any, whole: bool) -> Operand:
        parts = self._found(node)
        kind = self.table.field(parts[0]).type
        for part in parts[1:]:
            kind = kind.field(part).type
        name = "/".join(parts)
        of = self.schema.get(name)
        family = family_of(kind)
        if family == "other" and not whole:
            fields = [inner.name for inner in kind] if pa.types.is_struct(kind) else []
            fields = [f for f in fields if family_of(kind.field(f).type) != "other"]
            some = f"; its fields {', '.join(fields)} can be" if fields else ""
            what = f"column {name!r} is {of or kind} and cannot be compared{some}; IS NULL can be asked"
            raise self._error(node, what)
        least = _least(kind)
        apart = next((n for n in range(1, len(parts)) if self._is_apart(parts[:n])), None)
        if apart is None and not self._is_apart(parts):
            self.needed.append((*parts, *least))
            return Operand(".".join(parts), family, pc.field(*parts), kind, of)
        at = apart or len(parts)
        alias = f"apart {len(self.apart)}"
        self.apart[alias] = "/".join(parts[:at]), (*parts[at:], *least)
        return Operand(".".join(parts), family, pc.field(alias, *parts[at:]), kind, of)

    def _is_apart(self, parts: Parts) -> bool:
        kind = self.schema.get("/".join(parts))
        return kind is not None and kind.apart

    def _found(self, node: Any) -> Parts:
        """Return the names of the column, or the field, that a node names."""
        written = [part for one in _identifiers(node) for part in one.this.split("/")]
        fields = list(self.table)
        found: list[str] = []
        for part in written:
            by_name = {field.name.casefold(): field for field in fields}
            field = by_name.get(part.casefold())
            if field is None:
                where_ = (
                    f"column {'/'.join(found)!r} has no field" if found else "there is no column"
                )
                names = [field.name for field in fields]
                have = f"; there are {', '.join(names[:30])}" if names else ", it has no fields"
                raise self._error(node, f"{where_} {part!r:.80}{did_you_mean(part, names)}{have}")
            found.append(field.name)
            fields = list(field.type) if pa.types.is_struct(field.type) else []
        return tuple(found)

    def _error(self, node: Any, why: str) -> InvalidOptionError:
        starts = [one.meta["start"] for one in node.find_all(exp.Identifier) if "start" in one.meta]
        place = f" at character {min(starts) + 1}" if starts else ""
        return InvalidOptionError(
            f"where: {_said(node)!r:.200}{place}: {why}. A condition may have {ALLOWED}"
        )


def parts_of(node: Any, kind: type[exp.Expression]) -> Iterator[Any]:
    """Yield the parts of a chain of AND, or of OR, in order."""
    todo = [node]
    while todo:
        one = todo.pop()
        inner = one
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if type(inner) is kind:
            todo += [inner.expression, inner.this]
        else:
            yield one


def _identifiers(node: Any) -> list[Any]:
    parts: list[Any] = []
    while isinstance(node, exp.Dot):
        parts.append(node.expression)
        node = node.this
    if not isinstance(node, exp.Column):
        raise RefusedError(f"{_said(node)} is no column")
    named = [*node.parts, *reversed(parts)]
    if not all(isinstance(part, exp.Identifier) for part in named):
        raise RefusedError(f"{_said(node)} is no column")
    return named


def _least(kind: pa.DataType) -> Parts:
    """Return the names down to a small leaf of a struct: whether the struct is null can be told from any."""
    while pa.types.is_struct(kind) and kind.num_fields:
        small = [field for field in kind if family_of(field.type) != "other"]
        if small:
            return (small[0].name,)
        field = kind.field(0)
        return (field.name, *_least(field.type))
    return ()


def _said(node: Any) -> str:
    """Return what a node says, for messages."""
    try:
        return str(node.sql(dialect=SampleConditions))
    except (SqlglotError, RecursionError):
        return type(node).__name__
