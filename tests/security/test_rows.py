"""Rows that lie, under checksums that hold: sizes, ranks, counts, names, and frames that unpack to more."""

import contextlib
import json
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from work import calls

import tensorlake_spark as tl
from tensorlake_spark.delta.files import payload
from tensorlake_spark.layouts.coding.decompression import (
    ZSTD,
    content_size,
    inflate,
    inflate_many,
)

DEEP = "[" * 100_000 + "]" * 100_000

META = [
    ({"shape": [2**62]}, {}),
    ({"shape": [2**40]}, {}),
    ({"shape": [2**31, 2**31]}, {}),
    ({"shape": [2**20] * 3}, {}),
    ({"shape": [-4]}, {}),
    ({"shape": [1] * 10_000}, {}),
    ({"shape": None}, {}),
    ({"shape": [4, 4]}, {}),
    ({"shape": []}, {}),
    ({"block_shape": [-1]}, {}),
    ({"block_shape": [0]}, {}),
    ({"block_shape": [2**62]}, {}),
    ({"block_shape": [1, 1]}, {}),
    ({"shape": [2**40], "block_shape": [1]}, {}),
    ({"dtype": "object"}, {}),
    ({"dtype": "O"}, {}),
    ({"dtype": None}, {}),
    ({"dtype": "V1000000000000"}, {}),
    ({"dtype": "(1000000,)f8"}, {}),
    ({"layout": "../x"}, {}),
    ({"layout": None}, {}),
    ({"codec": "evil"}, {}),
    ({"codec": None}, {}),
    ({"id": "../x"}, {}),
    ({"id": "a\x00b"}, {}),
    ({"id": "x" * 100_000}, {}),
    ({}, {"rows": -1}),
    ({}, {"rows": 2**80, "nnz": 2**80}),
    ({}, {"rows": "x"}),
    ({}, {"rows": True}),
    ({}, {"nnz": -5}),
    ({}, {"fill": "zz"}),
    ({}, {"fill": "00" * 1000}),
    ({}, {"fill": 5}),
    ({}, {"segments": [[2**62, -3]]}),
    ({}, {"segments": [[5]]}),
    ({}, {"segments": 5}),
    ({}, {"segments": [["a"]]}),
    ({}, {"segments": [[0]] * 9}),
    ({}, {"axes": ["<script>"]}),
    ({}, {"axes": 5}),
    ({}, {"axes": [[1]]}),
    ({}, {"attrs": 5}),
    ({}, {"attrs": [1, 2]}),
    ({}, {"labels": {"x": 5}}),
    ({}, {"labels": []}),
    ({}, {"axes": ["x"], "labels": {"x": [[1], 2, 3, {}]}}),
    ({}, {"axes": ["x"], "labels": {"x": {"start": "2020", "step": 10**30, "unit": "D"}}}),
    ({}, {"axes": ["x"], "labels": {"x": {"__class__": 1}}}),
    ({}, {"params": 5}),
    ({}, {"params": {"order": [9]}}),
    ({}, {"format": "x"}),
    ({}, {"format": 10**400}),
    ({}, {"format": -1}),
    ({}, "[]"),
    ({}, "5"),
    ({}, '{"format":1}'),
    ({}, DEEP),
    ({}, '{"format":1,"attrs":' + DEEP + "}"),
    ({}, '{"format":' + "9" * 10_000 + "}"),
]


@pytest.mark.parametrize(
    ("column", "kind"),
    [("id", pa.int64()), ("id", pa.binary()), ("nnz", pa.string()), ("seq", pa.float64())],
)
def test_columns_of_another_type_are_an_error_of_ours(tmp_path, forge, column, kind):
    """In a file alone: the schema of the log is as it should be."""
    tl.open(tmp_path / "lake").write("x", np.arange(12).reshape(3, 4), layout="coo")
    (path,) = (tmp_path / "lake").glob("*.parquet")
    table = pq.read_table(path)
    place = table.column_names.index(column)
    texts = pa.array(["7"] * table.num_rows)
    values = texts.cast(kind) if kind != pa.int64() else pa.array([7] * table.num_rows)
    other = path.with_name("other.parquet")
    pq.write_table(table.set_column(place, column, values), other)

    def follow(action):
        if "add" in action:
            action["add"] |= {"path": other.name, "size": other.stat().st_size}
            action["add"].pop("stats")

    forge(tmp_path / "lake").log(follow)
    lake = tl.open(tmp_path / "lake")
    with pytest.raises(tl.CorruptDataError, match=f"the column {column} of the file is"):
        lake["x"]
    assert not lake.check().ok


@pytest.mark.parametrize(
    "levels", [b"\xfe\xff\xff\xff\x0f\x01", b"\xff" * 400_000, b"\x80" * 400_000]
)
@pytest.mark.usefixtures("little_memory")
def test_levels_that_lie_take_neither_memory_nor_time(levels):
    """Runs of definition levels in a page: how long they are is the file's word."""

    def read():
        with contextlib.suppress(tl.CorruptDataError):
            assert len(payload._levels(memoryview(levels), 3, 1)) == 3

    assert calls(read) < 100


def test_headers_of_pages_have_few_structs_in_each_other():
    with pytest.raises(tl.CorruptDataError, match="structs in each other"):
        payload._struct(memoryview(b"\x1c" * 100_000), 0)


READS = [lambda lake: lake["x"][:2], lambda lake: lake["x"][:], lambda lake: lake.check()]
USES = [
    *READS,
    lambda lake: lake._repr_html_(),  # the catalogue, too
    lambda lake: lake["x"]._repr_html_(),
    lambda lake: lake["x"].sel(x=3),
    lambda lake: lake.write("x", np.arange(3), mode="append"),
]


@pytest.mark.parametrize("layout", ["ftsf", pytest.param("bsgs", marks=pytest.mark.soak)])
@pytest.mark.usefixtures("little_memory")
def test_a_metadata_row_that_lies_costs_no_memory_and_is_an_error_of_ours(tmp_path, forge, layout):
    for number, (columns, body) in enumerate(META):
        folder = tmp_path / str(number)
        tl.open(folder).write("x", np.arange(1, 5), layout=layout)
        is_text = isinstance(body, str)
        forge(folder).meta(columns, {} if is_text else body, body if is_text else None)
        for use in USES:
            try:
                use(tl.open(folder))
            except tl.TensorLakeError:
                pass
            except Exception as error:
                pytest.fail(f"{columns} {str(body)[:80]}: {type(error).__name__}: {error}")


@pytest.mark.parametrize("body", [DEEP, '{"format":1,"attrs":' + DEEP + "}", "[]", "{"])
def test_attributes_that_make_no_sense_name_the_tensor(lake, tmp_path, forge, body):
    lake.write("x", np.arange(4))
    forge(tmp_path / "lake").meta(text=body)
    with pytest.raises(tl.CorruptDataError, match="metadata row of tensor 'x' is not readable"):
        tl.open(lake.uri)["x"]


def test_attributes_that_are_long_stay_what_they_are(lake):
    deep = json.loads("[" * 200 + "]" * 200)
    ref = lake.write("x", np.arange(4), attrs={"deep": deep, "long": "x" * 1_000_000})
    assert tl.open(lake.uri)["x"].attrs["deep"] == deep
    assert len(ref.attrs["long"]) == 1_000_000


def test_attributes_that_could_not_be_read_back_are_not_written(lake):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(tl.InvalidTensorError, match="attributes"):
        lake.write("x", np.arange(4), attrs={"deep": deep})
    assert "x" not in lake


def bomb(nbytes, says=None):
    """A frame of Zstandard that holds so many zeros; a frame that lies about it if `says` is given."""
    frame = bytearray(pa.Codec("zstd", 9).compress(bytes(nbytes), asbytes=True))
    if says is not None:
        descriptor = frame[4]
        start = 5 + (0 if descriptor & 0x20 else 1)
        form = {0: "B", 1: "<H", 2: "<I", 3: "<Q"}[descriptor >> 6]
        struct.pack_into(form, frame, start, says - (256 if form == "<H" else 0))
    return bytes(frame)


@pytest.mark.usefixtures("little_memory")
def test_a_frame_is_refused_by_the_size_that_it_says():
    frame = bomb(1 << 28)
    assert len(frame) < 1 << 16
    assert content_size(frame) == 1 << 28
    liar = bomb(1 << 28, says=1 << 20)
    for nbytes, body in ((1 << 20, frame), (1 << 28, liar), (1 << 20, liar), (1 << 45, frame)):
        with pytest.raises(tl.CorruptDataError):
            inflate(body, True, nbytes)
    with pytest.raises(tl.CorruptDataError):
        inflate_many([liar, liar], [ZSTD, ZSTD], [1 << 20, 1 << 20])
    huge = bomb(1 << 28, says=(1 << 32) - 1)
    with pytest.raises(tl.CorruptDataError):
        inflate(huge, True, 1 << 20)


def lies():
    far = {f"d{k}": None for k in range(8)}

    def box(lo, hi):
        return {"lo": {**far, "d0": lo}, "hi": {**far, "d0": hi}}

    frame = bomb(1 << 28)
    return [
        {"nnz": -1},
        {"nnz": 2**62},
        {"nnz": 2**24},
        box(0, 2**62),
        box(-(2**62), 4),
        box(4, 0),
        box(0, 2**40),
        {"values": frame},
        {"values": b"\x80" + frame},
        {"index": b"\x12" + frame},
        {"values": b""},
        {"values": b"\x40" + bytes(8)},
        {"index": b""},
        {"codec": "../../evil"},
        {"params": DEEP},
        {"params": '{"order":[' + "0," * 1000 + "0]}"},
        {"shape": [2**62]},
        {"block_shape": [2**62]},
        {"dtype": "object"},
        {"seq": -(2**63)},
        {"layout": "csr"},
    ]


@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "coo", "csr", "csc", "csf"])
@pytest.mark.usefixtures("little_memory")
def test_a_data_row_that_lies_costs_no_memory_and_is_an_error_of_ours(tmp_path, forge, layout):
    for number, lie in enumerate(lies()):
        folder = tmp_path / str(number)
        tl.open(folder).write("x", np.arange(1, 5).reshape(4, 1), layout=layout)
        forge(folder).data(lambda row, lie=lie: row.update(lie))
        for use in (*READS, lambda lake: tl.open(lake.uri, verify=False)["x"][:]):
            try:
                use(tl.open(folder))
            except tl.TensorLakeError:
                pass
            except Exception as error:
                pytest.fail(f"{str(lie)[:80]}: {type(error).__name__}: {error}")


@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "coo"])
@pytest.mark.usefixtures("little_memory")
def test_a_row_as_large_as_its_tensor_says_is_refused_by_its_frame(tmp_path, forge, layout):
    """Metadata and data agree on 8 TiB, and only the payload knows better."""
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.arange(1, 5), layout=layout)
    forger = forge(tmp_path / "lake")
    forger.meta({"shape": [2**40]}, {"nnz": 2**40})

    def change(row):
        row["hi"] = {**row["hi"], "d0": 2**40}
        row["shape"], row["nnz"] = [2**40], 2**40

    forger.data(change)
    with pytest.raises(tl.TensorLakeError):
        tl.open(lake.uri)["x"][:]
    with pytest.raises(tl.TensorLakeError):
        tl.open(lake.uri)["x"][:10]


@pytest.mark.parametrize(
    ("shape", "block"),
    [((2**62, 4), None), ((-1,), None), ((1,) * 10_000, None), ((4,), (2**70,)), ((4,), (-1,))],
)
def test_a_tensor_of_absurd_size_is_refused_before_anything_is_written(lake, shape, block):
    with pytest.raises(tl.TensorLakeError):
        lake.write(
            "x", tl.SparseTensor(np.zeros((len(shape), 0), int), [], shape), block_shape=block
        )
    assert "x" not in lake
