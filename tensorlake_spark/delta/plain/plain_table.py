"""A Delta table that is neither a lake nor a dataset, to be read as what it is."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from deltalake.exceptions import TableNotFoundError as DeltaTableNotFound

from tensorlake_spark.delta.log.requirements import SAMPLES, TENSORS, kind_of
from tensorlake_spark.delta.log.time_travel import as_time, not_opened, travel
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import TableNotFoundError, is_denied
from tensorlake_spark.rows.row import SCHEMA


class PlainTable:
    """A Delta table at a version.

    Parameters
    ----------
    storage : Storage
        Where it is.
    version : int or str, optional
        A version or a tag; the newest without one.
    timestamp : str or datetime, optional
        The version that was the newest then.

    Attributes
    ----------
    version : int
        Its version.
    schema : pyarrow.Schema
        Its columns.
    rows : int
        How many rows it has.
    data : pyarrow.dataset.Dataset or pyarrow.Table
        The rows; nothing is read of a dataset before it is asked for.
    """

    def __init__(
        self,
        storage: Storage,
        version: int | str | None = None,
        timestamp: str | dt.datetime | None = None,
    ) -> None:
        table = _opened(storage)
        if version is not None:
            travel(table, storage, version)
        elif timestamp is not None:
            travel(table, storage, as_time(timestamp))
        self.version = int(table.version())
        self.data: Any
        with reaching(storage):
            protocol = table.protocol()
            # Reader version 2 is column mapping in a protocol that lists no features. Arrow would look for names that
            # the files do not have, and find nulls.
            is_mapped = protocol.min_reader_version == 2
            features = protocol.reader_features or ()
            if is_mapped or "deletionVectors" in features or "columnMapping" in features:
                rows = QueryBuilder().register("t", table).execute("SELECT * FROM t")
                self.data = pa.table(rows.read_all())
                self.rows = int(self.data.num_rows)
            else:
                # Spark's times are INT96. Arrow makes nanoseconds of them, which hold no year after 2262.
                options = pads.ParquetReadOptions(coerce_int96_timestamp_unit="us")
                self.data = table.to_pyarrow_dataset(parquet_read_options=options)
                self.rows = int(self.data.count_rows())
        self.schema: pa.Schema = self.data.schema

    @staticmethod
    def kind(storage: Storage) -> str:
        """Return what a Delta table is: a dataset of samples, a lake of tensors, or ``plain``.

        Raises
        ------
        TableNotFoundError
            If there is none.
        """
        table = _opened(storage)
        if kind_of(table.metadata().configuration) == SAMPLES:
            return SAMPLES
        names = {field.name for field in table.schema().fields}
        return TENSORS if names >= {*SCHEMA.names} else "plain"


def _opened(storage: Storage) -> DeltaTable:
    with reaching(storage):
        try:
            return DeltaTable(storage.uri, storage_options=storage.log_options)
        except DeltaTableNotFound as error:
            raise TableNotFoundError(f"there is no Delta table at {storage.uri}") from error
        except DeltaError as error:
            if is_denied(error):  # of a checkpoint
                raise
            raise not_opened(storage, error) from error
