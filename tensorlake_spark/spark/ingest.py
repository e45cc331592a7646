"""Files to tensors on executors: what ``jobs/ingest.py`` calls.

``sources`` says which files there are, and of which family; ``ingest_arrays`` writes images and arrays as
slabs or tensors, ``ingest_cells`` logs and matrices as the cells of a sparse tensor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tensorlake_spark import errors
from tensorlake_spark.delta import catalog
from tensorlake_spark.delta.commit import app_of
from tensorlake_spark.delta.snapshot import Snapshot
from tensorlake_spark.delta.storage import Storage
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    InvalidTensorError,
    TableNotFoundError,
    TensorExistsError,
    TensorLakeError,
)
from tensorlake_spark.row import Meta
from tensorlake_spark.spark.ingest_arrays import (
    find_parts,
    joined_shape,
    slab_frame,
    tensor_frame,
)
from tensorlake_spark.spark.ingest_cells import ingest_cells
from tensorlake_spark.spark.sources import expand, family_of
from tensorlake_spark.spark.tables import CellOptions
from tensorlake_spark.spec import check_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = re.compile(r"tensorlake_spark\.errors\.(\w+): (.*)")
_DATA = re.compile(r"\[([A-Z_.]+)\] (.*?) SQLSTATE: 22", re.DOTALL)


def ingest(
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
) -> list[Meta]:
    """Write files as one tensor, or as one tensor each, and return what was written.

    Parameters
    ----------
    session : SparkSession
        Whose executors read the files.
    table : str
        Path or URL of the lake.
    tensor_id : str
        Name of the tensor; with ``how="each"`` the group of the tensors.
    sources : sequence of str
        Paths, globs and folders of files of one family, which executors can read: images, ``.npy`` and
        ``.npz``; or cells, which lie where their indices say: ``.tns``, ``.mtx`` and ``.npz`` of sparse
        matrices, CSV, Parquet.
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
        Further options of ``format("tensor")``.
    storage_options : mapping, optional
        As in `tensorlake_spark.open`.

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
                options,
            )
        if how is not None or channels_first:
            raise InvalidOptionError(
                f"--stack, --concat, --each and --channels-first are for arrays; the cells of {paths[0]} lie "
                "where their indices say, and those of all files make up one tensor"
            )
        old, number = _state(storage, tensor_id)
        if mode == "error" and old is not None:
            raise _taken(storage, tensor_id)

        def unchanged() -> None:
            if _state(storage, tensor_id)[1] != number:
                raise ConcurrentWriteError(
                    f"another writer changed tensor {tensor_id!r} while the files were looked at; nothing was "
                    "written, run the job again"
                )

        ingest_cells(
            session, storage, tensor_id, paths, family, cells or CellOptions(),
            old=old if mode == "append" else None,
            mode="overwrite" if mode == "overwrite" else "append",
            options=options,
            before_write=unchanged,
        )  # fmt: skip
        return [catalog.get(Snapshot.open(storage), tensor_id)]


def _state(storage: Storage, tensor_id: str) -> tuple[Meta | None, int | None]:
    """Return a tensor, None if it is not there, and the number of its last change."""
    try:
        snapshot = Snapshot.open(storage)
    except TableNotFoundError:
        return None, None
    return catalog.find(snapshot, tensor_id), snapshot.transaction(app_of(tensor_id))


def _taken(storage: Storage, tensor_id: str) -> TensorExistsError:
    return TensorExistsError(
        f"tensor {tensor_id!r} exists in {storage.uri}; --mode overwrite or --mode append"
    )


def _arrays(
    session: SparkSession,
    storage: Storage,
    tensor_id: str,
    paths: Sequence[str],
    how: str,
    axis: int,
    mode: str,
    channels_first: bool,
    options: Mapping[str, str] | None,
) -> list[Meta]:
    parts = find_parts(session, paths, channels_first)
    if not parts:
        raise InvalidTensorError("the sources hold no array")
    ids = [f"{tensor_id}/{p.name}" for p in parts] if how == "each" else [tensor_id]
    for one in ids if mode == "error" else ():
        if _state(storage, one)[0] is not None:
            raise _taken(storage, one)
    settings = {**(options or {}), **{f"storage.{k}": v for k, v in storage.options.items()}}
    if how == "each":
        frame = tensor_frame(session, parts, ids, channels_first)
    else:
        join = None if how == "stack" else axis
        shape = joined_shape(parts, join)
        join = None if join is None else join % len(shape)
        frame = slab_frame(session, parts, join, channels_first)
        settings |= {"id": tensor_id, "axis": str(join or 0), "shape": ",".join(map(str, shape))}
    writer = frame.write.format("tensor").mode("overwrite" if mode == "overwrite" else "append")
    writer.options(**settings).save(storage.uri)
    snapshot = Snapshot.open(storage)
    return [catalog.get(snapshot, i) for i in ids]


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
