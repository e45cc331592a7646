"""Batches that have a number: what may name them, and whether one is in the table already."""

from __future__ import annotations

from typing import Any

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.commit import app_of, transaction_done
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.time_travel import TAG
from tensorlake_spark.errors import InvalidOptionError

_OURS = (app_of(""), TAG)


def check_transaction(transaction: Any) -> None:
    """Raise InvalidOptionError unless it is None, or the name of an application and the number of a batch.

    Examples
    --------
    >>> check_transaction(("nightly", 7))
    """
    match transaction:
        case None:
            return
        case (str() as name, int() as number):
            pass
        case _:
            raise InvalidOptionError(
                f"transaction={transaction!r} is not a pair of an application's name and the number of a batch, "
                "such as ('nightly', 7)"
            )
    if not name.strip() or name.startswith(_OURS):
        raise InvalidOptionError(
            f"the name {name!r} of who writes the batches is empty, or begins with 'tensor/', which counts the "
            "changes of a tensor, or 'tag/', which names a version; choose another name"
        )
    if not 0 <= number < 2**63:
        raise InvalidOptionError(
            f"the number {number} of a batch of {name!r} is not from 0 to 2**63 - 1"
        )


def is_repeated(
    snapshot: Snapshot, transaction: tuple[str, int] | None, tensor_id: str, is_group: bool = False
) -> bool:
    """Return whether a batch, or a later one of its name, is committed already.

    Parameters
    ----------
    snapshot : Snapshot
        Where to look.
    transaction : (str, int), or None
        Name and number of the batch; without them it is not.
    tensor_id : str
        What it writes.
    is_group : bool
        Whether that is the group of the tensors that it writes.

    Raises
    ------
    InvalidOptionError
        If it is, and what it writes is not there.
    """
    if transaction is None or not transaction_done(snapshot, transaction):
        return False
    if is_group:
        is_there = any(name.startswith(f"{tensor_id}/") for name in catalog.ids(snapshot))
    else:
        is_there = catalog.find(snapshot, tensor_id) is not None
    if not is_there:
        name, number = transaction
        raise InvalidOptionError(
            f"batch {number} of {name!r} counts as done in {snapshot.storage.uri}, but there is no tensor "
            f"{f'{tensor_id}/...' if is_group else tensor_id!r}: another tensor was written under that name, or "
            "this one was deleted since; give every tensor a name of its own (txnAppId), or this batch a greater "
            "number (txnVersion)"
        )
    return True
