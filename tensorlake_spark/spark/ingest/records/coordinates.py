"""Columns of records as indices and values: measured once, held against their rules, all by Spark itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.spark.ingest.records.axis_rules import Rule, merged_labels
from tensorlake_spark.spark.ingest.records.bad_records import (
    first_record,
    others,
    short,
    too_early,
    why,
)
from tensorlake_spark.spark.ingest.records.bins import (
    WHOLE,
    Value,
    is_text,
    is_time,
    measure_of,
    value_of,
)
from tensorlake_spark.spark.ingest.records.record_files import WRONG, Records, place_of
from tensorlake_spark.spark.ingest.text_lines import LINE, reading_by_spark
from tensorlake_spark.spark.source.cell_columns import quoted
from tensorlake_spark.tensor.labels import Labels, Listed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LOST = "\ufffd"  # stands for bytes that are no character

MOST_LABELS = 1_000_000
"""Labels of an axis at the most: they are part of the tensor's metadata, which every open reads."""


@dataclass(frozen=True)
class AxisColumn:
    """An axis, and where its indices come from.

    Attributes
    ----------
    name : str
        Of the axis.
    column : str
        Of the records.
    rule : Rule, or None
        None until `decide` has looked at the column.
    """

    name: str
    column: str
    rule: Rule | None = None

    @property
    def settled(self) -> Rule:
        """The rule, once it is known."""
        assert self.rule is not None  # nosec B101 # for mypy
        return self.rule


@dataclass(frozen=True, eq=False)
class Measured:
    """Records with what their indices and values are computed from, which Spark keeps: read and cut once.

    Attributes
    ----------
    records : Records
        As the files have them; errors look there.
    axes : tuple of AxisColumn
    value : Value
    dtype : numpy.dtype, or None
        The tensor's, where it is known.
    frame : DataFrame
        Columns ``m0`` .., ``value`` and `WRONG`; of text that has no rule yet as it stands.
    undecided : frozenset of int
        Axes that have no rule, when the frame was made.
    """

    records: Records
    axes: tuple[AxisColumn, ...]
    value: Value
    dtype: np.dtype[Any] | None
    frame: DataFrame
    undecided: frozenset[int]

    @classmethod
    def of(
        cls, records: Records, axes: Sequence[AxisColumn], value: Value, dtype: np.dtype[Any] | None
    ) -> Measured:
        """Measure records; nothing is computed before somebody looks.

        Raises
        ------
        InvalidOptionError
            If the type of a column does not go with its rule, or is no use as a value.
        """
        axes = tuple(_checked(axis, records.kind(axis.column)) for axis in axes)
        undecided = frozenset(k for k, axis in enumerate(axes) if axis.rule is None)
        columns = [
            (f.col(quoted(axis.column)) if k in undecided else _measure(records, axis)).alias(
                f"m{k}"
            )
            for k, axis in enumerate(axes)
        ]
        value = _typed(value, records)
        number = _number(records, value, dtype) if value.kind else f.col(quoted(value.column))
        frame = records.frame.select(*columns, number.alias("value"), WRONG)
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        return cls(records, axes, value, dtype, frame, undecided)

    def measure(self, k: int) -> Column:
        """Return what the indices of an axis are computed from."""
        column = f.col(f"m{k}")
        if k not in self.undecided:
            return column
        return measure_of(self.axes[k].settled, column, t.StringType())

    def number(self) -> Column:
        """Return the value."""
        if self.value.how == "count" or not is_text(self.frame.schema["value"].dataType):
            return f.col("value")
        return value_of(self.value, f.col("value"), t.StringType(), self.dtype)

    def decided(self) -> Measured:
        """Return the same with what the user left open settled by what the columns hold.

        A column of text is one of integers if all of it are, and one of labels if none of it is; a value of
        text is an integer if all are.

        Raises
        ------
        InvalidTensorError
            If a column without a rule holds integers and other text.
        """
        texts = [f"m{k}" for k in sorted(self.undecided)]
        texts += [] if self.value.kind else ["value"]
        if not texts:
            return self
        asked = [f.count(name).alias(f"all_{name}") for name in texts]
        asked += [f.count_if(f.col(name).rlike(WHOLE)).alias(f"whole_{name}") for name in texts]
        # `look` tells of a line that could not be cut; what it was cut into means nothing.
        with reading_by_spark():
            counts: Any = self.frame.where(f.col(WRONG).isNull()).agg(*asked).first()
        axes = list(self.axes)
        for k in sorted(self.undecided):
            whole, count = counts[f"whole_m{k}"], counts[f"all_m{k}"]
            if 0 < whole < count:
                raise self._mixed(axes[k])
            axes[k] = replace(axes[k], rule=Rule("int" if whole == count else "label"))
        value = self.value
        if not value.kind:
            whole = counts["whole_value"] == counts["all_value"]
            value = replace(value, kind="bigint" if whole else "double")
        return replace(self, axes=tuple(axes), value=value)

    def _mixed(self, axis: AxisColumn) -> InvalidTensorError:
        odd = ~f.col(quoted(axis.column)).rlike(WHOLE) & f.col(WRONG).isNull()
        row = first_record(self.records, odd)
        again = f"--axis {axis.name}={axis.column}"
        return InvalidTensorError(
            f"{place_of(row)}: column {axis.column!r} has {short(row[axis.column])}, and integers elsewhere: "
            f"{again}:label takes both as labels, {again}:int integers only"
        )


@dataclass(frozen=True)
class Found:
    """What `look` found.

    Attributes
    ----------
    records : int
        How many.
    cells : int
        How many elements they are, about.
    least, most : tuple
        Of each axis the least and the greatest measure; None of labels, and where there is no record.
    """

    records: int
    cells: int
    least: tuple[Any, ...]
    most: tuple[Any, ...]


def _typed(value: Value, records: Records) -> Value:
    """Return a value with the type that its column says; of text that is known when all of it was seen."""
    if value.how == "count":
        return replace(value, kind="bigint")
    kind = records.kind(value.column)
    if is_text(kind):
        return value
    if isinstance(kind, t.DecimalType):
        whole = kind.scale == 0 and kind.precision <= (18 if value.how == "sum" else 20)
        name = "double" if not whole else "bigint" if kind.precision <= 18 else kind.simpleString()
        return replace(value, kind=name)
    good = isinstance(kind, t.NumericType) or (
        value.how == "column" and isinstance(kind, (t.BooleanType, t.StructType))
    )
    if not good:
        raise InvalidOptionError(
            f"--value {value.column}: the column is {kind.simpleString()}, and an element is a number; "
            "--value 'count()' counts records"
        )
    return replace(value, kind=kind.simpleString())


def _checked(axis: AxisColumn, kind: t.DataType) -> AxisColumn:
    """Return an axis with the rule that the column's type asks for, if that alone decides."""
    is_number, name, rule = isinstance(kind, t.NumericType), axis.name, axis.rule
    if rule is None:
        if is_time(kind):
            raise InvalidOptionError(
                f"--axis {name}: column {axis.column!r} holds times; say how long bins are, as "
                f"--axis {name}={axis.column}:day"
            )
        made = Rule("int") if is_number else Rule("label")
        return axis if is_text(kind) else replace(axis, rule=made)
    good = {
        "int": is_number or is_text(kind),
        "bins": is_number or is_text(kind),
        "time": is_time(kind) or is_text(kind),
        "label": True,
    }[rule.kind]
    if not good:
        hint = "timestamp_seconds(t)" if rule.kind == "time" else "unix_date(t)"
        raise InvalidOptionError(
            f"--axis {name}: column {axis.column!r} is {kind.simpleString()}, which does not go with "
            f"{rule}; --column makes another one, as --column 'u={hint}'"
        )
    return axis


def _measure(records: Records, axis: AxisColumn) -> Column:
    return measure_of(axis.settled, f.col(quoted(axis.column)), records.kind(axis.column))


def _number(records: Records, value: Value, dtype: np.dtype[Any] | None) -> Column:
    if value.how == "count":
        return value_of(value, f.lit(1), t.LongType(), dtype)
    return value_of(value, f.col(quoted(value.column)), records.kind(value.column), dtype)


def look(measured: Measured) -> Found:
    """Look at all records once.

    Raises
    ------
    InvalidTensorError
        If an axis or the value of one will not do; names its file and line.
    """
    axes, records = measured.axes, measured.records
    columns = [measured.measure(k) for k in range(len(axes))]
    cell = f.xxhash64(*columns) if columns else f.lit(1)
    asked = [
        f.count(f.lit(1)).alias("n"),
        f.count(WRONG).alias("wrong"),
        f.count_if(measured.number().isNull()).alias("value"),
        f.approx_count_distinct(cell).alias("cells"),
    ]
    for k, (axis, column) in enumerate(zip(axes, columns, strict=True)):
        asked.append(f.count_if(column.isNull()).alias(f"null{k}"))
        if axis.settled.is_regular:
            asked += [f.min(column).alias(f"min{k}"), f.max(column).alias(f"max{k}")]
    with reading_by_spark():
        found: Any = measured.frame.agg(*asked).first()
    if found["wrong"]:
        row = first_record(records, f.col(WRONG).isNotNull())
        raise InvalidTensorError(f"{place_of(row)}: the line {short(row[LINE])} {row[WRONG]}")
    for k, axis in enumerate(axes):
        if found[f"null{k}"]:
            row = first_record(records, _measure(records, axis).isNull())
            text = why(row, axis.column, axis.name, axis.settled)
            raise InvalidTensorError(text + others(found[f"null{k}"]))
    if found["value"]:
        value, dtype = measured.value, measured.dtype
        row = first_record(records, _number(records, value, dtype).isNull())
        raise InvalidTensorError(why(row, value.column, "", None, dtype) + others(found["value"]))
    regular = [axis.settled.is_regular for axis in axes]
    return Found(
        found["n"],
        min(found["n"], found["cells"]),
        tuple(found[f"min{k}"] if one else None for k, one in enumerate(regular)),
        tuple(found[f"max{k}"] if one else None for k, one in enumerate(regular)),
    )


def bounded(
    measured: Measured, found: Found, shape: Sequence[int] | None
) -> tuple[Measured, list[int]]:
    """Return the records with the starts of their bins, and the length of each axis; 0 of labels.

    Raises
    ------
    InvalidTensorError
        If a value lies before the first bin, or outside of the shape that is asked for.
    """
    axes, lengths = list(measured.axes), [0] * len(measured.axes)
    for k, axis in enumerate(measured.axes):
        if not axis.settled.is_regular or not found.records:
            continue
        rule = axis.settled.begin(found.least[k])
        first, last = rule.places(found.least[k]), rule.places(found.most[k])
        limit = 2**62 if shape is None else shape[k]
        if first < 0 or last >= limit:
            odd = found.least[k] if first < 0 else found.most[k]
            row = first_record(measured.records, _measure(measured.records, axis) == f.lit(odd))
            head = f"{place_of(row)}: column {axis.column!r} has {row[axis.column]}, which "
            if first < 0:
                raise InvalidTensorError(head + too_early(axis.name, axis.column, rule))
            head += f"is index {last} of axis {axis.name!r}, beyond "
            if shape is not None:
                raise InvalidTensorError(
                    f"{head}the shape {tuple(shape)}; a larger --shape holds it, --where leaves it out"
                )
            raise InvalidTensorError(
                f"{head}what a tensor can have; --axis {axis.name}={axis.column}:label numbers the values that "
                "there are"
            )
        axes[k], lengths[k] = replace(axis, rule=rule), last + 1
    return replace(measured, axes=tuple(axes)), lengths


def listed(
    measured: Measured, stored: dict[str, Labels]
) -> dict[int, tuple[tuple[Any, ...], dict[str, int]]]:
    """Return, by axis with labels, all of them, and the index of each text that the records have.

    Parameters
    ----------
    measured : Measured
    stored : dict of str to Labels
        What the tensor has; those stay as they are, new ones come after them.

    Raises
    ------
    InvalidTensorError
        If there are more than a tensor's metadata should hold, or one is not UTF-8.
    """
    which = [k for k, axis in enumerate(measured.axes) if not axis.settled.is_regular]
    if not which:
        return {}
    pairs = [f.struct(f.lit(k).alias("k"), measured.measure(k).alias("text")) for k in which]
    frame = (
        measured.frame.select(f.explode(f.array(*pairs)).alias("pair")).select("pair.*").distinct()
    )
    rows = frame.limit(MOST_LABELS * len(which) + 1).toArrow().to_pydict()
    out = {}
    for k in which:
        axis = measured.axes[k]
        texts = [text for i, text in zip(rows["k"], rows["text"], strict=True) if i == k]
        if LINE in measured.records.frame.columns and any(_LOST in str(text) for text in texts):
            raise _not_utf8(measured.records, axis.column)
        have = stored.get(axis.name)
        kind = measured.records.kind(axis.column)
        found = {text: _label(text, kind) for text in texts}
        known = have.values if isinstance(have, Listed) else ()
        values = merged_labels(axis.name, known, list(found.values()))
        if len(values) > MOST_LABELS:
            raise InvalidTensorError(
                f"--axis {axis.name}: column {axis.column!r} has more than {MOST_LABELS:,} labels, which is "
                "the limit, as they are kept in the tensor's metadata; make integers of them, as --column "
                f"'n=pmod(xxhash64({axis.column}), 100000)', or bins"
            )
        index = {label: i for i, label in enumerate(values)}
        out[k] = (values, {text: index[label] for text, label in found.items()})
    return out


def _not_utf8(records: Records, column: str) -> InvalidTensorError:
    """Return the error for text of which Spark, as Python's ``errors="replace"``, made another one."""
    row = first_record(records, f.col(quoted(column)).contains(_LOST))
    return InvalidTensorError(
        f"{place_of(row)}: column {column!r} has {short(row[column])}, which is not UTF-8, and different labels "
        "could become one; convert the file, as with iconv -f LATIN1 -t UTF-8"
    )


def _label(text: str, kind: t.DataType) -> Any:
    """Return a label as Python has it, from its text as Spark has it."""
    if isinstance(kind, t.BooleanType):
        return text == "true"
    if isinstance(kind, t.IntegralType):
        return int(text)
    return float(text) if isinstance(kind, t.NumericType) else text
