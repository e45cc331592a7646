"""Versions of tables that only Spark reaches: the newest one, and the one that a tag names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from tensorlake_spark.delta.log.time_travel import TAG
from tensorlake_spark.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRANSACTION = "txn struct<appId: string, version: bigint>"


def newest_version(session: SparkSession, table: str) -> int:
    """Return the newest version of a Delta table, by its name in SQL: ``lake.photos``, or ``delta.`path` ``."""
    return int(session.sql(f"DESCRIBE HISTORY {table} LIMIT 1").select("version").collect()[0][0])


def version_of(spark: SparkSession, table: str, version: int | str) -> int:
    """Return the version that a number, its text, or a tag stands for.

    Parameters
    ----------
    spark : SparkSession
        With Delta.
    table : str
        The table by its name in SQL.
    version : int or str
        What is meant.

    Raises
    ------
    InvalidOptionError
        If it is a text, and neither a number nor a tag.
    """
    if not isinstance(version, str) or version.isdecimal():
        return int(version)
    log = f"{spark.sql(f'DESCRIBE DETAIL {table}').first()['location']}/_delta_log"  # type: ignore[index]
    found = []
    for kind in ("json", "parquet"):
        files = spark.read.schema(_TRANSACTION).option("pathGlobFilter", f"*.{kind}")
        ours = files.format(kind).load(log).where(f.col("txn.appId") == TAG + version)
        # Names begin with the version of the commit, or of the checkpoint.
        found += ours.select(f.substring("_metadata.file_name", 1, 20), "txn.version").collect()
    named = max(found)[1] if found else -1
    if named < 0:
        raise InvalidOptionError(
            f"{version!r} is neither an integer nor a tag of the table {table}"
        )
    return int(named)
