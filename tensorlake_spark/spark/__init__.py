"""Spark: ``format("tensor")``, functions for plain Delta tables, ingestion.

Begin with `source.data_source`.
May import every room but ``jobs``.

``source`` is ``format("tensor")``; ``functions`` are for tables that Spark reads as plain Delta; ``frames`` reads and
writes datasets; ``queries`` are SQL on tensors; ``ingest`` makes tensors from files; ``computing`` computes on stored
tensors; ``session`` starts Spark on this machine; ``cluster`` is what all of them share. This is the only room that
imports pyspark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensorlake_spark.spark.session import check_missing, local_session

if TYPE_CHECKING:
    from tensorlake_spark.spark import functions
    from tensorlake_spark.spark.cluster.s3a import check_log_store
    from tensorlake_spark.spark.cluster.task_errors import plain_errors
    from tensorlake_spark.spark.computing.spark_tensor import SparkTensor, compute
    from tensorlake_spark.spark.frames.frame_writing import write_samples
    from tensorlake_spark.spark.frames.rank_loader import loader
    from tensorlake_spark.spark.frames.sample_frame import samples
    from tensorlake_spark.spark.functions.read_tensor import read_tensor
    from tensorlake_spark.spark.queries.spark_query import query
    from tensorlake_spark.spark.source.data_source import TensorDataSource, register
    from tensorlake_spark.spark.source.write.grouping import group_cells

__all__ = [
    "SparkTensor",
    "TensorDataSource",
    "check_log_store",
    "compute",
    "functions",
    "group_cells",
    "loader",
    "local_session",
    "plain_errors",
    "query",
    "read_tensor",
    "register",
    "samples",
    "write_samples",
]

# Late, so that each can say in one line that pyspark is missing.
_LATE = {
    "SparkTensor": "computing.spark_tensor",
    "TensorDataSource": "source.data_source",
    "check_log_store": "cluster.s3a",
    "compute": "computing.spark_tensor",
    "group_cells": "source.write.grouping",
    "loader": "frames.rank_loader",
    "plain_errors": "cluster.task_errors",
    "query": "queries.spark_query",
    "read_tensor": "functions.read_tensor",
    "register": "source.data_source",
    "samples": "frames.sample_frame",
    "write_samples": "frames.frame_writing",
}


def __getattr__(name: str) -> Any:
    if name != "functions" and name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_LATE.get(name, name)}")
    except ModuleNotFoundError as error:
        check_missing(error)
        raise
    return module if name == "functions" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
