"""Links to files of this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tensorlake_spark.datasets.links.link_facts import LinkFacts
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.link_url import LinkUrl
from tensorlake_spark.errors import ForbiddenLinkError, MissingLinkError, storage_error

Check = Callable[[LinkFacts], None]


def describe_file(link: LinkUrl, rules: LinkRules) -> LinkFacts:
    """Return size and time of change of a file.

    Raises
    ------
    MissingLinkError
        If there is no such file.
    ForbiddenLinkError
        If it is no regular file (a device or a pipe may have no end), or in no folder that is allowed.
    """
    with _opened(link, rules) as descriptor:
        return _facts(link, descriptor)


def read_file(link: LinkUrl, rules: LinkRules, start: int, stop: int | None, check: Check) -> bytes:
    """Return some bytes of a file, to its end without `stop`; `check` may refuse what it has become."""
    with _opened(link, rules) as descriptor:
        before = _facts(link, descriptor)
        check(before)
        end = before.size or 0
        out = _read(descriptor, start, max(0, (end if stop is None else min(stop, end)) - start))
        check(_facts(link, descriptor))  # it may be written to while it is read
        return out


def _read(descriptor: int, start: int, nbytes: int) -> bytes:
    parts = []
    while nbytes and (part := os.pread(descriptor, min(nbytes, 1 << 28), start)):
        parts.append(part)
        start, nbytes = start + len(part), nbytes - len(part)
    return b"".join(parts)


@contextmanager
def _opened(link: LinkUrl, rules: LinkRules) -> Iterator[int]:
    path = os.path.realpath(link.text)
    rules.check_folder(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would wait
    except (FileNotFoundError, NotADirectoryError):
        raise MissingLinkError(f"there is no file at the link {link.shown}") from None
    except OSError as error:
        raise storage_error(
            f"the file at the link {link.shown} cannot be read: {error.strerror}", error
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ForbiddenLinkError(
                f"the link {link.shown} is a folder, a pipe or a device, and no file"
            )
        yield descriptor
    finally:
        os.close(descriptor)


def _facts(link: LinkUrl, descriptor: int) -> LinkFacts:
    found = os.fstat(descriptor)
    return LinkFacts(link.text, found.st_size, f"{found.st_mtime_ns}-{found.st_size}")
