"""Files to tensors on executors: what ``jobs/ingest.py`` calls.

``sources`` says which files there are, and of which family; ``write_arrays`` writes images and arrays as
slabs or tensors, ``write_cells`` logs and matrices as the cells of a tensor.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.spark.cluster.executor_runner import run_in
from tensorlake_spark.spark.cluster.s3a import completed, settings_of_session
from tensorlake_spark.spark.cluster.task_errors import plain_errors
from tensorlake_spark.spark.ingest.arrays.array_job import ArrayJob, write_arrays
from tensorlake_spark.spark.ingest.ingest_options import IngestOptions
from tensorlake_spark.spark.ingest.numbered_batches import repeated
from tensorlake_spark.spark.ingest.outcome import DONE, Outcome, Skipped, bytes_of
from tensorlake_spark.spark.ingest.records.cell_job import write_cells
from tensorlake_spark.spark.ingest.records.cell_preparation import CellJob
from tensorlake_spark.spark.ingest.resume import forget
from tensorlake_spark.spark.ingest.source_files import using
from tensorlake_spark.spark.ingest.sources import expand, family_of
from tensorlake_spark.tensor.spec import check_id
from tensorlake_spark.upkeep.optimize import optimize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_USUAL = IngestOptions()


def run(
    session: SparkSession,
    table: str,
    tensor_id: str,
    sources: Sequence[str],
    options: IngestOptions = _USUAL,
) -> Outcome:
    """Write files as one tensor, or as one tensor each, or say what would be written.

    Parameters
    ----------
    session : SparkSession
        Whose executors read the files.
    table : str
        Path or URL of the lake.
    tensor_id : str
        Name of the tensor; with ``how="each"`` the group of the tensors.
    sources : sequence of str
        Paths, globs, folders and lists (``@list.txt``) of files of one family, which executors can read:
        images, TIFF, ``.npy``, ``.npz``, Zarr, HDF5 and NetCDF-4 (``file.h5::/path``); or cells, which lie
        where their indices say: ``.tns``, ``.mtx`` and ``.npz`` of sparse matrices, CSV, Parquet.
    options : IngestOptions
        How they become tensors.

    Raises
    ------
    InvalidOptionError, InvalidTensorError
        If a source or an option will not do; names the file, and of text the line. Nothing is written then.
        With ``skip_bad`` if no source is good.
    TensorExistsError
        If a tensor is there and the mode is ``"error"``.
    ConcurrentWriteError
        If another writer changed the tensor meanwhile.
    """
    check_id(tensor_id)
    settings = settings_of_session(session)
    storage = Storage(table, completed(options.storage_options, settings, table))
    earlier = _repeated(storage, tensor_id, options)
    if earlier is not None:
        return earlier
    with using(options.storage_options, settings), plain_errors():
        outcome = _written(session, storage, tensor_id, sources, options)
        outcome = replace(outcome, source_bytes=bytes_of(outcome.files))
    if options.compact_after is None or outcome.status != DONE:
        return outcome
    return _compacted(session, storage, outcome, options.compact_after)


def _repeated(storage: Storage, tensor_id: str, options: IngestOptions) -> Outcome | None:
    """Return what is there if the batch is committed already, and forget its notes; else None."""
    batch = options.batch
    earlier = repeated(storage, tensor_id, batch, options.how == "each")
    if earlier is not None and batch is not None:
        forget(storage, tensor_id, batch)
    return earlier


def _written(
    session: SparkSession,
    storage: Storage,
    tensor_id: str,
    sources: Sequence[str],
    options: IngestOptions,
) -> Outcome:
    """Find the files, and write them as what their family is."""
    gone: list[Skipped] | None = [] if options.skip_bad else None
    paths = expand(sources, gone)
    family = family_of(paths) if paths else "arrays"
    options.check_family(family, paths or sources)
    if family == "arrays":
        array_job = ArrayJob(
            storage=storage,
            tensor_id=tensor_id,
            how=options.how or "stack",
            axis=options.axis,
            mode=options.mode,
            channels_first=options.channels_first,
            options=options.options,
            dry_run=options.dry_run,
            resume=options.resume,
            skip_bad=options.skip_bad,
        )
        return write_arrays(session, array_job, paths, gone or ())
    cell_job = CellJob(
        storage=storage,
        tensor_id=tensor_id,
        family=family,
        choices=options.cells,
        mode=options.mode,
        options=options.options,
        dry_run=options.dry_run,
    )
    return write_cells(session, cell_job, paths, gone)


def _compacted(session: SparkSession, storage: Storage, outcome: Outcome, least: int) -> Outcome:
    """Have executors bring small files together; what was written is committed, whatever comes of that."""
    ids = [meta.spec.id for meta in outcome.metas]
    try:
        with plain_errors():
            done = optimize(storage, ids, min_files=least, run=run_in(session))
    except Exception as error:  # a failed run would be repeated
        return replace(outcome, compaction_error=error)
    return replace(outcome, compacted=done, version=done.version)


def job_session(make_local: Callable[[], SparkSession]) -> SparkSession:
    """Return the session of spark-submit, or a local one where a job is run with plain Python."""
    from pyspark.sql import SparkSession

    from tensorlake_spark.spark.source.data_source import register

    with plain_errors():
        if "PYSPARK_GATEWAY_PORT" not in os.environ:
            return make_local()
        session: SparkSession = SparkSession.builder.getOrCreate()
        register(session)
        return session
