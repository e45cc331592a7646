"""Batches with a number, dry runs, lists of sources, and how a run ends."""

import numpy as np
import pytest
from PIL import Image
from writing import with_files_of

import tensorlake_spark as tl
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import ConcurrentWriteError


@pytest.fixture
def files(tmp_path, photos):
    for i in range(3):
        Image.fromarray(photos[i].transpose(1, 2, 0)).save(tmp_path / f"{i}.png")
    np.save(tmp_path / "a.npy", photos[:5])
    np.save(tmp_path / "b.npy", photos[5:])
    (tmp_path / "x.csv").write_text("day,kind,count\n0,a,1\n3,b,2\n5,a,7\n")
    return tmp_path


SHUFFLES = "spark.sql.shuffle.partitions"
CELLS = ("--axis", "day", "--axis", "kind", "--value", "count")


@pytest.mark.parametrize("kind", ["slabs", "tensors", "cells"])
def test_a_repeated_batch_changes_nothing_and_says_so(job, files, kind, place):
    base = {
        "slabs": ["--concat", 0, "--mode", "append", files / "a.npy"],
        "tensors": ["--each", "--mode", "overwrite", files / "a.npy"],
        "cells": ["--mode", "append", *CELLS, files / "x.csv"],
    }[kind]
    words = ["--table", place, "--id", "x", *base, "--txn-app-id", "days", "--txn-version"]
    first = job(*words, 7)
    assert (first.code, first.json["status"]) == (0, "done"), first.err
    version = tl.open(place).version
    assert first.json["version"] == version
    for path in files.glob("*.*"):
        path.unlink()  # who repeats a batch need not keep its files
    for number in (7, 6):
        again = job(*words, number)
        assert (again.code, again.json["status"]) == (0, "repeated"), again.err
        assert "in the table already; nothing was changed" in again.out
        assert again.json["tensors"] == first.json["tensors"]
        assert tl.open(place).version == again.json["version"] == version
    assert job(*words, 7, "--dry-run").json["status"] == "repeated"
    later = job(*words, 8)
    assert later.code == 2
    assert "names no file" in later.err


def test_the_next_batch_is_written(job, files, photos, place):
    words = ["--table", place, "--id", "x", "--concat", 0, "--mode", "append"]
    for number, name in enumerate(("a.npy", "b.npy", "b.npy")):
        version = ["--txn-app-id", "days", "--txn-version", min(number, 1)]
        assert job(*words, *version, files / name).code == 0
    np.testing.assert_array_equal(tl.open(place)["x"][:], photos)
    other = job(*words, "--txn-app-id", "nights", "--txn-version", 0, files / "a.npy")
    assert other.json["status"] == "done"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--txn-version", 1], "go together"),
        (["--txn-app-id", "x"], "go together"),
        (["--txn-app-id", "x", "--txn-version", -1], "is not from 0"),
        (["--txn-app-id", "x", "--txn-version", 2**63], "is not from 0"),
        (
            ["--txn-app-id", "x", "--txn-version", "one"],
            "--txn-version='one' is not a whole number",
        ),
        (["--txn-app-id", "tensor/x", "--txn-version", 1], "counts the changes of a tensor"),
        (["--txn-app-id", "", "--txn-version", 1], "is empty"),
    ],
)
def test_a_batch_that_makes_no_sense(job, files, words, says, place, untouched):
    done = job("--table", place, "--id", "x", files / "a.npy", *words)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    untouched(place)


def given_integers(words, name):
    """What a command line says behind an option; None where it does not have it."""
    if name not in words:
        return None
    return [int(n) for n in words[words.index(name) + 1].split(",")]


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--stack", "--channels-first", "?.png"], 3),
        (["--stack", "--block-shape", "2,1,16,16,3", "a.npy", "a.npy"], 2),
        (["--concat", -4, "--layout", "csr", "--row-axes", "3,2", "a.npy", "b.npy"], 2),
        pytest.param(["--concat", 0, "--layout", "bsgs", "a.npy"], 1, marks=pytest.mark.soak),
        (["--each", "--layout", "ftsf", "a.npy", "b.npy"], 2),
        (["--each", "a.npy"], 1),
        pytest.param(["--each", "--layout", "bsgs", "a.npy"], 1, marks=pytest.mark.soak),
        pytest.param([*CELLS, "x.csv"], 1, marks=pytest.mark.soak),
        ([*CELLS, "--layout", "csf", "--order", "1,0", "--shape", "9,2", "x.csv"], 1),
    ],
)
def test_a_dry_run_writes_nothing_and_tells_what_would_be(
    job, spark, files, words, count, photos, place, untouched
):
    if "2,1,16,16,3" in words:
        np.save(files / "a.npy", photos[:5].transpose(0, 2, 3, 1))
    sources = [files / w if str(w).endswith((".png", ".npy", ".csv")) else w for w in words]
    base = ["--table", place, "--id", "x", *sources]
    dry = job(*base, "--dry-run")
    assert (dry.code, dry.json["status"]) == (0, "planned"), dry.err
    assert "dry run: nothing was written" in dry.out
    untouched(place)
    done = job(*base)
    assert done.code == 0, done.err
    lake = tl.open(place)
    assert dry.json["sources"] == done.json["sources"] == count
    assert dry.json["source_bytes"] == done.json["source_bytes"] > 0
    tasks = int((Snapshot.open(Storage(place)).files.most_nnz > 0).sum())  # each wrote a file
    if "--axis" in words:
        assert 1 <= tasks <= dry.json["partitions"] == int(spark.conf.get(SHUFFLES))
    else:
        assert tasks == dry.json["partitions"]
    assert len(dry.json["tensors"]) == len(list(lake))
    for planned in dry.json["tensors"]:
        spec = lake[planned["id"]]._meta.spec
        assert [spec.params.get(name) for name in ("order", "row_axes")] == [
            given_integers(words, name) for name in ("--order", "--row-axes")
        ]
        assert planned["shape"] == list(spec.shape) == planned["added"]
        assert planned["dtype"] == spec.dtype.name
        assert planned["bytes"] == spec.nbytes
        if "layout" in planned:
            assert planned["layout"] == spec.layout
            assert (planned["block_shape"] or []) == list(spec.block_shape or [])
        else:
            assert "--each" in words


def test_arrays_are_quantised(job, tmp_path, place):
    x = np.cumsum(np.random.default_rng(0).standard_normal((2, 9, 8)), axis=1).astype("f4")
    for k, one in enumerate(x):
        np.save(tmp_path / f"{k}.npy", one)
    done = job("--table", place, "--id", "x", "--quantize", "int8", tmp_path / "*.npy")
    assert done.code == 0, done.err
    ref = tl.open(place)["x"]
    assert ref.quantization.kind == "int8"
    assert (np.abs(ref[:] - x) <= np.abs(x).max(axis=-1, keepdims=True) / 253).all()
    wrong = job("--table", place, "--id", "y", "--quantize", "int9", tmp_path / "*.npy")
    assert wrong.code == 2
    assert "did you mean 'int8'" in wrong.err


def test_files_are_near_the_target_size(job, tmp_path, place):
    """There are as many tasks as such files would be, and fewer where a task had little to read."""
    x = np.random.default_rng(0).integers(0, 256, (16, 1 << 20), np.uint8)
    for k, one in enumerate(x):
        np.save(tmp_path / f"{k:02}.npy", one)
    words = ["--id", "x", "--codec", "raw", tmp_path / "*.npy"]
    few = job("--table", place, *words, "--dry-run")
    assert few.json["partitions"] == 2, "one for each core"
    storage = with_files_of(place, "4mb")
    more = job("--table", place, *words, "--dry-run")
    done = job("--table", place, *words)
    assert done.code == 0, done.err
    files = Snapshot.open(storage).files
    sizes = files.size[files.most_nnz > 0].tolist()
    assert len(sizes) == more.json["partitions"] == 4
    assert all(4 << 20 <= size < 5 << 20 for size in sizes), sizes
    np.testing.assert_array_equal(tl.open(place)["x"][:], x)


def test_a_dry_run_of_cells_counts_records(job, files, place, caplog):
    (files / "x.csv").write_text("day,kind,count\n0,a,1\n0,a,2\n5,a,7\n")
    base = ["--table", place, "--id", "x", "--axis", "day", "--axis", "kind"]
    with caplog.at_level("INFO", "tensorlake_spark"):
        dry = job(*base, "--value", "sum(count)", "--dry-run", files / "x.csv")
    assert dry.json["records"] == 3, "two of them fall in one cell"
    assert "layout bsgs, because duplicates='sum' is an option of sparse layouts" in caplog.text
    assert "3 records" in dry.out


def test_small_files_are_brought_together_after_a_batch(job, files, photos, place):
    words = ["--table", place, "--id", "x", "--concat", 0, "--mode", "append"]
    tl.open(place).write("other", photos)
    merged = []
    for number in range(6):
        np.save(files / "day.npy", photos[number : number + 1])
        done = job(*words, "--compact-after", 6, files / "day.npy")
        assert done.code == 0, done.err
        merged.append(done.json.get("compacted"))
        assert done.json["version"] == tl.open(place).version
    # Each batch left a file of data and one of metadata.
    assert [m["files"] for m in merged] == [0, 0, 6, 0, 0, 7]
    assert [m["into"] for m in merged] == [0, 0, 1, 0, 0, 1]
    ref = tl.open(place)["x"]
    np.testing.assert_array_equal(ref[:], photos[:6])
    assert len(ref.explain().files) == 1
    day = ref.explain(np.s_[3])
    assert (len(day.files), day.n_row_groups) == (1, 1), day
    dry = job(*words, "--compact-after", 2, "--dry-run", files / "day.npy")
    assert "compacted" not in dry.json
    few = job(*words, "--compact-after", 1, files / "day.npy")
    assert few.code == 2
    assert "--compact-after 1" in few.err


def test_a_dry_run_of_an_append(job, files, place):
    words = ["--table", place, "--id", "x", "--concat", 0, "--mode", "append"]
    job(*words, files / "a.npy")
    version = tl.open(place).version
    dry = job(*words, "--dry-run", files / "b.npy")
    (planned,) = dry.json["tensors"]
    assert (planned["shape"], planned["added"]) == ([12, 3, 64, 96], [7, 3, 64, 96])
    assert "(7, 3, 64, 96) is added" in dry.out
    assert tl.open(place).version == version
    np.save(files / "c.npy", np.zeros((2, 3, 64, 95), np.uint8))
    wrong = job(*words, "--dry-run", files / "c.npy")
    assert wrong.code == 2, wrong.out
    assert job(*words, "--mode", "error", "--dry-run", files / "b.npy").code == 2


@pytest.mark.parametrize(
    "words",
    [["--codec", "zip"], ["--layout", "csv"], ["--block-shape", "1,2"], ["--axes", "a,b"], ["--attrs", "x"]],
)  # fmt: skip
def test_a_dry_run_finds_mistakes_too(job, files, words, place, untouched):
    done = job("--table", place, "--id", "x", "--dry-run", *words, files / "a.npy")
    assert done.code == 2, done.out
    assert done.err.count("\n") == 1
    untouched(place)


def test_a_dry_run_of_cells_finds_mistakes_too(job, files, place, untouched):
    words = ["--table", place, "--id", "x", "--dry-run", *CELLS, files / "x.csv"]
    for more in (
        ["--shape", "9,4"],
        ["--layout", "ftsf"],
        ["--block-shape", "1"],
        ["--codec", "x"],
    ):
        done = job(*words, *more)
        assert done.code == 2, (more, done.out)
        untouched(place)


def test_a_list_of_sources(job, files, photos, place):
    (files / "list.txt").write_text(
        f"# the parts\n\n  {files / 'a.npy'}  \r\n{(files / 'b.npy').as_uri()}\n"
    )
    for k, words in enumerate((["--sources-from", files / "list.txt"], [f"@{files / 'list.txt'}"])):
        done = job("--table", place, "--id", f"x{k}", "--concat", 0, *words)
        assert done.code == 0, done.err
        np.testing.assert_array_equal(tl.open(place)[f"x{k}"][:], photos)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# one\n{0}/a.npy\n\n{0}/gone.npy\n", "list.txt, line 4: source '{0}/gone.npy' names no file"),
        ("{0}/a.npy\n{0}/*.jpg", "line 2: source '{0}/*.jpg' names no file"),
        ("{0}/list.txt", "line 1: {0}/list.txt is not one of"),
        ("gs://bucket/a.npy", "line 1: source 'gs://bucket/a.npy': this job reads s3://, and files"),
        ("file://there/a.npy", "line 1: source 'file://there/a.npy' is a file of the machine 'there'"),
        ("# nothing", "names no source"),
        (None, "cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_mistakes_in_a_list_name_the_line(job, files, text, says, place, untouched):
    if text is not None:
        (files / "list.txt").write_text(text.format(files))
    done = job("--table", place, "--id", "x", "--sources-from", files / "list.txt")
    assert done.code == 2
    assert says.format(files) in done.err
    assert done.err.count("\n") == 1
    untouched(place)


TABLE = ("--axis", "day", "--axis", "kind:label", "--value", "count")


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("bytes.csv", TABLE, "bytes.csv is not a CSV file: its first line should name the columns"),
        ("x.csv", (*TABLE, "--timezone", "Mars/Olympus"), "--timezone 'Mars/Olympus' is not a time zone such as"),
        ("x.csv", (*TABLE, "--shape=-1,9"), "--shape (-1, 9) has a length below 0"),
        ("two.npz", (), "two.npz::b has shape (4,) and dtype int64, which does not go with {}/two.npz::a"),
        ("a.npy", ("--id", "y"), "argument --id is given twice"),
    ],
)  # fmt: skip
def test_sources_and_options_that_make_no_sense(job, files, name, words, says, place, untouched):
    (files / "bytes.csv").write_bytes(bytes(range(14, 256)) + b"\ra\rb")
    np.savez(files / "two.npz", a=np.arange(3), b=np.arange(4))
    done = job("--table", place, "--id", "x", *words, files / name)
    assert done.code == 2
    assert says.format(files) in done.err
    assert done.err.count("\n") == 1
    untouched(place)


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [(ConcurrentWriteError("another"), 1, 1), (ZeroDivisionError("odd"), 1, 2)],
)
def test_the_exit_code_of_what_nobody_expected(job, files, monkeypatch, error, code, lines, place):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("tensorlake_spark.jobs.ingest.run", fail)
    done = job("--table", place, "--id", "x", files / "a.npy")
    assert done.code == done.json["exit_code"] == code
    assert done.err.count("\n") == 1 if lines == 1 else "Traceback" in done.err
    assert done.json["error"] == {"type": type(error).__name__, "message": str(error)}
