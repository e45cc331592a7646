"""Links to objects on S3, by pyarrow's client with the options of a lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorlake_spark.datasets.links.link_facts import LinkFacts
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.link_url import LinkUrl
from tensorlake_spark.delta.store.storage import Storage, refusal
from tensorlake_spark.errors import MissingLinkError, TensorLakeError

Check = Callable[[LinkFacts], None]


def describe_object(link: LinkUrl, rules: LinkRules) -> LinkFacts:
    """Return size and ETag of an object: one request.

    Raises
    ------
    MissingLinkError
        If there is no such object.
    ForbiddenLinkError
        If its bucket is not allowed.
    StorageError
        If the store refuses, or does not answer.
    """
    with _opened(link, rules) as file:
        return _facts(link, file)


def read_object(
    link: LinkUrl, rules: LinkRules, start: int, stop: int | None, check: Check
) -> bytes:
    """Return some bytes of an object, to its end without `stop`; `check` may refuse what it has become.

    Two requests: pyarrow asks for size and ETag before it reads. An object that is replaced between the two by
    another one of the same size is not noticed.
    """
    with _opened(link, rules) as file:
        facts = _facts(link, file)
        check(facts)
        size = facts.size or 0
        end = size if stop is None else min(stop, size)
        return bytes(file.read_at(max(0, end - start), start)) if start < end else b""


@contextmanager
def _opened(link: LinkUrl, rules: LinkRules) -> Iterator[Any]:
    rules.check_bucket(link.bucket)
    storage = Storage(f"s3://{link.bucket}", rules.storage_options)
    filesystem, bucket = storage.place
    try:
        with filesystem.open_input_file(f"{bucket}/{link.key}") as file:
            yield file
    except TensorLakeError:
        raise  # of `check`
    except FileNotFoundError:
        raise MissingLinkError(f"there is no object at the link {link.shown}") from None
    except OSError as error:
        raise refusal(storage, error) from error


def _facts(link: LinkUrl, file: Any) -> LinkFacts:
    said = {_text(name).lower(): _text(value) for name, value in (file.metadata() or {}).items()}
    return LinkFacts(link.text, int(file.size()), said.get("etag") or None)


def _text(said: str | bytes) -> str:
    return said if isinstance(said, str) else said.decode("utf-8", "replace")
