"""SQL as queries on tensors have it: a dialect of sqlglot.

It adds NumPy's slices, array literals, TQL's clauses, versions of tables, and parameters by name. What it takes and
other dialects have too, such as the names of functions, is decided in `harmless`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sqlglot.generator import Generator as BaseGenerator
from sqlglot.parser import Parser as BaseParser
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined,unused-ignore]
from sqlglot.tokens import Tokenizer as BaseTokenizer

from tensorlake_spark.query.functions.registry import find
from tensorlake_spark.query.functions.tree_names import PRINTED, TYPED
from tensorlake_spark.query.language.clauses import (
    ARRANGE,
    CLAUSES,
    EXPAND,
    SAMPLE_BY,
    UNGROUP,
    Arrange,
    Expand,
    SampleBy,
    Ungroup,
)

ELLIPSIS, NEWAXIS = "...", "newaxis"
"""What a `Var` in a bracket says that is no name."""

# Tokens of Hive's and Oracle's clauses, which queries do not have: TQL's clauses take their places.
_CLAUSES = {
    "ARRANGE BY": TokenType.CLUSTER_BY,
    "SAMPLE BY": TokenType.DISTRIBUTE_BY,
    "EXPAND BY": TokenType.SORT_BY,
    "UNGROUP BY": TokenType.CONNECT_BY,
}
CLAUSE_TOKENS = frozenset(_CLAUSES.values())
"""Each begins one of TQL's clauses."""

_GONE = {"CLUSTER BY", "DISTRIBUTE BY", "SORT BY", "CONNECT BY", "START WITH"}
_BEFORE_VALUES = (TokenType.SELECT, TokenType.L_PAREN, TokenType.COMMA, TokenType.L_BRACKET)
_WORDS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.CASE}
_OPENING = {TokenType.L_BRACKET, TokenType.L_PAREN, TokenType.L_BRACE}
_CLOSING = {TokenType.R_BRACKET, TokenType.R_PAREN, TokenType.R_BRACE}


class TensorDialect(Dialect):
    """The dialect; sqlglot takes it wherever it takes a dialect.

    Examples
    --------
    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT x[::-1, ..., newaxis] FROM t ARRANGE BY label", dialect=TensorDialect)
    >>> tree.sql(dialect=TensorDialect)
    'SELECT x[::-1, ..., newaxis] FROM t ARRANGE BY label'
    """

    NULL_ORDERING = "nulls_are_last"
    CONCAT_WS_COALESCE = True  # it passes nulls by, as in DuckDB and Spark

    def tokenize(self, sql: str, *args: Any, **options: Any) -> list[Token]:
        """Return the tokens of a text.

        ``::`` right inside a bracket is two colons, not a cast; ``SELECT all(`` calls the function `all`.
        """
        return _parted(super().tokenize(sql, *args, **options))

    class Tokenizer(BaseTokenizer):
        """Its tokens."""

        IDENTIFIERS: ClassVar[Any] = ['"', "`"]
        SINGLE_TOKENS: ClassVar[Any] = {**BaseTokenizer.SINGLE_TOKENS, "$": TokenType.PARAMETER}
        KEYWORDS: ClassVar[Any] = {
            **{text: kind for text, kind in BaseTokenizer.KEYWORDS.items() if text not in _GONE},
            **_CLAUSES,
        }

    class Parser(BaseParser):
        """Its grammar."""

        FUNCTIONS: ClassVar[Any] = {**BaseParser.FUNCTIONS, "XOR": lambda given: _xor(given)}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {
            name: parse
            for name, parse in BaseParser.NO_PAREN_FUNCTION_PARSERS.items()
            if name not in ("ANY", "CONNECT_BY_ROOT")
        }
        QUERY_MODIFIER_PARSERS: ClassVar[Any] = {
            **BaseParser.QUERY_MODIFIER_PARSERS,
            TokenType.CLUSTER_BY: lambda self: (ARRANGE, self._parse_list(Arrange)),
            TokenType.DISTRIBUTE_BY: lambda self: (SAMPLE_BY, self._parse_sample_by()),
            TokenType.SORT_BY: lambda self: (EXPAND, self._parse_expand()),
            TokenType.CONNECT_BY: lambda self: (UNGROUP, self._parse_list(Ungroup)),
        }
        # a > b IS NULL is (a > b) IS NULL, as in DuckDB; an older sqlglot has a > (b IS NULL), which `harmless` refuses
        IS_PREDICATE_PRECEDENCE: ClassVar[Any] = getattr(
            DuckDB.Parser, "IS_PREDICATE_PRECEDENCE", None
        )
        SET_OP_MODIFIERS: ClassVar[Any] = {*BaseParser.SET_OP_MODIFIERS, *CLAUSES}

        def _parse_list(self, kind: Any) -> Any:
            token = self._taken()
            return _placed(kind(expressions=self._parse_csv(self._parse_needed)), token)

        def _parse_sample_by(self) -> Any:
            token = self._taken()
            weight = self._parse_needed()
            replace = self._parse_switch("REPLACE")
            return _placed(SampleBy(this=weight, replace=replace), token)

        def _parse_expand(self) -> Any:
            token = self._taken()
            before = self._parse_needed()
            self._match(TokenType.COMMA)
            after = self._parse_needed()
            overlap = self._parse_switch("OVERLAP")
            return _placed(Expand(before=before, after=after, overlap=overlap), token)

        def _parse_needed(self) -> Any:
            found = self._parse_disjunction()
            if found is None:
                self.raise_error("An expression is missing")
            return found

        def _parse_switch(self, word: str) -> Any:
            if not self._match_text_seq(word):
                return None
            if self._match_text_seq("TRUE"):
                return exp.true()
            if not self._match_text_seq("FALSE"):
                self.raise_error(f"{word} takes TRUE or FALSE")
            return exp.false()

        def _taken(self) -> Any:
            token = self._curr
            self._advance()
            return token

        def _at(self, *kinds: TokenType) -> bool:
            token = self._curr
            return token is not None and token.token_type in kinds

        def _parse_version(self) -> Any:
            """Read ``VERSION 'tag'``, ``VERSION AS OF 5``, ``AS OF 'time'`` or ``TIMESTAMP AS OF 'time'``."""
            token, index = self._curr, self._index
            if token is None:
                return None
            word = token.text.upper()
            quoted = token.token_type == TokenType.IDENTIFIER
            if word not in ("VERSION", "AS", "TIMESTAMP") or quoted:
                return None
            if word != "AS":
                self._advance()
            of = bool(self._match_text_seq("AS", "OF"))
            value = self._parse_moment() if of or word == "VERSION" else None
            if value is None:
                self._retreat(index)
                return None
            kind = "VERSION" if word == "VERSION" else "TIMESTAMP"
            return _placed(exp.Version(this=kind, kind="AS OF", expression=value), token)

        def _parse_moment(self) -> Any:
            if self._at(TokenType.STRING, TokenType.NUMBER):
                return self._parse_primary()
            return self._parse_placeholder()

        def _parse_placeholder(self, *args: Any, **options: Any) -> Any:
            """Read ``:q`` or ``$q``."""
            token = self._curr
            if not self._at(TokenType.COLON, TokenType.PARAMETER):
                return super()._parse_placeholder(*args, **options)
            self._advance()
            name = self._curr
            joined = name is not None and name.start == token.end + 1
            quoted = self._at(TokenType.IDENTIFIER, TokenType.STRING)
            if not joined or quoted or not name.text.isidentifier():
                self._retreat(self._index - 1)
                return None
            self._advance()
            return _placed(exp.Placeholder(this=name.text), token, name)

        def _parse_function_call(
            self, functions: Any = None, anonymous: bool = False, *args: Any, **options: Any
        ) -> Any:
            """Take functions of tensors before sqlglot takes its own functions of the same names."""
            token = self._curr
            if token is not None and token.token_type != TokenType.IDENTIFIER:
                anonymous = anonymous or find(token.text) is not None
            found = super()._parse_function_call(functions, anonymous, *args, **options)
            inner = found.this if isinstance(found, exp.Window) else found
            if isinstance(inner, exp.Anonymous) and "start" not in inner.meta:
                _placed(inner, token)
            return found

        def _parse_type(self, *args: Any, **options: Any) -> Any:
            """Note that a CAST is written as ``DATE '2026-01-31'``, and where; ``::`` behind it takes its value."""
            token, text = self._curr, self._next
            found = super()._parse_type(*args, **options)
            if (
                text is None
                or text.token_type != TokenType.STRING
                or not isinstance(found, exp.Cast)
            ):
                return found
            inner, outer = found.this, None
            while isinstance(inner, exp.Cast):
                inner, outer = inner.this, inner
            if token.token_type not in self.TYPE_TOKENS or not isinstance(inner, exp.Literal):
                return found
            typed = _placed(exp.Cast(this=inner, to=found.args["to"]), token, text)
            typed.meta[TYPED] = True
            if outer is None:
                return typed
            outer.set("this", typed)
            return found.this.pop()

        def _parse_in(self, *args: Any, **options: Any) -> Any:
            """Take ``IN :list`` as ``IN (:list)``."""
            found = super()._parse_in(*args, **options)
            listed = found.args.get("field")
            if isinstance(listed, exp.Placeholder):
                found.set("field", None)
                found.set("expressions", [listed])
            return found

        def _parse_bracket(self, this: Any = None) -> Any:
            """Read an array literal, or what a tensor is indexed with."""
            if not self._at(TokenType.L_BRACKET):
                return super()._parse_bracket(this)
            token = self._taken()
            found: list[Any] = []
            while not self._match(TokenType.R_BRACKET):
                if found and not self._match(TokenType.COMMA):
                    self.raise_error("A ] or a comma is missing")
                if found and self._match(TokenType.R_BRACKET):
                    break
                found.append(self._parse_needed() if this is None else self._parse_item())
            if this is None:
                made: Any = exp.Array(expressions=found)
            else:
                made = exp.Bracket(this=this, expressions=found)
            return self._parse_bracket(_placed(made, token, self._prev))

        def _parse_item(self) -> Any:
            token = self._curr
            if self._at(TokenType.DOT):
                for _ in range(3):
                    if not self._match(TokenType.DOT):
                        self.raise_error("Three dots stand for the axes between")
                return exp.Var(this=ELLIPSIS)
            if token is not None and token.text.casefold() in ("newaxis", "none", "null"):
                following = self._next
                if following is not None and following.token_type in (
                    TokenType.COMMA,
                    TokenType.R_BRACKET,
                ):
                    self._advance()
                    return exp.Var(this=NEWAXIS)
            start = None if self._at(TokenType.COLON) else self._parse_needed()
            if not self._match(TokenType.COLON):
                return start
            ends = (TokenType.COLON, TokenType.COMMA, TokenType.R_BRACKET)
            stop = None if self._at(*ends) else self._parse_needed()
            step = None
            if self._match(TokenType.COLON) and not self._at(*ends):
                step = self._parse_needed()
            return exp.Slice(this=start, expression=stop, step=step)

    class Generator(BaseGenerator):
        """Its printed form."""

        TRANSFORMS: ClassVar[Any] = {
            **BaseGenerator.TRANSFORMS,
            **PRINTED,
            exp.Version: lambda self, e: (
                f"VERSION {self.sql(e, 'expression')}"
                if e.name == "VERSION"
                else f"AS OF {self.sql(e, 'expression')}"
            ),
            Arrange: lambda self, e: f"ARRANGE BY {self.expressions(e, flat=True)}",
            Ungroup: lambda self, e: f"UNGROUP BY {self.expressions(e, flat=True)}",
            SampleBy: lambda self, e: (
                f"SAMPLE BY {self.sql(e, 'this')}" + _switch_text(e, "replace")
            ),
            Expand: lambda self, e: (
                f"EXPAND BY {self.sql(e, 'before')}, {self.sql(e, 'after')}"
                + _switch_text(e, "overlap")
            ),
        }

        def query_modifiers(self, expression: Any, *sqls: str) -> str:
            """Print what stands behind a SELECT, with TQL's clauses at its end."""
            text = super().query_modifiers(expression, *sqls)
            for key in CLAUSES:
                clause = expression.args.get(key)
                if clause is not None:
                    text += f"{self.sep()}{self.sql(clause)}"
            return text


def _xor(given: list[Any]) -> Any:
    """Return ``xor(a, b)``: of bits, as in DuckDB and NumPy."""
    if len(given) != 2:
        raise ParseError("xor takes two numbers")
    left, right = given
    return exp.BitwiseXor(this=exp.paren(left, False), expression=exp.paren(right, False))


def _switch_text(node: Any, name: str) -> str:
    value = node.args.get(name)
    return "" if value is None else f" {name.upper()} {'TRUE' if value.this else 'FALSE'}"


def _placed(node: Any, first: Any, last: Any = None) -> Any:
    """Note in a node where it stands in the text."""
    last = last if last is not None else first
    node.meta.update(start=first.start, end=last.end, line=first.line, col=first.col)
    return node


def _parted(tokens: list[Token]) -> list[Token]:
    out: list[Token] = []
    inside: list[Any] = []
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            inside.append(kind)
        elif kind in _CLOSING and inside:
            inside.pop()
        last_two = [one.token_type for one in out[-2:]]
        is_all = kind == TokenType.L_PAREN and last_two[1:] == [TokenType.ALL]
        if is_all and last_two[0] in _BEFORE_VALUES:
            word = out[-1]  # the function, not the word of SELECT ALL x and count(ALL x)
            out[-1] = Token(TokenType.VAR, word.text, word.line, word.col, word.start, word.end)
        elif last_two == [TokenType.L_PAREN, TokenType.ALL] and kind in _WORDS:
            out.pop()  # sqlglot before 30.10 does not know it
        if kind == TokenType.DCOLON and inside and inside[-1] == TokenType.L_BRACKET:
            start = token.start
            out.append(Token(TokenType.COLON, ":", token.line, token.col, start, start))
            out.append(Token(TokenType.COLON, ":", token.line, token.col, start + 1, start + 1))
        else:
            out.append(token)
    return out
