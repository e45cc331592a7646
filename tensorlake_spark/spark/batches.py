"""Batches that have a number: what an earlier run has committed is not done again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorlake_spark.delta import catalog
from tensorlake_spark.delta.commit import app_of, transaction_done
from tensorlake_spark.delta.snapshot import Snapshot
from tensorlake_spark.delta.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, TableNotFoundError, TensorExistsError
from tensorlake_spark.meta import Meta
from tensorlake_spark.spark.outcome import REPEATED, Outcome

_OURS = "tensor/"


def transaction_of(options: Mapping[str, str]) -> tuple[str, int] | None:
    """Return name and number of a batch, None if it has none.

    Raises
    ------
    InvalidOptionError
        If one of them is missing, or will not do.
    """
    app, number = options.get("txnAppId"), options.get("txnVersion")
    if app is None and number is None:
        return None
    if app is None or number is None:
        raise InvalidOptionError(
            "--txn-app-id and --txn-version (txnAppId and txnVersion) go together: the name of who writes the "
            "batches, and the number of this one"
        )
    if not app.strip() or app.startswith(_OURS):
        raise InvalidOptionError(
            f"--txn-app-id {app!r} is empty, or begins with {_OURS!r}, which counts the changes of a tensor; "
            "choose another name"
        )
    try:
        version = int(number)
    except ValueError:
        raise InvalidOptionError(f"--txn-version {number!r} is no integer") from None
    if not 0 <= version < 2**63:
        raise InvalidOptionError(f"--txn-version {version} is not from 0 to 2**63 - 1")
    return app, version


def repeated(
    storage: Storage, tensor_id: str, batch: tuple[str, int] | None, is_group: bool
) -> Outcome | None:
    """Return what is there if a batch, or a later one of that name, is committed already, else None."""
    if batch is None:
        return None
    try:
        snapshot = Snapshot.open(storage)
    except TableNotFoundError:
        return None
    if not transaction_done(snapshot, batch):
        return None
    if is_group:
        metas = [m for m in catalog.metas(snapshot) if m.spec.id.startswith(f"{tensor_id}/")]
    else:
        found = catalog.find(snapshot, tensor_id)
        metas = [] if found is None else [found]
    return Outcome(REPEATED, tuple(metas), version=snapshot.version)


def state(storage: Storage, tensor_id: str) -> tuple[Meta | None, int | None]:
    """Return a tensor, None if it is not there, and the number of its last change."""
    try:
        snapshot = Snapshot.open(storage)
    except TableNotFoundError:
        return None, None
    return catalog.find(snapshot, tensor_id), snapshot.transaction(app_of(tensor_id))


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
