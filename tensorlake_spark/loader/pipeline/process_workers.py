"""Processes that make batches, for transforms in Python that let only one thread work at a time."""

from __future__ import annotations

import multiprocessing
import os
import pickle  # nosec B403 # between processes of ours
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import connection as connections
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from tensorlake_spark.errors import InvalidOptionError, LoaderClosedError, LoaderWorkerError
from tensorlake_spark.fork_gate import FORK_GATE, check_process
from tensorlake_spark.loader.pipeline.batch_plan import BatchPlan
from tensorlake_spark.loader.pipeline.loader_stats import LoaderStats
from tensorlake_spark.loader.pipeline.shared_batch import receive_batch
from tensorlake_spark.loader.pipeline.worker_process import (
    BROKEN,
    EPOCH,
    FETCH,
    FETCHED,
    KNOW,
    MADE,
    MAKE,
    READY,
    EpochSetting,
    WorkerSetting,
    received_error,
    run_worker,
    sent_error,
    unsent_error,
)
from tensorlake_spark.loader.sources.loader_source import SampleSource, Told

_EACH = 2  # batches that a process has: one is made, one is read
_COPIES = 2  # of a batch while it is made: there, and in shared memory
_GUARD = (
    'a script that uses workers="processes" keeps its loop under `if __name__ == "__main__":`, for each process '
    "imports the script"
)


def check_may_start() -> None:
    """Raise InvalidOptionError if this process may not start others; before anything is made ready for these."""
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):
        raise InvalidOptionError(_GUARD)
    if process.daemon:
        raise InvalidOptionError(
            'workers="processes" in a process that may start no others, as a worker of a DataLoader is; leave the '
            "processes to the DataLoader, or the DataLoader out"
        )


class WorkerPool:
    """Processes that wait for batches to make; they stay from epoch to epoch.

    Parameters
    ----------
    setting : WorkerSetting
        What they make.
    count : int
        How many there are.

    Attributes
    ----------
    is_taken : bool
        Whether they make the batches of an iteration now: those of another one would be taken for its own.

    Raises
    ------
    InvalidOptionError
        If the transform or the collate function does not pickle.
    """

    def __init__(self, setting: WorkerSetting, count: int) -> None:
        data = _pickled(setting)
        context = multiprocessing.get_context("spawn")
        self.processes: list[BaseProcess] = []
        self.connections: list[Connection] = []
        self.told = [Told() for _ in range(count)]
        self.is_taken = False
        self._pid = os.getpid()
        self._end = weakref.finalize(self, _end, self.processes, self.connections, os.getpid())
        for number in range(count):
            here, there = context.Pipe()
            name = f"tensorlake-loader-{number}"
            one = context.Process(target=run_worker, args=(there,), name=name, daemon=True)
            one.start()
            there.close()
            self.processes.append(one)
            self.connections.append(here)
        for connection in self.connections:
            with suppress(OSError):  # it has ended, which is seen when it does not answer
                connection.send_bytes(data)

    @property
    def is_open(self) -> bool:
        """Whether the processes are there, and are this one's."""
        return self._end.alive and os.getpid() == self._pid

    def close(self) -> None:
        """End the processes, now."""
        self._end()


def _end(processes: list[BaseProcess], pipes: list[Connection], pid: int) -> None:
    if pid != os.getpid():
        return  # a forked child, whose they are not
    for process in processes:
        process.kill()  # they hold nothing that has to be given back
    for connection in pipes:
        connection.close()
    for process in processes:
        process.join(1)


def _received(connection: Connection) -> tuple[Any, Any, int]:
    """Return what `receive_batch` does. What cannot be unpickled becomes an error in the place of the batch."""
    try:
        return receive_batch(connection)
    except (EOFError, OSError):  # the process is gone
        raise
    except Exception as error:  # an object of the user's may raise anything
        return sent_error(unsent_error(error)), None, 0


def _pickled(setting: WorkerSetting) -> bytes:
    for name, value in (("transform", setting.transform), ("collate", setting.collate)):
        try:
            pickle.dumps(value)
        except Exception as error:
            raise InvalidOptionError(
                f'{name}={value!r:.80} cannot be sent to another process ({error}); with workers="processes" give a '
                "function that is defined at the top of a module"
            ) from error
    try:
        return pickle.dumps(setting)
    except Exception as error:
        raise InvalidOptionError(
            f"{setting.source.what} cannot be sent to another process ({error}); define functions of a query at the "
            "top of a module, materialize a view, or leave workers out"
        ) from error


class ProcessBatches:
    """The batches of an epoch, made by the processes of a pool; taken in order, as from `BatchThreads`.

    Parameters
    ----------
    numbers : range
        The batches.
    plan : callable
        ``plan(number)`` says which samples a batch has.
    epoch : EpochSetting
        Of the epoch.
    pool : WorkerPool
        Makes them. It is closed when an iteration ends before its last batch, or fails.
    memory : int
        Bytes of the batches that are being made, wait, or were handed out last.
    ahead : int
        Batches that are begun before the one which is wanted was taken.
    stats : LoaderStats
        Counts, of the processes too.
    source : SampleSource
        The samples, as this process reads them: it tells the others what it knows.

    Raises
    ------
    LoaderWorkerError
        When a batch is taken after a process has died.
    InvalidOptionError
        When a batch is taken that alone needs more memory.
    LoaderClosedError
        When a batch is taken after `close`, or in a process that was forked since.
    """

    def __init__(
        self,
        numbers: range,
        plan: Callable[[int], BatchPlan],
        epoch: EpochSetting,
        pool: WorkerPool,
        memory: int,
        ahead: int,
        stats: LoaderStats,
        source: SampleSource,
    ) -> None:
        self._source = source
        self._numbers, self._plan, self._pool = numbers, plan, pool
        self._memory, self._ahead, self._stats = memory, ahead, stats
        self._change = threading.Condition()
        self._begun = self._to_admit = self._taken = self._used = self._held = 0
        self._at: dict[int, int] = {}  # which process has a batch, by its place
        self._sizes: dict[int, int] = {}  # of those that were read and wait to be made
        self._admitted: dict[int, int] = {}
        self._results: dict[int, tuple[Any, bool]] = {}
        self._failure: BaseException | None = None
        self._stopped = False
        self._pid = os.getpid()
        self._awake, self._wake = os.pipe()
        pool.is_taken = True
        for connection in pool.connections:
            with suppress(OSError):  # it has ended, which is seen when it does not answer
                connection.send((EPOCH, epoch))
        self._thread = threading.Thread(target=self._run, name="tensorlake-loader", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ who takes

    def __iter__(self) -> Iterator[Any]:
        for place in range(len(self._numbers)):
            yield self._take(place)

    def _take(self, place: int) -> Any:
        check_process(self._pid)
        began = time.perf_counter()
        with self._change:
            self._used -= self._held
            self._held = 0
            self._taken = place
            self._poke()
            while place not in self._results and self._failure is None:
                if self._stopped:
                    raise LoaderClosedError("the loader was closed; iterate over it anew")
                self._change.wait()
            failure = self._failure
            if place in self._results:
                result, failed = self._results.pop(place)
                failure = result if failed else None
            self._held = self._admitted.pop(place, 0)
            self._taken = place + 1
            self._poke()
        self._stats.add(wait_seconds=time.perf_counter() - began)
        if failure is not None:
            self.close()
            raise failure
        return result

    def _poke(self) -> None:
        if not self._stopped:
            os.write(self._wake, b"!")

    def close(self) -> None:
        """End the iteration, and the processes too if they have batches that nobody will take."""
        if os.getpid() != self._pid:
            return  # a forked child, whose they are not
        with self._change:
            if self._stopped:
                return
            self._stopped = True
            os.write(self._wake, b"!")  # last, or the thread might see it and then wait for ever
            self._change.notify_all()
            is_done = self._taken >= len(self._numbers) and not self._at and self._failure is None
        if not is_done:
            self._pool.close()
        self._pool.is_taken = False
        self._thread.join(1)
        self._results.clear()
        if not self._thread.is_alive():
            os.close(self._awake)
            os.close(self._wake)

    def __enter__(self) -> ProcessBatches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        pool = self._pool
        try:
            while not self._stopped:
                with FORK_GATE:
                    self._hand_out()
                ready = connections.wait([*pool.connections, self._awake])
                with FORK_GATE:
                    for one in ready:
                        if one == self._awake:
                            os.read(self._awake, 4096)
                        elif not self._stopped:
                            self._answer(pool.connections.index(one))  # type: ignore[arg-type]
        except BaseException as error:  # handed to who takes the next batch
            with self._change:
                if not self._stopped:  # otherwise the pool was closed under it
                    self._failure = error
                    self._change.notify_all()

    def _hand_out(self) -> None:
        """Give batches to processes that have few, and memory to those that were read, in the order of batches."""
        while True:
            with self._change:
                busy = [[*self._at.values()].count(k) for k in range(len(self._pool.connections))]
                worker = busy.index(min(busy))
                most = min(len(self._numbers), self._taken + self._ahead)
                if busy[worker] >= _EACH or self._begun >= most:
                    break
                place = self._begun
                self._begun += 1
                self._at[place] = worker
            plan = self._plan(self._numbers[place])
            facts = self._source.facts(plan.positions, self._pool.told[worker])
            if facts:
                self._tell(worker, KNOW, facts)
            self._tell(worker, FETCH, plan)
        while (nbytes := self._sizes.get(self._to_admit)) is not None:
            place = self._to_admit
            with self._change:
                if nbytes <= self._memory < self._used + _COPIES * nbytes and self._used:
                    return
                del self._sizes[place]
                self._to_admit += 1
                if nbytes > self._memory:
                    del self._at[place]
                    self._results[place] = self._too_large(place, nbytes), True
                    self._change.notify_all()
                    continue
                self._used += _COPIES * nbytes
                self._admitted[place] = _COPIES * nbytes
                self._stats.in_use(self._used)
            self._tell(self._at[place], MAKE, self._numbers[place])

    def _too_large(self, place: int, nbytes: int) -> InvalidOptionError:
        return InvalidOptionError(
            f"memory= leaves {self._memory} bytes for batches, too few for one batch: batch {self._numbers[place]} "
            f"needs {nbytes}; give the loader more memory, or a smaller batch_size"
        )

    def _tell(self, worker: int, what: str, given: Any) -> None:
        try:
            self._pool.connections[worker].send((what, given))
        except OSError:
            raise self._dead(worker) from None

    def _answer(self, worker: int) -> None:
        connection = self._pool.connections[worker]
        try:
            what, number, said = connection.recv()
            result: Any = None
            if what == MADE:
                failure, result, nbytes = _received(connection)
        except (EOFError, OSError):
            raise self._dead(worker) from None
        if what == READY:
            return
        if what == BROKEN:
            error = received_error(said)
            raise InvalidOptionError(
                f"a worker process could not load what it is to do: {type(error).__name__}: {error}; functions for "
                'workers="processes" are defined at the top of a module that the process can import'
            ) from error
        place = self._numbers.index(number)
        with self._change:
            if what == FETCHED:
                self._sizes[place] = said
                return
            del self._at[place]
            if what == MADE:
                self._used += nbytes - self._admitted[place]
                self._admitted[place] = nbytes
                is_wrong = failure is not None
                self._results[place] = (received_error(failure) if is_wrong else result), is_wrong
            else:
                self._results[place] = received_error(said), True
            self._change.notify_all()
        if what == MADE:
            self._stats.add(**said)

    def _dead(self, worker: int) -> LoaderWorkerError:
        process = self._pool.processes[worker]
        process.join(1)
        code = process.exitcode
        has = sorted(self._numbers[place] for place, at in self._at.items() if at == worker)
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended ({code})"
        why = (
            "the system may have run out of memory: fewer workers, or a smaller batch, need less"
            if code == -9
            else f"what it printed says more; {_GUARD}"
        )
        return LoaderWorkerError(
            f"worker process {process.pid} {how} while it had batches {has}; {why}"
        )
