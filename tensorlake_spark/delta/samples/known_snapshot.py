"""A version of a table for other processes: it goes to them with what is known, and they read no log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.log.replaying.remote_log import Mirror
from tensorlake_spark.delta.log.replaying.replay import Head
from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

Array = np.ndarray[Any, Any]


class KnownLog(Head):
    """What the log of a table says of one version.

    Parameters
    ----------
    protocol, metadata : dict
        As for `Head`.
    version : int
        The version.
    actions : pyarrow.Table
        What it says of the live files.
    """

    def __init__(
        self,
        protocol: dict[str, Any],
        metadata: dict[str, Any],
        version: int,
        actions: pa.Table,
    ) -> None:
        super().__init__(protocol, metadata)
        self._version, self._actions = version, actions

    def __reduce__(self) -> tuple[Any, ...]:
        return KnownLog, (self._protocol, self._metadata, self._version, self._actions)

    def version(self) -> int:
        """Return the version."""
        return self._version

    def get_add_actions(self, flatten: bool = True) -> pa.Table:
        """Return what the log says of the live files; it is flat already."""
        return self._actions


class KnownSnapshot(Snapshot):
    """A table at one version, which pickles with its log.

    Parameters
    ----------
    storage : Storage
        Where it is.
    log : KnownLog
        Its log.
    transactions : dict of str to int, or None
        The last number of every application transaction, None where it is not known.
    deletions : mapping of str to bool ndarray
        As `Snapshot.deletions`.
    kind : str
        What it is.
    """

    def __init__(
        self,
        storage: Storage,
        log: Any,
        transactions: dict[str, int] | None,
        deletions: Mapping[str, Array],
        kind: str | None,
    ) -> None:
        super().__init__(storage, Mirror(log, None, transactions), kind)
        self._given = storage, log, transactions, deletions, kind
        self.deletions = deletions

    def __reduce__(self) -> tuple[Any, ...]:
        return KnownSnapshot, self._given


def known_snapshot(
    snapshot: Snapshot, columns: Sequence[str], files: Array | None = None
) -> KnownSnapshot:
    """Return a version that goes to processes with what is known of it.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    columns : sequence of str
        Columns whose bounds they get, with dots between the structs around one and its own name: a table may be wide.
    files : bool ndarray, optional
        Which of its files they get to know; all of them by default.
    """
    actions = snapshot.file_actions
    if files is not None:
        actions = actions.filter(pa.array(files))
    names = ["path", "size_bytes", "num_records"]
    for name in actions.column_names:
        side, _, column = name.partition(".")
        wanted = (column == one or column.startswith(f"{one}.") for one in (SID, *columns))
        if side in ("min", "max") and any(wanted):
            names.append(name)
    said, protocol = snapshot._log, snapshot._log.protocol()
    log = KnownLog(
        {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "readerFeatures": protocol.reader_features,
            "writerFeatures": protocol.writer_features,
        },
        {
            "id": snapshot.table_id,
            "schemaString": said.schema().to_json(),
            "configuration": {**snapshot.configuration},
        },
        snapshot.version,
        actions.select(names),
    )
    numbers = snapshot._transactions
    known = numbers if isinstance(numbers, dict) else None
    return KnownSnapshot(snapshot.storage, log, known, snapshot.deletions, snapshot.kind)
