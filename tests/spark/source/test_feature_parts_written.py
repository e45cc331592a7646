"""What tasks encode of features before all rows are known is what the driver would have encoded."""

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.columns.elsewhere.feature_parts import PartEncoding
from tensorlake_spark.columns.elsewhere.rows_aside import put_aside
from tensorlake_spark.columns.feature_encoding import new_tensors
from tensorlake_spark.delta.log.properties import FILE_BYTES
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import ConcurrentWriteError
from tensorlake_spark.rows.row import SCHEMA
from tensorlake_spark.spark.source.feature_parts_written import TaskEncoding, WrittenRows
from tensorlake_spark.spark.source.feature_relay import Baton

COLUMNS = pa.schema([("a", pa.int64()), ("b", pa.float32())])


@pytest.fixture
def work(tmp_path):
    storage = Storage(str(tmp_path))
    return TaskEncoding(storage, "mark-", "ctr", None, "auto", COLUMNS, FILE_BYTES, SCHEMA)


def put(work, partition, rows):
    numbers = [pa.array(np.arange(rows), f.type) for f in COLUMNS]
    batch = pa.record_batch(numbers, schema=COLUMNS)
    return put_aside(work.storage, [batch], COLUMNS, COLUMNS, work.mark, partition)


def encoding_of(work, rows, codec="auto"):
    tensors = new_tensors("ctr", rows, codec)
    return PartEncoding(work.storage, FILE_BYTES, SCHEMA, tuple(tensors)).without_names()


def test_the_driver_takes_parts_whose_tensors_are_the_same(work):
    file = put(work, 0, 5000)
    parts = [*work.encode(Baton(), file)]
    assert [(part.start, part.stop) for part in parts] == [(0, 4096)]
    assert len(parts[0].prints) == 4  # of values and of nulls, by dtype
    rows = WrittenRows(work.storage, COLUMNS, work.mark, [file], parts)
    assert (rows.rows, rows.with_nulls) == (5000, frozenset())
    encoding = encoding_of(work, rows)
    taken = [*rows.encode(encoding)]
    assert taken[0].files == parts[0].encoded.files
    assert len(taken[0].totals) == 2
    assert len(taken) == 2
    again = [*rows.encode(encoding)]
    assert len(again) == 1, "a part is taken once"


def test_tensors_that_are_coded_otherwise_are_encoded_anew(work):
    file = put(work, 0, 4096)
    parts = [*work.encode(Baton(), file)]
    rows = WrittenRows(work.storage, COLUMNS, work.mark, [file], parts)
    (made,) = rows.encode(encoding_of(work, rows, "raw"))
    assert made.files != parts[0].encoded.files


def test_a_file_that_completes_no_block_gives_no_part(work):
    assert [*work.encode(Baton(), put(work, 0, 4095))] == []


def test_other_types_are_an_error(work):
    rows = WrittenRows(work.storage, COLUMNS, work.mark, [], [])
    rows.prepare(None)
    rows.prepare(COLUMNS)
    with pytest.raises(ConcurrentWriteError, match="types of the features"):
        rows.prepare(pa.schema([("a", pa.int32()), ("b", pa.float32())]))
