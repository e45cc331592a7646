"""``format("tensor")``: routing between Spark and the reader and writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.layouts import stored_layout
from tensorlake_spark.spark.cluster.arguments import SESSION, takes
from tensorlake_spark.spark.cluster.s3a import settings_of_session
from tensorlake_spark.spark.source.label_columns import labelled_schema
from tensorlake_spark.spark.source.read.feature_reader import (
    FeatureReader,
    feature_schema,
    features_of,
    rows_of,
)
from tensorlake_spark.spark.source.read.pushdown import FilteredReader, FilteredSparseReader
from tensorlake_spark.spark.source.read.reader import CatalogReader, TensorReader, selection_of
from tensorlake_spark.spark.source.read.sparse_reader import SparseReader
from tensorlake_spark.spark.source.schemas import BLOCKS, CATALOG, cell_schema
from tensorlake_spark.spark.source.source_options import ReadOptions, SparkWriteOptions
from tensorlake_spark.spark.source.write.feature_writer import FeatureWriter
from tensorlake_spark.spark.source.write.source_writer import TensorWriter
from tensorlake_spark.tensor.spec import TensorSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TensorDataSource(DataSource):
    """The data source ``format("tensor")``: tensors of a lake as rows of Spark, and back.

    The version of the table is resolved when Spark asks for the schema. It stays with the DataFrame.
    """

    s3a: ClassVar[Mapping[str, str]] = {}
    """The session's settings of S3A, from `register`. They are used where the options leave the store open."""

    _version: int | None = None

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "tensor"

    def schema(self) -> StructType:
        """Return the schema of the view; pins the version."""
        options = ReadOptions.parse(self.options, self.s3a)
        snapshot = Snapshot.open(options.storage, options.version, options.timestamp)
        self._version = snapshot.version
        if options.view == "catalog":
            return CATALOG
        if options.view == "features":
            table = features_of(options, snapshot)
            rows_of(options, len(table))
            return feature_schema(table, options.columns)
        meta = catalog.get(snapshot, str(options.id))
        # A key that does not fit is an error of load(), not of a task an hour later.
        selection_of(meta.spec, options)
        return _schema_of(meta.spec, options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the view; a schema of the user's own narrows the columns."""
        options = ReadOptions.parse(self.options, self.s3a)
        if self._version is None:  # the user gave the schema, so Spark did not ask for ours
            snapshot = Snapshot.open(options.storage, options.version, options.timestamp)
        else:
            snapshot = Snapshot.open(options.storage, self._version)
        made: DataSourceReader
        if options.view == "catalog":
            made, known = CatalogReader(options, snapshot.version, schema), CATALOG
        elif options.view == "features":
            made = FeatureReader(options, snapshot, schema)
            known = feature_schema(features_of(options, snapshot), options.columns)
        else:
            meta = catalog.get(snapshot, str(options.id))
            dense, sparse = TensorReader, SparseReader
            if options.push_filters:
                # Not always these: Spark wants its setting of any reader that could take filters.
                dense, sparse = FilteredReader, FilteredSparseReader
            kind = sparse if stored_layout(meta.spec).is_sparse else dense
            made = kind(options, snapshot, meta, schema)
            known = _schema_of(meta.spec, options)
        _check_columns(schema, known, options.view)
        return made

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer for a DataFrame's schema."""
        options = SparkWriteOptions.parse(self.options, self.s3a)
        if options.is_features:
            return FeatureWriter(options, schema, overwrite)
        return TensorWriter(options, schema, overwrite)

    # Without these two, PySpark says that a method is not implemented, at the end of a traceback.
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Raise InvalidOptionError: tensors are no stream."""
        raise InvalidOptionError(
            "format('tensor') has no readStream: a tensor has no rows that arrive one after the other; "
            "spark.read.format('tensor') reads a version of it"
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Raise InvalidOptionError: batches of a stream are written one by one."""
        raise InvalidOptionError(
            "format('tensor') has no writeStream: write each batch with df.write.format('tensor') in "
            "writeStream.foreachBatch(...), with the options txnAppId and txnVersion"
        )


def _schema_of(spec: TensorSpec, options: ReadOptions) -> StructType:
    """Return the columns of the views ``blocks`` and ``cells`` of a tensor."""
    if options.view == "blocks":
        return BLOCKS
    if "value" in (spec.axes or ()):
        raise InvalidOptionError(
            f"tensor {spec.id!r} has an axis named 'value', which is the column of the values in the view 'cells'; "
            "read the view 'blocks', or write the tensor with other names of axes"
        )
    return labelled_schema(spec) if options.labels else cell_schema(spec)


def _check_columns(schema: StructType, known: StructType, view: str) -> None:
    """Raise InvalidOptionError unless a schema of the user's own has columns of a view, once each, as they are.

    A cast here could cut off a value, and would fail in a task for one that does not fit.
    """
    for field in schema.fields:
        name = field.name
        if name not in known.names:
            raise InvalidOptionError(
                f"the view {view!r} has no column {name!r}"
                f"{did_you_mean(name, known.names)}; it has {', '.join(known.names)}"
            )
        if schema.names.count(name) > 1:
            raise InvalidOptionError(
                f"the schema has column {name!r} {schema.names.count(name)} times; name each column once"
            )
        kind, asked = known[name].dataType.simpleString(), field.dataType.simpleString()
        if kind != asked:
            raise InvalidOptionError(
                f"the schema has column {name!r} as {asked}, and the view {view!r} has it as {kind}; leave the type "
                f"as it is, and cast the DataFrame: df.withColumn({name!r}, df[{name!r}].cast({asked!r}))"
            )


@takes(session=SESSION)
def register(session: SparkSession) -> None:
    """Make ``format("tensor")`` known to a session, and pass on the session's settings of S3 (``fs.s3a.*``).

    A session finds the format without this if the package ``pyspark_tensorlake`` is installed. S3 is then reached
    only by the options of a read or write and by the environment.

    Raises
    ------
    InvalidOptionError
        If it is no session.
    """
    session.dataSource.register(_configured(settings_of_session(session)))


def _configured(settings: Mapping[str, str]) -> type[TensorDataSource]:
    """Return the data source for one session; a class made here travels with its settings."""
    if not settings:
        return TensorDataSource

    class Configured(TensorDataSource):
        s3a = settings

    return Configured
