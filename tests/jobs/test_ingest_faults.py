"""Bad files, a full disk, tasks that fail: what is skipped, what is named, and what is in the table after."""

import gzip
import resource

import h5py
import numpy as np
import pytest
from pyspark import TaskContext
from writing import with_files_of

import tensorlake_spark as tl
from tensorlake_spark.spark.source.write import direct_write as direct
from tensorlake_spark.spark.source.write.source_writer import TensorWriter

SHAPE = (3, 40, 50)


@pytest.fixture
def arrays():
    return np.random.default_rng(3).integers(0, 256, (4, *SHAPE), np.uint8)


@pytest.fixture
def files(tmp_path, arrays):
    """Four good files and, between them, bad ones of every kind."""
    for k, x in enumerate(arrays):
        np.save(tmp_path / f"{2 * k + 1}.npy", x)
    (tmp_path / "0.png").write_bytes(b"\x89PNG\r\n but no more")
    whole = (tmp_path / "1.npy").read_bytes()
    (tmp_path / "2.npy").write_bytes(whole[: len(whole) // 2])
    np.save(tmp_path / "4.npy", arrays[0, :, :9])
    np.save(tmp_path / "6.npy", arrays[0].astype("i4"))
    with h5py.File(tmp_path / "8.h5", "w") as file:
        data = file.create_dataset("x", data=arrays[0], chunks=(1, 40, 50), fletcher32=True)
        chunk = data.id.get_chunk_info(2)
    harm(tmp_path / "8.h5", chunk.byte_offset + 1000)
    return tmp_path


def harm(path, place):
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 255]))


REASONS = {
    "gone.npy": "names no file",
    "0.png": "0.png cannot be read",
    "2.npy": "2.npy cannot be read",
    "8.h5": "8.h5::x cannot be read",
    "4.npy": "does not go with",
    "6.npy": "int32, which does not go with",
}


@pytest.mark.parametrize("how", ["--stack", "--each"])
def test_bad_files_are_left_out_and_listed(job, files, arrays, check_lake, how):
    words = ["--table", files / "lake", "--id", "x", how]
    if how == "--stack":
        first = job(*words, files / "*.*")
        assert (first.code, first.json["status"]) == (2, "failed")
        assert not (files / "lake").exists()
    words += ["--skip-bad", "--resume", files / "gone.npy", files / "*.*"]
    plan = job(*words, "--dry-run")
    done = job(*words)
    assert (plan.code, done.code) == (0, 0), done.err
    assert plan.json["skipped"] == done.json["skipped"]
    reasons = dict(REASONS)
    if how == "--each":  # they need not go together
        del reasons["4.npy"], reasons["6.npy"]
    assert [s["source"].rpartition("/")[2] for s in done.json["skipped"]] == list(reasons)
    for skipped, says in zip(done.json["skipped"], reasons.values(), strict=True):
        assert says in skipped["reason"]
        assert f"skipped {skipped['source']}: {skipped['reason']}" in done.out
    if how == "--stack":
        assert done.json["sources"] == 4
        check_lake(files / "lake", x=arrays)
    else:
        good = {f"x/{2 * k + 1}": x for k, x in enumerate(arrays)}
        more = {"x/4": arrays[0, :, :9], "x/6": arrays[0].astype("i4")}
        check_lake(files / "lake", **good, **more)


def test_no_file_is_good(job, files):
    words = ["--table", files / "lake", "--id", "x", "--skip-bad"]
    done = job(*words, files / "0.png", files / "2.npy", files / "gone.npy")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "none of 3 sources is good: " in done.err
    typo = job(*words, files / "1.npy", files / "*.nqy")
    assert (typo.code, "names no file" in typo.err) == (2, True), (
        "a pattern is no file that is gone"
    )
    assert not (files / "lake").exists()


def test_a_file_that_goes_bad_after_it_was_read_fails_the_job(
    job, files, arrays, check_lake, monkeypatch
):
    from tensorlake_spark.spark.ingest.arrays import array_job as module

    with h5py.File(files / "9.h5", "w") as file:
        data = file.create_dataset("x", data=arrays[0], chunks=(1, 40, 50), fletcher32=True)
        place = data.id.get_chunk_info(1).byte_offset
    looked = module.find_good_parts

    def look(*args):
        found = looked(*args)
        harm(files / "9.h5", place)
        return found

    monkeypatch.setattr(module, "find_good_parts", look)
    tl.open(files / "lake").write("y", arrays)
    done = job("--table", files / "lake", "--id", "x", "--skip-bad", files / "*.*")
    assert done.code == 2, done.out
    assert f"{files / '9.h5'}::x cannot be read" in done.err
    check_lake(files / "lake", y=arrays)


def test_a_disk_that_is_full(job, tmp_path, check_lake, monkeypatch):
    """A task may write no more than some bytes to a file, as on a disk that is full."""

    class LimitedWriter(TensorWriter):
        def write(self, iterator):
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            if TaskContext.get().partitionId() == 3:
                resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
            try:
                return super().write(iterator)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)

    x = np.random.default_rng(0).integers(0, 256, (4, 1536, 1024), np.uint8)
    for k in range(4):
        np.save(tmp_path / f"{k}.npy", x[k])
    lake = tmp_path / "lake"
    with_files_of(str(lake), "1mb")  # a task for each of them
    tl.open(lake).write("y", x[0, 0])
    words = ["--table", lake, "--id", "x", "--resume", tmp_path / "?.npy"]
    with monkeypatch.context() as patch:
        patch.setattr(direct, "TensorWriter", LimitedWriter)
        done = job(*words)
        assert (done.code, done.json["error"]["type"]) == (1, "StorageError"), done.err
        assert "File too large" in done.err
        assert list(tl.open(lake)) == ["y"]
    done = job(*words)
    assert done.code == 0, done.err
    assert done.json["reused"] >= 1
    check_lake(lake, x=x, y=x[0, 0])


def test_cells_out_of_range(job, tmp_path, check_lake):
    (tmp_path / "x.csv").write_text("i,j,v\n0,1,5\n3,2,6\n")
    words = [
        "--table",
        tmp_path / "lake",
        "--id",
        "x",
        "--axis",
        "i",
        "--axis",
        "j",
        "--value",
        "v",
    ]
    tl.open(tmp_path / "lake").write("y", np.eye(3))
    done = job(*words, "--shape", "3,3", tmp_path / "x.csv")
    assert done.code == 2, done.out
    assert "x.csv, line 3" in done.err
    (tmp_path / "x.csv").write_text("i,j,v\n0,1,5\n-1,2,6\n")
    below = job(*words, tmp_path / "x.csv")
    assert below.code == 2, below.out
    check_lake(tmp_path / "lake", y=np.eye(3))


def test_bad_files_of_cells_are_left_out_and_listed(job, tmp_path, check_lake):
    """Of every kind, one in each: a broken archive, a line too short, a null, an index that is none, gone."""
    texts = {"a": "0,1\n3,4\n", "b": "1,2\n1\n", "c": ",7\n", "d": "5,6\n", "e": "x,1\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(f"i,v\n{text}")
    packed = gzip.compress(b"i,v\n" + b"".join(b"%d,1\n" % n for n in range(10_000)))
    (tmp_path / "d.csv.gz").write_bytes(packed[: len(packed) // 2])
    words = ["--table", tmp_path / "lake", "--id", "x", "--axis", "i:int", "--value", "v"]
    done = job(*words, "--skip-bad", tmp_path / "gone.csv", tmp_path / "*.csv*")
    assert done.code == 0, done.err
    said = {one["source"].rpartition("/")[2]: one["reason"] for one in done.json["skipped"]}
    reasons = {
        "gone.csv": "names no file",
        "b.csv": "b.csv, line 3: the line '1' has not the 2 fields",
        "c.csv": "c.csv, line 2: column 'i' is null",
        "d.csv.gz": "d.csv.gz cannot be read",
        "e.csv": "e.csv, line 2: column 'i' has 'x', which is not an integer",
    }
    assert said.keys() == reasons.keys()
    assert all(reasons[name] in reason for name, reason in said.items()), said
    assert done.json["sources"] == 2
    check_lake(tmp_path / "lake", x=[1, 0, 0, 4, 0, 6])
    none = job(*words, "--skip-bad", "--mode", "overwrite", tmp_path / "b.csv", tmp_path / "e.csv")
    assert (none.code, none.err.count("\n")) == (2, 1)
    assert "none of 2 sources is good" in none.err
    check_lake(tmp_path / "lake", x=[1, 0, 0, 4, 0, 6])
