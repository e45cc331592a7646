"""What can be mended without a guess, each by a commit of its own: statistics, and totals."""

from __future__ import annotations

from tensorlake_spark.audit.check_tensor import Stock
from tensorlake_spark.delta.files.inspection import stored_batches
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, StaleChange, commit
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.writing.pipeline import commit_change


def write_anew(snapshot: Snapshot, path: str) -> bool:
    """Write a data file anew, its rows as they are: the new one has statistics, size and seal that hold.

    A commit may not remove a file and add one of the same path, so the path is new.

    Returns
    -------
    bool
        False where another writer has replaced the file meanwhile.
    """
    try:
        with FileWriter.into(snapshot) as writer:
            for batch in stored_batches(snapshot, path):
                writer.add_batch(batch)
            commit(
                snapshot.storage, Change({}, writer.finish(), [path], "repair", data_change=False)
            )
    except StaleChange:
        return False
    return True


def count_anew(snapshot: Snapshot, stock: Stock) -> bool:
    """Add a metadata row with the totals of the rows that are there, in the place after all of them.

    Returns
    -------
    bool
        False where there is nothing to go by, or another writer has changed the tensor meanwhile.
    """
    meta = None if stock.last is None else stock.last.meta
    if meta is None:
        return False
    try:
        with FileWriter.into(snapshot) as writer:
            writer.add_meta([meta.spec], [stock.last_seq + 1], [stock.totals])
            commit_change(snapshot, meta.spec.id, writer, [], "repair", None)
    except StaleChange:
        return False
    return True
