"""An order of all samples, as a user gives it: numbers, a column, or the ORDER BY of SQL -> numbers in that order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tensorlake_spark.datasets.samples.sample_reading import whole
from tensorlake_spark.datasets.samples.sample_selection import whole_numbers
from tensorlake_spark.datasets.samples.where import SampleConditions
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.errors import InvalidOptionError, did_you_mean

Array = np.ndarray[Any, Any]

_MOST_CHARACTERS = 1 << 16


def ordered_sids(stored: StoredSamples, order: Any) -> Array:
    """Return the numbers of all samples of a version in an order.

    Parameters
    ----------
    stored : StoredSamples
        The version.
    order : str, or sequence of int
        Numbers of all samples; or columns as after ORDER BY, such as ``"label, image.height DESC NULLS LAST"``. As in
        Spark nulls come first, with DESC last, and NaN is greater than all. What is equal stays in the order of sids.

    Raises
    ------
    InvalidOptionError
        If it names a column that is not there or has no order, or not each sample once.
    """
    if isinstance(order, str):
        return _by_columns(stored, order)
    found = whole_numbers(order)
    if found.ndim != 1 or (len(found) and found.dtype != np.int64):
        raise InvalidOptionError(
            f"order is {found.dtype} of shape {found.shape}; it is a list of sids, each sample once, or a text such as "
            "'label, size DESC'"
        )
    positions = stored.positions_of(found.astype(np.int64))
    if len(found) != len(stored) or (np.sort(positions) != np.arange(len(stored))).any():
        raise InvalidOptionError(
            f"order has {len(found)} numbers; it has to name each of the {len(stored)} samples once, as ds.sids does "
            "after ds.refresh()"
        )
    return found.astype(np.int64)


def _by_columns(stored: StoredSamples, text: str) -> Array:
    ranks = [stored.sids]
    for column, is_descending, nulls_first in reversed(_parsed(text)):
        leaf = _leaf(stored, column, text)
        found = whole(stored.rows([leaf.parts], np.arange(len(stored))).column(leaf.parts[0]))
        for part in leaf.parts[1:]:
            found = pc.struct_field(found, part)
        ranks.append(_rank(found, is_descending, nulls_first))
    order: Array = np.lexsort(ranks)
    return np.asarray(stored.sids)[order]


def _rank(array: pa.Array, is_descending: bool, nulls_first: bool) -> Array:
    """Return for each value its place among all: equal ones have the same."""
    encoded = array.dictionary_encode()
    values = encoded.dictionary
    # NaN after all numbers: Arrow puts it there, and nulls, of which a dictionary has none, behind.
    by = pc.array_sort_indices(values, order="ascending").to_numpy()
    place = np.empty(len(values) + 1, np.int64)
    place[by] = np.arange(1, len(values) + 1)
    if is_descending:
        place[:-1] = len(values) + 1 - place[:-1]
    place[-1] = 0 if nulls_first else len(values) + 1
    codes = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    out: Array = place[codes]
    return out


def _parsed(text: str) -> list[tuple[str, bool, bool]]:
    """Return the columns of an order, whether each descends, and whether its nulls come first."""
    if not 0 < len(text.strip()) <= _MOST_CHARACTERS:
        raise InvalidOptionError(
            f"order={text!r:.80} has {len(text.strip())} characters, and an order has 1 to {_MOST_CHARACTERS}; name "
            "columns, as 'label, size DESC'"
        )
    try:
        statements = sqlglot.parse(f"SELECT 1 ORDER BY {text}", dialect=SampleConditions)
        tree = statements[0] if len(statements) == 1 else None
    except (SqlglotError, RecursionError) as error:
        raise InvalidOptionError(
            f"order={text!r:.80} is not an order of SQL; name columns, as 'label, size DESC'"
        ) from error
    said = {} if tree is None else tree.args
    names = {name for name, value in said.items() if value}
    if not isinstance(tree, exp.Select) or not names <= {"expressions", "order"}:
        raise InvalidOptionError(f"order={text!r:.80} has more than columns, ASC, DESC and NULLS")
    out = []
    for one in tree.args["order"].expressions:
        inner = one.this if isinstance(one, exp.Ordered) else one
        if not isinstance(inner, exp.Column):
            remedy = "store it with add_column, or give the sids of a query"
            if isinstance(inner, exp.Div):
                remedy = (
                    "write a column of a group with a point, as training.label, or in double quotes"
                )
            raise InvalidOptionError(
                f"order={text!r:.80}: {inner.sql()!r:.60} is not a column; {remedy}"
            )
        name = ".".join(part.name for part in inner.parts)
        # Where the text does not say it, the parser has put in what Spark does.
        out.append((name, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
    return out


def _leaf(stored: StoredSamples, name: str, text: str) -> LeafColumn:
    """Return the leaf column of a name with dots, or a column with slashes; case does not matter."""
    wanted = name.replace("/", ".").casefold()
    ordered = {
        ".".join(leaf.parts): leaf
        for leaf in stored.leaves
        if not (leaf.repeated or leaf.is_payload)
    }
    for known, leaf in ordered.items():
        if known.casefold() == wanted:
            return leaf
    raise InvalidOptionError(
        f"order={text!r:.80}: there is no column {name!r} that has an order{did_you_mean(name, ordered)}; arrays and "
        "media have none"
    )
