"""Tables as a command line describes them: further columns, a condition, the columns of axes and value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as f

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.spark.ingest.records.axis_rules import parse_axis, settle
from tensorlake_spark.spark.ingest.records.bins import Value
from tensorlake_spark.spark.ingest.records.coordinates import AxisColumn
from tensorlake_spark.spark.ingest.records.delta_tables import delta_records
from tensorlake_spark.spark.ingest.records.record_files import (
    WRONG,
    Records,
    csv_records,
    parquet_records,
)
from tensorlake_spark.tensor.labels import Labels

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class CellOptions:
    """How records become cells.

    Attributes
    ----------
    axis : tuple of str
        For tables: ``NAME[=COLUMN][:RULE][@START]`` for every axis, in order.
    value : str, or None
        For tables: a column, ``count()`` or ``sum(COLUMN)``.
    column : tuple of str
        ``NAME=EXPRESSION`` in Spark SQL: further columns, before anything else looks at them.
    where : str, or None
        A condition in Spark SQL: which records count.
    delimiter : str, or None
        Of CSV; a comma, and of ``.tsv`` a tab, by default.
    timezone : str
        By whose clock times are put into bins.
    source_version : int, or None
        Of Delta tables; the newest by default.
    """

    axis: tuple[str, ...] = ()
    value: str | None = None
    column: tuple[str, ...] = ()
    where: str | None = None
    delimiter: str | None = None
    timezone: str = "UTC"
    source_version: int | None = None

    def __post_init__(self) -> None:
        """Raise InvalidOptionError for an axis or a column that is none, whatever the table has."""
        names = [parse_axis(text)[0] for text in self.axis]
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise InvalidOptionError(f"--axis {repeated[0]} is given twice")
        for text in self.column:
            if not all(part.strip() for part in text.partition("=")):
                raise InvalidOptionError(f"--column {text!r} is not NAME=EXPRESSION")


def table_records(
    session: SparkSession,
    paths: Sequence[str],
    family: str,
    choices: CellOptions,
    old: Meta | None,
) -> tuple[Records, list[AxisColumn], Value]:
    """Return the records of a table with the columns that were asked for, its axes and its value."""
    if not choices.axis or choices.value is None:
        raise InvalidOptionError(
            "tables need --axis NAME[=COLUMN][:RULE] for every axis and --value COLUMN, 'count()' or "
            "'sum(COLUMN)'"
        )
    if family == "csv":
        records = csv_records(session, paths, choices.delimiter)
    elif family == "delta":
        records = delta_records(session, paths, choices.source_version)
    else:
        records = parquet_records(session, paths)
    for text in choices.column:
        name, _, expression = text.partition("=")
        name = name.strip()
        with _sql(f"--column {text!r}", records):
            frame = records.frame.withColumn(name, f.expr(expression))
        absent = {k: v for k, v in records.absent.items() if k != name}
        columns = tuple(dict.fromkeys((*records.columns, name)))
        records = Records(frame, columns, absent)
    if choices.where is not None:
        with _sql(f"--where {choices.where!r}", records):
            frame = records.frame.where(f.expr(choices.where) | f.col(WRONG).isNotNull())
        records = replace(records, frame=frame)
    parsed = [parse_axis(text) for text in choices.axis]
    names = [name for name, _, _ in parsed]
    if old is not None and old.spec.axes is not None and tuple(names) != old.spec.axes:
        raise InvalidOptionError(
            f"tensor {old.spec.id!r} has the axes {', '.join(old.spec.axes)}, and --axis names "
            f"{', '.join(names)}; give them in that order"
        )
    labels: Mapping[str, Labels] = {} if old is None else old.spec.labels
    axes = []
    for name, column, rule in parsed:
        records.column(column, f"--axis {name}")
        rule = rule if old is None else settle(name, rule, labels.get(name))
        axes.append(AxisColumn(name, column, rule))
    value = Value.parse(choices.value, records.columns)
    if value.how != "count":
        records.column(value.column, f"--value {choices.value}")
    return records, axes, value


@contextmanager
def _sql(what: str, records: Records) -> Iterator[None]:
    """Turn what Spark says about an expression into one line."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        said = next(line for line in str(error).splitlines() if line.strip())
        columns = ", ".join(records.columns)
        raise InvalidOptionError(f"{what}: {said}; columns are {columns}") from error
