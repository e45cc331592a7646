"""What keeps a dataset in order for years: versions, fewer files, files that nobody needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorlake_spark.datasets.maintenance.dataset_check import check
from tensorlake_spark.datasets.maintenance.dataset_purge import purge
from tensorlake_spark.datasets.maintenance.dataset_vacuum import vacuum
from tensorlake_spark.datasets.maintenance.optimization import optimize
from tensorlake_spark.datasets.maintenance.sample_versions import restore
from tensorlake_spark.datasets.samples.dataset_table import DatasetTable
from tensorlake_spark.delta.log import history, tags
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidOptionError, check_flag
from tensorlake_spark.lake.versions import Tagging

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from tensorlake_spark.audit.check import CheckReport
    from tensorlake_spark.audit.receipt import PurgeReceipt


class MaintenanceMethods(DatasetTable, Tagging):
    """A dataset that has a past, and is kept in order."""

    def history(self, limit: int | None = None) -> pd.DataFrame:
        """Return the versions that are still in the log, newest first.

        Parameters
        ----------
        limit : int, optional
            At most this many.

        Returns
        -------
        pandas.DataFrame
            Columns ``version``; ``timestamp``, when it was written (UTC); ``operation``, such as ``extend``, or the
            name that another program gave it; ``foreign``, whether another program changed data; ``data_change``,
            False if samples only moved; ``files_added, files_removed``; ``user, engine, parameters``.

        Raises
        ------
        InvalidOptionError
            If `limit` is negative, or no whole number.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> ds.history()["operation"].iloc[0]
        'extend'
        """
        history.check_limit(limit)
        found = history.history(self.stored.snapshot, None, limit)
        out: pd.DataFrame = found.drop(columns="tensors")
        return out

    def tags(self) -> dict[str, int]:
        """Return the tags of the dataset and the versions that they name."""
        return tags.tags(self.stored.snapshot)

    def _look_anew(self) -> None:
        self.refresh()

    def restore(self, version: int | str) -> None:
        """Make the dataset what it was at a version, in one commit. Its files come back as they are.

        Numbers of samples that were given since are not given again.

        Parameters
        ----------
        version : int or str
            The version or the tag to restore.

        Raises
        ------
        InvalidOptionError
            If the log does not have that version, or there is no such tag.
        MissingDataError
            If a vacuum deleted files of that version; nothing is committed then.
        ConcurrentWriteError
            If other writers won every attempt.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> before = ds.version
        >>> _ = ds.delete(0)
        >>> ds.restore(before)
        >>> len(ds)
        3
        """
        self._check_writable()
        if version is None:
            raise InvalidOptionError("version=None is no version to restore; ds.history() has them")
        self._show(restore(self._storage, version))

    def optimize(
        self,
        *,
        order: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]] | None = None,
        file_bytes: int | None = None,
    ) -> None:
        """Merge small files of samples, apart columns and tiles. Samples and their positions stay the same.

        Parameters
        ----------
        order : sequence of int, optional
            The sids of all samples in the order in which you will read them. All files are written in this order, so a
            read in this order is a scan. ``order=ds.sids`` restores the order of the positions.
        file_bytes : int, optional
            Target size of a file; by default the table's.

        Raises
        ------
        InvalidOptionError
            If `order` does not name each sample once, or `file_bytes` is not a number of bytes.
        ConcurrentWriteError
            If other writers won every attempt; nothing is lost then.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> for size in range(3):
        ...     ds.append({"size": size})  # each makes a small file
        >>> ds.optimize()
        >>> ds["size"][:].tolist()
        [0, 1, 2]
        """
        self._check_writable()
        self._show(optimize(self._storage, order, file_bytes))

    def vacuum(self, retention_hours: float | None = None, *, dry_run: bool = False) -> list[str]:
        """Delete files that no version within the retention needs, and files that killed writers left.

        Versions of apart columns and tiles that a kept version of the dataset needs are kept too. Values of samples
        that no kept version has are deleted from these tables; from apart columns only if a whole file has no others.

        Parameters
        ----------
        retention_hours : float, optional
            Younger versions are kept. By default the retention of the table, which is a week unless it sets another. A
            part of an hour counts as a whole one. 0 also deletes files of writers at work now.
        dry_run : bool
            Whether only to return the paths, and to delete nothing. Files that a vacuum with 0 hours takes out of the
            newest version, because of samples that no kept version has, are not among them.

        Returns
        -------
        list of str
            Paths of the files in the dataset's folder.

        Raises
        ------
        InvalidOptionError
            If `retention_hours` is not a number of hours.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> _ = ds.update("size > 3", {"size": 0})
        >>> len(ds.vacuum(0, dry_run=True))  # the file that was replaced
        1
        """
        self._check_writable()
        found = vacuum(self._storage, retention_hours, check_flag("dry_run", dry_run))
        self._show(Snapshot.newest(self._storage, SAMPLES))
        return found

    def check(self, *, deep: bool = False) -> CheckReport:
        """Check that every file, sample, value and part of the version that is shown agrees with the others.

        - Files: each exists, has the size, the number of rows and the statistics that the log says, and is whole.
        - ``sid``: no sample is without a number, none is there twice, and none was not given by the dataset.
        - ``value``: every value is what its type takes: classes have a name, boxes are in order, arrays have their
          rank, nothing is null that may not be. The bytes of media have their checksum, and their headers are what
          the row says. With `deep` media are decoded too.
        - ``pin``, ``apart``, ``tiles``: the versions of the inner tables are there and sound, apart columns have one
          row a sample, and tiles the shape that the sample's row says. No ``RESTORE`` of another program has brought
          samples back without these.
        - Orphans: files that no version names. They are notices, not errors.

        Every byte is read; memory is bounded by a row group a thread. Links are not followed.

        Parameters
        ----------
        deep : bool
            Whether media are decoded.

        Returns
        -------
        CheckReport
            ``ok``; ``findings``, each with ``kind, place, text``, what could repair it among them; and how many
            ``files``, ``rows``, ``samples`` and ``nbytes`` were checked.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": tl.types.ClassLabel(["cat", "dog"])})
        >>> ds.extend({"label": ["dog", "cat"]})
        >>> report = ds.check()
        >>> report.ok, report.samples
        (True, 2)
        """
        return check(self.stored.snapshot, check_flag("deep", deep))

    def purge(
        self,
        sids: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]] | None = None,
        where: str | None = None,
        *,
        now: bool = False,
        dry_run: bool = False,
    ) -> PurgeReceipt:
        """Remove samples from the dataset and from every file of its old versions: rows, media, tiles, apart columns.

        First commits remove them from the newest version. Then every data file in the dataset's folder that holds
        rows of them is deleted from the store, whether a version names the file or not. **Versions that need such
        a file can no longer be read.** Tags do not protect them. Files that left a table less than
        ``delta.deletedFileRetentionDuration`` ago (a week) are pending, because a reader may be using them: the
        receipt says from when on the same call deletes them.

        At the end all files that are left, and the logs, are searched for the bytes of the samples' media, arrays
        and texts. What remains is the bounds of columns in the statistics of old commits, with the first characters of
        texts, until the log forgets these (``delta.logRetentionDuration``), and the samples' numbers.

        Parameters
        ----------
        sids : sequence of int, optional
            The numbers of the samples; those that were deleted may be named too.
        where : str, optional
            SQL, as for `to_arrow`. A sample that was deleted counts as what it was in the last version that had it,
            so that the same call completes a purge.
        now : bool
            Delete pending files too. A reader of an older version, or a writer at work, may miss them.
        dry_run : bool
            Only say which files would go.

        Returns
        -------
        PurgeReceipt
            As `TensorLake.purge` returns it; ``samples`` has the sids.

        Raises
        ------
        InvalidOptionError
            If both or none of `sids` and `where` are given, or one is not valid.
        SampleNotFoundError
            If no sample ever had a number in `sids`.
        UnsupportedFeatureError
            If a file that has to be replaced has a deletion vector and lies in another store than S3; nothing is done
            then.
        CorruptDataError
            If a file that has to be replaced cannot be read; nothing is done then.
        ConcurrentWriteError
            If other writers won every attempt; purge again.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"name": "string"})
        >>> ds.extend({"name": [f"a name of more than thirty-two letters, {n}" for n in range(3)]})
        >>> receipt = ds.purge([1], now=True)
        >>> receipt.verified, receipt.samples, ds.sids.tolist()
        (True, '1', [0, 2])
        """
        self._check_writable()
        self.stored  # noqa: B018 # raises
        now, dry_run = check_flag("now", now), check_flag("dry_run", dry_run)
        receipt = purge(self._storage, sids, where, now, dry_run)
        self.refresh()
        return receipt
