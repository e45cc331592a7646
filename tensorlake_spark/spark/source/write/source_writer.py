"""Spark writes: executors encode and write data files, only the driver commits.

A task may run twice, so files carry names of their own and nothing names them before the one commit;
what a lost attempt leaves behind is an orphan, which vacuum removes. A job that can be resumed leaves a
receipt for every task that ends well, and one that fails deletes none of their files.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, StaleChange, app_of, commit, transaction_done
from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.log.data_file import DataFile, discard, marked
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    InvalidTensorError,
    TableNotFoundError,
    TensorExistsError,
)
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.spark.source.cell_columns import has_cells
from tensorlake_spark.spark.source.commit_message import TensorCommitMessage
from tensorlake_spark.spark.source.schemas import TENSOR
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write.cells import Cells
from tensorlake_spark.spark.source.write.input_format import InputForm
from tensorlake_spark.spark.source.write.slabs import Slabs, Tensors
from tensorlake_spark.tensor.spec import dtype_name
from tensorlake_spark.writing.app_transaction import is_repeated
from tensorlake_spark.writing.append import check_kept
from tensorlake_spark.writing.pipeline import drop_tensors, recomputed


class TensorWriter(DataSourceArrowWriter):
    """Writes one tensor from cells (``i0..iN, value``) or slabs (``lo, tensor``), or a tensor a row.

    Made on the driver, where the DataFrame's schema is checked and the table is looked at: what is
    computed from that look is committed only if the tensors did not change since.
    """

    def __init__(self, options: SparkWriteOptions, schema: t.StructType, overwrite: bool) -> None:
        self.options = options
        self.overwrite = overwrite
        kind = _kind(schema, options)
        snapshot: Snapshot | None = None
        try:
            snapshot = Snapshot.open(options.storage)
            snapshot.check_writable()
        except TableNotFoundError:
            pass
        old: Meta | None = None
        self.number: int | None = None  # of the tensor's last change
        if snapshot is not None and options.id is not None:
            old = None if overwrite else catalog.find(snapshot, options.id)
            self.number = snapshot.transaction(app_of(options.id))
        seen = -1 if self.number is None else self.number
        if options.last_change not in (None, seen):
            raise ConcurrentWriteError(
                f"another writer changed tensor {options.id!r} since the files were looked at; nothing was "
                "written, run the job again"
            )
        _check_fitting(kind, options)
        if kind == "slabs" and old is not None:
            check_kept(old.spec, options.write, options.axis)
        self.form: InputForm
        if kind == "tensors":
            self.form = Tensors(options)
        else:
            self.form = (
                Slabs(options, old) if kind == "slabs" else Cells(options, schema, old, overwrite)
            )
        if snapshot is None:  # made only for a write that could succeed
            create_table(options.storage)
            snapshot = Snapshot.open(options.storage)
        if options.resumption is not None:
            if kind == "cells" or (kind == "slabs" and options.shape is None):
                raise InvalidOptionError(
                    "option resumption is for tensors (id, tensor), and for slabs with the option shape"
                )
            options.resumption.check(snapshot)
        self.version = snapshot.version
        self.mark = f"{uuid.uuid4().hex[:16]}-"  # names of the job's files begin with it
        self.file_bytes = snapshot.file_bytes
        transaction = options.write.transaction
        if options.id is None:  # the rows have the ids
            self.done = transaction_done(snapshot, transaction)
        else:
            self.done = is_repeated(snapshot, transaction, options.id)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Encode and write one partition; runs on an executor, perhaps more than once."""
        if self.done:
            return TensorCommitMessage()
        with self._new_writer() as writer:
            written = self.form.write(iterator, writer)
            message = TensorCommitMessage(tuple(writer.finish()), tuple(written))
            if self.options.resumption is not None and written:
                self.options.resumption.leave(self.options.storage, message)
            return message

    def _new_writer(self) -> FileWriter:
        return FileWriter(self.options.storage, self.file_bytes, mark=self.mark)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make all that the tasks wrote visible in one commit; runs on the driver."""
        if self.done:
            return
        parts = [m for m in messages if isinstance(m, TensorCommitMessage)]
        storage, resumption = self.options.storage, self.options.resumption
        if resumption is not None:
            parts = [*resumption.taken(storage), *parts]
        try:
            snapshot = Snapshot.open(storage)
            parts = self.form.settle(parts, snapshot, self._new_writer)
            files = [file for part in parts for file in part.files]
            metas = self.form.describe([w for m in parts for w in m.written], files, snapshot)
            metas, files = self.form.finish(metas, files, snapshot, self._new_writer)
            self._check_metas(metas)
            if metas:
                self._commit(snapshot, metas, files)
        except StaleChange as stale:
            self.abort(messages)
            raise ConcurrentWriteError(
                f"{stale} while this job ran; nothing of it was committed, run it again"
            ) from stale
        except BaseException:
            self.abort(messages)
            raise
        if resumption is not None:
            resumption.clear(storage, {file.path for file in files})

    def _check_metas(self, metas: Sequence[Meta]) -> None:
        """Raise an error if an option says something else than what the tasks wrote."""
        options = self.options
        if not metas and self.overwrite and options.id is not None:
            raise InvalidTensorError(
                f"the DataFrame has no slab, so there is no shape and no dtype to overwrite tensor {options.id!r} "
                "with; nothing was changed: leave out empty batches, or delete the tensor"
            )
        for meta in metas:
            if options.dtype not in (None, meta.spec.dtype):
                raise InvalidOptionError(
                    f"the DataFrame holds {meta.spec.dtype} for tensor {meta.spec.id!r}, and slabs and tensors are "
                    f"stored as they are; leave out the option dtype={dtype_name(options.dtype)!r}"
                )

    def _commit(self, snapshot: Snapshot, metas: Sequence[Meta], files: Sequence[DataFile]) -> None:
        storage = self.options.storage
        ids = [meta.spec.id for meta in metas]
        if self.options.id is None and not self.overwrite:
            present = set(catalog.ids(snapshot))
            taken = [i for i in ids if i in present]
            if taken:
                raise TensorExistsError(
                    f"tensor {taken[0]!r} exists in {storage.uri}; mode('overwrite') replaces it, and an "
                    "append of slabs (lo, tensor) with option('id', ...) continues it"
                )
        if self.options.id is not None:
            numbers = {app_of(self.options.id): self.number}
        else:
            planned = Snapshot.open(storage, self.version)
            numbers = planned.transactions([app_of(i) for i in ids])

        def appended(now: Snapshot) -> None:
            with FileWriter.into(now) as writer:
                removes = drop_tensors(now, ids, writer) if self.overwrite else []
                writer.add_meta(
                    [m.spec for m in metas], [m.seq for m in metas], [m.totals for m in metas]
                )
                adds = [*files, *writer.finish()]
                if self.options.resumption is not None:
                    self.options.resumption.announce(storage, adds)
                change = Change(
                    tensors={i: numbers[app_of(i)] for i in ids},
                    adds=adds,
                    removes=removes,
                    operation="spark overwrite" if self.overwrite else "spark append",
                    transaction=self.options.write.transaction,
                )
                commit(storage, change)

        recomputed(snapshot, ids[0], appended)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the files of all tasks, whether they ended well or not; what comes later is for vacuum.

        Those of a job that can be resumed stay, for the next run has use for them.
        """
        if self.options.resumption is None:
            discard(self.options.storage, marked(self.options.storage, self.mark))


def _check_fitting(kind: str, options: SparkWriteOptions) -> None:
    """Raise InvalidOptionError for an option that the form of a DataFrame has no use for."""
    if kind == "tensors" and options.shape is not None:
        raise InvalidOptionError(
            f"option shape={options.shape} is for slabs and cells; tensors (id, tensor) have their own"
        )
    if kind != "slabs" and options.axis:
        raise InvalidOptionError(
            f"option axis={options.axis} is for slabs (lo, tensor), which continue a tensor along it"
        )


def _kind(schema: t.StructType, options: SparkWriteOptions) -> str:
    """Return whether a DataFrame holds slabs, tensors or cells, or say what it should have.

    Raises
    ------
    InvalidOptionError
        If its columns are none of them, or the option ``id`` does not go with them.
    """
    names = set(schema.names)
    types = {f.name: f.dataType.simpleString() for f in schema.fields}
    if names == {"lo", "tensor"} and types["lo"] == "array<bigint>":
        kind = "slabs"
    elif names == {"id", "tensor"} and types["id"] == "string":
        kind = "tensors"
    elif has_cells(schema, options):
        kind = "cells"
    else:
        raise InvalidOptionError(
            f"a DataFrame with the columns {', '.join(f'{n}: {k}' for n, k in types.items())} is neither "
            "cells (i0, i1, ..., or the names of the axes, and value), nor slabs (lo: array<bigint>, tensor), "
            f"nor tensors (id: string, tensor), where tensor is {TENSOR.simpleString()}"
        )
    if kind != "cells" and types["tensor"] != TENSOR.simpleString():
        raise InvalidOptionError(
            f"the column tensor is {types['tensor']}; it should be {TENSOR.simpleString()}"
        )
    if kind != "tensors" and options.id is None:
        columns = "slabs (lo, tensor)" if kind == "slabs" else "cells (i0, ..., value)"
        raise InvalidOptionError(f"{columns} need the option id, the tensor's name")
    if kind == "tensors" and options.id is not None:
        raise InvalidOptionError(
            "tensors (id, tensor) bring their own ids; leave out the option id, or write slabs (lo, tensor)"
        )
    return kind
