"""Spark: ``format("tensor")``, functions for plain Delta tables, ingestion. The only room that imports pyspark.

``source`` reads and writes; ``functions`` are for tables that Spark reads by itself; ``ingest`` makes tensors of files;
``session`` starts Spark on this machine; ``cluster`` is what all of them need of it. May import every room but
``jobs``. Begin with `source.data_source`.
"""

from typing import TYPE_CHECKING, Any

from tensorlake_spark.spark.session import local_session

if TYPE_CHECKING:
    from tensorlake_spark.spark.cluster.s3a import check_log_store
    from tensorlake_spark.spark.functions.read_tensor import read_tensor
    from tensorlake_spark.spark.source.data_source import TensorDataSource, register
    from tensorlake_spark.spark.source.write.grouping import group_cells

__all__ = [
    "TensorDataSource",
    "check_log_store",
    "group_cells",
    "local_session",
    "read_tensor",
    "register",
]


def __getattr__(name: str) -> Any:
    # Late, so that local_session() can say in one line that pyspark is missing.
    if name in ("TensorDataSource", "register"):
        from tensorlake_spark.spark.source import data_source

        return getattr(data_source, name)
    if name == "check_log_store":
        from tensorlake_spark.spark.cluster.s3a import check_log_store

        return check_log_store
    if name == "group_cells":
        from tensorlake_spark.spark.source.write.grouping import group_cells

        return group_cells
    if name == "read_tensor":
        from tensorlake_spark.spark.functions.read_tensor import read_tensor

        return read_tensor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
