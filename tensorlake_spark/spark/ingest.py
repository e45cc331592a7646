"""Files to tensors on executors: what ``jobs/ingest.py`` calls.

``sources`` says which files there are, and of which family; ``ingest_arrays`` writes images and arrays as
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
from tensorlake_spark.delta import catalog
from tensorlake_spark.delta.snapshot import Snapshot
from tensorlake_spark.delta.storage import Storage
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    InvalidTensorError,
    TensorExistsError,
    TensorLakeError,
)
from tensorlake_spark.spark.batches import repeated, state, there, transaction_of
from tensorlake_spark.spark.ingest_arrays import (
    find_parts,
    joined_shape,
    partitions_of,
    slab_frame,
    tensor_frame,
)
from tensorlake_spark.spark.ingest_cells import ingest_cells
from tensorlake_spark.spark.outcome import DONE, PLANNED, Outcome, Plan
from tensorlake_spark.spark.plan_arrays import check_distinct, plan_slabs, plan_tensors
from tensorlake_spark.spark.plan_cells import plan_cells
from tensorlake_spark.spark.sources import expand, family_of
from tensorlake_spark.spark.tables import CellOptions
from tensorlake_spark.spec import check_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = re.compile(r"tensorlake_spark\.errors\.(\w+): (.*)")
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
        Give colour images the axes (channel, y, x).
    cells : CellOptions, optional
        For tables: what their columns are.
    options : mapping, optional
        Further options of ``format("tensor")``. With ``txnAppId`` and ``txnVersion`` a batch that is in the
        table already changes nothing, and its files need not be there any more.
    storage_options : mapping, optional
        As in `tensorlake_spark.open`.
    dry_run : bool
        Look at the files and make the plan, and write nothing, not even a table.

    Raises
    ------
    InvalidOptionError, InvalidTensorError
        If a source or an option will not do; names the file, and of text the line. Nothing is written then.
    TensorExistsError
        If a tensor is there and the mode is ``"error"``.
    ConcurrentWriteError
        If another writer changed the tensor meanwhile.
    """
    if how not in (None, "stack", "concat", "each"):
        raise InvalidOptionError(f"how={how!r} is none of 'stack', 'concat', 'each'")
    if mode not in ("error", "overwrite", "append"):
        raise InvalidOptionError(f"mode={mode!r} is none of 'error', 'overwrite', 'append'")
    check_id(tensor_id)
    storage = Storage(table, storage_options or {})
    batch = transaction_of(options or {})
    earlier = repeated(storage, tensor_id, batch, how == "each")
    if earlier is not None:
        return earlier
    paths = expand(sources)
    family = family_of(paths)
    with plain_errors():
        if family == "arrays":
            if cells not in (None, CellOptions()):
                raise InvalidOptionError(
                    f"--axis, --value, --column and --where are for tables; {paths[0]} is none"
                )
            return _arrays(
                session,
                storage,
                tensor_id,
                paths,
                how or "stack",
                axis,
                mode,
                channels_first,
                options or {},
                dry_run,
            )
        if how is not None or channels_first:
            raise InvalidOptionError(
                f"--stack, --concat, --each and --channels-first are for arrays; the cells of {paths[0]} lie "
                "where their indices say, and those of all files make up one tensor"
            )
        return _cells(
            session,
            storage,
            tensor_id,
            paths,
            family,
            mode,
            cells or CellOptions(),
            options,
            dry_run,
        )


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
        raise _taken(storage, tensor_id)

    def unchanged() -> None:
        if state(storage, tensor_id)[1] != number:
            raise ConcurrentWriteError(
                f"another writer changed tensor {tensor_id!r} while the files were looked at; nothing was "
                "written, run the job again"
            )

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
        options=options,
        before_write=unchanged,
    )  # fmt: skip
    snapshot = Snapshot.open(storage)
    metas = (catalog.get(snapshot, tensor_id),)
    return Outcome(DONE, metas, version=snapshot.version, files=tuple(paths))


def _arrays(
    session: SparkSession,
    storage: Storage,
    tensor_id: str,
    paths: Sequence[str],
    how: str,
    axis: int,
    mode: str,
    channels_first: bool,
    options: Mapping[str, str],
    dry_run: bool,
) -> Outcome:
    parts = find_parts(session, paths, channels_first, how == "each")
    if not parts:
        raise InvalidTensorError("the sources hold no array")
    # Spark knows no mode "error" for such a source, and an append of whole tensors is one.
    settings = {**options, **{f"storage.{k}": v for k, v in storage.options.items()}}
    if how == "each":
        ids = [f"{tensor_id}/{p.name}" for p in parts]
        taken = there(storage, ids)
        if taken and mode != "overwrite":
            raise _taken(storage, taken[0])
        check_distinct(ids)
        plan = plan_tensors(storage, parts, ids, settings)
        frame = tensor_frame(session, parts, ids, channels_first)
        count = partitions_of(session, len(parts))
    else:
        old = state(storage, tensor_id)[0]
        if old is not None and mode == "error":
            raise _taken(storage, tensor_id)
        join = None if how == "stack" else axis
        shape = joined_shape(parts, join)
        join = None if join is None else join % len(shape)
        settings |= {"id": tensor_id, "axis": str(join or 0), "shape": ",".join(map(str, shape))}
        plan = plan_slabs(storage, parts, settings, old if mode == "append" else None)
        block = plan.tensors[0].block_shape
        frame, count = slab_frame(session, parts, join, block, channels_first)
    plan = replace(plan, partitions=count)
    if not dry_run:
        writer = frame.write.format("tensor").mode("overwrite" if mode == "overwrite" else "append")
        writer.options(**settings).save(storage.uri)
    return _outcome(storage, plan, dry_run)


def _taken(storage: Storage, tensor_id: str) -> TensorExistsError:
    return TensorExistsError(
        f"tensor {tensor_id!r} exists in {storage.uri}; --mode overwrite or --mode append"
    )


def _outcome(storage: Storage, plan: Plan, dry_run: bool) -> Outcome:
    if dry_run:
        return Outcome(PLANNED, plan=plan, files=plan.files)
    snapshot = Snapshot.open(storage)
    ids = [spec.id for spec in plan.tensors]
    if len(ids) == 1:
        return Outcome(DONE, (catalog.get(snapshot, ids[0]),), plan, snapshot.version, plan.files)
    found = {meta.spec.id: meta for meta in catalog.metas(snapshot)}
    return Outcome(DONE, tuple(found[i] for i in ids), plan, snapshot.version, plan.files)


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
        refused = _DATA.search(text)
        if refused:
            message = " ".join(refused[2].split())
            raise InvalidTensorError(f"{message} ({refused[1]}, in --column or --where)") from error
        raise


def job_session(make_local: Callable[[], SparkSession]) -> SparkSession:
    """Return the session of spark-submit, or a local one where a job is run with plain Python."""
    from pyspark.sql import SparkSession

    from tensorlake_spark.spark.source import register

    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return make_local()
    session: SparkSession = SparkSession.builder.getOrCreate()
    register(session)
    return session
