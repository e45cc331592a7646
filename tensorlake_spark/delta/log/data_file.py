"""Data files around the commit that names them: written but not named yet, or given up by a change that failed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs
from deltalake.transaction import AddAction

from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import StorageError, TableNotFoundError, TensorLakeError

PART = "part-"  # what the names of data files begin with

_unsettled: set[tuple[str, str]] = set()
"""Tables and data files of commits that may still land: the request is under way, and nobody waits for it."""


def unsettle(storage: Storage, files: Sequence[DataFile]) -> None:
    """Keep files from `discard`, for a commit that names them got no answer and may land at any time."""
    _unsettled.update((storage.uri, file.path) for file in files)


@contextmanager
def unsure(is_sent: bool) -> Iterator[None]:
    """Let what a store refuses say that a commit was sent, if it was: it may be in the log, or come there."""
    try:
        yield
    except StorageError as error:
        if not is_sent:
            raise
        raise StorageError(
            f"{error}; the change may be committed all the same, so its files stay: look at the newest version before "
            "you repeat it"
        ) from error


def discard(storage: Storage, names: Sequence[str]) -> None:
    """Delete data files of a change that failed, unless they are in the log all the same, or may come there.

    A commit may land and raise, for its answer can be lost on the way. So the log is asked; where it
    does not answer, the files stay, and are vacuum's.
    """
    if not names:
        return
    try:
        live = set(Snapshot.open(storage, kind=None).files.path)
    except TableNotFoundError:
        live = set()
    except TensorLakeError:
        return
    with suppress(OSError):
        for name in names:
            if name not in live and (storage.uri, name) not in _unsettled:
                storage.delete(name)


def marked(storage: Storage, mark: str) -> list[str]:
    """Return the data files whose writer has a mark; none where the store does not answer."""
    filesystem, base = storage.place
    with suppress(OSError):
        found = filesystem.get_file_info(pafs.FileSelector(base, allow_not_found=True))
        return [f.base_name for f in found if f.base_name.startswith(f"{PART}{mark}")]
    return []


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file that is written, and that no commit has named yet, or that comes back.

    Attributes
    ----------
    path : str
        Path in the table.
    size : int
        Bytes.
    stats : str
        Statistics as the Delta log has them (JSON).
    vector : mapping of str to object, or None
        The deletion vector with which it comes back, as the log has it; deltalake cannot write one.
    """

    path: str
    size: int
    stats: str
    vector: Mapping[str, Any] | None = None

    @property
    def rows(self) -> int:
        """How many rows are in it."""
        return int(json.loads(self.stats)["numRecords"])

    def to_log(self, now: int, data_change: bool) -> dict[str, Any]:
        """Return what `add_action` does as the log has it, with the vector; `now` is in milliseconds."""
        said = {
            "path": self.path,
            "partitionValues": {},
            "size": self.size,
            "modificationTime": now,
            "dataChange": data_change,
            "stats": self.stats,
        }
        if self.vector is None:
            return said
        # Bounds are those of all rows, also of those that are marked.
        loose = json.dumps({**json.loads(self.stats), "tightBounds": False})
        return {**said, "stats": loose, "deletionVector": dict(self.vector)}

    def add_action(self, data_change: bool = True) -> AddAction:
        """Return what a commit says to add it; `data_change` is whether its rows are new to the table."""
        return AddAction(self.path, self.size, {}, int(time.time() * 1000), data_change, self.stats)
