"""The rows of a DataFrame to a dataset: executors write, the driver commits once."""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tensorlake_spark.datasets.apart.inner_tables import with_stored_names
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.changes.workers import discard_all_marked
from tensorlake_spark.datasets.samples.appending import batch_of, commit_files, reserve
from tensorlake_spark.datasets.samples.task_samples import SampleFiles, inner_of
from tensorlake_spark.datasets.types.nested import check_links
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.commit import RepeatedBatch, transaction_done
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import FormatError, TableNotFoundError
from tensorlake_spark.spark.cluster.arguments import (
    FRAME,
    INTEGER,
    MAPPING,
    NOTHING,
    PATH,
    TEXT,
    takes,
)
from tensorlake_spark.spark.cluster.s3a import completed, settings_of_session
from tensorlake_spark.spark.cluster.task_errors import plain_errors
from tensorlake_spark.spark.frames.frame_columns import paths_of, schema_of
from tensorlake_spark.spark.frames.named_batches import in_arrow
from tensorlake_spark.spark.frames.partition_writing import RESERVED, PartitionWriting
from tensorlake_spark.spark.source.schemas import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("tensorlake_spark")


@takes(
    df=FRAME,
    uri=PATH,
    schema=MAPPING | NOTHING,
    storage_options=MAPPING | NOTHING,
    txn_app_id=TEXT | NOTHING,
    txn_version=INTEGER | NOTHING,
)
def write_samples(
    df: DataFrame,
    uri: str | os.PathLike[str],
    schema: Mapping[str, Any] | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
) -> int:
    """Add the rows of a DataFrame to a dataset as samples, in one commit; it is created where there is none.

    Executors check and encode the values, as `Dataset.extend` does, and write the files. Bytes, tensors (the struct
    TENSOR), numbers, texts and lists are taken, and what another dataset has stored. Groups are structs, or have names
    with ``/``. Every sample gets a number of its own: ``sid``, ascending with the partitions of the DataFrame and their
    rows, with gaps between partitions.

    Parameters
    ----------
    df : DataFrame
        A column that the dataset has and the DataFrame has not is null.
    uri : str or path
        The dataset.
    schema : mapping of str to Type, optional
        Its columns, as for `dataset`. A dataset that is there has to agree. Without it, a new dataset has the types
        that the DataFrame says, as one that was read from a dataset does.
    storage_options : mapping, optional
        As for `dataset`. What it leaves open is taken from the session's settings of S3A.
    txn_app_id, txn_version : str and int, optional
        The name of a writer and the number of its batch: a batch that was committed before changes nothing. In
        ``foreachBatch`` every batch is then written once.

    Returns
    -------
    int
        The version of the dataset that has the samples.

    Raises
    ------
    InvalidSampleError
        If a value does not fit its column. Nothing is committed then, and files that were written are deleted.
    InvalidOptionError
        If the DataFrame has other columns, or only one of the two options of a transaction is given.
    FormatError
        If the dataset has another schema.
    UnsupportedDtypeError
        If a column has a type that Spark does not hand over in Arrow, such as intervals of months.

    Examples
    --------
    ::

        def append(batch, number):
            write_samples(batch, path, txn_app_id="photos", txn_version=number)

        stream.writeStream.foreachBatch(append)
    """
    transaction = batch_of(txn_app_id, txn_version)
    arrow_schema(df.schema)  # a type that executors do not get makes no dataset
    session = df.sparkSession
    options = completed(storage_options or {}, settings_of_session(session), str(uri))
    storage = Storage(str(uri), options)
    snapshot, columns = _opened(storage, df, schema)
    if transaction_done(snapshot, transaction):
        logger.info("%s has the batch %s already; nothing was written", storage.uri, transaction)
        return snapshot.version
    snapshot.check_writable()
    paths = paths_of(df.schema, columns)
    mark = f"{uuid.uuid4().hex[:16]}-"
    snapshot, first = reserve(storage, snapshot, RESERVED)
    work = PartitionWriting(storage, snapshot, columns, paths, mark, first)
    parts = PartsWriter(storage, snapshot, columns)
    try:
        with plain_errors():
            rows = in_arrow(df, work, "written string").collect()
        done = [SampleFiles(**json.loads(row.written)) for row in rows]
        tiles, apart = inner_of(done)
        written = [*tiles, *parts.committed(apart)]
        files = [file for one in done for file in one.data_files()]
        back = first + RESERVED, max([first, *(one.end for one in done)])
        after = commit_files(
            storage, files, "write_samples", written, back, transaction, columns, parts.names
        )
    except RepeatedBatch as repeated:  # another run of the batch was faster
        logger.info("%s", repeated)
        return repeated.snapshot.version
    finally:  # what tasks wrote that failed, or that Spark began twice
        discard_all_marked(storage, parts.folders(), mark)
    return after.version


def _opened(
    storage: Storage, df: DataFrame, schema: Mapping[str, Any] | None
) -> tuple[Snapshot, SampleSchema]:
    """Return the dataset, made first where there is none, and its columns."""
    wanted = None if schema is None else SampleSchema(schema)
    try:
        snapshot = Snapshot.open(storage, kind=SAMPLES)
    except TableNotFoundError:
        made = wanted or schema_of(df.schema)
        paths_of(df.schema, made)  # a DataFrame that does not fit makes no table
        check_links(made)
        snapshot = create_samples_table(storage, with_stored_names(made.to_arrow()))
    known = SampleSchema.from_arrow(snapshot.schema)
    if wanted is not None and (others := known.differences(wanted)):
        raise FormatError(
            f"the dataset at {storage.uri} has other columns than those of the schema: {others}; leave out the schema"
        )
    return snapshot, known
