"""A tensor of a Delta table that Spark reads by itself, as a DataFrame of blocks."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

from tensorlake_spark.delta.log.time_travel import as_time
from tensorlake_spark.errors import (
    FormatError,
    InvalidOptionError,
    MissingDependencyError,
    TableNotFoundError,
    TensorLakeError,
    TensorNotFoundError,
    did_you_mean,
)
from tensorlake_spark.indexing import Predicate, parse_key
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.reading.read import is_full
from tensorlake_spark.rows.metadata import META_COLUMNS, Meta, read_meta
from tensorlake_spark.spark.cluster.arguments import (
    ANY_KEY,
    INTEGER,
    NOTHING,
    PATH,
    SESSION,
    TEXT,
    TIME,
    takes,
)
from tensorlake_spark.spark.cluster.table_versions import newest_version, version_of
from tensorlake_spark.spark.functions.collect_tensor import NOTE
from tensorlake_spark.spark.functions.decoding import COLUMNS, check_runs, groups
from tensorlake_spark.spark.functions.slice_predicate import parts_of, rows_sql, select_parts
from tensorlake_spark.spark.source.cell_columns import quoted
from tensorlake_spark.spark.source.schemas import BLOCKS
from tensorlake_spark.spark.source.sparse_blocks import runs_of
from tensorlake_spark.tensor.spec import check_id, dtype_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH_BYTES = 8 << 20


@takes(
    spark=SESSION,
    table=PATH,
    id=TEXT,
    slice=ANY_KEY,
    version=INTEGER | TEXT | NOTHING,
    timestamp=TIME | NOTHING,
)
def read_tensor(
    spark: SparkSession,
    table: str | os.PathLike[str],
    id: str,  # noqa: A002 -- as the option of format("tensor")
    slice: Any = "",  # noqa: A002
    version: int | str | None = None,
    timestamp: str | dt.datetime | None = None,
) -> DataFrame:
    """Return the blocks of a tensor as a DataFrame, read through Spark's own Delta reader.

    It has the columns ``id, lo, offset, tensor``, as the view ``blocks``. It is lazy and stays at one version of
    the table. Unlike with ``pushFilters``, filters on it do not affect other DataFrames.

    Parameters
    ----------
    spark : SparkSession
        A session with Delta.
    table : str or path
        A path, if it has a ``/``, or the name of a table in the catalogue.
    id : str
        The tensor.
    slice : object
        What to read, as a NumPy key or its text. Names of axes and negative numbers work.
    version : int or str, optional
        A version of the table, or a tag. By default the newest.
    timestamp : str or datetime, optional
        Instead of `version`: the version that was the newest then. A time without a zone is in the time zone of
        the machine.

    Raises
    ------
    TableNotFoundError
        If Spark finds no such table.
    TensorNotFoundError
        If there is no such tensor. The message offers the nearest names.
    FormatError
        If the table has no tensors.
    InvalidKeyError, InvalidSliceError
        If the slice does not fit the tensor, or has an index list.
    InvalidOptionError
        If the tensor combines duplicates, because an element may then lie in several rows. Or if there is no such
        tag or version, or if both version and timestamp are given.

    Notes
    -----
    Chunks full of the fill value are not stored, so they have no row here; `collect_tensor` fills them in. Blocks
    of a sparse tensor may overlap; each element is in one of them.

    Examples
    --------
    ::

        blocks = read_tensor(spark, path, "photos", "3:5, ..., ::2")
        array = collect_tensor(blocks)
    """
    check_id(id)
    if version is not None and timestamp is not None:
        raise InvalidOptionError("version and timestamp exclude each other; give one of them")
    with _told(table):
        frame, at = _load(spark, table, version, timestamp)
        meta = _meta(frame, id, f"{at} of {table}")
    spec = meta.spec
    if spec.params.get("duplicates", "error") != "error":
        raise InvalidOptionError(
            f"tensor {id!r} combines duplicates by {spec.params['duplicates']!r}, and rows are decoded one by "
            "one here; read it with spark.read.format('tensor'), which brings them together"
        )
    parts = parse_key(slice, spec.axes) if isinstance(slice, str) else parts_of(slice)
    selection = select_parts(parts, spec.shape)
    check_runs(selection)
    rows = frame.where(rows_sql(parts, id, spec.shape)).select(*COLUMNS)
    blocks = rows.mapInArrow(partial(_block_batches, key=parts, shape=spec.shape), BLOCKS)
    note = {
        "shape": selection.result_shape,
        "dtype": dtype_name(spec.dtype),
        "fill": spec.fill.hex(),
        "is_sparse": layout_of(spec.layout).is_sparse,
        "is_full": is_full(meta),
    }
    tensor = f.col("tensor").alias("tensor", metadata={NOTE: json.dumps(note)})
    return blocks.select("id", "lo", "offset", tensor)


@contextmanager
def _told(table: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what Spark says of a table that it cannot read into an error of ours."""
    try:
        yield
    except TensorLakeError:
        raise
    except Exception as error:
        if "S3AFileSystem" in str(error):
            raise MissingDependencyError(
                f"{table}: this session has not the jars by which Spark reads s3a://; start it by "
                "local_session(s3=True), or with conf/s3a.conf"
            ) from error
        if not isinstance(error, AnalysisException):
            raise
        said = str(error).splitlines()[0]
        if "DATA_SOURCE_NOT_FOUND" in said:
            raise MissingDependencyError(
                "this session cannot read Delta tables: start it with the packages and settings of "
                "conf/spark-defaults.conf, as local_session() does"
            ) from error
        if any(word in said for word in ("VERSION", "TIMESTAMP", "TIME_TRAVEL")):
            raise InvalidOptionError(f"{table}: {said}") from error
        raise TableNotFoundError(
            f"Spark finds no Delta table {os.fspath(table)!r}, which is a path if it has a '/', else a name of the "
            f"catalogue: {said}"
        ) from error


def _load(
    spark: SparkSession,
    table: str | os.PathLike[str],
    version: int | str | None,
    timestamp: str | dt.datetime | None,
) -> tuple[DataFrame, str]:
    """Return a table at a version that does not move, for a Delta DataFrame looks for a newer one on every use."""
    name = os.fspath(table)
    is_path = "/" in name or os.sep in name
    place = f"delta.{quoted(name)}" if is_path else ".".join(map(quoted, name.split(".")))
    reader = spark.read.format("delta")
    if timestamp is not None:
        time = as_time(timestamp).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")
        reader, what = reader.option("timestampAsOf", time), f"the version at {time}"
    else:
        at = newest_version(spark, place) if version is None else version_of(spark, place, version)
        reader, what = reader.option("versionAsOf", at), f"version {at}"
    return (reader.load(name) if is_path else reader.table(name)), what


def _meta(frame: DataFrame, tensor_id: str, place: str) -> Meta:
    missing = [name for name in (*COLUMNS, *META_COLUMNS) if name not in frame.columns]
    if missing:
        raise FormatError(f"{place} has no column {missing[0]!r}; it is not a table of tensors")
    found = frame.where(Predicate(tensor_id, data=False).to_sql()).select(*META_COLUMNS)
    rows = found.orderBy(f.desc("seq")).limit(1).collect()
    if not rows:
        known = [r[0] for r in frame.where("nnz = 0").select("id").distinct().collect()]
        raise TensorNotFoundError(
            f"there is no tensor {tensor_id!r} in {place}{did_you_mean(tensor_id, known)}"
        )
    return read_meta(rows[0].asDict())


def _block_batches(
    batches: Iterator[pa.RecordBatch], key: Sequence[Any], shape: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for group in groups(batch.to_struct_array(), key, shape):
            for some in runs_of(group.nbytes, _BATCH_BYTES):
                yield group.take(some).decode()
