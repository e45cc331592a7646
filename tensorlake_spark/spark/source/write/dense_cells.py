"""Cells that are grouped by block (`group_cells`) as the chunks of a dense tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.spark.source.cell_columns import coordinates_of, values_of
from tensorlake_spark.spark.source.schemas import tensor_column

Array = np.ndarray[Any, Any]


class ChunkBuilder:
    """Makes slabs (``lo, tensor``) of cells; memory is bounded by one chunk and one batch.

    Parameters
    ----------
    tensor_id : str
        For messages.
    names : sequence of str
        Columns of the coordinates, axis by axis.
    shape, block : sequence of int
        Of the tensor, and of its chunks.
    dtype : numpy.dtype
        Of the tensor.
    """

    def __init__(
        self,
        tensor_id: str,
        names: Sequence[str],
        shape: Sequence[int],
        block: Sequence[int],
        dtype: np.dtype[Any],
    ) -> None:
        self.tensor_id, self.names = tensor_id, tuple(names)
        self.shape, self.block, self.dtype = tuple(shape), tuple(block), dtype

    def slabs(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a slab for each chunk that has a cell; the cells of a chunk follow each other.

        Raises
        ------
        InvalidTensorError
            If a cell is there twice, or will not do.
        """
        counts = [-(-n // b) for n, b in zip(self.shape, self.block, strict=True)]
        sides = np.array(self.block, np.int64).reshape(-1, 1)
        chunk: _Chunk | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            coords = coordinates_of(batch, self.names, self.shape)
            values = values_of(batch.column("value"), self.dtype)
            numbers = ravel(coords // sides, counts)
            starts = np.flatnonzero(np.diff(numbers, prepend=-1))
            for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True):
                number = int(numbers[start])
                if chunk is None or chunk.number != number:
                    if chunk is not None:
                        yield chunk.batch()
                    chunk = self._chunk(number, counts)
                chunk.add(coords[:, start:stop], values[start:stop], self.tensor_id)
        if chunk is not None:
            yield chunk.batch()

    def _chunk(self, number: int, counts: Sequence[int]) -> _Chunk:
        index = np.unravel_index(number, counts)
        lo = tuple(int(i) * b for i, b in zip(index, self.block, strict=True))
        sides = [min(b, n - a) for a, b, n in zip(lo, self.block, self.shape, strict=True)]
        return _Chunk(number, lo, sides, self.dtype)


class _Chunk:
    """A chunk that is being filled."""

    def __init__(
        self, number: int, lo: tuple[int, ...], shape: Sequence[int], dtype: np.dtype[Any]
    ) -> None:
        self.number, self.lo, self.shape = number, lo, tuple(shape)
        self.values = np.zeros(math.prod(shape), dtype)
        self.seen = np.zeros(math.prod(shape), bool)

    def add(self, coords: Array, values: Array, tensor_id: str) -> None:
        """Put cells where they lie."""
        places = ravel(coords - np.array(self.lo, np.int64).reshape(-1, 1), self.shape)
        ordered = np.sort(places)
        again = ordered[:-1][ordered[1:] == ordered[:-1]]
        twice = np.concatenate([places[self.seen[places]], again])
        if len(twice):
            inside = np.unravel_index(int(twice[0]), self.shape)
            at = tuple(a + int(i) for a, i in zip(self.lo, inside, strict=True))
            raise InvalidTensorError(
                f"cell {at} of tensor {tensor_id!r} is given more than once; option('duplicates', 'sum') or "
                "option('duplicates', 'last') combines them"
            )
        self.seen[places] = True
        self.values[places] = values

    def batch(self) -> pa.RecordBatch:
        """Return the chunk as a slab."""
        corner = pa.array([list(self.lo)], pa.list_(pa.int64()))
        slab = tensor_column([self.values.reshape(self.shape)])
        return pa.RecordBatch.from_arrays([corner, slab], names=["lo", "tensor"])
