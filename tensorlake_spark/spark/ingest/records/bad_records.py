"""What is wrong with a record: where it lies, which column has what, and what to do about it."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.spark.ingest.records.axis_rules import Rule
from tensorlake_spark.spark.ingest.records.bins import REAL, WHOLE
from tensorlake_spark.spark.ingest.records.record_files import Records, place_of
from tensorlake_spark.spark.source.cell_columns import holds

if TYPE_CHECKING:
    from pyspark.sql import Column, Row


def first_record(records: Records, condition: Column) -> Row:
    """Return a record for which a condition holds, with where it lies."""
    row = records.frame.where(condition).first()
    if row is None:
        raise InvalidTensorError("a file changed while it was read")
    return row


def others(count: int) -> str:
    return f" ({count} records are so)" if count > 1 else ""


def short(text: str, limit: int = 80) -> str:
    return repr(text if len(text) <= limit else text[:limit] + "...")


def why(row: Row, column: str, name: str, rule: Rule | None, dtype: Any = None) -> str:
    """Return where a record lies, what is wrong with a column of it, and what to do about it."""
    raw = row[column]
    head = f"{place_of(row)}: column {column!r} "
    if raw is None or raw == "":
        return f'{head}is null; --where "{column} is not null" leaves such records out'
    head += f"has {short(raw) if isinstance(raw, str) else raw}, which is "
    if rule is None:
        if isinstance(raw, str) and re.fullmatch(WHOLE, raw) and _is_too_long(Decimal(raw), dtype):
            return (
                f"{head}beyond int64, as which whole numbers are read; with a decimal point in one of them they "
                "are float64"
            )
        if dtype is not None and re.fullmatch(REAL, str(raw)):
            return (
                f"{head}no {dtype}, the dtype of the tensor{holds(dtype)}; --dtype chooses another for a tensor "
                "that is written anew"
            )
        return f"{head}not a number that a value could be, such as 2, 1.5 or 1e-3"
    again = f"--axis {name}={column}"
    if rule.kind == "int" and not rule.is_labelled:
        return f"{head}not an index; those of .tns files are integers from {rule.start} on"
    if rule.kind == "int":
        return f"{head}not an integer; {again}:1 makes bins of numbers, {again}:label takes what is there"
    if rule.kind == "bins":
        return f"{head}not a finite number"
    if rule.kind == "label":
        return f"{head}no label"
    return (
        f"{head}not a time such as 2013-01-01 05:00:00; --column makes one, as --column "
        f"\"t=to_timestamp({column}, 'dd.MM.yyyy HH:mm')\""
    )


def _is_too_long(number: Decimal, dtype: Any) -> bool:
    """Return whether a whole number is beyond int64, and not for the tensor's dtype."""
    bounds = np.iinfo(dtype) if dtype is not None and dtype.kind in "iu" else None
    fits = bounds is None or bounds.min <= number <= bounds.max
    return fits and not -(2**63) <= number < 2**63


def too_early(name: str, column: str, rule: Rule) -> str:
    if rule.kind == "int" and not rule.is_labelled:
        return (
            f"is below {rule.start}: indices of .tns files count from {rule.start}, add {rule.start} "
            "if these count from 0"
        )
    again = f"--axis {name}={column}"
    if rule.kind == "int":
        return (
            f"is below {rule.start or 0}, the first index of axis {name!r}; {again}@START counts from "
            "another number"
        )
    unit = {"Y": "year", "M": "month", "D": "day", "h": "hour", "m": "minute", "s": "second"}
    step = f"{rule.step}{unit.get(rule.unit or '', rule.unit or '')}"
    return (
        f"lies before the first bin of axis {name!r}, {rule.start}; write the tensor anew with "
        f"--mode overwrite and an earlier start, {again}:{step}@START, or leave such records out with --where"
    )
