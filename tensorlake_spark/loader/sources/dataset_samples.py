"""Columns of a dataset as samples for a loader."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.samples.sample_reading import whole
from tensorlake_spark.datasets.types.schema import column_of
from tensorlake_spark.loader.sources.batch_buffers import BatchBuffers
from tensorlake_spark.loader.sources.block_cuts import block_starts
from tensorlake_spark.loader.sources.column_reading import ColumnReading, reading_of
from tensorlake_spark.loader.sources.sample_source import Array, Values
from tensorlake_spark.loader.transforms.image_transform import ImageTransform

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts


class DatasetSamples:
    """Columns of one version of a dataset.

    Parameters
    ----------
    parts : StoredParts
        Of the version that is read, whatever is written later.
    names : sequence of str
        Columns, and ``sid``.
    transforms : mapping of str to ImageTransform
        Of columns of images.
    memory : int
        Bytes of arrays that are kept to be used again.
    """

    def __init__(
        self,
        parts: StoredParts,
        names: Sequence[str],
        transforms: Mapping[str, ImageTransform],
        memory: int,
    ) -> None:
        snapshot = parts.stored.snapshot
        self.what = f"the dataset at {snapshot.storage.uri}"
        self.version: int | None = snapshot.version
        self.names = tuple(names)
        self.parts = parts
        self._transforms, self._memory = dict(transforms), memory
        self._readings = [reading_of(self.parts, name, transforms.get(name)) for name in names]
        self._buffers = BatchBuffers(memory)

    def __reduce__(self) -> Any:
        return DatasetSamples, (self.parts, self.names, self._transforms, self._memory)

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
        return FetchedRows(self._readings, self.parts, positions, self._buffers)

    def draws(self) -> Mapping[str, int]:
        return {one.name: one.n_random for one in self._readings if one.n_random}

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
    readings : sequence of ColumnReading
        The columns.
    parts : StoredParts
        Of the dataset.
    positions : int64 ndarray
        Which samples, in any order, some perhaps twice.
    buffers : BatchBuffers
        Memory for arrays.
    """

    def __init__(
        self,
        readings: Sequence[ColumnReading],
        parts: StoredParts,
        positions: Array,
        buffers: BatchBuffers,
    ) -> None:
        self._readings, self._buffers = readings, buffers
        order = np.argsort(positions, kind="stable")
        self._positions = positions[order]  # files are read from front to back
        self._back = np.empty(len(order), np.int64)
        self._back[order] = np.arange(len(order))
        self._columns = read_columns(parts, readings, self._positions)

    @cached_property
    def nbytes(self) -> int:
        return sum(
            reading.nbytes(array)
            for reading, array in zip(self._readings, self._columns, strict=True)
        )

    def values(self, draws: Mapping[str, Array]) -> dict[str, Values]:
        return {
            reading.name: reading.values(
                array, self._positions, self._back, draws.get(reading.name), self._buffers
            )
            for reading, array in zip(self._readings, self._columns, strict=True)
        }


def read_columns(
    parts: StoredParts, readings: Sequence[ColumnReading], positions: Array
) -> list[pa.Array]:
    """Return columns of some samples as they are stored, with the fields that are needed."""
    inner = [reading for reading in readings if not parts.is_apart(reading.name)]
    table = parts.stored.rows([leaf for one in inner for leaf in one.leaves], positions, views=True)
    return [
        whole(
            parts.column(one.name, positions, views=True)
            if parts.is_apart(one.name)
            else column_of(table, one.name)
        )
        for one in readings
    ]
