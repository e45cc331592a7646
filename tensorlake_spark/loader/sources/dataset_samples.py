"""Columns of a dataset as samples for a loader."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.delta.samples.scattered_rows import ScatteredRows
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.loader.columns.column_readings import readings_of
from tensorlake_spark.loader.columns.reading import Reading
from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.loader.sources.block_cuts import block_starts
from tensorlake_spark.loader.transforms.image_transform import ImageTransform


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
        self._rows: dict[int, ScatteredRows] = {}
        self._readings = readings_of(parts, names, self._rows_of, transforms)
        self._buffers = BatchBuffers(memory)

    def __reduce__(self) -> Any:
        stored = StoredSamples(self.parts.stored.snapshot)
        parts = StoredParts(stored, self.parts.schema, self.parts.rules)
        return DatasetSamples, (parts, self.names, self._transforms, self._memory)

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
        return FetchedRows(self._readings, self.names, positions, self._buffers)

    def _rows_of(self, table: StoredSamples) -> ScatteredRows:
        """Return what reads a table's scattered rows: one for all columns of it."""
        if id(table) not in self._rows:
            self._rows[id(table)] = ScatteredRows(table, self._memory // 4)
        return self._rows[id(table)]

    def draws(self) -> Mapping[str, int]:
        return {one.names[0]: one.n_random for one in self._readings if one.n_random}

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
    readings : sequence of Reading
        The columns.
    names : sequence of str
        Their names, in the order in which they are delivered.
    positions : int64 ndarray
        Which samples, in any order, some perhaps twice.
    buffers : BatchBuffers
        Memory for arrays.
    """

    def __init__(
        self,
        readings: Sequence[Reading],
        names: Sequence[str],
        positions: Array,
        buffers: BatchBuffers,
    ) -> None:
        self._readings, self._names, self._buffers = readings, names, buffers
        self._positions = positions
        self._read = [reading.read(positions) for reading in readings]

    @cached_property
    def nbytes(self) -> int:
        return sum(
            reading.nbytes(read) for reading, read in zip(self._readings, self._read, strict=True)
        )

    def values(self, draws: Mapping[str, Array]) -> dict[str, Values]:
        found: dict[str, Values] = {}
        for reading, read in zip(self._readings, self._read, strict=True):
            random = draws.get(reading.names[0])
            found |= reading.values(read, self._positions, random, self._buffers)
        return {name: found[name] for name in self._names}
