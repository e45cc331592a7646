"""Around the one commit: what fails after it, who was faster before it, and batches that are there already."""

import os

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest.arrays import array_job as write_arrays
from tensorlake_spark.spark.ingest.records import cell_preparation
from tensorlake_spark.spark.source.task_notes import Resumption

X = np.arange(12.0).reshape(3, 4)
TABLE = ("--axis", "i", "--axis", "j:label", "--value", "v")


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "zeros.npy", np.zeros((3, 4)))
    (tmp_path / "a.csv").write_text("i,j,v\n0,b,1\n2,a,2\n")
    return tmp_path


@pytest.fixture
def table(tmp_path):
    return tmp_path / "lake"


def notes_of(table):
    return [p for p in table.glob("_tensorlake/**/*") if p.is_file()]


def test_small_files_that_cannot_be_brought_together(job, files, table):
    """The batch is in the table, so the run must not look as if it had to be repeated."""
    tl.open(table).write("x", X)
    (old,) = table.glob("*.parquet")
    old.write_bytes(bytes(old.stat().st_size))
    words = ["--table", table, "--id", "x", "--mode", "append", "--concat", 0]
    done = job(*words, "--compact-after", 2, files / "a.npy")
    assert (done.code, done.json["status"]) == (0, "done"), done.err
    assert done.json["compaction_error"]["type"] == "CorruptDataError"
    assert "done, but small files were not brought together: data file" in done.err
    lake = tl.open(table)
    assert done.json["version"] == lake.version
    np.testing.assert_array_equal(lake["x"][3:], X)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("append", ["--concat", 0, "a.npy"]),
        ("append", ["--concat", 0, "--layout", "coo", "zeros.npy"]),
        pytest.param("error", ["--stack", "a.npy"], marks=pytest.mark.soak),
        ("error", ["--each", "a.npy", "zeros.npy"]),
    ],
)
def test_a_driver_killed_after_its_commit(job, files, table, monkeypatch, mode, words):
    """Without a number, too, the same command finds that its batch is there."""
    words = [files / w if str(w).endswith(".npy") else w for w in words]
    words = ["--table", table, "--id", "x", "--mode", mode, "--resume", *words]
    with monkeypatch.context() as patch:
        patch.setattr(Resumption, "clear", lambda *args: None)
        first = job(*words)
    assert (first.code, first.json["status"]) == (0, "done"), first.err
    version = tl.open(table).version
    assert notes_of(table)
    dry = job(*words, "--dry-run")
    assert dry.json["status"] == "repeated"
    assert notes_of(table), "a dry run leaves all as it is"
    again = job(*words)
    assert (again.code, again.json["status"]) == (0, "repeated"), again.err
    assert again.json["tensors"] == first.json["tensors"]
    assert again.json["version"] == tl.open(table).version == version
    assert not notes_of(table)
    if mode == "append":
        more = job(*words)
        assert more.json["status"] == "done", "who gives it once more has got more"
        assert tl.open(table)["x"].shape == (6, 4)


def test_other_contents_under_the_same_name_are_another_batch(job, files, table, monkeypatch):
    words = ["--table", table, "--id", "x", "--mode", "append", "--concat", 0, "--resume"]
    with monkeypatch.context() as patch:
        patch.setattr(Resumption, "clear", lambda *args: None)
        assert job(*words, files / "a.npy").code == 0
    data = sorted(table.glob("*.parquet"))
    tl.open(table).write("x", -X, mode="append")
    np.save(files / "a.npy", X + 100)
    os.utime(files / "a.npy", (1_700_000_000, 1_700_000_000))
    done = job(*words, files / "a.npy")
    assert (done.code, done.json["status"], done.json["reused"]) == (0, "done", 0), done.err
    np.testing.assert_array_equal(tl.open(table)["x"][:], np.concatenate([X, -X, X + 100]))
    assert set(data) <= set(table.glob("*.parquet")), "files of the table stay"
    assert not notes_of(table)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("slabs", "append"),
        ("cells", "error"),
        pytest.param("slabs", "error", marks=pytest.mark.soak),
        pytest.param("cells", "append", marks=pytest.mark.soak),
    ],
)
def test_a_tensor_that_another_made_meanwhile(job, files, table, monkeypatch, kind, mode):
    room, name = (write_arrays, "slab_frame") if kind == "slabs" else (cell_preparation, "look")
    looked = getattr(room, name)

    def late(*args, **kwargs):
        tl.open(table).write("x", X, layout="ftsf" if kind == "slabs" else "bsgs")
        return looked(*args, **kwargs)

    monkeypatch.setattr(room, name, late)
    source = ["--concat", 0, files / "a.npy"] if kind == "slabs" else [*TABLE, files / "a.csv"]
    done = job("--table", table, "--id", "x", "--mode", mode, *source)
    assert (done.code, done.json["error"]["type"]) == (1, "ConcurrentWriteError"), done.err
    assert "another writer changed tensor 'x' since the files were looked at" in done.err
    assert tl.open(table)["x"].shape == (3, 4)


def test_a_number_of_another_or_a_deleted_tensor(job, files, table):
    words = ["--table", table, "--txn-app-id", "nightly", "--txn-version", 1, files / "a.npy"]
    assert job(*words, "--id", "photos").json["status"] == "done"
    assert job(*words, "--id", "photos").json["status"] == "repeated"
    for more in (["--id", "labels"], ["--id", "labels", "--each"]):
        other = job(*words, *more)
        assert (other.code, other.json["error"]["type"]) == (2, "InvalidOptionError")
        assert "batch 1 of 'nightly' counts as done" in other.err
        assert "there is no tensor 'labels" in other.err
    tl.open(table).delete("photos")
    gone = job(*words, "--id", "photos")
    assert gone.code == 2
    assert "a name of its own (txnAppId)" in gone.err
    assert list(tl.open(table)) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--dtype", "int8", "a.npy"], "--dtype is for cells; arrays have their own"),
        (["--shape", "99,99", "a.npy"], "--shape is for cells; arrays have their own"),
        (["--channels-first", "a.npy"], "--channels-first is for images and TIFF files"),
        (["--delimiter", ";", "a.npy"], "--delimiter is for CSV files"),
        (["--delimiter", ";", "a.tns"], "--delimiter is for CSV files"),
        (["--timezone", "Europe/Berlin", "a.tns"], "--timezone is for tables"),
        ([*TABLE, "--delimiter", "ab", "a.csv"], "--delimiter 'ab' is not one character"),
        ([*TABLE, "--delimiter", "", "a.csv"], "--delimiter '' is not one character"),
    ],
)
def test_options_that_do_not_fit_the_sources(job, files, table, untouched, words, says):
    (files / "a.tns").write_text("1 1 5\n")
    words = [files / w if str(w).startswith("a.") else w for w in words]
    done = job("--table", table, "--id", "x", *words)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert says in done.err
    untouched(table)


@pytest.mark.parametrize("delimiter", [pytest.param("\t", marks=pytest.mark.soak), "\\t"])
def test_a_tab_in_two_spellings(job, files, table, delimiter):
    (files / "a.csv").write_text("i\tj\tv\n0\tb\t1\n2\ta\t2\n")
    done = job("--table", table, "--id", "x", *TABLE, "--delimiter", delimiter, files / "a.csv")
    assert done.code == 0, done.err
    assert tl.open(table)["x"][...].tolist() == [[0, 1], [0, 0], [2, 0]]


def test_a_day_without_records(job, files, table):
    words = ["--table", table, "--id", "x", "--mode", "append", "--axis", "t:day", *TABLE]
    (files / "none.csv").write_text("t,i,j,v\n")
    new = job(*words, files / "none.csv")
    assert (new.code, "hold no record" in new.err) == (2, True), "its bins and labels are not known"
    (files / "a.csv").write_text("t,i,j,v\n2024-01-01,0,b,1\n2024-01-03,2,a,2\n")
    assert job(*words, files / "a.csv").code == 0
    before = tl.open(table)["x"]
    batch = ["--txn-app-id", "days", "--txn-version", 1]
    for status in ("done", "repeated"):
        done = job(*words, *batch, files / "none.csv")
        assert (done.code, done.json["status"]) == (0, status), done.err
    after = tl.open(table)["x"]
    assert after.shape == before.shape
    assert after[...].equals(before[...])
    assert after.labels("j").tolist() == ["a", "b"]


@pytest.mark.parametrize("mode", ["error", "append"])
def test_a_matrix_without_elements(job, files, table, mode):
    (files / "m.mtx").write_text("%%MatrixMarket matrix coordinate real general\n5 7 0\n")
    if mode == "append":
        tl.open(table).write("m", tl.SparseTensor([[8], [1]], [3.0], (9, 2)))
    done = job("--table", table, "--id", "m", "--mode", mode, files / "m.mtx")
    assert done.code == 0, done.err
    ref = tl.open(table)["m"]
    assert (ref.shape, ref.nnz) == ((5, 7), 0) if mode == "error" else ((9, 7), 1)
