"""Jobs and the command line on S3: tables and sources there, and who of them sends what."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import uuid
import zipfile
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
import tifffile
import zarr
from PIL import Image
from places import ROOT
from quick import QUICK
from s3faults import PATIENCE, TOKEN, S3Road

import tensorlake_spark as tl
from tensorlake_spark.__main__ import main as command
from tensorlake_spark.jobs import check, ingest, optimize, purge, vacuum
from tensorlake_spark.spark.cluster.s3a import to_hadoop
from tensorlake_spark.spark.ingest.source_files import _Objects, using
from tensorlake_spark.spark.ingest.sources import expand


@pytest.fixture
def base():
    """A place in the bucket that no other test uses, with a blank in its name."""
    return f"s3://bucket/{uuid.uuid4()}/some place"


@pytest.fixture
def options(s3):
    return [w for k, v in s3.options.items() for w in ("--storage-option", f"{k}={v}")]


@pytest.fixture
def run(capsys, options, spark, s3):
    """What runs a job in this process and returns its exit code, its last line, and all that it said."""

    def run(job, *words):
        capsys.readouterr()
        code = job.main([*map(str, words), *options], spark)
        out, err = capsys.readouterr()
        assert s3.options["AWS_SECRET_ACCESS_KEY"] not in out + err
        return code, json.loads(out.splitlines()[-1]), out + err

    return run


@pytest.fixture
def put(s3, base, tmp_path):
    """What copies a file or a folder of this machine into the bucket."""

    def put(path, name=None):
        url = f"{base}/in/{name or path.name}"
        pafs.copy_files(
            str(path), url.removeprefix("s3://"),
            source_filesystem=pafs.LocalFileSystem(), destination_filesystem=s3.filesystem(),
        )  # fmt: skip
        return url

    return put


@pytest.fixture
def bring(put, tmp_path):
    """What puts bytes into the bucket."""

    def bring(name, data):
        path = tmp_path / name
        path.write_bytes(data)
        return put(path)

    return bring


def opened(s3, base):
    return tl.open(f"{base}/lake", storage_options=s3.options)


@pytest.fixture
def x():
    return np.random.default_rng(3).integers(0, 256, (6, 3, 40, 50), np.uint8)


def save_npy(path, x):
    np.save(path, x)


def save_fortran(path, x):
    np.save(path, np.asfortranarray(x))


def save_npz(path, x):
    np.savez(path, only=x)


def save_h5(path, x):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=x, chunks=(1, *x.shape[1:]))


def save_tiff(path, x):
    tifffile.imwrite(path, x, photometric="minisblack")


def save_zarr(path, x):
    zarr.create_array(str(path), data=x, chunks=(1, *x.shape[1:]))


FORMATS = {
    "c.npy": save_npy, "f.npy": save_fortran, "n.npz": save_npz, "h.h5": save_h5, "t.tif": save_tiff,
    "z.zarr": save_zarr,
}  # fmt: skip
IDS = ("all/c", "all/f", "all/n/only", "all/h/x", "all/t", "all/z")


def test_every_format_of_arrays(run, s3, base, put, tmp_path, x):
    """Whole, and in parts, of which tasks read ranges."""
    for k, (name, save) in enumerate(FORMATS.items()):
        save(tmp_path / name, x + k)
        put(tmp_path / name)
    sources = [f"{base}/in/{name}" for name in FORMATS]
    code, told, said = run(ingest, "--table", f"{base}/lake", "--id", "all", "--each", *sources)
    assert (code, told["status"]) == (0, "done"), said
    assert told["source_bytes"] > x.nbytes
    code, _, said = run(ingest, "--table", f"{base}/lake", "--id", "one", "--concat", 2, *sources)
    assert code == 0, said
    lake = opened(s3, base)
    for k, name in enumerate(IDS):
        np.testing.assert_array_equal(lake[name][:], x + k)
    np.testing.assert_array_equal(lake["one"][:], np.concatenate([x + k for k in range(6)], 2))


def test_images_by_glob_folder_and_list(run, s3, base, put, bring, tmp_path, photos):
    images = tmp_path / "images"
    (images / "sub").mkdir(parents=True)
    for k, photo in enumerate(photos[:4]):
        folder = images / "sub" if k % 2 else images
        Image.fromarray(photo.transpose(1, 2, 0)).save(folder / f"{k}.png")
    (images / "_SUCCESS").touch()
    folder = put(images)
    want = photos[[0, 2, 1, 3]]
    ways = {
        "folder": [folder],
        "globs": [f"{folder}/?.png", f"{folder}/**/[13].png"],
        "s3a": [f"{folder}/*.png".replace("s3:", "s3a:"), f"{folder}/sub"],
        "list": [f"@{bring('all.txt', f'# all{chr(10)}{folder}/*.png{chr(10)}{folder}/sub{chr(10)}'.encode())}"],
    }  # fmt: skip
    for way, sources in ways.items():
        words = ("--table", f"{base}/lake", "--id", way, "--stack", "--channels-first")
        code, told, said = run(ingest, *words, *sources)
        assert (code, told.get("sources")) == (0, 4), said
        np.testing.assert_array_equal(opened(s3, base)[way][:], want)


def test_a_source_that_is_not_there(run, base, s3):
    code, told, _ = run(ingest, "--table", f"{base}/lake", "--id", "x", f"{base}/in/no.npy")
    assert code == 2
    assert "names no file" in told["error"]["message"]
    code, told, _ = run(ingest, "--table", f"{base}/lake", "--id", "x", "s3://buck*/no.npy")
    assert code == 2
    assert "name the bucket" in told["error"]["message"]


MOST = 400
"""Requests of a job that fails; each of them has the time-out of `PATIENCE`."""

DATA, COMMIT, SOURCE = "^(PUT|POST) .*part-", "^PUT .*_delta_log/0", "^GET .*[.]npy"

FAULTS = [
    (verdict, *way)
    for verdict in ("refuse", "expired", "slow down", "silent", "reset")
    for way in ((DATA, 0), (DATA, 1), (COMMIT, 0), (SOURCE, 2))
    if (verdict, way) != ("reset", (COMMIT, 0))  # it has landed, and is found there
]
SOME = [("refuse", DATA, 1), ("expired", SOURCE, 2)]


@pytest.mark.parametrize("faults", [SOME, pytest.param(FAULTS, marks=pytest.mark.soak)])
def test_a_job_on_a_road_that_fails_in_the_middle(s3, road, spark, base, bring, x, capfd, faults):
    """Its exit code is 1 after a bounded number of tries, the table is what it was, and no credential is in what it prints."""
    opened(s3, base).write("keep", x)
    for k in range(2):
        data = io.BytesIO()
        np.save(data, x + k)
        bring(f"{k}.npy", data.getvalue())
    options = {
        **s3.options, **PATIENCE, "AWS_ENDPOINT_URL": road.endpoint, "AWS_SESSION_TOKEN": TOKEN,
    }  # fmt: skip
    words = ["--table", f"{base}/lake", "--id", "x", "--concat", "0", f"{base}/in/*.npy"]
    words += [w for k, v in options.items() for w in ("--storage-option", f"{k}={v}")]
    for verdict, where, after in faults:
        # What cannot be reached is no bad file, and is not left out.
        skip = ["--skip-bad"] if where == SOURCE else []
        road.fault(verdict, where, after=after)
        capfd.readouterr()
        road.requests()
        code = ingest.main([*words, *skip], spark)
        asked = road.requests()
        road.fault("")
        out, err = capfd.readouterr()
        told = json.loads(out.splitlines()[-1])
        assert (code, told["status"]) == (1, "failed"), (verdict, where, out + err)
        assert told["error"]["type"] == "StorageError"
        assert base in told["error"]["message"]
        assert len(asked) <= MOST, (verdict, where, len(asked))
        for secret in (TOKEN, s3.options["AWS_SECRET_ACCESS_KEY"], s3.options["AWS_ACCESS_KEY_ID"]):
            assert secret not in out + err
        assert opened(s3, base).version == 1
    np.testing.assert_array_equal(opened(s3, base)["keep"][:], x)


def test_a_glob_lists_once(s3, road, base, bring):
    """However many files a folder has, each is not asked for by itself."""
    for k in range(5):
        bring(f"{k}.npy", b"")
    options = {**s3.options, "AWS_ENDPOINT_URL": road.endpoint}
    with using(options, {}):
        assert len(expand([f"{base}/in/*.npy"])) == 5
    assert len(road.requests()) <= 3


CSV = b"day,kind,value\n0,a,1\n2,b,5\n2,b,2\n"


@pytest.fixture
def want():
    out = np.zeros((3, 2))
    out[0, 0], out[2, 1] = 1, 7
    return out


@pytest.mark.parametrize(
    "form", [pytest.param("csv", marks=pytest.mark.soak), "csv.zip", "parquet", "delta"]
)
def test_tables(run, spark, s3, base, bring, put, tmp_path, want, form):
    frame = pd.read_csv(io.BytesIO(CSV))
    if form == "csv":
        source = bring("log [1].csv", CSV)
    elif form == "csv.zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("log.csv", CSV)
        source = bring("log.csv.zip", packed.getvalue())
    elif form == "parquet":
        frame.to_parquet(tmp_path / "log.parquet")
        source = put(tmp_path / "log.parquet")
    else:
        spark.createDataFrame(frame).write.format("delta").save(str(tmp_path / "table"))
        source = put(tmp_path / "table")
    words = ["--table", f"{base}/lake", "--id", "log", "--axis", "day", "--axis", "kind"]
    code, told, said = run(ingest, *words, "--value", "sum(value)", source)
    assert (code, told["status"]) == (0, "done"), said
    ref = opened(s3, base)["log"]
    np.testing.assert_array_equal(ref[:].todense(), want)
    assert list(ref.labels("kind")) == ["a", "b"]
    assert not [n for n in to_hadoop(s3.options) if spark.conf.get(n, None)], (
        "settings are put back"
    )


@pytest.mark.parametrize("form", ["tns", "mtx.gz", pytest.param("npz", marks=pytest.mark.soak)])
def test_matrices(run, s3, base, bring, put, tmp_path, want, form):
    matrix = scipy.sparse.coo_array(want)
    if form == "tns":
        source = bring("m.tns", b"1 1 1\n3 2 7\n")
    elif form == "npz":
        scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
        source = put(tmp_path / "m.npz")
    else:
        text = io.BytesIO()
        scipy.io.mmwrite(text, matrix)
        data = text.getvalue()
        source = bring("m.mtx.gz", gzip.compress(data))
    code, _, said = run(ingest, "--table", f"{base}/lake", "--id", "m", source)
    assert code == 0, said
    found = opened(s3, base)["m"]
    assert found.layout == "ftsf", "a third of its elements is not zero"
    np.testing.assert_array_equal(found[:], want)


def test_a_bad_line_is_named_by_its_url(run, base, bring):
    source = bring("log.csv", CSV + b"x,a,1\n")
    words = ["--table", f"{base}/lake", "--id", "log", "--axis", "day:int", "--axis", "kind"]
    code, told, _ = run(ingest, *words, "--value", "sum(value)", source)
    assert code == 2
    assert f"{source}, line 5" in told["error"]["message"]


def test_care_of_a_table(run, s3, base, x):
    lake = opened(s3, base)
    for k in range(4):
        lake.write("x", x[k : k + 1], mode="append")
    lake.write("y", x)
    table = ("--table", f"{base}/lake")
    code, told, said = run(optimize, *table)
    assert (code, told["files_after"]) == (0, 1), said
    code, told, said = run(purge, *table, "--id", "y", "--now")
    assert (code, told["status"]) == (0, "verified"), said
    sink = s3.filesystem().open_output_stream(f"{base.removeprefix('s3://')}/lake/part-a")
    sink.write(b"a" * (11 << 20))  # two parts are there, and the file is not
    for more in (["--dry-run"], []):
        code, told, said = run(vacuum, *table, "--retention-hours", 0, "--uploads", *more)
        assert (code, told["uploads"]) == (0, 1), said
    with pytest.raises(OSError, match=r"NO_SUCH_UPLOAD|NoSuchUpload|404"):
        sink.close()
    code, told, said = run(check, *table)
    assert (code, told["status"]) == (0, "good"), said
    np.testing.assert_array_equal(opened(s3, base)["x"][:], x[:4])


def test_the_command_line_takes_the_environment(s3, base, x, monkeypatch, capsys):
    opened(s3, base).write("x", x)
    for name, value in s3.options.items():
        monkeypatch.setenv(name, value)
    for verb in ("check", "optimize", "vacuum"):
        assert command([verb, "--table", f"{base}/lake"]) == 0, capsys.readouterr()
    assert command(["purge", "--table", f"{base}/lake", "--id", "x", "--now"]) == 0
    assert list(opened(s3, base)) == []


def submit(job, *words, conf=None, **environment):
    """Run a job by spark-submit; what it needs of S3 comes by `conf`, or the environment."""
    pairs = {"spark.ui.enabled": "false", **(conf or {})}
    env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    env |= {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": QUICK,
    }
    return subprocess.run(
        [
            str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]",
            *(w for k, v in pairs.items() for w in ("--conf", f"{k}={v}")),
            str(ROOT / "jobs" / f"{job}.py"), *map(str, words),
        ],
        capture_output=True, text=True, env={**env, **environment}, check=False,
    )  # fmt: skip


def test_sparks_settings_are_enough_for_jobs(s3, base, put, tmp_path, x):
    opened(s3, base).write("x", x)
    conf = {f"spark.hadoop.{k}": v for k, v in to_hadoop(s3.options).items()}
    done = submit("check", "--table", f"{base}/lake", conf=conf)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert s3.options["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr


def test_data_goes_up_from_executors_alone(s3, base, put, tmp_path, x):
    """Driver and executors go to the server by roads of their own; credentials are Spark's settings."""
    for k in range(4):
        np.save(tmp_path / f"{k}.npy", x[k])
        put(tmp_path / f"{k}.npy")
    credentials = {
        f"spark.hadoop.{k}": v
        for k, v in to_hadoop(s3.options).items()
        if not k.endswith("endpoint")
    }
    with S3Road(s3.port) as near, S3Road(s3.port) as far:
        conf = {**credentials, "spark.executorEnv.AWS_ENDPOINT_URL": far.endpoint}
        done = submit(
            "ingest", "--table", f"{base}/lake", "--id", "x", f"{base}/in/*.npy",
            conf=conf, AWS_ENDPOINT_URL=near.endpoint, AWS_ALLOW_HTTP="true",
        )  # fmt: skip
        by_driver, by_tasks = near.requests(), far.requests()
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    np.testing.assert_array_equal(opened(s3, base)["x"][:], x[:4])
    up = [r.split("?")[0].split(" ", 1)[1] for r in by_tasks if r.startswith(("PUT", "POST"))]
    assert [p for p in up if p.endswith(".parquet")], "tasks write the elements"
    assert not [p for p in up if "_delta_log" in p], "only the driver commits"
    assert [r for r in by_tasks if r.startswith("GET") and "/in/" in r], "tasks read the sources"
    read = [r for r in by_driver if r.startswith("GET") and r.split("?")[0].endswith(".npy")]
    assert not read, "the driver lists the sources"
    sent = {
        r.split("?")[0].rpartition("/")[2]
        for r in by_driver
        if r.startswith(("PUT", "POST")) and ".parquet" in r
    }
    assert len(sent) == 1, "the row that describes the tensor"
    with s3.filesystem().open_input_file(f"{base[5:]}/lake/{sent.pop()}") as file:
        assert pq.read_table(file, columns=["nnz"])["nnz"].to_pylist() == [0]


def killed(tmp_path, when, environment, *words):
    """Run the ingestion in processes of its own, which are killed around the commit."""
    folder = tmp_path / f"processes-{when}"
    folder.mkdir()
    places = {"TMPDIR": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
    flags = {"JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={folder} {QUICK}"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "jobs" / "troubled.py"), when, *map(str, words)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, **environment, **places, **flags},
        )  # fmt: skip
    try:
        assert process.wait(240) == -signal.SIGKILL, (folder / "log").read_text()[-3000:]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.soak  # make test kills drivers of a cluster
def test_a_driver_is_killed_and_the_job_goes_on(run, s3, base, put, tmp_path, x):
    """Nothing is visible before, nothing is written twice after, and all of it in one commit."""
    for k in range(len(x)):
        save_h5(tmp_path / f"{k}.h5", x[k])
        put(tmp_path / f"{k}.h5")
    words = ["--table", f"{base}/lake", "--id", "x", "--resume", f"{base}/in/*.h5"]
    killed(tmp_path, "before", s3.options, *words)
    lake = opened(s3, base)
    assert list(lake) == []
    kept = data_files(s3, base)
    assert len(kept) > 1
    code, told, said = run(ingest, *words)
    assert (code, told["reused"], told["pieces"]) == (0, 6, 6), said
    np.testing.assert_array_equal(opened(s3, base)["x"][:], x)
    assert opened(s3, base).version == 1
    assert len(data_files(s3, base) - kept) == 1, "what describes the tensor"
    assert not _notes(s3, base)


def data_files(s3, base):
    found = s3.filesystem().get_file_info(pafs.FileSelector(f"{base[5:]}/lake"))
    return {info.base_name for info in found if info.extension == "parquet"}


def _notes(s3, base):
    place = pafs.FileSelector(f"{base[5:]}/lake/_tensorlake", allow_not_found=True, recursive=True)
    return [info.path for info in s3.filesystem().get_file_info(place) if info.is_file]


@pytest.mark.soak
def test_a_session_without_s3a_is_told_the_remedy(s3, base, bring):
    """The remedy works: the same command with conf/s3a.conf."""
    source = bring("log.csv", CSV)
    words = ["--table", f"{base}/lake", "--id", "log", "--axis", "day", "--axis", "kind",
             "--value", "sum(value)", source]  # fmt: skip
    conf = {f"spark.hadoop.{k}": v for k, v in to_hadoop(s3.options).items()}
    done = submit("ingest", *words, conf=conf)
    assert done.returncode == 2, done.stdout + done.stderr[-3000:]
    assert "conf/s3a.conf" in done.stdout + done.stderr
    files = [(ROOT / "conf" / name).read_text() for name in ("spark-defaults.conf", "s3a.conf")]
    lines = [x.split(None, 1) for text in files for x in text.splitlines() if x and x[0] != "#"]
    done = submit("ingest", *words, conf={**dict(lines), **conf})
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert opened(s3, base)["log"][2, 1] == 7


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.npy", ["a.npy", "b.npy"]),
        ("?.n[pq]y", ["a.npy", "b.npy"]),
        ("[!a].npy", ["b.npy"]),
        ("**/*.npy", ["a.npy", "b.npy", "one/c.npy", "one/two/d.npy"]),
        ("*/*.npy", ["one/c.npy"]),
        ("one/**", ["one/c.npy", "one/two", "one/two/d.npy"]),
        (".*", [".hidden"]),
    ],
)
def test_globs_are_those_of_files(s3, base, put, tmp_path, pattern, names):
    inside = tmp_path / "inside"
    (inside / "one" / "two").mkdir(parents=True)
    for name in ("a.npy", "b.npy", ".hidden", "one/c.npy", "one/two/d.npy"):
        (inside / name).write_bytes(b"1")
    root = put(inside)
    with using(s3.options, {}):
        found = _Objects().find(f"{root}/{pattern}")
    assert [f.removeprefix(f"{root}/") for f in found] == names
