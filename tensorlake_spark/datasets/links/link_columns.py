"""Columns of links: looked up when they are stored, fetched when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tensorlake_spark.datasets.links.fetching import describe_links, fetched
from tensorlake_spark.datasets.links.link_facts import LinkFacts
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.nested import Reference, Sequence, link_in, target_of
from tensorlake_spark.errors import InvalidSampleError, InvalidSampleTypeError

_AT_ONCE = 64  # targets that are decoded together


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
    array: pa.Array, kind: Type, rules: LinkRules, column: str, first: int = 0
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
    first : int
        The number of the first sample in its column.

    Raises
    ------
    ChangedLinkError
        If a target is not what it was.
    CorruptDataError
        If a target is not of the type.
    """
    number, batch, targets = first, list[Any](), 0
    for data in fetched(array, rules, column, first):
        batch.append(data)
        targets += len(data) if isinstance(data, list) else 1
        if targets >= _AT_ONCE:
            yield from _decoded(batch, kind, column, number)
            number, batch, targets = number + len(batch), [], 0
    yield from _decoded(batch, kind, column, number)


def linked_bytes(
    array: pa.Array, kind: Type, rules: LinkRules, column: str, first: int = 0
) -> pa.Array:
    """Return what links point to as a column of the type `target_of` them, with its bytes; to copy it in."""
    return target_of(kind).encode(list(fetched(array, rules, column, first)), column, first)


def _decoded(batch: list[Any], kind: Type, column: str, first: int) -> list[Any]:
    target, link = replace(target_of(kind), nullable=True), link_in(kind)
    try:
        return list(target.decode(target.encode(batch, column, first)))
    except (InvalidSampleError, InvalidSampleTypeError) as error:
        wanted = None if link is None else link.of
        raise type(error)(f"{error}; what the link points to is not {wanted}") from error
