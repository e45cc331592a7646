"""A result becomes a tensor of the lake, streamed, by one commit."""

from __future__ import annotations

from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.progress import progress
from tensorlake_spark.writing import write
from tensorlake_spark.writing.options import WriteOptions
from tensorlake_spark.writing.overlay import View
from tensorlake_spark.writing.source import Source


def write_result(snapshot: Snapshot, tensor_id: str, source: Source, layout: str) -> Snapshot:
    """Write a new tensor into the table that a version is of, and return the version that has it.

    Nothing is there before the commit. If writing is interrupted, the data files that were written are deleted.

    Raises
    ------
    TensorExistsError
        If there is a tensor of this id.
    InvalidOptionError
        In a transaction, whose changes are not in the table yet.
    """
    if isinstance(snapshot, View):
        raise InvalidOptionError(
            f"into={tensor_id!r} writes to the table, and this tensor belongs to a transaction; compute the result and "
            f"write it with tx.write({tensor_id!r}, result)"
        )
    with progress(f"write {tensor_id}", source.nbytes) as done:
        return write.write(
            snapshot.storage, tensor_id, source, "error", None, WriteOptions(layout=layout), done
        )
