"""Versions of a lake: its history, names for versions, and tensors as they were."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, overload

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log import history, tags
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TableNotFoundError, check_flag
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.lake.table import Table
from tensorlake_spark.writing.editing import restore

if TYPE_CHECKING:
    import pandas as pd


class Tagging(ABC):
    """A table, of tensors or of samples, whose versions can have names."""

    _storage: Storage

    @abstractmethod
    def _check_writable(self) -> None:
        """Raise InvalidOptionError if nothing can be written here."""

    def _look_anew(self) -> None:  # noqa: B027
        """Show the version that a change of tags has made; a lake looks whenever it is asked."""

    def tag(self, name: str, version: int | str | None = None, *, replace: bool = False) -> int:
        """Give a version a name. You can open the version by it, and `vacuum` keeps its files.

        A tag does not keep the log: a version can be opened for ``delta.logRetentionDuration``, 30 days by
        default.

        Parameters
        ----------
        name : str
            The tag: any text that could be an id, but not a number.
        version : int or str, optional
            A version or another tag. By default the newest version.
        replace : bool
            Whether to move a tag that names another version.

        Returns
        -------
        int
            The version that has the name now.

        Raises
        ------
        InvalidOptionError
            If the name is not valid or is taken, or if the log does not have that version.
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
        found = tags.tag(self._storage, name, version, check_flag("replace", replace))
        self._look_anew()
        return found

    def untag(self, name: str) -> None:
        """Remove a tag. Its version is then like any other.

        Raises
        ------
        InvalidOptionError
            If there is no such tag.
        ConcurrentWriteError
            If another writer changed the same tag meanwhile.
        """
        self._check_writable()
        tags.untag(self._storage, name)
        self._look_anew()


class Versions(Table, Tagging):
    """The methods of a lake that go back to old versions."""

    def history(self, id: str | None = None, limit: int | None = None) -> pd.DataFrame:  # noqa: A002
        """Return the versions of the table that are still in its log, newest first.

        A commit of another program does not say which tensors it changed. With `id` it is listed if it changed
        any data.

        Parameters
        ----------
        id : str, optional
            Only versions in which this tensor changed, or may have changed.
        limit : int, optional
            At most this many.

        Returns
        -------
        pandas.DataFrame
            Columns ``version``; ``timestamp``, when it was written (UTC); ``operation``, such as ``append``, or
            the name that another program gave it; ``tensors``, the ids of those that changed; ``foreign``,
            whether another program changed data; ``data_change``, False if rows only moved; ``files_added,
            files_removed``; ``user, engine, parameters``, as the commit has them.

        Raises
        ------
        TensorNotFoundError
            If there never was such a tensor. A deleted tensor still has a history.
        InvalidOptionError
            If `limit` is negative, or no whole number.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.zeros((2, 3)))
        >>> ref[0] = 1
        >>> lake.history("x")[["version", "operation"]].values.tolist()
        [[2, 'assign'], [1, 'write']]
        """
        history.check_limit(limit)
        snapshot = self._snapshot()
        if snapshot is None:
            raise TableNotFoundError(f"there is no table at {self.uri} yet, and so no history")
        if id is not None and snapshot.transaction(app_of(id)) is None:
            catalog.get(snapshot, id)
        return history.history(snapshot, id, limit)

    @overload
    def restore(self, id: str, version: int | str) -> TensorRef: ...

    @overload
    def restore(self, id: list[str] | tuple[str, ...], version: int | str) -> list[TensorRef]: ...

    def restore(
        self,
        id: str | list[str] | tuple[str, ...],  # noqa: A002
        version: int | str,
    ) -> TensorRef | list[TensorRef]:
        """Make a tensor, or several, what they were at a version, in one commit. No other tensor changes.

        The data files of that version are added again as they are. Only where a tensor shares a file with
        others, its rows are written anew, without decoding them. A deleted tensor comes back.

        Parameters
        ----------
        id : str, or list of str
            Which tensor, or which ones.
        version : int or str
            The version or the tag to restore.

        Returns
        -------
        TensorRef, or list of TensorRef
            As it is now; for a list of ids a list in its order.

        Raises
        ------
        TensorNotFoundError
            If there was no such tensor at that version.
        InvalidOptionError
            If the log does not have that version, or there is no such tag; if no tensor is named, or one twice.
        MissingDataError
            If a vacuum deleted files of that version; nothing is committed then. If it deletes them during the
            commit of the restore, the message says how to take the commit back.
        ConcurrentWriteError
            If another writer changed one of the tensors meanwhile; nothing is committed then.
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
        ids = [id] if isinstance(id, str) else restore.checked_ids(id)
        done = restore.restore(Snapshot.newest(self._storage), ids, version)
        refs = [self._ref(done, name) for name in ids]
        return refs[0] if isinstance(id, str) else refs

    def tags(self) -> dict[str, int]:
        """Return the tags of the table and the versions that they name.

        Raises
        ------
        TableNotFoundError
            If there is no table yet.
        """
        return tags.tags(Snapshot.open(self._storage))
