"""The door to queries on tensors by Spark."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as f
from sqlglot import exp

from tensorlake_spark.errors import InvalidOptionError, InvalidQueryError, did_you_mean
from tensorlake_spark.query.language.clauses import ARRANGE, SAMPLE_BY
from tensorlake_spark.query.language.mistakes import mistake
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.spark.queries.spark_sources import SparkSource, source_of
from tensorlake_spark.spark.queries.spark_sql import SparkPrinter, Table, taken_clauses
from tensorlake_spark.spark.queries.tensor_udf import TensorWork, as_udf
from tensorlake_spark.spark.source.cell_columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROW = "__row"


def query(
    session: SparkSession,
    sql: str,
    /,
    *,
    parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
    storage_options: Mapping[str, str] | None = None,
    **sources: Any,
) -> DataFrame:
    """Return the rows of a query as a DataFrame. The language is that of `tensorlake_spark.query`; executors compute.

    The parts on scalars become Spark SQL, which skips files and row groups. The parts on tensors become Arrow UDFs
    around the package's functions and those of `register_function`. Tensors are the struct TENSOR. There is no
    ``EXPAND BY`` and no ``UNGROUP BY``. Strings, dates and aggregates follow the rules of Spark.

    Parameters
    ----------
    session : SparkSession
        A session with Delta.
    sql : str
        The query.
    parameters : mapping of str to object, optional
        Values of ``:name``: numbers and texts; arrays inside expressions on tensors.
    seed : int
        For SAMPLE BY.
    storage_options : mapping, optional
        For the stores of all sources. What is missing is taken from the session's settings of S3A.
    **sources
        Datasets, DataFrames, and paths or URLs of datasets, Delta tables or Parquet files.

    Raises
    ------
    InvalidQueryError
        If the query has a mistake, or names something that does not exist; the message shows the place.
    InvalidOptionError
        If a source is of a type that a query cannot read.
    UnsupportedFeatureError
        If the query has a clause that cannot be used with Spark.

    Examples
    --------
    ::

        query(spark, "SELECT label, avg(array_mean(image)) AS mean FROM ds GROUP BY label", ds="s3://bucket/coco")
    """
    tree = parse(sql)
    given = dict(parameters or {})
    run = _Run(session, sql, given, sources, storage_options)
    clauses = taken_clauses(tree)
    limit = None
    hidden: list[str] = []
    if clauses:
        limit = _limit_of(tree, clauses)
        for number, one in enumerate(_keys(clauses)):
            hidden.append(f"__key{number}")
            tree.append("expressions", exp.alias_(one.copy(), hidden[-1], quoted=True))
    try:
        text = SparkPrinter(sql, given, run.table_of, run.function_of).printed(tree)
        frame = session.sql(text)
    finally:
        run.forget()
    return _done(frame, clauses, hidden, limit, seed) if clauses else frame


class _Run:
    """The temporary views and functions of one query, which are forgotten once Spark has made its plan."""

    def __init__(
        self,
        session: SparkSession,
        sql: str,
        parameters: Mapping[str, Any],
        sources: Mapping[str, Any],
        options: Mapping[str, str] | None,
    ) -> None:
        self._session, self._sql, self._parameters = session, sql, parameters
        self._sources = {name.casefold(): (name, given) for name, given in sources.items()}
        self._options = options
        self._mark = f"tl_{uuid.uuid4().hex[:12]}"
        self._views: dict[Any, tuple[SparkSource, str]] = {}
        self._functions: list[str] = []

    def table_of(self, node: Any) -> tuple[Table, str]:
        """Return what a table of the tree has, and the name of its view."""
        found = self._sources.get(node.name.casefold())
        if found is None:
            near = did_you_mean(node.name, [name for name, _ in self._sources.values()])
            raise mistake(self._sql, node, f"there is no source {node.name!r:.80}{near}")
        version, timestamp = self._version(node.args.get("version"))
        key = node.name.casefold(), version, timestamp
        if key not in self._views:
            source = source_of(self._session, found[1], found[0], version, timestamp, self._options)
            view = f"{self._mark}_{len(self._views)}"
            source.frame.createOrReplaceTempView(view)
            self._views[key] = source, view
        source, view = self._views[key]
        return Table(source.kinds, source.hidden), view

    def _version(self, node: Any) -> tuple[int | str | None, str | None]:
        if node is None:
            return None, None
        value: Any = node.expression
        if isinstance(value, exp.Placeholder):
            if value.name not in self._parameters:
                raise mistake(self._sql, value, f"the parameter :{value.name} has no value")
            value = self._parameters[value.name]
        else:
            value = value.this if value.is_string else int(value.this)
        return (value, None) if node.name == "VERSION" else (None, str(value))

    def function_of(self, node: Any, result: str) -> str:
        """Register an expression as a function, and return its name."""
        name = f"{self._mark}_f{len(self._functions)}"
        work = TensorWork.of(node, result, self._parameters)
        self._session.udf.register(name, as_udf(work))
        self._functions.append(name)
        return name

    def forget(self) -> None:
        """Drop views and functions; Spark Connect makes its plans later, so there they stay."""
        if ".connect." in type(self._session).__module__:
            return
        with suppress(Exception):  # the query's own error is what matters
            for _, view in self._views.values():
                self._session.catalog.dropTempView(view)
            for name in self._functions:
                self._session.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


def _limit_of(tree: Any, clauses: Mapping[str, Any]) -> int | None:
    """Take the LIMIT off a query that draws its rows, and return it."""
    if SAMPLE_BY not in clauses:
        return None
    limit = tree.args.get("limit")
    found = None if limit is None else limit.expression
    if not isinstance(found, exp.Literal) or not found.is_int:
        raise InvalidQueryError("SAMPLE BY needs a LIMIT that is a number: how many rows are drawn")
    tree.set("limit", None)
    return int(found.this)


def _keys(clauses: Mapping[str, Any]) -> list[Any]:
    out = [clauses[SAMPLE_BY].this] if SAMPLE_BY in clauses else []
    return out + (list(clauses[ARRANGE].expressions) if ARRANGE in clauses else [])


def _done(
    frame: DataFrame, clauses: Mapping[str, Any], hidden: list[str], limit: int | None, seed: int
) -> DataFrame:
    """Return the rows drawn, and then arranged."""
    names = [quoted(name) for name in frame.columns if name not in hidden]
    left = list(hidden)
    if SAMPLE_BY in clauses:
        weight = f.col(left.pop(0)).cast("double")
        replace = clauses[SAMPLE_BY].args.get("replace")
        if replace is not None and replace.this:
            frame = _drawn_again(frame, weight, limit or 0, seed)
        else:
            # The rows with the least arrival times of clocks that tick at the rate of their weights.
            frame = frame.where(weight > 0).orderBy(-f.log(f.rand(seed)) / weight).limit(limit or 0)
    if ARRANGE in clauses:
        numbered = frame.withColumn(_ROW, f.monotonically_increasing_id())
        first = f.min(_ROW).over(Window.partitionBy(*left))
        frame = numbered.withColumn("__first", first).orderBy("__first", _ROW)
    return frame.select(*names)


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
