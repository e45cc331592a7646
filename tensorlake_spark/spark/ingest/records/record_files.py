"""Records of files, a row of Spark each: CSV, Parquet and FROSTT's ``.tns``."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, did_you_mean
from tensorlake_spark.spark.ingest.source_files import seekable
from tensorlake_spark.spark.ingest.text_lines import (
    FILE,
    LINE,
    ROW,
    WHOLE_FILES,
    find_line,
    first_line,
    local_path,
    members,
    reading,
    spark_path,
    text_lines,
)
from tensorlake_spark.spark.source.cell_columns import quoted
from tensorlake_spark.spark.source.schemas import SPARK_TYPES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

WRONG = "__wrong"
"""Column that is not null where a line could not be cut into columns."""

_OWN = (LINE, FILE, ROW, WRONG)
_UNCLOSED = "has a quote that is not closed (a quoted field may not span lines)"
_TAKEN = "has a name that this job gives to a column of its own; rename it"

_EPOCH = "timestamp_ntz'1970-01-01 00:00:00'"


@dataclass(frozen=True, eq=False)
class Records:
    """What files hold, before anything of it is an index or a value.

    Attributes
    ----------
    frame : DataFrame
        A row for each record, with `FILE`, `ROW`, `WRONG` and, of text, `LINE`.
    columns : tuple of str
        Its own columns, those of text as they stand in the file.
    absent : mapping of str to str
        Columns that cannot be used, and why.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    absent: Mapping[str, str] = field(default_factory=dict)

    def column(self, name: str, for_what: str) -> Column:
        """Return a column by its name.

        Raises
        ------
        InvalidOptionError
            If there is none, or it cannot be used; the nearest is offered.
        """
        if name in self.absent:
            raise InvalidOptionError(f"{for_what}: column {name!r} {self.absent[name]}")
        if name not in self.columns:
            raise InvalidOptionError(
                f"{for_what}: there is no column {name!r}{did_you_mean(name, self.columns)}; there are "
                f"{', '.join(self.columns)}"
            )
        return f.col(quoted(name))

    def kind(self, name: str) -> t.DataType:
        """Return the type of a column."""
        return self.frame.schema[name].dataType


def place_of(row: Row) -> str:
    """Return where a record lies: its file and, where that can be found, its line or row."""
    path, number = local_path(row[FILE]), row[ROW]
    if number is not None and path.lower().endswith(".parquet"):
        return f"{path}, row {number} (from 0)"
    if number is None and LINE in row:
        number = find_line(path, row[LINE])
    return path if number is None else f"{path}, line {number}"


def _united(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b), frames)


def tns_records(session: SparkSession, paths: Sequence[str]) -> tuple[Records, int]:
    """Return the lines of ``.tns`` files, and the rank: columns ``i0`` .. and ``value``, as text.

    Raises
    ------
    InvalidTensorError
        If a file holds no line, or files begin with lines of different lengths.
    """
    widths: dict[str, int] = {}
    for path in paths:
        for member in members(path):
            line = first_line(path, member, comment="#")
            if line is not None:
                widths.setdefault(path, len(line.split("#")[0].split()))
    if not widths:
        raise InvalidTensorError(f"{paths[0]} holds no element; give at least one line")
    first, width = next(iter(widths.items()))
    for path, other in widths.items():
        if other != width:
            raise InvalidTensorError(
                f"{path} begins with a line of {other} fields, {first} with one of {width}: files of one "
                "tensor have one rank, others go under another --id"
            )
    if width < 2:
        raise InvalidTensorError(
            f"{first} begins with a line of {width} fields; a line is the indices of an element, from 1 "
            "on, and its value"
        )
    lines = text_lines(session, paths).withColumn(
        "__fields", f.trim(f.translate(f.substring_index(LINE, "#", 1), "\t\r", "  "))
    )
    lines = lines.where(f.length("__fields") > 0)
    lines = lines.withColumn("__fields", f.split("__fields", " +"))
    names = [*(f"i{k}" for k in range(width - 1)), "value"]
    fields = [f.get("__fields", f.lit(k)).alias(name) for k, name in enumerate(names)]
    count = f.size("__fields")
    told = f" fields, the first line of {first} has {width}: {width - 1} indices and a value"
    wrong = f.when(count != width, f.concat(f.lit("has "), count.cast("string"), f.lit(told)))
    frame = lines.select(*fields, LINE, FILE, ROW, wrong.alias(WRONG))
    return Records(frame, tuple(names)), width - 1


def csv_records(session: SparkSession, paths: Sequence[str], delimiter: str | None) -> Records:
    """Return the records of CSV files with a header, all columns as text.

    Files may have their columns in different orders. A column that some of them lack cannot be used.

    Raises
    ------
    InvalidTensorError
        If a file has no header, or its header repeats a name.
    """
    groups: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for path in paths:
        sep = delimiter or ("\t" if ".tsv" in path.lower()[-8:] else ",")
        headers = {first_line(path, member) for member in members(path)}
        if len(headers) > 1:
            raise InvalidTensorError(f"{path} has members with different headers; unpack it")
        groups.setdefault((sep, *_header(path, headers.pop(), sep)), []).append(path)
    frames = []
    for (sep, names, header), group in groups.items():
        lines = text_lines(session, group).where(f.col(LINE) != header)
        schema = ", ".join(f"{quoted(name)} string" for name in (*names, WRONG))
        options = {"sep": sep, "quote": '"', "escape": '"', "columnNameOfCorruptRecord": WRONG}
        cut = lines.select(f.from_csv(LINE, schema, options).alias("r"), LINE, FILE, ROW)
        told = f"has not the {len(names)} fields of the header (a quoted field may not span lines)"
        wrong = f.when(f.col(f"r.{WRONG}").isNotNull(), told)
        wrong = wrong.when(_is_open(f.col(f"r.{quoted(names[-1])}"), sep, len(names)), _UNCLOSED)
        columns = [f.col(f"r.{quoted(n)}").alias(n) for n in names]
        frames.append(cut.select(*columns, LINE, FILE, ROW, wrong.alias(WRONG)))
    return of_groups(frames, [group[0] for group in groups.values()])


def _is_open(last: Column, sep: str, count: int) -> Column:
    """Return whether a line ends inside of a quoted field, as far as its last field is what the line ends with.

    Spark takes the end of the line for the end of the field, and what follows in the next line for a record.
    A quote in a field that does not begin with one is a character like others, as in ``5" pipe``.
    """
    quotes = f.length(LINE) - f.length(f.replace(LINE, f.lit('"'), f.lit("")))
    before, text = f.lit(sep if count > 1 else ""), f.coalesce(last, f.lit(""))
    is_whole = f.col(LINE).endswith(f.concat(before, text))
    is_quoted = f.col(LINE).endswith(f.concat(before, f.lit('"'), text, f.lit('"')))
    return (quotes % 2 == 1) & ~(is_whole | is_quoted)


def _header(path: str, line: str | None, sep: str) -> tuple[tuple[str, ...], str]:
    """Return the names of a header's columns, and the line itself."""
    if line is None:
        raise InvalidTensorError(f"{path} is empty: its first line should name the columns")
    try:
        names = tuple(next(csv.reader([line], delimiter=sep)))
    except csv.Error:
        raise InvalidTensorError(
            f"{path} is not a CSV file: its first line should name the columns, and {line[:40]!r} is not a line of text"
        ) from None
    lower = [name.lower() for name in names]
    repeated = [name for name in names if lower.count(name.lower()) > 1]
    if repeated or "" in names:
        raise InvalidTensorError(
            f"{path}: its first line should name the columns, each once; "
            + (f"{repeated[0]!r} is there more than once" if repeated else "one has no name")
        )
    for name in names:
        if name.lower() in _OWN:
            raise InvalidTensorError(f"{path}: column {name!r} {_TAKEN}")
    return names, line


def parquet_records(session: SparkSession, paths: Sequence[str]) -> Records:
    """Return the records of Parquet files; columns may have different types in different files.

    Raises
    ------
    InvalidTensorError
        If a file cannot be read.
    """
    groups: dict[Any, list[str]] = {}
    for path in paths:
        with reading(path), pq.ParquetFile(seekable(path)) as file:
            physical = file.schema
            old = {physical.column(k).path for k in range(len(physical)) if _is_int96(physical, k)}
            fields = tuple((x.name, x.type, x.name in old) for x in file.schema_arrow)
        groups.setdefault(fields, []).append(path)
    frames = []
    unread: dict[str, str] = {}
    for fields, group in groups.items():
        kinds = {name: _spark_type(kind, is_old) for name, kind, is_old in fields}
        unread |= {
            name: f"of {group[0]} holds {kind}, which makes neither indices nor values"
            for name, kind, _ in fields
            if kinds[name] is None
        }
        odd = unclear([name for name, _, _ in fields], group[0])
        kinds |= dict.fromkeys(odd)
        unread |= odd
        schema = t.StructType([t.StructField(n, k) for n, k in kinds.items() if k is not None])
        reader = session.read.options(**WHOLE_FILES).schema(schema)
        read = reader.parquet(*(spark_path(p) for p in group))
        columns = [
            _in_micros(name, kind, is_old)
            for name, kind, is_old in fields
            if kinds[name] is not None
        ]
        here = [f.col("_metadata.file_path").alias(FILE), f.col("_metadata.row_index").alias(ROW)]
        frames.append(read.select(*columns, *here, f.lit(None).cast("string").alias(WRONG)))
    made = of_groups(frames, [group[0] for group in groups.values()])
    return Records(made.frame, made.columns, {**made.absent, **unread})


def unclear(names: Sequence[str], path: str) -> dict[str, str]:
    """Return which columns of a table cannot be told from others, and why.

    Examples
    --------
    >>> unclear(["a", "A", "b"], "x.parquet")["A"]
    "of x.parquet is there in another case too, and Spark does not tell 'a' from 'A'; rename one of them"
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name.lower(), []).append(name)
    out: dict[str, str] = {}
    for some in alike.values():
        if len(some) > 1:
            said = f"Spark does not tell {some[0]!r} from {some[1]!r}; rename one of them"
            out |= dict.fromkeys(some, f"of {path} is there in another case too, and {said}")
    return out | {name: f"of {path} {_TAKEN}" for name in names if name.lower() in _OWN}


def _is_int96(schema: Any, k: int) -> bool:
    return bool(schema.column(k).physical_type == "INT96")


def _spark_type(kind: pa.DataType, is_int96: bool) -> t.DataType | None:
    """Return the type under which Spark reads a column of Parquet, None for one that is no use."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind):
        if is_int96:
            return t.TimestampType()
        if kind.unit == "ns":
            return t.LongType()
        return t.TimestampType() if kind.tz else t.TimestampNTZType()
    if pa.types.is_decimal128(kind):
        return t.DecimalType(kind.precision, kind.scale)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return t.StringType()
    return SPARK_TYPES.get(kind)


def _in_micros(name: str, kind: pa.DataType, is_int96: bool) -> Column:
    """Return a column of Parquet; nanoseconds, which Spark reads as numbers, as the times that they are."""
    column = f.col(quoted(name))
    if is_int96 or not pa.types.is_timestamp(kind) or kind.unit != "ns":
        return column
    micros = f"({quoted(name)} - pmod({quoted(name)}, 1000)) div 1000"
    made = (
        f"timestamp_micros({micros})"
        if kind.tz
        else f"timestampadd(MICROSECOND, {micros}, {_EPOCH})"
    )
    return f.expr(made).alias(name)


def of_groups(frames: Sequence[DataFrame], examples: Sequence[str]) -> Records:
    """Return the records of files whose columns differ: those that all have, if their types agree."""
    absent: dict[str, str] = {}
    names = {name: None for frame in frames for name in frame.columns if name not in _OWN}
    for name in names:
        kinds: dict[str, str] = {}
        for frame, path in zip(frames, examples, strict=True):
            if name not in frame.columns:
                absent[name] = f"is not in {path}"
            else:
                kinds.setdefault(_class(frame.schema[name].dataType), path)
        if len(kinds) > 1:
            (one, first), (other, second) = list(kinds.items())[:2]
            absent[name] = f"is {one} in {first} and {other} in {second}"
    columns = tuple(name for name in names if name not in absent)
    kept = [*columns, *(n for n in frames[0].columns if n in _OWN)]
    frame = _united([one.select(*(quoted(n) for n in kept)) for one in frames])
    return Records(frame, columns, absent)


def _class(kind: t.DataType) -> str:
    return "a number" if isinstance(kind, t.NumericType) else kind.simpleString()
