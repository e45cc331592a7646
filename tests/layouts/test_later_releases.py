"""What a table does that has rows of a later release: those rows are named, and nothing else is hurt."""

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts.testing.laws import bits
from tensorlake_spark.rows.checksum import crc_of
from tensorlake_spark.rows.metadata import meta_crc
from tensorlake_spark.rows.row import SCHEMA

LATER = "is not one that this release reads.*a later release of tensorlake-spark reads it: upgrade"
FIRST = (
    "raw", "zstd", "shuffle+zstd", "delta(-1)+zstd", "delta(-1)+shuffle+zstd", "delta(-2)+zstd",
    "delta(-2)+shuffle+zstd",
)  # fmt: skip
"""The codecs of release 0.1.0, letter by letter."""


def crc(row):
    """The checksum of a row as a later release would write it."""
    if row["nnz"] == 0:
        shape, block = tuple(row["shape"]), tuple(row["block_shape"] or ())
        return meta_crc(row["layout"], row["dtype"], row["codec"], shape, block, row["attrs"])
    corners = [row[name][f"d{k}"] for name in ("lo", "hi") for k in range(len(row["shape"]))]
    head = (row["layout"], row["params"], row["dtype"], row["codec"])
    return crc_of(*head, corners, row["index"], row["values"])


def rows_of(lake, name):
    table = deltalake.DeltaTable(lake.uri).to_pyarrow_table()
    return table.filter(pc.field("id") == name).select(SCHEMA.names).cast(SCHEMA).to_pylist()


def add_later(lake, name, like, change):
    """Add a tensor whose rows are those of another one, changed as a later release might write them."""
    rows = rows_of(lake, like)
    for row in rows:
        row["id"] = name
        change(row)
        row["crc"] = crc(row)
    schema = pa.schema(deltalake.DeltaTable(lake.uri).schema().to_arrow())
    deltalake.write_deltalake(lake.uri, pa.Table.from_pylist(rows, schema), mode="append")


@pytest.fixture
def x():
    return np.cumsum(np.random.default_rng(0).integers(-9, 9, (40, 50)), axis=0)


@pytest.fixture
def late(lake, x):
    """A lake with a tensor of one row, the last, of a codec of a later release, and one of a later layout."""
    lake.write("a", x, block_shape=(10, 50), codec="zstd")
    lake.write("b", x.astype(float), layout="csr")

    def codec(row):
        if row["nnz"] == 0 or row["lo"]["d0"] == 30:
            row["codec"] = "lorenzo+wavelet(2)+zstd"

    def layout(row):
        row["layout"] = "wavelet"

    add_later(lake, "late/codec", "a", codec)
    add_later(lake, "late/layout", "a", layout)
    add_later(lake, "late/sparse", "b", lambda row: row.update(codec="shuffle+zstd"))
    return tl.open(lake.uri)


def assert_others(lake, x):
    assert bits(lake["a"][...]) == bits(x)
    assert bits(lake["b"][...].todense()) == bits(x.astype(float))


def test_the_rows_are_named_and_the_others_are_read(late, x):
    ref = late["late/codec"]
    assert (ref.shape, ref.dtype, ref.codec) == (x.shape, x.dtype, "lorenzo+wavelet(2)+zstd")
    assert bits(ref[:30]) == bits(x[:30])
    said = rf"tensor 'late/codec', .*box \[30:40, 0:50\]: codec 'lorenzo\+wavelet\(2\)\+zstd' \(step 'wavelet\(2\)'\) {LATER}"
    for key in (np.s_[...], np.s_[35], np.s_[[1, 39]]):
        with pytest.raises(tl.FormatError, match=said):
            ref[key]
    with pytest.raises(tl.FormatError, match=rf"tensor 'late/sparse', row \d+, .*'shuffle\+zstd' {LATER}"):  # fmt: skip
        late["late/sparse"][...]
    with pytest.raises(tl.FormatError, match=f"tensor 'late/layout' has layout 'wavelet', .*{LATER}"):  # fmt: skip
        late["late/layout"][0]
    assert_others(late, x)


def test_the_listing_and_the_catalog_have_them(late):
    assert list(late) == ["a", "b", "late/codec", "late/layout", "late/sparse"]
    catalog = late.catalog().set_index("id")
    assert catalog.loc["late/layout", "layout"] == "wavelet"
    assert catalog.loc["late/codec", "codec"] == "lorenzo+wavelet(2)+zstd"
    assert "late" in late._repr_html_()
    assert "wavelet" in repr(late["late/layout"])


def test_check_names_them_and_only_them(late):
    report = late.check()
    assert {finding.place.split("'")[1] for finding in report.findings} == {
        "late/codec", "late/layout", "late/sparse",
    }  # fmt: skip
    text = " ".join(finding.text for finding in report.findings)
    assert "step 'wavelet(2)'" in text
    assert "layout 'wavelet', which is not one that this release reads" in text
    assert "upgrade" in text
    assert "restore" not in text
    assert late.check(repair=True).findings == report.findings


def test_writing_beside_them_goes_on(late, x):
    late.write("c", x)
    late.write("a", x, mode="append")
    assert late["a"].shape == (80, 50)
    for name, error in (("late/layout", tl.FormatError), ("late/codec", tl.InvalidOptionError)):
        with pytest.raises(error, match=r"window|wavelet"):
            late.write(name, x, mode="append")
    late.delete("late/layout")
    late.write("late/codec", x, mode="overwrite")
    assert bits(late["late/codec"][...]) == bits(x)


def test_upkeep_moves_their_rows_as_they_are(late, x):
    names = ("late/codec", "late/layout", "late/sparse")
    before = {name: rows_of(late, name) for name in names}
    late.optimize()
    assert late.vacuum(retention_hours=0)
    assert {name: rows_of(late, name) for name in names} == before
    assert_others(tl.open(late.uri), x)
    late.convert("a", block_shape=(20, 25))
    assert_others(tl.open(late.uri), x)


def test_a_purge_of_others_leaves_them(late, x):
    names = ("late/codec", "late/layout", "late/sparse")
    before = {name: rows_of(late, name) for name in names}
    late.purge("a")
    assert {name: rows_of(late, name) for name in names} == before
    late.purge("late/layout")
    assert sorted(tl.open(late.uri)) == ["b", "late/codec", "late/sparse"]
    assert bits(late["b"][...].todense()) == bits(x.astype(float))


@pytest.mark.parametrize("codec", FIRST)
def test_a_table_of_the_first_codecs_names_no_later_one(lake, x, codec):
    lake.write("x", x, codec=codec, block_shape=(7, 50))
    lake.write("x", x, mode="append")
    lake.write("y", np.where(x > 20, x, 0), layout="bsgs")
    lake["x"][3:9, 5] = 7
    lake.optimize()
    rows = rows_of(lake, "x") + rows_of(lake, "y")
    assert {row["codec"] for row in rows} <= {codec, "zstd"}
    assert {row["codec"] for row in rows} <= set(FIRST)


def test_auto_takes_later_steps_on_its_own(lake, x):
    assert "zigzag" in lake.write("x", np.cumsum(x, axis=0).astype(np.int64) * 7919).codec
