"""Which samples an epoch has: all, those that were chosen, or as many as are drawn by weights."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.loader_options import LoaderOptions
from tensorlake_spark.loader.order.counter_random import key_of
from tensorlake_spark.loader.order.epoch_order import SPLITS, EpochOrder
from tensorlake_spark.loader.order.loader_state import LoaderState
from tensorlake_spark.loader.order.sampling import Draw
from tensorlake_spark.loader.order.sliding_shuffle import MOST_BUFFER
from tensorlake_spark.loader.sources.loader_source import SampleSource

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Selection:
    """Samples to choose from, and how many are drawn of them.

    Attributes
    ----------
    positions : int64 ndarray, or None
        Of the samples, in the order in which they are delivered without a shuffle; None for all.
    weights : float64 ndarray, or None
        How likely each is drawn, one for each of `positions`; None to take each once.
    samples : int, or None
        How many an epoch has where they are drawn; None for as many as there are.
    replacement : bool
        Whether one sample may be drawn several times.
    """

    positions: Array | None = None
    weights: Array | None = None
    samples: int | None = None
    replacement: bool = True

    def digest(self, source: SampleSource) -> str:
        """Return what is the same for the same samples and weights."""
        found = hashlib.blake2b(source.identity, digest_size=16)
        found.update(source.starts.tobytes())
        for part in (self.positions, self.weights):
            found.update(b"all" if part is None else np.ascontiguousarray(part).tobytes())
        found.update(f"{self.samples} {self.replacement and self.weights is not None}".encode())
        return found.hexdigest()

    def count(self, source: SampleSource) -> int:
        """Return how many samples an epoch has."""
        here = len(source) if self.positions is None else len(self.positions)
        return here if self.weights is None or self.samples is None else self.samples

    def order(
        self, source: SampleSource, options: LoaderOptions, state: LoaderState, batch: int
    ) -> EpochOrder:
        """Return the order of the epoch that a state is in, from where it is."""
        key = key_of("tensorlake_spark.loader", state.seed, state.epoch, state.selection)
        positions = self._drawn(source, key)
        shuffle = state.shuffle
        if shuffle == "block" and source.lying is not None:
            # Blocks are counted as samples lie; who takes positions of them maps them back.
            place_of = np.argsort(source.lying, kind="stable")
            positions = None if positions is None else place_of[positions]
        count = len(source) if positions is None else len(positions)
        return EpochOrder(
            count,
            batch,
            shuffle,
            key,
            starts=source.starts if shuffle == "block" else None,
            buffer=state.buffer,
            splits=state.splits,
            drop_last=options.drop_last,
            positions=positions,
            begin=min(state.samples, count),
        )

    def _drawn(self, source: SampleSource, key: int) -> Array | None:
        if self.weights is None:
            return self.positions
        draw = Draw(
            self.weights, self.count(source), replacement=self.replacement, key=key_of("draw", key)
        )
        places = draw.places()
        return places if self.positions is None else self.positions[places]

    def state(self, source: SampleSource, options: LoaderOptions) -> LoaderState:
        """Return the state at the beginning of the first epoch."""
        return LoaderState(
            seed=options.seed,
            splits=(options.splits or SPLITS) if options.shuffle == "block" else 1,
            buffer=min(max(1, int(options.buffer / source.sample_bytes)), MOST_BUFFER),
            batch=options.global_batch,
            shuffle=options.shuffle,  # type: ignore[arg-type]
            version=source.version or 0,
            source=hashlib.blake2b(source.identity, digest_size=16).hexdigest(),
            selection=self.digest(source),
        )

    def check(self, source: SampleSource) -> None:
        """Raise InvalidOptionError if there is nothing to deliver."""
        if not self.count(source):
            why = "has no samples" if self.positions is None else "has no sample that is selected"
            raise InvalidOptionError(f"{source.what} {why}; a loader needs at least one")
