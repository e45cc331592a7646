"""A table as a lake shows it: at its newest version, or at the version at which it was opened."""

from __future__ import annotations

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, TableNotFoundError
from tensorlake_spark.lake.ref import TensorRef


class Table:
    """Where a lake is, and which version it shows."""

    def __init__(self, storage: Storage, verify: bool = True) -> None:
        self._storage = storage
        self._verify = verify
        self._pinned: Snapshot | None = None
        self._newest: tuple[Snapshot, int | None] | None = None

    @property
    def uri(self) -> str:
        """Where the table is."""
        return self._storage.uri

    @property
    def version(self) -> int | None:
        """The version of the table that the lake shows; None while there is no table."""
        snapshot = self._snapshot()
        return None if snapshot is None else snapshot.version

    def _snapshot(self) -> Snapshot | None:
        if self._pinned is not None:
            return self._pinned
        if self._newest is not None:
            snapshot, stamp = self._newest
            if stamp is not None and snapshot.stamp() == stamp:
                return snapshot
        try:
            return self._show(Snapshot.newest(self._storage))
        except TableNotFoundError:
            self._newest = None
            return None

    def _show(self, snapshot: Snapshot) -> Snapshot:
        """Keep a snapshot: while it is the newest, its log need not be read again."""
        self._newest = snapshot, snapshot.stamp()
        return snapshot

    def _ref(self, snapshot: Snapshot, tensor_id: str) -> TensorRef:
        """Return a reference to a tensor at the version that a change has made."""
        self._show(snapshot)
        return TensorRef(snapshot, catalog.get(snapshot, tensor_id), self._verify)

    def _check_writable(self) -> None:
        if self._pinned is not None:
            raise InvalidOptionError(
                f"this lake shows version {self._pinned.version} of {self.uri}, for reading only; open it "
                "without version and timestamp to write"
            )
