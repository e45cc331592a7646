"""Large samples -> tensors of the lake in the dataset's folder: streamed, and made visible by one commit of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from tensorlake_spark.datasets.apart.inner_tables import (
    TENSORS_FOLDER,
    inner_storage,
    pinned,
    tensor_id,
)
from tensorlake_spark.datasets.apart.large_samples import LargeSample, large_ones
from tensorlake_spark.datasets.apart.pinning import CHANGES, Written, changes_in, settled
from tensorlake_spark.datasets.types.base import Place, Tiled, Type
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import ConcurrentWriteError, TableNotFoundError
from tensorlake_spark.lake.lake import TensorLake
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.lake.transaction import Transaction


class TileWriter:
    """Writes large samples as tensors, all of them in one transaction of the lake.

    Parameters
    ----------
    storage : Storage
        The dataset.
    tile_bytes : int
        A sample that has more bytes becomes tiles.
    replaces : bool
        Whether a sample may have tiles already, and gets others.
    known : int, optional
        The version of the lake from which the new values were computed.

    Attributes
    ----------
    ids : list of str
        Of the tensors that were written.
    """

    def __init__(
        self,
        storage: Storage,
        tile_bytes: int,
        replaces: bool = False,
        known: int | None = None,
    ) -> None:
        self.tile_bytes = tile_bytes
        self._storage = storage
        self._replaces = replaces
        self._known = known
        self.ids: list[str] = []
        self._stack = ExitStack()
        self._changes: Transaction | None = None
        self._base: Snapshot | None = None

    def split(self, values: Any, kind: Type, place: Place) -> tuple[Any, dict[int, LargeSample]]:
        """Return a column with `Tiled` in the places of its large samples, and these by their numbers.

        Parameters
        ----------
        values : list, ndarray or pyarrow.Array
            Samples, as `large_samples.opened` returned them.
        kind : Type
            Of the column.
        place : Place
            For messages.

        Raises
        ------
        InvalidSampleError
            If the shape or the dtype of a large sample does not fit its column.
        """
        found = large_ones(values, kind, self.tile_bytes)
        if not found:
            return values, {}
        left = kind.decode(values) if isinstance(values, pa.Array) else list(values)
        large = {number: LargeSample(array, kind, number, place) for number, array in found.items()}
        for number, sample in large.items():
            left[number] = Tiled(sample.shape, sample.dtype.name)
        return left, large

    def write(self, large: Mapping[int, LargeSample], name: str, sids: Sequence[int]) -> None:
        """Write the large samples of a column.

        Parameters
        ----------
        large : mapping of int to LargeSample
            As `split` returned them.
        name : str
            By which the column's parts are stored.
        sids : sequence of int
            The numbers of the samples.
        """
        for number, sample in large.items():
            changes = self._changes or self._begun()
            self.ids.append(tensor_id(name, int(sids[number])))
            changes.write(self.ids[-1], sample, mode="overwrite", layout="ftsf")
            sample.release()

    def take(self, values: Any, kind: Type, name: str, sids: Sequence[int], place: Place) -> Any:
        """Write the large samples of a column, and return the column with `Tiled` in their places.

        The parameters are those of `split` and `write`.
        """
        left, large = self.split(values, kind, place)
        self.write(large, name, sids)
        return left

    def copy(self, ref: TensorRef, name: str, sid: int) -> None:
        """Write the tiles of a sample that has them elsewhere: a part at a time, so that it may be of any size.

        Parameters
        ----------
        ref : TensorRef
            Its tensor.
        name : str
            By which the parts of the new column are stored.
        sid : int
            The number of the new sample.
        """
        changes = self._changes or self._begun()
        self.ids.append(tensor_id(name, sid))
        changes.write(self.ids[-1], ref, mode="overwrite", layout="ftsf")

    def _begun(self) -> Transaction:
        inner = inner_storage(self._storage, TENSORS_FOLDER)
        batch = None
        if self._replaces:
            try:
                self._base = settled(self._storage, TENSORS_FOLDER)
                batch = CHANGES, changes_in(self._base) + 1
            except TableNotFoundError:
                batch = CHANGES, 1
        self._changes = self._stack.enter_context(TensorLake(inner).transaction(batch))
        if self._changes.is_repeated:  # another writer was faster, and has this number
            raise self._conflict()
        return self._changes

    def finish(self) -> list[Written]:
        """Commit the tensors.

        Raises
        ------
        ConcurrentWriteError
            If another writer replaced tiles at the same time.
        """
        changes = self._changes
        if changes is None:
            return []
        if self._base is not None and self._known is not None and self._is_overtaken(self._known):
            self.abort()
            raise self._conflict()
        try:
            self._stack.close()
        except ConcurrentWriteError as error:  # it speaks of a block that the caller never saw
            raise self._conflict() from error
        if changes.is_repeated or changes.version is None:
            raise self._conflict()
        return [Written(TENSORS_FOLDER, changes.version, self._replaces)]

    def _is_overtaken(self, known: int) -> bool:
        """Whether the dataset has other tiles for a sample than a version of the lake has.

        What the dataset does not name was never seen, or is undone by now.
        """
        pin = pinned(Snapshot.newest(self._storage, SAMPLES), TENSORS_FOLDER)
        if pin in (None, known):
            return False
        inner, apps = inner_storage(self._storage, TENSORS_FOLDER), [*map(app_of, self.ids)]
        before, after = (Snapshot.open(inner, version) for version in (known, pin))
        return before.transactions(apps) != after.transactions(apps)

    def _conflict(self) -> ConcurrentWriteError:
        return ConcurrentWriteError(
            f"another writer changed large samples of {self._storage.uri} since the version that this update was "
            "computed from; nothing of it is visible, refresh() and do it again"
        )

    def abort(self) -> None:
        """Delete what was written and is not committed."""
        self._stack.__exit__(_AbortedError, _AbortedError(), None)


class _AbortedError(Exception):
    """Ends the transaction without a commit."""
