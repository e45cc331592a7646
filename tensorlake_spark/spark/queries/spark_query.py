"""The door to queries on tensors by Spark."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from sqlglot import exp

from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.query.language.mistakes import mistake, no_value
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.query.sources.source_opening import check_names, checked_parameters
from tensorlake_spark.spark.cluster.arguments import SESSION, takes
from tensorlake_spark.spark.queries.batch_functions.tensor_udf import TensorWork, as_udf
from tensorlake_spark.spark.queries.clause_frames import ClauseFrames
from tensorlake_spark.spark.queries.equal_tensors import equal_udf
from tensorlake_spark.spark.queries.result_kinds import EQUAL, EQUALS
from tensorlake_spark.spark.queries.select_checks import refused
from tensorlake_spark.spark.queries.spark_sources import SparkSource, source_of
from tensorlake_spark.spark.queries.tables_in_reach import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@takes(session=SESSION)
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
    around the package's functions and those of `register_function`. Tensors are the struct TENSOR. Strings, dates and
    aggregates follow the rules of Spark.

    Parameters
    ----------
    session : SparkSession
        A session with Delta.
    sql : str
        The query.
    parameters : mapping of str to object, optional
        Values of ``:name``: numbers and texts; lists of them after IN; arrays inside expressions on tensors.
    seed : int
        For SAMPLE BY.
    storage_options : mapping, optional
        For the stores of all sources. What is missing is taken from the session's settings of S3A.
    **sources
        Datasets, views, lakes (their catalogs), DataFrames of Spark or pandas, tables of pyarrow, and paths or URLs of
        datasets, lakes, Delta tables or Parquet files.

    Raises
    ------
    InvalidQueryError
        If the query has a mistake, or names something that does not exist; the message shows the place. Also if Spark
        refuses it; its own error is the ``__cause__``.
    InvalidOptionError
        If a source is of a type that a query cannot read.

    Examples
    --------
    ::

        query(spark, "SELECT label, avg(array_mean(image)) AS mean FROM ds GROUP BY label", ds="s3://bucket/coco")
    """
    given = checked_parameters(parameters, seed)
    check_names(sources)
    run = _Run(session, sql, given, sources, storage_options)
    printer = ClauseFrames(
        sql, given, run.table_of, run.function_of,
        frame_of=session.sql, view_of=run.view_of, seed=seed,
    )  # fmt: skip
    try:
        frame: DataFrame = printer.frame(parse(sql))
        return frame
    except AnalysisException as error:
        raise refused(sql, error) from error
    finally:
        run.forget()


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
        self._frames: list[str] = []
        self._functions: dict[tuple[Any, ...], str] = {}

    def table_of(self, node: Any) -> tuple[Table, str]:
        """Return what a table of the tree has, and the name of its view."""
        found = self._sources.get(node.name.casefold())
        if found is None:
            names = [name for name, _ in self._sources.values()]
            near = did_you_mean(node.name, names)
            have = f"give it: query(spark, sql, {node.name}=...); there are {', '.join(names) or 'none'}"
            raise mistake(self._sql, node, f"there is no source {node.name!r:.80}", near or have)
        version, timestamp = self._version(node.args.get("version"))
        key = node.name.casefold(), version, timestamp
        if key not in self._views:
            try:
                source = source_of(
                    self._session, found[1], found[0], version, timestamp, self._options
                )
            except InvalidOptionError as error:
                if node.args.get("version") is None:
                    raise
                raise mistake(self._sql, node, str(error)) from error
            view = f"{self._mark}_{len(self._views)}"
            source.frame.createOrReplaceTempView(view)
            self._views[key] = source, view
        source, view = self._views[key]
        return Table(source.kinds, source.hidden, source.count), view

    def _version(self, node: Any) -> tuple[int | str | None, str | None]:
        if node is None:
            return None, None
        value: Any = node.expression
        if isinstance(value, exp.Placeholder):
            if value.name not in self._parameters:
                raise no_value(self._sql, value, self._parameters)
            value = self._parameters[value.name]
        else:
            value = value.this if value.is_string else int(value.this)
        return (value, None) if node.name == "VERSION" else (None, str(value))

    def function_of(
        self, node: Any, result: str, names: Sequence[str] = (), placed: bool = False
    ) -> str:
        """Register an expression as a function, and return its name: the same text has the same, as in GROUP BY."""
        key = node.sql(), result, tuple(names), placed
        if key not in self._functions:
            name = f"{self._mark}_f{len(self._functions)}"
            if result in (EQUAL, EQUALS):
                function = equal_udf(result == EQUALS)
            else:
                function = as_udf(TensorWork.of(node, result, self._parameters, names, placed))
            self._session.udf.register(name, function)
            self._functions[key] = name
        return self._functions[key]

    def view_of(self, frame: DataFrame) -> str:
        """Register a DataFrame as a temporary view, and return its name."""
        name = f"{self._mark}_v{len(self._frames)}"
        frame.createOrReplaceTempView(name)
        self._frames.append(name)
        return name

    def forget(self) -> None:
        """Drop views and functions; Spark Connect makes its plans later, so there they stay."""
        if ".connect." in type(self._session).__module__:
            return
        with suppress(Exception):  # the query's own error is what matters
            for view in (*(view for _, view in self._views.values()), *self._frames):
                self._session.catalog.dropTempView(view)
            for name in self._functions.values():
                self._session.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
