"""The search for payloads that were deleted: in the columns of Parquet files, and in the bytes of all."""

import hashlib
import io
import pickle

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.audit import byte_search
from tensorlake_spark.audit.byte_search import WINDOW, Probes, Search, sha256_of
from tensorlake_spark.delta.store.storage import Storage

RNG = np.random.default_rng(7)
SECRET, OTHER = RNG.bytes(500), RNG.bytes(500)


def probes(*payloads, whole=True):
    out = Probes()
    for payload in payloads:
        out.add(payload, whole)
    return out


@pytest.fixture
def storage(tmp_path):
    return Storage(str(tmp_path))


def written(storage, name, data):
    with open(f"{storage.uri}/{name}", "wb") as file:
        file.write(data)
    return name


@pytest.mark.parametrize(
    "place", [0, 1, 15, 99, 4096 - WINDOW - 200, 4096 - 265, 4096 - 250, 4096 - 234, 9000]
)
def test_a_window_is_found_wherever_it_lies(storage, monkeypatch, place):
    """The bytes are read a part at a time, and a payload may lie across two or more."""
    data = bytearray(RNG.bytes(10_000))
    data[place : place + 500] = SECRET
    name = written(storage, "x.bin", bytes(data))
    for chunk in (4 << 20, 4096, 20):
        monkeypatch.setattr(byte_search, "_CHUNK", chunk)
        assert Search(probes(SECRET)).in_bytes(storage, name)
        assert not Search(probes(OTHER)).in_bytes(storage, name)


@pytest.mark.parametrize("filler", [0, 255, 7])
def test_a_window_that_is_half_zeros_is_found_among_zeros(storage, filler):
    """Blocks that are alike everywhere tell nothing; what is around them does."""
    payload = bytes([filler]) * 16 + bytes(range(100, 116))
    (window,) = probes(payload).windows
    search = Search(probes(payload))
    for place in range(40):
        data = bytearray([filler]) * 5000
        assert not search.in_bytes(storage, written(storage, "x.bin", bytes(data)))
        data[1000 + place : 1000 + place + WINDOW] = window
        assert search.in_bytes(storage, written(storage, "x.bin", bytes(data)))


def test_many_windows_are_told_from_what_nearly_is_one(storage):
    payloads = [RNG.bytes(40) for _ in range(3000)]
    search = Search(probes(*payloads))
    assert len(search.windows) == 3000
    nearly = b"".join(w[:20] + bytes([w[20] ^ 1]) + w[21:] + RNG.bytes(5) for w in search.windows)
    assert not search.in_bytes(storage, written(storage, "x.bin", nearly))
    for window in search.windows[::300]:
        assert search.in_bytes(storage, written(storage, "x.bin", nearly[:7777] + window))


def test_payloads_with_the_same_middle_are_told_apart(storage):
    other = bytes([SECRET[0] ^ 1]) + SECRET[1:]
    pq.write_table(pa.table({"values": [other]}), f"{storage.uri}/x.parquet")
    assert not Search(probes(SECRET)).in_columns(storage, "x.parquet")
    both = probes(OTHER)
    both.update(probes(other))
    assert Search(both).in_columns(storage, "x.parquet")


def test_a_payload_that_is_compressed_is_found_in_its_column(storage):
    for codec in ("zstd", "none"):
        table = pa.table({"index": [None, OTHER], "values": [SECRET, None], "id": ["x", "y"]})
        pq.write_table(table, f"{storage.uri}/{codec}.parquet", compression=codec)
        name = f"{codec}.parquet"
        assert Search(probes(SECRET)).in_columns(storage, name)
        assert Search(probes(OTHER)).in_columns(storage, name)
        assert not Search(probes(SECRET[1:])).in_columns(storage, name), (
            "payloads are compared whole"
        )


@pytest.mark.parametrize(
    ("kind", "wrap"),
    [
        (pa.large_binary(), lambda data: data),
        (pa.dictionary(pa.int32(), pa.binary()), lambda data: data),
        (pa.struct([("inner", pa.binary())]), lambda data: {"inner": data}),
        (pa.list_(pa.binary()), lambda data: [b"", data]),
        (pa.large_list(pa.large_binary()), lambda data: [b"", data]),
        (pa.list_(pa.binary(), 2), lambda data: [b"", data]),
        (pa.list_(pa.list_(pa.binary(), 1), 2), lambda data: [[b""], [data]]),
        (
            pa.map_(pa.string(), pa.struct([("data", pa.binary())])),
            lambda data: [("a", {"data": data})],
        ),
        (pa.map_(pa.binary(), pa.int64()), lambda data: [(data, 1)]),
        (pa.map_(pa.int64(), pa.binary()), lambda data: [(1, data)]),
        (pa.binary(500), lambda data: data),
    ],
)
def test_payloads_are_found_in_columns_of_every_type(storage, kind, wrap):
    """Other writers choose types of their own, as pandas does for its categories."""
    is_coded = pa.types.is_dictionary(kind)
    values = pa.array([wrap(OTHER), wrap(SECRET)], kind.value_type if is_coded else kind)
    table = pa.table({"sid": [0, 1], "a": values.dictionary_encode() if is_coded else values})
    pq.write_table(table, f"{storage.uri}/x.parquet", compression="zstd")
    assert Search(probes(SECRET)).in_columns(storage, "x.parquet")
    assert not Search(probes(RNG.bytes(500))).in_columns(storage, "x.parquet")


def test_the_shortest_payload_that_is_told_apart_is_found(storage):
    data = SECRET[:WINDOW]
    pq.write_table(pa.table({"values": [data]}), f"{storage.uri}/x.parquet")
    assert Search(probes(data)).in_columns(storage, "x.parquet")
    assert Search(probes(data)).in_bytes(storage, written(storage, "x.bin", data))


@pytest.mark.parametrize("name", ["values", "index"])
def test_all_bytes_of_samples_are_looked_at_also_beside_a_column_that_tensors_have(storage, name):
    table = pa.table({"sid": [0], name: [OTHER], "image": [SECRET]})
    pq.write_table(table, f"{storage.uri}/x.parquet")
    for payload in (SECRET, OTHER):
        assert Search(probes(payload)).in_columns(storage, "x.parquet")


def test_all_bytes_of_files_of_others_are_looked_at(storage):
    """A table that somebody made of ours has names of its own."""
    pq.write_table(pa.table({"x": [1], "photo": [SECRET]}), f"{storage.uri}/x.parquet")
    assert Search(probes(SECRET)).in_columns(storage, "x.parquet")
    assert not Search(probes(OTHER)).in_columns(storage, "x.parquet")


def test_blocks_that_share_their_place_in_the_table_are_told_apart(storage):
    """Some of them have keys beyond all that are looked for."""
    search = Search(probes(SECRET))
    search._table[:] = True
    noise = RNG.bytes(50_000)
    assert not search.in_bytes(storage, written(storage, "x.bin", noise))
    assert search.in_bytes(storage, written(storage, "y.bin", noise + SECRET))


def test_a_file_that_the_store_refuses_to_give_is_not_taken_for_clean(storage, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(byte_search, "read_footer", refused)
    with pytest.raises(tl.StorageError, match="Permission denied"):
        Search(probes(SECRET)).in_columns(storage, "x.parquet")


def test_a_file_that_cannot_be_read_to_its_end_has_no_columns(storage, monkeypatch):
    def torn(*_):
        raise OSError("Unexpected end of stream")

    monkeypatch.setattr(byte_search, "read_footer", torn)
    assert not Search(probes(SECRET)).in_columns(storage, "x.parquet")


def test_payload_of_rows_that_hold_more_are_not_looked_for_in_bytes(storage):
    name = written(storage, "x.bin", SECRET)
    assert not Search(probes(SECRET, whole=False)).in_bytes(storage, name)
    assert Search(probes(SECRET)).in_bytes(storage, name)


def test_what_identifies_nothing_is_not_looked_for():
    short, pattern = probes(SECRET[: WINDOW - 1]), probes(bytes(range(11)) * 100)
    assert (short.skipped, len(short.digests), short.windows) == (1, 0, [])
    assert (pattern.skipped, len(pattern.digests), pattern.windows) == (0, 1, [])
    assert len(probes(bytes(range(12)) * 100).windows) == 1, "twelve different bytes tell enough"


def test_who_looks_for_nothing_finds_nothing(storage):
    pq.write_table(pa.table({"values": [SECRET]}), f"{storage.uri}/x.parquet")
    assert not Search(Probes()).in_columns(storage, "x.parquet")
    assert not Search(Probes()).in_bytes(storage, "x.parquet")


def test_of_many_payloads_a_sample_is_looked_for(monkeypatch):
    many = probes(*(RNG.bytes(64) for _ in range(95)))
    every = many.windows
    assert len(every) == len(many.digests) == 95
    monkeypatch.setattr(byte_search, "MOST_WINDOWS", 10)
    assert many.windows == every[::10]


def test_probes_of_several_tasks_come_together():
    one, two = probes(SECRET, b"short"), probes(OTHER, SECRET, b"short")
    one.update(two)
    both = probes(SECRET, OTHER)
    assert (one.digests, one.windows, one.skipped) == (both.digests, both.windows, 2)
    one.update(probes(SECRET, whole=False))
    assert one.windows == both.windows
    one.add(SECRET, whole=False)
    assert one.windows == both.windows, (
        "as those of several tasks: the first says what is looked for"
    )


def test_files_that_are_gone_or_damaged_have_no_columns(storage):
    search = Search(probes(SECRET))
    torn = written(storage, "torn.parquet", b"PAR1" + SECRET + b"PAR1")
    assert not search.in_columns(storage, torn)
    assert search.in_bytes(storage, torn)
    assert not search.in_columns(storage, "gone.parquet")
    assert not search.in_bytes(storage, "gone.parquet")


def test_it_can_be_sent_to_executors(storage):
    name = written(storage, "x.bin", b"abc" + SECRET)
    sent = pickle.dumps(Search(probes(SECRET)))
    assert len(sent) < 1000, "what is made from it stays here"
    assert pickle.loads(sent).in_bytes(storage, name)


def test_the_digest_of_a_file(storage, monkeypatch):
    monkeypatch.setattr(byte_search, "_CHUNK", 7)
    name = written(storage, "x.bin", SECRET)
    assert sha256_of(storage, name) == hashlib.sha256(SECRET).hexdigest()


def test_pictures_are_not_told_by_what_all_begin_with():
    """Small JPEG files are mostly tables that are the same in all of them."""

    def picture(form, seed):
        out = io.BytesIO()
        pixels = np.random.default_rng(seed).integers(0, 256, (16, 16, 3), np.uint8)
        PIL.Image.fromarray(pixels).save(out, form)
        return out.getvalue()

    for form in ("jpeg", "png"):
        one, other = picture(form, 0), picture(form, 1)
        probes = Probes()
        probes.add(one)
        (window,) = probes.windows
        assert window in one
        assert window not in other
    nothing = Probes()
    nothing.add(b"\xff\xd8\xff" + bytes(range(256)) + b"\xff\xda" + bytes(range(30)))
    assert nothing.windows == []
    assert len(nothing.digests) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\x89PNG\r\n\x1a\n" + OTHER + b"IDAT" + OTHER[:4], OTHER[:16]),
        (b"\x89PNG\r\n\x1a\n", OTHER[:16]),
        (b"\xff\xd8\xff" + OTHER + b"\xff\xda" + OTHER + b"\xff\xda" + OTHER[:12], b"\xff\xd9"),
        (b"\xff\xd8\xff" + OTHER[1:12], b"\xff\xd9"),
        (b"", b""),
    ],
    ids=["png", "png of no rows", "jpeg", "jpeg of no scan", "no picture"],
)
def test_the_window_of_a_picture_lies_in_its_own_part(before, after):
    """After the tables, which come first and may be long, and before what all pictures end with."""
    own = SECRET[:WINDOW]
    assert probes(before + own + after).windows == [own]
    assert probes(before + own[1:] + after).windows == []
