"""A log that leads out of its table: names of data files, of deletion vectors, of checkpoints, of receipts."""

import base64
import json
import struct
import uuid
import zlib

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.log import deletion_vectors as vectors
from tensorlake_spark.delta.log.actions import all_transactions
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.paths import inside
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.spark.source import task_notes as receipts
from tensorlake_spark.spark.source.commit_message import TensorCommitMessage

OUTSIDE = [
    "../secret/{name}",
    "_delta_log/../../secret/{name}",
    "%2e%2e/secret/{name}",
    "%2E%2E%2Fsecret%2F{name}",
    "%252e%252e/secret/{name}",
    "..\\secret\\{name}",
    "/{path}",
    "//{path}",
    "%2F{path}",
    "file:///{path}",
    "FILE:/{path}",
    "s3://another-bucket/{name}",
    "s3:/another-bucket/{name}",
    "x%00/{name}",
    "x\nERROR: all is lost/{name}",
    "x%0A/{name}",
    "\x1b[2J{name}",
]


@pytest.fixture
def secret(tmp_path):
    """A table that nobody opens, and one of its data files."""
    tl.open(tmp_path / "secret").write("secret", np.arange(10))
    (path,) = (tmp_path / "secret").glob("*.parquet")
    return path


@pytest.fixture
def table(tmp_path):
    """A table that somebody made up."""
    tl.open(tmp_path / "lake").write("x", np.arange(4))
    return tmp_path / "lake"


@pytest.mark.parametrize("form", OUTSIDE)
def test_a_data_file_lies_inside_of_its_table(table, secret, forge, form):
    name = form.format(name=secret.name, path=str(secret).lstrip("/"))

    def change(action):
        if "add" in action:
            action["add"] |= {"path": name, "size": secret.stat().st_size}
            action["add"].pop("stats")

    forge(table).log(change)
    lake = tl.open(table)
    # Opening the log is no reading of the file yet; whatever needs the names of files refuses them.
    for use in (
        lambda: list(lake),
        lambda: lake["secret"][:],
        lambda: lake["x"],
        lambda: lake.check(),
        lambda: lake.purge("secret", now=True),
        lambda: lake.delete("secret"),
        lambda: lake.write("x", np.arange(3), mode="append"),
    ):
        with pytest.raises(tl.FormatError, match="outside of it"):
            use()
    assert tl.open(secret.parent)["secret"][:].tolist() == list(range(10))


def test_spark_reads_no_file_outside_of_the_table(spark, table, secret, forge):
    forge(table).log(
        lambda a: a["add"].update(path=f"../secret/{secret.name}") if "add" in a else None
    )
    with pytest.raises(Exception, match="outside of its folder"):
        spark.read.format("tensor").option("id", "secret").load(str(table)).collect()


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\nERROR: all is lost", "\x1b[2J", "a//b"])
def test_names_of_tensors_in_statistics_are_looked_at(table, forge, name):
    """`list(lake)` takes them from the log alone."""

    def change(action):
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            stats["minValues"]["id"] = stats["maxValues"]["id"] = name
            action["add"]["stats"] = json.dumps(stats)

    forge(table).log(change)
    with pytest.raises(tl.CorruptDataError, match="whose name is none") as told:
        list(tl.open(table))
    assert "\n" not in str(told.value)
    assert "\x1b" not in str(told.value)


@pytest.mark.parametrize("name", ["a/b.parquet", "part-1.parquet", "..a", "a../b", "ä b.parquet"])
def test_names_inside_stay_as_they_are(name):
    assert inside(name) == name


def test_every_access_to_a_file_by_its_name_is_held_inside(tmp_path):
    storage = Storage(str(tmp_path / "lake"))
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for use in (
        storage.open_output, storage.open_parquet, storage.map_file, storage.read_whole,
        storage.delete, lambda name: storage.modified([name]),
    ):  # fmt: skip
        with pytest.raises(tl.FormatError, match="outside"):
            use("../victim")
    assert victim.read_text() == "mine"


def test_a_checkpoint_is_looked_for_inside(table, secret):
    last = {"version": 0, "size": 1, "v2Checkpoint": {"path": f"../../secret/{secret.name}"}}
    (table / "_delta_log" / "_last_checkpoint").write_text(json.dumps(last))
    storage = Storage(str(table))
    with pytest.raises(tl.FormatError, match="outside"):
        all_transactions(storage, 1)


Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def z85(data):
    return base64.b85encode(data).decode().translate(str.maketrans(B85, Z85))


def bitmap(bucket=0, key=0, buckets=1):
    """A deletion vector that marks the first row of a container."""
    roaring = struct.pack("<IIHHIH", 12346, 1, key, 0, 16, 0)
    return struct.pack("<IQI", 1681511377, buckets, bucket) + roaring


class Vector:
    """A table of one file with rows of which the first is marked by a deletion vector."""

    def __init__(self, table, forge, bits, kind="u", form="{id}", where=""):
        name = uuid.uuid4()
        body = struct.pack(">I", len(bits)) + bits + struct.pack(">I", zlib.crc32(bits))
        folder = table / where
        folder.mkdir(exist_ok=True)
        self.file = folder / f"deletion_vector_{name}.bin"
        self.file.write_bytes(b"\1" + body)
        text = form.format(
            id=z85(name.bytes), path=self.file, bits=z85(bits + bytes(-len(bits) % 4))
        )
        vector = {
            "storageType": kind,
            "pathOrInlineDv": text,
            "sizeInBytes": len(bits),
            "cardinality": 1,
        }
        if kind != "i":
            vector["offset"] = 1

        def change(action):
            if "protocol" in action:
                features = {f"{side}Features": ["deletionVectors"] for side in ("reader", "writer")}
                action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
            if "add" in action:
                action["add"]["deletionVector"] = vector

        forge(table).log(change)
        self.snapshot = Snapshot.open(Storage(str(table)))

    def kept(self):
        (mask,) = self.snapshot.deletions.values()
        return mask.tolist()


@pytest.mark.parametrize(
    ("kind", "form", "where"), [("u", "{id}", ""), ("u", "ab{id}", "ab"), ("i", "{bits}", "")]
)
def test_deletion_vectors_of_the_table_are_read(table, forge, kind, form, where):
    assert Vector(table, forge, bitmap(), kind, form, where).kept() == [False, True]


@pytest.mark.parametrize(
    ("kind", "form"),
    [("p", "file://{path}"), ("p", "{path}"), ("p", "s3://another-bucket/x.bin"),
     ("u", "../outside/{id}"), ("u", "%2e%2e/outside/{id}"), ("u", "/tmp/{id}")],
)  # fmt: skip
def test_a_deletion_vector_lies_inside_of_its_table(table, forge, kind, form):
    vector = Vector(table, forge, bitmap(), kind, form, "../outside")
    with pytest.raises(tl.FormatError, match="outside of it"):
        vector.kept()
    with pytest.raises(tl.FormatError, match="outside of it"):
        tl.open(table)["x"][:]


@pytest.mark.parametrize("kind", ["u", "i"])
@pytest.mark.parametrize(
    "bits",
    [bitmap(bucket=100), bitmap(bucket=2**31), bitmap(key=0xFFFF), bitmap(buckets=2**60)],
)
@pytest.mark.usefixtures("little_memory")
def test_a_deletion_vector_takes_no_memory_for_rows_that_are_not_there(table, forge, bits, kind):
    # deltalake asks for 400 GiB at the first of them, and the process ends.
    vector = Vector(table, forge, bits, kind, "{id}" if kind == "u" else "{bits}")
    with pytest.raises(tl.CorruptDataError, match="rows that the file does not have"):
        vector.kept()


@pytest.mark.parametrize("bits", [b"", b"abc", bytes(100), bitmap()[:16], bitmap()[:-6]])
def test_a_damaged_deletion_vector_is_an_error_of_ours(table, forge, bits):
    with pytest.raises((tl.CorruptDataError, tl.StorageError)):
        Vector(table, forge, bits).kept()


def test_a_log_that_lies_about_rows_gives_a_vector_no_more_memory(table, forge):
    def change(action):
        if "add" in action:
            action["add"]["stats"] = json.dumps({"numRecords": 2**50})

    forge(table).log(change)
    with pytest.raises(tl.CorruptDataError, match="rows that the file does not have"):
        Vector(table, forge, bitmap(bucket=100)).kept()


def test_vectors_are_found_in_checkpoints_and_in_commits_after_them(table, forge):
    Vector(table, forge, bitmap())
    storage = Storage(str(table))
    Snapshot.open(storage).table.create_checkpoint()
    for path in (table / "_delta_log").glob("*.json"):
        path.unlink()
    found = [a["deletionVector"] for a in vectors._adds(storage, 1) if a.get("deletionVector")]
    assert [vector["storageType"] for vector in found] == ["u"]


def test_a_receipt_of_an_ingestion_names_no_file_outside(tmp_path):
    victim = tmp_path / "victim.parquet"
    victim.write_text("mine")
    file = DataFile("../victim.parquet", victim.stat().st_size, "{}")
    text = receipts.to_text(TensorCommitMessage((file,), ()))
    assert receipts.from_text(text) is None, "what is damaged is left out, and written again"
    good = receipts.to_text(TensorCommitMessage((DataFile("a.parquet", 1, "{}"),), ()))
    assert receipts.from_text(good).files[0].path == "a.parquet"
