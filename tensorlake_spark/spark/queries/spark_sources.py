"""What a query reads as DataFrames of Spark: datasets with their tensors, Delta tables, Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkTypeError
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.datasets.dataset import Dataset
from tensorlake_spark.datasets.types.annotations import BoundingBox, Keypoints
from tensorlake_spark.datasets.types.class_label import classes_in
from tensorlake_spark.datasets.types.media.images import Image, Picture
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.datasets.types.tensors import Embedding, PointCloud, Tensor
from tensorlake_spark.delta.log.requirements import SAMPLES, SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import FormatError, InvalidOptionError, TableNotFoundError
from tensorlake_spark.lake.lake import TensorLake
from tensorlake_spark.lake.lake import open as open_lake
from tensorlake_spark.query.sources.dataset_source import small_fields, stored_type
from tensorlake_spark.query.sources.duckdb_tables import as_arrow
from tensorlake_spark.query.sources.source_columns import Stored
from tensorlake_spark.query.sources.source_opening import catalog_of, type_name
from tensorlake_spark.query.view import View
from tensorlake_spark.spark.cluster.s3a import options_in_session
from tensorlake_spark.spark.frames.sample_decoding import is_tensor
from tensorlake_spark.spark.frames.sample_frame import flat_samples, spark_place
from tensorlake_spark.spark.queries.batch_functions.view_columns import computed_columns, view_udf
from tensorlake_spark.spark.queries.result_kinds import (
    ARRAY,
    DATE,
    SCALAR,
    TEXT,
    TIME,
    TIME_NTZ,
    Kind,
)
from tensorlake_spark.spark.source.schemas import SPARK_TYPES, TENSOR, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_KEPT = "_tensorlake_sources"
"""The attribute of a session with the datasets that its last queries read; they go with it."""

_MOST_KEPT = 8


@dataclass(frozen=True)
class SparkSource:
    """A table of a query.

    Attributes
    ----------
    frame : DataFrame
        Its rows; groups are columns with ``/`` in their names.
    kinds : dict of str to Kind
        What each column is.
    hidden : frozenset of str
        Columns that ``*`` does not mean.
    count : callable, or None
        Returns how many rows it has, None if only Spark could tell.
    """

    frame: DataFrame
    kinds: Mapping[str, Kind]
    hidden: frozenset[str] = frozenset()
    count: Callable[[], int | None] | None = None


def source_of(
    session: SparkSession,
    given: Any,
    name: str,
    version: int | str | None = None,
    timestamp: str | None = None,
    options: Mapping[str, str] | None = None,
) -> SparkSource:
    """Return what a query reads under a name.

    Parameters
    ----------
    session : SparkSession
        A session with Delta.
    given : Dataset, View, TensorLake, DataFrame, pyarrow.Table, or str
        The rows of a View are found by this process. A DataFrame may be of pandas. A text is the place of a dataset,
        a lake, a Delta table, or of Parquet files. A lake is read as its catalog.
    name : str
        What the query calls it, for messages.
    version, timestamp
        Which version the query asks for.
    options : mapping, optional
        Of the store.

    Raises
    ------
    InvalidOptionError
        If it is nothing of that kind, or has no versions.
    TableNotFoundError
        If there is nothing.
    """
    asked = _Asked(version, timestamp)
    if isinstance(given, Dataset):
        return _of_dataset(session, given, asked, options)
    if isinstance(given, TensorLake):
        return _of_lake(session, given, name, asked, options)
    if isinstance(given, View):
        if asked.is_given:
            raise InvalidOptionError(f"source {name} is a view, which stays at one version")
        return _view(session, given, name)
    if isinstance(given, (pd.DataFrame, pa.RecordBatch, pa.Table)) or hasattr(
        given, "sparkSession"
    ):
        if asked.is_given:
            raise InvalidOptionError(
                f"source {name} has no versions; only datasets, lakes and Delta tables do"
            )
        return _of_rows(session, given, name)
    if isinstance(given, (str, os.PathLike)):
        place = os.fspath(given)
        storage = Storage(place, options_in_session(session, options, place))
        return _of_place(session, storage, name, asked)
    raise InvalidOptionError(
        f"source {name}={type_name(given)} is not a Dataset, a View, a TensorLake, a DataFrame, a pyarrow.Table, "
        "or the place of a table"
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which version of a source a query asks for."""

    version: int | str | None
    timestamp: str | None

    @property
    def is_given(self) -> bool:
        """Whether it asks for one."""
        return self.version is not None or self.timestamp is not None


def _of_dataset(
    session: SparkSession, given: Dataset, asked: _Asked, options: Mapping[str, str] | None
) -> SparkSource:
    options = given._storage.options if options is None else options
    version = asked.version if asked.is_given else given.version
    storage = Storage(given.uri, options_in_session(session, options, given.uri))
    return _dataset(session, Snapshot.open(storage, version, asked.timestamp, SAMPLES))


def _of_lake(
    session: SparkSession,
    given: TensorLake,
    name: str,
    asked: _Asked,
    options: Mapping[str, str] | None,
) -> SparkSource:
    if not asked.is_given:
        return _catalog(session, given, name)
    lake = open_lake(
        given.uri,
        storage_options=given._storage.options if options is None else options,
        version=asked.version,
        timestamp=asked.timestamp,
        create=False,
    )
    return _catalog(session, lake, name)


def _of_rows(session: SparkSession, given: Any, name: str) -> SparkSource:
    """Return a table in memory, or a DataFrame of Spark, as it is."""
    if isinstance(given, pd.DataFrame):
        given = as_arrow(given, name)
    if isinstance(given, pa.RecordBatch):
        given = pa.Table.from_batches([given])
    if not isinstance(given, pa.Table):
        return SparkSource(given, _kinds(given.schema))
    frame = _in_memory(session, given, name)
    return SparkSource(frame, _kinds(frame.schema), count=lambda: int(given.num_rows))


def _of_place(session: SparkSession, storage: Storage, name: str, asked: _Asked) -> SparkSource:
    """Return what lies at a place: a dataset, a lake, another Delta table, or Parquet files."""
    if not asked.is_given and _is_parquet(storage):
        return _parquet(session, storage)
    try:
        snapshot = Snapshot.open(storage, asked.version, asked.timestamp, None)
    except TableNotFoundError:
        if asked.is_given:
            raise
        return _parquet(session, storage)
    except FormatError:  # a table of others
        if asked.timestamp is not None or isinstance(asked.version, str):
            raise
        return _plain_delta(session, storage, asked.version)
    if snapshot.kind == SAMPLES:
        return _dataset(session, snapshot)
    lake = open_lake(
        storage.uri, storage_options=storage.options, version=snapshot.version, create=False
    )
    return _catalog(session, lake, name)


def _plain_delta(session: SparkSession, storage: Storage, version: int | None) -> SparkSource:
    reader = session.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    frame = reader.load(spark_place(storage.uri))
    return SparkSource(frame, _kinds(frame.schema))


def _catalog(session: SparkSession, lake: TensorLake, name: str) -> SparkSource:
    frame = _in_memory(session, catalog_of(lake), name)
    return SparkSource(frame, _kinds(frame.schema))


def _view(session: SparkSession, view: View, name: str) -> SparkSource:
    """Return a view: what it found goes to Spark, and executors compute the other columns if they are asked for."""
    table, outputs = view._table, view._plan.result.outputs
    stored = {one: out for one, out in outputs.items() if isinstance(out, Stored)}
    computed = computed_columns(view)
    needed = dict.fromkeys(
        [
            *(out.ref[1] for out in stored.values()),
            *(ref for one in computed.values() for ref in one.schema.names),
        ]
    )
    places = {one: f"c{number}" for number, one in enumerate(needed)}
    rows = table.select([*needed]).rename_columns([*places.values()])
    if not needed:
        rows = pa.table({"c0": pa.nulls(len(view), pa.int64())})
    frame = _in_memory(session, rows, name)
    plain = _kinds(frame.schema)
    kinds, columns = {}, []
    for one in view.names:
        if one in stored:
            place = places[stored[one].ref[1]]
            kinds[one] = replace(plain[place], classes=classes_in(stored[one].type))
            columns.append(f.col(place).alias(one))
            continue
        column = computed[one]
        given = [f.col(places[ref]) for ref in column.schema.names] or [f.lit(0)]
        columns.append(view_udf(column)(*given).alias(one))
        form = getattr(column.kind, "form", None)
        kinds[one] = (
            Kind(ARRAY, None, collected=True) if column.is_collected
            else Kind(ARRAY, _ndim(column.kind), form, most=_most(column.kind)) if column.is_tensor
            else Kind(SCALAR)
        )  # fmt: skip
    return SparkSource(frame.select(*columns), kinds, count=lambda: len(view))


def _in_memory(session: SparkSession, table: pa.Table, name: str) -> DataFrame:
    """Return a table of Arrow as a DataFrame; of a type that Spark has not, the narrowest that holds all values."""
    for place, field in enumerate(table.schema):
        kind = SPARK_TYPES.get(field.type)
        wanted = pa.float32() if pa.types.is_float16(field.type) else kind and arrow_type(kind)
        if wanted is not None and wanted != field.type:
            column = table.column(place).cast(wanted)
            table = table.set_column(place, field.name, column)
    try:
        return session.createDataFrame(table)
    except PySparkTypeError as error:
        raise InvalidOptionError(
            f"source {name}: Spark has no type for a column ({error!s:.200}); cast it"
        ) from error


def _dataset(session: SparkSession, snapshot: Snapshot) -> SparkSource:
    """Return a version of a dataset; Spark keeps what it has analysed of it, which never changes, for later queries."""
    kept: dict[Any, SparkSource] = session.__dict__.setdefault(_KEPT, {})
    storage = snapshot.storage
    # A table that was made anew at its place has another id, and a new version another number.
    key = storage.uri, snapshot.table_id, snapshot.version, (*sorted(storage.options.items()),)
    found = kept.pop(key, None) or _opened(session, snapshot)
    kept[key] = found  # as the last one
    for old in [*kept][:-_MOST_KEPT]:
        kept.pop(old, None)
    return found


def _opened(session: SparkSession, snapshot: Snapshot) -> SparkSource:
    schema = SampleSchema.from_arrow(snapshot.schema)
    fields = [
        f"{name}/{field.name}"
        for name, kind in schema.items()
        if not kind.apart
        for field in small_fields(stored_type(snapshot.schema, name))
    ]
    frame = flat_samples(session, snapshot, list(schema), fields=fields)
    hidden = frozenset([SID, *fields])
    kinds = dict.fromkeys([SID, *fields], Kind(SCALAR))
    for name, kind in schema.items():
        found = (
            Kind(ARRAY, _ndim(kind), getattr(kind, "form", None), most=_most(kind))
            if is_tensor(kind) else _kind(frame.schema[name].dataType)
        )  # fmt: skip
        kinds[name] = replace(found, classes=classes_in(kind))
    return SparkSource(frame, kinds, hidden, lambda: _rows_of(snapshot))


def _rows_of(snapshot: Snapshot) -> int | None:
    rows = snapshot.files.rows
    return int(rows.sum()) if (rows >= 0).all() else None


def _ndim(kind: Any) -> int | None:
    """Return how many axes the arrays of a type have, None if that is not known."""
    if isinstance(kind, Tensor):
        return None if kind.shape is None else len(kind.shape)
    if isinstance(kind, Embedding):
        return 1
    if isinstance(kind, Keypoints):
        return 3
    if isinstance(kind, (BoundingBox, PointCloud)):
        return 2
    if isinstance(kind, Image):
        return {None: None, 1: 2}.get(kind.channels, 3)
    return 2 if isinstance(kind, Picture) else None


def _most(kind: Any) -> int | None:
    """Return how many axes the arrays of a type have at most: an image may have channels."""
    return 3 if isinstance(kind, Image) else _ndim(kind)


def _kinds(schema: t.StructType) -> dict[str, Kind]:
    return {one.name: _kind(one.dataType) for one in schema.fields}


def _kind(kind: t.DataType) -> Kind:
    """Return what a type of Spark is in a query."""
    if _is_struct(kind):
        return Kind(ARRAY)
    if isinstance(kind, t.ArrayType):
        if _is_struct(kind.elementType):
            return Kind(ARRAY, collected=True)
        return Kind(ARRAY, 1, listed=True, element=_element(kind.elementType))
    return Kind(SCALAR)


def _element(kind: t.DataType) -> str:
    """Return what an element of a list is: the name of a kind."""
    if isinstance(kind, t.StringType):
        return TEXT
    if isinstance(kind, t.BooleanType):
        return "bool"
    if isinstance(kind, t.DateType):
        return DATE
    if isinstance(kind, t.TimestampType):
        return TIME
    if isinstance(kind, t.TimestampNTZType):
        return TIME_NTZ
    return "int" if isinstance(kind, t.IntegralType) else "number"


def _is_struct(kind: t.DataType) -> bool:
    """Whether values are tensors as the struct TENSOR."""
    return isinstance(kind, t.StructType) and {*TENSOR.names} <= {*kind.names}


def _is_parquet(storage: Storage) -> bool:
    if not storage.is_local:
        return storage.uri.endswith(".parquet")
    return not os.path.isdir(os.path.join(storage.uri, "_delta_log"))


def _parquet(session: SparkSession, storage: Storage) -> SparkSource:
    if storage.is_local and not os.path.exists(storage.uri):
        raise TableNotFoundError(f"there is no table and no Parquet file at {storage.uri}")
    reader = session.read
    known = plain_schema(storage.uri) if storage.is_local else None
    if known is not None:
        reader = reader.schema(known)
    frame = reader.parquet(spark_place(storage.uri))
    return SparkSource(frame, _kinds(frame.schema))


_PLAIN = {
    pa.bool_(): t.BooleanType(), pa.int32(): t.IntegerType(), pa.int64(): t.LongType(),
    pa.float32(): t.FloatType(), pa.float64(): t.DoubleType(), pa.string(): t.StringType(),
}  # fmt: skip


def plain_schema(path: str) -> t.StructType | None:
    """Return the columns of one Parquet file as Spark would find them, None where only Spark knows.

    Spark starts a job to look into a file; that takes longer than to plan a query.
    """
    if not os.path.isfile(path):
        return None
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        return None  # Spark says what is wrong
    if any(field.type not in _PLAIN for field in schema):
        return None
    return t.StructType([t.StructField(field.name, _PLAIN[field.type]) for field in schema])
