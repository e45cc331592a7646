"""How often the workers of a DataLoader went through their batches: so each pass is another epoch, in all of them."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Mapping
from multiprocessing import context
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError

MOST_WORKERS = 128

_HEAD = 2  # how often the parent moved; how many workers the last pass had
_EACH = 3  # of each worker: epoch and samples that it counts from, passes since
_SLOTS = MOST_WORKERS * (MOST_WORKERS + 1) // 2
_STATE = 4096  # bytes of a state as JSON: it has a few integers, and the seed may be a long one


class WorkerPasses:
    """Counts that the processes of a DataLoader and their parent share.

    A worker begins with a copy of the loader, made when the worker is; what it does is not seen in the parent. Some
    DataLoaders have new workers for each pass, some keep them. So each worker counts its passes in memory that all
    share, in a slot of its own: the first pass is where the loader was, each further one the next epoch. A DataLoader
    with another number of workers counts for itself, so that all workers of a pass have the same epoch. The parent may
    move all of them to another state. The memory has no name and is gone with its last process.
    """

    def __init__(self) -> None:
        self._shared: Any = multiprocessing.RawArray("q", _HEAD + _EACH * _SLOTS)
        self._state: Any = multiprocessing.RawArray("c", _STATE)
        self._seen = 0

    def __getstate__(self) -> dict[str, Any]:
        # Only a child that is being started can share memory; a copy for anything else counts for itself.
        if context.get_spawning_popen() is None:
            return {"_shared": None}
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._shared is None:
            self.__init__()  # type: ignore[misc]

    @property
    def _numbers(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self._shared, np.int64)

    def begin(self, worker: int, workers: int, epoch: int, samples: int) -> tuple[int, int]:
        """Count a pass of a worker, and return the epoch that it is, and at how many samples it begins.

        Parameters
        ----------
        worker, workers : int
            Its number, from 0, and how many there are.
        epoch, samples : int
            Where the worker's copy of the loader is.

        Raises
        ------
        InvalidOptionError
            There are more than 128 workers.
        """
        if workers > MOST_WORKERS:
            raise InvalidOptionError(
                f"{workers} workers of a DataLoader: at most {MOST_WORKERS} can share a loader"
            )
        self._numbers[1] = workers
        slot = self._slot(worker, workers)
        if slot[2] == 0 or (slot[0], slot[1]) != (epoch, samples):
            slot[:] = epoch, samples, 0
        slot[2] += 1
        return self._at(slot, int(slot[2]) - 1)

    def move(self, state: Mapping[str, Any]) -> None:
        """Let the next pass of all workers begin at a state; the parent's loader is there already.

        Raises
        ------
        InvalidOptionError
            The state is too long to be shared.
        """
        text = json.dumps(dict(state)).encode()
        if len(text) >= _STATE:
            raise InvalidOptionError(
                f"a state of {len(text)} bytes is too long for the workers of a DataLoader, which share {_STATE - 1}; "
                "give the loader a shorter seed"
            )
        numbers = self._numbers
        numbers[1:] = 0
        self._state.value = text
        numbers[0] += 1
        self._seen = int(numbers[0])

    def moved(self) -> dict[str, Any] | None:
        """Return the state to which the parent moved since this worker was started, or since it asked; None if not."""
        if self._numbers[0] == self._seen:
            return None
        self._seen = int(self._numbers[0])
        found: dict[str, Any] = json.loads(self._state.value)
        return found

    def forget(self) -> None:
        """Note that there are no workers: the next pass is the loader's own."""
        self._numbers[1] = 0

    def last(self) -> tuple[int, int] | None:
        """Return the epoch of the last pass that began, and the samples it began at; None if it was not of workers."""
        workers = int(self._numbers[1])
        if not workers:
            return None
        slot = self._slot(0, workers)
        return None if slot[2] == 0 else self._at(slot, int(slot[2]) - 1)

    def _slot(self, worker: int, workers: int) -> np.ndarray[Any, Any]:
        number = workers * (workers - 1) // 2 + worker
        return self._numbers[_HEAD + _EACH * number :][:_EACH]

    @staticmethod
    def _at(slot: np.ndarray[Any, Any], passes: int) -> tuple[int, int]:
        return int(slot[0]) + passes, 0 if passes else int(slot[1])
