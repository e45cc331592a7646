"""Check: a sound dataset is sound, and whatever others break is named with its place and a remedy."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from stored import forget
from whole_datasets import replace_parts

import tensorlake_spark as tl

KINDS = {
    "label": tl.types.ClassLabel(["cat", "dog"]),
    "boxes": tl.types.BoundingBox("xyxy"),
    "image": tl.types.Image("jpeg"),
    "name": tl.types.Text(nullable=False),
    "tags": tl.types.Sequence(tl.types.ClassLabel(["a", "b"])),
    "extra": tl.types.Json(),
}


def found(ds, **options):
    """The kinds and places of what a check finds."""
    forget()
    ds.refresh()
    report = ds.check(**options)
    assert report.ok == (not [one for one in report.findings if not one.is_notice])
    assert all(one.text for one in report.findings)
    return [(one.kind, one.place) for one in report.findings]


@pytest.fixture
def plain(tmp_path, jpegs):
    """A dataset whose rows have all in them, and a way to write to it around the package."""
    ds = tl.dataset(tmp_path / "ds", KINDS)
    ds.extend(
        {
            "label": [0, 1, None, 1],
            "boxes": [np.array([[0, 0, 1, 2]], "f4")] * 4,
            "image": [*jpegs[:3], None],
            "name": list("abcd"),
            "tags": [["a"], [], None, ["b", "a"]],
            "extra": [{"a": 1}, None, [1], 2],
        }
    )
    return ds


def write_around(ds, place=0, **columns):
    """Add a copy of a sample, changed, with plain Delta."""
    rows = DeltaTable(ds.uri).to_pyarrow_table().slice(place, 1)
    for name, value in columns.items():
        at = rows.schema.get_field_index(name)
        kind = rows.schema.field(at).type
        rows = rows.set_column(at, rows.schema.field(at), pa.array([value], kind))
    write_deltalake(ds.uri, rows, mode="append")


def test_a_dataset_that_is_sound(made):
    replace_parts(made.ds, [3], {"image": [made.jpegs[0]]})
    made.ds.optimize()
    for deep in (False, True):
        report = made.ds.check(deep=deep)
        assert report.findings == ()
        assert (report.samples, report.tensors, report.files) == (20, 7, 3)
        assert "no error" in str(report)
        assert "20 samples and 7 tensors" in str(report)


def test_old_versions_are_checked_as_they_were(made):
    assert tl.dataset(made.path, version=made.ds.version).check().ok
    assert tl.dataset(made.path, version=0).check().samples == 0


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("label", 7, "0 to 1"),
        ("tags", [0, 5], "item 1"),
        ("extra", "{no json", "JSON"),
        ("image", {"data": b"no picture", "format": "jpeg", "height": 1, "width": 1}, "jpeg"),
    ],
)
def test_a_plain_write_that_breaks_a_rule(plain, column, value, said):
    write_around(plain, sid=0, **{column: value})
    plain.refresh()
    values = [one for one in plain.check().findings if one.kind == "value"]
    assert [one.place for one in values] == [f"column {column!r}, sample 0"]
    assert said in values[0].text
    assert "ds.update" in values[0].text


def test_boxes_out_of_order_and_arrays_of_another_rank(plain):
    wrong = np.array([[5, 0, 1, 2]], "f4")
    box = {"dtype": "float32", "shape": [1, 4], "data": wrong.tobytes()}
    write_around(plain, sid=1, boxes=box)
    write_around(plain, sid=2, boxes={**box, "shape": [4]})
    assert {one for one in found(plain) if one[0] == "value"} == {
        ("value", "column 'boxes', sample 1"),
        ("value", "column 'boxes', sample 2"),
    }


def test_numbers_that_are_not_the_datasets(plain):
    write_around(plain, sid=2)
    write_around(plain, sid=-3)
    write_around(plain, sid=900)  # the next number will be above it
    assert found(plain) == [("sid", "sid 2"), ("sid", "sid -3")]
    write_around(plain, sid=(1 << 62) + 5)
    assert ("sid", "the next sid") in found(plain)


def test_bytes_that_were_changed(plain, jpegs):
    """The facts beside media are held against them, whoever changed which."""
    rows = DeltaTable(plain.uri).to_pyarrow_table()
    image = rows.column("image")[0].as_py()
    damaged = bytearray(image["data"])
    damaged[-30] ^= 1
    write_around(plain, sid=0, image={**image, "data": bytes(damaged)})
    write_around(plain, sid=1, image={**image, "height": 999})
    write_around(plain, sid=2, image={**image, "data": None})
    assert plain.check().findings == ()  # of the version that is shown
    plain.refresh()
    texts = {one.place: one.text for one in plain.check().findings if one.kind == "value"}
    assert "CRC-32" in texts["column 'image', sample 0"]
    assert "height is 999" in texts["column 'image', sample 1"]
    assert "no data" in texts["column 'image', sample 2"]


def test_only_a_deep_check_decodes(plain, jpegs):
    image = DeltaTable(plain.uri).to_pyarrow_table().column("image")[0].as_py()
    cut = image["data"][:300]
    write_around(plain, sid=0, image={**image, "data": cut, "crc": None})
    deep = [one for one in found(plain, deep=True) if one[0] == "value"]
    assert deep == [("value", "column 'image', sample 0")]


def test_files_that_are_gone_or_damaged(made):
    first, second, third = sorted(made.path.glob("samples-*.parquet"))[:3]
    first.unlink()
    second.write_bytes(second.read_bytes()[:-20])
    data = bytearray(third.read_bytes())
    place = data.index(b"\xff\xd8\xff")  # a picture begins
    data[place + 200] ^= 1
    third.write_bytes(data)
    kinds = found(made.ds)
    assert ("missing", first.name) in kinds
    assert ("file", second.name) in kinds
    assert any(kind == "value" and "'small'" in place for kind, place in kinds)


def test_a_file_that_is_gone_from_the_newest_version_has_a_remedy(plain):
    before = plain.version
    known = {*Path(plain.uri).glob("samples-*.parquet")}
    plain.extend([plain[0]])
    (new,) = {*Path(plain.uri).glob("samples-*.parquet")} - known
    new.unlink()
    again = tl.dataset(plain.uri)
    with pytest.raises(tl.MissingDataError, match=r"or see what ds\.check\(\) of the newest says"):
        again[len(again) - 1]
    (missing,) = again.check().findings
    assert "ds.restore(version) brings an earlier version back" in missing.text
    again.restore(before)
    assert again.check().ok


def test_samples_out_of_order_in_a_file_that_is_read_as_one_in_order(plain):
    (path,) = Path(plain.uri).glob("samples-*.parquet")
    size = path.stat().st_size
    pq.write_table(pq.read_table(path)[::-1], path)
    log = Path(plain.uri, f"_delta_log/{1:020}.json")
    log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{path.stat().st_size}'))
    assert ("order", path.name) in found(plain)
    assert "SET sid = sid" in str([one.text for one in plain.check().findings])
    DeltaTable(plain.uri).update(updates={"sid": "sid"})
    assert ("order", path.name) not in found(plain)


def test_a_log_that_says_something_wrong(made):
    log = sorted((made.path / "_delta_log").glob("*.json"))
    for path in log:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        adds = [line["add"] for line in lines if "add" in line]
        if adds:
            stats = json.loads(adds[0]["stats"])
            stats["maxValues"]["label"] = -5
            stats["nullCount"]["label"] = 2
            stats["numRecords"] = 4
            adds[0]["stats"] = json.dumps(stats)
            adds[0]["size"] += 1
            path.write_text("\n".join(map(json.dumps, lines)))
            name = adds[0]["path"]
            break
    report = tl.dataset(made.path).check()
    assert {(f.kind, f.place) for f in report.findings} >= {
        ("size", name), ("records", name), ("statistics", name),
    }  # fmt: skip
    (said,) = (f.text for f in report.findings if f.kind == "statistics")
    assert "max of label is -5" in said
    assert "nullCount of label" in said


def test_parts_that_are_gone(made):
    shutil.rmtree(made.path / "_tensors")
    shutil.rmtree(made.path / "_columns")
    kinds = found(made.ds)
    assert ("pin", "_tensors") in kinds
    assert ("pin", "_columns/image") in kinds
    assert ("tiles", "column 'scan', sample 0") in kinds


def test_tiles_that_somebody_changed(made):
    lake = tl.open(made.path / "_tensors")
    lake.delete("scan/3")
    lake.write("scan/6", np.zeros((2, 2), np.uint8), mode="overwrite")
    made.ds.extend({"label": [1], "scan": [np.zeros((50, 60), np.uint8)]})  # pins what was done
    kinds = found(made.ds)
    assert sorted(kinds) == [
        ("tiles", "column 'scan', sample 3"),
        ("tiles", "column 'scan', sample 6"),
    ]


def test_rows_of_an_apart_column_that_somebody_changed(made):
    uri = made.path / "_columns/image"
    row = DeltaTable(uri).to_pyarrow_table().slice(0, 1)
    write_deltalake(uri, row, mode="append")
    image = row.column("image")[0].as_py()
    broken = row.set_column(
        1, row.schema.field(1), pa.array([{**image, "crc": 1}], row.schema.field(1).type)
    )
    write_deltalake(uri, broken.set_column(0, row.schema.field(0), pa.array([19])), mode="append")
    made.ds.extend({"label": [1], "image": [made.jpegs[0]]})
    sid = row.column("sid")[0].as_py()
    kinds = found(made.ds)
    assert ("apart", f"column 'image', sample {sid}") in kinds
    assert ("value", "column 'image', sample 19") in kinds


def test_an_apart_column_that_may_not_be_null(tmp_path, jpegs):
    ds = tl.dataset(tmp_path / "ds", {"image": tl.types.Image("jpeg", apart=True, nullable=False)})
    ds.extend({"image": jpegs[:3]})
    DeltaTable(tmp_path / "ds/_columns/image").delete("sid = 1")
    ds.extend({"image": jpegs[3:4]})
    assert ("apart", "column 'image', sample 1") in found(ds)


def test_a_value_in_the_row_of_an_apart_column(made):
    """No read of the dataset shows it."""
    uri = made.path
    row = DeltaTable(uri).to_pyarrow_table().filter(pc.field("label") == 4)
    (sid,) = row.column("sid").to_pylist()
    place = row.schema.get_field_index("image")
    image = DeltaTable(uri / "_columns/image").to_pyarrow_table().column("image").slice(0, 1)
    DeltaTable(uri).delete("label = 4")
    write_deltalake(uri, row.set_column(place, row.schema.field(place), image), mode="append")
    assert found(made.ds) == [("apart", f"column 'image', sample {sid}")]
    assert "to null there with Delta" in made.ds.check().findings[0].text


def test_links_that_somebody_wrote_around_the_package(tmp_path):
    link = tl.types.Link(tl.types.Image("png"))
    ds = tl.dataset(tmp_path / "ds", {"photo": link, "more": tl.types.Sequence(link)})
    good = {"url": "s3://bucket/a.png", "size": 3}
    ds.extend({"photo": [good] * 4, "more": [[good]] * 4})
    rows = DeltaTable(ds.uri).to_pyarrow_table().to_pylist()
    rows[0]["photo"]["url"] = "https://x.org/a.png?sig=S3cret"
    rows[1]["photo"]["url"] = "photos/a.png"
    rows[2]["more"][0]["size"] = -3
    schema = DeltaTable(ds.uri).to_pyarrow_table().schema
    write_deltalake(ds.uri, pa.Table.from_pylist(rows, schema), mode="overwrite")
    assert found(ds) == [
        ("value", "column 'photo', sample 0"),
        ("value", "column 'photo', sample 1"),
        ("value", "column 'more', sample 2"),
    ]
    texts = [one.text for one in ds.check().findings]
    assert "'sig'" in texts[0]
    assert "os.path.abspath" in texts[1]
    assert "item 0" in texts[2]
    assert not any("S3cret" in text for text in texts)


def test_orphans_are_notices(made):
    shutil.copy(next(made.path.glob("samples-*.parquet")), made.path / "part-left.parquet")
    report = made.ds.check()
    assert report.ok
    assert [(one.kind, one.place) for one in report.findings] == [("orphan", "part-left.parquet")]
    assert "ds.vacuum()" in report.findings[0].text


def test_samples_that_were_deleted_by_plain_delta_are_no_error(made):
    DeltaTable(made.path).delete("label > 15")
    assert found(made.ds) == []


def test_a_column_added_by_plain_delta(made):
    """Old files have none of it."""
    rows = DeltaTable(made.path).to_pyarrow_table().filter(pc.field("label") == 1)
    rows = rows.append_column("more", pa.array([2.5]))
    rows = rows.set_column(0, rows.schema.field(0), pa.array([19]))
    write_deltalake(made.path, rows, mode="append", schema_mode="merge")
    assert found(made.ds) == [("sid", "sid 19")]


def test_many_findings_of_one_kind_are_told_in_short(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"label": tl.types.ClassLabel(["cat"])})
    ds.extend({"label": [0] * 50})
    DeltaTable(tmp_path / "ds").update(updates={"label": "9"})
    ds.refresh()
    report = ds.check()
    assert not report.ok
    assert len(report.findings) == 11
    assert "more of this kind" in report.findings[-1].text


def test_an_emptied_commit_is_told(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"i": "int64"})
    ds.extend({"i": [1, 2]})
    ds.extend({"i": [3]})
    name = sorted(Path(ds.uri, "_delta_log").glob("*.json"))[-1]
    name.write_bytes(b"")
    forget()
    found = tl.dataset(ds.uri, create=False)
    report = found.check()
    assert [f.place for f in report.findings if f.kind == "log"] == [f"_delta_log/{name.name}"]
    assert not report.ok
    with pytest.raises(tl.FormatError, match="nothing was deleted"):
        found.vacuum(0)
