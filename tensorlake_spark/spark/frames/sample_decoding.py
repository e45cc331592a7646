"""What executors do for a DataFrame of samples: media become tensors, what lies apart or in tiles is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.samples.where import parse_where
from tensorlake_spark.datasets.types.base import Tiled, Type
from tensorlake_spark.datasets.types.media.images import Picture
from tensorlake_spark.datasets.types.media.medical import Dicom
from tensorlake_spark.datasets.types.media.recordings import Audio
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.datasets.types.tensors import ArrayType, Embedding
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.spark.frames.image_columns import tensors_with_nulls
from tensorlake_spark.spark.source.schemas import TENSOR, arrow_type
from tensorlake_spark.tensor.spec import dtype_of

Array = np.ndarray[Any, Any]

_RUN = 64  # samples that are decoded at a time
_BATCH_BYTES = 32 << 20  # of tensors that go to Spark at once
_TENSOR = arrow_type(TENSOR)


def is_decoded(kind: Type) -> bool:
    """Whether a column becomes tensors: images, masks, sounds, scans and vectors that were quantised.

    Arrays are tensors as they are stored. Videos stay files: a row of Spark has no room for their frames.
    """
    quantized = isinstance(kind, Embedding) and kind.quantize is not None
    return quantized or isinstance(kind, (Picture, Audio, Dicom))


def is_tensor(kind: Type) -> bool:
    """Whether a column of samples is one of tensors."""
    return is_decoded(kind) or isinstance(kind, ArrayType)


@dataclass(frozen=True)
class ColumnDecoding:
    """What makes one column of a DataFrame of samples from batches of the stored one.

    Attributes
    ----------
    storage : Storage
        The dataset.
    version : int
        Which one.
    name : str
        The column.
    kind : Type
        Its type.
    on_error : str
        ``"raise"`` or ``"null"``.
    """

    storage: Storage
    version: int
    name: str
    kind: Type
    on_error: str = "raise"

    def __call__(self, batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        """Yield the column for batches of stored values and sids, in pieces of few bytes.

        Of an apart column the stored values are null, and are fetched from its own table.
        """
        for stored, sids in batches:
            if not len(stored):  # as Spark wants an array for each batch
                yield pa.nulls(0, _TENSOR if is_tensor(self.kind) else stored.type)
            for start in range(0, len(stored), _RUN):
                numbers = sids.slice(start, _RUN)
                part = stored.slice(start, _RUN)
                if self.kind.apart:
                    part = self._apart(numbers).cast(part.type)
                if is_tensor(self.kind):
                    yield from self._tensors(part, numbers)
                else:
                    yield part

    def _tensors(self, stored: pa.Array, sids: pa.Array) -> Iterator[pa.Array]:
        held: list[Array | None] = []
        size = 0
        for value in self._values(stored, sids):
            held.append(value)
            size += 0 if value is None else value.nbytes
            if size >= _BATCH_BYTES:
                yield tensors_with_nulls("samples", held)
                held, size = [], 0
        if held:
            yield tensors_with_nulls("samples", held)

    def _values(self, stored: pa.Array, sids: pa.Array) -> Iterator[Array | None]:
        try:
            found = self.kind.decode(stored)
        except CorruptDataError:
            found = [self._one(stored, sids, row) for row in range(len(stored))]
        for row, value in enumerate(found):
            yield _array_of(
                self._tiled(value, sids[row].as_py()) if isinstance(value, Tiled) else value
            )

    def _one(self, stored: pa.Array, sids: pa.Array, row: int) -> Any:
        """Return one value; the error for a bad one names its sample."""
        try:
            return self.kind.decode(stored.slice(row, 1))[0]
        except CorruptDataError as error:
            if self.on_error == "null":
                return None
            raise type(error)(
                f"column {self.name!r}, the sample with sid {sids[row].as_py()}: {error}"
            ) from error

    # ------------------------------------------------------------------ what does not lie in the rows

    def _apart(self, sids: pa.Array) -> pa.Array:
        parts = self._parts()
        found = parts.column(self.name, parts.stored.positions_of(sids.to_numpy()))
        return found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)

    def _tiled(self, value: Tiled, sid: int) -> Array:
        parts = self._parts()
        position = int(parts.stored.positions_of(np.array([sid]))[0])
        size = int(np.prod(value.shape, dtype=object)) * dtype_of(value.dtype).itemsize
        if size >= 1 << 31:
            raise InvalidOptionError(
                f"column {self.name!r}, the sample with sid {sid}: {value.dtype} of shape {value.shape} is too large "
                "for a value of Spark, which has less than 2 GiB; read parts of it by tensorlake_spark.dataset"
            )
        return np.asarray(parts.tensor(self.name, position, value)[...])

    def _parts(self) -> StoredParts:
        return _opened(self.storage.uri, tuple(self.storage.options.items()), self.version)


@dataclass(frozen=True)
class ApartCondition:
    """What a condition says of samples by columns that are kept apart.

    Attributes
    ----------
    storage : Storage
        The dataset.
    version : int
        Which one.
    where : str
        The condition; parts of an ``AND`` that ask no such column are not looked at.
    """

    storage: Storage
    version: int
    where: str

    def __call__(self, batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Yield whether it is true, for batches of sids."""
        parts = _opened(self.storage.uri, tuple(self.storage.options.items()), self.version)
        beside = parse_where(self.where, parts.schema, parts.stored.schema).beside
        assert beside is not None  # nosec B101 # for mypy
        for sids in batches:
            positions = parts.stored.positions_of(sids.to_numpy())
            yield pa.array(np.isin(positions, beside.among(parts, positions)))


@lru_cache(maxsize=2)
def _opened(uri: str, options: tuple[tuple[str, str], ...], version: int) -> StoredParts:
    """Return the parts of a dataset at a version; a Python that does several tasks opens them once."""
    snapshot = Snapshot.open(Storage(uri, dict(options)), version, kind=SAMPLES)
    return StoredParts(StoredSamples(snapshot), SampleSchema.from_arrow(snapshot.schema))


def _array_of(value: Any) -> Array | None:
    """Return the array of a decoded value; of a sound its samples."""
    if value is None or isinstance(value, np.ndarray):
        return value
    return np.asarray(value.samples if hasattr(value, "samples") else value)
