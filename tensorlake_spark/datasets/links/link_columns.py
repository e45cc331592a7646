"""Columns of links: looked up when they are stored, fetched when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Numbers
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.links.fetching import describe_links, fetched
from tensorlake_spark.datasets.links.link_facts import LinkFacts
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.nested import Reference, Sequence, link_in, target_of
from tensorlake_spark.errors import InvalidSampleError, InvalidSampleTypeError

Array = np.ndarray[Any, Any]

_AT_ONCE = 64  # targets that are decoded together
_UNKNOWN_BYTES = 1 << 20  # of a target whose size was not stored, about


def looked_up(
    values: Iterable[Any], kind: Type, rules: LinkRules, column: str, first: int = 0
) -> list[Any]:
    """Return links with the size and the ETag of what they point to.

    A link of http is looked up only where `rules` name hosts; else it is stored without, and nothing is compared
    when it is read. So is one that has them already.

    Parameters
    ----------
    values : iterable
        One a sample, as `kind` takes them.
    kind : Type
        The type of the column: a `Link`, or a `Sequence` of them.
    rules : LinkRules
        What is allowed.
    column : str
        Named by errors.
    first : int
        The number of the first value in what the user gave.

    Raises
    ------
    MissingLinkError
        If nothing is there.
    ForbiddenLinkError
        If the rules do not allow it.
    """
    # What is not asked keeps its number, for errors.
    out = [_as_lists(value, kind) for value in values]
    urls = [_asked(value, kind, rules) for value in out]
    found = describe_links(urls, rules, column, first)
    return [_with_facts(value, facts) for value, facts in zip(out, found, strict=True)]


def _as_lists(value: Any, kind: Type) -> Any:
    """Return a value with lists in the place of other sequences of links; what is none is left to the type."""
    if not isinstance(kind, Sequence):
        return value
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
        return value
    return [_as_lists(item, kind.of) for item in value]


def _asked(value: Any, kind: Type, rules: LinkRules) -> Any:
    """Return the addresses in a value that have to be looked up, None in the place of all else."""
    if isinstance(kind, Sequence) and isinstance(value, list):
        return [_asked(item, kind.of, rules) for item in value]
    if isinstance(kind, Sequence) or isinstance(value, list) or not _is_asked(value, rules):
        return None
    return value.url if isinstance(value, Reference) else value


def _with_facts(value: Any, facts: Any) -> Any:
    if isinstance(facts, list):
        return [_with_facts(item, one) for item, one in zip(value, facts, strict=True)]
    return Reference(facts.url, facts.size, facts.etag) if isinstance(facts, LinkFacts) else value


def _is_asked(value: Any, rules: LinkRules) -> bool:
    """Whether a link has to be looked up."""
    if value is None or isinstance(value, dict):
        return False
    if isinstance(value, Reference):
        if value.size is not None or value.etag is not None:
            return False
        value = value.url
    return bool(rules.allow_http) or not str(value).lower().startswith(("http://", "https://"))


def linked_values(
    array: pa.Array, kind: Type, rules: LinkRules, column: str, numbers: Numbers[int]
) -> Iterator[Any]:
    """Yield what the links of each sample point to, decoded, in order; None for a link that is null.

    Parameters
    ----------
    array : pyarrow.Array
        Links as they are stored.
    kind : Type
        The type of the column: a `Link`, or a `Sequence` of them.
    rules : LinkRules
        What is allowed.
    column : str
        Named by errors.
    numbers : sequence of int
        The numbers of the samples, for errors.

    Raises
    ------
    ChangedLinkError
        If a target is not what it was.
    CorruptDataError
        If a target is not of the type.
    """
    start, batch, targets = 0, list[Any](), 0
    for data in fetched(array, rules, column, numbers):
        batch.append(data)
        targets += len(data) if isinstance(data, list) else 1
        if targets >= _AT_ONCE:
            yield from _decoded(batch, kind, column, numbers[start:])
            start, batch, targets = start + len(batch), [], 0
    yield from _decoded(batch, kind, column, numbers[start:])


def linked_bytes(
    array: pa.Array, kind: Type, rules: LinkRules, column: str, numbers: Numbers[int]
) -> pa.Array:
    """Return what links point to as a column of the type `target_of` them, with its bytes; to copy it in.

    All targets are in memory at once; `target_bytes` says beforehand how many bytes they have.

    Parameters
    ----------
    array, kind, rules, column
        As for `linked_values`.
    numbers : sequence of int
        The numbers of the samples, for errors.
    """
    return _encoded(list(fetched(array, rules, column, numbers)), target_of(kind), column, numbers)


def target_bytes(array: pa.Array) -> Array:
    """Return for each sample how many bytes its links lead to; a guess where a link does not say it.

    Parameters
    ----------
    array : pyarrow.Array
        Links, or lists of them, as they are stored.

    Examples
    --------
    >>> links = [{"url": "a", "size": 5}, {"url": "b", "size": 7}]
    >>> target_bytes(pa.array([links, [], None, links[:1]])).tolist()
    [12, 0, 0, 5]
    """
    if pa.types.is_list(array.type):
        ends = np.concatenate([[0], np.cumsum(target_bytes(array.flatten()))]).astype(np.int64)
        counts = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        stops = np.cumsum(counts, dtype=np.int64)
        inside: Array = ends[stops] - ends[stops - counts]
        return inside
    sizes = pc.fill_null(pc.struct_field(array, "size"), _UNKNOWN_BYTES)
    found: Array = pc.if_else(array.is_valid(), sizes, 0).to_numpy(zero_copy_only=False)
    return found


def _encoded(values: list[Any], target: Type, column: str, numbers: Numbers[int]) -> pa.Array:
    try:
        return target.encode(values, column)
    except (InvalidSampleError, InvalidSampleTypeError):
        for number, value in zip(numbers, values):
            target.encode([value], column, number)  # raises with the number of the sample
        raise


def _decoded(batch: list[Any], kind: Type, column: str, numbers: Numbers[int]) -> list[Any]:
    target, link = replace(target_of(kind), nullable=True), link_in(kind)
    try:
        return list(target.decode(_encoded(batch, target, column, numbers)))
    except (InvalidSampleError, InvalidSampleTypeError) as error:
        wanted = None if link is None else link.of
        raise type(error)(f"{error}; what the link points to is not {wanted}") from error
