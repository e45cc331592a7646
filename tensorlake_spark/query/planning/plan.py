"""A query as it is run: steps one after the other, and SQL at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tensorlake_spark.query.sources.source_columns import Lazy, Output, Ref
from tensorlake_spark.query.sources.source_opening import Source

Key: TypeAlias = "tuple[Source, Ref]"

VALUE, DIGEST, LENGTH = "value", "digest", "length"
"""What a computed column has of the values of an expression."""


@dataclass
class Computed:
    """A column that NumPy computes for a step.

    Attributes
    ----------
    name : str
        What the step's table calls it.
    lazy : Lazy
        How, over columns of the step.
    what : str
        The expression as the user knows it.
    place : sqlglot expression, or None
        Where it is in the text.
    condition : bool
        Whether it is true or false.
    form : str
        What the column has of each value: `VALUE`, which is one a row; `DIGEST`, by which rows are compared; or
        `LENGTH`, along the first axis, of what `shape` gives.
    """

    name: str
    lazy: Lazy
    what: str
    place: Any = None
    condition: bool = False
    form: str = VALUE


@dataclass
class Best:
    """Only the rows with the least, or the greatest, values of the computed column are kept."""

    count: int
    descending: bool


@dataclass
class Sample:
    """Rows are drawn by a column of weights, as many as LIMIT says."""

    weight: str
    replace: bool
    count: Any


@dataclass
class Expand:
    """Rows beside those that were found, by their sids: `key` has them."""

    key: str
    source: Any
    before: Any
    after: Any
    overlap: bool


@dataclass
class Step:
    """A table that is made for those after it.

    Attributes
    ----------
    name : str
        What DuckDB calls it.
    tree : sqlglot Query
        Its rows.
    computed : list of Computed
        Columns that NumPy adds.
    best, sample, expand, arrange
        What is done with the rows then.
    """

    name: str
    tree: Any
    computed: list[Computed] = field(default_factory=list)
    best: Best | None = None
    sample: Sample | None = None
    expand: Expand | None = None
    arrange: list[str] = field(default_factory=list)
    lengths: list[str] = field(default_factory=list)


@dataclass
class Relation:
    """A query inside a plan: what DuckDB runs, and what its columns are.

    Attributes
    ----------
    tree : sqlglot Query
        With the names of sources, of tables that steps make, and columns of its own.
    outputs : dict of str to Output
        What it returns, in order; columns are of `tree`.
    key : Key, or None
        Of which dataset each row is one sample, and the column of its sids.
    """

    tree: Any
    outputs: dict[str, Output]
    key: Key | None = None


@dataclass(frozen=True)
class Statement:
    """SQL for DuckDB, and the names of its parameters."""

    sql: str
    parameters: tuple[str, ...]


@dataclass
class Plan:
    """A query that can be run.

    Attributes
    ----------
    text : str
        The query.
    steps : list of Step
        In the order in which they are run.
    result : Relation
        What is left.
    sources : dict of str to Source
        What it reads, by what DuckDB calls it.
    names : dict of str to str
        What the query calls them.
    parameters : dict of str to object
        Values of ``:name``.
    seed : int
        For SAMPLE BY.
    statements : dict of bool to Statement
        What DuckDB was asked at the end, with and without the sids: it stays the same when the plan is run again.
    """

    text: str
    steps: list[Step]
    result: Relation
    sources: dict[str, Source]
    names: dict[str, str]
    parameters: dict[str, Any]
    seed: int = 0
    statements: dict[bool, Statement] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Source, str] | None:
        """Of which dataset each row is one sample, and the column with its sid."""
        found = self.result.key
        return None if found is None else (found[0], found[1][1])
