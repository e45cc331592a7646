"""The jobs that keep a table, from command lines, with executors and without."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from places import ROOT
from quick import BRIEF

import tensorlake_spark as tl
from tensorlake_spark.__main__ import VERBS
from tensorlake_spark.__main__ import main as command
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.jobs import optimize, vacuum


@pytest.fixture
def model(lake):
    """Two tensors that grew by days, and one that is mostly zeros in dense chunks."""
    rng = np.random.default_rng(0)
    photos = rng.integers(0, 256, (6, 64, 64), np.uint8)
    for day in photos:
        lake.write(
            "photos", day[None], mode="append", block_shape=(1, 16, 16), axes=("t", "y", "x")
        )
    hits = np.zeros((40, 300), np.float32)
    hits[rng.integers(0, 40, 50), rng.integers(0, 300, 50)] = 2.5
    lake.write("hits", tl.SparseTensor.from_dense(hits), layout="bsgs", block_shape=(8, 50))
    sparse = np.zeros((50, 200))
    sparse[3, 5:20] = 1
    lake.write("mostly zero", sparse, layout="ftsf", block_shape=(25, 100))
    return {"photos": photos, "hits": hits, "mostly zero": sparse}


def check(lake, model):
    assert sorted(lake) == sorted(model)
    for name, x in model.items():
        got = lake[name][...]
        np.testing.assert_array_equal(got if isinstance(got, np.ndarray) else got.todense(), x)


HERE = ["here", pytest.param("spark", marks=pytest.mark.soak)]
"""For tests whose rewriting other tests have executors do."""


@pytest.fixture(params=["here", "spark"])
def job(request, run_job, lake):
    """What runs the job: in this process, or by executors."""
    session = request.getfixturevalue("spark") if request.param == "spark" else None

    def run(*arguments, code=0):
        done = run_job(optimize, "--table", lake.uri, *arguments, session=session)
        assert done.code == code, done.err
        return done

    return run


def test_small_files_become_one_and_a_second_run_does_nothing(job, lake, model):
    plan = job("--dry-run").json
    assert (plan["status"], plan["files_before"], plan["version"]) == ("planned", 8, lake.version)
    done = job()
    assert (done.json["files_before"], done.json["files_after"]) == (8, 1)
    assert "8 file(s)" in done.out
    check(lake, model)
    assert job().json["files_before"] == 0


@pytest.mark.parametrize("job", HERE, indirect=True)
def test_several_groups_of_files(job, lake, model):
    done = job("--target-bytes", 25_000)
    assert done.json["files_after"] > 1
    check(lake, model)


def test_zorder(job, lake, model):
    done = job("--id", "photos", "--zorder", "y,x")
    assert (done.json["files_before"], done.json["files_after"]) == (6, 2)
    check(lake, model)
    assert job("--id", "photos", "--zorder", "y,x").json["files_before"] == 0


def test_rechunk_recode_and_layout(job, lake, model):
    done = job("--id", "photos", "--rechunk", "6,32,32", "--recode", "zstd").json
    assert done["converted"][0]["block_shape"] == [6, 32, 32]
    assert (lake["photos"].block_shape, lake["photos"].codec) == ((6, 32, 32), "zstd")
    check(lake, model)
    assert job("--id", "photos", "--rechunk", "6,32,32").json["converted"] == []
    job("--id", "hits", "--layout", "csr")
    assert lake["hits"].layout == "csr"
    check(lake, model)
    done = job("--layout", "auto").json
    assert [c["id"] for c in done["converted"]] == ["mostly zero"]
    assert lake["mostly zero"].layout == "bsgs"
    check(lake, model)
    assert job("--layout", "auto").json["converted"] == []


@pytest.mark.parametrize("job", HERE, indirect=True)
def test_floats_are_quantised_and_stay_so(job, lake):
    x = np.cumsum(np.random.default_rng(0).standard_normal((30, 20)), axis=0)
    lake.write("floats", x)
    job("--id", "floats", "--quantize", '{"error": 0.01}')
    assert lake["floats"].quantization.bound == 0.01
    assert np.abs(lake["floats"][...] - x).max() <= 0.01
    job("--id", "floats", "--recode", "zstd")
    assert lake["floats"].codec == "error(0.01)+zstd"
    assert job("--id", "floats", "--recode", "zstd").json["converted"] == []
    assert job("--id", "floats", "--quantize", '{"error": 0.01}').json["converted"] == []
    job("--id", "floats", "--quantize", "none")
    assert lake["floats"].quantization is None
    assert np.abs(lake["floats"][...] - x).max() <= 0.01


@pytest.mark.parametrize("job", HERE, indirect=True)
def test_all_floats_are_quantised_and_the_others_are_told(job, lake):
    x = np.cumsum(np.random.default_rng(0).standard_normal((30, 20)), axis=0)
    floats = lake.write("floats", x, codec="zstd")
    lake.write("few", np.where(x > 12, x, 0), layout="csr")
    lake.write("ids", np.arange(9))
    planned = job("--quantize", "int8", "--dry-run").json
    done = job("--quantize", "int8")
    assert planned["converted"] == done.json["converted"]
    told = {
        one["id"]: (one["codec"].split("+")[0], one["quantize"]) for one in done.json["converted"]
    }
    assert told == {"floats": ("int8", "int8")}
    assert "written anew as ftsf, quantised as int8 with a scale" in done.out
    why = {one["id"]: one["why"] for one in done.json["skipped"]}
    assert "'int8' is not for layout csr" in why["few"]
    assert "'int8' is not for dtype int64" in why["ids"]
    assert np.abs(lake["floats"][...] - x).max() <= np.abs(x).max() / 253
    assert job("--quantize", "int8").json["converted"] == []
    given = '{"error": 0.3}'
    job("--id", "few", "--quantize", given)
    assert job("--id", "few", "--quantize", given, "--layout", "ftsf").json["converted"][0]["quantize"] == {"error": 0.25}  # fmt: skip
    assert np.abs(lake["few"][...] - np.where(x > 12, x, 0)).max() <= 0.3
    assert job("--id", "few", "--quantize", given).json["converted"] == []
    floats = lake.write("floats", x, codec="zstd", mode="overwrite")
    job("--quantize", "none")
    assert lake["floats"].codec == floats.codec, "it was not quantised, and stays as it is"


@pytest.mark.parametrize("job", HERE, indirect=True)
def test_layout_auto_is_that_of_a_new_tensor_that_is_quantised(job, lake):
    """Few elements that chunks hold in fewer bits became sparse, or were refused."""
    x = np.where(np.random.default_rng(1).random((50, 60)) < 0.03, 1.234, 0)
    kinds = {"int8": "int8", "bound": {"error": 0.3}}
    for name, kind in kinds.items():
        assert lake.write(name, x, quantize=kind).layout == "ftsf"
        assert job("--id", name, "--layout", "auto").json["converted"] == []
    lake.write("few", tl.SparseTensor.from_dense(x))
    job("--id", "few", "--layout", "auto", "--quantize", "bfloat16")
    assert lake["few"].layout == "bsgs", "its elements are rounded one by one"
    job("--id", "few", "--layout", "auto", "--quantize", "int8")
    assert lake["few"].layout == "ftsf"
    assert np.abs(lake["few"][...] - x).max() <= 1.234 / 253


@pytest.mark.parametrize("job", HERE, indirect=True)
def test_recode_auto_takes_the_codec_of_a_new_tensor(job, lake):
    """Also of a tensor whose chunks lie on several grids, which --rechunk alone brings onto one."""
    x = np.cumsum(np.ones((40, 50), np.int64), axis=1)
    lake.write("x", x[:25], block_shape=(10, 50), codec="raw")
    lake.write("x", x[25:], mode="append")
    lake.write("tree", tl.SparseTensor.from_dense(x), layout="csf", codec="raw")
    fresh = lake.write("fresh", x, block_shape=(10, 50))
    assert fresh.codec != "raw"
    plan = job("--recode", "auto", "--dry-run").json
    done = job("--recode", "auto").json
    assert [(c["id"], c["codec"]) for c in done["converted"]] == [
        ("tree", "zstd"),
        ("x", fresh.codec),
    ]
    assert [c["codec"] for c in plan["converted"]] == [c["codec"] for c in done["converted"]]
    assert lake["x"].codec == fresh.codec
    check(lake, {"x": x, "tree": x, "fresh": x})
    lake.write("x", x[:5], mode="append")
    lake.write("x", x[:3], mode="append")
    assert job("--recode", "auto").json["converted"] == []
    assert [c["id"] for c in job("--id", "x", "--rechunk", "10,50").json["converted"]] == ["x"]
    check(lake, {"x": np.concatenate([x, x[:5], x[:3]]), "tree": x, "fresh": x})


def test_what_does_not_suit_stays_and_is_told(lake, model, run_job):
    lake.write("edges", tl.SparseTensor.from_dense(model["hits"]), layout="csr")
    model["edges"] = model["hits"]
    done = run_job(optimize, "--table", lake.uri, "--rechunk", "20,100")
    assert done.code == 0
    assert [c["id"] for c in done.json["converted"]] == ["hits", "mostly zero"]
    why = {s["id"]: s["why"] for s in done.json["skipped"]}
    assert "layout csr has no block_shape" in why["edges"]
    assert "does not fit shape (6, 64, 64)" in why["photos"]
    assert "photos: stays as it is: block shape (20, 100)" in done.out
    check(lake, model)


def test_what_is_above_max_bytes_stays_and_is_told(lake, model, run_job):
    size = lake["photos"].stored_bytes
    version = lake.version
    done = run_job(
        optimize, "--table", lake.uri, "--rechunk", "2,32,32", "--id", "photos", "--max-bytes", 10
    )
    assert (done.code, done.json["converted"], lake.version) == (0, [], version)
    (skipped,) = done.json["skipped"]
    assert skipped["id"] == "photos"
    assert skipped["why"] == f"--max-bytes leaves 10 B of 10 B, and it has {size_text(size)}"
    size = lake["hits"].stored_bytes
    done = run_job(optimize, "--table", lake.uri, "--rechunk", "20,100", "--max-bytes", size)
    assert [c["id"] for c in done.json["converted"]] == ["hits"]
    (why,) = (s["why"] for s in done.json["skipped"] if s["id"] == "mostly zero")
    assert f"--max-bytes leaves 0 B of {size_text(size)}" in why


@pytest.mark.parametrize(
    ("layout", "more"),
    [("csf", {"order": (2, 0, 1)}), ("csr", {"row_axes": (0, 2)}), ("ftsf", {"fill_value": 2})],
)
def test_what_is_not_asked_for_stays_as_it_is(lake, run_job, layout, more):
    x = np.full((4, 5, 6), float(more.get("fill_value", 0)))
    x[1, 2, 3] = x[3, 0, 0] = 7
    given = {"axes": ("t", "y", "x"), "attrs": {"unit": "K"}, "labels": {"t": ["a", "b", "c", "d"]}}
    ref = lake.write("x", x, layout=layout, codec="zstd", **given, **more)
    before = ref._meta.spec
    done = run_job(optimize, "--table", lake.uri, "--recode", "raw")
    assert [c["id"] for c in done.json["converted"]] == ["x"]
    assert lake["x"]._meta.spec == replace(before, codec="raw")
    check(lake, {"x": x})


@pytest.mark.parametrize("arguments", [["--rechunk", "10,100"], ["--zorder", "t"]])
def test_all_tensors_are_looked_at_before_the_first_is_written(lake, model, run_job, arguments):
    version = lake.version
    ids = ("hits", "photos") if "--rechunk" in arguments else ("photos", "hits")
    done = run_job(optimize, "--table", lake.uri, *(f"--id={name}" for name in ids), *arguments)
    assert (done.code, lake.version) == (2, version)


def test_large_tensors_are_written_by_several_tasks(lake, run_job, spark, monkeypatch):
    x = np.random.default_rng(1).integers(0, 256, (96, 1024, 1024), np.uint8)
    kept = {"axes": ("t", "y", "x"), "attrs": {"by": "me"}, "codec": "raw"}
    lake.write("x", x, block_shape=(1, 1024, 1024), **kept)
    monkeypatch.setattr(optimize, "PIECE_BYTES", 32 << 20)
    done = run_job(optimize, "--table", lake.uri, "--rechunk", "8,256,256",
                   "--target-bytes", 1 << 25, session=spark)  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["converted"][0]["codec"] == "raw"
    ref = lake["x"]
    assert (ref.axes, ref.attrs, ref.block_shape) == (*list(kept.values())[:2], (8, 256, 256))
    assert ref.explain().n_files == 3, "one for each task; none is small"
    np.testing.assert_array_equal(ref[...], x)
    np.testing.assert_array_equal(ref[5:40:3, 4, ::-2], x[5:40:3, 4, ::-2])
    lake.write("x", x[:3], mode="append")
    np.testing.assert_array_equal(lake["x"][94:], x[[94, 95, 0, 1, 2]])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--zorder", "depth", "--id", "photos"], "has no axis 'depth'; its axes are t, y, x"),
        (["--zorder", "depth"], "has no axis 'depth'"),
        (["--zorder", ""], "has no axis ''"),
        (["--zorder", "", "--layout", "auto"], "--zorder goes without --layout"),
        (["--rechunk", "1,x"], "--rechunk='1,x' is not a list of integers"),
        (["--rechunk", "1,2", "--id", "photos"], "does not fit shape"),
        (["--id", "fotos"], "did you mean 'photos'?"),
        (["--layout", "zarr"], "unknown layout 'zarr'"),
        (["--target-bytes", "0"], "target_bytes is 0"),
        (["--zorder", "1", "--target-bytes", "-1"], "target_bytes is -1"),
        (["--rechunk", "2,2", "--max-bytes", "-5"], "max_bytes is -5"),
        (["--min-files", "-3"], "min_files is -3"),
        (["--zorder", "1", "--rechunk", "1,32,32"], "--zorder goes without --rechunk"),
        (["--zorder", "1", "--recode", "zstd"], "--zorder goes without --recode"),
        (["--zorder", "1", "--layout", "auto"], "--zorder goes without --layout"),
        (["--zorder", "1", "--min-files", "9"], "--zorder goes without --min-files"),
        (["--rechunk", "8,8,8,8"], "does not fit shape"),
        (["--recode", "gzip"], "unknown codec 'gzip'"),
        (["--max-byte", "1"], "did you mean '--max-bytes'"),
        (["--storage-option", "secret"], "a --storage-option is not NAME=VALUE"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(lake, model, run_job, arguments, says):
    version = lake.version
    done = run_job(optimize, "--table", lake.uri, *arguments)
    assert done.code == done.json["exit_code"] == 2
    assert done.err.startswith("optimize.py: ")
    assert done.err.count("\n") == 1
    assert says in done.err
    assert lake.version == version


def test_a_table_that_is_not_there(tmp_path, run_job):
    for job in (optimize, vacuum):
        done = run_job(job, "--table", tmp_path / "nothing")
        assert done.code == 2
        assert "there is no Delta table" in done.err
        assert "--table is missing" in run_job(job).err
    assert not (tmp_path / "nothing").exists()


def test_a_configuration_file(lake, model, run_job, tmp_path):
    text = f"table: {lake.uri}\nid: photos\nzorder: [y, x]\ndry-run: true\n"
    (tmp_path / "job.yaml").write_text(text)
    assert run_job(optimize, "--config", tmp_path / "job.yaml").json["files_before"] == 6
    (tmp_path / "job.yaml").write_text(text + "sources: [a]\n")
    assert "unknown key 'sources'" in run_job(optimize, "--config", tmp_path / "job.yaml").err


def test_vacuum(lake, model, run_job):
    lake.optimize()
    assert run_job(vacuum, "--table", lake.uri).json["files"] == 0
    plan = run_job(vacuum, "--table", lake.uri, "--retention-hours", 0, "--dry-run")
    assert (plan.json["status"], plan.json["files"]) == ("planned", 8)
    done = run_job(vacuum, "--table", lake.uri, "--retention-hours", 0)
    assert (done.json["status"], done.json["files"]) == ("done", 8)
    assert done.out.count(".parquet") == 8
    assert "8 files were deleted" in done.out
    assert "0 uploads were aborted" in run_job(vacuum, "--table", lake.uri, "--uploads").out
    check(lake, model)


def test_the_command_line(lake, model, capsys):
    assert command(["optimize", "--table", lake.uri]) == 0
    assert command([]) == command(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(verb in said for verb in VERBS)
    assert command(["optimise"]) == 2
    assert "did you mean 'optimize'?" in capsys.readouterr().err
    assert command(["--versio"]) == 2
    assert "did you mean '--version'?" in capsys.readouterr().err
    done = subprocess.run(
        [sys.executable, "-m", "tensorlake_spark", "vacuum", "--table", lake.uri],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert '"status": "done"' in done.stdout


@pytest.mark.soak  # make test submits jobs in test_ingest.py
def test_spark_submit(lake, model):
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": BRIEF,
    }
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]",
            "--conf", "spark.ui.enabled=false", str(ROOT / "jobs" / "optimize.py"),
            "--table", lake.uri,
        ],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert '"files_before": 8, "files_after": 1' in done.stdout
    check(lake, model)
