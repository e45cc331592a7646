"""The commits of a table's log: when each was made, by whom, and which tensors it changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any

from tensorlake_spark.delta.log.actions import commit_name, commit_times
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import reaching
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


def history(snapshot: Snapshot, tensor_id: str | None, limit: int | None) -> pd.DataFrame:
    """Return the versions up to a snapshot's, newest first; see `TensorLake.history`."""
    wanted = (c for c in _commits(snapshot) if tensor_id is None or c.may_change(tensor_id))
    return frame(list(islice(wanted, limit)))


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


def _commits(snapshot: Snapshot) -> Iterator[Commit]:
    """Yield what the log still has, newest first; a few commits are read ahead, several at a time."""
    storage = snapshot.storage
    with reaching(storage):
        times = commit_times(storage)
    versions = sorted((v for v in times if v <= snapshot.version), reverse=True)

    def load(version: int) -> Commit | None:
        try:
            text = storage.read_whole(commit_name(version))
        except FileNotFoundError:  # the log was tidied up meanwhile
            return None
        return _parse(version, text, times[version])

    for start in range(0, len(versions), _AT_ONCE):
        with reaching(storage):
            loaded = list(threads().map(load, versions[start : start + _AT_ONCE]))
        yield from (commit for commit in loaded if commit is not None)


def _parse(version: int, text: bytes, written: int) -> Commit:
    """Read one commit; what it says of files is counted and not parsed."""
    info: dict[str, Any] = {}
    tensors = []
    added = removed = 0
    changes = False
    prefix = app_of("")
    for line in text.splitlines():
        kind = line[:16].replace(b" ", b"")
        if kind.startswith((b'{"add"', b'{"remove"')):
            added += kind.startswith(b'{"add"')
            removed += kind.startswith(b'{"remove"')
            changes = changes or b'"dataChange":true' in line.replace(b" ", b"")
        elif kind.startswith(b'{"txn"'):
            app = str(json.loads(line)["txn"]["appId"])
            if app.startswith(prefix):
                tensors.append(app.removeprefix(prefix))
        elif kind.startswith(b'{"commitInfo"'):
            info = json.loads(line)["commitInfo"]
    ours = info.get("tensorlake.operation")
    return Commit(
        version=version,
        timestamp=written,  # not what the writer's clock said: a time is looked up by this
        operation=str(ours or info.get("operation") or ""),
        tensors=tuple(sorted(tensors)),
        foreign=ours is None and changes,
        data_change=changes,
        files_added=added,
        files_removed=removed,
        user=info.get("userName"),
        engine=info.get("engineInfo"),
        parameters=dict(info.get("operationParameters") or {}),
    )
