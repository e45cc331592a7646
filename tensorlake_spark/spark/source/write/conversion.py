"""What tasks wrote in one layout, written anew in another one by the driver, before the one commit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.indexing import select
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.reading.read import read
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.source.commit_message import TensorCommitMessage
from tensorlake_spark.spark.source.write.input_format import encode_region
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.lake_source import StoredSource
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.overlay import Overlay
from tensorlake_spark.writing.pipeline import put

NewWriter = Callable[[], FileWriter]


def slabs_anew(
    message: TensorCommitMessage,
    spec_of: Callable[[tuple[int, ...]], TensorSpec],
    snapshot: Snapshot,
    new_writer: NewWriter,
) -> TensorCommitMessage:
    """Write the slabs of a task anew, one by one, and delete its files.

    Parameters
    ----------
    message : TensorCommitMessage
        What a task wrote of one new tensor.
    spec_of : callable
        Takes the upper corner of a slab; returns the spec by which it is written now.
    snapshot : Snapshot
        The newest version of the table.
    new_writer : callable
        Returns a writer of data files.
    """
    [written] = message.written
    reached = tuple(max(ends) for ends in zip(*(box.hi for box in written.boxes), strict=True))
    meta = Meta(replace(written.spec, shape=reached), written.totals, 0)
    there = Overlay(snapshot, message.files, alone=True)
    first = written.spans[0][0]
    numbers, totals = itertools.count(first), Totals()
    with new_writer() as writer:
        for box in written.boxes:
            if not box.is_empty:
                region = read(there, meta, select(box.slices(), reached), verify=False)
                array = region.todense() if isinstance(region, SparseTensor) else region
                totals += encode_region(spec_of(box.hi), box, np.asarray(array), writer, numbers)
        files = tuple(writer.finish())
    discard(snapshot.storage, [file.path for file in message.files])
    spans = ((first, next(numbers)),)
    done = replace(written, spec=spec_of(reached), totals=totals, spans=spans)
    return TensorCommitMessage(files, (done,))


def cells_as_chunks(
    meta: Meta,
    files: Sequence[DataFile],
    options: WriteOptions,
    snapshot: Snapshot,
    new_writer: NewWriter,
) -> tuple[Meta, list[DataFile]]:
    """Write a new sparse tensor anew as dense chunks, region by region, and delete its files.

    Chunks without an element are not stored.
    """
    source = StoredSource(Overlay(snapshot, files, alone=True), meta, dense=True)
    spec = new_spec(meta.spec.id, source, replace(options, layout="ftsf", labels={}))
    spec = replace(spec, labels=meta.spec.labels)
    numbers = itertools.count()
    with new_writer() as writer:
        writer.row_group_bytes = layout_of(spec.layout).row_group_bytes
        totals = put(writer, spec, source, (0,) * spec.ndim, numbers, lambda _: None)
        made = writer.finish()
    discard(snapshot.storage, [file.path for file in files])
    return Meta(spec, totals, next(numbers)), made
