"""Delta tables as records: what Spark's own reader of Delta finds in one version of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidTensorError,
    MissingDependencyError,
)
from tensorlake_spark.spark.cluster.table_versions import newest_version
from tensorlake_spark.spark.ingest.records.record_files import WRONG, Records, of_groups, unclear
from tensorlake_spark.spark.ingest.source_files import is_object
from tensorlake_spark.spark.ingest.text_lines import FILE, ROW
from tensorlake_spark.spark.source.cell_columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delta_records(session: SparkSession, paths: Sequence[str], version: int | None) -> Records:
    """Return the records of Delta tables, of each at one version.

    Parameters
    ----------
    session : SparkSession
        With Delta's jars and settings.
    paths : sequence of str
        Folders of the tables.
    version : int, or None
        Of all of them; the newest of each by default, so that others may go on to write to it.

    Raises
    ------
    InvalidOptionError
        If a table does not have that version.
    InvalidTensorError
        If a table cannot be read.
    MissingDependencyError
        If the session does not know Delta.
    """
    frames = []
    unread: dict[str, str] = {}
    for path in paths:
        # Taken literally, unlike by Spark's own formats.
        place = path.replace("s3://", "s3a://", 1) if is_object(path) else f"file://{path}"
        try:
            session.read.format("delta").load(place)  # says so if the session does not know Delta
            newest = newest_version(session, f"delta.{quoted(place)}")
            if version is not None and not 0 <= version <= newest:
                raise InvalidOptionError(
                    f"--source-version {version}: {path} has versions up to {newest}"
                )
            wanted = newest if version is None else version
            read = session.read.format("delta").option("versionAsOf", wanted).load(place)
        except AnalysisException as error:
            said = str(error).splitlines()[0]
            if "DATA_SOURCE_NOT_FOUND" in said:
                raise MissingDependencyError(
                    f"{path} is a Delta table, which this session cannot read: start spark-submit with the "
                    "packages and settings of conf/spark-defaults.conf"
                ) from error
            raise InvalidTensorError(f"{path} cannot be read: {said}") from error
        odd = unclear(read.columns, path)
        good = [x.name for x in read.schema.fields if _is_use(x.dataType) and x.name not in odd]
        unread |= {
            field.name: f"of {path} holds {field.dataType.simpleString()}, which makes neither indices "
            "nor values"
            for field in read.schema.fields
            if field.name not in good
        } | odd
        # Delta's reader does not tell the number of a row, so errors name the data file.
        here = [f.col("_metadata.file_path").alias(FILE), f.lit(None).cast("bigint").alias(ROW)]
        columns = [f.col(quoted(name)) for name in good]
        frames.append(read.select(*columns, *here, f.lit(None).cast("string").alias(WRONG)))
    made = of_groups(frames, paths)
    return Records(made.frame, made.columns, {**made.absent, **unread})


def _is_use(kind: t.DataType) -> bool:
    """Whether a column may make up indices or values."""
    return isinstance(kind, (t.NumericType, t.StringType, t.BooleanType, t.DateType,
                             t.TimestampType, t.TimestampNTZType))  # fmt: skip
