"""Properties of a table that this package goes by."""

import datetime as dt

import pytest

from tensorlake_spark.delta.log.properties import (
    FILE_BYTES,
    TABLE_PROPERTIES,
    file_bytes,
    retention,
)
from tensorlake_spark.errors import FormatError

SIZES = [("1", 1), ("268435456", 1 << 28), ("256mb", 256 << 20), (" 2 GiB ", 2 << 30), ("3k", 3 << 10), ("1T", 1 << 40)]  # fmt: skip
TIMES = [("interval 1 week", 7), ("interval 2 days", 2), ("INTERVAL 48 HOURS", 2), ("3 day", 3), ("interval 0 seconds", 0)]  # fmt: skip


@pytest.mark.parametrize(("text", "size"), SIZES)
def test_sizes_are_read(text, size):
    assert file_bytes({"delta.targetFileSize": text}, "here") == size


@pytest.mark.parametrize(("text", "days"), TIMES)
def test_durations_are_read(text, days):
    said = {"delta.deletedFileRetentionDuration": text}
    assert retention(said, "here") == dt.timedelta(days=days)


def test_durations_of_several_units_are_read():
    """Spark takes them, and a vacuum said that they are none."""
    said = {"delta.deletedFileRetentionDuration": "interval 1 day 12 hours 5 milliseconds"}
    assert retention(said, "here") == dt.timedelta(days=1, hours=12, milliseconds=5)


def test_a_table_that_says_nothing_has_the_defaults():
    assert file_bytes(TABLE_PROPERTIES, "here") == FILE_BYTES
    assert retention(TABLE_PROPERTIES, "here") == dt.timedelta(days=7)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5mb", "large", "1 xb"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(
        FormatError, match=r"table at here has delta.targetFileSize = .*TBLPROPERTIES"
    ):
        file_bytes({"delta.targetFileSize": text}, "here")


@pytest.mark.parametrize(
    "text", ["", "1", "interval week", "interval 1 month", "-1 day", "1 day 2", "1 days2 hours"]
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(FormatError, match="no duration such as 'interval 1 week'"):
        retention({"delta.deletedFileRetentionDuration": text}, "here")
