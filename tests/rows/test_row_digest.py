"""The digest of a row is the one that FORMAT.md defines, and all that a row holds changes it."""

import hashlib
import json
import struct

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.rows.metadata import meta_batch
from tensorlake_spark.rows.row import Row, Totals, data_batch
from tensorlake_spark.rows.row_digest import (
    META_COLUMNS,
    TABLE,
    TENSOR,
    heads,
    keeps_order,
    leaf_columns,
    meta_digest,
    node_digest,
    row_digest,
)
from tensorlake_spark.tensor.spec import TensorSpec


def spec(**changes):
    said = {
        "id": "x", "shape": (4, 6), "dtype": np.dtype("f4"), "layout": "coo", "block_shape": (),
        "segments": ((0,), (0,)), "codec": "zstd", "fill": bytes(4),
    }  # fmt: skip
    return TensorSpec(**{**said, **changes})


def text(value):
    return b"\xff" * 4 if value is None else struct.pack("<I", len(value.encode())) + value.encode()


def by_the_book(id, layout, params, dtype, codec, lo, hi, nnz, index, values):  # noqa: A002
    """As FORMAT.md says it, byte by byte."""
    form = b"TLD1r" + b"".join(map(text, (id, layout, params, dtype, codec)))
    form += bytes([2 ** len(lo) - 1, 2 ** len(hi) - 1])
    form += b"".join(struct.pack("<q", corner) for corner in (*lo, *hi)) + struct.pack("<q", nnz)
    for data in (index, values):
        form += b"\xff" * 8 if data is None else struct.pack("<Q", len(data)) + data
    return hashlib.sha256(form).digest()


def digests(batch):
    index, values = (batch.column(name).to_pylist() for name in ("index", "values"))
    return [row_digest(*row) for row in zip(heads(leaf_columns(batch)), index, values, strict=True)]


def test_rows_have_the_digest_that_the_format_defines():
    rows = [
        Row((0, 0), (2, 6), 3, "zstd", b"values", b"index"),
        Row((2, 1), (4, 2), 1, "raw", b"v" * 5000, b"", '{"order":[1,0]}'),
    ]
    book = [
        by_the_book("x", "coo", r.params, "float32", r.codec, r.lo, r.hi, r.nnz, r.index, r.values)
        for r in rows
    ]
    assert digests(data_batch(spec(), [0, 1], rows)) == book
    dense = Row((0, 0), (2, 6), 12, "raw", b"values")
    (one,) = digests(data_batch(spec(layout="ftsf"), [7], [dense]))
    assert one == by_the_book(
        "x", "ftsf", None, "float32", "raw", (0, 0), (2, 6), 12, None, b"values"
    )


def test_ranks_from_none_to_more_than_have_columns():
    scalar = spec(shape=(), segments=())
    (one,) = digests(data_batch(scalar, [0], [Row((), (), 1, "raw", b"v")]))
    assert one == by_the_book("x", "coo", None, "float32", "raw", (), (), 1, None, b"v")
    deep = spec(shape=(2,) * 9, segments=((0,),) * 9)
    first, second = (Row((0,) * 9, (1,) * 8 + (last,), 1, "raw", b"v") for last in (1, 2))
    one, two = digests(data_batch(deep, [0, 1], [first, second]))
    assert one != two
    assert two == by_the_book(
        "x", "coo", '{"lo":[0],"hi":[2]}', "float32", "raw", (0,) * 8, (1,) * 8, 1, None, b"v"
    )


ROW = Row((0, 0), (2, 6), 3, "zstd", b"values", b"index")


@pytest.mark.parametrize(
    "other",
    [
        (spec(id="y"), ROW),
        (spec(layout="bsgs", block_shape=(2, 6)), ROW),
        (spec(dtype=np.dtype("i4")), ROW),
        (spec(), Row((0, 1), (2, 6), 3, "zstd", b"values", b"index")),
        (spec(), Row((0, 0), (2, 5), 3, "zstd", b"values", b"index")),
        (spec(), Row((0, 0), (2, 6), 4, "zstd", b"values", b"index")),
        (spec(), Row((0, 0), (2, 6), 3, "raw", b"values", b"index")),
        (spec(), Row((0, 0), (2, 6), 3, "zstd", b"valueS", b"index")),
        (spec(), Row((0, 0), (2, 6), 3, "zstd", b"values", b"indeX")),
        (spec(), Row((0, 0), (2, 6), 3, "zstd", b"xvalues", b"inde")),
        (spec(), Row((0, 0), (2, 6), 3, "zstd", b"values", b"")),
        (spec(), Row((0, 0), (2, 6), 3, "zstd", b"values", None)),
        (spec(), Row((0, 0), (2, 6), 3, "zstd", b"values", b"index", "{}")),
    ],
)
def test_all_that_a_row_holds_changes_its_digest(other):
    changed, row = other
    assert digests(data_batch(spec(), [0], [ROW])) != digests(data_batch(changed, [0], [row]))


def test_the_place_in_the_storage_order_does_not():
    assert digests(data_batch(spec(), [0], [ROW])) == digests(data_batch(spec(), [9], [ROW]))


def test_which_corner_is_null_is_told_apart():
    batch = data_batch(spec(shape=(4,), segments=((0,),)), [0], [Row((1,), (2,), 1, "raw", b"v")])
    columns = leaf_columns(batch)
    moved = {**columns, "lo.d0": columns["lo.d1"], "lo.d1": columns["lo.d0"]}
    assert heads(columns) != heads(moved)


def meta(**changes):
    totals = changes.pop("totals", Totals(1, 2, 3))
    batch = meta_batch([spec(**changes)], [changes.pop("seq", 5)], [totals])
    return batch.select(list(META_COLUMNS)).to_pylist()[0]


def test_metadata_has_the_digest_that_the_format_defines():
    row = meta(attrs={"b": 1.5, "a": "ä"}, axes=("p", "q"))
    said = {
        "fill": "00000000", "segments": [[0], [0]], "axes": ["p", "q"], "attrs": {"a": "ä", "b": 1.5}
    }  # fmt: skip
    attrs = json.dumps(said, sort_keys=True, separators=(",", ":"))
    form = b"TLD1m" + b"".join(map(text, ("x", "coo", "float32", "zstd")))
    form += struct.pack("<I2q", 2, 4, 6) + b"\xff" * 4 + text(attrs)
    assert meta_digest(row) == hashlib.sha256(form).digest()


@pytest.mark.parametrize(
    "change",
    [
        {"shape": (4, 7)}, {"dtype": np.dtype("f8"), "fill": bytes(8)}, {"fill": b"\0\0\x80?"},
        {"axes": ("a", "b")}, {"attrs": {"unit": "K"}}, {"codec": "raw"}, {"id": "y"},
        {"params": {"duplicates": "sum"}}, {"segments": ((0, 2), (0,))},
        {"layout": "bsgs", "block_shape": (2, 2)},
    ],
)  # fmt: skip
def test_all_that_metadata_say_changes_its_digest(change):
    assert meta_digest(meta()) != meta_digest(meta(**change))


def test_totals_and_the_order_of_attributes_do_not():
    assert meta_digest(meta()) == meta_digest(meta(totals=Totals(4, 5, 6)))
    assert meta_digest(meta(attrs={"a": 1, "b": 2})) == meta_digest(meta(attrs={"b": 2, "a": 1}))


@pytest.mark.parametrize("attrs", [None, "", "no JSON", "[1]", "7"])
def test_damaged_metadata_has_a_digest_too(attrs):
    row = {**meta(), "attrs": attrs}
    assert meta_digest(row) != meta_digest(meta())
    assert not keeps_order(row)


@pytest.mark.parametrize("shape", [None, [None, None], [4, None]])
def test_a_shape_without_some_sides_has_a_digest_too(shape):
    assert meta_digest({**meta(), "shape": shape}) != meta_digest(meta())


def test_the_order_of_rows_counts_where_the_last_holds():
    assert keeps_order(meta(params={"duplicates": "last"}))
    assert not keeps_order(meta(params={"duplicates": "sum"}))
    assert not keeps_order(meta())


def test_kinds_of_nodes_are_told_apart():
    assert node_digest(TABLE, [b"a" * 32]) != node_digest(TENSOR, [b"a" * 32])
    assert node_digest(TABLE, []) == hashlib.sha256(b"TLD1l").digest()


def test_rows_of_a_table_have_leaves_as_those_of_a_batch_have():
    batch = data_batch(spec(), [0, 1], [ROW, ROW])
    table = pa.Table.from_batches([batch.slice(0, 1), batch.slice(1, 1)])
    assert heads(leaf_columns(table)) == heads(leaf_columns(batch))
