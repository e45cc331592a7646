"""The care that a table takes: few files, nothing left over, nothing damaged, nothing that should be gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorlake_spark.audit import check, purge
from tensorlake_spark.audit.check import CheckReport
from tensorlake_spark.audit.receipt import PurgeReceipt
from tensorlake_spark.delta.files.compaction import OptimizeReport
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.lake.table import Table
from tensorlake_spark.upkeep import stale_uploads, vacuum
from tensorlake_spark.upkeep.optimize import optimize


class Upkeep(Table):
    """A table that is kept well."""

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
            Do nothing while there are fewer small files; for calls after every batch. Of no matter with `zorder`.
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
            If a number makes no sense, or a tensor has no such axis, combines duplicates, or has rows of
            another writer that share a place.
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

        Files of versions that have a tag stay, as long as the log has these versions
        (``delta.logRetentionDuration``, 30 days by default); a warning names those that it has not. Files of
        deletion vectors stay too; Spark's VACUUM takes them. So do those of another table in a folder of this
        one.

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

        Raises
        ------
        InvalidOptionError
            If `retention_hours` is negative, or no number.
        TableNotFoundError
            If there is no table yet.
        """
        self._check_writable()
        return vacuum.vacuum(Snapshot.open(self._storage), retention_hours, dry_run)

    def abort_uploads(
        self, retention_hours: float | None = None, *, dry_run: bool = False
    ) -> list[str]:
        """Abort multipart uploads that killed writers left in the table's folder on S3.

        Nobody reads them, and `vacuum` does not see them, but the bucket keeps their parts. A lifecycle
        rule of the bucket (AbortIncompleteMultipartUpload) does the same without a call.

        Parameters
        ----------
        retention_hours : float, optional
            Only those that were begun longer ago; the table's own retention (a week) by default. 0 also takes
            uploads of writers at work now.
        dry_run : bool
            Only name them.

        Returns
        -------
        list of str
            Paths of the files that would have been; none where the store is not S3.

        Raises
        ------
        InvalidOptionError
            If `retention_hours` is negative, or no number.
        MissingDependencyError
            If boto3 is not installed.
        TableNotFoundError
            If there is no table yet.
        StorageError
            If the store refuses, or does not answer.
        """
        self._check_writable()
        vacuum.check_retention(retention_hours)
        return stale_uploads.abort_uploads(Snapshot.open(self._storage), retention_hours, dry_run)

    def check(self, ids: str | Sequence[str] | None = None, *, repair: bool = False) -> CheckReport:
        """Hold every file, row and total of the table against each other; nothing is trusted or decoded.

        - Files: each is there, has the size and number of rows of the log, its footer the seal.
        - Rows: checksum, a box that is none of nothing, a layout, dtype and codec that are known and the
          tensor's, within its shape.
        - Statistics of the log and of row groups: none may rule out a row that is there. Wider ones, and
          missing ones, are as Delta allows them.
        - Tensors: totals, places in the storage order, rows without a metadata row, boxes of dense rows that
          meet, elements that a sparse tensor stores twice and may not. These are decoded, where boxes meet.
        - Orphans: files that no version names, and notes of ingestions. They are notices and no errors,
          for other writers may be at work.

        A chunk of a dense tensor without a row is full of the fill value, so a hole is no error as such. Where
        the totals say that rows are missing, a ``gap`` is what has to be theirs: any box without a row in a
        tensor that rows should cover, else only holes that are smaller than a chunk.

        Memory is bounded by a row group for each thread, and some hundred bytes for each row of the table.

        Parameters
        ----------
        ids : str or sequence of str, optional
            Only these tensors, in the files that the log's statistics name for them.
        repair : bool
            Mend what needs no guess, each by a commit of its own: totals are counted anew, as after rows were
            added or deleted with plain Delta, if all rows are sound and all files there; files of which
            the log or the footer say something wrong are written anew, as they are. A damaged row, a missing
            file or an overlap is told with its place, and left as it is.

        Returns
        -------
        CheckReport
            ``ok``, ``findings`` (each with ``kind, place, text, repaired``), ``files``, ``rows``, ``nbytes``
            that were looked at.

        Raises
        ------
        TensorNotFoundError
            If there is no tensor of one of the ids.
        TableNotFoundError
            If there is no table yet.
        StorageError
            If the store refuses, or does not answer.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.ones((4, 4)))
        >>> report = lake.check()
        >>> report.ok, report.files, report.rows, report.findings
        (True, 1, 2, ())
        """
        if repair:
            self._check_writable()
        snapshot = self._pinned or Snapshot.open(self._storage)
        return check.check(snapshot, [ids] if isinstance(ids, str) else ids, repair)

    def purge(
        self,
        id: str,  # noqa: A002
        region: Any = None,
        *,
        coords: Any = None,
        now: bool = False,
        dry_run: bool = False,
    ) -> PurgeReceipt:
        """Remove a tensor, or a part of it, from the table and from every file of its old versions.

        It leaves the newest version by one commit: the tensor is deleted, a part of a dense one becomes fill
        value, elements of a sparse one are removed. Then every data file in the table's folder that holds
        rows of it is deleted from the store, whether a version names it or not; rows are read to tell,
        statistics are not trusted. **Versions that need such a file can no longer be read**, nor can other
        tensors in it at these versions; the newest version keeps all others. Tags do not protect them. Another
        table in a folder of this one is left alone.

        Files that left the table less than ``delta.deletedFileRetentionDuration`` ago (a week) are pending:
        a reader may be at work in them. The receipt says from when on the same call deletes them. It may be
        repeated at any time, also after an interruption, and finds what is left, or that nothing is; what was
        written there since is purged too.

        A part is named on the tensor as it is now. In versions in which it was longer, an axis that the key takes
        whole, or from some index on, goes on to the end; negative indices count from where it ends now.

        At the end all files that are left, the log included, are searched for the payloads that were
        deleted. What remains is the tensor's name in the log's transactions and statistics, with bounds of its
        rows there. Attributes and labels go with the files. Of a part, the metadata stays.

        Parameters
        ----------
        id : str
            Which tensor.
        region : key or str, optional
            A part of it, as in ``ref[key]`` or as text; all of it by default.
        coords : integer array, shape (ndim, n), optional
            Single elements instead of a region.
        now : bool
            Delete pending files too. A reader of an older version, or a writer at work, may miss them.
        dry_run : bool
            Only say which files would go.

        Returns
        -------
        PurgeReceipt
            ``verified`` and ``reason``; ``deleted``, ``pending``, ``rewritten``, ``written`` and ``uncertified`` files;
            ``versions_lost``. ``to_json(key)`` seals and signs it, `verify_receipt` reads it.

        Raises
        ------
        TensorNotFoundError
            If there never was such a tensor, and no file holds rows of it; or if a part is named of one that
            is gone.
        InvalidKeyError, InvalidSliceError
            If the region does not fit the tensor, or is an empty text.
        UnsupportedFeatureError
            If a file that has to be replaced has a deletion vector; nothing is done then.
        ConcurrentWriteError
            If another writer changed the same tensor meanwhile; nothing is done then.
        CorruptDataError
            If a file that has to be replaced cannot be read, or statistics hide rows of a part.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("faces", np.arange(900.0).reshape(3, 300), block_shape=(1, 300))
        >>> receipt = lake.purge("faces", "1", now=True)
        >>> receipt.verified, receipt.versions_lost, float(lake["faces"][1].sum())
        (True, '1', 0.0)
        >>> lake.purge("faces").verified  # a week has to pass
        False
        >>> lake.purge("faces", now=True).verified, list(lake)
        (True, [])
        """
        self._check_writable()
        return purge.purge(self._storage, id, region, coords, now, dry_run)
