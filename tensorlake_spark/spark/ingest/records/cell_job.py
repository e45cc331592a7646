"""Records of files to cells of a tensor: what ``jobs/ingest.py`` does with logs and matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.layouts.coding.codec_choice import BY_TRYING
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.spark.cluster.task_errors import plain_errors
from tensorlake_spark.spark.ingest.numbered_batches import check_free, last_change, state
from tensorlake_spark.spark.ingest.outcome import DONE, PLANNED, Outcome, Plan, Skipped
from tensorlake_spark.spark.ingest.records.cell_preparation import CellJob, Prepared, prepared
from tensorlake_spark.spark.source.schemas import SLABS
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write.cells import Cells
from tensorlake_spark.spark.source.write.dense_cells import ChunkBuilder
from tensorlake_spark.spark.source.write.direct_write import save
from tensorlake_spark.tensor.label_input import check_labels
from tensorlake_spark.writing.options import new_spec
from tensorlake_spark.writing.source import ArraySource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_cells(
    session: SparkSession,
    job: CellJob,
    paths: Sequence[str],
    gone: Sequence[Skipped] | None = None,
) -> Outcome:
    """Write the cells that files of one family hold, or plan it.

    Parameters
    ----------
    session : SparkSession
        Whose executors read the files.
    job : CellJob
        What is to be done.
    paths : sequence of str
        Of files.
    gone : sequence of Skipped, optional
        Sources that were left out before; if given, files with a bad record are left out too.

    Raises
    ------
    InvalidOptionError, InvalidTensorError
        If a record or an option will not do; nothing is written then.
    """
    if gone is None:
        return _write(session, job, paths)
    return _of_good(lambda some: _write(session, job, some), paths, gone)


def _write(session: SparkSession, job: CellJob, paths: Sequence[str]) -> Outcome:
    """Write the cells of files that are all good."""
    old, number = state(job.storage, job.tensor_id)
    if job.mode == "error" and old is not None:
        check_free(job.storage, [job.tensor_id])
    kept = old if job.mode == "append" else None
    if not job.dry_run:
        job = replace(job, options={**job.options, **last_change(number)})
    with prepared(session, job, paths, kept) as ready:
        if job.dry_run:
            plan = _plan(session, job, paths, ready, kept)
            return Outcome(PLANNED, plan=plan, files=plan.files)
        _save(job, ready)
    snapshot = Snapshot.open(job.storage)
    metas = (catalog.get(snapshot, job.tensor_id),)
    return Outcome(DONE, metas, version=snapshot.version, files=tuple(paths))


def _save(job: CellJob, ready: Prepared) -> None:
    """Write prepared cells, in one commit."""
    stored = {f"storage.{name}": value for name, value in job.storage.options.items()}
    settings = {**ready.options, **stored, "id": job.tensor_id, "path": job.storage.uri}
    mode = "overwrite" if job.mode == "overwrite" else "append"
    if not ready.chunk:
        ready.cells.write.format("tensor").mode(mode).options(**settings).save()
        return
    names = [name for name in ready.cells.columns if name != "value"]
    chunks = ChunkBuilder(job.tensor_id, names, ready.shape, ready.chunk, ready.dtype)
    save(ready.cells, chunks.slabs, SLABS, settings, mode == "overwrite")


def _plan(
    session: SparkSession, job: CellJob, paths: Sequence[str], ready: Prepared, old: Meta | None
) -> Plan:
    """Return what would be written: all records were looked at, as for writing."""
    settings = {**ready.options, "id": job.tensor_id, "path": job.storage.uri}
    given = SparkWriteOptions.parse(settings)
    if ready.chunk:
        codec = "zstd" if given.write.codec in BY_TRYING else given.write.codec
        nothing = ArraySource(None, ready.shape, ready.dtype)
        choices = replace(given.write, codec=codec, labels={})
        spec = new_spec(job.tensor_id, nothing, choices)
    else:
        spec = replace(Cells(given, ready.cells.schema, old).spec, shape=ready.shape, labels={})
    if old is None:
        check_labels(given.write.labels, spec.axes, ready.shape)
    tasks = int(session.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    return Plan(tuple(paths), (spec,), (ready.shape,), tasks, ready.found.records)


def _of_good(
    write: Callable[[Sequence[str]], Outcome], paths: Sequence[str], gone: Sequence[Skipped]
) -> Outcome:
    """Return what comes of the files of which all records are good; nothing of the others is written."""
    skipped = list(gone)
    while True:
        try:
            with plain_errors():
                return replace(write(paths), skipped=tuple(skipped))
        except InvalidTensorError as error:
            bad = _named(str(error), paths)
            if bad is None:
                raise
            skipped.append(Skipped(bad, str(error)))
            paths = [path for path in paths if path != bad]
            if not paths:
                raise InvalidTensorError(
                    f"none of {len(skipped)} sources is good: {skipped[0].reason}"
                ) from error


def _named(text: str, paths: Sequence[str]) -> str | None:
    """Return the source with whose name an error begins, None if there is none."""
    found = [path for path in paths if text.startswith(tuple(f"{path}{c}" for c in " ,:/"))]
    return max(found, key=len, default=None)
