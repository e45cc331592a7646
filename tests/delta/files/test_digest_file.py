"""The file of kept digests: what is in it is never needed, and never believed without the log."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.audit import hashing
from tensorlake_spark.delta.files import digest_file
from tensorlake_spark.delta.files.digest_file import LEAVES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.checksummed_table import checksum
from tensorlake_spark.delta.store.storage import Storage

pytestmark = pytest.mark.local_disk


@pytest.fixture
def full(lake):
    for i in range(3):
        lake.write("x", np.full((2, 50), i + 1), mode="append", block_shape=(1, 50))
    lake.digest()
    return lake


def forget():
    """Drop what this process knows, as if it had just started."""
    hashing._known.clear()


def kept(lake):
    return Path(lake.uri, digest_file.NAME)


def snapshot_of(lake):
    return Snapshot.open(Storage(lake.uri))


def rebuilt(lake):
    """The digest of a lake in a fresh process, which has to be right; and what was read for it."""
    forget()
    found = lake.digest()
    aside = Path(f"{lake.uri}-aside")
    shutil.copytree(lake.uri, aside)
    shutil.rmtree(aside / "_tensorlake", ignore_errors=True)
    assert found == tl.open(aside).digest()
    shutil.rmtree(aside)
    return found.hashed


def test_what_is_packed_comes_back(full):
    leaves = digest_file.load(snapshot_of(full))
    assert leaves.num_rows == 9
    again, about = digest_file.unpack(digest_file.pack(leaves, {"a": "b"}))
    assert again.equals(leaves)
    assert about == {"a": "b"}
    assert digest_file.unpack(digest_file.pack(LEAVES.empty_table(), {}))[0].num_rows == 0


def test_it_is_used_by_the_next_process(full):
    assert rebuilt(full) == 0
    assert [path.name for path in kept(full).parent.iterdir()] == ["rows"]


DAMAGES = {
    "damaged": lambda data: data[:200] + bytes([data[200] ^ 255]) + data[201:],
    "damaged at its end": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "truncated": lambda data: data[: len(data) // 2],
    "cut in its head": lambda data: data[:20],
    "empty": lambda data: b"",
    "foreign": lambda data: b"PAR1" + data[4:],
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_one_is_left_out_and_written_anew(full, kind, caplog):
    kept(full).write_bytes(DAMAGES[kind](kept(full).read_bytes()))
    assert rebuilt(full) > 0
    assert "is damaged and left out; the next digest writes it anew" in caplog.text
    assert rebuilt(full) == 0


def test_one_of_a_later_format_is_left_out_without_a_word(full, caplog):
    kept(full).write_bytes(kept(full).read_bytes().replace(b"digests 1\n", b"digests 2\n", 1))
    assert rebuilt(full) > 0
    assert caplog.text == ""


def test_one_without_what_it_should_have_is_left_out(full, caplog):
    leaves = digest_file.load(snapshot_of(full))
    about = {"table": snapshot_of(full).table_id}
    whole = digest_file.pack(leaves, about)
    with pytest.raises(ValueError, match="it has the columns a"):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([("a", pa.int64())])):
            pass
        data = sink.getvalue().to_pybytes()
        digest_file.unpack(whole[:21] + checksum(data) + data)
    nulls = leaves.set_column(4, LEAVES.field("id"), pa.nulls(9, pa.string()))
    kept(full).write_bytes(digest_file.pack(nulls, about))
    assert rebuilt(full) > 0
    assert "it has nulls" in caplog.text


def test_that_of_another_table_is_not_believed(full, tmp_path):
    """Even where its files have the names and the sizes of ours."""
    leaves = digest_file.load(snapshot_of(full))
    wrong = pa.array([bytes(32)] * leaves.num_rows, LEAVES.field("digest").type)
    forged = leaves.set_column(8, LEAVES.field("digest"), wrong)
    kept(full).write_bytes(digest_file.pack(forged, {"table": "another"}))
    assert rebuilt(full) > 0


@pytest.mark.parametrize("change", ["size", "rows", "path"])
def test_what_the_log_contradicts_is_not_taken(full, change):
    leaves = digest_file.load(snapshot_of(full))
    if change == "rows":
        leaves = leaves.slice(1)
    else:
        wrong = {"size": pa.array([1, *leaves["size"].to_pylist()[1:]])}
        wrong["path"] = pa.array(["part-other.parquet"] * 3 + leaves["path"].to_pylist()[3:])
        place = leaves.schema.get_field_index(change)
        leaves = leaves.set_column(place, LEAVES.field(change), wrong[change])
    about = {"table": snapshot_of(full).table_id}
    kept(full).write_bytes(digest_file.pack(leaves, about))
    files = snapshot_of(full).files
    assert 0 < rebuilt(full) < files.size.sum()
    assert set(digest_file.load(snapshot_of(full))["path"].to_pylist()) == set(files.path)


def test_one_that_cannot_be_written_is_no_hindrance(lake, caplog):
    lake.write("x", np.arange(9))
    Path(lake.uri, "_tensorlake").mkdir(exist_ok=True)
    Path(lake.uri, digest_file.ROOT).write_text("a file where the folder should be")
    forget()
    assert lake.digest() == lake.digest()
    assert "rows was not written: " in caplog.text


def test_vacuum_forgets_what_left_the_table(full):
    full.write("y", np.arange(9))
    digests = {bytes.fromhex(node.hex) for node in full.digest()["x"].children}
    full.delete("x")
    full.vacuum(0, dry_run=True)
    known = digest_file.unpack(kept(full).read_bytes())[0]
    assert digests <= set(known["digest"].to_pylist())
    full.vacuum(0)
    known = digest_file.unpack(kept(full).read_bytes())[0]
    assert set(known["id"].to_pylist()) == {"y"}
    full.delete("y")
    full.vacuum(0)
    assert list(kept(full).parent.iterdir()) == []
    assert full.check().ok
