"""The jobs check and vacuum: what they tell schedulers, and all three jobs of upkeep by spark-submit."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT
from quick import BRIEF
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.jobs import check, vacuum
from tensorlake_spark.jobs.command import carry_out

pytestmark = pytest.mark.local_disk


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(1, 2**31, (4, 400)).astype("i4")


@pytest.fixture
def table(lake, x):
    lake.write("x", x, block_shape=(1, 400), codec="raw")
    lake.write("y", x + 1, block_shape=(1, 400), codec="raw")
    return ("--table", lake.uri)


def lose_a_row(lake):
    """Around the package, so that the totals of x are wrong."""
    deltalake.DeltaTable(lake.uri).delete("id = 'x' AND lo.d0 = 2")


def damage(lake):
    """Change one byte of a payload of y."""
    (path,) = (
        p for p in Path(lake.uri).glob("*.parquet") if lake["y"][1].tobytes() in p.read_bytes()
    )
    data = path.read_bytes()
    place = data.index(lake["y"][1].tobytes())
    path.write_bytes(data[: place + 9] + bytes([data[place + 9] ^ 1]) + data[place + 10 :])
    forget()


def test_a_digest_tells_what_changed(lake, table, run_job, tmp_path):
    digest = lake.digest()
    digest.save(tmp_path / "digest")
    saved = (*table, "--digest", str(tmp_path / "digest"))
    assert (run_job(check, *saved).code, run_job(check, *table, "--digest", digest.hex).code) == (
        0,
        0,
    )
    lake["x"][2, 5] = 7
    done = run_job(check, *saved)
    assert (done.code, done.json["status"]) == (3, "bad")
    (found,) = done.json["findings"]
    assert found["kind"] == "digest"
    assert "tensor 'x', box [2:3, 0:400]" in found["place"]
    assert run_job(check, *table, "--digest", digest.hex).code == 3
    gone = run_job(check, *table, "--digest", str(tmp_path / "gone"))
    assert gone.code == 2
    assert "gone cannot be read" in gone.err
    (tmp_path / "other").write_bytes(b"no digest")
    other = run_job(check, *table, "--digest", str(tmp_path / "other"))
    assert other.code == 2, "another run would say the same"
    assert "other is not a digest" in other.err


def test_a_sound_table_is_good(lake, table, run_job):
    done = run_job(check, *table)
    assert (done.code, done.json["status"], done.json["findings"]) == (0, "good", [])
    assert (done.json["files"], done.json["tensors"], done.json["rows"]) == (2, 2, 10)
    assert "version 2: no error in 2 files, 10 rows of 2 tensors" in done.out


def test_what_is_wrong_is_in_the_output_and_mended_on_demand(lake, x, table, run_job):
    lose_a_row(lake)
    version = tl.open(lake.uri).version
    bad = run_job(check, *table)
    assert (bad.code, bad.json["exit_code"], bad.json["status"]) == (3, 3, "bad")
    assert [(f["kind"], f["repaired"]) for f in bad.json["findings"]] == [
        ("totals", False),
        ("gap", False),
    ]
    assert bad.json["findings"][1]["place"] == "tensor 'x', box [2:3, 0:400]"
    assert "ERROR [totals] tensor 'x'" in bad.out
    assert tl.open(lake.uri).version == version
    assert run_job(check, *table, "--id", "y").code == 0
    mended = run_job(check, *table, "--id", "x", "--repair")
    assert (mended.code, mended.json["status"]) == (0, "good")
    assert {f["kind"]: f["repaired"] for f in mended.json["findings"]}["totals"]
    assert "repaired [totals] tensor 'x'" in mended.out
    assert run_job(check, *table).json["findings"] == []
    x[2] = 0
    np.testing.assert_array_equal(tl.open(lake.uri)["x"][...], x)


def test_what_cannot_be_mended_without_a_guess_stays_bad(lake, table, run_job):
    damage(lake)
    done = run_job(check, *table, "--repair")
    assert (done.code, done.json["status"]) == (3, "bad")
    (found,) = done.json["findings"]
    assert (found["kind"], found["repaired"]) == ("row", False)
    assert found["place"] == "tensor 'y', row 1, box [1:2, 0:400]"
    assert "lake.restore(id, version)" in found["text"]


def test_what_cannot_be_asked_of_a_check(lake, table, run_job, tmp_path):
    version = lake.version
    both = run_job(check, *table, "--repair", "--dry-run")
    assert both.code == 2
    assert "--repair and --dry-run exclude each other" in both.err
    assert run_job(check, *table, "--dry-run").code == 0
    wrong = run_job(check, *table, "--id", "z")
    assert (wrong.code, wrong.json["error"]["type"]) == (2, "TensorNotFoundError")
    assert run_job(check, "--table", tmp_path / "nothing").code == 2
    (tmp_path / "job.yaml").write_text(f"table: {lake.uri}\nid: [x, y]\nrepair: true\n")
    assert run_job(check, "--config", tmp_path / "job.yaml").json["status"] == "good"
    assert tl.open(lake.uri).version == version


def test_a_vacuum_by_its_configuration(lake, x, table, run_job, tmp_path):
    lake.delete("y")
    (tmp_path / "job.yaml").write_text(f"table: {lake.uri}\nretention-hours: 0\ndry-run: true\n")
    plan = run_job(vacuum, "--config", tmp_path / "job.yaml")
    assert (plan.code, plan.json["status"], plan.json["files"]) == (0, "planned", 1)
    assert "1 files would be deleted" in plan.out
    assert len([*Path(lake.uri).glob("*.parquet")]) == 2
    (tmp_path / "job.yaml").write_text(f"table: {lake.uri}\nretention-hours: 0\n")
    done = run_job(vacuum, "--config", tmp_path / "job.yaml")
    assert (done.code, done.json["status"], done.json["files"]) == (0, "done", 1)
    assert len([*Path(lake.uri).glob("*.parquet")]) == 1
    np.testing.assert_array_equal(lake["x"][...], x)
    (tmp_path / "job.yaml").write_text(f"table: {lake.uri}\nretention-hours: -1\n")
    assert run_job(vacuum, "--config", tmp_path / "job.yaml").code == 2


@pytest.mark.soak  # make test submits jobs in test_ingest.py
def test_a_job_that_is_interrupted_says_so(capsys):
    code = carry_out("check.py", lambda: signal.raise_signal(signal.SIGINT))
    out, err = capsys.readouterr()
    assert (code, err) == (130, "check.py: interrupted\n")
    assert json.loads(out)["status"] == "interrupted"


def test_upkeep_by_spark_submit(lake, x, table, tmp_path):
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": BRIEF,
    }

    def submit(job, *words):
        return subprocess.run(
            [
                str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]",
                "--conf", "spark.ui.enabled=false", str(ROOT / "jobs" / f"{job}.py"), *table, *map(str, words),
            ],
            capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip

    receipt = tmp_path / "r.json"
    done = submit("purge", "--id", "y", "--region", "1", "--now", "--receipt", receipt)
    assert done.returncode == 0, done.stderr[-3000:]
    assert tl.verify_receipt(receipt.read_text()).verified
    assert not lake["y"][1].any()
    assert submit("purge", "--id", "y").returncode == 3
    lose_a_row(lake)
    bad = submit("check")
    assert (bad.returncode, '"status": "bad"' in bad.stdout) == (3, True), bad.stderr[-3000:]
    assert submit("check", "--repair").returncode == 0
    wrong = submit("vacuum", "--retention-hours", "-1")
    assert wrong.returncode == 2
    done = submit("vacuum", "--retention-hours", 0)
    assert done.returncode == 0, done.stderr[-3000:]
    assert '"status": "done"' in done.stdout
    x[2] = 0
    np.testing.assert_array_equal(tl.open(lake.uri)["x"][...], x)
    assert list(tl.open(lake.uri)) == ["x"]


def test_a_notice_is_told_and_is_no_failure(lake, table, run_job):
    (path,) = (
        p for p in Path(lake.uri).glob("*.parquet") if pq.read_table(p)["id"][0].as_py() == "x"
    )
    size, rows = path.stat().st_size, pq.read_table(path)
    at = rows.schema.get_field_index("shape")
    shapes = [[9, 400] if i == 1 else shape for i, shape in enumerate(rows["shape"].to_pylist())]
    pq.write_table(
        rows.set_column(at, rows.schema.field(at), pa.array(shapes, rows.schema.field(at).type)),
        path,
    )
    log = Path(lake.uri, "_delta_log", f"{1:020}.json")
    log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{path.stat().st_size}'))
    forget()
    done = run_job(check, *table)
    assert (done.code, done.json["status"]) == (0, "good")
    (found,) = done.json["findings"]
    assert (found["kind"], found["repaired"]) == ("described", False)
    assert found["place"] == "tensor 'x', row 1, box [1:2, 0:400]"
    assert "columns say shape [9, 400]" in found["text"]
    assert "notice [described] tensor 'x', row 1, box [1:2, 0:400]: its columns say" in done.out
