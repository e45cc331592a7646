"""Files to tensors on executors: what ``jobs/ingest.py`` calls.

``sources`` says which files there are, and of which family; ``write_arrays`` writes images and arrays as
slabs or tensors, ``ingest_cells`` logs and matrices as the cells of a sparse tensor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tensorlake_spark import errors
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidTensorError,
    MissingDependencyError,
    TensorLakeError,
)
from tensorlake_spark.spark.cluster.runner import run_in
from tensorlake_spark.spark.cluster.s3a import completed, settings_of_session
from tensorlake_spark.spark.ingest.arrays.array_job import ArrayJob, write_arrays
from tensorlake_spark.spark.ingest.batches import check_free, last_change, repeated, state
from tensorlake_spark.spark.ingest.outcome import DONE, PLANNED, Outcome, Skipped, bytes_of
from tensorlake_spark.spark.ingest.records.cell_job import ingest_cells
from tensorlake_spark.spark.ingest.records.cell_options import CellOptions
from tensorlake_spark.spark.ingest.records.cell_plan import plan_cells
from tensorlake_spark.spark.ingest.resume import forget
from tensorlake_spark.spark.ingest.source_files import using
from tensorlake_spark.spark.ingest.sources import expand, family_of, has_channels
from tensorlake_spark.spark.source.options import transaction_of
from tensorlake_spark.tensor.spec import check_id
from tensorlake_spark.upkeep.optimize import optimize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = re.compile(r"tensorlake_spark\.errors\.(\w+): (.*)")
_NO_S3A = re.compile(r'S3AFileSystem not found|No FileSystem for scheme "s3a"')
_DATA = re.compile(r"\[([A-Z_.]+)\] (.*?) SQLSTATE: 22", re.DOTALL)


def run(
    session: SparkSession,
    table: str,
    tensor_id: str,
    sources: Sequence[str],
    *,
    how: str | None = None,
    axis: int = 0,
    mode: str = "error",
    channels_first: bool = False,
    cells: CellOptions | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    dry_run: bool = False,
    resume: bool = False,
    skip_bad: bool = False,
    compact_after: int | None = None,
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
        images, TIFF, ``.npy``, ``.npz``, Zarr, HDF5 and NetCDF-4 (``file.h5::/path``); or cells, which lie where their indices say: ``.tns``, ``.mtx`` and
        ``.npz`` of sparse matrices, CSV, Parquet.
    how : {"stack", "concat", "each"}, optional
        Arrays are stacked along a new first axis (what happens if nothing is said), concatenated along
        `axis`, or become one tensor a file.
    axis : int
        For ``"concat"``; an append continues there too.
    mode : {"error", "overwrite", "append"}
        What to do if a tensor is there.
    channels_first : bool
        Give colour images, also those of TIFF files, the axes (channel, y, x).
    cells : CellOptions, optional
        For tables: what their columns are.
    options : mapping, optional
        Further options of ``format("tensor")``. With ``txnAppId`` and ``txnVersion`` a batch that is in the
        table already changes nothing, and its files need not be there any more.
    storage_options : mapping, optional
        As in `tensorlake_spark.open`, of the lake and of sources on S3; what they leave open is taken from the
        session's settings (``fs.s3a.*``), and then from the environment.
    dry_run : bool
        Look at the files and make the plan, and write nothing, not even a table.
    resume : bool
        Of arrays: if the run fails, keep what its tasks completed, and use what an earlier run of the same
        job kept. All of it becomes visible in one commit. Cells are written all or none, so the run begins
        anew unless its batch is there; an append of them needs the number of a batch for that.
    skip_bad : bool
        Leave out files that cannot be read, or do not go with the first good one. Those of arrays are read
        before the write; of cells one record that will not do is enough, and each such file costs another
        look at all of them.
    compact_after : int, optional
        After the commit, bring small files of these tensors together if there are so many of them or more,
        as `TensorLake.optimize` does; at least 2.

    Raises
    ------
    InvalidOptionError, InvalidTensorError
        If a source or an option will not do; names the file, and of text the line. Nothing is written then.
        With `skip_bad` if no source is good.
    TensorExistsError
        If a tensor is there and the mode is ``"error"``.
    ConcurrentWriteError
        If another writer changed the tensor meanwhile.
    """
    if how not in (None, "stack", "concat", "each"):
        raise InvalidOptionError(f"how={how!r} is none of 'stack', 'concat', 'each'")
    if mode not in ("error", "overwrite", "append"):
        raise InvalidOptionError(f"mode={mode!r} is none of 'error', 'overwrite', 'append'")
    if compact_after is not None and compact_after < 2:
        raise InvalidOptionError(
            f"--compact-after {compact_after}: 2 files are the least to bring together"
        )
    check_id(tensor_id)
    s3a = settings_of_session(session)
    storage = Storage(table, completed(storage_options or {}, s3a, table))
    batch = transaction_of(options or {})
    earlier = repeated(storage, tensor_id, batch, how == "each")
    if earlier is not None:
        if batch is not None:
            forget(storage, tensor_id, batch)
        return earlier
    gone: list[Skipped] | None = [] if skip_bad else None
    with using(storage_options or {}, s3a), plain_errors():
        paths = expand(sources, gone)
        family = family_of(paths) if paths else "arrays"
        if cells is not None and cells.source_version is not None and family != "delta":
            raise InvalidOptionError(
                f"--source-version is for Delta tables, which have versions; {(paths or sources)[0]} is none"
            )
        _check_fitting(
            family, paths or sources, cells or CellOptions(), options or {}, channels_first
        )
        if family == "arrays":
            if cells not in (None, CellOptions()):
                raise InvalidOptionError(
                    f"--axis, --value, --column and --where are for tables; {(paths or sources)[0]} is none"
                )
            job = ArrayJob(
                storage,
                tensor_id,
                how or "stack",
                axis,
                mode,
                channels_first,
                options,
                dry_run,
                resume,
                skip_bad,
            )
            outcome = write_arrays(session, job, paths, gone or ())
        else:
            if how is not None or channels_first:
                raise InvalidOptionError(
                    f"--stack, --concat, --each and --channels-first are for arrays; the cells of {paths[0]} "
                    "lie where their indices say, and those of all files make up one tensor"
                )
            if resume and mode == "append" and batch is None:
                raise InvalidOptionError(
                    f"--resume of what is appended goes with --txn-app-id and --txn-version: the cells of {paths[0]} "
                    "are written all or none, and by the number of the batch the job knows which"
                )

            def write(some: Sequence[str]) -> Outcome:
                return _cells(
                    session,
                    storage,
                    tensor_id,
                    some,
                    family,
                    mode,
                    cells or CellOptions(),
                    options,
                    dry_run,
                )

            outcome = write(paths) if gone is None else _of_good(write, paths, gone)
        outcome = replace(outcome, source_bytes=bytes_of(outcome.files))
    if compact_after is None or outcome.status != DONE:
        return outcome
    return _compacted(session, storage, outcome, compact_after)


def _compacted(session: SparkSession, storage: Storage, outcome: Outcome, least: int) -> Outcome:
    """Have executors bring small files together; what was written is committed, whatever comes of that."""
    ids = [meta.spec.id for meta in outcome.metas]
    try:
        with plain_errors():
            done = optimize(storage, ids, min_files=least, run=run_in(session))
    except Exception as error:  # a failed run would be repeated
        return replace(outcome, compaction_error=error)
    return replace(outcome, compacted=done, version=done.version)


def _check_fitting(
    family: str,
    sources: Sequence[str],
    cells: CellOptions,
    options: Mapping[str, str],
    channels_first: bool,
) -> None:
    """Raise InvalidOptionError for options that no source of this family has a use for."""
    odd = {
        "--shape": ("cells; arrays have their own", family == "arrays" and "shape" in options),
        "--dtype": ("cells; arrays have their own", family == "arrays" and "dtype" in options),
        "--delimiter": ("CSV files", family != "csv" and cells.delimiter is not None),
        "--channels-first": (
            "images and TIFF files, whose axes are known",
            family == "arrays" and channels_first and not any(map(has_channels, sources)),
        ),
        "--timezone": ("tables", family in ("tns", "matrices") and cells.timezone != "UTC"),
    }
    for name, (what, is_odd) in odd.items():
        if is_odd:
            raise InvalidOptionError(f"{sources[0]}: {name} is for {what}; leave it out")


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


def _cells(
    session: SparkSession,
    storage: Storage,
    tensor_id: str,
    paths: Sequence[str],
    family: str,
    mode: str,
    choices: CellOptions,
    options: Mapping[str, str] | None,
    dry_run: bool,
) -> Outcome:
    old, number = state(storage, tensor_id)
    if mode == "error" and old is not None:
        check_free(storage, [tensor_id])
    kept = old if mode == "append" else None
    if dry_run:
        plan = plan_cells(
            session, storage, tensor_id, paths, family, choices, old=kept, options=options
        )
        return Outcome(PLANNED, plan=plan, files=plan.files)
    ingest_cells(
        session, storage, tensor_id, paths, family, choices,
        old=kept,
        mode="overwrite" if mode == "overwrite" else "append",
        options={**(options or {}), **last_change(number)},
    )  # fmt: skip
    snapshot = Snapshot.open(storage)
    metas = (catalog.get(snapshot, tensor_id),)
    return Outcome(DONE, metas, version=snapshot.version, files=tuple(paths))


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise our own error where Spark wrapped it, and one of ours for a value that an expression refused."""
    try:
        yield
    except TensorLakeError:
        raise
    except Exception as error:
        text = str(error)
        ours = _OURS.findall(text)
        if ours:
            name, message = ours[-1]
            kind = getattr(errors, name, TensorLakeError)
            raise kind(message) from error
        if _NO_S3A.search(text):
            raise MissingDependencyError(
                "Spark itself reads CSV, Parquet, .tns and Delta tables, and this session does not know s3a://: start "
                "spark-submit with the packages and settings of conf/s3a.conf, see docs/object_stores.md"
            ) from error
        refused = _DATA.search(text)
        if refused:
            message = " ".join(refused[2].split())
            raise InvalidTensorError(f"{message} ({refused[1]}, in --column or --where)") from error
        raise


def job_session(make_local: Callable[[], SparkSession]) -> SparkSession:
    """Return the session of spark-submit, or a local one where a job is run with plain Python."""
    from pyspark.sql import SparkSession

    from tensorlake_spark.spark.source.data_source import register

    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return make_local()
    session: SparkSession = SparkSession.builder.getOrCreate()
    register(session)
    return session
