"""Keeping a table well: few files, nothing left over, nothing damaged, nothing that should be gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorlake_spark.audit import check, hashing, purge
from tensorlake_spark.audit.check import CheckReport
from tensorlake_spark.audit.digest import Digest
from tensorlake_spark.audit.receipt import PurgeReceipt
from tensorlake_spark.delta.files.compacting.compaction import OptimizeReport
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import check_flag
from tensorlake_spark.lake.table import Table
from tensorlake_spark.tensor.spec import listed_ids
from tensorlake_spark.upkeep import stale_uploads, vacuum
from tensorlake_spark.upkeep.optimize import optimize


class Upkeep(Table):
    """The methods of a lake that keep its table fast, small and sound."""

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
        """Merge small data files, or sort rows so that boxes near each other share a file.

        Files smaller than half of `target_bytes` are merged. Their rows are sorted in storage order and are not
        decoded. No tensor changes, and other writers may go on. Every new file is a commit of its own.
        Older versions keep their files until `vacuum`. A second call finds nothing to do.

        With `zorder` the rows of each tensor are sorted in Morton order of their boxes on these axes, in one
        commit for each tensor. Slices on inner axes then read less; in C order they meet every row group.

        Parameters
        ----------
        ids : str or sequence of str, optional
            Only files that hold rows of these tensors.
        zorder : sequence of str or int, optional
            Names or numbers of axes. Without `ids`, tensors without these axes stay as they are.
        min_files : int
            Do nothing while there are fewer small files. Useful in a call after every batch. No effect with
            `zorder`.
        target_bytes : int, optional
            Size of the files to make, at most 1 GiB. By default the table's ``delta.targetFileSize``, or 128 MiB.
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
            If a number is out of range, or `dry_run` is no bool. With `zorder` also if a tensor has no such axis,
            combines duplicates, or has rows of another program that share a place.
        ConcurrentWriteError
            If other writers committed first too many times in a row. Files that are done stay.

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
            max_bytes=max_bytes, dry_run=check_flag("dry_run", dry_run),
        )  # fmt: skip

    def vacuum(self, retention_hours: float | None = None, *, dry_run: bool = False) -> list[str]:
        """Delete files that no version within the retention needs, and files that crashed writers left.

        Files of tagged versions stay as long as the log has these versions (``delta.logRetentionDuration``,
        30 days by default). A warning names tags whose version is no longer in the log. Files of deletion
        vectors stay; Spark's VACUUM deletes them. Files of another table in a folder of this one stay too.

        Parameters
        ----------
        retention_hours : float, optional
            By default the table's own retention (a week). A part of an hour counts as a whole one. 0 also deletes files
            of writers at work now.
        dry_run : bool
            Only name the files.

        Returns
        -------
        list of str
            Paths of the files.

        Raises
        ------
        InvalidOptionError
            If `retention_hours` is negative or not a number, or `dry_run` is no bool.
        TableNotFoundError
            If there is no table yet.
        """
        self._check_writable()
        check_flag("dry_run", dry_run)
        return vacuum.vacuum(Snapshot.open(self._storage), retention_hours, dry_run)

    def abort_uploads(
        self, retention_hours: float | None = None, *, dry_run: bool = False
    ) -> list[str]:
        """Abort multipart uploads that killed writers left in the table's folder on S3.

        Nobody reads such an upload, and `vacuum` does not see it, but the bucket keeps its parts. A lifecycle
        rule of the bucket (AbortIncompleteMultipartUpload) does the same without a call.

        Parameters
        ----------
        retention_hours : float, optional
            Only abort uploads that began longer ago. By default the table's own retention (a week). 0 also
            aborts uploads of writers at work now.
        dry_run : bool
            Only name the uploads.

        Returns
        -------
        list of str
            Paths of the files that the uploads would have made. Empty if the store is not S3.

        Raises
        ------
        InvalidOptionError
            If `retention_hours` is negative or not a number, or `dry_run` is no bool.
        MissingDependencyError
            If boto3 is not installed.
        TableNotFoundError
            If there is no table yet.
        StorageError
            If the store refuses, or does not answer.
        """
        self._check_writable()
        check_flag("dry_run", dry_run)
        retention_hours = vacuum.check_retention(retention_hours)
        return stale_uploads.abort_uploads(Snapshot.open(self._storage), retention_hours, dry_run)

    def digest(self, id: str | None = None) -> Digest:  # noqa: A002
        """Return the digest of the table, or of one tensor: SHA-256 of what it holds.

        Two tables, or two versions of one, with the same digest hold the same tensors in the same rows. The digest is
        of rows and metadata: id, box, parameters, coded elements, shape, dtype, labels, attributes. It is not of files,
        so that `optimize`, which only moves rows, does not change it. A tensor that is written anew with other blocks
        or another codec has another digest.

        Digests of rows are kept beside the table, in ``_tensorlake/digest``. Only files that are new since the last
        call are read. So a file that was damaged or changed in its place is not noticed here: `check` with a digest
        reads everything. A lake that is opened at a version keeps nothing.

        Memory is some hundred bytes for each row of the table.

        Parameters
        ----------
        id : str, optional
            Which tensor; by default the whole table.

        Returns
        -------
        Digest
            ``hex``; a tree of nodes: ``children``, ``files``, ``walk()``; ``digest[id]`` of one tensor; ``save(path)``.

        Raises
        ------
        TensorNotFoundError
            If there is no such tensor.
        TableNotFoundError
            If there is no table yet.
        CorruptDataError
            If a file that has to be read is damaged.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> for day in range(5):
        ...     ref = lake.write("days", np.full((1, 8), day + 1), mode="append")
        >>> before = lake.digest()
        >>> done = lake.optimize()
        >>> lake.digest() == before
        True
        >>> lake["days"][2, 3] = 0
        >>> lake.digest() == before
        False
        """
        snapshot = self._snapshot()
        if snapshot is None:
            snapshot = Snapshot.open(self._storage)  # raises
        return hashing.digest_of(snapshot, id, keep=self._pinned is None)

    def check(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        repair: bool = False,
        digest: Digest | str | None = None,
    ) -> CheckReport:
        """Check that every file, row, statistic and total of the table agrees with the others.

        - Files: each exists, and has the size and the number of rows that the log says. Its footer fits the
          checksum in the file.
        - Rows: the checksum fits. The box is not empty and lies in the tensor's shape. Layout, dtype and codec
          are known, and are those of the tensor.
        - Statistics of the log and of row groups: none may rule out a row that is there. Delta allows
          statistics that are too wide or missing, and so does the check.
        - Tensors: totals, places in the storage order, rows without a metadata row. Boxes of dense rows do not
          overlap. A sparse tensor does not store an element twice, unless it says how to combine them.
        - Descriptions: what the columns ``shape`` and ``block_shape`` of a row say of its tensor. No checksum and
          no digest covers them, and no read needs them, so a ``described`` row is a notice, not an error.
        - Orphans: files that no version names, and notes of ingestions. They are notices, not errors, because
          other writers may be at work.

        - With a `digest` that was made before: that the rows hold what they held then. All is hashed anew, and
          a finding of kind ``digest`` names the file, the row group, the row and the box that differ first. What
          `digest` keeps of a sound file and does not fit it is dropped.

        Elements are decoded only where boxes of a sparse tensor overlap.

        A dense chunk without a row holds the fill value, so a hole is no error in itself. If the totals say that
        rows are missing, a ``gap`` is a box that must be theirs. In a tensor that rows should cover, that is any
        box without a row. Otherwise it is a hole smaller than a chunk.

        Memory is bounded by a row group for each thread, and some hundred bytes for each row of the table.

        Parameters
        ----------
        ids : str or sequence of str, optional
            Only these tensors, in the files that the log's statistics name for them. With `repair`, and where totals
            differ, in all files: statistics may be wrong.
        repair : bool
            Repair what needs no guess, each by a commit of its own. Totals are counted anew, if all rows are sound
            and all files exist; they are wrong after rows were added or deleted with plain Delta. Files are
            written anew, with the same rows, if the log or the footer says something wrong about them. A damaged
            row, a missing file or an overlap is reported with its place, and not changed.
        digest : Digest or str, optional
            What the table, or a tensor of it, should be: as `digest` returned it, or `Digest.load`. Its
            hexadecimal form alone says only whether it differs; it is of the table, or with one id of that tensor.

        Returns
        -------
        CheckReport
            ``ok``; ``findings``, each with ``kind, place, text, repaired``; and how many ``files``, ``rows`` and
            ``nbytes`` were checked.

        Raises
        ------
        TensorNotFoundError
            If there is no tensor of one of the ids, in the table or in the digest.
        InvalidOptionError
            If the digest is none, or `repair` is no bool.
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
        if check_flag("repair", repair):
            self._check_writable()
        snapshot = self._pinned or Snapshot.open(self._storage)
        some = None if ids is None else listed_ids(ids)
        return check.check(snapshot, some, repair, digest=digest)

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

        First one commit removes it from the newest version: a tensor is deleted, a part of a dense tensor becomes
        the fill value, elements of a sparse tensor are removed. Then every data file in the table's folder that
        holds rows of it is deleted from the store, whether a version names the file or not. The rows are read to
        find out; statistics are not trusted. **Versions that need such a file can no longer be read**, nor can
        other tensors in the file at these versions. Tags do not protect them. In the newest version all other
        tensors stay. Another table in a folder of this one is left alone.

        Files that left the table less than ``delta.deletedFileRetentionDuration`` ago (a week) are pending,
        because a reader may be using them. The receipt says from when on the same call deletes them. A purge may
        be repeated at any time, also after an interruption. It then removes what is left, and what was written
        to the same place since.

        A part is named on the tensor as it is now, and negative indices count from where it ends now. In versions
        in which the tensor was longer, an axis that the key takes whole or without an end goes on to the old end.

        At the end all files that are left, and the log, are searched for the deleted payloads. What remains is
        the tensor's name in the log's transactions and statistics, with bounds of its rows. Attributes and labels
        go with the files; if you purge a part, they stay.

        Parameters
        ----------
        id : str
            Which tensor.
        region : key or str, optional
            A part of the tensor, as in ``ref[key]`` or as text. By default all of it.
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
            If there never was such a tensor and no file holds rows of it. Or if you name a part of a tensor that
            no longer exists.
        InvalidKeyError, InvalidSliceError
            If the region does not fit the tensor, or is an empty text.
        InvalidOptionError
            If `now` or `dry_run` is no bool.
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
        now, dry_run = check_flag("now", now), check_flag("dry_run", dry_run)
        return purge.purge(self._storage, id, region, coords, now, dry_run)
