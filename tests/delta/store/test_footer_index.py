"""The index of row groups: with it or without it, a reader finds the same, and no index is believed that does not fit."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stored import forget

from tensorlake_spark.delta.files.footer import Footer
from tensorlake_spark.delta.files.footer_checksum import read_footer, read_indexed
from tensorlake_spark.delta.files.statistics import BOUNDED
from tensorlake_spark.delta.store import footer_index
from tensorlake_spark.delta.store.footer_index import END, FooterIndex, IndexedFooter
from tensorlake_spark.delta.store.parquet_output import SEAL
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.checksum import crc32

pytestmark = pytest.mark.local_disk

GROUPS = 20


@pytest.fixture
def x(lake, monkeypatch):
    """A tensor whose file has many row groups, each with two of its rows, and one with metadata."""
    monkeypatch.setattr(layout_of("ftsf"), "row_group_bytes", 500, raising=False)
    x = np.random.default_rng(0).integers(-9, 9, (4 * GROUPS, 30)).astype("i4")
    lake.write("a/x", x, block_shape=(2, 30), codec="raw")
    forget()
    return x


def stored(lake):
    """Return the storage of a lake and its largest file."""
    path = max(Path(lake.uri).glob("*.parquet"), key=lambda one: one.stat().st_size)
    return Storage(lake.uri), path


def parts(path):
    """Return a file up to its index, the text of that, and its seal and footer."""
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    seal = len(data) - 8 - length - SEAL.size
    size, crc, magic = END.unpack(data[seal - END.size : seal])
    text = data[seal - END.size - size : seal - END.size]
    assert (magic, crc) == (b"TLFI", crc32(text))
    return data[: seal - END.size - size], text, data[seal:]


def put(path, before, text, after, crc=None):
    end = END.pack(len(text), crc32(text) if crc is None else crc, b"TLFI")
    path.write_bytes(before + text + end + after)
    forget()


def test_each_row_group_is_what_it_is_in_the_whole_footer(lake, x):
    storage, path = stored(lake)
    whole = read_footer(storage, path.name)
    assert whole.num_row_groups >= GROUPS
    found = read_indexed(storage, path.name)
    assert isinstance(found, IndexedFooter)
    assert found.num_rows == whole.num_rows
    for groups in [[g] for g in range(whole.num_row_groups)] + [[3, 1], [0, 2, 9, 17]]:
        some, numbers = read_indexed(storage, path.name).part(groups)
        assert some.num_row_groups == len(groups)
        assert some.schema.equals(whole.schema)
        for g, number in zip(groups, numbers, strict=True):
            assert some.row_group(number).equals(whole.row_group(g))
    known, by_index = Footer(whole), Footer(found)
    for name in BOUNDED:
        assert by_index.bounds(name) == known.bounds(name), name
    for name in ("rows", "nbytes", "first_row"):
        assert getattr(by_index, name).tolist() == getattr(known, name).tolist()
    for data in (True, False):
        assert (by_index.may_hold("a/x", data) == known.may_hold("a/x", data)).all()
    assert by_index.metadata.equals(whole)
    assert pq.read_table(path).num_rows == whole.num_rows


def test_groups_that_were_parsed_are_not_parsed_again_and_many_are_parsed_at_once(
    lake, x, monkeypatch
):
    storage, path = stored(lake)
    found = read_indexed(storage, path.name)
    parsed = []
    before = footer_index._parsed
    monkeypatch.setattr(
        footer_index, "_parsed", lambda footer: parsed.append(len(footer)) or before(footer)
    )
    some, _ = found.part([5, 7])
    assert found.part([7])[0] is some
    assert found.part([7])[1] == [1]
    assert found.schema.equals(some.schema)
    assert len(parsed) == 1
    count = len(found.index.rows)
    for g in range(count):
        found.part([g])
    assert found.part([0, count - 1]) == (found.metadata, [0, count - 1])
    assert len(parsed) <= 2 + count // 2


def test_a_lake_reads_what_it_wrote(lake, x):
    for key in [3, slice(5, 9), (slice(None), 4), slice(None, None, 17), ...]:
        forget()
        assert (lake["a/x"][key] == x[key]).all()
    assert not lake.check().findings


def test_few_row_groups_have_no_index(lake):
    lake.write("x", np.arange(10))
    _, path = stored(lake)
    assert b"TLFI" not in path.read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"head": 0}, {"head": True}, {"head": 1 << 40}, {"head": None}, {"lengths": []}, {"lengths": "no"},
        {"lengths": [1 << 62]}, {"rows": [2]}, {"rows": {}}, {"nbytes": [1, 2]}, {"bounds": []}, {"bounds": {"seq": 3}},
        {"bounds": {"seq": [[1], ["a"]]}}, {"bounds": {"id": [[1], [1]]}}, {"bounds": {"seq": [[1, 2], [3]]}},
        {"bounds": {"seq": [[1], [2], [3]]}}, {"rows": [True]},
    ],
)  # fmt: skip
def test_an_index_that_does_not_fit_is_not_believed(lake, x, change):
    storage, path = stored(lake)
    before, text, after = parts(path)
    put(path, before, json.dumps(json.loads(text) | change).encode(), after)
    try:
        found = read_indexed(storage, path.name)
        whole = not isinstance(found, IndexedFooter)
    except CorruptDataError:
        pytest.fail("a reader needs no index")
    if whole:
        assert (lake["a/x"][:] == x).all()
    else:  # all row groups have as many rows: what is wrong is seen when one of them is parsed
        with pytest.raises(CorruptDataError, match="the index of row groups is of another footer"):
            found.part([len(found.index.rows) - 1])


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"{}", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_index_is_left_out(lake, x, text):
    storage, path = stored(lake)
    before, _, after = parts(path)
    put(path, before, text, after)
    assert isinstance(read_indexed(storage, path.name), pq.FileMetaData)
    assert (lake["a/x"][:] == x).all()


def test_every_changed_byte_of_an_index_is_found(lake, x):
    storage, path = stored(lake)
    before, text, after = parts(path)
    for place in range(0, len(text), 7):
        changed = bytearray(text)
        changed[place] ^= 1
        put(path, before, bytes(changed), after, crc32(text))
        assert isinstance(read_indexed(storage, path.name), pq.FileMetaData)


def test_an_index_that_says_another_thing_than_the_footer_is_a_finding(lake, x):
    _, path = stored(lake)
    before, text, after = parts(path)
    said = json.loads(text)
    said["bounds"]["lo.d0"] = [[0], [0]]
    changed = json.dumps(said).encode()
    put(path, before, changed.ljust(len(text)), after)
    assert any("index of the footer" in str(one) for one in lake.check().findings)


def test_row_groups_that_are_not_found_in_a_footer_have_no_index():
    table = pa.table({"other": list(range(100))})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=5)
    data = sink.getvalue().to_pybytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    metadata = pq.read_metadata(pa.BufferReader(data))
    assert FooterIndex.of(footer, metadata, {}) is None


def test_places_of_row_groups_that_do_not_add_up_are_not_written(lake, x, monkeypatch):
    storage, path = stored(lake)
    data = path.read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    metadata = read_footer(storage, path.name)
    assert FooterIndex.of(footer, metadata, {}) is not None

    class Shifted:
        """Finds every row group but the last a byte too late."""

        def finditer(self, text):
            places = [match.start() for match in footer_index_begin.finditer(text)]
            return [Place(at + (number < len(places) - 1)) for number, at in enumerate(places)]

    class Place(int):
        def start(self):
            return int(self)

    footer_index_begin = footer_index._BEGIN
    monkeypatch.setattr(footer_index, "_BEGIN", Shifted())
    assert FooterIndex.of(footer, metadata, {}) is None
