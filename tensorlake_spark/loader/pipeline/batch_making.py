"""One batch: its samples are read, decoded, transformed and put together."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidSampleError,
    LoaderClosedError,
    TensorLakeError,
)
from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.loader.order.epoch_order import EpochOrder
from tensorlake_spark.loader.order.sample_draws import draw_starts, draws_of, generator_of
from tensorlake_spark.loader.pipeline.collation import (
    Batch,
    Collate,
    UnlikeSample,
    collated,
    columns_of,
)
from tensorlake_spark.loader.pipeline.loader_stats import LoaderStats
from tensorlake_spark.loader.pipeline.unread_sample import gone_file, unread_error
from tensorlake_spark.loader.sources.loader_source import FetchedSamples, SampleSource
from tensorlake_spark.loader.transforms.image_transform import TransformFailed
from tensorlake_spark.tensor.sparse import SparseTensor

_READ_ERRORS = (TensorLakeError, OSError, ValueError)
"""What a sample that cannot be read may raise; a transform's errors are not among what is skipped."""

_MEND = "mend it, or leave the sample out"

MOST_TRIES = 16
"""How often another sample is taken for one that cannot be read."""


class FetchedBatch:
    """The samples of a batch, read but not decoded.

    Parameters
    ----------
    positions : int64 ndarray
        Of the samples.
    number : int
        Of the batch.
    samples : FetchedSamples, or None
        None if they have to be read one by one, to find the one that cannot be read.
    repeats : int64 ndarray
        How often each was drawn for this epoch before; see `EpochOrder.repeats`.
    """

    def __init__(
        self, positions: Array, number: int, samples: FetchedSamples | None, repeats: Array
    ) -> None:
        # What could not be read is replaced here, too: positions are those of the samples that are delivered.
        self.positions = positions.copy()
        self.number = number
        self.samples = samples
        self.repeats = repeats

    @cached_property
    def nbytes(self) -> int:
        """Bytes that the batch takes when it is made."""
        return 0 if self.samples is None else self.samples.nbytes

    @property
    def raw_nbytes(self) -> int:
        """Bytes that it takes until then, in copies of what was read."""
        return 0 if self.samples is None else self.samples.raw_nbytes

    @property
    def waited(self) -> bool:
        """Whether a store may have been waited for: all but what was kept, where that is counted."""
        return self.samples is None or self.samples.misses > 0 or not self.samples.hits


class BatchMaking:
    """Makes the batches of an epoch for one rank.

    Parameters
    ----------
    source : SampleSource
        Where samples come from.
    order : EpochOrder
        Which samples a batch has.
    rank, world_size : int
        Whose share of a batch is made.
    key : int
        Of random numbers for transforms.
    transform : callable, mapping or None
        A function of a sample, or functions of values by column; see `takes_rng`.
    collate : callable, str or None
        How samples are put together.
    skips : bool
        Whether a sample that cannot be read is replaced by a later one of the epoch.
    stats : LoaderStats
        Counts.
    """

    def __init__(
        self,
        source: SampleSource,
        order: EpochOrder,
        rank: int,
        world_size: int,
        key: int,
        transform: Callable[[dict[str, Any]], dict[str, Any]] | Mapping[str, Any] | None,
        collate: Collate,
        skips: bool,
        stats: LoaderStats,
    ) -> None:
        self._source, self._order = source, order
        self._rank, self._world = rank, world_size
        self._key, self._transform, self._collate = key, transform, collate
        self._skips, self._stats = skips, stats
        changed = transform if isinstance(transform, Mapping) else source.names
        self._blanks = {
            name: blank
            for name, blank in source.blanks.items()
            if transform is None or name not in changed
        }
        self._lying = source.lying if order.shuffle == "block" else None
        given = transform.values() if isinstance(transform, Mapping) else [transform]
        self._random = {id(one) for one in given if takes_rng(one)}
        self._draws_any = bool(self._random or source.draws())
        self._stopped = False

    def stop(self) -> None:
        """Let batches that are being made end at their next sample, with an error: nobody takes them any more."""
        self._stopped = True

    # ------------------------------------------------------------------ reading

    def fetch(self, number: int) -> FetchedBatch:
        """Read the samples of a batch."""
        positions = self._positions(self._order.share(number, self._rank, self._world))
        repeats = np.zeros(len(positions), np.int64)
        if self._draws_any:
            repeats = self._order.repeats(number, self._rank, self._world)
        try:
            found = self._source.fetch(positions)
            self._stats.add(hits=found.hits, misses=found.misses)
            return FetchedBatch(positions, number, found, repeats)
        except _READ_ERRORS:
            return FetchedBatch(positions, number, None, repeats)

    def _positions(self, places: Array) -> Array:
        return places if self._lying is None else self._lying[places]

    def make(self, number: int, fetched: FetchedBatch) -> Any:
        """Return a batch of samples that were read.

        Raises
        ------
        InvalidSampleError
            If a transform or a collate function fails; it names the sample, or the batch and its first sample.
        """
        began = time.perf_counter()
        columns = self._columns(fetched)
        decoded = time.perf_counter()
        batch = self._put_together(number, columns, fetched)
        self._stats.add(
            decode_seconds=decoded - began, transform_seconds=time.perf_counter() - decoded
        )
        return batch

    def _columns(self, fetched: FetchedBatch) -> dict[str, Values]:
        if fetched.samples is not None:
            try:
                return fetched.samples.values(self._draws(fetched.positions, fetched.repeats))
            except _READ_ERRORS:
                pass
        samples = [self._sample(fetched, place) for place in range(len(fetched.positions))]
        return {name: _joined([one[name] for one in samples]) for name in samples[0]}

    def _sample(self, fetched: FetchedBatch, place: int) -> dict[str, Values]:
        """Return one sample as columns of length 1, or the next that can be read where that is wanted."""
        position = int(fetched.positions[place])
        for step in range(1, MOST_TRIES + 1):
            try:
                here = np.array([position], np.int64)
                draws = self._draws(here, fetched.repeats[place : place + 1])
                found = self._source.fetch(here).values(draws)
                fetched.positions[place] = position
                return found
            except TransformFailed as error:
                raise InvalidSampleError(
                    f"the transform failed for {self._source.described(position)}: {error}; {_MEND}"
                ) from error
            except _READ_ERRORS as error:
                # An option that does not fit a sample, such as a crop that is too large, is no fault of the sample.
                # Nor is a file that a vacuum deleted: it had many others, for which few would stand in again and again.
                is_wrong = isinstance(error, InvalidOptionError) or gone_file(error) is not None
                if not self._skips or is_wrong or step == MOST_TRIES:
                    named = self._source.described(position)
                    raise unread_error(named, error, self._skips) from error
            if step == 1:  # those that stand in count in their own place
                self._stats.add(skipped=1)
            later = self._order.standing_in(fetched.number, self._rank, self._world, place, step)
            position = int(self._positions(np.array([later]))[0])
        raise AssertionError("the last try raises")

    def _draws(self, positions: Array, repeats: Array) -> dict[str, Array]:
        """Return the random numbers of samples, which follow from seed, epoch and sample.

        The first number of a sample is the same in all columns, and so on: transforms that begin alike cut an image
        and its mask at the same place.
        """
        wanted = self._source.draws()
        if not wanted:
            return {}
        starts = draw_starts(self._key, positions, repeats)
        return {name: draws_of(self._key, starts, count) for name, count in wanted.items()}

    # ------------------------------------------------------------------ transform, collate

    def _transformed(self, columns: dict[str, Values], fetched: FetchedBatch) -> Any:
        """Return columns, or a list of samples where a function of the user's puts those together."""
        samples: list[dict[str, Any]] | None = None
        transform = self._transform
        if isinstance(transform, Mapping):
            columns = columns | {
                name: self._each(name, one, columns[name], fetched)
                for name, one in transform.items()
                if name in columns
            }
        elif transform is not None:
            samples = [
                self._said(transform, sample, place, fetched)
                for place, sample in enumerate(_rows(columns))
            ]
            for place, sample in enumerate(samples):
                if not isinstance(sample, dict):
                    raise InvalidSampleError(
                        f"the transform gave {type(sample).__name__} for {self._named(place, fetched)}; it has to "
                        "return a dict by names"
                    )
        if callable(self._collate):
            return _rows(columns) if samples is None else samples
        return columns if samples is None else columns_of(samples)

    def _each(self, name: str, transform: Any, values: Values, fetched: FetchedBatch) -> Values:
        found = [self._said(transform, value, place, fetched) for place, value in enumerate(values)]
        return columns_of([{name: one} for one in found])[name]

    def _said(self, transform: Any, given: Any, place: int, fetched: FetchedBatch) -> Any:
        if self._stopped:
            raise LoaderClosedError("the loader was closed while this batch was made")
        try:
            if id(transform) not in self._random:
                return transform(given)
            here = slice(place, place + 1)
            (start,) = draw_starts(self._key, fetched.positions[here], fetched.repeats[here])
            return transform(given, rng=generator_of(self._key, start))
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise InvalidSampleError(
                f"the transform failed for {self._named(place, fetched)}: {said}; {_MEND}"
            ) from error

    def _named(self, place: int, fetched: FetchedBatch) -> str:
        return self._source.described(int(fetched.positions[place]))

    def _put_together(
        self, number: int, columns: dict[str, Values], fetched: FetchedBatch
    ) -> Batch:
        try:
            found = self._transformed(columns, fetched)
            if isinstance(found, list):
                return self._collated(number, found, fetched)
            collate = self._collate
            return collated(found, collate if isinstance(collate, str) else None, self._blanks)
        except UnlikeSample as error:
            said = f"{self._named(error.number, fetched)}, in batch {number}: {error.reason}"
            raise InvalidSampleError(said) from error

    def _collated(self, number: int, samples: list[Any], fetched: FetchedBatch) -> Batch:
        try:
            batch: Batch = self._collate(samples)  # type: ignore[operator, misc]
            return batch
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise InvalidSampleError(
                f"collate={self._collate!r:.80} failed for batch {number}, whose {len(samples)} samples begin with "
                f"{self._named(0, fetched)}: {said}; mend it, or make the samples alike by a transform"
            ) from error


def takes_rng(transform: Any) -> bool:
    """Return whether a transform has a parameter ``rng`` that nobody has given: it gets a generator for each sample.

    Examples
    --------
    >>> takes_rng(lambda value, rng: value), takes_rng(lambda value, rng=None: value), takes_rng(lambda value: value)
    (True, True, False)
    """
    try:
        found = inspect.signature(transform).parameters.get("rng")
    except (TypeError, ValueError):  # not every function of C says what it takes
        return False
    if found is None or found.kind not in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY):
        return False
    return found.default is found.empty or found.default is None


def _rows(columns: dict[str, Values]) -> list[dict[str, Any]]:
    names = list(columns)
    return [dict(zip(names, values)) for values in zip(*columns.values(), strict=True)]


def _joined(parts: list[Values]) -> Values:
    """Return columns of one sample each as one column."""
    if all(isinstance(part, (np.ndarray, SparseTensor)) for part in parts):
        shapes = {(part.shape, part.dtype) for part in parts}  # type: ignore[union-attr]
        if len(shapes) == 1:
            return np.concatenate(parts)
    return [value for part in parts for value in part]
