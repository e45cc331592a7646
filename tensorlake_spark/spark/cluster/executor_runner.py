"""Work on a table's files by executors: the counterpart of `tensorlake_spark.delta.files.runner.run_here`."""

from __future__ import annotations

import contextlib
import re
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tensorlake_spark.delta.files.runner import Result, Run, Task, parcels
from tensorlake_spark.errors import StorageError, TensorLakeError
from tensorlake_spark.spark.cluster.tasks import cores_of, numbers, share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RESULT = "result binary"
_WAVE = 8  # tasks for every core, after which commits are made
_LOOKS = 32  # of tasks that only look: the last ones to end keep few cores waiting
_PARCEL_BYTES = (
    64 << 20
)  # that small files make together, so that a task of Spark is worth its start
_OPEN_BYTES = 1 << 20  # what a file counts at least: to open it takes time
_ATTEMPTS = 4  # Spark's own number
_LOCAL = re.compile(r"local(?:\[[^,\]]*(?:,\s*(\d+))?\])?")


def run_in(session: SparkSession) -> Run:
    """Return what has tasks done by a session's executors: some for every core at a time.

    A task that is done twice leaves files that nothing names. An error of ours is raised here as it was there,
    after the results of tasks that ran beside it; Spark tries a task again first if the store was in the way.
    """

    def run(
        work: Callable[[Task], Result], tasks: Sequence[Task], sizes: Sequence[int] | None = None
    ) -> Iterator[tuple[Task, Result]]:
        cores = cores_of(session)
        cuts = [(i, i + 1) for i in range(len(tasks))]
        if sizes is not None:
            cuts = parcels(sizes, _PARCEL_BYTES, _OPEN_BYTES)
        do = _Work.of(work, _attempts(session))
        wave = cores * (_WAVE if sizes is None else _LOOKS)
        for first in range(0, len(cuts), wave):
            some = [list(tasks[a:b]) for a, b in cuts[first : first + wave]]
            frame = numbers(session, len(some)).mapInArrow(share(some, len(some), do), _RESULT)
            errors: list[TensorLakeError] = []
            for parcel, row in zip(some, frame.collect(), strict=True):
                results, error = _unpacked(row[0])
                yield from zip(parcel, results)  # all of them, but where an error ended it
                if error is not None:
                    errors.append(error)
            if errors:
                raise errors[0]

    return run


@dataclass(frozen=True, slots=True)
class _Work:
    """What an executor does with its tasks; a Python that does several unpacks it once, and opens one snapshot."""

    token: str
    work: bytes
    attempts: int

    @classmethod
    def of(cls, work: Callable[[Any], Any], attempts: int) -> _Work:
        from pyspark import cloudpickle

        pickled: bytes = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
        return cls(uuid.uuid4().hex, pickled, attempts)

    def __call__(self, some: Sequence[list[Any]]) -> Iterator[pa.RecordBatch]:
        work = _work_of(self.token, self.work)
        for parcel in some:
            results: list[Any] = []
            error = None
            try:
                for task in parcel:
                    results.append(work(task))
            except TensorLakeError as raised:
                if isinstance(raised, StorageError) and not self._is_last():
                    raise
                error = raised
            yield pa.RecordBatch.from_pydict({"result": [_packed((results, error))]})

    def _is_last(self) -> bool:
        """Whether Spark would not try this task again."""
        from pyspark import TaskContext

        context = TaskContext.get()
        return context is None or context.attemptNumber() + 1 >= self.attempts


@lru_cache(maxsize=1)
def _work_of(token: str, work: bytes) -> Callable[[Any], Any]:
    """Return what was pickled; `token` tells apart two runs whose tables have one place."""
    return _serializer().loads(work)  # type: ignore[no-any-return]


def _packed(result: Any) -> bytes:
    return zlib.compress(
        _serializer().dumps(result), 1
    )  # corners and places of rows become a tenth


def _unpacked(data: bytes) -> Any:
    return _serializer().loads(zlib.decompress(data))


def _serializer() -> Any:
    """Return Spark's own way to send what Python makes."""
    from pyspark.serializers import CPickleSerializer

    return CPickleSerializer()


def _attempts(session: SparkSession) -> int:
    """Return how often Spark tries a task; a local session says so in its master only."""
    with contextlib.suppress(Exception):  # Spark Connect has no such thing
        local = _LOCAL.fullmatch(session.sparkContext.master or "")
        if local:
            return int(local[1] or 1)
        return int(session.sparkContext.getConf().get("spark.task.maxFailures") or _ATTEMPTS)
    return int(session.conf.get("spark.task.maxFailures", None) or _ATTEMPTS)
