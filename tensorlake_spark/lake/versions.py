"""Versions of a lake: its history, names for versions, and tensors as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log import history, tags
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidOptionError, TableNotFoundError
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.lake.table import Table
from tensorlake_spark.writing import restore

if TYPE_CHECKING:
    import pandas as pd


class Versions(Table):
    """A table that has a past."""

    def history(self, id: str | None = None, limit: int | None = None) -> pd.DataFrame:  # noqa: A002
        """Return the versions of the table that its log still has, newest first.

        A commit of another writer than this package does not say which tensors it changed. With `id` it is
        shown if it changed data at all.

        Parameters
        ----------
        id : str, optional
            Only versions in which this tensor changed, or may have changed.
        limit : int, optional
            Only so many.

        Returns
        -------
        pandas.DataFrame
            Columns ``version``; ``timestamp``, when it was written (UTC); ``operation``, such as ``append``,
            of other writers as they name it; ``tensors``, ids of those that changed; ``foreign``, whether
            another writer changed data; ``data_change``, False where rows only moved; ``files_added,
            files_removed``; ``user, engine, parameters`` as the commit has them.

        Raises
        ------
        TensorNotFoundError
            If there never was such a tensor; one that is deleted has a history.
        InvalidOptionError
            If `limit` is negative.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.zeros((2, 3)))
        >>> ref[0] = 1
        >>> lake.history("x")[["version", "operation"]].values.tolist()
        [[2, 'assign'], [1, 'write']]
        """
        if limit is not None and limit < 0:
            raise InvalidOptionError(
                f"limit is {limit}; it is at least 0, or None for all versions"
            )
        snapshot = self._snapshot()
        if snapshot is None:
            raise TableNotFoundError(f"there is no table at {self.uri} yet, and so no history")
        if id is not None and snapshot.transaction(app_of(id)) is None:
            catalog.get(snapshot, id)
        return history.history(snapshot, id, limit)

    def restore(self, id: str, version: int | str) -> TensorRef:  # noqa: A002
        """Make a tensor what it was at a version, in one commit; no other tensor changes.

        Data files of then are added again as they are. Only rows of files that the tensor shares with others
        are written anew, undecoded. A tensor that was deleted comes back.

        Parameters
        ----------
        id : str
            Which tensor.
        version : int or str
            What it becomes: as it was at this version, or at this tag.

        Raises
        ------
        TensorNotFoundError
            If there was no such tensor at that version.
        InvalidOptionError
            If the log does not have that version, or there is no such tag.
        MissingDataError
            If a vacuum deleted files of that version; nothing is committed then. If it does so while the
            restore is committed, the message says what takes the commit back.
        ConcurrentWriteError
            If another writer changed the tensor meanwhile; nothing is committed then.
        UnsupportedFeatureError
            If a file that would leave the table has a deletion vector.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> before = lake.write("x", np.arange(3)).version
        >>> ref = lake.write("x", np.zeros(5), mode="overwrite")
        >>> lake.restore("x", before)[...].tolist()
        [0, 1, 2]
        """
        self._check_writable()
        return self._ref(restore.restore(self._storage, id, version), id)

    def tag(self, name: str, version: int | str | None = None, *, replace: bool = False) -> int:
        """Give a version a name, under which it is opened, and which keeps its files from `vacuum`.

        It does not keep the log: a version can be opened for ``delta.logRetentionDuration``, 30 days by
        default.

        Parameters
        ----------
        name : str
            What an id may be, but no number.
        version : int or str, optional
            The newest by default.
        replace : bool
            Whether a tag that names another version is moved.

        Returns
        -------
        int
            The version that has the name now.

        Raises
        ------
        InvalidOptionError
            If the name will not do or is taken, or if the log does not have that version.
        ConcurrentWriteError
            If another writer changed the same tag meanwhile; nothing is committed then.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.arange(3))
        >>> lake.tag("paper")
        1
        >>> ref[:] = 0
        >>> tl.open(lake.uri, version="paper")["x"][...].tolist()
        [0, 1, 2]
        """
        self._check_writable()
        return tags.tag(self._storage, name, version, replace)

    def tags(self) -> dict[str, int]:
        """Return the tags of the table and the versions that they name.

        Raises
        ------
        TableNotFoundError
            If there is no table yet.
        """
        return tags.tags(Snapshot.open(self._storage))

    def untag(self, name: str) -> None:
        """Remove a tag; its version is like any other then.

        Raises
        ------
        InvalidOptionError
            If there is no such tag.
        ConcurrentWriteError
            If another writer changed the same tag meanwhile.
        """
        self._check_writable()
        tags.untag(self._storage, name)
