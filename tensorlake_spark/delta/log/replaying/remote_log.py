"""The log of a table in an object store, brought here in few round trips, for deltalake to read in a folder.

deltalake asks for one thing after the other, and for some twice: a dozen round trips where there is a
checkpoint. Here they are two: which the last checkpoint is, then it and the commits after it, all at once. One of the
first dozen versions is a single round trip: all commits up to it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tensorlake_spark.delta.log.actions import (
    LAST_CHECKPOINT,
    LOG,
    TXN,
    commit_name,
    json_actions,
    parquet_actions,
)
from tensorlake_spark.delta.log.replaying.replay import is_much
from tensorlake_spark.delta.store.ranges import ANY_SIZE, Remote
from tensorlake_spark.delta.store.storage import Storage

_AHEAD = 12  # commits asked for at once; Spark makes a checkpoint every ten
_NEXT = 2  # commits asked for after one that is known: one's own is often the only one
_MOST = 500  # commits after a checkpoint; deltalake lists them instead
_EARLY = 64  # versions before the last checkpoint that are read from the first commit on
_MOST_BYTES = 64 << 20  # of a checkpoint
_BEGINNING = 4 << 10  # bytes that tell one commit from another


@dataclass(frozen=True, slots=True)
class Mirror:
    """A version of a log.

    Attributes
    ----------
    table : deltalake.DeltaTable
        What it says of schema, protocol and live files, in memory; there is no more behind it.
    mark : int or None
        What `mark_of` the version was, None where nobody looked for a successor.
    transactions : dict of str to int, or None
        The last number of every application transaction; None where a commit is of another form than the protocol
        has. deltalake would read the log in the store again for each of them.
    """

    table: DeltaTable
    mark: int | None
    transactions: dict[str, int] | None = None


def mark_of(remote: Remote, version: int) -> int | None:
    """Return what marks a version while it is the newest, None if it is not, with one round trip."""
    names = [commit_name(version), commit_name(version + 1)]
    written, successor = remote.beginnings(names, _BEGINNING)
    return None if successor is not None or written is None else _mark(written)


def commits_after(
    storage: Storage, version: int, mark: int, pid: int | None = None
) -> list[tuple[int, bytes]] | None:
    """Return the later commits of a table, each with its mark, up to the newest: one round trip for up to one.

    Parameters
    ----------
    storage : Storage
        The table.
    version, mark : int
        A version, and what marks it.
    pid : int, optional
        As `Remote` takes it.

    Returns
    -------
    list of (int, bytes), or None
        None if the commit of that version is another one than it was, or gone, or if there are many.
    """
    out: list[tuple[int, bytes]] = []
    ahead = _NEXT
    while True:
        last = version + len(out)
        names = [commit_name(version), *map(commit_name, range(last + 1, last + 1 + ahead))]
        remote = Remote(storage, dict.fromkeys(names, ANY_SIZE), pid)
        # A log is tidied up from its beginning: where the commit of a version is there, so are all later ones.
        known, *found = remote.beginnings(names, first=_BEGINNING)
        if known is None or _mark(known) != mark:
            return None
        there = list(takewhile(lambda data: data is not None, found))
        out += [(_mark(data), data) for data in there if data is not None]
        if is_much(out):
            return None
        if len(there) < ahead:
            return out
        ahead = min(2 * ahead, _AHEAD)


def _mark(commit: bytes) -> int:
    return zlib.crc32(commit[:_BEGINNING])  # it has names and times that no other commit has


def bring(storage: Storage, version: int | None = None) -> Mirror | None:
    """Bring the log of a table here, as far as its newest version, or as another one.

    Parameters
    ----------
    storage : Storage
        The table.
    version : int, optional
        Which version; the newest one by default.

    Returns
    -------
    Mirror or None
        None where deltalake has to look for itself: there is no table or no such version, the checkpoint is of
        another kind or too large, or the log does not follow from it.
    """
    names = [LAST_CHECKPOINT]
    if version is not None and version < _AHEAD:  # few commits are asked for in the same round trip
        names += [commit_name(v) for v in range(version + 1)]
    told, *commits = Remote(storage, dict.fromkeys(names, ANY_SIZE)).beginnings(names)
    if version is not None and commits:
        files = {name: data for name, data in zip(names[1:], commits) if data is not None}
        if len(files) == len(commits):
            return _opened(files, version, None)
    start = -1 if told is None else _checkpoint(told)
    if start is None:
        return None
    if version is not None and start > version:
        if version >= _EARLY:  # deltalake looks for an earlier checkpoint: less is read after it
            return None
        told, start = None, -1
    checkpoint = f"{LOG}/{start:020}.checkpoint.parquet"
    names = [] if told is None else [checkpoint]
    found: dict[str, bytes | None] = {}
    last = max(start, 0)  # the checkpoint's own commit, too
    ahead = _AHEAD
    while True:
        stop = last + ahead if version is None else min(last + ahead, version + 1)
        names += [commit_name(v) for v in range(last, stop)]
        remote = Remote(storage, dict.fromkeys(names, ANY_SIZE))
        found.update(zip(names, remote.beginnings(names), strict=True))
        while last < stop and found[commit_name(last)] is not None:
            last += 1
        if last < stop or (version is not None and last > version):
            break
        if last - start > _MOST:
            return None
        names, ahead = [], 2 * ahead
    last -= 1
    # Logs are tidied up from their beginning. Where the commit of a version is there, so are all later ones;
    # without it the checkpoint may be one that nobody replaced, and the newest version far from it.
    if last < max(start, 0) or (version is not None and last != version):
        return None
    if found.get(checkpoint, b"") is None:
        return None
    # What lies behind a gap came while we looked.
    behind = {commit_name(v) for v in range(last + 1, stop)}
    files = {n: data for n, data in found.items() if data is not None and n not in behind}
    if told is not None:
        files[LAST_CHECKPOINT] = told
    newest = files[commit_name(last)]
    return _opened(files, last, None if version is not None else _mark(newest))


def _checkpoint(told: bytes) -> int | None:
    """Return the version of the last checkpoint, None if it is not one file, or large."""
    with suppress(ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        last: Any = json.loads(told)
        plain = not {"parts", "v2Checkpoint"} & {name for name, value in last.items() if value}
        if plain and 0 < last["sizeInBytes"] <= _MOST_BYTES and last["version"] >= 0:
            return int(last["version"])
    return None


def _opened(files: dict[str, bytes], version: int, mark: int | None) -> Mirror | None:
    try:
        with TemporaryDirectory(prefix="tensorlake-log-") as folder:
            Path(folder, LOG).mkdir()
            for name, data in files.items():
                Path(folder, name).write_bytes(data)
            table = DeltaTable(folder)
            table.get_add_actions()  # from now on it is in memory
    except (DeltaError, OSError):
        # deltalake says it better of the table itself, and needs no space on the disk for temporary files.
        return None
    if int(table.version()) != version:
        return None
    return Mirror(table, mark, _transactions(files))


def _transactions(files: dict[str, bytes]) -> dict[str, int] | None:
    """Return the last number of every application transaction in the files of a log."""
    out: dict[str, int] = {}
    try:
        # The checkpoint's name is before those of the commits after it.
        for name in sorted(files.keys() - {LAST_CHECKPOINT}):
            for _, txn in _actions(name, files[name]):
                if txn["appId"] is not None:
                    out[str(txn["appId"])] = int(txn["version"])
    except (ValueError, LookupError, TypeError, AttributeError, pa.ArrowException):
        return None
    return out


def _actions(name: str, data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the application transactions in one file of a log."""
    if name.endswith(".parquet"):
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            yield from parquet_actions(file, TXN)
        return
    # Other lines need not be parsed; JSON may spell any letter with a backslash.
    lines = (line for line in data.splitlines() if b"txn" in line or b"\\u" in line)
    yield from json_actions(b"\n".join(lines), TXN)
