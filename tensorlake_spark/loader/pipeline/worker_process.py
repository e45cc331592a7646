"""A process that makes batches: what it is told, what it answers, and that it ends with its parent."""

from __future__ import annotations

import multiprocessing
import os
import pickle  # nosec B403 # between processes of ours
import signal
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from multiprocessing import connection as connections
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from tensorlake_spark.errors import InvalidSampleError, TensorLakeError
from tensorlake_spark.loader.pipeline.batch_making import BatchMaking, FetchedBatch
from tensorlake_spark.loader.pipeline.batch_plan import BatchPlan, PlannedOrder
from tensorlake_spark.loader.pipeline.loader_stats import LoaderStats
from tensorlake_spark.loader.pipeline.shared_batch import send_batch
from tensorlake_spark.loader.sources.loader_source import SampleSource

READY, FETCHED, MADE, FAILED, BROKEN = "ready", "fetched", "made", "failed", "broken"
"""What a worker says: it has begun; a batch was read; was made; failed; nothing can be made."""

EPOCH, KNOW, FETCH, MAKE = "epoch", "know", "fetch", "make"
"""What a worker is told: an epoch begins; what it needs to know for a batch; read the batch; make it."""


class WorkerSetting(NamedTuple):
    """What does not change from batch to batch."""

    source: SampleSource
    rank: int
    world_size: int
    transform: Any
    collate: Any
    skips: bool


class EpochSetting(NamedTuple):
    """What does not change in an epoch: the key of random numbers."""

    key: int


class RemoteTraceback(Exception):
    """Where an error came from in another process."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text

    def __str__(self) -> str:
        return f"\n{self._text}"


def sent_error(error: BaseException) -> bytes:
    """Return an error as bytes, with its traceback as text; one that does not pickle becomes a plainer one."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    kind = type(error) if isinstance(error, TensorLakeError) else InvalidSampleError
    for found in (error, kind(str(error)), InvalidSampleError(f"{type(error).__name__}: {error}")):
        try:
            data = pickle.dumps((found, text))
            pickle.loads(data)  # nosec B301 # of an error of this process
            return data
        except Exception:  # nosec B112 # a plainer one is tried
            continue
    return pickle.dumps((InvalidSampleError(f"{type(error).__name__} in a worker"), text))


def received_error(data: bytes) -> BaseException:
    """Return the error that `sent_error` made bytes of."""
    error, text = pickle.loads(data)  # nosec B301 # from a child of ours
    error.__cause__ = RemoteTraceback(text)
    found: BaseException = error
    return found


def run_worker(connection: Connection) -> None:
    """Make batches until the connection ends; the target of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent has it too, and ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        setting = pickle.loads(connection.recv_bytes())  # nosec B301 # from our parent
    except EOFError:
        return
    except BaseException as error:
        connection.send((BROKEN, -1, sent_error(error)))
        return
    connection.send((READY, -1, None))
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent needs no more
        Worker(connection, setting).run()
    os._exit(0)  # not waiting for a thread that reads


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connections.wait([parent.sentinel])
        os._exit(1)


class Worker:
    """Reads one batch while it makes another.

    Parameters
    ----------
    connection : multiprocessing.connection.Connection
        To the parent.
    setting : WorkerSetting
        What is made.
    """

    def __init__(self, connection: Connection, setting: WorkerSetting) -> None:
        self._connection, self._setting = connection, setting
        self._stats = LoaderStats()
        self._fetched: dict[int, FetchedBatch] = {}
        self._reading = ThreadPoolExecutor(1)
        self._lock = threading.Lock()
        self._order = PlannedOrder()
        self._making: BatchMaking | None = None

    def run(self) -> None:
        """Do what the parent says until it ends."""
        while True:
            what, given = self._connection.recv()
            if what == EPOCH:
                self._begin(given)
            elif what == KNOW:
                self._setting.source.learn(given)
            elif what == FETCH:
                self._order.add(given)
                self._reading.submit(self._fetch, given)
            else:
                self._make(given)

    def _begin(self, epoch: EpochSetting) -> None:
        source, rank, world_size, transform, collate, skips = self._setting
        self._order = PlannedOrder()
        self._making = BatchMaking(
            source,
            self._order,  # type: ignore[arg-type]  # has what making a batch asks of an order
            rank,
            world_size,
            epoch.key,
            transform,
            collate,
            skips,
            self._stats,
        )

    def _fetch(self, plan: BatchPlan) -> None:
        number = plan.number
        began = time.perf_counter()
        try:
            assert self._making is not None  # nosec B101 # for mypy: an epoch has begun
            self._fetched[number] = found = self._making.fetch(number)
            self._stats.add(fetch_seconds=time.perf_counter() - began)
            answer: tuple[str, int, Any] = FETCHED, number, found.nbytes
        except BaseException as error:
            answer = FAILED, number, sent_error(error)
        with self._lock:
            self._connection.send(answer)

    def _make(self, number: int) -> None:
        try:
            assert self._making is not None  # nosec B101 # for mypy: an epoch has begun
            batch = self._making.make(number, self._fetched.pop(number))
            self._order.drop(number)
        except BaseException as error:
            with self._lock:
                self._connection.send((FAILED, number, sent_error(error)))
            return
        counts = self._stats.taken()
        with self._lock:
            self._connection.send((MADE, number, asdict(counts)))
            try:
                send_batch(self._connection, None, batch)
            except OSError:  # the parent is gone
                raise
            except Exception as error:
                # An object of the user's may raise anything when it is pickled.
                said = f"; the batch is of type {type(batch).__name__}"
                send_batch(self._connection, sent_error(unsent_error(error, said)), None)


def unsent_error(error: Exception, said: str = "") -> InvalidSampleError:
    """Return the error for a batch that does not go from one process to another.

    Parameters
    ----------
    error : Exception
        What pickling or unpickling it raised.
    said : str, optional
        What more is known of the batch.

    Examples
    --------
    >>> "(TypeError: cannot pickle it)" in str(unsent_error(TypeError("cannot pickle it")))
    True
    """
    why = " ".join(f"{type(error).__name__}: {error}".split())
    return InvalidSampleError(
        f'what a transform or collate made does not go from one process to another ({why}); with workers="processes" '
        f"give arrays, numbers or texts{said}"
    )
