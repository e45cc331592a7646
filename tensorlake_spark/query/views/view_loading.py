"""A view as samples for a loader."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.loader.columns.picture_reading import is_picture
from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.loader.epoch_samples import Selection
from tensorlake_spark.loader.loader import Loader
from tensorlake_spark.loader.loader_options import LoaderOptions, checked_options
from tensorlake_spark.loader.sources.dataset_samples import DatasetSamples
from tensorlake_spark.loader.sources.loader_source import FetchedSamples
from tensorlake_spark.loader.transforms.image_transform import ImageTransform

if TYPE_CHECKING:
    from tensorlake_spark.query.view import View

_BLOCK_ROWS = 1024


def loader_of_view(
    view: View, batch_size: int, columns: Sequence[str] | None = None, **options: Any
) -> Loader:
    """Return a loader of the rows of a view; see `View.loader`.

    Tensors of the view's dataset are read as a loader of the dataset reads them; what the query computes is computed for
    each batch.

    Parameters
    ----------
    view : View
        Whose rows are delivered, in its order where nothing shuffles.
    batch_size, columns, **options
        As `Dataset.loader` takes them; `columns` are the view's.
    """
    names = view.names if columns is None else list(columns)
    if not len(view):
        raise InvalidOptionError(f"the view of {view.text:.100} has no rows; a loader needs one")
    if options.get("workers") == "processes":
        raise InvalidOptionError(
            "workers='processes' is for datasets, and this is a view; materialize it, or leave workers out"
        )
    for name in ("where", "weights", "balance", "samples", "cache"):
        if options.pop(name, None) is not None:
            raise InvalidOptionError(
                f"{name}= is for datasets, and this is a view; say it in the query, or materialize the view"
            )
    options.pop("replacement", None)
    checked = checked_options(batch_size, **options)
    stored = view.dataset_columns(names) if view.sids is not None else {}
    images, checked = image_transforms(checked, names, stored, view)
    return Loader(ViewSamples(view, names, stored, images, checked.memory), Selection(), checked)


def image_transforms(
    options: LoaderOptions, names: Sequence[str], stored: Mapping[str, str], view: View
) -> tuple[dict[str, ImageTransform], LoaderOptions]:
    """Return transforms of images of the dataset by their names there, and options with what is left."""
    given = options.transform
    if not isinstance(given, Mapping):
        return {}, options
    for name in given:
        if name not in names:
            raise InvalidOptionError(
                f"transform names column {name!r:.80}, which is not delivered{did_you_mean(str(name), names)}"
            )
    parts = None if view.dataset is None else view.dataset.parts
    images = {
        stored[name]: one
        for name, one in given.items()
        if isinstance(one, ImageTransform)
        and name in stored
        and parts is not None
        and is_picture(parts, stored[name])
    }
    rest = {name: one for name, one in given.items() if stored.get(name) not in images}
    for name, one in rest.items():
        if not callable(one):
            raise InvalidOptionError(
                f"transform={one!r:.80} is for stored images that are files, and column {name!r} of the view is computed, "
                "or something else; give a function of its values"
            )
    return images, replace(options, transform=rest or None)


class ViewSamples:
    """The rows of a view: what is stored is read as a loader of the dataset reads it, the rest is computed.

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
        Bytes of arrays that are kept to be used again.
    """

    is_remote = False
    reserved = 0.0
    lying: Array | None = None

    def __init__(
        self,
        view: View,
        names: Sequence[str],
        stored: Mapping[str, str],
        transforms: Mapping[str, ImageTransform],
        memory: int,
    ) -> None:
        self.what = f"the view of {view.text:.100}"
        self.version: int | None = None
        self.names = tuple(names)
        self._view, self._stored = view, dict(stored)
        self._computed = [name for name in names if name not in stored]
        self._samples: DatasetSamples | None = None
        self._positions: Array = np.zeros(0, np.int64)
        if stored and view.dataset is not None and view.sids is not None:
            parts = view.dataset.parts
            columns = list(dict.fromkeys(stored.values()))
            self._samples = DatasetSamples(parts, columns, transforms, memory)
            self._positions = parts.stored.positions_of(view.sids)

    def __len__(self) -> int:
        return len(self._view)

    @cached_property
    def identity(self) -> bytes:
        found = hashlib.blake2b(self._view.text.encode(), digest_size=16)
        for name, (uri, version) in sorted(self._view.sources.items()):
            found.update(f"{name} {uri} {version}\n".encode())
        return found.digest()

    @cached_property
    def sample_bytes(self) -> float:
        few = min(64, len(self))
        return max(1.0, self.fetch(np.arange(few)).nbytes / few)

    @cached_property
    def starts(self) -> Array:
        return np.append(np.arange(0, len(self), _BLOCK_ROWS), len(self))

    def for_worker(self, workers: int) -> ViewSamples:
        """Return the same rows; processes are refused before they are asked for."""
        return self

    def fetch(self, positions: Array) -> FetchedView:
        """Read what is stored of some rows; the rest is computed when its bytes or values are asked for."""
        read = None if self._samples is None else self._samples.fetch(self._positions[positions])
        return FetchedView(self._view[positions], self._computed, read, self._stored, self.names)

    def described(self, position: int) -> str:
        """Return how a message names a row."""
        return f"row {position} of {self.what}"

    def draws(self) -> Mapping[str, int]:
        """Return how many random numbers a row takes, for columns of the dataset."""
        return {} if self._samples is None else self._samples.draws()


class FetchedView:
    """Some rows of a view.

    Parameters
    ----------
    rows : View
        These rows.
    computed : sequence of str
        Columns that are computed.
    read : FetchedSamples, or None
        What was read of the others.
    stored : mapping of str to str
        The others, and their names in the dataset.
    names : sequence of str
        All columns.
    """

    hits = misses = raw_nbytes = 0

    def __init__(
        self,
        rows: View,
        computed: Sequence[str],
        read: FetchedSamples | None,
        stored: Mapping[str, str],
        names: Sequence[str],
    ) -> None:
        self._rows, self._names = rows, names
        self._computed, self._read, self._stored = computed, read, stored

    @cached_property
    def _values(self) -> dict[str, Values]:
        if not self._computed:
            return {}
        (found,) = self._rows.batches(self._computed, rows=len(self._rows))
        return found

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


def _size(values: Values) -> int:
    if isinstance(values, np.ndarray):
        return int(values.nbytes)
    return sum(int(getattr(value, "nbytes", 64)) for value in values)
