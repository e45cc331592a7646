"""Which samples are purged: by their numbers, or by a condition on what they last were."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.samples.appending import next_sid
from tensorlake_spark.datasets.samples.sample_selection import whole_numbers
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.actions import commit_name, read_actions
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    SampleNotFoundError,
    TensorLakeError,
)

Array = np.ndarray[Any, Any]

logger = logging.getLogger("tensorlake_spark")


def chosen(newest: Snapshot, sids: Any, where: str | None) -> Array:
    """Return the numbers of the samples that are meant, sorted, each once.

    Parameters
    ----------
    newest : Snapshot
        The newest version.
    sids : sequence of int, optional
        Their numbers, also of samples that were deleted.
    where : str, optional
        SQL on scalar columns and fields of media. A sample that was deleted counts as what it was in the last
        version that had it, so that a purge can be repeated.

    Raises
    ------
    InvalidOptionError
        If both or none are given, or one is not valid.
    SampleNotFoundError
        If a number was never given.
    """
    if sids is not None and where is not None:
        raise InvalidOptionError("sids and where exclude each other; give one of them")
    if sids is None and where is None:
        raise InvalidOptionError("give sids, or where, to say which samples are purged")
    if where is not None:
        return _where(newest, where)
    is_one = getattr(sids, "ndim", 1) == 0 or not hasattr(sids, "__len__")
    given = [sids] if is_one else sids
    found = whole_numbers(given)
    if found.ndim != 1 or found.dtype != np.int64:
        raise InvalidOptionError(
            f"sids={sids!r:.80} are not sids; give whole numbers, as ds.sids has them"
        )
    wrong = (found < 0) | (found >= next_sid(newest))
    if wrong.any():
        raise SampleNotFoundError(
            f"the dataset at {newest.storage.uri} never had a sample with sid {[*given][int(np.argmax(wrong))]}; the "
            f"next one gets {next_sid(newest)}"
        )
    return np.unique(found)


def _where(newest: Snapshot, where: str) -> Array:
    seen, found = _judged(newest, where)
    for version in _before_removals(newest.storage, newest.version):
        try:
            old = Snapshot.open(newest.storage, version, kind=SAMPLES)
            sids, hits = _judged(old, where)
        except CorruptDataError:  # a purge or a vacuum has taken its files
            logger.info("samples of version %d of %s cannot be judged", version, newest.storage.uri)
            continue
        except InvalidOptionError:  # it had no such column, or the log has it no more
            continue
        found = np.union1d(found, np.setdiff1d(hits, seen))
        seen = np.union1d(seen, sids)
    return found


def _judged(snapshot: Snapshot, where: str) -> tuple[Array, Array]:
    """Return the samples of a version, and those of them that a condition names."""
    from tensorlake_spark.datasets.samples.where import parse_where  # sqlglot takes a while

    schema = SampleSchema.from_arrow(snapshot.schema)
    condition = parse_where(where, schema, snapshot.schema)
    stored = StoredSamples(snapshot)
    try:
        parts = StoredParts(stored, schema)
        positions = condition.positions(parts)
    except FileNotFoundError as error:
        if isinstance(error, TensorLakeError):
            raise
        raise CorruptDataError(
            f"a data file of version {snapshot.version} is gone: {error}"
        ) from error
    return stored.sids, stored.sids[positions]


def _before_removals(storage: Storage, newest: int) -> Iterator[int]:
    """Yield the versions after which samples may have left, from the newest on, as far as the log goes."""
    for version in range(newest, 0, -1):
        try:
            with reaching(storage):
                said = [*read_actions(storage, commit_name(version), ("remove.path",))]
        except FileNotFoundError:
            return
        if any(action.get("dataChange", True) for _, action in said):
            yield version - 1
