"""Columns of links: looked up when they are stored, fetched when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from tensorlake_spark.datasets.links.fetching import describe_links, fetched
from tensorlake_spark.datasets.links.link_facts import LinkFacts
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.nested import Link, Reference
from tensorlake_spark.errors import InvalidSampleError, InvalidSampleTypeError

_AT_ONCE = 64  # targets that are decoded together


def looked_up(values: Iterable[Any], rules: LinkRules, column: str, first: int = 0) -> list[Any]:
    """Return links with the size and the ETag of what they point to.

    A link of http is looked up only where `rules` name hosts; else it is stored without, and nothing is compared
    when it is read. So is one that has them already.

    Parameters
    ----------
    values : iterable
        As `Link` takes them.
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
    out = list(values)
    # What is not asked keeps its number, for errors.
    urls = [_url(value) if _is_asked(value, rules) else None for value in out]
    for place, facts in enumerate(describe_links(urls, rules, column, first)):
        if isinstance(facts, LinkFacts):
            out[place] = Reference(facts.url, facts.size, facts.etag)
    return out


def _url(value: Any) -> Any:
    return value.url if isinstance(value, Reference) else value


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
    array: pa.Array, kind: Link, rules: LinkRules, column: str, first: int = 0
) -> Iterator[Any]:
    """Yield what links point to, decoded, in order; None for a link that is null.

    Parameters
    ----------
    array : pyarrow.Array
        Links as they are stored.
    kind : Link
        The type of the column.
    rules : LinkRules
        What is allowed.
    column : str
        Named by errors.
    first : int
        The number of the first link in its column.

    Raises
    ------
    ChangedLinkError
        If a target is not what it was.
    CorruptDataError
        If a target is not of the type.
    """
    number, batch = first, list[Any]()
    for data in fetched(array, rules, column, first):
        batch.append(data)
        if len(batch) == _AT_ONCE:
            yield from _decoded(batch, kind, column, number)
            number, batch = number + len(batch), []
    yield from _decoded(batch, kind, column, number)


def linked_bytes(
    array: pa.Array, kind: Link, rules: LinkRules, column: str, first: int = 0
) -> pa.Array:
    """Return what links point to as a column of the type that they lead to, with its bytes; to copy it in."""
    return kind.of.encode(list(fetched(array, rules, column, first)), column, first)


def _decoded(batch: list[Any], kind: Link, column: str, first: int) -> list[Any]:
    try:
        return list(kind.of.decode(kind.of.encode(batch, column, first)))
    except (InvalidSampleError, InvalidSampleTypeError) as error:
        raise type(error)(f"{error}; what the link points to is not {kind.of}") from error
