"""Properties of a table, as ``ALTER TABLE ... SET TBLPROPERTIES`` sets them, that this package goes by."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping

from tensorlake_spark.errors import FormatError

FILE_BYTES = 128 << 20
"""Target size of a data file where the table does not say ``delta.targetFileSize``."""

ROW_GROUP_BYTES = 2 << 20
"""A row group is closed before it would grow beyond this: the least that a slice reads at a time."""

TABLE_PROPERTIES = {
    "delta.dataSkippingStatsColumns": "id,seq,lo,hi,nnz",
    # As delta-spark has it: what opening costs grows with the commits since the last checkpoint.
    "delta.checkpointInterval": "10",
    # What Spark writes (OPTIMIZE, DELETE, MERGE) keeps the shape of what we write.
    "parquet.block.size": str(ROW_GROUP_BYTES),
    "parquet.block.row.count.limit": "1024",
    "parquet.page.size.row.check.min": "1",
    "parquet.page.size.row.check.max": "64",
    "parquet.compression": "ZSTD",
    "parquet.enable.dictionary#values": "false",
    "parquet.enable.dictionary#index": "false",
    "parquet.column.statistics.enabled#values": "false",
    "parquet.column.statistics.enabled#index": "false",
}
"""Properties of a new table."""

CHECKPOINT_INTERVAL = int(TABLE_PROPERTIES["delta.checkpointInterval"])

_SIZE = re.compile(r"\s*(\d*[1-9]\d*)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_UNITS = ("week", "day", "hour", "minute", "second", "millisecond", "microsecond")
_SPAN = re.compile(rf"(\d+)\s+({'|'.join(_UNITS)})s?\b\s*", re.IGNORECASE)
_INTERVAL = re.compile(rf"\s*(?:interval\s+)?((?:{_SPAN.pattern})+)", re.IGNORECASE)
_WEEK = dt.timedelta(days=7)


def commits_between(files: int, share: int = 100) -> int:
    """Return after how many commits a table of so many files gets what costs as much as it has files.

    It is about one in `share` of them, so that the cost of a commit does not grow with the table; a power of
    two times the least, so that versions it divides stay so while the table grows.

    Examples
    --------
    >>> [commits_between(files) for files in (0, 1000, 2000, 10_000)]
    [10, 10, 20, 80]
    """
    pace = CHECKPOINT_INTERVAL
    while pace * 2 <= files // share:
        pace *= 2
    return pace


def file_bytes(properties: Mapping[str, str], uri: str) -> int:
    """Return the target size of new data files: ``delta.targetFileSize``, as ``268435456`` or ``256mb``.

    Parameters
    ----------
    properties : mapping
        The table's.
    uri : str
        Where it lies, for messages.

    Raises
    ------
    FormatError
        If that is no size.
    """
    found = _parsed(
        properties, uri, "delta.targetFileSize", _SIZE, "size such as 268435456 or 256mb"
    )
    return int(found[1]) << 10 * " kmgt".index(found[2].lower() or " ") if found else FILE_BYTES


def retention(properties: Mapping[str, str], uri: str) -> dt.timedelta:
    """Return how long files that left the table are kept: ``delta.deletedFileRetentionDuration``, or a week.

    Parameters
    ----------
    properties : mapping
        The table's.
    uri : str
        Where it lies, for messages.

    Raises
    ------
    FormatError
        If that is no duration.
    """
    name = "delta.deletedFileRetentionDuration"
    found = _parsed(properties, uri, name, _INTERVAL, "duration such as 'interval 1 week'")
    if not found:
        return _WEEK
    spans = [{f"{unit.lower()}s": int(count)} for count, unit in _SPAN.findall(found[1])]
    return sum((dt.timedelta(**span) for span in spans), dt.timedelta())


def _parsed(
    properties: Mapping[str, str], uri: str, name: str, form: re.Pattern[str], what: str
) -> re.Match[str] | None:
    """Return what a property says, None if it is not set."""
    text = properties.get(name)
    if text is None:
        return None
    found = form.fullmatch(text)
    if found is None:
        raise FormatError(
            f"the table at {uri} has {name} = {text!r}, which is no {what}; set another one with "
            "ALTER TABLE ... SET TBLPROPERTIES"
        )
    return found
