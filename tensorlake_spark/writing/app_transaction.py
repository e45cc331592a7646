"""Batches that have a number: what may name them, and whether one is in the table already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.commit import app_of, transaction_done
from tensorlake_spark.delta.log.history import batches
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.time_travel import TAG
from tensorlake_spark.errors import InvalidOptionError, check_text

_OURS = (app_of(""), TAG)
_MOST = 1000  # commits that are looked at

_REMEDY = (
    "give every tensor a name of its own (txnAppId), or this batch a greater number (txnVersion)"
)


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
    check_text(name, "transaction: the name")
    if not name.strip() or name.startswith(_OURS):
        raise InvalidOptionError(
            f"the name {name!r} of who writes the batches is empty, or begins with 'tensor/', which counts the "
            "changes of a tensor, or 'tag/', which names a version; choose another name"
        )
    if not 0 <= number < 2**63:
        raise InvalidOptionError(
            f"the number {number} of a batch of {name!r} is not from 0 to 2**63 - 1"
        )


def pair_of(app: str | None, number: int | None, names: str) -> tuple[str, int] | None:
    """Return the name of an application and the number of its batch as one, None if neither is given.

    Parameters
    ----------
    app, number : str and int, optional
        The two.
    names : str
        What the caller calls them.

    Raises
    ------
    InvalidOptionError
        If only one of them is given.

    Examples
    --------
    >>> pair_of("nightly", 7, "txnAppId and txnVersion")
    ('nightly', 7)
    """
    if app is None and number is None:
        return None
    if app is None or number is None:
        raise InvalidOptionError(
            f"{names} (--txn-app-id and --txn-version) go together: the name of who writes the batches, and the number "
            "of this one"
        )
    return app, int(number) if hasattr(number, "__index__") else number


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
        If it is, and what it writes is not there, or the batches of that name wrote other tensors.
    """
    if transaction is None or not transaction_done(snapshot, transaction):
        return False
    check_there(snapshot, transaction, tensor_id, is_group)
    others = instead_of(tensor_id, tensors_of(snapshot, transaction), is_group)
    if others:
        raise InvalidOptionError(said_instead(snapshot, transaction, tensor_id, others, is_group))
    return True


def check_there(
    snapshot: Snapshot, transaction: tuple[str, int], tensor_id: str, is_group: bool = False
) -> None:
    """Raise InvalidOptionError if what a batch writes, which is committed already, is not there.

    The parameters are those of `is_repeated`.
    """
    if is_group:
        is_there = any(name.startswith(f"{tensor_id}/") for name in catalog.ids(snapshot))
    else:
        is_there = catalog.find(snapshot, tensor_id) is not None
    if not is_there:
        name, number = transaction
        raise InvalidOptionError(
            f"batch {number} of {name!r} counts as done in {snapshot.storage.uri}, but there is no tensor "
            f"{_called(tensor_id, is_group)}: another tensor was written under that name, or this one was "
            f"deleted since; {_REMEDY}"
        )


def tensors_of(snapshot: Snapshot, transaction: tuple[str, int]) -> frozenset[str] | None:
    """Return the tensors that a committed batch, and later ones of its name, wrote; None where that is not known.

    It is not known if the log has dropped the commit, if a thousand commits came after it, or if a program that
    does not count the changes of tensors made it.
    """
    name, number = transaction
    found: frozenset[str] = frozenset()
    for done, tensors in batches(snapshot, name, _MOST):
        if done >= number:
            if not tensors:
                return None
            found |= tensors
        if done <= number:
            return found
    return None


def instead_of(tensor_id: str, written: frozenset[str] | None, is_group: bool = False) -> list[str]:
    """Return what a batch wrote if that is known, and not the tensor or the group that it should have written.

    Examples
    --------
    >>> instead_of("a", frozenset({"a", "b"})), instead_of("c", frozenset({"b"})), instead_of("c", None)
    ([], ['b'], [])
    """
    if written is None:
        return []
    if is_group:
        is_written = any(name.startswith(f"{tensor_id}/") for name in written)
    else:
        is_written = tensor_id in written
    return [] if is_written else sorted(written)


def said_instead(
    snapshot: Snapshot,
    transaction: tuple[str, int],
    tensor_id: str,
    others: Sequence[str],
    is_group: bool = False,
) -> str:
    """Return the message for a batch that wrote `others` and not the tensor or the group `tensor_id`."""
    name, number = transaction
    wrote = ", ".join(map(repr, others[:3])) + (", ..." if len(others) > 3 else "")
    return (
        f"batch {number} of {name!r} counts as done in {snapshot.storage.uri}, because {wrote} was written under "
        f"that name; nothing is written of {_called(tensor_id, is_group)}; {_REMEDY}"
    )


def _called(tensor_id: str, is_group: bool) -> str:
    return repr(f"{tensor_id}/..." if is_group else tensor_id)
