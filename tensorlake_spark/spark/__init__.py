"""Spark: ``format("tensor")`` for reading and writing, and a session to try it. The only room with pyspark.

``session`` a local session; ``source`` the data source; ``options`` its options; ``views`` the schemas it
shows; ``ingest`` files to tensors, for the job. Reading: ``reader``, and of sparse tensors ``elements`` and
``blocks``; ``overlap`` finds rows that have to be seen together. Writing: ``writer`` commits what the forms
``slabs`` and ``cells`` encode; ``columns`` of cells, ``grouping`` before they are written, ``unique`` after.
Plain Delta: ``read_tensor``; ``functions`` has ``slice_filter``, ``tensor_decode``, ``tensor_encode``, functions of
tensors and aggregates; ``check_log_store`` comes before commits of one's own to a table on S3.
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
