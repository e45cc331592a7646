"""The clauses that TQL has and SQL has not, as nodes of sqlglot's trees.

They lie in ``args`` of a SELECT, or of a UNION, under `ARRANGE`, `SAMPLE_BY`, `EXPAND` and `UNGROUP`. A version of a
table is sqlglot's own `Version`, in ``args["version"]`` of the table.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp

ARRANGE, SAMPLE_BY, EXPAND, UNGROUP = "arrange", "sample_by", "expand", "ungroup"

CLAUSES = (SAMPLE_BY, EXPAND, UNGROUP, ARRANGE)
"""Their keys in ``args``, in the order in which they are printed."""


class Arrange(exp.Expression):  # type: ignore[misc,unused-ignore]
    """``ARRANGE BY a, b``: rows with the same values come together; ``expressions`` are the values."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class SampleBy(exp.Expression):  # type: ignore[misc,unused-ignore]
    """``SAMPLE BY weight [REPLACE TRUE | FALSE]``: as many rows as LIMIT says, by chance, in proportion to a weight.

    ``this`` is the weight, ``replace`` whether a row may come more than once (False if nothing is said; Deep Lake's
    default is True).
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "replace": False}


class Expand(exp.Expression):  # type: ignore[misc,unused-ignore]
    """``EXPAND BY before, after [OVERLAP TRUE | FALSE]``: the rows around each row are added to it.

    ``before`` and ``after`` are numbers of rows; ``overlap`` says whether a row may come more than once.
    """

    arg_types: ClassVar[dict[str, bool]] = {"before": True, "after": True, "overlap": False}


class Ungroup(exp.Expression):  # type: ignore[misc,unused-ignore]
    """``UNGROUP BY a, b``: a row for each element of the arrays ``expressions`` along their first axis."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


def clause_of(query: Any, key: str) -> Any:
    """Return a clause of a query, or None.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> tree = parse("SELECT * FROM dataset ARRANGE BY labels")
    >>> clause_of(tree, ARRANGE).expressions[0].name
    'labels'
    """
    return query.args.get(key)
