"""What a loader did, and what it waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
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

    Parameters
    ----------
    clock : callable
        Returns seconds.

    Examples
    --------
    >>> stats = LoaderStats()
    >>> stats.begin()
    >>> stats.add(batches=1, samples=64, bytes=640)
    >>> stats.end()
    >>> stats.counts.samples, stats.seconds > 0, stats.seconds == stats.seconds
    (64, True, True)
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.counts = Counts()
        self._clock = clock
        self._began = self._before = 0.0
        self._running = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Note that an iteration begins: from now on time counts."""
        with self._lock:
            if not self._running:
                self._began = self._clock()
            self._running += 1

    def end(self) -> None:
        """Note that an iteration has ended: time counts only while there is another one."""
        with self._lock:
            self._running -= 1
            if not self._running:
                self._before += self._clock() - self._began

    def add(self, **amounts: float) -> None:
        """Add to sums by their names."""
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
        """During iterations: neither before or after a loop nor between two of them."""
        with self._lock:
            return self._before + (self._clock() - self._began if self._running else 0.0)

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
