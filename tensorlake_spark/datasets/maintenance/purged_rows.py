"""Which rows of a file hold something of samples that are purged: told by the rows, never by statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.audit.byte_search import byte_arrays, payload_columns
from tensorlake_spark.delta.files.footer import reading
from tensorlake_spark.delta.files.footer_checksum import read_footer
from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.delta.store.footer_index import schema_of
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.binary_views import without_views

Array = np.ndarray[Any, Any]
Visit = Callable[[pa.RecordBatch, Array], None]


@dataclass(frozen=True, eq=False, slots=True)
class SampleRows:
    """Rows of samples: in the samples' own table, and in those of apart columns.

    Attributes
    ----------
    sids : int64 ndarray
        The numbers of the samples.
    """

    sids: Array

    def held_rows(self, storage: Storage, path: str, visit: Visit | None = None) -> int:
        """Return how many rows of a file are theirs; see `audit.purge_target.Sought`."""
        return _held(storage, path, SID, self._ours, visit)

    def _ours(self, column: pa.ChunkedArray) -> Array:
        if not pa.types.is_integer(column.type):
            return np.zeros(len(column), bool)
        return np.isin(column.fill_null(-1).to_numpy(), self.sids)


@dataclass(frozen=True, eq=False, slots=True)
class TileRows:
    """Rows of the tensors with the tiles of samples.

    Attributes
    ----------
    sids : int64 ndarray
        The numbers of the samples.
    """

    sids: Array

    def held_rows(self, storage: Storage, path: str, visit: Visit | None = None) -> int:
        """Return how many rows of a file are theirs; see `audit.purge_target.Sought`."""
        return _held(storage, path, "id", self._ours, visit)

    def _ours(self, column: pa.ChunkedArray) -> Array:
        if not pa.types.is_string(column.type):
            return np.zeros(len(column), bool)
        names = [one for one in pc.unique(column).to_pylist() if one is not None]
        mine = pa.array([name for name in names if self.has(name)], pa.string())
        return np.asarray(pc.is_in(column, mine))

    def has(self, name: str) -> bool:
        """Whether a tensor has the tiles of one of the samples."""
        number = name.rpartition("/")[2]
        return number.isdecimal() and len(number) < 19 and bool(np.isin(int(number), self.sids))


def _held(
    storage: Storage,
    path: str,
    key: str,
    ours: Callable[[pa.ChunkedArray], Array],
    visit: Visit | None,
) -> int:
    count = 0
    with reading(storage, path):
        metadata = read_footer(storage, path)
        schema = schema_of(metadata).to_arrow_schema()
        if key not in schema.names:
            return 0
        with storage.open_parquet(path, metadata) as file:
            for group in range(metadata.num_row_groups):
                numbers = file.read_row_group(group, columns=[key], use_threads=False)
                mine = ours(without_views(numbers).column(key))
                count += int(mine.sum())
                if visit is None or not mine.any():
                    continue
                for name in payload_columns(schema):
                    rows = file.read_row_group(group, columns=[name], use_threads=False)
                    column = without_views(rows).column(name).combine_chunks()
                    for part in byte_arrays(column.filter(pa.array(mine))):
                        # A part of a text may stand in any other.
                        is_text = part.type in (pa.string(), pa.large_string())
                        whole = np.full(len(part), not is_text)
                        visit(pa.record_batch([part.cast(pa.binary())], ["data"]), whole)
    return count
