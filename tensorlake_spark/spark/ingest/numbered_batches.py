"""Batches that have a number: what an earlier run has committed is not done again."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.properties import FILE_BYTES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TableNotFoundError, TensorExistsError
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.spark.ingest.outcome import REPEATED, Outcome
from tensorlake_spark.writing.app_transaction import is_repeated


def repeated(
    storage: Storage, tensor_id: str, batch: tuple[str, int] | None, is_group: bool
) -> Outcome | None:
    """Return what is there if a batch, or a later one of that name, is committed already, else None.

    Raises
    ------
    InvalidOptionError
        If it is, and what it writes is not there.
    """
    if batch is None:
        return None
    try:
        snapshot = Snapshot.open(storage)
    except TableNotFoundError:
        return None
    if not is_repeated(snapshot, batch, tensor_id, is_group):
        return None
    if is_group:
        metas = [m for m in catalog.metas(snapshot) if m.spec.id.startswith(f"{tensor_id}/")]
    else:
        metas = [catalog.get(snapshot, tensor_id)]
    return Outcome(REPEATED, tuple(metas), version=snapshot.version)


def state(storage: Storage, tensor_id: str) -> tuple[Meta | None, int | None]:
    """Return a tensor, None if it is not there, and the number of its last change."""
    try:
        snapshot = Snapshot.open(storage)
    except TableNotFoundError:
        return None, None
    return catalog.find(snapshot, tensor_id), snapshot.transaction(app_of(tensor_id))


def target_bytes(storage: Storage) -> int:
    """Return how large the data files of a table become, or of one that is not there yet."""
    try:
        return Snapshot.open(storage).file_bytes
    except TableNotFoundError:
        return FILE_BYTES


def last_change(number: int | None) -> dict[str, str]:
    """Return the option of a write that holds only if a tensor's last change has this number, None for none."""
    return {"lastChange": str(-1 if number is None else number)}


def there(storage: Storage, ids: Sequence[str]) -> list[str]:
    """Return which of some tensors are in the table."""
    try:
        snapshot = Snapshot.open(storage)
    except TableNotFoundError:
        return []
    present = set(catalog.ids(snapshot))
    return [i for i in ids if i in present]


def check_free(storage: Storage, taken: Sequence[str]) -> None:
    """Raise TensorExistsError if there are tensors in the table that should not be."""
    if taken:
        raise TensorExistsError(
            f"tensor {taken[0]!r} exists in {storage.uri}; --mode overwrite or --mode append"
        )
