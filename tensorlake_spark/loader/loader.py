"""A loader: batches of samples, epoch after epoch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.fork_gate import FORK_GATE
from tensorlake_spark.loader.epoch_samples import Selection
from tensorlake_spark.loader.loader_options import LoaderOptions, whole
from tensorlake_spark.loader.order.counter_random import key_of
from tensorlake_spark.loader.order.epoch_order import EpochOrder
from tensorlake_spark.loader.order.loader_state import LoaderState
from tensorlake_spark.loader.pipeline.batch_making import MOST_TRIES, BatchMaking
from tensorlake_spark.loader.pipeline.batch_plan import plan_of
from tensorlake_spark.loader.pipeline.batch_threads import BatchThreads
from tensorlake_spark.loader.pipeline.loader_stats import LoaderStats
from tensorlake_spark.loader.pipeline.process_workers import (
    ProcessBatches,
    WorkerPool,
    check_may_start,
)
from tensorlake_spark.loader.pipeline.worker_process import EpochSetting, WorkerSetting
from tensorlake_spark.loader.sources.loader_source import SampleSource
from tensorlake_spark.threads import THREADS

if TYPE_CHECKING:
    from typing_extensions import Self

    from tensorlake_spark.loader.frameworks.jax_arrays import JaxBatches

Batches = BatchThreads[Any, Any] | ProcessBatches

_REMOTE_THREADS = 8
_AHEAD = 64  # batches at most, where the memory has room for more


class Loader:
    """Batches of samples in an order that is the same for any number of ranks and threads.

    `Dataset.loader`, `TensorRef.loader`, `View.loader` and `zip` make one. Each iteration over it is the next epoch;
    if it shuffles, every epoch has another order. A batch is a dict by names of columns. Its values are NumPy arrays
    with the samples along their first axis, or lists if samples have different shapes.

    Parameters
    ----------
    source : SampleSource
        Where samples come from. Its version stays the same, whatever is written meanwhile.
    selection : Selection
        Which samples.
    options : LoaderOptions
        What is done with them.
    """

    def __init__(self, source: SampleSource, selection: Selection, options: LoaderOptions) -> None:
        selection.check(source)
        self._source, self._selection, self._options = source, selection, options
        self._start = selection.state(source, options)
        self._state = self._start
        self._resumes = False
        self._worker, self._workers = 0, 1
        self._stats = LoaderStats()
        # The iteration that says where the loader is: the last that began, if it still does.
        self._iteration: object = None
        self._running: list[Batches] = []
        self._pool: WorkerPool | None = None
        self._pid = os.getpid()

    def __repr__(self) -> str:
        rank = f", rank {self._options.rank} of {self._options.world_size}"
        return f"<Loader of {self._source.what}: {len(self)} batches of {self._options.batch_size}{rank}>"

    # ------------------------------------------------------------------ batches

    def __len__(self) -> int:
        """How many batches the next iteration has."""
        return len(self._numbers(self._order(self._next())))

    def __iter__(self) -> Iterator[Any]:
        self._check_process()
        state = self._next()
        self._iteration = here = object()
        self._stats.begin()
        try:
            order = self._order(state)
            numbers = self._numbers(order)
            with self._batches(order, numbers, state) as batches:
                self._running.append(batches)
                try:
                    for number, batch in zip(numbers, batches):
                        start, stop = order.span(number)
                        self._reach(state.after(stop - state.samples), here)
                        samples = -(-(stop - start) // self._options.world_size)
                        self._stats.add(batches=1, samples=samples, bytes=_nbytes(batch))
                        yield batch
                finally:
                    self._running.remove(batches)
        finally:
            self._stats.end()
        self._reach(state.next_epoch(), here)

    def _reach(self, state: LoaderState, iteration: object) -> None:
        """Note where an iteration is, unless another one has begun since, or the loader was set elsewhere."""
        if self._iteration is iteration:
            self._state, self._resumes = state, False

    def _set(self, state: LoaderState, resumes: bool) -> None:
        """Let the next iteration begin somewhere; one that runs no longer says where the loader is."""
        self._state, self._resumes, self._iteration = state, resumes, None

    def _batches(self, order: EpochOrder, numbers: range, state: LoaderState) -> Batches:
        """Return what makes the batches of an epoch."""
        source, options = self._source, self._options
        key = key_of("transform", state.seed, state.epoch)
        skips = options.on_error == "skip"
        memory = int(options.memory * (1 - source.reserved))
        ahead = _AHEAD if options.prefetch is None else options.prefetch
        if options.workers == "processes":
            lying = source.lying if order.shuffle == "block" else None
            rank, world, tries = options.rank, options.world_size, MOST_TRIES if skips else 0
            if self._pool is None or not self._pool.is_open or self._pool.is_taken:
                check_may_start()
                inside = source.for_worker(THREADS), rank, world, options.transform, options.collate
                self._pool = WorkerPool(WorkerSetting(*inside, skips), THREADS)
            return ProcessBatches(
                numbers,
                lambda number: plan_of(order, lying, number, rank, world, tries),
                EpochSetting(key),
                self._pool,
                memory,
                ahead,
                self._stats,
                source,
            )
        making = BatchMaking(
            source,
            order,
            options.rank,
            options.world_size,
            key,
            options.transform,
            options.collate,
            skips,
            self._stats,
        )
        makers = options.workers if isinstance(options.workers, int) else 1
        return BatchThreads(
            numbers,
            making.fetch,
            making.make,
            threads=makers + (_REMOTE_THREADS if source.is_remote else 0),
            makers=makers,
            memory=memory,
            ahead=ahead,
            stats=self._stats,
            stop=making.stop,
        )

    def _next(self) -> LoaderState:
        """Return where the next iteration begins: at a state that was loaded, else at the first sample of an epoch."""
        if self._resumes or not self._state.samples:
            return self._state
        return self._state.next_epoch()

    def _order(self, state: LoaderState) -> EpochOrder:
        return self._selection.order(self._source, self._options, state, self._options.global_batch)

    def _numbers(self, order: EpochOrder) -> range:
        return range(self._worker, order.n_batches, self._workers)

    def share(self, worker: int, workers: int) -> Loader:
        """Return a loader of each `workers`-th batch from number `worker` on, of the same place in the epoch."""
        self._check_process()
        source = copy(self._source)  # with memory of its own
        return _placed(source, self._selection, self._options, self._next(), worker, workers)

    def _check_process(self) -> None:
        """Raise InvalidOptionError in a forked child that might wait for a thread of its parent."""
        if self._source.is_remote and os.getpid() != self._pid:
            raise InvalidOptionError(
                f"{self._source.what} is in an object store, and a loader that reads from one cannot be forked; start "
                'the workers of a DataLoader with multiprocessing_context="spawn"'
            )
        if not FORK_GATE.is_safe:
            raise InvalidOptionError(
                f"{self._source.what} cannot be read in this process: when it was forked, a thread of a loader, or the "
                f"one that loads compiled loops, was at work, and was not done within {FORK_GATE.patience:g} s; start "
                'the workers of a DataLoader with multiprocessing_context="spawn", or fork while no loader is read'
            )

    def __reduce__(self) -> tuple[Any, ...]:
        place = self._next(), self._worker, self._workers
        return _placed, (self._source, self._selection, self._options, *place)

    # ------------------------------------------------------------------ where it is

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, counted from 0."""
        return self._state.epoch

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration be this epoch, counted from 0.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": "int64"})
        >>> ds.extend({"x": np.arange(6)})
        >>> loader = ds.loader(4, shuffle=True)
        >>> loader.set_epoch(3)
        >>> loader.epoch
        3
        """
        self._set(replace(self._state, epoch=whole("epoch", epoch, 0), samples=0), False)

    def state_dict(self) -> dict[str, int | str | None]:
        """Return where the loader is, as a few integers and short texts. A batch counts as soon as it was delivered.

        The state of any one rank is enough for all ranks. You may go on with another number of ranks and workers.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": "int64"})
        >>> ds.extend({"x": np.arange(6)})
        >>> loader = ds.loader(4)
        >>> _ = next(iter(loader))
        >>> again = ds.loader(4)
        >>> again.load_state_dict(loader.state_dict())
        >>> [batch["x"].tolist() for batch in again]
        [[4, 5]]
        """
        return self._state.to_dict()

    def state_after(self, batches: int) -> dict[str, int | str | None]:
        """Return the state of the loader after this many batches of the next iteration.

        Raises
        ------
        InvalidOptionError
            If it is no whole number, or the iteration has fewer batches.
        """
        batches = whole("batches", batches, 0)
        state = self._next()
        order = self._order(state)
        if batches > order.n_batches:
            raise InvalidOptionError(
                f"batches={batches} is not from 0 to {order.n_batches}, which the next iteration has"
            )
        if batches == order.n_batches:
            return state.next_epoch().to_dict()
        stop = order.span(batches - 1)[1] if batches else state.samples
        return state.after(stop - state.samples).to_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next iteration go on after the last batch that was delivered when the state was taken.

        Raises
        ------
        FormatError
            If it is not the state of a loader.
        InvalidOptionError
            If the state is one of other samples, another version or another order; the message says what to change.
        """
        found = LoaderState.from_dict(state)
        found.check(self._start, self._selection.count(self._source))
        self._set(replace(found, batch=self._options.global_batch), True)

    # ------------------------------------------------------------------ for frameworks

    def torch(self, pin_memory: bool = False) -> Any:
        """Return the batches as an ``IterableDataset`` of PyTorch; see `torch_samples`.

        Parameters
        ----------
        pin_memory : bool
            Put tensors into pinned memory, from which a GPU copies fast.

        Raises
        ------
        MissingDependencyError
            If PyTorch is not installed.
        InvalidOptionError
            If `pin_memory` is neither True nor False.
        """
        from tensorlake_spark.loader.frameworks.torch_samples import torch_samples

        return torch_samples(self, pin_memory)

    def jax(self, device: Any = None) -> JaxBatches:
        """Return the batches as arrays of JAX; see `JaxBatches`.

        Parameters
        ----------
        device : jax.Device or jax.sharding.Sharding, optional
            Where arrays go; JAX's default device.

        Raises
        ------
        MissingDependencyError
            If JAX is not installed.
        """
        from tensorlake_spark.loader.frameworks.jax_arrays import JaxBatches

        return JaxBatches(self, device)

    def tensorflow(self) -> Any:
        """Return the batches as a ``tf.data.Dataset``, each pass an epoch; see `tensorflow_dataset`.

        Raises
        ------
        MissingDependencyError
            If TensorFlow is not installed.
        """
        from tensorlake_spark.loader.frameworks.tensorflow_dataset import tensorflow_dataset

        return tensorflow_dataset(self)

    # ------------------------------------------------------------------ seen, ended

    def stats(self) -> dict[str, float]:
        """Return counts since the loader was made: samples and MB a second, times of threads and of waiting, memory.

        Seconds count while you iterate: a loop that has ended keeps its rates.
        """
        return self._stats.report()

    def progress(self) -> str:
        """Return one line: how far the epoch is, how fast it goes, and how long your loop waited.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": "int64"})
        >>> ds.extend({"x": np.arange(6)})
        >>> loader = ds.loader(4)
        >>> _ = next(iter(loader))
        >>> loader.progress().split(",")[0]
        'epoch 0: 4 of 6 samples'
        """
        found, state = self.stats(), self._state
        total = self._selection.count(self._source)
        waited = found["wait_seconds"] / found["seconds"] if found["seconds"] else 0.0
        return (
            f"epoch {state.epoch}: {state.samples} of {total} samples, {found['samples_per_second']:,.0f} samples/s, "
            f"{found['mb_per_second']:,.1f} MB/s, {waited:.0%} of the time waited"
        )

    def close(self) -> None:
        """End all iterations that run, with their threads and processes."""
        # Taken first: a loop that is told so, in another thread, may begin the next iteration at once.
        pool, self._pool = self._pool, None
        for batches in [*self._running]:
            batches.close()
        if pool is not None:
            pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _placed(
    source: SampleSource,
    selection: Selection,
    options: LoaderOptions,
    state: LoaderState,
    worker: int,
    workers: int,
) -> Loader:
    """Return a loader at a place in an epoch."""
    out = Loader(source, selection, options)
    out._set(state, True)
    out._worker, out._workers = worker, workers
    return out


def _nbytes(value: Any) -> int:
    """Return the bytes of the arrays in a batch, whatever a function of the user's made of it."""
    if isinstance(value, Mapping):
        return sum(map(_nbytes, value.values()))
    if isinstance(value, list | tuple):
        is_plain = bool(value) and isinstance(value[0], int | float | str)  # thousands, of polygons
        return 0 if is_plain else sum(map(_nbytes, value))
    try:
        found = value.nbytes
    except Exception:  # it has none, or none that is known, such as some sparse tensors
        return 0
    return found if isinstance(found, int) else 0
