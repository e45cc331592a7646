"""Payloads without a copy: Arrow is the oracle."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tensorlake_spark.delta.files.payload import (
    PayloadViews,
    nested_spans,
    over,
    plain_column,
    present_spans,
    uniform_pages,
)
from tensorlake_spark.delta.store.storage import Storage


def test_payload_views_equal_what_arrow_reads(tmp_path):
    rng = np.random.default_rng(0)
    values = [None if n % 7 == 3 else rng.bytes(int(rng.integers(0, 40))) for n in range(500)]
    path = tmp_path / "a.parquet"
    column = pa.table({"values": pa.array(values, pa.binary())})
    pq.write_table(
        column, path, compression="none", use_dictionary=False, row_group_size=123, data_page_size=200,
        write_batch_size=5, write_statistics=False,
    )  # fmt: skip
    buffer = Storage(str(tmp_path)).map_file("a.parquet")
    meta = pq.read_metadata(path)
    parts = []
    for group in range(meta.num_row_groups):
        chunk = plain_column(meta.row_group(group), 0)
        assert chunk is not None
        parts.append(PayloadViews(buffer, chunk))
    assert [v for part in parts for v in over(buffer, [part]).to_pylist()] == values
    assert over(buffer, parts).to_pylist() == values, "several row groups in one array"
    third = np.arange(len(values)) % 3 == 0
    assert over(buffer, parts, third).to_pylist() == values[::3]
    nulls = np.array([value is None for value in values])
    assert over(buffer, parts, nulls).equals(pa.nulls(nulls.sum(), pa.binary_view()))
    pq.write_table(column, path, compression="zstd")
    assert plain_column(pq.read_metadata(path).row_group(0), 0) is None


@pytest.mark.parametrize("length", [0, 1, 16, 300])
@pytest.mark.parametrize("count", [1, 7, 400])
def test_pages_of_values_of_one_length_are_where_each_value_is(tmp_path, length, count):
    rng = np.random.default_rng(1)
    values = [rng.bytes(length) for _ in range(count)]
    data, chunk = written(tmp_path, values, data_page_size=900)
    pages = uniform_pages(data, chunk.num_values, 1)
    found = [(at + n * (size + 4), size) for at, rows, size in pages for n in range(rows)]
    assert found == nested_spans(data, chunk.num_values, 1)[0]
    assert uniform_pages(data[:-1], chunk.num_values, 1) is None
    assert uniform_pages(data, chunk.num_values + 1, 1) is None


@pytest.mark.parametrize(
    "values", [[b"ab", None, b"cd"], [b"a", b"bcd", b"ef"], [None, None], [b"abc", b"", b"abcdef"]]
)
def test_values_of_other_lengths_and_nulls_have_no_such_pages(tmp_path, values):
    data, chunk = written(tmp_path, values)
    assert uniform_pages(data, chunk.num_values, 1) is None
    spans = nested_spans(data, chunk.num_values, 1)[0]
    found = present_spans(data, chunk.num_values, 1)
    if None in values:
        assert found is None
    else:
        assert list(zip(*(one.tolist() for one in found), strict=True)) == spans


def test_values_that_are_there_lie_where_each_is(tmp_path):
    rng = np.random.default_rng(2)
    values = [rng.bytes(int(n)) for n in rng.integers(0, 50, 700)] + [b"four"] * 300
    data, chunk = written(tmp_path, values, data_page_size=1000)
    found = present_spans(data, chunk.num_values, 1)
    spans = nested_spans(data, chunk.num_values, 1)[0]
    assert list(zip(*(one.tolist() for one in found), strict=True)) == spans
    assert present_spans(data[:-1], chunk.num_values, 1) is None
    damaged = bytearray(data)
    place, length = spans[500]
    damaged[place - 4 : place] = (length + 1).to_bytes(4, "little")
    assert present_spans(memoryview(bytes(damaged)), chunk.num_values, 1) is None
    damaged[place - 4 : place] = b"\xff" * 4
    assert present_spans(memoryview(bytes(damaged)), chunk.num_values, 1) is None


def written(folder, values, **options):
    """Return the bytes of a column chunk with values, and what the footer says of it."""
    path = folder / "a.parquet"
    table = pa.table({"values": pa.array(values, pa.binary())})
    pq.write_table(
        table, path, compression="none", use_dictionary=False, write_statistics=False,
        write_batch_size=5, **options,
    )  # fmt: skip
    chunk = plain_column(pq.read_metadata(path).row_group(0), 0)
    start = chunk.data_page_offset
    whole = memoryview(path.read_bytes())
    return whole[start : start + chunk.total_compressed_size], chunk


def test_a_header_ends_as_arrow_has_it_end(tmp_path):
    data, chunk = written(tmp_path, [b"abc", None])
    changed = bytearray(data)
    end = data.tobytes().index(b"\0\0")  # of the struct in the header, and of the header
    changed[end + 1] = 0x40
    assert nested_spans(memoryview(changed), chunk.num_values, 1) == nested_spans(data, 2, 1)
