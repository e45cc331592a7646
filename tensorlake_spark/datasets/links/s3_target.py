"""Links to objects on S3: by boto3, which gives size and ETag with the bytes, or by pyarrow; with a lake's options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorlake_spark.datasets.links.link_facts import LinkFacts
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.link_url import LinkUrl
from tensorlake_spark.delta.store.s3_objects import read_known
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
    link: LinkUrl, rules: LinkRules, start: int, stop: int | None, check: Check, stored: LinkFacts
) -> bytes:
    """Return some bytes of an object, to its end without `stop`; `check` may refuse what it has become.

    One request with boto3, if `stored` has size and ETag and the object still has them. Else two: pyarrow asks for
    both before it reads, and an object that is replaced between the two by another one of the same size is not noticed.
    """
    rules.check_bucket(link.bucket)
    size, etag = stored.size, stored.etag
    if rules.verify and size is not None and etag is not None:
        end = size if stop is None else min(stop, size)
        if start < end:
            check(stored)  # that it is not too large, before it is read
            storage = Storage(f"s3://{link.bucket}", rules.storage_options)
            found = read_known(storage, link.key, start, end, size, etag)
            if found is not None:
                return found
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
