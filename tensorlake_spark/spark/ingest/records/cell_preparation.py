"""Records of files as cells of a tensor: looked at, measured, and grouped by block.

All of it runs on executors, by Spark's own expressions where it can. The driver knows how many records
there are, the bounds of every axis and the labels, and nothing is written before all records have been
looked at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.spark.cluster.s3a import to_hadoop
from tensorlake_spark.spark.ingest.records.axis_rules import Rule
from tensorlake_spark.spark.ingest.records.bins import Value, index_of
from tensorlake_spark.spark.ingest.records.cell_options import CellOptions, table_records
from tensorlake_spark.spark.ingest.records.coordinates import (
    AxisColumn,
    Found,
    Measured,
    bounded,
    listed,
    look,
)
from tensorlake_spark.spark.ingest.records.matrices import matrix_records
from tensorlake_spark.spark.ingest.records.record_files import (
    Records,
    tns_records,
)
from tensorlake_spark.spark.ingest.source_files import is_object, options_of
from tensorlake_spark.spark.source.cell_columns import value_dtype
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write.cells import stays_sparse
from tensorlake_spark.spark.source.write.grouping import group_cells
from tensorlake_spark.tensor.labels import Labels, Listed
from tensorlake_spark.tensor.spec import dtype_of
from tensorlake_spark.writing.options import auto_layout, integers, tell_layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_TABLES = ("csv", "parquet", "delta")
_TIMEZONE = "spark.sql.session.timeZone"


@dataclass(frozen=True, kw_only=True)
class CellJob:
    """What is to be done with cells; see `tensorlake_spark.spark.ingest.ingestion.run`.

    Attributes
    ----------
    storage : Storage
        Where the table lies.
    tensor_id : str
        Name of the tensor.
    family : {"tns", "matrices", "csv", "parquet", "delta"}
        What the files are.
    choices : CellOptions
        How their records become cells.
    mode : {"error", "overwrite", "append"}
        What to do if the tensor is there.
    options : mapping of str to str
        Further options of ``format("tensor")``.
    dry_run : bool
        Whether to make the plan only.
    """

    storage: Storage
    tensor_id: str
    family: str
    choices: CellOptions
    mode: str = "error"
    options: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False


@dataclass(frozen=True, eq=False)
class Prepared:
    """Cells that are ready to be written.

    Attributes
    ----------
    cells : DataFrame
        A column for every axis, and ``value``; grouped by block.
    shape : tuple of int
        Of the tensor.
    options : mapping of str to str
        Of ``format("tensor")``; all but the id and where the table is.
    found : Found
        What a look at all records found.
    dtype : numpy.dtype
        Of the tensor.
    chunk : tuple of int
        Shape of the chunks as which they are written; none where they are rows of a sparse layout.
    """

    cells: DataFrame
    shape: tuple[int, ...]
    options: Mapping[str, str]
    found: Found
    dtype: np.dtype[Any]
    chunk: tuple[int, ...] = ()


@contextmanager
def prepared(
    session: SparkSession, job: CellJob, paths: Sequence[str], old: Meta | None
) -> Iterator[Prepared]:
    """Look at all records, and yield them as cells while Spark keeps what they are computed from.

    Parameters
    ----------
    session : SparkSession
        Whose executors read the files.
    job : CellJob
        What is to be done.
    paths : sequence of str
        Of files of one family.
    old : Meta or None
        The tensor to which the cells are added: its labels and bins hold.

    Raises
    ------
    InvalidOptionError, InvalidTensorError
        If a record or an option will not do.
    """
    given = dict(job.options)
    shape = given.pop("shape", None)
    asked = None if shape is None else integers(shape, "--shape")
    conf = {
        _TIMEZONE: job.choices.timezone,
        # conf/spark-defaults.conf has a small one for rows of megabytes; these are rows of a few bytes.
        "spark.sql.parquet.columnarReaderBatchSize": "4096",
    }
    for path in filter(is_object, paths[:1]):
        conf |= to_hadoop(options_of(path))  # for Spark's own readers
    with _settings(session, conf):
        source = _described(session, job, paths, old, given)
        if asked is not None and len(asked) != len(source.axes):
            raise InvalidOptionError(
                f"--shape {asked} has {len(asked)} axes, not {len(source.axes)}"
            )
        if asked is not None and min(asked, default=0) < 0:
            raise InvalidOptionError(f"--shape {asked} has a length below 0")
        measured = Measured.of(source.records, source.axes, source.value, source.dtype)
        try:
            yield _prepare(session, job, measured.decided(), asked, source, given)
        finally:
            measured.frame.unpersist()


@dataclass(frozen=True, eq=False)
class _Described:
    """Records, and what becomes of them."""

    records: Records
    axes: list[AxisColumn]
    value: Value
    dtype: np.dtype[Any] | None
    least_shape: tuple[int, ...]
    old: Meta | None


def _described(
    session: SparkSession,
    job: CellJob,
    paths: Sequence[str],
    old: Meta | None,
    given: dict[str, str],
) -> _Described:
    """Return the records of some files, and how they become cells; `given` gets what the files say themselves."""
    family, choices = job.family, job.choices
    dtype = dtype_of(given["dtype"]) if "dtype" in given else None
    if old is not None:
        if dtype not in (None, old.spec.dtype):
            raise InvalidOptionError(
                f"tensor {old.spec.id!r} has dtype {old.spec.dtype}, and an append keeps it; leave out "
                f"--dtype {dtype}"
            )
        dtype = old.spec.dtype
    least: tuple[int, ...] = ()
    choices = replace(choices, delimiter=_delimiter(choices.delimiter))
    if family in _TABLES:
        if "axes" in given:
            raise InvalidOptionError(
                "--axes names the axes of arrays and matrices; --axis those of tables"
            )
        records, axes, value = table_records(session, paths, family, choices, old)
        given["axes"] = ",".join(axis.name for axis in axes)
        if value.how != "column" and given.get("duplicates", "sum") != "sum":
            raise InvalidOptionError(
                f"--value {choices.value!r} adds up all records of a cell; --duplicates is for --value COLUMN"
            )
    else:
        if choices.axis or choices.value or choices.column or choices.where:
            raise InvalidOptionError(
                f"--axis, --value, --column and --where are for tables; {paths[0]} says itself what its axes "
                "and values are (--axes names the axes)"
            )
        if family == "tns":
            records, ndim = tns_records(session, paths)
            rule = Rule("int", start=1, is_labelled=False)
        else:
            records, least, natural = matrix_records(session, paths)
            ndim, rule, dtype = len(least), Rule("int"), dtype or natural
            given.setdefault("dtype", dtype.name)
        names = [name.strip() for name in given.get("axes", "").split(",") if name.strip()]
        if names and len(names) != ndim:
            raise InvalidOptionError(f"--axes names {len(names)} axes, {paths[0]} has {ndim}")
        names = names or [f"i{k}" for k in range(ndim)]
        axes = [AxisColumn(name, f"i{k}", rule) for k, name in enumerate(names)]
        value = Value("column", "value")
    if old is not None and len(axes) != old.spec.ndim:
        raise InvalidTensorError(
            f"{paths[0]} has {len(axes)} axes, tensor {old.spec.id!r} has {old.spec.ndim}"
        )
    return _Described(records, axes, value, dtype, least, old)


def _delimiter(text: str | None) -> str | None:
    """Return what separates the fields of a line; a tab may be given as two characters, for shells and YAML."""
    if text == "\\t":
        return "\t"
    if text is not None and (len(text) != 1 or text in '"\r\n'):
        raise InvalidOptionError(
            f"--delimiter {text!r} is not one character between fields, such as ';' or '\\t' for a tab"
        )
    return text


@contextmanager
def _settings(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Run with other settings of the session, and restore them."""
    before = {name: session.conf.get(name, None) for name in conf}
    try:
        for name, value in conf.items():
            try:
                session.conf.set(name, value)
            except Exception as error:
                shown = name if name.startswith("fs.s3a.") else f"{name} = {value!r}"
                if name == _TIMEZONE:
                    shown = (
                        f"--timezone {value!r} is not a time zone such as Europe/Berlin or +01:00"
                    )
                raise InvalidOptionError(f"{shown}: {str(error).splitlines()[0]}") from error
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


def _prepare(
    session: SparkSession,
    job: CellJob,
    measured: Measured,
    asked: tuple[int, ...] | None,
    source: _Described,
    given: dict[str, str],
) -> Prepared:
    """Look at the records, map them to cells, and group these by block."""
    old = None if source.old is None else source.old.spec
    found = look(measured)
    # A tensor that is there goes on without a record as it is; a matrix says its shape itself.
    if not found.records and old is None and not source.least_shape:
        raise InvalidTensorError("the sources hold no record, or --where leaves none")
    measured, lengths = bounded(measured, found, asked)
    numbered = listed(measured, {} if old is None else dict(old.labels))
    labels: dict[str, Labels] = {}
    for k, axis in enumerate(measured.axes):
        kept = axis.settled.labels() if axis.settled.is_regular else Listed(numbered[k][0])
        labels |= {} if kept is None else {axis.name: kept}
        lengths[k] = len(numbered[k][0]) if k in numbered else lengths[k]
    floors = [source.least_shape or lengths, lengths if old is None else old.shape]
    shape = asked or tuple(max(sides) for sides in zip(lengths, *floors, strict=True))
    if measured.value.how != "column":
        given["duplicates"] = "sum"
    cells = _mapped(session, measured, {k: places for k, (_, places) in numbered.items()})
    dtype = source.dtype or value_dtype(cells.schema["value"].dataType)
    is_dense = old is None and _choose_layout(job, shape, found.cells, given)
    block = old.block_shape if old is not None else _block(shape, dtype, found.cells, given)
    names = [axis.name for axis in measured.axes]
    grouped = group_cells(cells, shape, block or (1,) * len(shape), names)
    given["shape"] = ",".join(map(str, shape))
    if labels:
        given["labels"] = json.dumps({name: kept.to_json() for name, kept in labels.items()})
    return Prepared(grouped, shape, given, found, dtype, block if is_dense else ())


def _mapped(
    session: SparkSession, measured: Measured, places: Mapping[int, Mapping[str, int]]
) -> DataFrame:
    """Return the cells: a column for every axis, and ``value``."""
    axes, value = measured.axes, measured.value
    measures = [measured.measure(k).alias(f"m{k}") for k in range(len(axes))]
    frame = measured.frame.select(*measures, measured.number().alias("value"))
    for k, index in places.items():
        table = pa.table(
            {
                f"m{k}": pa.array(list(index), pa.string()),
                f"p{k}": pa.array(index.values(), pa.int64()),
            }
        )
        frame = frame.join(f.broadcast(session.createDataFrame(table)), f"m{k}")
    indices = [
        (f.col(f"p{k}") if k in places else index_of(axis.settled, f.col(f"m{k}"))).alias(axis.name)
        for k, axis in enumerate(axes)
    ]
    cells = frame.select(*indices, "value")
    if value.how == "column":
        return cells
    total = f.count(f.lit(1)) if value.how == "count" else f.sum("value")
    return cells.groupBy(*(axis.name for axis in axes)).agg(total.alias("value"))


def _block(
    shape: Sequence[int], dtype: np.dtype[Any], cells: int, given: dict[str, str]
) -> tuple[int, ...]:
    """Return the block shape of a new tensor, chosen by how many elements it has; none for some layouts."""
    layout = layout_of(given["layout"])
    if not layout.has_blocks:
        return ()
    if "blockShape" in given:
        return integers(given["blockShape"], "--block-shape")
    block = layout.default_block(shape, dtype, cells / max(1.0, math.prod(map(float, shape))))
    given["blockShape"] = ",".join(map(str, block))
    return block


def _choose_layout(job: CellJob, shape: Sequence[int], cells: int, given: dict[str, str]) -> bool:
    """Put the layout of a new tensor into `given`; return whether its cells are written as chunks."""
    if given.get("layout", "auto") != "auto":
        return False
    options = SparkWriteOptions.parse({**given, "path": job.storage.uri}).write
    reason = stays_sparse(options, overwrite=job.mode != "append")
    name = "bsgs"
    if not reason:
        density = cells / max(1.0, math.prod(map(float, shape)))
        name, reason = auto_layout(density, options, is_filled=False, by_elements=True)
        reason = f"about {reason}"
        if name == "ftsf" and not (cells and shape):
            name, reason = "bsgs", "there is no cell, or no axis"
    tell_layout(job.tensor_id, name, reason)
    given["layout"] = name
    return name == "ftsf"
