"""Columns of a dataset as samples for a loader."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.samples.sample_reading import read_table, values_of
from tensorlake_spark.datasets.types.base import field_of
from tensorlake_spark.datasets.types.media.images import Picture
from tensorlake_spark.datasets.types.schema import SID, column_of
from tensorlake_spark.datasets.types.tensors import ArrayType
from tensorlake_spark.loader.sources.block_cuts import block_starts
from tensorlake_spark.loader.sources.sample_source import Array, Values

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts
    from tensorlake_spark.datasets.dataset import Dataset

_AUDIO_TIMES = 16
"""Compressed sound takes up to so many times its bytes when it is decoded."""


class DatasetSamples:
    """Columns of one version of a dataset.

    Parameters
    ----------
    dataset : Dataset
        The version that it shows now is read, whatever is written later.
    names : sequence of str
        Columns, and ``sid``.
    """

    def __init__(self, dataset: Dataset, names: Sequence[str]) -> None:
        self.what = f"the dataset at {dataset.uri}"
        self.version = dataset.version
        self.names = tuple(names)
        self.parts = dataset.parts

    def __len__(self) -> int:
        return len(self.parts.stored)

    @property
    def is_remote(self) -> bool:
        return self.parts.stored.snapshot.remote is not None

    @cached_property
    def starts(self) -> Array:
        stored = self.parts.stored
        return block_starts(stored.file_counts, np.array(stored.file_sizes, np.int64))

    @property
    def lying(self) -> Array | None:
        return self.parts.stored.lying

    @cached_property
    def sample_bytes(self) -> float:
        return max(1.0, sum(self.parts.stored.file_sizes) / max(1, len(self)))

    @cached_property
    def identity(self) -> bytes:
        return hashlib.blake2b(
            self.parts.stored.snapshot.table_id.encode() + self.starts.tobytes(), digest_size=16
        ).digest()

    def fetch(self, positions: Array) -> FetchedRows:
        return FetchedRows(self.parts, self.names, positions)

    def draws(self) -> Mapping[str, int]:
        return {}

    def described(self, position: int) -> str:
        stored = self.parts.stored
        file, _ = stored.locate(np.array([position], np.int64))
        path = stored.snapshot.storage.file_uri(stored.files.paths[int(file[0])])
        return (
            f"sample {int(stored.sids[position])} of {self.what}, version {self.version}, in {path}"
        )


class FetchedRows:
    """Rows of a dataset, as they are stored.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    names : sequence of str
        The columns.
    positions : int64 ndarray
        Which samples, in any order, some perhaps twice.
    """

    def __init__(self, parts: StoredParts, names: Sequence[str], positions: Array) -> None:
        self._parts = parts
        self._order = np.argsort(positions, kind="stable")
        self._positions = positions[self._order]  # files are read from front to back
        table = read_table(parts, names, self._positions, views=True)
        self._columns: dict[str, pa.Array] = {}
        for name in names:
            column = column_of(table, name)
            self._columns[name] = (
                column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            )

    @cached_property
    def nbytes(self) -> int:
        return sum(self._nbytes(name, array) for name, array in self._columns.items())

    def _nbytes(self, name: str, array: pa.Array) -> int:
        kind = None if name == SID else self._parts.schema[name]
        if isinstance(kind, Picture):
            pixels = _numbers(array, "height") * _numbers(array, "width")
            return int((pixels * np.maximum(1, _numbers(array, "channels"))).sum()) * _size_of(kind)
        if isinstance(kind, ArrayType):
            shapes = field_of(array, "shape")
            return int(sum(np.prod(s or [0], dtype=np.int64) for s in shapes.to_pylist())) * 8
        return int(array.nbytes) * (1 if pa.types.is_primitive(array.type) else _AUDIO_TIMES)

    def values(self, draws: Mapping[str, Array]) -> dict[str, Values]:
        return {name: self._values(name, array) for name, array in self._columns.items()}

    def _values(self, name: str, array: pa.Array) -> Values:
        if name == SID:
            found: Any = np.asarray(array)
        else:
            found = values_of(self._parts, name, array, self._positions)
        back = np.empty(len(self._order), np.int64)
        back[self._order] = np.arange(len(self._order))
        if isinstance(found, np.ndarray):
            return found[back]
        return [found[place] for place in back.tolist()]


def _numbers(array: pa.Array, name: str) -> Array:
    return np.asarray(field_of(array, name).fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _size_of(kind: Picture) -> int:
    return int(np.dtype(getattr(kind, "dtype", "uint8")).itemsize)
