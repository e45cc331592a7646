"""A new table of samples says what it is, and how Spark should write to it."""

import pyarrow as pa
from deltalake import DeltaTable
from stored_rows import SCHEMA

from tensorlake_spark.delta.log.requirements import DATASET
from tensorlake_spark.delta.samples.samples_table import create_samples_table, properties_for


def test_it_has_the_least_protocol_and_keeps_types(storage):
    table = DeltaTable(storage.uri)
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert table.metadata().configuration[DATASET] == "1"
    assert pa.schema(table.schema().to_arrow()).equals(SCHEMA)


def test_spark_is_told_to_leave_payloads_as_they_are():
    found = properties_for(SCHEMA)
    plain = [name for name in found if name.startswith("parquet.enable.dictionary#")]
    assert plain == [
        f"parquet.enable.dictionary#{path}"
        for path in ("image.data", "g.image.data", "tags.list.element.data")
    ]


def test_who_comes_second_opens_what_the_first_made(storage):
    again = create_samples_table(storage, SCHEMA)
    assert again.version == 0
