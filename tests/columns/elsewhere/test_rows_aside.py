"""Rows that are put aside come back as they are encoded, in their order."""

import os

import pyarrow as pa
import pytest

from tensorlake_spark.columns.elsewhere.rows_aside import (
    AsideFile,
    cut_spans,
    parts_between,
    put_aside,
    read_spans,
    sample_of,
    spans_in,
)
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidTensorError

GIVEN = pa.schema([("a", pa.int32())])
WANTED = pa.schema([("b", pa.float32()), ("a", pa.uint8())])


def batches(*sizes):
    return [pa.record_batch([pa.array(range(n), pa.int32())], schema=GIVEN) for n in sizes]


@pytest.fixture
def storage(tmp_path):
    return Storage(str(tmp_path))


def test_rows_come_back_in_the_types_that_are_written(storage):
    file = put_aside(storage, batches(3, 0, 2), GIVEN, WANTED, "mark-", 7)
    assert (file.partition, file.rows, file.nulls) == (7, (3, 0, 2), ("b",))
    assert file.path.startswith("part-mark-")
    assert AsideFile.from_json(file.to_json()) == file
    found = read_spans(storage, spans_in([file, file], 2, 7), WANTED)
    assert found.schema == WANTED
    assert found["a"].to_pylist() == [2, 0, 1, 0, 1]
    assert found["b"].null_count == 5


def test_a_value_that_does_not_fit_is_an_error(storage):
    with pytest.raises(InvalidTensorError, match="column 'a' of type int32 does not fit"):
        put_aside(storage, batches(257), GIVEN, WANTED, "mark-", 0)


def test_a_sample_is_of_the_middle_and_no_longer_than_a_block(storage):
    wide = pa.schema([("b", pa.float32()), ("a", pa.int32())])
    file = put_aside(storage, batches(1, 5000, 2), GIVEN, wide, "mark-", 0)
    found = sample_of(storage, spans_in([file], 0, 5003), wide, ["a"])
    assert found.column_names == ["a"]
    assert found["a"].to_pylist() == [*range(4096)]
    assert sample_of(storage, [], wide, ["a"]).num_rows == 0


def test_spans_of_spans():
    spans = spans_in([AsideFile(0, "x", (3, 4), ()), AsideFile(1, "y", (5,), ())], 1, 11)
    assert [s.count for s in spans] == [2, 4, 4]
    assert [(s.path, s.batch, s.first, s.count) for s in cut_spans(spans, 1, 7)] == [
        ("x", 0, 2, 1), ("x", 1, 0, 4), ("y", 0, 0, 1),
    ]  # fmt: skip
    assert cut_spans(spans, 10, 20) == []


def test_parts_are_whole_blocks():
    assert [*parts_between(4096, 4096, GIVEN)] == []
    wide = pa.schema([(f"f{k}", pa.float64()) for k in range(2048)])
    assert [*parts_between(4096, 9000, wide)] == [(4096, 8192), (8192, 9000)]


def test_nothing_is_named_by_a_commit(storage, tmp_path):
    put_aside(storage, [], GIVEN, GIVEN, "mark-", 0)
    assert all(name.endswith(".arrow") for name in os.listdir(tmp_path))
