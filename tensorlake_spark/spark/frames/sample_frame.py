"""A dataset as a DataFrame: scalars as they are, media as tensors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.datasets.apart.inner_tables import TENSORS_FOLDER, pinned
from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.requirements import SAMPLES, SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, MissingDependencyError, did_you_mean
from tensorlake_spark.spark.cluster.arguments import (
    INTEGER,
    MAPPING,
    NAMES,
    NOTHING,
    PATH,
    SESSION,
    TEXT,
    takes,
)
from tensorlake_spark.spark.cluster.s3a import options_in_session, to_hadoop
from tensorlake_spark.spark.frames.image_columns import check_on_error
from tensorlake_spark.spark.frames.sample_decoding import (
    ApartCondition,
    ColumnDecoding,
    is_decoded,
    is_tensor,
)
from tensorlake_spark.spark.frames.spark_condition import spark_condition
from tensorlake_spark.spark.source.cell_columns import quoted
from tensorlake_spark.spark.source.schemas import TENSOR

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@takes(
    session=SESSION,
    uri=PATH,
    columns=NAMES | NOTHING,
    where=TEXT | NOTHING,
    version=INTEGER | TEXT | NOTHING,
    on_error=TEXT,
    storage_options=MAPPING | NOTHING,
)
def samples(
    session: SparkSession,
    uri: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    where: str | None = None,
    version: int | str | None = None,
    *,
    on_error: str = "raise",
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the samples of a dataset as a DataFrame, with the column ``sid`` first.

    Scalars, texts, lists and links are as they are stored, and so are videos. Images, masks, sounds and DICOM files
    become tensors: the struct TENSOR, which ``tensor_slice`` and the other functions take. Arrays, boxes and
    embeddings are tensors too. Groups are structs, such as ``training.boxes``. It is lazy and stays at one version.
    Columns that nobody uses later are not read, and conditions on scalars reach the files.

    Parameters
    ----------
    session : SparkSession
        A session with Delta.
    uri : str or path
        The dataset: a path or a URL.
    columns : sequence of str, optional
        Names of columns, with ``/`` between groups. The name of a group means all its columns. By default all.
    where : str, optional
        SQL on scalar columns and the fields of media, as for `Dataset.to_arrow`:
        ``"image.height > 512 AND label = 'cat'"``. It skips files and row groups. Apart columns are read only for the
        samples that fulfil the other conditions of an ``AND``.
    version : int or str, optional
        A version of the dataset, or a tag. By default the newest.
    on_error : str
        ``"raise"`` ends the task at the first sample that cannot be decoded, and names its sid; ``"null"`` makes it
        null.
    storage_options : mapping, optional
        As for `dataset`. What is missing is taken from the session's settings of S3A.

    Raises
    ------
    TableNotFoundError
        If there is no table.
    FormatError
        If the table is not a dataset.
    InvalidOptionError
        If there is no such column or version, or `where` is not valid.

    Examples
    --------
    ::

        frame = samples(spark, "s3://bucket/coco", ["image", "label"], where="image.height > 512")
        frame.select("sid", tensor_mean("image"), "label")
    """
    check_on_error("samples", on_error)
    options = options_in_session(session, storage_options, str(uri))
    storage = Storage(str(uri), options)
    snapshot = Snapshot.open(storage, version, kind=SAMPLES)
    schema = SampleSchema.from_arrow(snapshot.schema)
    chosen = chosen_columns(schema, columns, storage.uri)
    flat = flat_samples(session, snapshot, chosen, where, on_error)
    return flat.select(SID, *_grouped(chosen))


def flat_samples(
    session: SparkSession,
    snapshot: Snapshot,
    names: Sequence[str],
    where: str | None = None,
    on_error: str = "raise",
    fields: Sequence[str] = (),
) -> DataFrame:
    """Return columns of a version of a dataset with ``sid`` first; those of groups have ``/`` in their names.

    Parameters
    ----------
    session, on_error
        As for `samples`.
    snapshot : Snapshot
        The version.
    names : sequence of str
        The columns.
    where : str, optional
        Which samples, as for `samples`.
    fields : sequence of str
        Fields of stored columns that are wanted beside them, such as ``image/height``.
    """
    storage, schema = snapshot.storage, SampleSchema.from_arrow(snapshot.schema)
    frame = delta_frame(session, storage, snapshot.version)
    if where is not None:
        condition, asks_apart = spark_condition(where, schema, snapshot.schema)
        frame = frame.where(condition)
        if asks_apart:
            frame = frame.where(_matching(storage, snapshot.version, where))
    has_tiles = pinned(snapshot, TENSORS_FOLDER) is not None
    made = {}
    for name in names:
        stored, kind = _stored(name), schema[name]
        if is_decoded(kind) or kind.apart or (has_tiles and is_tileable(kind)):
            decoding = ColumnDecoding(storage, snapshot.version, name, kind, on_error)
            type_ = TENSOR if is_tensor(kind) else frame.select(stored).schema[0].dataType
            stored = decoding_udf(decoding, type_)(stored, f.col(SID))
        made[name] = stored
    # Spark runs functions on groups one by one; a group's struct is put together after them.
    made |= {name: _stored(name) for name in fields}
    return frame.select(SID, *(column.alias(name) for name, column in made.items()))


def chosen_columns(schema: SampleSchema, columns: Sequence[str] | None, uri: str) -> list[str]:
    """Return names of columns in which groups stand for what is in them.

    Raises
    ------
    InvalidOptionError
        If there is no such column.
    """
    if columns is None:
        return list(schema)
    out: dict[str, None] = {}
    groups = schema.groups()
    for name in columns:
        if name == SID:
            continue
        if name in groups:
            out |= dict.fromkeys(n for n in schema if n.startswith(f"{name}/"))
        elif name in schema:
            out[name] = None
        else:
            raise InvalidOptionError(
                f"the dataset at {uri} has no column {name!r}{did_you_mean(name, [*schema, *groups])}; its columns "
                f"are {', '.join(schema)}"
            )
    return list(out)


def spark_place(uri: str) -> str:
    """Return the name of a table's place as Spark's own readers take it.

    Examples
    --------
    >>> spark_place("s3://bucket/coco"), spark_place("/data/coco")
    ('s3a://bucket/coco', '/data/coco')
    """
    return uri.replace("s3://", "s3a://", 1) if uri.startswith("s3://") else uri


def delta_frame(session: SparkSession, storage: Storage, version: int) -> DataFrame:
    """Return a table at a version as Spark reads it.

    Raises
    ------
    MissingDependencyError
        If the session does not know Delta, or s3a://.
    """
    try:
        place = spark_place(storage.uri)
        reader = session.read.format("delta").option("versionAsOf", version)
        if place.startswith("s3a://"):  # Delta gives its reader those options that begin with fs.
            reader = reader.options(**to_hadoop(storage.options))
        return reader.load(place)
    except Exception as error:
        said = str(error)
        if "S3AFileSystem" in said or "DATA_SOURCE_NOT_FOUND" in said:
            raise MissingDependencyError(
                f"this session cannot read {storage.uri}: start it with the packages and settings of "
                "conf/spark-defaults.conf, and for S3 those of conf/s3a.conf, as local_session(s3=True) does"
            ) from error
        raise


def _stored(name: str) -> Column:
    return f.col(".".join(map(quoted, name.split("/"))))


def decoding_udf(decoding: ColumnDecoding, kind: t.DataType) -> Any:
    """Return a decoding as an Arrow UDF that takes the stored column and the sid."""

    def decoded(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        return decoding(batches)

    spark: Any = f  # whose own type hints leave it out
    return spark.arrow_udf(decoded, kind)


def _matching(storage: Storage, version: int, where: str) -> Column:
    """Return whether the parts of a condition are true that ask columns which are kept apart."""
    condition = ApartCondition(storage, version, where)

    def matching(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return condition(batches)

    spark: Any = f
    found: Column = spark.arrow_udf(matching, t.BooleanType())(f.col(SID))
    return found


def _grouped(names: Sequence[str], prefix: str = "") -> list[Column]:
    """Return columns by names with ``/``, those of a group as one struct."""
    out: dict[str, list[str]] = {}
    for name in names:
        out.setdefault(name[len(prefix) :].split("/")[0], []).append(name)
    return [
        f.col(quoted(inner[0])).alias(part)
        if inner == [f"{prefix}{part}"]
        else f.struct(*_grouped(inner, f"{prefix}{part}/")).alias(part)
        for part, inner in out.items()
    ]
