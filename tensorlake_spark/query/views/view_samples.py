"""The rows of a view as samples for a loader."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.samples.padding import Blank
from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.loader.sources.dataset_samples import DatasetSamples
from tensorlake_spark.loader.sources.loader_source import FetchedSamples, Told
from tensorlake_spark.loader.transforms.image_transform import ImageTransform
from tensorlake_spark.query.views.view_values import ViewValues

if TYPE_CHECKING:
    from tensorlake_spark.query.view import View

_BLOCK_ROWS = 1024


class ViewSamples:
    """The rows of a view: what is stored is read as a loader of the dataset reads it, the rest is computed.

    It holds what was found when it was made, and not the view: so it goes to other processes, if the functions of the
    query do.

    Parameters
    ----------
    view : View
        The rows.
    names : sequence of str
        Columns.
    stored : mapping of str to str
        Those that are columns of the view's dataset, and their names there.
    transforms : mapping of str to ImageTransform
        Of columns of images, by their names in the dataset.
    memory : int
        Bytes of a loader.
    cache : str, optional
        Folder and size of a cache for what is read of an object store.
    """

    version: int | None = None
    lying: Array | None = None

    def __init__(
        self,
        view: View,
        names: Sequence[str],
        stored: Mapping[str, str],
        transforms: Mapping[str, ImageTransform],
        memory: int,
        cache: str | None = None,
    ) -> None:
        self.what = named(view)
        self.names = tuple(names)
        self.identity = _identity(view)
        self._stored = dict(stored)
        outputs = view._plan.result.outputs
        computed = {name: outputs[name] for name in names if name not in stored}
        self._computed = ViewValues(computed, view._table, view._plan.parameters)
        self._count = len(view)
        self._samples: DatasetSamples | None = None
        self._positions: Array = np.zeros(0, np.int64)
        if stored and view.dataset is not None and view.sids is not None:
            parts = view.dataset.parts
            columns = list(dict.fromkeys(stored.values()))
            self._samples = DatasetSamples(parts, columns, transforms, memory, cache)
            self._positions = parts.stored.positions_of(view.sids)

    def __copy__(self) -> ViewSamples:
        return self.for_worker(1)

    def __len__(self) -> int:
        return self._count

    @property
    def is_remote(self) -> bool:
        return self._samples is not None and self._samples.is_remote

    @property
    def reserved(self) -> float:
        return 0.0 if self._samples is None else self._samples.reserved

    @cached_property
    def sample_bytes(self) -> float:
        few = min(64, len(self))
        return max(1.0, self.fetch(np.arange(few)).nbytes / few)

    @cached_property
    def starts(self) -> Array:
        return np.append(np.arange(0, len(self), _BLOCK_ROWS), len(self))

    def for_worker(self, workers: int) -> ViewSamples:
        """Return the same rows for one of several processes, which has its part of the memory."""
        out = object.__new__(ViewSamples)
        out.__dict__.update(self.__dict__)
        out._samples = None if self._samples is None else self._samples.for_worker(workers)
        return out

    def facts(self, positions: Array, told: Told) -> Any:
        """Return what a process needs to know of the files that have some rows, and was not told yet."""
        return self._samples and self._samples.facts(self._positions[positions], told)

    def learn(self, facts: Any) -> None:
        """Know what `facts` returned in another process."""
        if self._samples is not None:
            self._samples.learn(facts)

    def fetch(self, positions: Array) -> FetchedView:
        """Read what is stored of some rows; the rest is computed when its bytes or values are asked for."""
        read = None if self._samples is None else self._samples.fetch(self._positions[positions])
        return FetchedView(self._computed, positions, read, self._stored, self.names)

    def described(self, position: int) -> str:
        """Return how a message names a row."""
        row = f"row {position} of {self.what}"
        if self._samples is None:
            return row
        return f"{row}, which is {self._samples.described(int(self._positions[position]))}"

    @property
    def blanks(self) -> Mapping[str, Blank]:
        """What an array of no values is, for columns of the dataset; see `padding.blank_of`."""
        known = {} if self._samples is None else self._samples.blanks
        return {name: known[of] for name, of in self._stored.items() if of in known}

    def draws(self) -> Mapping[str, int]:
        """Return how many random numbers a row takes, for columns of the dataset."""
        return {} if self._samples is None else self._samples.draws()


class FetchedView:
    """Some rows of a view.

    Parameters
    ----------
    computed : ViewValues
        Columns that are computed, for all rows.
    positions : int64 ndarray
        Which rows.
    read : FetchedSamples, or None
        What was read of the others.
    stored : mapping of str to str
        The others, and their names in the dataset.
    names : sequence of str
        All columns.
    """

    def __init__(
        self,
        computed: ViewValues,
        positions: Array,
        read: FetchedSamples | None,
        stored: Mapping[str, str],
        names: Sequence[str],
    ) -> None:
        self._all, self._positions, self._names = computed, positions, names
        self._read, self._stored = read, stored
        self.hits = 0 if read is None else read.hits
        self.misses = 0 if read is None else read.misses
        self.raw_nbytes = 0 if read is None else read.raw_nbytes

    @cached_property
    def _values(self) -> dict[str, Values]:
        if not self._all.outputs:
            return {}
        rows = self._all.table.take(pa.array(self._positions))
        return ViewValues(self._all.outputs, rows, self._all.parameters)(0, len(self._positions))

    @property
    def nbytes(self) -> int:
        """Bytes of the values; those that are computed are computed for it."""
        read = 0 if self._read is None else self._read.nbytes
        return read + sum(_size(values) for values in self._values.values())

    def values(self, draws: Mapping[str, Array]) -> dict[str, Values]:
        """Return the values of all columns."""
        read = {} if self._read is None else self._read.values(draws)
        found = self._values | {name: read[column] for name, column in self._stored.items()}
        return {name: found[name] for name in self._names}


def named(view: View) -> str:
    """Return what messages call a view: the text of its query as one line, however it was written."""
    return f"the view of {' '.join(view.text.split()):.100}"


def _identity(view: View) -> bytes:
    """Return the same for the same rows: those of samples by their numbers, others by the query."""
    found = hashlib.blake2b(view.text.encode(), digest_size=16)
    for name, (uri, version) in sorted(view.sources.items()):
        found.update(f"{name} {uri} {version}\n".encode())
    found.update(repr(sorted(view._plan.parameters.items(), key=lambda item: item[0])).encode())
    if view.dataset is not None and view.sids is not None:
        found.update(
            f"{view.dataset.parts.stored.snapshot.table_id} {view.dataset.version}".encode()
        )
        found.update(view.sids.tobytes())
    return found.digest()


def _size(values: Values) -> int:
    if isinstance(values, np.ndarray):
        return int(values.nbytes)
    return sum(int(getattr(value, "nbytes", 64)) for value in values)
