"""Rows of a DataFrame as TQL's clauses want them: drawn, arranged, with their neighbours, one for each element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.query.engine.row_orders import MOST_ROWS, check_rows
from tensorlake_spark.spark.frames.image_columns import tensors_with_nulls
from tensorlake_spark.spark.queries.batch_functions.tensor_udf import values_of
from tensorlake_spark.spark.source.cell_columns import quoted
from tensorlake_spark.spark.source.schemas import TENSOR, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACE, PLACE_SID = "__place", "__sid"
"""The columns of `neighbours`: an order, and the numbers of samples."""

_ROW = "__row"

_FAR = 1 << 40
"""No dataset has so many samples."""


def drawn(frame: DataFrame, weight: Any, replace: bool, count: int, seed: int) -> DataFrame:
    """Return so many rows by chance, in proportion to a weight.

    Raises
    ------
    InvalidOptionError
        If rows may come more than once, and no weight is above 0.
    InvalidQueryError
        If rows may come more than once, and more than `MOST_ROWS` are drawn.
    """
    if replace:
        check_rows("SAMPLE BY", count)
        return _drawn_again(frame, weight, count, seed)
    # The rows with the least arrival times of clocks that tick at the rate of their weights.
    return frame.where(weight > 0).orderBy(-f.log(f.rand(seed)) / weight).limit(count)


def _drawn_again(frame: DataFrame, weight: Any, count: int, seed: int) -> DataFrame:
    """Return rows that are drawn by their weights, each as often as it comes."""
    session = frame.sparkSession
    some = frame.where(weight > 0).withColumn(_ROW, f.monotonically_increasing_id())
    so_far = Window.orderBy(_ROW)
    ends = some.withColumn("__end", f.sum(weight).over(so_far)).withColumn(
        "__start", f.col("__end") - weight
    )
    total = frame.agg(f.sum(f.when(weight > 0, weight))).first()
    if total is None or not total[0]:
        raise InvalidOptionError("SAMPLE BY has no weight above 0, so nothing can be drawn")
    draws = session.range(count).select((f.rand(seed) * total[0]).alias("__draw"))
    inside = (f.col("__draw") >= f.col("__start")) & (f.col("__draw") < f.col("__end"))
    return ends.join(draws, inside).drop(_ROW)


def arranged(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows with the same keys together: groups by their first row, rows as they were."""
    numbered = frame.withColumn(_ROW, f.monotonically_increasing_id())
    first = f.min(_ROW).over(Window.partitionBy(*keys))
    return numbered.withColumn("__first", first).orderBy("__first", _ROW)


def neighbours(
    found: DataFrame, samples: DataFrame, before: int, after: int, overlap: bool
) -> DataFrame:
    """Return samples with those before and after each, in the order of the dataset.

    Parameters
    ----------
    found, samples : DataFrame
        The sids that were found, and all of them.
    before, after : int
        How many beside each.
    overlap : bool
        Whether a sample comes once for each that it is beside. More than `MOST_ROWS` are an error when the rows are
        computed.

    Returns
    -------
    DataFrame
        `PLACE_SID` and `PLACE`.
    """
    before, after = min(before, _FAR), min(after, _FAR)
    n, at = f.col("__n"), f.col("__at")
    numbered = samples.select(
        f.col(SID).alias(PLACE_SID),
        (f.row_number().over(Window.orderBy(SID)) - 1).alias("__n"),
        f.count("*").over(Window.partitionBy()).alias("__all"),
    )
    if not overlap:
        known = found.select(f.col(SID).alias("__found")).distinct()
        beside = numbered.join(known, f.col(PLACE_SID) == f.col("__found"), "left")
        here = f.when(f.col("__found").isNotNull(), n)
        last = f.max(here).over(Window.orderBy("__n"))
        following = f.min(here).over(Window.orderBy(n.desc()))
        beside = beside.withColumn("__last", last).withColumn("__following", following)
        inside = (n - f.col("__last") <= after) | (f.col("__following") - n <= before)
        return beside.where(inside).select(PLACE_SID, n.alias(PLACE))
    there = found.join(numbered, found[SID] == f.col(PLACE_SID)).select(n.alias("__at"), "__all")
    first, end = f.greatest(at - before, f.lit(0)), f.least(at + after, f.col("__all") - 1)
    there = there.withColumn("__rows", f.sum(end - first + 1).over(Window.partitionBy()))
    said = f.concat(
        f.lit("EXPAND BY makes "), f.format_number("__rows", 0),
        f.lit(f" rows, and at most {MOST_ROWS:,} are made"),
    )  # fmt: skip
    rows = f.when(f.col("__rows") <= MOST_ROWS, f.sequence(first, end)).otherwise(
        f.raise_error(said)
    )
    around = there.select("__at", f.explode(rows).alias("__around"))
    order = f.struct("__at", "__around")
    return around.join(numbered, f.col("__around") == n).select(PLACE_SID, order.alias(PLACE))


def ungrouped(frame: DataFrame, axes: Mapping[str, int | None]) -> DataFrame:
    """Return a row for each element of some columns along their first axis; the others are repeated.

    A row whose columns have different lengths is an error when the rows are computed.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    axes : dict of str to int or None
        The columns, and how many axes their arrays have, None if that is not known.
    """
    items = {f"__items{number}": name for number, name in enumerate(axes)}
    for item, name in items.items():
        given = f.col(quoted(name))
        is_list = axes[name] == 1 and isinstance(frame.schema[name].dataType, t.ArrayType)
        split = f.coalesce(given, f.array()) if is_list else _split_udf(axes[name])(given)
        frame = frame.withColumn(item, split)
    sizes = [f.size(item) for item in items]
    names = ", ".join(axes)
    said = f"UNGROUP BY names columns with different numbers of elements in a row: {names}"
    rows = f.arrays_zip(*items)
    for other in sizes[1:]:
        rows = f.when(other == sizes[0], rows).otherwise(f.raise_error(f.lit(said)))
    split = frame.withColumn("__item", f.explode(rows))
    parts = {name: f.col("__item")[item].alias(name) for item, name in items.items()}
    kept = [name for name in frame.columns if name not in items]
    return split.select(*(parts.get(name, f.col(quoted(name))) for name in kept))


def _split_udf(ndim: int | None) -> Any:
    """Return a function that makes a list of the elements of an array: numbers of one axis, tensors of more."""
    plain = ndim == 1
    kind = t.ArrayType(t.DoubleType() if plain else TENSOR)

    def split(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for batch in batches:
            given: Any = values_of(batch)
            values = [() if one is None else one for one in given]
            ends = np.concatenate([[0], np.cumsum([len(one) for one in values])]).astype(np.int32)
            if plain:
                elements = pa.array(np.concatenate([np.zeros(0), *values]), pa.float64())
            elif ends[-1]:
                elements = tensors_with_nulls(
                    "UNGROUP BY", [item for one in values for item in one]
                )
            else:
                elements = pa.array([], arrow_type(TENSOR))
            yield pa.ListArray.from_arrays(pa.array(ends), elements).cast(arrow_type(kind))

    spark: Any = f  # whose own type hints leave it out
    return spark.arrow_udf(split, kind)
