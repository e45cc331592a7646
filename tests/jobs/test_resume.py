"""Ingestions that fail and go on: all of a job in one commit, and nothing written twice."""

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
from deltalake import DeltaTable
from quick import BRIEF
from writing import with_files_of

import tensorlake_spark as tl
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.indexing import Box
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.ingest.arrays.array_discovery import Part
from tensorlake_spark.spark.ingest.arrays.array_slabs import bands_of, slab_rows
from tensorlake_spark.spark.ingest.pieces import choose
from tensorlake_spark.spark.source import task_notes as receipts
from tensorlake_spark.spark.source.commit_message import TensorCommitMessage, Written
from tensorlake_spark.tensor.spec import TensorSpec

HERE = Path(__file__).resolve().parent
COUNT = 10


def write(path, x):
    """Write an array whose last chunk is read last, and has a checksum."""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=x, chunks=(1, *x.shape[1:]), fletcher32=True)


def damage(path):
    """Change a byte in the middle of the data, which only a read finds."""
    with h5py.File(path) as file:
        data = file["x"].id
        chunk = data.get_chunk_info(data.get_num_chunks() - 1)
    with open(path, "r+b") as file:
        file.seek(chunk.byte_offset + chunk.size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 255]))


@pytest.fixture
def arrays():
    """What the files hold; mostly zeros, so that every layout has something to do."""
    rng = np.random.default_rng(5)
    x = rng.integers(1, 250, (COUNT, 3, 40, 50), np.uint8)
    return np.where(rng.random(x.shape) < 0.3, x, 0).astype(np.uint8)


@pytest.fixture
def files(tmp_path, arrays):
    """A file for each array, beside a table with files so small that each task has one or two of them."""
    with_files_of(str(tmp_path / "lake"), "8kb")
    for k, x in enumerate(arrays):
        write(tmp_path / f"{k}.h5", x)
    return tmp_path


def notes_of(lake):
    return sorted(p for p in Path(lake).glob("_tensorlake/**/*") if p.is_file())


def receipts_of(lake):
    return [p for p in notes_of(lake) if p.name.startswith("receipt-")]


def killed(tmp_path, when, *arguments):
    """Run the job in processes of its own, which are killed around the commit."""
    folder = tmp_path / f"processes-{when}"
    folder.mkdir()
    places = {"TMPDIR": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
    options = {"JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={folder} {BRIEF}"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "troubled.py"), when, *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, **places, **options},
        )  # fmt: skip
    try:
        assert process.wait(240) == -signal.SIGKILL, (folder / "log").read_text()[-3000:]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.soak  # make test kills drivers of a cluster
def test_a_driver_killed_before_and_after_its_commit(job, files, arrays, check_lake):
    lake = files / "lake"
    tl.open(lake).write("x", arrays[0])
    words = ["--table", lake, "--id", "x", "--concat", 0, "--mode", "append", "--resume"]
    words += ["--txn-app-id", "days", "--txn-version", 1, files / "?.h5"]
    want = np.concatenate([arrays[0], *arrays])
    version = tl.open(lake).version
    live = {uri.removeprefix("file://") for uri in DeltaTable(lake).file_uris()}

    killed(files, "before", *words)
    assert tl.open(lake).version == version
    assert len(receipts_of(lake)) > 1
    written = set(lake.glob("*.parquet"))
    DeltaTable(lake).vacuum(
        enforce_retention_duration=True, dry_run=False
    )  # keeps what is a week old
    np.testing.assert_array_equal(tl.open(lake)["x"][:], arrays[0])

    plan = job(*words, "--dry-run")
    assert (plan.json["pieces"], plan.json["reused"]) == (COUNT, COUNT)
    killed(files, "after", *words)
    assert tl.open(lake).version == version + 1
    committed = {uri.removeprefix("file://") for uri in DeltaTable(lake).file_uris()}
    lost = {str(p) for p in written} - live - committed
    assert len(lost) == 1, "of the first run only the metadata for its commit is not used"
    assert notes_of(lake), "killed before it could take them away"

    again = job(*words)
    assert (again.code, again.json["status"]) == (0, "repeated"), again.err
    assert not notes_of(lake)
    assert tl.open(lake).version == version + 1
    check_lake(lake, x=want)


@pytest.mark.parametrize(
    ("how", "layout"),
    [
        ("stack", "ftsf"),
        ("each", "coo"),
        pytest.param("concat", "bsgs", marks=pytest.mark.soak),
    ],
)
def test_a_file_damaged_in_the_middle_and_mended(job, files, arrays, check_lake, how, layout):
    """Without --resume nothing is left; with it nothing is read again but what failed."""
    lake = files / "lake"
    damage(files / "9.h5")
    ways = {"stack": ["--stack"], "concat": ["--concat", 0], "each": ["--each"]}
    words = ["--table", lake, "--id", "x", *ways[how], "--layout", layout, files / "?.h5"]
    if how == "stack":
        plain = job(*words)
        assert plain.code == 2, plain.out
        assert f"{files / '9.h5'}::x cannot be read" in plain.err
        check_lake(lake)
    failed = job(*words, "--resume")
    assert (failed.code, failed.err.count("\n")) == (2, 1), failed.err
    assert f"{files / '9.h5'}::x cannot be read" in failed.err
    version = tl.open(lake).version
    kept = len(receipts_of(lake))
    assert kept
    write(files / "9.h5", arrays[9])
    done = job(*words, "--resume")
    assert done.code == 0, done.err
    assert kept <= done.json["reused"] < done.json["pieces"] == COUNT
    assert f"{done.json['reused']} of {COUNT} piece(s) were written by an earlier run" in done.out
    assert tl.open(lake).version == version + 1
    assert not notes_of(lake)
    if how == "each":
        check_lake(lake, **{f"x/{k}/x": x for k, x in enumerate(arrays)})
    else:
        check_lake(lake, x=arrays if how == "stack" else np.concatenate(arrays))


@pytest.fixture
def half(job, files):
    """The command line of a job that failed halfway, with the cause mended."""
    damage(files / "9.h5")
    words = ["--table", files / "lake", "--id", "x", "--resume", files / "?.h5"]
    assert job(*words).code == 2
    assert receipts_of(files / "lake")
    return words


def test_what_changed_meanwhile_is_written_anew(job, files, arrays, check_lake, half):
    for k in (0, 9):
        arrays[k] = arrays[k][::-1]
        write(files / f"{k}.h5", arrays[k])
    before = len(receipts_of(files / "lake"))
    done = job(*half)
    assert done.code == 0, done.err
    assert 0 < done.json["reused"] <= 2 * (before - 1), "a task had two files at the most"
    check_lake(files / "lake", x=arrays)


def test_another_job_begins_anew(job, files, arrays, check_lake, half):
    lake = files / "lake"
    write(files / "9.h5", arrays[9])
    other = job(*half, "--codec", "zstd")
    assert (other.code, other.json["reused"]) == (0, 0), other.err
    left = receipts_of(lake)
    assert left, "they belong to a job that may still be repeated"
    again = job(*half, "--mode", "overwrite")
    assert (again.code, again.json["reused"]) == (0, 0), again.err
    assert receipts_of(lake) == left
    named = tl.open(lake).vacuum(0, dry_run=True)
    assert {f"{lake}/{name}" for name in named} >= {str(p) for p in left}
    assert receipts_of(lake) == left
    check_lake(lake, x=arrays)


def test_receipts_live_as_long_as_other_files(job, files, arrays, check_lake, half):
    lake = files / "lake"
    notes = notes_of(lake)
    tl.open(lake).vacuum()
    DeltaTable(lake).vacuum(0, enforce_retention_duration=False, dry_run=False, full=True)
    assert notes_of(lake) == notes, "others leave our notes alone"
    assert not list(lake.glob("*.parquet")), "and take the files that they speak of"
    write(files / "9.h5", arrays[9])
    done = job(*half)
    assert (done.code, done.json["reused"]) == (0, 0), done.err
    check_lake(lake, x=arrays)


def test_harmed_receipts_are_as_none(job, files, arrays, check_lake, half):
    lake = files / "lake"
    first, second, third, *rest = receipts_of(lake)
    assert rest
    first.write_bytes(first.read_bytes()[:-9])
    second.write_bytes(second.read_bytes().replace(b'"boxes": [[[', b'"boxes": [[[1', 1))
    (gone,) = json.loads(third.read_text().partition("\n")[2])["files"]
    (lake / gone[0]).unlink()
    # A second copy of a task ended well, too.
    crc, _, body = rest[0].read_text().partition("\n")
    (name, *_), = json.loads(body)["files"]  # fmt: skip
    copy = f"part-{uuid.uuid4()}.parquet"
    shutil.copy(lake / name, lake / copy)
    message = receipts.from_text(f"{crc}\n{body}")
    (file,) = message.files
    copied = TensorCommitMessage((DataFile(copy, file.size, file.stats),), message.written)
    look = receipts.look_of(rest[0].name)
    (rest[0].parent / f"receipt-{look}-{uuid.uuid4()}").write_text(receipts.to_text(copied))
    (rest[0].parent / f"receipt-{look}-x").write_bytes(b"\xff\0")
    (rest[0].parent / f".receipt-{look}-unfinished").write_text("00")
    write(files / "9.h5", arrays[9])
    done = job(*half)
    assert done.code == 0, done.err
    assert len(rest) <= done.json["reused"] <= 2 * len(rest)
    assert not ((lake / name).exists() and (lake / copy).exists()), "one of both is taken away"
    check_lake(lake, x=arrays)


def test_another_writer_was_faster(job, files, arrays, check_lake, half, monkeypatch):
    from tensorlake_spark.spark.ingest.arrays import array_job as module

    lake = files / "lake"
    write(files / "9.h5", arrays[9])
    looked = module.slab_frame

    def frame(*args):
        tl.open(lake).write("x", arrays[0])
        return looked(*args)

    monkeypatch.setattr(module, "slab_frame", frame)
    done = job(*half)
    assert (done.code, done.json["error"]["type"]) == (1, "ConcurrentWriteError")
    assert "another writer changed tensor 'x'" in done.err
    check_lake(lake, x=arrays[0])


def test_cells_are_written_all_or_none(job, files, check_lake):
    (files / "x.csv").write_text("i,v\n0,1\n2,5\n")
    base = ["--table", files / "new", "--id", "x", "--axis", "i", "--value", "v", "--resume"]
    words = [*base, "--mode", "append", files / "x.csv"]
    done = job(*words)
    assert done.code == 2
    assert "--resume of what is appended goes with --txn-app-id" in done.err
    assert done.err.count("\n") == 1
    assert not (files / "new").exists()
    batch = ["--txn-app-id", "days", "--txn-version", 1]
    (files / "x.csv").write_text("i,v\n0,1\n2,x\n")
    assert job(*words, *batch).code == 2
    (files / "x.csv").write_text("i,v\n0,1\n2,5\n")
    assert [job(*words, *batch).json["status"] for _ in range(2)] == ["done", "repeated"]
    check_lake(files / "new", x=[1, 0, 5])


def test_a_mistake_is_no_run(job, files):
    wrong = job("--table", files / "new", "--id", "x", "--resume", files / "0.h5", "--codec", "x")
    assert wrong.code == 2, wrong.out
    assert not (files / "new").exists()


@pytest.mark.parametrize(
    "text", ["{}", "[]", "x", '{"folder":"../..","look":"a","numbers":{},"reused":[],"place":0}']
)
def test_the_option_is_not_for_people(spark, tmp_path, text):
    frame = spark.createDataFrame([], "lo array<bigint>, tensor struct<dtype: string, "
                                  "shape: array<bigint>, data: binary>")  # fmt: skip
    with pytest.raises(Exception, match="option resumption="):
        frame.write.format("tensor").mode("append").options(
            id="x", shape="3", resumption=text
        ).save(str(tmp_path / "lake"))
    assert not (tmp_path / "lake").exists()


def message(boxes, spans=(), name="x"):
    spec = TensorSpec(name, (9, 9), np.dtype("u1"), "coo", ())
    written = Written(spec, tuple(Box(*b) for b in boxes), Totals(1, 2, 3), tuple(spans))
    return TensorCommitMessage((DataFile(f"{name}.parquet", 7, "{}"),), (written,))


def test_a_receipt_says_what_was_put_in():
    one = message([((0, 0), (3, 9)), ((5, 0), (5, 9))], [(4, 9)])
    assert receipts.from_text(receipts.to_text(one)) == one
    for text in ("", "\n", "00000000\n{}", receipts.to_text(one)[:-1], receipts.to_text(one)[1:]):
        assert receipts.from_text(text) is None


def test_bands_make_up_joined_slabs_and_runs_leave_out_what_is_done():
    part = Part(0, "x.npy", "", (64, 1 << 20), "uint8", (), False)
    bands = bands_of([part, part], 0, (1, 1 << 20))
    assert set(bands.hi.values()) == {(k, 1 << 20) for k in range(16, 129, 16)}
    side = 1 << 20
    assert bands.of(message([((16, 0), (48, side))]).written) == [(16, 0), (32, 0)]
    assert bands.of(message([((16, 0), (40, side))]).written) is None
    assert bands.of(message([((8, 0), (24, side))]).written) is None
    rows = slab_rows([part, part], 0, (1, side), 1, {(0, 0), (32, 0), (48, 0), (64, 0)})
    assert [r[1:] for r in rows] == [(0, 1, 2), (64, 1, 2), (64, 2, 3), (64, 3, 4)]
    empty = Part(0, "e.npy", "", (0, 5), "uint8", (), False)
    assert not bands_of([empty], 0, (1, 5)).hi
    assert len(slab_rows([empty], 0, (1, 5), 1, {(9, 0)})) == 1


def test_what_is_chosen_has_nothing_in_common():
    parts = [Part(k, f"{k}.npy", "", (9,), "uint8") for k in range(4)]
    bands = bands_of(parts, None, (1, 9))

    def of(first, last, *spans):
        return message([((first, 0), (last, 9))], spans)

    found = {
        "a": of(0, 2, (10, 20)),
        "b": of(1, 3, (20, 30)),
        "c": of(2, 3, (15, 16)),
        "d": of(3, 4, (20, 21)),
    }
    names, done, place = choose(found, bands)
    assert (names, done, place) == (("a", "d"), {(0, 0), (1, 0), (3, 0)}, 21)
