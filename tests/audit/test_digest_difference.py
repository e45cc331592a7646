"""A check with a digest names the first thing that differs, wherever the rows lie by now."""

import re
import shutil
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.audit import hashing
from tensorlake_spark.delta.files import digest_file
from tensorlake_spark.delta.log.snapshot import Snapshot


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 2**31, (12, 400)).astype("i4")


@pytest.fixture
def full(lake, x):
    lake.write("a", x[:6], block_shape=(1, 400), codec="raw")
    lake.write("a", x[6:], mode="append")
    lake.write("b", -x, block_shape=(3, 400), codec="raw")
    return lake


def found(lake, digest, ids=None):
    report = lake.check(ids, digest=digest)
    return [finding for finding in report.findings if finding.kind == "digest"]


def one(lake, digest, ids=None):
    (finding,) = found(lake, digest, ids)
    assert not finding.repaired
    assert not finding.is_notice
    return finding.place, finding.text


def damage(lake, needle):
    """Change one byte of the data; return in which file."""
    for path in Path(lake.uri).glob("*.parquet"):
        data = path.read_bytes()
        if needle in data:
            place = data.index(needle) + 9
            path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            return path.name
    raise AssertionError("no file has it")


@pytest.mark.both_stores
def test_nothing_differs(full):
    digest = full.digest()
    for given in (digest, digest.hex, digest.hex.upper(), digest["a"]):
        report = full.check(digest=given)
        assert (report.ok, report.findings) == (True, ())
    assert found(full, digest, "a") == found(full, digest["a"].hex, ["a"]) == []
    full.optimize()
    assert found(full, digest) == []


@pytest.mark.local_disk
def test_one_byte_is_named_with_file_row_group_row_and_box(full, x):
    digest = full.digest()
    name = damage(full, x[8].tobytes())
    assert full.digest() == digest, "what is kept is not read again"
    place, text = one(full, digest)
    group = re.fullmatch(rf"{name}, row group (\d+), row 9: tensor 'a', box \[8:9, 0:400\]", place)
    with pq.ParquetFile(Path(full.uri, name)) as file:
        assert 9 in file.read_row_group(int(group[1]))["seq"].to_pylist()
    assert text == f"it does not hold what it held in version {digest.version}"
    kinds = {finding.kind for finding in full.check(digest=digest).findings}
    assert kinds == {"row", "digest"}, "its checksum does not hold either"
    assert found(full, digest, "b") == []


@pytest.mark.local_disk
def test_a_row_with_a_right_checksum_that_holds_something_else(full):
    """The case for which there is a digest: somebody wrote through the front door."""
    digest = full.digest()
    full["a"][8, 3] = 7
    report = full.check(digest=digest)
    (finding,) = report.findings
    assert not report.ok
    assert "box [8:9, 0:400]" in finding.place
    assert finding.place.split(",")[0] in Snapshot.open(full._storage).files.path
    full.optimize()
    assert "box [8:9, 0:400]" in one(full, digest)[0]


@pytest.mark.local_disk
def test_the_first_of_several_is_named_and_the_others_are_counted(full):
    digest = full.digest()
    for stop, more in ((5, 1), (7, 3)):
        full["a"][3:stop, 0] = 1
        place, text = one(full, digest)
        assert "box [3:4, 0:400]" in place
        assert text.endswith(f", and {more} more boxes of this tensor differ")
    assert found(full, digest, ["a", "a"]) == found(full, digest, "a")
    full["b"][0, 0] = 1
    assert [re.search(r"tensor '.'", f.place)[0] for f in found(full, digest)] == [
        "tensor 'a'",
        "tensor 'b'",
    ]


@pytest.mark.local_disk
def test_rows_that_are_gone_or_new(full):
    digest, version = full.digest(), full.version
    old = {file.name for file in digest.files}
    deltalake.DeltaTable(full.uri).delete("id = 'a' AND lo.d0 = 4")
    place, text = one(full, digest)
    assert place.split(",")[0] in old
    assert "tensor 'a', box [4:5, 0:400]" in place
    assert text == f"it is missing, and in version {version} it was there"
    later = tl.open(full.uri).digest()
    full.restore("a", version)
    assert one(full, later)[1].startswith("it was not there in version")


@pytest.mark.local_disk
def test_a_row_that_is_there_twice(full, x):
    digest = full.digest()
    (path,) = {row.path for row in digest.rows if row.lo == (8, 0)}
    table = pq.read_table(Path(full.uri, path))
    mask = np.asarray(table["lo"].combine_chunks().field("d0").fill_null(-1)) == 8
    deltalake.write_deltalake(full.uri, table.filter(mask), mode="append")
    place, text = one(full, digest)
    assert "box [8:9, 0:400]" in place
    assert text.startswith("it is there 2 times, and in version")


@pytest.mark.local_disk
def test_metadata(full):
    digest = full.digest()
    full["a"].update_attrs({"unit": "K"})
    assert one(full, digest) == (
        "tensor 'a', metadata",
        f"it is not that of version {digest.version}",
    )


@pytest.mark.local_disk
def test_tensors_that_are_gone_or_new(full):
    digest = full.digest()
    full.delete("a")
    full.write("c", np.arange(3))
    texts = {f.place: f.text for f in found(full, digest)}
    assert texts == {
        "tensor 'a'": f"it is not there, and in version {digest.version} it was",
        "tensor 'c'": f"it was not there in version {digest.version}",
    }


@pytest.mark.local_disk
def test_only_the_hexadecimal_digest(full):
    digest = full.digest()
    full["a"][8, 3] = 7
    place, text = one(full, digest.hex)
    assert place == "table"
    assert text.startswith(f"its digest is {full.digest().hex}, not {digest.hex}; give the saved")
    assert one(full, digest["a"].hex, "a")[0] == "tensor 'a'"
    assert found(full, digest["b"].hex, "b") == []


@pytest.mark.local_disk
def test_rows_in_another_order_where_it_counts(lake):
    for mode, value in (("overwrite", 1.0), ("append", 2.0)):
        s = tl.SparseTensor([[1], [3]], [value], (9, 9))
        more = {} if mode == "append" else {"duplicates": "last"}
        lake.write("x", s, mode=mode, layout="coo", axis=None, **more)
    digest = lake.digest()
    before = digest._leaves
    kind = np.asarray(before["kind"])
    seq = np.asarray(before["seq"]).copy()
    seq[kind == 0] = seq[kind == 0][::-1]
    turned = tl.Digest(
        before.set_column(5, "seq", pa.array(seq)), None, digest.uri, 1, digest.table_id
    )
    assert turned != digest
    assert one(lake, turned) == ("tensor 'x'", "its rows are in another order than in version 1")


@pytest.mark.local_disk
def test_a_copy_of_a_table_and_another_one(full, tmp_path):
    digest = full.digest()
    shutil.copytree(full.uri, tmp_path / "copy")
    assert found(tl.open(tmp_path / "copy"), digest) == []
    other = tl.open(tmp_path / "other")
    other.write("a", np.arange(3))
    texts = {f.place: f.text for f in found(other, digest)}
    assert set(texts) >= {"tensor 'b'", "tensor 'a', metadata"}
    assert all(
        text.endswith(f"; the digest is of another table, {full.uri}") for text in texts.values()
    )


@pytest.mark.local_disk
def test_a_kept_digest_that_lies_is_not_asked(full, x):
    """Whoever can write to the table can write what is kept: `check` reads the rows."""
    digest = full.digest()
    full["a"][8, 3] = 7
    snapshot = Snapshot.open(full._storage)
    full.digest()
    kept = digest_file.load(snapshot)
    old = {row.lo: row.digest for row in digest["a"].rows}
    rows = kept.to_pylist()
    for row in rows:
        if row["id"] == "a" and row["kind"] == 0:
            row["digest"] = old[tuple(row["lo"])]
    digest_file.save(snapshot, pa.Table.from_pylist(rows, schema=digest_file.LEAVES))
    hashing._known.clear()
    assert full.digest("a") == digest["a"], "the kept file is believed here"
    assert "box [8:9, 0:400]" in one(full, digest)[0]


@pytest.mark.local_disk
def test_what_is_no_digest(full):
    for bad in ("", "abc", "g" * 64, "a" * 65, b"a" * 64, 7, Path("digest")):
        with pytest.raises(tl.InvalidOptionError, match=r"is not a digest; give what lake.digest"):
            full.check(digest=bad)
    digest = full.digest()
    for ids in (["a", "b"], []):
        with pytest.raises(tl.InvalidOptionError, match=f"or of the table, not of {len(ids)}"):
            full.check(ids, digest=digest.hex)
    with pytest.raises(tl.TensorNotFoundError, match=r"no tensor 'b'.* of tensor 'a' alone"):
        full.check("b", digest=digest["a"])
