"""Slices of tensors of a lake as samples for a loader."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from pyarrow.parquet import FileMetaData

from tensorlake_spark.datasets.samples.padding import Blank
from tensorlake_spark.delta.files.footer import learn_footers
from tensorlake_spark.delta.files.scan import footers
from tensorlake_spark.errors import InvalidOptionError, TensorLakeError
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.loader.caching.cache_option import parse_cache
from tensorlake_spark.loader.caching.range_cache import RangeCache
from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.loader.sources.block_cuts import MOST_BYTES
from tensorlake_spark.loader.sources.loader_source import Told
from tensorlake_spark.loader.sources.remote_ranges import RemoteRanges
from tensorlake_spark.loader.sources.tensor_blocks import TensorBlocks

_LEAST_BYTES = 64 << 10
_WANTED = 256  # blocks of a small tensor, or a shuffle of blocks would move little


class TensorSamples:
    """Slices of tensors along an axis: sample `i` has slice `i` of each.

    Parameters
    ----------
    refs : mapping of str to TensorRef
        The tensors by the names that batches have. The versions that they show now are read.
    axis : int
        Along which slices are taken; a negative one counts from the last.
    memory : int
        Bytes of a loader; a quarter of them is for blocks that later batches need.
    cache : str, optional
        Folder and size of a cache for what is read of an object store; see `parse_cache`.

    Raises
    ------
    InvalidOptionError
        If a tensor does not have the axis, or they are not equally long along it.
    """

    def __init__(
        self, refs: Mapping[str, TensorRef], axis: int, memory: int, cache: str | None = None
    ) -> None:
        self._given = dict(refs), axis, memory, cache
        self.names = tuple(refs)
        self._first = first = next(iter(refs.values()))
        self.version: int | None = first.version
        self.what = ", ".join(
            f"tensor {ref.id!r} of the lake at {ref._snapshot.storage.uri}" for ref in refs.values()
        )
        kept = None if cache is None else RangeCache(*parse_cache(cache))
        ranges = None if kept is None else RemoteRanges(memory // 8, kept)
        self._blocks = {
            name: TensorBlocks(
                _read_by(ref, ranges), checked_axis(ref, axis), memory // 4 // len(refs)
            )
            for name, ref in refs.items()
        }
        self.axis = axis
        self.blanks: Mapping[str, Blank] = {}  # no slice is null
        for name, blocks in self._blocks.items():
            if len(blocks) != len(self):
                raise InvalidOptionError(
                    f"tensor {name!r} has length {len(blocks)} along axis {axis}, and {self.names[0]!r} has "
                    f"{len(self)}; a sample is a slice of each, so give tensors of one length"
                )

    def __reduce__(self) -> Any:
        return TensorSamples, self._given

    def __len__(self) -> int:
        return len(self._blocks[self.names[0]])

    @property
    def is_remote(self) -> bool:
        return any(not one.ref._snapshot.storage.is_local for one in self._blocks.values())

    @property
    def reserved(self) -> float:
        return 0.25

    @cached_property
    def starts(self) -> Array:
        return _starts(max(self._blocks.values(), key=lambda one: one.ref.stored_bytes))

    @property
    def lying(self) -> Array | None:
        return None

    @cached_property
    def sample_bytes(self) -> float:
        total = sum(one.ref.stored_bytes for one in self._blocks.values())
        return max(1.0, total / max(1, len(self)))

    @cached_property
    def identity(self) -> bytes:
        parts = [
            (name, one.ref._snapshot.table_id, one.ref.id, one.ref.shape, one.axis)
            for name, one in self._blocks.items()
        ]
        later = [one.ref.version for one in self._blocks.values()][1:]  # the first is in `version`
        return hashlib.blake2b(repr((parts, later)).encode(), digest_size=16).digest()

    def for_worker(self, workers: int) -> TensorSamples:
        _, axis, memory, cache = self._given
        refs = {name: blocks.known_ref() for name, blocks in self._blocks.items()}
        return TensorSamples(refs, axis, memory // workers, cache)

    def facts(self, positions: Array, told: Told) -> dict[str, dict[str, FileMetaData]]:
        found = {}
        wanted = np.unique(positions)
        with suppress(TensorLakeError):  # who reads the slices says it
            for name, blocks in self._blocks.items():
                new = told.new(name, blocks.files_of(wanted))
                if new:
                    snapshot = blocks.ref._snapshot
                    read = footers(snapshot, new)
                    found[name] = {snapshot.files.path[at]: one.metadata for at, one in read}
        return found

    def learn(self, facts: dict[str, dict[str, FileMetaData]]) -> None:
        for name, known in facts.items():
            learn_footers(self._blocks[name].ref._snapshot.storage, known)

    def fetch(self, positions: Array) -> FetchedSlices:
        found = FetchedSlices(self._blocks, positions)
        if self.is_remote:
            found.read()
        return found

    def draws(self) -> Mapping[str, int]:
        return {}

    def described(self, position: int) -> str:
        return f"slice {position} along axis {self.axis} of {self.what}, version {self.version}"


class FetchedSlices:
    """Slices of tensors; of local ones they are read when their values are wanted, straight into a batch.

    Parameters
    ----------
    blocks : mapping of str to TensorBlocks
        The tensors.
    positions : int64 ndarray
        Which slices.
    """

    def __init__(self, blocks: Mapping[str, TensorBlocks], positions: Array) -> None:
        self._blocks, self._positions = blocks, positions
        self._values: dict[str, Any] | None = None
        self.raw_nbytes = self.hits = self.misses = 0

    @property
    def nbytes(self) -> int:
        if self._values is not None:
            return self.raw_nbytes
        return len(self._positions) * sum(one.sample_nbytes for one in self._blocks.values())

    def read(self) -> dict[str, Any]:
        """Read the slices of all tensors."""
        if self._values is None:
            self._values = {name: one.read(self._positions) for name, one in self._blocks.items()}
            self.raw_nbytes = sum(int(value.nbytes) for value in self._values.values())
        return self._values

    def values(self, draws: Mapping[str, Array]) -> dict[str, Values]:
        return self.read()


def checked_axis(ref: TensorRef, axis: Any) -> int:
    """Return an axis of a tensor, counted from the first; raises InvalidOptionError if it has no such axis."""
    try:
        found = operator.index(axis)
    except TypeError:
        found = ref.ndim
    if not -ref.ndim <= found < ref.ndim or isinstance(axis, bool):
        raise InvalidOptionError(
            f"axis={axis!r:.80} is not an axis of tensor {ref.id!r}, which has {ref.ndim} axes; samples lie along an "
            "axis: give one from 0 on"
        )
    return found % ref.ndim


def _read_by(ref: TensorRef, ranges: RemoteRanges | None) -> TensorRef:
    """Return a tensor whose version stays, even if the reference is used to write."""
    snapshot = ref._snapshot if ranges is None else ref._snapshot.reading_by(ranges.over)
    return TensorRef(snapshot, ref._meta, ref._verify)


def _starts(blocks: TensorBlocks) -> Array:
    """Return where runs of whole blocks begin, of about equally many stored bytes."""
    cuts, total = blocks.cuts, blocks.ref.stored_bytes
    aim = min(max(total // _WANTED, _LEAST_BYTES), MOST_BYTES)
    run = cuts[:-1] * total // max(1, len(blocks)) // aim
    firsts = np.flatnonzero(np.append(True, np.diff(run) > 0)) if len(run) else run
    out: Array = np.append(cuts[:-1][firsts], len(blocks)).astype(np.int64)
    return out
