"""Commits, read without deltalake: all of a short log of a local table, and later ones on a version that is known."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.table import ProtocolVersions

from tensorlake_spark.delta.log.actions import (
    COMMIT,
    LAST_CHECKPOINT,
    LOG,
    AddedRemoved,
    added_removed,
    commit_name,
)
from tensorlake_spark.delta.log.replaying.live_files import Files
from tensorlake_spark.delta.log.requirements import kind_of, schema_of
from tensorlake_spark.delta.store.storage import Storage

# Commits that are replayed, and their bytes; with more deltalake begins from a checkpoint.
_MOST, _MOST_BYTES = 100, 64 << 20
_BEGINNING = 4 << 10  # bytes that tell one commit from another: they have names and times
# With more commits, or more bytes of them, which is about a hundred files, deltalake is faster.
_FEW, _SHORT = 24, 64 << 10

_READERS = (1, 3)  # 2 has column mapping
_READER_FEATURES = frozenset({"timestampNtz", "vacuumProtocolCheck"})

# What a commit of another form than the protocol has makes of the code below.
_ODD = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, DeltaError)


class Metadata(NamedTuple):
    """What a log says of its table beside the schema."""

    id: str
    configuration: dict[str, str]
    name: str | None
    description: str | None
    partition_columns: list[str]
    created_time: int | None


class Head:
    """What the first commit of a table says of it, under the names that a DeltaTable has for that.

    Parameters
    ----------
    protocol, metadata : dict
        The actions ``protocol`` and ``metaData`` as the log has them.
    """

    def __init__(self, protocol: dict[str, Any], metadata: dict[str, Any]) -> None:
        self._protocol, self._metadata = protocol, metadata

    def protocol(self) -> ProtocolVersions:
        """Return versions and features that readers and writers need."""
        said = self._protocol
        return ProtocolVersions(
            said["minReaderVersion"],
            said["minWriterVersion"],
            said.get("writerFeatures"),
            said.get("readerFeatures"),
        )

    def schema(self) -> Schema:
        """Return the columns."""
        return self._schema

    @cached_property
    def _schema(self) -> Schema:
        return schema_of(self._metadata["schemaString"])

    def metadata(self) -> Metadata:
        """Return id and properties."""
        said = self._metadata
        return Metadata(
            said["id"],
            said.get("configuration") or {},
            said.get("name"),
            said.get("description"),
            said.get("partitionColumns") or [],
            said.get("createdTime"),
        )

    def is_plain(self) -> bool:
        """Whether the table needs no more than its commits to be read."""
        protocol, said = self.protocol(), self._metadata
        self.schema()
        return (
            type(protocol.min_writer_version) is int
            and isinstance(protocol.writer_features or [], list)
            and protocol.min_reader_version in _READERS
            and {*(protocol.reader_features or ())} <= _READER_FEATURES
            and said["format"]["provider"] == "parquet"
            and not said["partitionColumns"]
            and all(type(v) is str for v in (said["id"], *self.metadata().configuration.values()))
        )


class Transactions:
    """The last number of every application transaction.

    The transactions of a later version share most of theirs with those of the version before it: what came lately is
    kept apart, and is put with the rest only now and then.

    Parameters
    ----------
    numbers : dict of str to int
        The numbers.

    Examples
    --------
    >>> first = Transactions({"tensor/x": 1})
    >>> later = first.followed({"tensor/x": 2, "tensor/y": 1})
    >>> first.get("tensor/x"), later.get("tensor/x"), later.get("tensor/z")
    (1, 2, None)
    """

    __slots__ = ("_late", "_numbers")

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._late: dict[str, int] = {}

    def get(self, app_id: str) -> int | None:
        """Return the last number of an application, None before the first."""
        found = self._late.get(app_id)
        return self._numbers.get(app_id) if found is None else found

    def followed(self, numbers: dict[str, int]) -> Transactions:
        """Return the transactions after a commit that has these."""
        late = self._late | numbers
        # Each commit copies the late ones, and one commit in so many copies all: the square root makes both small.
        if len(late) ** 2 > len(self._numbers):
            return Transactions(self._numbers | late)
        out = Transactions(self._numbers)
        out._late = late
        return out


@dataclass(frozen=True, eq=False, slots=True)
class Replayed:
    """A version of a table that is known by its commits.

    Attributes
    ----------
    table : deltalake.DeltaTable or Head
        An earlier version, for schema, protocol and properties, which the commits since do not change.
    version : int
        The version.
    files : Files
        Its live files.
    transactions : Transactions
        The last number of every application transaction.
    mark : int
        The `commit_mark` of the version, in an object store `remote_log.mark_of` it: of a table that was made anew
        it is another one.
    """

    table: DeltaTable | Head
    version: int
    files: Files
    transactions: Transactions
    mark: int


def commit_mark(storage: Storage, version: int) -> int | None:
    """Return what tells the commit of a version from any other, None if it is not there.

    Times alone do not: a backup that was put in the table's place may have them from an archive, by the second.
    """
    found = _read(storage, version, _BEGINNING)
    return None if found is None else found[0]


def replay_all(storage: Storage, version: int | None = None) -> Replayed | None:
    """Return a version of a local table by its whole log; None where deltalake has to open the table.

    That is so if the log is not short, has a checkpoint or a gap, and wherever a commit is not of the plainest kind:
    what is wrong with it deltalake says best.

    Parameters
    ----------
    storage : Storage
        The table.
    version : int, optional
        Which version; the newest one by default.
    """
    try:
        names = os.listdir(f"{storage.uri}/{LOG}")
        found = [match for name in names if (match := COMMIT.fullmatch(f"{LOG}/{name}"))]
        last = len(found) - 1
        if last < _FEW and sum(os.stat(f"{storage.uri}/{m[0]}").st_size for m in found) > _SHORT:
            return None
    except OSError:
        return None
    others = any("checkpoint" in name or "compacted" in name for name in names)
    if others or not 0 <= last < _FEW or max(int(m[1]) for m in found) != last:
        return None
    wanted = last if version is None else version
    if not 0 <= wanted <= last:
        return None
    try:
        return _replay_first(storage, wanted)
    except _ODD:
        return None


def _replay_first(storage: Storage, last: int) -> Replayed | None:
    first = _read(storage, 0)
    if first is None:
        return None
    heads: dict[str, dict[str, Any]] = {}
    plain = []
    for line in first[1].splitlines():
        said = json.loads(line) if line.strip() else {}
        kinds = {"protocol", "metaData"} & said.keys()
        if not kinds:
            plain.append(line)
        for kind in kinds:
            if kind in heads or len(said) > 1:
                return None
            heads[kind] = said[kind]
    head = Head(heads["protocol"], heads["metaData"])
    if not head.is_plain():
        return None
    changes: list[AddedRemoved | None] = [added_removed(b"\n".join(plain))]
    mark = first[0]
    for version in range(1, last + 1):
        found = _read(storage, version)
        if found is None or not found[1].strip():
            return None
        changes.append(added_removed(found[1]))
        mark = found[0]
    live: dict[str, dict[str, Any]] = {}
    transactions: dict[str, int] = {}
    for change in changes:
        if change is None:
            return None
        for path in change.removed:
            live.pop(path, None)
        for action in change.added:  # one that is added again has its later statistics
            live.pop(action["path"], None)
            live[action["path"]] = action
        transactions |= change.transactions
    files = Files.added([*live.values()], storage.uri, kind_of(head.metadata().configuration))
    return Replayed(head, last, files, Transactions(transactions), mark)


def commits_after(storage: Storage, version: int, mark: int) -> list[tuple[int, bytes]] | None:
    """Return the later commits of a local table, each with its mark, up to the newest.

    Parameters
    ----------
    storage : Storage
        The table.
    version, mark : int
        A version, and its `commit_mark`.

    Returns
    -------
    list of (int, bytes), or None
        None if the commit of that version is another one than it was, or gone, if one is missing after it, or if
        there are many.
    """
    if commit_mark(storage, version) != mark:
        return None
    out: list[tuple[int, bytes]] = []
    while (found := _read(storage, version + 1 + len(out))) is not None:
        out.append(found)
        if is_much(out):
            return None
    # With a later checkpoint a commit is missing, and the last one here is not the newest.
    if _last_checkpoint(storage) > version + len(out):
        return None
    if out and commit_mark(storage, version) != mark:  # replaced while it was read
        return None
    return out


def is_much(commits: Sequence[tuple[int, bytes]]) -> bool:
    """Whether commits are too many, or too long, to replay them."""
    return len(commits) > _MOST or sum(len(said) for _, said in commits) > _MOST_BYTES


def replay(uri: str, known: Replayed, commits: Sequence[tuple[int, bytes]]) -> Replayed | None:
    """Return a version after later commits; None where the table has to be opened instead.

    That is so if one of them does more than to add and remove files and to count transactions, or is not all there.

    Parameters
    ----------
    uri : str
        Where the table is, for messages.
    known : Replayed
        The version.
    commits : sequence of (int, bytes)
        Those after it, each with its mark.
    """
    if not commits:
        return known
    files, transactions = known.files, known.transactions
    for _, said in commits:
        # Who writes a commit in its place, such as a copy of a table, may not be done with it.
        change = added_removed(said) if said.strip() else None
        if change is None:
            return None
        try:
            files = files.grown(change.added, change.removed, uri)
        except (
            ValueError,
            TypeError,
            AttributeError,
            OverflowError,
        ):  # statistics of another kind than ours
            return None
        transactions = transactions.followed(change.transactions)
    version, mark = known.version + len(commits), commits[-1][0]
    return replace(known, version=version, files=files, transactions=transactions, mark=mark)


def _read(storage: Storage, version: int, nbytes: int = -1) -> tuple[int, bytes] | None:
    """Return the mark and the first bytes of a commit, by default all; None if it is not there."""
    try:
        with open(f"{storage.uri}/{commit_name(version)}", "rb") as file:
            # What is added while it is read makes another mark later.
            info, said = os.fstat(file.fileno()), file.read(nbytes)
    except FileNotFoundError:
        return None
    return hash((info.st_mtime_ns, info.st_size, zlib.crc32(said[:_BEGINNING]))), said


def _last_checkpoint(storage: Storage) -> int:
    """Return the version of the last checkpoint, -1 where nobody says that there is one."""
    with suppress(FileNotFoundError, ValueError, LookupError, TypeError):
        return int(json.loads(storage.read_whole(LAST_CHECKPOINT))["version"])
    return -1
