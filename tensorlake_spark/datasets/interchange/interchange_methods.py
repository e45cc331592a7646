"""A dataset for other libraries, and for the eye."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.datasets.interchange.hugging_face import (
    as_written,
    hugging_face,
    to_features,
)
from tensorlake_spark.datasets.interchange.notebook import SHOWN, samples_table, shown_value
from tensorlake_spark.datasets.samples.dataset_table import DatasetTable
from tensorlake_spark.datasets.samples.sample_reading import (
    read_table,
    read_values,
    runs_of,
    values_of,
    whole,
)
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.datasets.types.media.medical import Dicom
from tensorlake_spark.datasets.types.nested import Link
from tensorlake_spark.datasets.types.nested import Sequence as SequenceType
from tensorlake_spark.datasets.types.scalars import Scalar
from tensorlake_spark.datasets.types.schema import column_of
from tensorlake_spark.datasets.types.texts import Json
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, StorageError, TensorLakeError


class InterchangeMethods(DatasetTable):
    """What a dataset gives to others."""

    def to_hf(self, columns: Sequence[str] | None = None, cache_dir: str | None = None) -> Any:
        """Return the version that is shown as a dataset of Hugging Face's library `datasets`.

        Media go over as they are stored, and are decoded there. The library keeps the samples in files of its own.

        Parameters
        ----------
        columns : sequence of str, optional
            Names; all where None.
        cache_dir : str, optional
            Where the library keeps its files; its own folder by default.

        Returns
        -------
        datasets.Dataset

        Raises
        ------
        InvalidOptionError
            If there is no feature for a column, or no column.
        MissingDependencyError
            If the library is not installed.
        StorageError
            If the library cannot write its files, as on a full disk.
        """
        names = self._names(columns)
        schema = {name: self.type_of(name) for name in names}
        hf, features = hugging_face(), to_features(schema)
        self.stored  # noqa: B018 # raises
        if not names:
            raise InvalidOptionError("columns=[] is empty; name at least one, or leave columns out")
        if not len(self):  # of which the library makes no dataset by a generator
            return hf.Dataset.from_dict({name: [] for name in features}, features)
        stored = as_written(features, hf)
        try:
            made = hf.Dataset.from_generator(
                _samples_for_hf,
                features=stored,
                cache_dir=cache_dir,
                # A tuple: the library takes a list for shards, and calls the function for each part of it.
                gen_kwargs={
                    "storage": self._storage,
                    "version": self.version,
                    "names": tuple(names),
                },
            )
        except (OSError, hf.exceptions.DatasetGenerationError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if isinstance(cause, TensorLakeError):  # of a read of samples
                raise cause from cause.__cause__
            if not isinstance(cause, OSError):
                raise
            place = cache_dir or hf.config.HF_DATASETS_CACHE
            raise StorageError(
                f"the library datasets cannot keep the samples in {place}: {_said(cause)}; free some space there, or "
                "give another folder by cache_dir"
            ) from error
        for name, feature in features.items():
            if isinstance(feature, hf.Audio):
                made = made.cast_column(name, feature)  # without a copy
        return made if made.features == features else made.cast(features)

    def _repr_html_(self) -> str:
        title = f"{self.uri}, version {self.version}, {len(self)} samples"
        columns = self._shown(np.arange(min(SHOWN, len(self))), list(self.schema))
        rows = [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]
        return samples_table(title, self.schema, rows)

    def _values(
        self, positions: np.ndarray[Any, Any], names: list[str], stack: bool = False
    ) -> dict[str, Any]:
        """Return columns of some samples, each as a list, or with `stack` as one array if its type stacks."""
        if not len(self):
            return {name: [] for name in names}
        return read_values(self.parts, names, positions, stack)

    def _shown(self, positions: np.ndarray[Any, Any], names: list[str]) -> dict[str, list[Any]]:
        """Return values as `_values` does, of large samples only what their rows say of them."""
        if not len(self):
            return {name: [] for name in names}
        table = read_table(self.parts, names, positions, views=True)
        columns = {name: (self.type_of(name), whole(column_of(table, name))) for name in names}
        return {
            name: [shown_value(kind, array.slice(n, 1)) for n in range(len(array))]
            for name, (kind, array) in columns.items()
        }


def _said(error: OSError) -> str:
    """Return what an error says, in one line."""
    return error.strerror or " ".join(str(error).split())


def _samples_for_hf(
    storage: Storage, version: int, names: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield samples with the media as they are stored; a function of its own, as the library pickles it."""
    table = DatasetTable(storage, Snapshot.open(storage, version, kind=SAMPLES), pinned=True)
    for positions in runs_of(table.parts, names, np.arange(len(table))):
        rows = read_table(table.parts, names, positions)
        columns = {
            name: _for_hf(table, whole(column_of(rows, name)), name, positions) for name in names
        }
        for values in zip(*columns.values(), strict=True):
            sample: dict[str, Any] = {}
            for name, value in zip(names, values, strict=True):
                *groups, last = name.split("/")
                inner = sample
                for group in groups:
                    inner = inner.setdefault(group, {})
                inner[last] = _in_rows(value) if groups else value
            yield sample


def _in_rows(value: Any) -> Any:
    """Return an array as nested lists of arrays of one axis.

    The library does so itself, but in a group it looks only at the first sample, which may have no array.
    """
    if isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim > 1):
        return [_in_rows(one) for one in value]
    return value


def _for_hf(
    table: DatasetTable, array: Any, name: str, positions: np.ndarray[Any, Any]
) -> list[Any]:
    kind = table.type_of(name)
    while isinstance(kind, SequenceType):
        kind = kind.of
    take = _taken(kind)
    if take is not None:
        return [_each(one, take) for one in array.to_pylist()]
    return list(values_of(table.parts, name, array, positions, stack=False))


def _taken(kind: Type) -> Callable[[Any], Any] | None:
    """Return what makes of a stored value what the library takes; None where it takes the decoded one."""
    if isinstance(kind, Json):  # as a text
        return lambda stored: stored
    if isinstance(kind, Link):
        return lambda stored: stored["url"]
    if isinstance(kind, Dicom):
        return lambda stored: stored["data"]
    if isinstance(kind, Scalar) and kind.dtype == "uint64":
        return lambda stored: stored  # a decimal, as `as_written` says
    feature = to_features({"it": kind})["it"]
    is_raw = isinstance(kind, Image) and kind.format == "raw"  # the library makes PNGs of arrays
    if not is_raw and type(feature).__name__ in ("Image", "Audio", "Video"):
        return lambda stored: {"bytes": stored["data"], "path": None}
    return None


def _each(stored: Any, take: Callable[[Any], Any]) -> Any:
    """Return what is made of a stored value, or of those in a list."""
    if isinstance(stored, list):
        return [_each(one, take) for one in stored]
    return None if stored is None else take(stored)
