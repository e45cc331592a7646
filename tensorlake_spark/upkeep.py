"""What keeps a table well: what every door of a lake has in common, and the care that it takes."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlake_spark.delta import catalog, maintenance
from tensorlake_spark.delta.compact import OptimizeReport
from tensorlake_spark.delta.snapshot import Snapshot
from tensorlake_spark.delta.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, TableNotFoundError
from tensorlake_spark.optimize import optimize
from tensorlake_spark.ref import TensorRef


class Upkeep:
    """A table at its newest version, or at the one that it was opened at; base of `TensorLake`."""

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
        """Version of the table that is shown, None while there is no table."""
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
            return self._show(Snapshot.open(self._storage))
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

    def optimize(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        zorder: Sequence[str | int] | None = None,
        min_files: int = 2,
        target_bytes: int | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
    ) -> OptimizeReport:
        """Bring small data files together, or rows that are near each other on some axes.

        Files below half of `target_bytes` are written anew, rows in storage order and as they are: nothing
        is decoded, no tensor changes, and writers beside it go on. Every new file is a commit of its own.
        Older versions keep their files until `vacuum`. A second call finds nothing to do.

        With `zorder` the rows of each tensor are written in Morton order of their boxes on these axes, in one
        commit a tensor: for slices on inner axes, which in C order meet a part of every row group.

        Parameters
        ----------
        ids : str or sequence of str, optional
            Only files that hold rows of these tensors.
        zorder : sequence of str or int, optional
            Names or numbers of axes. Without `ids`, tensors that have no such axes stay as they are.
        min_files : int
            Do nothing while there are fewer small files; for calls after every batch.
        target_bytes : int, optional
            Size of the files to make, at most 1 GiB; the table's ``delta.targetFileSize``, or 128 MiB, if
            not given.
        max_bytes : int, optional
            Read no more than this; the next call goes on. With `zorder`, tensors that need more stay.
        dry_run : bool
            Only say what would be done.

        Returns
        -------
        OptimizeReport
            ``files_before, files_after, bytes_before, bytes_after`` of the files that were rewritten,
            ``rows`` in them, and the ``version`` afterwards.

        Raises
        ------
        TensorNotFoundError
            If there is no tensor of one of the ids.
        TableNotFoundError
            If there is no table yet.
        InvalidOptionError
            If a number makes no sense, or a tensor has no such axis, or combines duplicates.
        ConcurrentWriteError
            If other writers won too many commits in a row; files that are done stay.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> for day in range(5):
        ...     ref = lake.write("days", np.full((1, 8), day + 1), mode="append")
        >>> done = lake.optimize()
        >>> done.files_before, done.files_after
        (5, 1)
        >>> lake["days"][3].tolist() == [4] * 8
        True
        >>> lake.optimize().files_before
        0
        """
        self._check_writable()
        return optimize(
            self._storage, ids, zorder=zorder, min_files=min_files, target_bytes=target_bytes,
            max_bytes=max_bytes, dry_run=dry_run,
        )  # fmt: skip

    def vacuum(self, retention_hours: float | None = None, *, dry_run: bool = False) -> list[str]:
        """Delete files that no version within the retention needs; orphans of crashed writers too.

        Parameters
        ----------
        retention_hours : float, optional
            The table's own retention (a week) by default. 0 also takes files of writers at work now.
        dry_run : bool
            Only name them.

        Returns
        -------
        list of str
            Paths of the files.
        """
        self._check_writable()
        return maintenance.vacuum(Snapshot.open(self._storage), retention_hours, dry_run)
