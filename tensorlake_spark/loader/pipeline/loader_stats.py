"""What a loader did, and what it waited for."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, fields


@dataclass
class Counts:
    """Sums of what was counted so far.

    Attributes
    ----------
    batches, samples : int
        What was delivered.
    bytes : int
        Of the arrays that were delivered.
    skipped : int
        Samples that could not be read, and were replaced.
    fetch_seconds, decode_seconds, transform_seconds : float
        What threads spent, summed over all of them.
    wait_seconds : float
        What the consumer waited for a batch.
    hits, misses : int
        Pieces that the cache had, and had not.
    peak_bytes : int
        The most memory that batches had at a time.
    """

    batches: int = 0
    samples: int = 0
    bytes: int = 0
    skipped: int = 0
    fetch_seconds: float = 0.0
    decode_seconds: float = 0.0
    transform_seconds: float = 0.0
    wait_seconds: float = 0.0
    hits: int = 0
    misses: int = 0
    peak_bytes: int = 0


class LoaderStats:
    """Counts of one loader; threads add to it.

    Examples
    --------
    >>> stats = LoaderStats()
    >>> stats.add(batches=1, samples=64, bytes=640)
    >>> stats.counts.samples, stats.seconds > 0
    (64, True)
    """

    def __init__(self) -> None:
        self.counts = Counts()
        self._began: float | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Start the clock, if it does not run yet: what is waited for from now on counts."""
        if self._began is None:
            self._began = time.perf_counter()

    def add(self, **amounts: float) -> None:
        """Add to sums by their names."""
        self.begin()
        with self._lock:
            for name, amount in amounts.items():
                setattr(self.counts, name, getattr(self.counts, name) + amount)

    def taken(self) -> Counts:
        """Return what was counted since it was taken last, and begin anew: each thing is in one of them."""
        with self._lock:
            found, self.counts = self.counts, Counts()
        return found

    def in_use(self, nbytes: int) -> None:
        """Note how much memory batches have now."""
        self.counts.peak_bytes = max(self.counts.peak_bytes, nbytes)

    @property
    def seconds(self) -> float:
        """Since the first iteration began."""
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def report(self) -> dict[str, float]:
        """Return all counts by name, with ``samples_per_second``, ``mb_per_second`` and ``hit_rate``."""
        with self._lock:
            out: dict[str, float] = {
                field.name: getattr(self.counts, field.name) for field in fields(Counts)
            }
        seconds, asked = self.seconds, self.counts.hits + self.counts.misses
        out["seconds"] = seconds
        out["samples_per_second"] = self.counts.samples / seconds if seconds else 0.0
        out["mb_per_second"] = self.counts.bytes / seconds / 1e6 if seconds else 0.0
        out["hit_rate"] = self.counts.hits / asked if asked else 0.0
        return out
