"""A check finds what is wrong with real files and logs, says where, and mends what needs no guess."""

import json
import os
import shutil
import struct
import zlib
from dataclasses import fields, replace
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marked_samples import mark
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.audit import check, inventory
from tensorlake_spark.audit import check_tensor as tensor_check
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.requirements import TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.staging import Staging
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.indexing.overlaps import meeting
from tensorlake_spark.rows.metadata import meta_batch
from tensorlake_spark.rows.row import Row, data_batch


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 9, (64, 100)).astype("i4")


@pytest.fixture
def full(lake, x):
    """Eight rows, which cover all of the tensor, and a metadata row."""
    lake.write("x", x, block_shape=(8, 100), codec="zstd")
    return lake


def live(lake):
    return Snapshot.open(Storage(lake.uri)).files.path


def only_file(lake):
    (name,) = live(lake)
    forget()
    return Path(lake.uri, name)


def kinds(report):
    return sorted({finding.kind for finding in report.findings})


def doctor(lake, change, newest=True):
    """Change the add actions of the newest commit that has one, or of the oldest."""
    forget()
    for path in sorted(Path(lake.uri, "_delta_log").glob("*.json"), reverse=newest):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        if any("add" in action for action in actions):
            for action in actions:
                if "add" in action:
                    stats = json.loads(action["add"]["stats"])
                    change(action["add"], stats)
                    action["add"]["stats"] = json.dumps(stats)
            path.write_text("".join(json.dumps(action) + "\n" for action in actions))
            return


def append_plain(lake, table):
    deltalake.write_deltalake(lake.uri, table, mode="append")
    forget()


def rows_of(lake, name="x"):
    table = pq.read_table(only_file(lake))
    return table.filter(pa.compute.equal(table["id"], name))


def data_rows(table):
    return table.filter(pa.compute.greater(table["nnz"], 0))


def stored(lake, name):
    """The data rows of a tensor in whatever files, as they are."""
    tables = [pq.read_table(Path(lake.uri, path)) for path in live(lake)]
    table = pa.concat_tables(tables, promote_options="permissive")
    return data_rows(table.filter(pa.compute.equal(table["id"], name)))


def with_column(table, name, values):
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, pa.array(values, table.schema.field(name).type))


def sparse(seed=0, shape=(20, 30, 40), count=300):
    rng = np.random.default_rng(seed)
    flat = np.sort(rng.choice(np.prod(shape), count, replace=False))
    coords = np.stack(np.unravel_index(flat, shape))
    return tl.SparseTensor(coords, rng.random(count), shape)


@pytest.mark.local_disk
@pytest.mark.filterwarnings("ignore")
def test_a_sound_lake_has_no_findings_whatever_was_done_to_it(lake, x):
    lake.write("x", x, block_shape=(8, 30))
    lake.write("x", x[:5], mode="append")
    lake["x"][3:11, 7] = 0
    lake.write("zeros", np.zeros((40, 40)), layout="ftsf")
    lake.write("scalar", np.float32(3))
    lake.write("none", np.zeros((0, 4)))
    lake.write("deep", np.ones((2,) * 9))
    lake.write("fill", np.full((9, 9), 7), fill_value=7)
    for layout in ("coo", "csr", "csc", "csf", "bsgs"):
        lake.write(f"sparse/{layout}", sparse(), layout=layout)
        more = tl.SparseTensor([[1], [1], [1]], [5.0], (20, 30, 40))
        lake.write(f"sparse/{layout}", more, mode="append", axis=None, duplicates="sum")
        lake[f"sparse/{layout}"][2] = 0
    lake.write("grown", sparse(1), layout="bsgs")
    lake.write("grown", sparse(2), mode="append")
    version = lake.version
    lake.write("x", x[:9] + 1, mode="overwrite")
    lake.restore("x", version)
    lake.convert("zeros", layout="coo")
    lake["x"].update_attrs({"a": 1})
    lake.delete("scalar")
    for _ in range(2):
        report = lake.check()
        assert report.findings == (), str(report)
        assert report.ok
        assert report.files == len(live(lake))
        assert report.nbytes == sum(Path(lake.uri, name).stat().st_size for name in live(lake))
        assert report.rows == sum(
            pq.read_metadata(Path(lake.uri, name)).num_rows for name in live(lake)
        )
        assert report.tensors == len(list(lake)) == 11
        lake.optimize()
    assert "no error" in str(report)
    assert tl.open(lake.uri, version=1).check().ok


@pytest.mark.local_disk
def test_a_changed_payload_byte_is_one_row_with_its_box(full):
    path = only_file(full)
    data = bytearray(path.read_bytes())
    group = pq.read_metadata(path).row_group(0)
    column = next(
        c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == "values"
    )
    data[column.data_page_offset + column.total_compressed_size - 40] ^= 1
    path.write_bytes(data)
    report = full.check()
    (finding,) = report.findings
    assert finding.kind == "row"
    assert "tensor 'x'" in finding.place
    assert "box [56:64, 0:100]" in finding.place
    assert "checksum" in finding.text
    assert path.name in finding.text
    assert "restore" in finding.text
    assert not report.ok
    assert "ERROR [row]" in str(report)
    repaired = full.check(repair=True)
    assert repaired.findings == report.findings, "nothing is guessed"
    assert full.version == 1


@pytest.mark.local_disk
def test_no_changed_byte_passes_a_check_and_changes_what_is_read(lake, x):
    lake.write("x", x[:16], block_shape=(8, 100), codec="zstd")
    path = only_file(lake)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    found = 0
    for place in rng.choice(len(whole), 250, replace=False).tolist():
        data = bytearray(whole)
        data[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        forget()
        report = lake.check()
        found += not report.ok
        if report.ok:
            forget()
            np.testing.assert_array_equal(lake["x"][:], x[:16])
    assert found > 150


@pytest.mark.local_disk
def test_no_changed_header_of_a_page_passes_a_check_and_is_refused_by_a_read(lake):
    one = {f"t{n}": np.eye(8) * (n + 1) for n in range(9)}
    with lake.transaction() as block:
        for n, (name, array) in enumerate(one.items()):
            block.write(name, array, layout=("ftsf", "coo")[n % 2])
    path = only_file(lake)
    whole = path.read_bytes()
    group = pq.read_metadata(path).row_group(0)
    passed = 0
    for chunk in map(group.column, range(group.num_columns)):
        if chunk.path_in_schema not in ("index", "values"):
            continue
        for bit in range(8 * 20):
            data = bytearray(whole)
            data[chunk.data_page_offset + bit // 8] ^= 1 << bit % 8
            path.write_bytes(data)
            forget()
            if lake.check().ok:
                passed += 1
                forget()
                for name, array in one.items():
                    np.testing.assert_array_equal(np.asarray(lake[name][:]), array)
    assert 0 < passed < 160


@pytest.mark.local_disk
def test_a_missing_file_can_be_given_up(lake, x):
    """Such as after a vacuum without retention beside a writer: the file also said which tensors there are."""
    lake.write("x", x)
    (name,) = live(lake)
    lake.write("y", x)
    Path(lake.uri, name).unlink()
    forget()
    with pytest.raises(tl.MissingDataError, match=r"or see what check\(\) of the newest one says"):
        tl.open(lake.uri)["x"][:]
    (finding, *_) = lake.check(repair=True).findings
    assert (finding.kind, finding.repaired) == ("missing", False)
    assert (
        "deltalake.DeltaTable(uri).repair() takes it out of the log, and check(repair"
        in finding.text
    )
    deltalake.DeltaTable(lake.uri).repair()
    found = tl.open(lake.uri)
    assert found.check(repair=True).ok
    assert list(found) == ["y"]
    np.testing.assert_array_equal(found["y"][:], x)
    assert found.write("x", x).shape == x.shape


@pytest.mark.local_disk
def test_a_truncated_file_a_missing_one_and_one_that_was_swapped(full, x):
    full.write("y", x, block_shape=(8, 100))
    first, second = sorted(live(full), key=lambda name: Path(full.uri, name).stat().st_mtime_ns)
    forget()
    whole = Path(full.uri, first).read_bytes()
    os.truncate(Path(full.uri, first), len(whole) // 2)
    Path(full.uri, second).unlink()
    report = full.check(repair=True)
    assert kinds(report) == ["file", "missing", "size"]
    assert {f.place for f in report.findings} == {first, second}
    assert not any(f.repaired for f in report.findings)
    table = pq.read_table(pa.BufferReader(whole))
    pq.write_table(table.slice(1), Path(full.uri, first))
    report = full.check("x", repair=True)
    assert {"records", "size", "totals"} <= set(kinds(report))
    assert not report.ok
    assert not any(f.repaired for f in report.findings)


@pytest.mark.local_disk
def test_a_footer_that_fails_its_seal(full):
    path = only_file(full)
    data = bytearray(path.read_bytes())
    data[-60] ^= 4
    path.write_bytes(data)
    (finding,) = full.check().findings
    assert (finding.kind, finding.place) == ("file", path.name)
    assert "checksum" in finding.text


def narrow_min(add, stats):
    stats["minValues"]["lo"]["d0"] = 8


def narrow_max(add, stats):
    stats["maxValues"]["hi"]["d0"] = 9


def wrong_id(add, stats):
    stats["minValues"]["id"] = "xa"
    stats["maxValues"]["id"] = "xb"


def wrong_nulls(add, stats):
    stats["nullCount"]["lo"]["d0"] = stats["numRecords"]


def wrong_nnz(add, stats):
    stats["minValues"]["nnz"] = 1


def wrong_seq(add, stats):
    stats["maxValues"]["seq"] = 2


@pytest.mark.local_disk
@pytest.mark.parametrize(
    "change", [narrow_min, narrow_max, wrong_id, wrong_nulls, wrong_nnz, wrong_seq]
)
def test_statistics_that_hide_rows_are_found_and_written_anew(full, x, change):
    doctor(full, change)
    report = full.check()
    (finding,) = report.findings
    assert (finding.kind, finding.place) == ("statistics", live(full)[0])
    before = live(full)
    fixed = full.check(repair=True)
    assert fixed.ok
    assert [f.repaired for f in fixed.findings] == [True]
    assert "repaired [statistics]" in str(fixed)
    assert live(full) != before
    assert full.check().findings == ()
    np.testing.assert_array_equal(full["x"][:], x)
    assert not full.history().iloc[0]["data_change"]
    assert full.check(repair=True).findings == ()


@pytest.mark.local_disk
def test_a_repair_of_one_tensor_counts_rows_that_wrong_statistics_hide(full, x):
    full.write("x", x, mode="append")
    full.write("other", x)
    doctor(full, wrong_id, newest=False)
    assert kinds(full.check("x")) == ["gap", "totals"], "the other files are not looked at"
    report = full.check("x", repair=True)
    assert [(f.kind, f.repaired) for f in report.findings] == [("statistics", True)]
    assert (report.files, report.tensors) == (2, 1)
    assert full.check().findings == ()
    np.testing.assert_array_equal(full["x"][:], np.concatenate([x, x]))


@pytest.mark.local_disk
def test_a_count_of_the_log_is_mended_where_the_totals_hold(full, x):
    def change(add, stats):
        stats["numRecords"] += 1

    doctor(full, change)
    with pytest.raises(tl.CorruptDataError):
        full["x"][:]
    report = full.check(repair=True)
    assert kinds(report) == ["records"]
    assert report.ok
    forget()
    assert full.check().findings == ()
    np.testing.assert_array_equal(full["x"][:], x)


@pytest.mark.local_disk
@pytest.mark.parametrize("statistics", [True, False])
def test_a_whole_file_in_the_place_of_another_is_not_taken_for_right(full, x, tmp_path, statistics):
    """Such as an earlier one of a backup: its rows hold together, and are not those that were committed."""
    other = tl.open(tmp_path / "other")
    other.write("x", x * 1000, block_shape=(8, 100), codec="zstd")
    shutil.copy(only_file(other), only_file(full))
    if statistics:  # which repair would mend
        doctor(full, narrow_min)
    forget()
    report = full.check(repair=True)
    assert kinds(report) == (["size", "statistics"] if statistics else ["size"])
    assert not report.ok
    assert not any(f.repaired for f in report.findings)
    assert "restore the file from a backup" in str(report)
    assert full.version == 1


@pytest.mark.local_disk
def test_statistics_that_are_wider_or_missing_are_fine(full):
    def wider(add, stats):
        stats["minValues"]["id"] = "a"
        stats["maxValues"]["id"] = "zz"
        stats["minValues"]["seq"] = -5
        del stats["minValues"]["lo"], stats["nullCount"]["hi"]

    doctor(full, wider)
    assert full.check().findings == ()
    doctor(full, lambda add, stats: stats.clear())
    assert full.check().findings == ()


@pytest.mark.local_disk
def test_statistics_of_row_groups_are_held_against_the_rows(lake, x):
    lake.write("abcdefgh", x, block_shape=(8, 100))
    path = only_file(lake)
    data = path.read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    start = len(data) - 8 - length
    footer = data[start:-8].replace(b"abcdefgh", b"zbcdefgh", 2)
    body = footer + data[-8:]
    path.write_bytes(data[: start - 4] + struct.pack("<I", zlib.crc32(body)) + body)
    forget()
    report = lake.check()
    (finding,) = report.findings
    assert finding.kind == "statistics"
    assert "footer, row group 0" in finding.text
    assert lake.check(repair=True).ok
    assert lake.check().findings == ()
    np.testing.assert_array_equal(lake["abcdefgh"][:], x)


def test_rows_deleted_with_plain_delta_are_counted_anew(full, x):
    deltalake.DeltaTable(full.uri).delete("id = 'x' and lo.d0 = 8")
    forget()
    report = full.check()
    assert kinds(report) == ["gap", "totals"]
    (gap,) = [f for f in report.findings if f.kind == "gap"]
    assert gap.place == "tensor 'x', box [8:16, 0:100]"
    with pytest.raises(tl.CorruptDataError, match="verify=False"):
        full["x"][:]
    fixed = full.check(repair=True)
    assert fixed.ok
    assert all(f.repaired for f in fixed.findings)
    assert full.check().findings == ()
    x[8:16] = 0
    np.testing.assert_array_equal(full["x"][:], x)
    np.testing.assert_array_equal(
        full.write("x", x[:4], mode="append")[:], np.concatenate([x, x[:4]])
    )
    assert full.check().ok


@pytest.mark.local_disk
def test_a_file_with_a_deletion_vector_is_not_written_anew(full):
    """Its removal could not be committed; what to do is said."""
    mark(Storage(full.uri), 0, TENSORS)
    doctor(full, lambda add, stats: stats["maxValues"].update(seq=1))
    (fault,) = [f for f in full.check(repair=True).findings if f.kind == "statistics"]
    assert fault.text.endswith("REORG TABLE ... APPLY (PURGE) of Spark writes it anew")
    assert not fault.repaired


@pytest.mark.local_disk
def test_totals_are_not_counted_over_a_damaged_row(full):
    """What it says of itself may be what is wrong."""
    deltalake.DeltaTable(full.uri).delete("id = 'x' and lo.d0 = 8")
    path = only_file(full)
    table = pq.read_table(path)
    first, *others = table["values"].to_pylist()
    pq.write_table(with_column(table, "values", [first[:-1] + b"\xff", *others]), path)
    before = full.version
    report = full.check(repair=True)
    assert {"row", "totals"} <= {*kinds(report)}
    assert not any(f.repaired for f in report.findings if f.kind == "totals")
    assert full.version == before


def test_a_hole_smaller_than_a_chunk_is_a_gap_where_rows_are_missing(lake, x):
    """Rows of half a chunk, as another writer may make them, of which one is lost."""
    x[32:] = 0
    lake.write("x", x, block_shape=(4, 100))
    meta = catalog.get(Snapshot.open(Storage(lake.uri)), "x")
    spec = replace(meta.spec, block_shape=(8, 100))  # the grid becomes coarser than the rows
    coarse = meta_batch([spec], [meta.seq + 1], [meta.totals])
    append_plain(lake, pa.Table.from_batches([coarse]))
    assert kinds(lake.check()) == ["described"], "a chunk without a row is full of the fill value"
    deltalake.DeltaTable(lake.uri).delete("id = 'x' and lo.d0 = 12")
    forget()
    report = lake.check()
    assert kinds(report) == ["described", "gap", "totals"]
    assert "tensor 'x', box [12:16, 0:100]" in {f.place for f in report.findings}


@pytest.mark.local_disk
def test_rows_that_are_there_twice_overlap_and_stay(full):
    rows = data_rows(rows_of(full)).slice(2, 1)
    append_plain(full, rows)
    for repair in (False, True):
        report = full.check(repair=repair)
        assert kinds(report) == ["overlap", "seq", "totals"]
        assert not report.ok
        assert not any(f.repaired for f in report.findings)
    (overlap,) = [f for f in report.findings if f.kind == "overlap"]
    assert overlap.place == "tensor 'x', box [16:24, 0:100]"


@pytest.mark.local_disk
def test_totals_are_not_counted_anew_where_a_file_has_lost_rows(full):
    def one_more(add, stats):
        stats["numRecords"] += 1

    deltalake.DeltaTable(full.uri).delete("id = 'x' AND lo.d0 = 8")
    doctor(full, one_more)
    for repair in (False, True):
        report = full.check(repair=repair)
        assert kinds(report) == ["gap", "records", "totals"]
        assert not any(f.repaired for f in report.findings)


@pytest.mark.local_disk
def test_totals_are_counted_anew_whatever_else_a_count_mends(full, x):
    row = data_rows(rows_of(full)).slice(1, 1)
    deltalake.DeltaTable(full.uri).delete("id = 'x' AND (lo.d0 = 8 OR lo.d0 = 16)")
    append_plain(full, with_column(row, "seq", [20]))
    report = full.check(repair=True)
    assert kinds(report) == ["gap", "order", "totals"]
    assert report.ok
    assert full.check().findings == ()
    np.testing.assert_array_equal(full["x"][:], np.where(np.arange(64)[:, None] // 8 == 2, 0, x))


@pytest.mark.local_disk
def test_rows_added_to_a_sparse_tensor_with_plain_delta_are_counted_anew(lake):
    first = tl.SparseTensor([[1], [2]], [5.0], (64, 64))
    second = tl.SparseTensor([[40], [40]], [7.0], (64, 64))
    lake.write("y", second, layout="bsgs", block_shape=(8, 8))
    rows = data_rows(rows_of(lake, "y"))
    lake.delete("y")
    lake.write("x", first, layout="bsgs", block_shape=(8, 8))
    rows = with_column(with_column(rows, "id", ["x"]), "seq", [9])
    append_plain(lake, rows)
    report = lake.check()
    assert kinds(report) == ["order", "totals"]
    assert lake.check(repair=True).ok
    assert lake.check().findings == ()
    assert lake["x"][...].nnz == 2
    # The same element once more is no matter of counting.
    append_plain(lake, with_column(rows, "seq", [30]))
    report = lake.check(repair=True)
    assert kinds(report) == ["duplicate", "order", "totals"]
    assert not report.ok
    (duplicate,) = [f for f in report.findings if f.kind == "duplicate"]
    assert "stored more than once" in duplicate.text


@pytest.mark.local_disk
def test_duplicates_are_looked_for_region_by_region(lake, monkeypatch):
    some = sparse(3, (40, 40, 40), 4000)
    lake.write("x", some, layout="coo")
    again = tl.SparseTensor(some.coords[:, 7:8], some.values[7:8], some.shape)
    lake.write("y", again, layout="coo")
    rows = stored(lake, "y")
    append_plain(lake, with_column(with_column(rows, "id", ["x"]), "seq", [77]))
    monkeypatch.setattr(tensor_check, "_AT_ONCE", 500)
    places = [f.place for f in lake.check().findings if f.kind == "duplicate"]
    (place,) = places
    at = again.coords[:, 0].tolist()
    sides = [side.split(":") for side in place.split("[")[1].rstrip("]").split(", ")]
    assert all(int(a) <= n < int(b) for n, (a, b) in zip(at, sides, strict=True))
    assert sides != [["0", "40"]] * 3


@pytest.mark.local_disk
def test_rows_without_a_metadata_row_and_rows_of_another_kind(full, x):
    rows = data_rows(rows_of(full)).slice(0, 2)
    append_plain(full, with_column(rows, "id", ["ghost"] * 2))
    report = full.check(repair=True)
    (finding,) = report.findings
    assert (finding.kind, finding.place) == ("metadata", "tensor 'ghost'")
    assert not finding.repaired
    full.write("z", x.astype("f8"), block_shape=(8, 100))
    z = stored(full, "z").slice(0, 1)
    append_plain(full, with_column(with_column(z, "id", ["x"]), "seq", [5000]))
    report = full.check("x")
    assert "row" in kinds(report)
    assert any("float64" in f.text for f in report.findings)
    assert not report.ok


@pytest.mark.local_disk
def test_a_row_outside_of_the_tensor(lake, x):
    lake.write("x", x, block_shape=(8, 100))
    rows = data_rows(rows_of(lake)).slice(7, 1)
    lake.write("x", x[:32], mode="overwrite", block_shape=(8, 100))
    append_plain(lake, rows)
    report = lake.check(repair=True)
    assert any(
        "outside of shape (32, 100), such as [56:64, 0:100]" in f.text for f in report.findings
    )
    assert not report.ok


@pytest.mark.local_disk
@pytest.mark.parametrize(
    ("first", "has_payload", "box"), [(-8, True, "[-8:0, 0:100]"), (64, False, "[64:72, 0:100]")]
)
def test_a_row_that_makes_no_sense_though_its_checksum_holds(full, first, has_payload, box):
    spec = catalog.get(Snapshot.open(Storage(full.uri)), "x").spec
    payload = data_rows(rows_of(full))["values"][0].as_py()
    row = Row((first, 0), (first + 8, 100), 800, "zstd", payload if has_payload else None)
    append_plain(full, pa.Table.from_batches([data_batch(spec, [99], [row])]))
    (fault,) = [f for f in full.check().findings if "row 99" in f.place and f.kind == "row"]
    assert fault.place == f"tensor 'x', row 99, box {box}"
    assert "no payload, or its box is empty or begins before the tensor" in fault.text


@pytest.mark.local_disk
@pytest.mark.parametrize(("layout", "wrong"), [("coo", 5), ("ftsf", 3), ("ftsf", 5)])
def test_a_row_does_not_store_more_than_its_box_has_nor_a_dense_one_less(lake, layout, wrong):
    """No checksum covers how many elements a row says that it stores."""
    x = tl.SparseTensor([[0, 0, 1], [0, 1, 0]], [5.0, 6.0, 7.0], (2, 2))
    lake.write("x", x if layout == "coo" else x.todense(), layout=layout)
    row = stored(lake, "x")
    append_plain(lake, with_column(with_column(row, "nnz", [wrong]), "seq", [99]))
    (fault,) = [f for f in lake.check().findings if f.kind == "row"]
    assert fault.place == "tensor 'x', row 99, box [0:2, 0:2]"
    assert f"stores {wrong} of the 4 elements of its box" in fault.text


@pytest.mark.local_disk
@pytest.mark.parametrize(
    ("codec", "index", "says"),
    [
        ("zstd", b"index", "an index, and codec 'zstd' in layout ftsf has none"),
        ("split+zstd", None, "no index, and codec 'split+zstd' in layout ftsf has one"),
        ("later", None, "codec 'later' (step 'later') is not one that this release reads"),
    ],
)
def test_a_dense_row_has_a_codec_that_is_known_and_an_index_only_where_that_has_one(
    full, codec, index, says
):
    spec = catalog.get(Snapshot.open(Storage(full.uri)), "x").spec
    payload = data_rows(rows_of(full))["values"][0].as_py()
    row = Row((0, 0), (8, 100), 800, codec, payload, index)
    append_plain(full, pa.Table.from_batches([data_batch(spec, [99], [row])]))
    (fault,) = [f for f in full.check().findings if f.kind == "row"]
    assert fault.place == "tensor 'x', row 99, box [0:8, 0:100]"
    assert says in fault.text


@pytest.mark.local_disk
def test_a_damaged_metadata_row(full):
    path = only_file(full)
    table = pq.read_table(path)
    attrs = [a and a.replace('"rows":8', '"rows":9') for a in table["attrs"].to_pylist()]
    pq.write_table(with_column(table, "attrs", attrs), path)
    report = full.check(repair=True)
    assert {"metadata", "row"} <= set(kinds(report))
    assert not report.ok
    assert not any(f.repaired for f in report.findings)


@pytest.mark.local_disk
def test_what_a_write_of_features_by_spark_leaves_is_an_orphan(full):
    names = [f"part-0123456789abcdef-0.{kind}" for kind in ("arrow", "left", "next")]
    for name in (*names, "notes.arrow"):
        Path(full.uri, name).write_bytes(b"something")
    assert [(f.kind, f.place) for f in full.check().findings] == [("orphan", n) for n in names]
    full.vacuum(0)
    assert full.check().findings == ()


@pytest.mark.local_disk
def test_orphans_and_notes_are_notices(full):
    Path(full.uri, "part-orphan.parquet").write_bytes(only_file(full).read_bytes())
    Staging(Storage(full.uri), "a-job").write("receipt", "something")
    full.write("x", np.zeros((3, 3)), mode="overwrite")
    report = full.check()
    assert report.ok, "a file that an old version names is no orphan"
    assert [(f.kind, f.place) for f in report.findings] == [
        ("orphan", "part-orphan.parquet"),
        ("staging", "_tensorlake/ingest/a-job"),
    ]
    assert "0.0 hours old" in report.findings[0].text
    assert full.check("x").findings == ()


@pytest.mark.local_disk
def test_files_named_by_a_checkpoint_alone_are_no_orphans(lake, x):
    for i in range(12):
        lake.write("x", x[i : i + 1], mode="append" if i else "error", layout="ftsf")
    lake.optimize()
    for path in Path(lake.uri, "_delta_log").glob("*.json"):
        if int(path.stem) <= 9:
            path.unlink()
    assert lake.check().findings == ()


def test_what_cannot_be_asked(lake, full, x):
    with pytest.raises(tl.TensorNotFoundError, match="'xx'"):
        full.check(["x", "xx"])
    for ids in (5, b"x", [None], [["x"]]):
        with pytest.raises(
            tl.InvalidTensorError, match=r"not an id of a tensor|a tensor id is a string"
        ):
            full.check(ids)
    old = tl.open(full.uri, version=1)
    assert old.check("x").ok
    with pytest.raises(tl.InvalidOptionError, match="reading only"):
        old.check(repair=True)
    with pytest.raises(tl.TableNotFoundError):
        tl.open(f"{full.uri}-nothing").check()


def test_other_tensors_of_the_same_file_are_left_out(full, x):
    full.write("y", x)
    full.optimize()
    assert len(live(full)) == 1
    assert (full.check("x").tensors, full.check(["x", "y"]).tensors) == (1, 2)


def test_each_tensor_has_findings_of_its_own_in_short():
    places = [f"tensor {name!r}, row {n}" for name in "ab" for n in range(11)]
    short = check.in_short([check.Finding("row", place, "") for place in places])
    assert [f.place for f in short] == places[:10] + places[11:21] + ["tensor 'a'", "tensor 'b'"]


@pytest.mark.local_disk
@pytest.mark.parametrize(
    ("count", "last"),
    [(10, "checksum"), (11, "and 1 more of this kind"), (40, "and 30 more of this kind")],
)
def test_many_findings_are_told_in_few_lines(lake, count, last):
    lake.write("x", np.arange(400).reshape(40, 10)[:count], block_shape=(1, 10), codec="raw")
    path = only_file(lake)
    table = pq.read_table(path)
    values = [v and v[:-1] + b"\xff" for v in table["values"].to_pylist()]
    pq.write_table(with_column(table, "values", values), path)
    report = lake.check()
    rows = [f for f in report.findings if f.kind == "row"]
    assert len(rows) == min(count, 11)
    assert last in rows[-1].text


def test_a_change_of_another_writer_meanwhile_is_not_counted_over(full, x, monkeypatch):
    deltalake.DeltaTable(full.uri).delete("id = 'x' and lo.d0 = 8")
    forget()
    count = check.count_anew

    def late(snapshot, stock):
        tl.open(full.uri, verify=False).write("x", x, mode="overwrite")
        return count(snapshot, stock)

    monkeypatch.setattr(check, "count_anew", late)
    assert not full.check(repair=True).ok
    np.testing.assert_array_equal(full["x"][:], x)
    assert full.check().findings == ()


@pytest.mark.local_disk
@pytest.mark.parametrize("seed", range(5))
def test_tensors_of_one_row_group_are_checked_together_and_as_each_alone(lake, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    with lake.transaction() as changes:
        for k in range(40):
            kind = str(rng.choice(["i4", "f8"]))
            array = rng.integers(1, 9, (6, 2, 3)[: rng.integers(0, 4)]).astype(kind)
            options = {"layout": "coo"} if array.ndim and rng.random() < 0.3 else {}
            changes.write(f"t{k:02}", array, **options)
    table = pq.read_table(only_file(lake))
    (batch,) = table.take(rng.permutation(table.num_rows)).combine_chunks().to_batches()
    for name, wrong in (("crc", 7), ("codec", "none"), ("nnz", 10**6), ("values", None)):
        values = batch.column(name).to_pylist()
        for i in rng.choice(batch.num_rows, 3):
            values[i] = wrong
        batch = with_column(batch, name, values)
    counted = []
    check_rows = inventory._check_rows
    monkeypatch.setattr(
        inventory, "_check_rows", lambda *given: counted.append(given) or check_rows(*given)
    )
    parts, described, faults = inventory.take_stock("file", batch)
    assert len(counted) <= 2 * 2 * 4  # layouts, dtypes and ranks
    some = data_rows(batch)["id"].to_pylist()
    assert {*parts} == {*some}
    assert len(described) == batch.num_rows - len(some)
    assert faults
    alone = []
    for name in {*batch["id"].to_pylist()}:
        own = batch.filter(pa.compute.equal(batch["id"], name))
        (found, _, wrong) = inventory.take_stock("file", own)
        alone += wrong
        for one, other in zip(found.get(name, []), parts.get(name, []), strict=True):
            for field in fields(one):
                np.testing.assert_equal(getattr(one, field.name), getattr(other, field.name))
    assert sorted(map(str, faults)) == sorted(map(str, alone))


@pytest.mark.parametrize("seed", range(20))
def test_meeting_boxes_are_those_that_all_pairs_show(seed):
    rng = np.random.default_rng(seed)
    ndim, count = int(rng.integers(1, 4)), int(rng.integers(2, 400))
    lo = rng.integers(0, 60, (count, ndim))
    hi = lo + rng.integers(1, 9 if seed % 2 else 3, (count, ndim))
    meets = ((lo[:, None] < hi[None]) & (hi[:, None] > lo[None])).all(axis=2)
    want = sorted((i, j) for i, j in np.argwhere(meets).tolist() if i < j)
    assert meeting(lo, hi, 10**6) == want
    assert len(meeting(lo, hi, 3)) >= min(3, len(want))


def test_a_hundred_thousand_boxes_are_looked_through():
    cells = np.stack(np.unravel_index(np.random.default_rng(0).permutation(100_000), (100, 50, 20)))
    lo = cells.T * np.array([4, 8, 16])
    hi = lo + np.array([4, 8, 16])
    assert meeting(lo, hi) == []
    lo[70_000], hi[70_000] = lo[5] + 1, hi[5] + 1
    lo[70_000, 0], hi[70_000, 0] = lo[5, 0], hi[5, 0]
    assert (5, 70_000) in meeting(lo, hi)
    assert len(meeting(np.zeros((100_000, 2), int), np.full((100_000, 2), 3))) >= 16
    assert meeting(np.zeros((2, 0), int), np.zeros((2, 0), int)) == [(0, 1)]


@pytest.mark.soak
def test_spark_made_rows_deletion_vectors_and_files_pass(spark, full, x):
    full.write("y", x, block_shape=(8, 100))
    uri = full.uri
    spark.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    full.write("z", x[:9], block_shape=(1, 100))
    full.write(f"long/{'n' * 100}", x, block_shape=(8, 100))
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 'z' AND lo.d0 = 3")
    assert Snapshot.open(Storage(uri)).deletions
    report = full.check()
    assert kinds(report) == ["gap", "totals"], str(report)
    assert {f.place for f in report.findings} == {"tensor 'z'", "tensor 'z', box [3:4, 0:100]"}
    assert full.check(repair=True).ok
    assert full.check().findings == ()
    spark.sql(f"OPTIMIZE delta.`{uri}`")
    report = full.check()
    assert report.findings == (), str(report)
    frame = spark.createDataFrame(
        [([0, 0], ("int32", [2, 4], np.arange(8, dtype="<i4").tobytes()))],
        "lo array<bigint>, tensor struct<dtype: string, shape: array<bigint>, data: binary>",
    )
    frame.write.format("tensor").option("id", "slab").mode("append").save(uri)
    assert full.check().findings == ()


def describe_otherwise(lake, row, **columns):
    """Change what one data row says of its tensor, around the package; no checksum covers these columns."""
    path = only_file(lake)
    table = pq.read_table(path)
    for name, sides in columns.items():
        values = table[name].to_pylist()
        values[row] = sides
        table = with_column(table, name, values)
    pq.write_table(table, path, row_group_size=1)
    log = Path(lake.uri, "_delta_log", f"{lake.version:020}.json")
    text = log.read_text()
    size = json.loads(next(x for x in text.splitlines() if '"add"' in x))["add"]["size"]
    log.write_text(text.replace(f'"size":{size}', f'"size":{path.stat().st_size}'))
    forget()


@pytest.mark.local_disk
@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"shape": [65, 100]}, "shape [65, 100] and block_shape [8, 100]"),  # more than there is
        ({"shape": [64, None]}, "shape [64, None] and block_shape [8, 100]"),
        ({"shape": [-1, 100]}, "shape [-1, 100] and block_shape [8, 100]"),
        ({"block_shape": [9, 100]}, "shape [64, 100] and block_shape [9, 100]"),
        ({"block_shape": [8]}, "shape [64, 100] and block_shape [8]"),
        ({"block_shape": None}, "shape [64, 100] and block_shape null"),
    ],
)
def test_a_row_that_describes_its_tensor_otherwise_is_a_notice(full, x, columns, said):
    digest = full.digest()
    describe_otherwise(full, 2, **columns)
    report = tl.open(full.uri).check(digest=digest)
    (found,) = report.findings
    assert (found.kind, found.is_notice, report.ok) == ("described", True, True)
    assert found.place == "tensor 'x', row 2, box [16:24, 0:100]"
    assert (
        f"its columns say {said}, the metadata of the tensor say [64, 100] and [8, 100]"
        in found.text
    )
    assert "no error" in str(report)
    assert "notice [described] tensor 'x', row 2" in str(report)
    np.testing.assert_array_equal(tl.open(full.uri)["x"][...], x)


@pytest.mark.local_disk
def test_rows_of_a_tensor_that_has_grown_say_what_it_was(lake, x):
    lake.write("x", iter([x[:5], x[5:12]]), block_shape=(8, 100))
    lake.write("x", x[:12], mode="append")
    lake.write("x", np.ones((24, 30), "i4"), mode="append", axis=1)
    assert len(set(map(tuple, stored(lake, "x")["shape"].to_pylist()))) > 1
    assert lake.check().findings == ()


@pytest.mark.local_disk
def test_rows_of_tasks_that_did_not_know_the_length_say_an_open_end(full):
    describe_otherwise(full, 2, shape=[1 << 40, 100])
    assert tl.open(full.uri).check().findings == ()


@pytest.mark.local_disk
def test_a_notice_of_a_row_does_not_keep_totals_from_being_counted(full):
    describe_otherwise(full, 2, block_shape=[9, 100])
    deltalake.DeltaTable(full.uri).delete("id = 'x' AND lo.d0 = 48")
    forget()
    report = tl.open(full.uri).check(repair=True)
    assert {f.kind: f.repaired for f in report.findings} == {
        "totals": True,
        "gap": True,
        "described": False,
    }
    assert report.ok
    assert kinds(tl.open(full.uri).check()) == ["described"]


@pytest.mark.local_disk
def test_rows_of_features_that_were_dropped_since_say_what_there_was(lake):
    columns = {f"f{k}": np.arange(9.0) + k for k in range(20)}
    features = lake.features("w").write(pa.table(columns))
    features.drop(["f18", "f19"]).drop(["f17"])
    assert max(shape[1] for shape in stored(lake, "w/float64")["shape"].to_pylist()) == 20
    assert lake.check().findings == ()


def test_texts_of_users_in_files_that_deltalake_wrote_again_are_no_damage(full):
    """It asks for views of them there, of which Arrow takes no part."""
    table = deltalake.DeltaTable(full.uri)
    inner = deltalake.schema.StructType([deltalake.Field("city", "string")])
    table.alter.add_columns([deltalake.Field("who", "string"), deltalake.Field("place", inner)])
    table.update(updates={"who": "'me'"}, predicate="nnz > 0")
    report = full.check()
    assert report.ok
    assert report.rows == table.to_pyarrow_dataset().count_rows()


@pytest.mark.local_disk
def test_an_emptied_commit_is_told_and_nothing_is_counted_out(full, x):
    """Readers of Delta pass it by, and the rows that it added are not seen."""
    full.write("x", x[:8], mode="append")
    name = sorted(Path(full.uri, "_delta_log").glob("*.json"))[-1]
    text = name.read_bytes()
    files = {*Path(full.uri).glob("*.parquet")}
    name.write_bytes(b"")
    forget()
    for repair in (False, True):
        for ids in (None, "x"):
            report = tl.open(full.uri).check(ids, repair=repair)
            assert not report.ok
            (finding,) = [f for f in report.findings if f.kind == "log"]
            assert finding.place == f"_delta_log/{name.name}"
            assert "it has no bytes, as after a power failure" in finding.text
            assert not any(f.repaired for f in report.findings)
    said = f"nothing was deleted in .* because of _delta_log/{name.name}: it has no bytes"
    with pytest.raises(tl.FormatError, match=said):
        tl.open(full.uri).vacuum(0)
    assert {*Path(full.uri).glob("*.parquet")} == files
    name.write_bytes(text)
    forget()
    assert tl.open(full.uri).check().ok
    assert len(tl.open(full.uri)["x"]) == 72
    (name.parent / f"{len([*name.parent.glob('*.json')]):020}.json").write_text('{"commitInfo":{}}')
    forget()
    assert tl.open(full.uri).check().ok, "a commit that says nothing was given up"
