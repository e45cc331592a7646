"""Which features were read together, counted by this process and kept in a small file beside the table.

The file lies in ``_tensorlake/accessed``, where each process that counts has one of its own. It is no part of the
table: a read never waits for it, and what cannot be written or read of it is left out.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.threads import io_threads

logger = logging.getLogger("tensorlake_spark")

ROOT = "_tensorlake/accessed"

_MOST_NAMES = 100_000  # in one log; sets that were read least are left out
_EVERY_S = 5.0
_DAMAGE = (OSError, ValueError, TypeError, OverflowError, RecursionError, TensorLakeError)

Counts = Counter[tuple[str, ...]]
"""How often each set of names, sorted, was read."""


class AccessLog:
    """Counts reads of a table's features, and writes the counts now and then from another thread."""

    def __init__(self, storage: Storage, table: str) -> None:
        self._storage = storage
        self._table = table
        self._begin()
        atexit.register(self.flush)

    def _begin(self) -> None:
        self._process = os.getpid()
        self._path = f"{folder_of(self._table)}/{uuid.uuid4()}.json"
        self._counts: Counts = Counter()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._written = 0.0
        self._is_told = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a copy is made, in another process too: it counts for itself, in a file of its own."""
        return AccessLog, (self._storage, self._table)

    def count(self, names: Iterable[str]) -> None:
        """Count a read; what was counted is written every few seconds at the most."""
        if self._process != os.getpid():  # a forked child, whose parent writes what it has counted
            self._begin()
        with self._lock:
            self._counts[tuple(sorted(names))] += 1
            is_due = time.monotonic() - self._written > _EVERY_S
            if is_due:
                self._written = time.monotonic()
        if is_due:
            io_threads().submit(self.flush)

    def flush(self) -> None:
        """Write what was counted; an error is logged once and no more."""
        if self._process != os.getpid():
            return
        # Or an earlier count, that was slow to write, would take a later one's place.
        with self._writing:
            with self._lock:
                counts = bounded(self._counts)
            if counts:
                try:
                    _save(self._storage, self._path, counts)
                except (OSError, TensorLakeError) as error:
                    level = logging.DEBUG if self._is_told else logging.WARNING
                    self._is_told = True
                    text = "reads of features of %r are counted for this process alone: %s was not written: %s"
                    logger.log(level, text, self._table, self._storage.file_uri(self._path), error)

    def accessed(self) -> Counts:
        """Return what this process has counted, written or not, and all others have written."""
        if self._process != os.getpid():
            self._begin()
        self.flush()
        with self._lock:
            mine = bounded(self._counts)
        return mine + accessed(self._storage, self._table, self._path)


def folder_of(table: str) -> str:
    """Return the folder of a table's logs; a name may be longer than a file name."""
    return f"{ROOT}/{hashlib.blake2b(table.encode(), digest_size=16).hexdigest()}"


def bounded(counts: Counts) -> Counts:
    """Return the sets that were read most, so many that a log stays small."""
    out: Counts = Counter()
    names = 0
    for chosen, number in counts.most_common():
        names += len(chosen)
        if names > _MOST_NAMES and out:
            break
        out[chosen] = number
    return out


def accessed(storage: Storage, table: str, but: str = "") -> Counts:
    """Return what all processes have written, except one log; one that is damaged is left out with a warning."""
    try:
        found = storage.files_in(folder_of(table))
    except OSError as error:
        logger.warning("reads of features of %r cannot be listed: %s", table, error)
        return Counter()
    out: Counts = Counter()
    for info in found:
        if info.base_name.endswith(".json"):
            path = f"{folder_of(table)}/{info.base_name}"
            if path == but:
                continue
            try:
                entries = json.loads(storage.read_whole(path))
                counts = {tuple(map(str, names)): int(number) for number, names in entries}
            except _DAMAGE as error:
                logger.warning("%s is damaged and left out: %s", storage.file_uri(path), error)
                continue
            out.update(counts)
    return out


def order_of(counts: Mapping[tuple[str, ...], int], known: Sequence[str]) -> list[str]:
    """Return features in an order in which those that are read together stand beside each other.

    The sets that were read most come first, each with what no set before it has.

    Parameters
    ----------
    counts : mapping of tuple of str to int
        How often each set was read.
    known : sequence of str
        The features; those that are in no set are left out.

    Examples
    --------
    >>> order_of({("a", "c"): 5, ("b", "c"): 2}, ["a", "b", "c", "d"])
    ['a', 'c', 'b']
    """
    there = {*known}
    sets = sorted(counts.items(), key=lambda entry: (-entry[1], -len(entry[0]), entry[0]))
    return list(dict.fromkeys(name for names, _ in sets for name in names if name in there))


def _save(storage: Storage, path: str, counts: Counts) -> None:
    data = json.dumps([[number, names] for names, number in counts.items()])
    storage.put_whole(path, data.encode())
