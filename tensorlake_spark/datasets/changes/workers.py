"""Who rewrites or copies many samples: threads of this process, or the executors of a session of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorlake_spark.datasets.apart.inner_tables import inner_storage
from tensorlake_spark.delta.samples.sample_writer import discard_marked
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.threads import THREADS

if TYPE_CHECKING:
    from tensorlake_spark.delta.files.runner import Run

_SHARE_BYTES = (16 << 20, 128 << 20)  # a share has no less, if there is as much, and not much more


def run_of(workers: Any) -> Run:
    """Return who does the tasks: threads of this process, or the executors of a session.

    Raises
    ------
    InvalidOptionError
        If it is neither a number of threads nor a session.
    """
    if type(workers).__module__.startswith("pyspark."):
        from tensorlake_spark.spark.cluster.executor_runner import run_in

        return run_in(workers)
    if workers is not None and (type(workers) is not int or not 1 <= workers <= 1024):
        raise InvalidOptionError(
            f"workers={workers!r:.80} is neither a number of threads from 1 to 1024 nor a session of Spark; leave it "
            "out for as many threads as there are processors"
        )
    return _Threads(workers or min(4, THREADS))


def share_bytes(nbytes: int, workers: Any) -> int:
    """Return how many bytes the share of a task has, so that each worker gets several shares.

    Parameters
    ----------
    nbytes : int
        Of all shares.
    workers : object
        As for `run_of`.

    Examples
    --------
    >>> share_bytes(1 << 30, 8) >> 20, share_bytes(1 << 20, 8) >> 20
    (64, 16)
    """
    least, most = _SHARE_BYTES
    at_once = workers if isinstance(workers, int) else THREADS
    return min(max(nbytes // (2 * at_once), least), most)


@dataclass(frozen=True)
class _Threads:
    """Does tasks in threads of its own: what they do uses those of the process."""

    count: int

    def __call__(
        self,
        work: Callable[[Any], Any],
        tasks: Sequence[Any],
        sizes: Sequence[int] | None = None,
    ) -> Iterator[tuple[Any, Any]]:
        with ThreadPoolExecutor(self.count, thread_name_prefix="tensorlake-copy") as pool:
            waiting = [pool.submit(work, task) for task in tasks]
            try:
                for task, future in zip(tasks, waiting, strict=True):
                    yield task, future.result()
            finally:
                for future in waiting:
                    future.cancel()


def discard_all_marked(storage: Storage, folders: Sequence[str], mark: str) -> None:
    """Delete files with a mark that no commit names, in a table and in tables inside it."""
    for table in (storage, *(inner_storage(storage, folder) for folder in folders)):
        discard_marked(table, mark)


@contextmanager
def marked_files(storage: Storage, folders: Sequence[str], mark: str) -> Iterator[None]:
    """Do what `discard_all_marked` does when an error leaves."""
    try:
        yield
    except BaseException:
        discard_all_marked(storage, folders, mark)
        raise
