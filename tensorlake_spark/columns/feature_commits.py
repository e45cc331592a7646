"""Commits of a table of features: what all its changes do around the change itself, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tensorlake_spark.columns.feature_changes import FeatureChange, name_taken
from tensorlake_spark.columns.feature_reads import FeatureReads, set_of
from tensorlake_spark.columns.feature_set import MARK, null_id, tensor_id
from tensorlake_spark.columns.feature_types import DTYPES
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import ConcurrentWriteError, TableNotFoundError
from tensorlake_spark.progress import progress
from tensorlake_spark.writing.app_transaction import check_transaction, is_repeated
from tensorlake_spark.writing.editing import restore
from tensorlake_spark.writing.transaction_commit import commit_all, say_repeated
from tensorlake_spark.writing.uncommitted import Uncommitted

if TYPE_CHECKING:
    from typing_extensions import Self

ATTEMPTS = 20
"""How often a change is made anew because another writer was faster."""


class FeatureCommits(FeatureReads):
    """A table of features whose versions follow each other."""

    def restore(self, version: int | str) -> Self:
        """Make the table what it was at a version of the lake, in one commit.

        Names, types, hidden features, the order in which features are stored and rows come back. Files of that version
        are added again as they are, so hardly any data is written. A table that was dropped or deleted comes back, too.

        Parameters
        ----------
        version : int or str
            The version of the lake, or its tag.

        Raises
        ------
        TensorNotFoundError
            If there was no such table at that version.
        TensorExistsError
            If a tensor that is not one of features has the name of one of the table's by now.
        InvalidOptionError
            If the log does not have that version, or there is no such tag.
        MissingDataError
            If a vacuum deleted files of that version; nothing is committed then. If it deletes them during the
            commit, the message says how to take the commit back.
        ConcurrentWriteError
            If another writer changed the table meanwhile; nothing is committed then.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, tensorlake_spark as tl
        >>> features = tl.open(tempfile.mkdtemp()).features("ctr")
        >>> before = features.write(pa.table({"age": [31, None]})).version
        >>> features.add(pa.table({"score": [0.5, 0.25]})).restore(before).read().to_pylist()
        [{'age': 31}, {'age': None}]
        """
        self._check_writable()
        now, old = Snapshot.newest(self._storage), Snapshot.open(self._storage, version)
        was = set_of(old, self._name)
        if was is None:
            raise self._absent(old)
        # The newest tensors need not fit each other: this is how a table gets well again.
        every = [name(self._name, dtype) for dtype in DTYPES for name in (tensor_id, null_id)]
        there = {name: meta for name in every if (meta := catalog.find(now, name)) is not None}
        marked = {name for name, meta in there.items() if MARK in meta.spec.attrs}
        for name in was.ids:
            if name in there and name not in marked:
                raise name_taken(name, self._storage.uri)
        dropped = sorted(marked - {*was.ids})
        others = {*every} - {*was.ids, *dropped}
        undo = None
        if marked:
            undo = f"features.restore({now.version}) makes the table what it was before"
        try:
            return self._at(restore.restore(now, was.ids, version, dropped, others, undo))
        except ConcurrentWriteError as lost:
            raise self._lost("restore") from lost

    def _change(
        self,
        what: str,
        nbytes: int | None,
        make: Callable[[FeatureChange], None],
        transaction: tuple[str, int] | None,
        needs_table: bool = False,
        often: str = "",
    ) -> Self:
        """Make a change of the newest version and commit it; show the version that has it.

        `often` is for the error of a lost race.
        """
        self._check_writable()
        check_transaction(transaction)
        base: Snapshot | None = None
        try:
            base = Snapshot.newest(self._storage)
            base.check_writable()
        except TableNotFoundError:
            pass
        if base is not None and is_repeated(base, transaction, self._name, is_group=True):
            say_repeated(transaction)
            return self._at(base)
        found = None if base is None else set_of(base, self._name)
        if found is None and needs_table:
            raise self._absent(base)
        changes = Uncommitted(self._storage, base)
        try:
            with progress(f"{what} features {self._name}", nbytes or 0) as done:
                make(FeatureChange(changes, self._name, found, self._verify, done))
        except BaseException:
            changes.discard()
            raise
        # Another writer's change may be of dtypes that this one leaves alone, and does not fit it all the same.
        seen = [tensor_id(self._name, dtype) for dtype in DTYPES]
        try:
            after = commit_all(changes, transaction, seen)
        except ConcurrentWriteError as lost:
            raise self._lost(what, often) from lost
        return self._at(Snapshot.newest(self._storage) if after is None else after)

    def _change_anew(
        self,
        what: str,
        nbytes: int | None,
        make: Callable[[FeatureChange], None],
        transaction: tuple[str, int] | None = None,
    ) -> Self:
        """Make a change of a table that is there; anew where another writer was faster."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._change(what, nbytes, make, transaction, True)
            except ConcurrentWriteError:
                continue
        often = f", {ATTEMPTS} times in a row"
        return self._change(what, nbytes, make, transaction, True, often)

    def _lost(self, what: str, often: str = "") -> ConcurrentWriteError:
        """Return the error of a lost race: that of the commit speaks of a transaction, and the caller has none."""
        return ConcurrentWriteError(
            f"another writer was faster than this {what} of features {self._name!r} of {self._storage.uri}{often}; "
            f"nothing was committed, look at lake.features({self._name!r}) and call {what} again if it still holds"
        )

    def _at(self, snapshot: Snapshot) -> Self:
        self._show(snapshot)
        self._snapshot, self._set = snapshot, set_of(snapshot, self._name)
        return self
