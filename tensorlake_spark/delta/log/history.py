"""The commits of a table's log: when each was made, by whom, and which tensors it changed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.delta.log.actions import (
    TXN,
    commit_name,
    commit_times,
    json_actions,
    read_actions,
)
from tensorlake_spark.delta.log.commit import MARK, app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.threads import threads

if TYPE_CHECKING:
    import pandas as pd

_AT_ONCE = 64  # commits that are read before it is known whether they are wanted


@dataclass(frozen=True)
class Commit:
    """What the log says of one version; see `TensorLake.history` for the columns."""

    version: int
    timestamp: int  # milliseconds since 1970
    operation: str
    tensors: tuple[str, ...]
    foreign: bool
    data_change: bool
    files_added: int
    files_removed: int
    user: str | None
    engine: str | None
    parameters: dict[str, Any]

    def may_change(self, tensor_id: str) -> bool:
        """Whether a tensor changed here, or may have, for the writer does not say what it changed."""
        return self.foreign or tensor_id in self.tensors


def check_limit(limit: Any) -> None:
    """Raise InvalidOptionError unless it is None, or a number of versions.

    Examples
    --------
    >>> check_limit(3)
    """
    if limit is not None and not (isinstance(limit, (int, np.integer)) and limit >= 0):
        raise InvalidOptionError(
            f"limit is {limit!r}; it is a whole number of at least 0, or None for all versions"
        )


def history(snapshot: Snapshot, tensor_id: str | None, limit: int | None) -> pd.DataFrame:
    """Return the versions up to a snapshot's, newest first; see `TensorLake.history`."""
    wanted = (c for c in _commits(snapshot) if tensor_id is None or c.may_change(tensor_id))
    most = None if limit is None else min(int(limit), sys.maxsize)  # islice takes no larger one
    return frame(list(islice(wanted, most)))


def frame(commits: list[Commit]) -> pd.DataFrame:
    """Return commits as a table, one row each."""
    import pandas as pd  # late: it takes longer to import than all the rest

    columns = [field.name for field in fields(Commit)]
    out: pd.DataFrame = pd.DataFrame([astuple(c) for c in commits], columns=columns)
    times = pd.to_datetime(out["timestamp"].astype("int64"), unit="ms", utc=True)
    out["timestamp"] = times.astype("datetime64[ms, UTC]")
    numbers = dict.fromkeys(("version", "files_added", "files_removed"), "int64")
    out = out.astype({**numbers, "foreign": "bool", "data_change": "bool"})
    return out


def batches(snapshot: Snapshot, name: str, most: int) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield the batches of one name among the newest commits, newest first: the number and the tensors of each.

    Parameters
    ----------
    snapshot : Snapshot
        Where to look.
    name : str
        Name of an application transaction.
    most : int
        How many commits to read at the most.
    """
    for version, text, _ in islice(_read(snapshot), most):
        actions = json_actions(text, TXN, commit_name(version))
        said = {str(txn["appId"]): int(txn["version"]) for _, txn in actions}
        if name in said:
            yield said[name], frozenset(_tensors(said))


def restored_by_others(snapshot: Snapshot) -> Commit | None:
    """Return the newest RESTORE of another program which no restore of this package follows, None if there is none."""
    for commit in _commits(snapshot):
        if commit.operation == "restore":
            return None
        if commit.operation == "RESTORE":  # with no file where only parts were changed
            return commit
    return None


def _tensors(transactions: Iterable[str]) -> Iterator[str]:
    """Yield the tensors of which a commit counts the changes."""
    prefix = app_of("")
    for app in transactions:
        if app.startswith(prefix):
            yield app.removeprefix(prefix)


def _commits(snapshot: Snapshot) -> Iterator[Commit]:
    for version, text, written in _read(snapshot):
        yield _parse(version, text, written)


def _read(snapshot: Snapshot) -> Iterator[tuple[int, bytes, int]]:
    """Yield version, text and time of the commits that the log still has, newest first.

    A few are read ahead, several at a time.
    """
    storage = snapshot.storage
    with reaching(storage):
        times = commit_times(storage)
    versions = sorted((v for v in times if v <= snapshot.version), reverse=True)

    def load(version: int) -> bytes | None:
        try:
            return storage.read_whole(commit_name(version))
        except FileNotFoundError:  # the log was tidied up meanwhile
            return None

    for start in range(0, len(versions), _AT_ONCE):
        some = versions[start : start + _AT_ONCE]
        with reaching(storage):
            loaded = list(threads().map(load, some))
        for version, text in zip(some, loaded, strict=True):
            if text is not None:
                yield version, text, times[version]


def _parse(version: int, text: bytes, written: int) -> Commit:
    """Read one commit; its files are counted."""
    actions = [*json_actions(text, ("add", "remove", "commitInfo", "txn"), commit_name(version))]
    counts = Counter(kind for kind, _ in actions)
    info = next((said for kind, said in actions if kind == "commitInfo"), {})
    apps = [str(said["appId"]) for kind, said in actions if kind == "txn"]
    changes = any(said.get("dataChange") for _, said in actions)
    ours = info.get("tensorlake.operation")
    parameters = info.get("operationParameters")
    return Commit(
        version=version,
        timestamp=written,  # not what the writer's clock said: a time is looked up by this
        operation=str(ours or info.get("operation") or ""),
        tensors=tuple(sorted(_tensors(apps))),
        foreign=ours is None and changes,
        data_change=changes,
        files_added=counts["add"],
        files_removed=counts["remove"],
        user=info.get("userName"),
        engine=info.get("engineInfo"),
        parameters=dict(parameters) if isinstance(parameters, dict) else {},
    )


def changed_by_others(storage: Storage, first: int, last: int) -> set[str] | None:
    """Return the files that were removed from a table with their rows, by commits that are not this package's.

    What this package or a compaction removes, it writes anew.

    Parameters
    ----------
    storage : Storage
        The table.
    first, last : int
        The versions to look at.

    Returns
    -------
    set of str, or None
        Paths; None if the log does not have all of the versions any more.
    """
    found: set[str] = set()
    with reaching(storage):
        for version in range(first, last + 1):
            try:
                said = [*read_actions(storage, commit_name(version), ("commitInfo", "remove"))]
            except FileNotFoundError:
                return None
            if not any(kind == "commitInfo" and MARK in action for kind, action in said):
                found |= {
                    action["path"]
                    for kind, action in said
                    if kind == "remove" and action.get("dataChange", True)
                }
    return found
