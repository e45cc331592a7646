"""A result becomes a tensor of the lake, streamed, by one commit."""

from __future__ import annotations

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, TensorExistsError
from tensorlake_spark.progress import progress
from tensorlake_spark.tensor.spec import check_id
from tensorlake_spark.writing import write
from tensorlake_spark.writing.options import WriteOptions
from tensorlake_spark.writing.overlay import View
from tensorlake_spark.writing.source import Source


def free_id(storage: Storage, tensor_id: str) -> Snapshot:
    """Return the newest version of a table, if a result can have this id there.

    Raises
    ------
    TensorExistsError
        If there is a tensor of this id.
    """
    check_id(tensor_id)
    now = Snapshot.newest(storage)
    now.check_writable()
    if catalog.find(now, tensor_id) is not None:
        raise TensorExistsError(
            f"tensor {tensor_id!r} exists in {storage.uri}; give another id, or delete it first"
        )
    return now


def check_into(snapshot: Snapshot, into: str | None) -> None:
    """Raise if a result cannot go to the lake under this id; None if it does not go there.

    It is asked before anything is computed, which may take long.

    Raises
    ------
    InvalidOptionError
        If it is not the id of a tensor, and in a transaction, whose changes are not in the table yet.
    TensorExistsError
        If there is a tensor of this id.
    """
    if into is None:
        return
    if not isinstance(into, str):
        raise InvalidOptionError(f"into={into!r:.80} is not the id of a tensor, which is a string")
    if isinstance(snapshot, View):
        raise InvalidOptionError(
            f"into={into!r} writes to the table, and this tensor belongs to a transaction; compute the result and "
            f"write it with tx.write({into!r}, result)"
        )
    free_id(snapshot.storage, into)


def write_result(snapshot: Snapshot, tensor_id: str, source: Source, layout: str) -> Snapshot:
    """Write a new tensor into the table that a version is of, and return the version that has it.

    Nothing is there before the commit. If writing is interrupted, the data files that were written are deleted.

    Raises
    ------
    TensorExistsError
        If another writer made a tensor of this id meanwhile.
    """
    with progress(f"write {tensor_id}", source.nbytes) as done:
        return write.write(
            snapshot.storage, tensor_id, source, "error", None, WriteOptions(layout=layout), done
        )
