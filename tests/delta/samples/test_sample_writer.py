"""Data files of samples: payloads as they are, bounds that hold, nothing left behind."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stored_rows import SCHEMA, rows

from tensorlake_spark.delta.samples import sample_writer
from tensorlake_spark.delta.samples.sample_writer import SORTED, SampleWriter
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.store.parquet_output import ParquetOutput
from tensorlake_spark.delta.store.payload_lengths import NULL, unpacked_lengths
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.binary_views import views_of
from tensorlake_spark.rows.row_sizes import row_ends


def test_payloads_lie_in_the_file_as_they_are(stored):
    """Media are not compressed again, have no dictionary, and small columns have bounds."""
    path = f"{stored.snapshot.storage.uri}/{stored.files[0].path}"
    group = pq.read_metadata(path).row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    data = columns["image.data"]
    assert data.compression == "UNCOMPRESSED"
    assert data.dictionary_page_offset is None
    assert not data.is_stats_set
    assert columns["image.height"].compression == "ZSTD"
    assert columns["image.height"].is_stats_set
    assert stored.files[0].path.startswith(SORTED)


def test_the_log_has_bounds_that_hold(storage):
    floats = pa.schema(
        [
            pa.field("sid", pa.int64(), nullable=False),
            pa.field("x", pa.float64()),
            pa.field("s", pa.string()),
        ]
    )
    where = Storage(f"{storage.uri}-2")
    create_samples_table(where, floats)
    with SampleWriter(where, floats) as writer:
        writer.add(pa.table([[0, 1], [1.0, float("nan")], ["b" * 40, "a"]], schema=floats))
        (file,) = writer.finish()
    said = json.loads(file.stats)
    assert said["minValues"] == {"sid": 0, "s": "a"}
    assert said["maxValues"] == {"sid": 1}, "NaN has no bound, and a long text none above"
    assert said["nullCount"] == {"sid": 0, "x": 0, "s": 0}


def test_what_was_written_for_nothing_is_deleted(storage, tmp_path):
    with pytest.raises(ZeroDivisionError), SampleWriter(storage, SCHEMA, 100, 100) as writer:
        writer.add(rows(0, 50))
        raise ZeroDivisionError
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["_delta_log"]


def group_rows(storage, files):
    metas = [pq.read_metadata(f"{storage.uri}/{file.path}") for file in files]
    return [meta.row_group(g).num_rows for meta in metas for g in range(meta.num_row_groups)]


PAYLOADS = pa.schema([pa.field("sid", pa.int64(), nullable=False), pa.field("d", pa.binary())])


def payloads(sizes):
    return pa.table([[*range(len(sizes))], [bytes(n) for n in sizes]], schema=PAYLOADS)


def test_samples_that_are_alike_share_row_groups_evenly(storage):
    with SampleWriter(storage, PAYLOADS, row_group_bytes=10_000) as writer:
        writer.add(payloads([100] * 250))
        writer.add(payloads([100] * 250))
        files = writer.finish()
    counts = group_rows(storage, files)
    assert sum(counts) == 500
    assert max(counts) * 112 <= 10_000 * 1.25


def test_many_samples_at_once_are_written_several_row_groups_at_a_time(storage, monkeypatch):
    """The first row group goes out at once, the others together: each call needs the interpreter."""
    calls = []
    write = ParquetOutput.write

    def counted(self, part, most=None):
        calls.append(-(-part.num_rows // most))
        write(self, part, most)

    monkeypatch.setattr(ParquetOutput, "write", counted)
    given = rows(0, 100)
    nbytes = int(row_ends(given)[-1])
    with SampleWriter(storage, SCHEMA, 1 << 30, nbytes // 9) as writer:
        writer.add(given)
        files = writer.finish()
    assert calls[0] == 1
    assert len(calls) <= 4
    assert max(calls) <= sample_writer.GROUPS_AT_ONCE + 1
    assert sum(group_rows(storage, files)) == 100
    assert pq.read_table(f"{storage.uri}/{files[0].path}").equals(given)


def test_a_row_group_is_cut_where_samples_are_large(storage):
    sizes = [10] * 50 + [9_000, 9_000, 50_000] + [10] * 50
    with SampleWriter(storage, PAYLOADS, row_group_bytes=10_000) as writer:
        writer.add(payloads(sizes))
        files = writer.finish()
    counts = group_rows(storage, files)
    stops = [sum(counts[: n + 1]) for n in range(len(counts))]
    assert stops[-1] == 103
    for start, stop in zip([0, *stops], stops, strict=False):
        assert stop - start == 1 or sum(sizes[start:stop]) + 12 * (stop - start) <= 10_000


def test_tiny_samples_have_row_groups_of_few_rows(storage, monkeypatch):
    monkeypatch.setattr(sample_writer, "GROUP_ROWS", 30)
    with SampleWriter(storage, PAYLOADS) as writer:
        writer.add(payloads([1] * 100))
        files = writer.finish()
    assert group_rows(storage, files) == [25] * 4


def lengths_in(storage, file, path):
    with storage.open_parquet(file.path) as opened:
        metadata = opened.metadata
    found = unpacked_lengths(metadata.metadata, path, metadata.num_rows)
    return None if found is None else found.tolist()


@pytest.mark.parametrize("size", [100, 9_000])
def test_the_footer_has_the_lengths_of_payloads_that_are_not_small(tmp_path, size):
    storage = Storage(str(tmp_path))
    values = [bytes(size + number) if number % 7 else None for number in range(600)]
    rows = pa.table({"data": values, "tiny": [b"x"] * 600})
    with SampleWriter(storage, rows.schema, file_bytes=3 << 20, row_group_bytes=1 << 20) as writer:
        for start in range(0, 600, 50):
            writer.add(rows.slice(start, 50))
        files = writer.finish()
    found = [lengths_in(storage, file, "data") for file in files]
    assert all(lengths_in(storage, file, "tiny") is None for file in files)
    if size < 4096:
        assert found == [None] * len(files)
    else:
        assert len(files) > 1
        assert [one for some in found for one in some] == [
            NULL if one is None else len(one) for one in values
        ]


MEDIA = pa.struct([pa.field("data", pa.binary()), pa.field("height", pa.int32())])
PHOTOS = pa.schema([pa.field("sid", pa.int64(), nullable=False), pa.field("photo", MEDIA)])


def photos(first, values, viewed):
    """Samples whose bytes are views, or are not; None is a sample without a photo."""
    files = [None if v is None else bytes([v % 251]) * v for v in values]
    data = views_of(files) if viewed else pa.array(files, pa.binary())
    fields = [MEDIA.field("data").with_type(data.type), MEDIA.field("height")]
    column = pa.StructArray.from_arrays(
        [data, pa.array([v or 0 for v in values], pa.int32())],
        fields=fields,
        mask=pa.array([v is None for v in values]),
    )
    schema = pa.schema([PHOTOS.field("sid"), pa.field("photo", column.type)])
    return pa.table([pa.array(range(first, first + len(values))), column], schema=schema)


@pytest.mark.parametrize("size", [20, 5_000])
def test_views_and_copies_are_written_alike(storage, size):
    """Batches of both kinds, in row groups that begin and end inside them, with nulls."""
    values = [None if n % 7 == 3 else size + n for n in range(120)]
    files = []
    for kinds in ([False] * 3, [True] * 3, [True, False, True]):
        with SampleWriter(storage, PHOTOS, row_group_bytes=9 * size) as writer:
            for n, viewed in enumerate(kinds):
                writer.add(photos(40 * n, values[40 * n : 40 * n + 40], viewed))
            files += writer.finish()
    assert len({tuple(group_rows(storage, [file])) for file in files}) == 1
    tables = [pq.read_table(f"{storage.uri}/{file.path}") for file in files]
    assert tables[0].schema.equals(PHOTOS)
    assert tables[0].equals(photos(0, values, False))
    assert tables[1].equals(tables[0])
    assert tables[2].equals(tables[0])
    assert len({file.stats for file in files}) == 1
    said = [pq.read_metadata(f"{storage.uri}/{file.path}").metadata or {} for file in files]
    assert said[0] == said[1] == said[2]
