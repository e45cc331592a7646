"""Rows to files."""

from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.store.storage import Storage


def test_a_writer_that_never_wrote_aborts(lake):
    FileWriter(Storage(lake.uri)).abort()
