"""The end of a transaction: all that it has changed in one commit, or nothing of it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import (
    Change,
    StaleChange,
    app_of,
    commit,
    transaction_done,
)
from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.history import changed_by_others
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import ConcurrentWriteError
from tensorlake_spark.writing.pipeline import drop_tensors, recomputed
from tensorlake_spark.writing.uncommitted import Uncommitted

logger = logging.getLogger("tensorlake_spark")


def commit_all(
    changes: Uncommitted, transaction: tuple[str, int] | None, seen: Collection[str] = ()
) -> Snapshot | None:
    """Commit what a transaction has changed, and return the version that has it; None if nothing has changed.

    Parameters
    ----------
    changes : Uncommitted
        The changes. Their data files are deleted if they are not committed.
    transaction : (str, int), or None
        Name and number of the batch.
    seen : collection of str
        Tensors, there or not, that the changes would not fit if another writer changed or made them.

    Raises
    ------
    ConcurrentWriteError
        If another writer changed one of the tensors meanwhile, or moved rows that an assignment has replaced, or
        if the table was made anew; nothing is committed then.
    """
    try:
        ids = changes.changed
        if not ids:
            changes.discard()
            return None
        adds = changes.seal()
        if changes.base is None:
            create_table(changes.storage)
        return _committed(changes, ids, adds, transaction, seen)
    except BaseException:
        changes.discard()
        raise


def _committed(
    changes: Uncommitted,
    ids: Sequence[str],
    adds: Sequence[DataFile],
    transaction: tuple[str, int] | None,
    seen: Collection[str],
) -> Snapshot | None:
    storage, known = changes.storage, _numbers(changes, {*ids, *seen})
    numbers = {tensor_id: known.pop(tensor_id) for tensor_id in ids}

    def change(now: Snapshot) -> Snapshot | None:
        now.check_writable()
        if transaction_done(now, transaction):
            say_repeated(transaction)
            changes.discard()
            return None
        _check_base(changes, now)
        with FileWriter.into(now) as writer:
            removes = drop_tensors(now, changes.dropped, writer, besides=changes.removed)
            all_adds = [*adds, *writer.finish()]
            all_removes = [*sorted(changes.removed), *removes]
            what = Change(numbers, all_adds, all_removes, "transaction", transaction, seen=known)
            after = commit(storage, what)
        catalog.keep(after, len(all_adds))
        return after

    try:
        return recomputed(Snapshot.newest(storage), ids[0], change)
    except StaleChange as stale:
        raise ConcurrentWriteError(
            f"{stale} of {storage.uri} during a transaction; nothing of the transaction was committed, run the "
            "block again if it still holds"
        ) from stale


def say_repeated(transaction: tuple[str, int] | None) -> None:
    """Log that a batch is committed already."""
    logger.info("transaction %s is committed already; nothing is written", transaction)


def _numbers(changes: Uncommitted, ids: Collection[str]) -> dict[str, int | None]:
    """Return for each tensor the number of the last change that the transaction has seen."""
    if changes.base is None:
        return dict.fromkeys(ids)
    found = changes.base.transactions([app_of(tensor_id) for tensor_id in ids])
    return {tensor_id: found[app_of(tensor_id)] for tensor_id in ids}


def _check_base(changes: Uncommitted, now: Snapshot) -> None:
    """Raise ConcurrentWriteError if what the transaction was computed from is not so any more.

    The numbers of its tensors, which `commit` looks at, do not tell of changes by plain Delta.
    """
    base, uri = changes.base, changes.storage.uri
    if base is None:
        return
    if now.table_id != base.table_id:
        raise ConcurrentWriteError(
            f"the table at {uri} was made anew during the transaction; nothing was committed, run the block again if "
            "it still holds"
        )
    gone = [path for path in changes.removed if path not in now.places]
    if gone:
        raise ConcurrentWriteError(
            f"a compaction, or another writer, moved rows of {uri} up to version {now.version} that "
            f"this transaction has assigned to ({len(gone)} files, such as {min(gone)}); nothing was committed, run "
            "the block again"
        )
    changed = _changed_by_others(changes, base, now)
    if changed:
        raise ConcurrentWriteError(
            f"another program changed rows of {uri} up to version {now.version} that this transaction has written "
            f"anew (of {', '.join(map(repr, changed[:5]))}); nothing was committed, run the block again"
        )


def _changed_by_others(changes: Uncommitted, base: Snapshot, now: Snapshot) -> list[str]:
    """Return the tensors whose rows the transaction carries from files that plain Delta may have changed since."""
    carried = sorted(changes.carried & changes.dropped)
    held = base.files.may_hold_any(carried)
    moved = {
        path for path, holds in zip(base.files.path, held, strict=True) if holds
    } - now.places.keys()
    if not moved:
        return []
    changed = changed_by_others(changes.storage, base.version + 1, now.version)
    doubtful = moved if changed is None else moved & changed
    places = [base.places[path] for path in doubtful]
    return [name for name in carried if base.files.may_hold_any([name])[places].any()]
