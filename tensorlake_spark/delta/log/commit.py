"""The commit rule: data files first, then one commit that holds all of a change or none of it.

Every change of a tensor carries the Delta application transaction ``tensor/<id>`` with the next number.
A change is computed from a snapshot; the commit goes through only if the tensors that it changes are
still at the numbers of that snapshot. Files that it removes may have been rewritten meanwhile by another
writer for the sake of another tensor: then the change is computed anew.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import RemoveAction

from tensorlake_spark.delta.log import direct_commit
from tensorlake_spark.delta.log.actions import commit_info
from tensorlake_spark.delta.log.data_file import DataFile, unsettle, unsure
from tensorlake_spark.delta.log.requirements import SAMPLES, TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.redaction import cleanse
from tensorlake_spark.delta.store.s3_objects import check_client
from tensorlake_spark.delta.store.storage import Storage, is_answer, listed, reaching, refusal
from tensorlake_spark.delta.store.timeouts import Timeouts
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    StorageError,
    TensorLakeError,
    UnsupportedFeatureError,
)

ATTEMPTS = 60
"""How often a commit is tried before it gives up; waits grow to half a second."""

MARK = "tensorlake.commit"
"""Where a commit of this package has its mark."""


def app_of(tensor_id: str) -> str:
    """Return the name of a tensor's application transaction.

    Examples
    --------
    >>> app_of("training/boxes")
    'tensor/training/boxes'
    """
    return f"tensor/{tensor_id}"


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit does.

    Attributes
    ----------
    tensors : mapping of str to (int or None)
        For each tensor that changes the transaction number it was computed from.
    adds : sequence of DataFile
        New files.
    removes : sequence of str
        Paths of files that leave the table.
    operation : str
        What it is, for the table's history.
    transaction : (str, int), or None
        The caller's own application transaction: a repeated batch changes nothing.
    data_change : bool
        False where the rows stay what they are, and only move to other files.
    counters : mapping of str to ((int or None), int)
        Further application transactions: the number that each has to have now, and the one that it gets.
    schema : deltalake.Schema, or None
        The table's new columns. Where files are removed as well, `is_whole` has to be true.
    properties : mapping of str to str, or None
        The table's new properties, written with a new schema where that is possible in one commit.
    columns : pyarrow.Schema, or None
        The columns that the change was made for: it is stale if the table has others.
    is_whole : bool
        Whether `removes` are all files of the table: a file that another writer has added makes it stale.
    kind : str
        What the table is, `requirements.TENSORS` or `requirements.SAMPLES`.
    vectors : mapping of str to mapping
        For the files of `removes` that had a deletion vector in the version that the change was computed from, the
        vector as the log has it. A change of samples is stale if another writer has marked rows since.
    seen : mapping of str to (int or None)
        As `tensors`, for tensors that stay as they are: the change does not fit if another writer changed them.
    follows : int, or None
        The version that it was computed from, if every other commit makes it stale.
    check : callable, or None
        Called with the version that an attempt follows; it raises if the change does not fit there.
    """

    tensors: Mapping[str, int | None]
    adds: Sequence[DataFile]
    removes: Sequence[str] = ()
    operation: str = "write"
    transaction: tuple[str, int] | None = None
    data_change: bool = True
    counters: Mapping[str, tuple[int | None, int]] = field(default_factory=dict)
    schema: Schema | None = None
    properties: Mapping[str, str] | None = None
    columns: pa.Schema | None = None
    is_whole: bool = False
    kind: str = TENSORS
    vectors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seen: Mapping[str, int | None] = field(default_factory=dict)
    follows: int | None = None
    check: Callable[[Snapshot], None] | None = None
    mark: str = field(default_factory=lambda: str(uuid.uuid4()))


class StaleChange(TensorLakeError):
    """What a change was computed from is no longer so.

    Attributes
    ----------
    tensor_id : str, or None
        The tensor that the change is about, None where it changes none.
    snapshot : Snapshot
        The newest version.
    moved : bool
        Whether only files are gone, as after a compaction: the tensor is what it was, and the change can
        be computed anew.
    """

    def __init__(self, tensor_id: str | None, snapshot: Snapshot, moved: bool = False) -> None:
        what = "files" if tensor_id is None else f"tensor {tensor_id!r}"
        done = "moved" if moved else "changed"
        super().__init__(f"another writer {done} {what} in version {snapshot.version}")
        self.tensor_id = tensor_id
        self.snapshot = snapshot
        self.moved = moved


class RepeatedBatch(TensorLakeError):
    """The caller's own transaction is committed already: another run of the same batch was faster.

    Attributes
    ----------
    snapshot : Snapshot
        The newest version, which has the batch.
    """

    def __init__(self, transaction: tuple[str, int], snapshot: Snapshot) -> None:
        super().__init__(
            f"{snapshot.storage.uri} has the batch {transaction} already; nothing was written"
        )
        self.snapshot = snapshot


def transaction_done(snapshot: Snapshot, transaction: tuple[str, int] | None) -> bool:
    """Return whether the caller's own transaction, or a later one of it, is committed already."""
    if transaction is None:
        return False
    last = snapshot.transaction(transaction[0])
    return last is not None and last >= transaction[1]


def commit(storage: Storage, change: Change) -> Snapshot:
    """Commit a change and return the version of the table that has it.

    Parameters
    ----------
    storage : Storage
        The table, whose newest version is loaded for every attempt.
    change : Change
        What to do.

    Raises
    ------
    StaleChange
        If one of the tensors changed since; nothing was committed. The caller decides.
    RepeatedBatch
        If the change is one of samples, and another run has committed its batch; nothing was committed.
    ConcurrentWriteError
        If other writers won every attempt.
    UnsupportedFeatureError
        If the table has a feature or a rule that cannot be kept, or the removal of a file cannot be written.
    StorageError
        If the store refuses, or gives no answer. Then the commit may be there, or land later, so its files stay.
    """
    error: Exception | None = None
    since = 0  # version that the first attempt followed
    pending = 0  # version for which a commit got no answer: until it is there ours may still land
    timeouts = Timeouts.of(storage.options)
    until = time.monotonic() + timeouts.retry_timeout
    wait = 0.0
    for attempt in range(ATTEMPTS):
        time.sleep(wait * random.uniform(0.2, 1.0))  # nosec B311 # no secret
        wait = min(0.5, 0.01 * 1.4 ** (attempt + 1))
        with unsure(pending > 0):
            snapshot = Snapshot.newest(storage, change.kind)
        since = since if attempt else snapshot.version
        if attempt and _is_there(snapshot, change.mark, since):
            return snapshot
        snapshot.check_writable()  # a rule for new rows may have come since the change was begun
        _check_fresh(snapshot, change)
        _check_removes(snapshot, change)
        try:
            is_direct = _commit_once(snapshot, change)
        except (CommitFailedError, DeltaError) as failed:
            error = failed
            continue
        except OSError as failed:
            if not storage.is_local and not is_answer(failed):
                pending = snapshot.version + 1
                unsettle(storage, change.adds)
                # Safe to repeat: of two commits of one version one lands, and ours is known by its mark.
                wait = timeouts.backoff(attempt + 1)
                if attempt < timeouts.max_retries and time.monotonic() + wait < until:
                    error = failed
                    continue
            with unsure(pending > 0):
                snapshot = Snapshot.open(storage, kind=change.kind)
            if _is_there(snapshot, change.mark, since):
                return snapshot
            raise _lost(storage, failed, over=pending <= snapshot.version) from failed
        with unsure(True):
            return _after(snapshot, is_direct)
    snapshot = Snapshot.open(storage, kind=change.kind)
    if _is_there(snapshot, change.mark, since):
        return snapshot
    if error is not None:
        cleanse(error, storage.options)
    raise ConcurrentWriteError(
        f"other writers won {ATTEMPTS} commits in a row on {storage.uri}; nothing was "
        f"committed, try again later: {error}"
    ) from error


def _check_fresh(snapshot: Snapshot, change: Change) -> None:
    """Raise StaleChange unless the tensors, counters and columns are those from which the change was computed.

    A batch of tensors that is there already shows by their numbers, one of samples only by its own.
    """
    batch = change.transaction if change.kind == SAMPLES else None
    if batch is not None and transaction_done(snapshot, batch):
        raise RepeatedBatch(batch, snapshot)
    known = {**change.seen, **change.tensors}
    numbers = snapshot.transactions([app_of(tensor_id) for tensor_id in known])
    for tensor_id, number in known.items():
        if numbers[app_of(tensor_id)] != number:
            raise StaleChange(tensor_id, snapshot)
    for app_id, (number, _) in change.counters.items():
        if snapshot.transaction(app_id) != number:
            raise StaleChange(None, snapshot)
    if change.columns is not None and not snapshot.schema.equals(change.columns, True):
        raise StaleChange(None, snapshot)
    if change.follows not in (None, snapshot.version):
        raise StaleChange(None, snapshot)
    if change.check is not None:
        change.check(snapshot)


def _after(snapshot: Snapshot, is_direct: bool) -> Snapshot:
    """Return the newest version after a commit, which this process reads on from at its next one.

    Parameters
    ----------
    snapshot : Snapshot
        The version that the commit followed.
    is_direct : bool
        Whether it was made without deltalake, which writes checkpoints.
    """
    later = snapshot.read_on()
    later = snapshot.newer() if later in (None, snapshot) else Snapshot.keep(later)
    if is_direct:
        direct_commit.tidy(later, snapshot.version + 1)
    return later


def _lost(storage: Storage, failed: OSError, over: bool) -> StorageError:
    """Return the error for a commit that is not in the log."""
    refused = failed if isinstance(failed, StorageError) else refusal(storage, failed)
    if over:
        return refused
    return StorageError(
        f"{refused}; the commit is not in the log, but may still be on its way, so its files stay: look at the "
        "newest version before you repeat it"
    )


def _check_removes(snapshot: Snapshot, change: Change) -> None:
    """Raise if a file that a change removes is gone, or came since, or if its removal cannot be written."""
    if change.is_whole and not set(snapshot.files.path) <= set(change.removes):
        raise StaleChange(None, snapshot, moved=True)
    if not change.removes:
        return
    if change.data_change:
        snapshot.check_removing(change.operation)
    live = set(snapshot.files.path)
    vectors = snapshot.vectors(change.removes)
    is_moved = any(path not in live for path in change.removes)
    if change.kind == SAMPLES:
        is_moved |= vectors != change.vectors
    elif not change.data_change:
        is_moved |= bool(vectors)
    if is_moved:
        raise StaleChange(next(iter(change.tensors), None), snapshot, moved=True)
    check_removable(snapshot, change.removes)


def check_removable(snapshot: Snapshot, paths: Sequence[str]) -> None:
    """Raise UnsupportedFeatureError if a file has a deletion vector, and the commit cannot say so.

    A file is its path and its vector, and deltalake's RemoveAction has no place for the vector: it would
    remove nothing, and what was written in its stead would be there twice. So only samples on a local disk or on S3,
    where a commit can be made without deltalake, may have such files written anew.

    Raises
    ------
    MissingDependencyError
        If that commit needs boto3, which is not installed.
    """
    may = snapshot.kind == SAMPLES and direct_commit.may_commit(snapshot.storage)
    if may and snapshot.storage.is_local:
        return
    marked = [path for path in paths if snapshot.kept(path) is not None]
    if marked and may:
        check_client()
    elif marked:
        raise _marked(snapshot, marked)


def _marked(snapshot: Snapshot, paths: Sequence[str]) -> UnsupportedFeatureError:
    """Return the error for files with deletion vectors whose removal cannot be written."""
    return UnsupportedFeatureError(
        f"{len(paths)} files that would be written anew, such as {paths[0]}, have deletion vectors, and "
        f"deltalake cannot remove such a file; run REORG TABLE delta.`{snapshot.storage.uri}` APPLY "
        "(PURGE) with Spark first; nothing was committed"
    )


def _commit_once(snapshot: Snapshot, change: Change) -> bool:
    """Commit, and return whether that was done without deltalake."""
    now = int(time.time() * 1000)
    # With a time: a checkpoint of Spark's may drop transactions that have none.
    transactions = [
        Transaction(app_of(tensor_id), 1 if number is None else number + 1, now)
        for tensor_id, number in change.tensors.items()
    ]
    for app_id, (_, number) in change.counters.items():
        transactions.append(Transaction(app_id, number, now))
    if change.transaction is not None:
        transactions.append(Transaction(*change.transaction, now))
    paths = [*change.removes, *(file.path for file in change.adds)]
    vectors = {*change.vectors, *(file.path for file in change.adds if file.vector)}
    is_needed = bool(vectors) or _replaces_columns(snapshot, change)
    if direct_commit.can_commit(snapshot, paths, is_needed):
        said = _said(snapshot, change, transactions, now)
        if direct_commit.put_commit(snapshot.storage, snapshot.version + 1, said):
            return True
    if vectors:
        raise _marked(snapshot, sorted(vectors))
    properties = CommitProperties(
        custom_metadata={MARK: change.mark, "tensorlake.operation": change.operation},
        app_transactions=transactions,
        max_commit_retries=0,
    )
    if change.schema is not None:
        if asked := direct_commit.asked_protocol(snapshot, change.schema):
            direct_commit.name_features(snapshot.table, asked["writerFeatures"])
        if not change.is_whole:
            _add_columns(snapshot, change, change.schema, properties)
            return False
    # deltalake changes columns in other ways only with the whole table; it then removes the files itself.
    anew = change.schema is not None
    removes = () if anew else change.removes
    actions = [RemoveAction(p, change.data_change, now, snapshot.size_of(p), {}) for p in removes]
    snapshot.table.create_write_transaction(
        [*actions, *(file.add_action(change.data_change) for file in change.adds)],
        "overwrite" if anew else "append",
        change.schema or snapshot.table.schema(),
        commit_properties=properties,
    )
    return False


def _replaces_columns(snapshot: Snapshot, change: Change) -> bool:
    """Whether a change has other columns, and deltalake can neither add them nor write the whole table with them."""
    if change.schema is None or change.is_whole:
        return False
    before = snapshot.table.schema()
    return bool(change.adds or change.removes) or not direct_commit.has_all(change.schema, before)


def _add_columns(
    snapshot: Snapshot, change: Change, schema: Schema, properties: CommitProperties
) -> None:
    """Commit columns that are added by deltalake, which writes only to the log for them."""
    if _replaces_columns(snapshot, change):
        raise UnsupportedFeatureError(
            f"a {change.operation} changes columns of {snapshot.storage.uri} that it has; deltalake does that only "
            "with all of its files"
        )
    have = {field.name: field.to_json() for field in snapshot.table.schema().fields}
    new = [field for field in schema.fields if have.get(field.name) != field.to_json()]
    snapshot.table.alter.add_columns(new, commit_properties=properties)


def _said(
    snapshot: Snapshot, change: Change, transactions: list[Transaction], now: int
) -> list[dict[str, Any]]:
    """Return the lines of a commit, as deltalake writes them."""
    parameters = {"mode": "Append", "partitionBy": "[]"}
    info = commit_info(now, "WRITE", parameters, direct_commit.ENGINE)
    info["commitInfo"] |= {MARK: change.mark, "tensorlake.operation": change.operation}
    removes = [
        {
            "path": path,
            "dataChange": change.data_change,
            "deletionTimestamp": now,
            # Without these, Spark cannot read a change data feed.
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": snapshot.size_of(path),
            **({"deletionVector": dict(change.vectors[path])} if path in change.vectors else {}),
        }
        for path in change.removes
    ]
    adds = [file.to_log(now, change.data_change) for file in change.adds]
    txns = [
        {"appId": txn.app_id, "version": txn.version, "lastUpdated": now} for txn in transactions
    ]
    described = []
    if change.schema is not None:
        protocol = direct_commit.asked_protocol(snapshot, change.schema)
        described += [] if protocol is None else [{"protocol": protocol}]
        described.append(snapshot.described(change.schema, change.properties))
    return [
        info,
        *described,
        *({"remove": said} for said in removes),
        *({"add": said} for said in adds),
        *({"txn": said} for said in txns),
    ]


def _is_there(snapshot: Snapshot, mark: str, since: int) -> bool:
    """Whether a commit after `since` has this mark: it may succeed and raise all the same."""
    if not (count := snapshot.version - since):
        return False
    with reaching(snapshot.storage):
        history = listed(lambda: snapshot.table.history(count), True)
    return any(entry.get(MARK) == mark for entry in history)
