"""The Spark benchmark's report and the model of scale: bounds, tables, a simulation that adds up."""

import importlib
import sys
from pathlib import Path

import pytest

import tensorlake_spark as tl

FOLDER = Path(__file__).parent
PARTS = (
    "bench_spark",
    "spark_audit",
    "spark_report",
    "spark_workers",
    "scale",
    "harness",
    "workloads",
)


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in PARTS:
        sys.modules.pop(name, None)


def audit(count):
    """Return what a cluster of so many workers took for the jobs on large files."""
    times = {"check": 30 / count, "purge": 60 / count, "purge of a part": 70 / count, "vacuum": 1.5}
    return times | {f"{name}, processor": seconds for name, seconds in times.items()}


def report(**changes):
    """Return a report in which every bound holds."""
    times = {
        "ingest": 1.2, "plain Delta": 1.0, "ingest, one file": 1.0, "collect, one file": 5.0, "toArrow, one file": 3.0, "all": 1.4,
        "all, plain Parquet": 1.0, "to Arrow": 1.2, "to Arrow, plain Parquet": 1.0, "ten images": 0.2,
        "1 %": 0.15, "one row": 0.1, "all files": 9.0, "all files, plain Delta and functions": 9.9,
        "1 %, plain Delta and functions": 0.15, **changes,
    }  # fmt: skip
    local = {
        "bytes": 2e9,
        "bytes of a file": 2e9,
        "times": {name: [0.0, seconds, 99.0] for name, seconds in times.items()},
        "slice": {"planned": 14, "needed": 10},
    }
    workers = {
        f"{kind}-{count}-{k}": {"ingest": 8 / count, "read": 6 / count}
        for kind in ("workers", "processes")
        for count in (1, 2)
        for k in range(3)
    }
    workers |= {f"large-{count}-{k}": audit(count) for count in (1, 2) for k in range(2)}
    upkeep = {
        "functions": {"reduction": 300.0},
        "compaction": {"rate": 150.0, "files of a day": 1},
        "zorder": {"before": 100, "after": 6},
    }
    memory = {"peak": 200.0, "workers": 200.0, "jvm": 400.0, "seconds": 1.0}
    pieces = {f"pieces-{count}": memory for count in (1, 10_000)}
    return {
        "date": "2026-01-01", "cpus": 2, "machine": "x", "python": "3", "versions": {"a": "1"}, "command": "c",
        "found": {
            "local": local, "upkeep": upkeep, "at once": {"seconds": 180, "done": {"read": 40, "purge": 12}},
            **workers, **pieces,
        },
    }  # fmt: skip


def test_the_report_holds_medians_against_bounds(load, tmp_path):
    spark_report = load("spark_report")
    good = report()
    assert all(bound.met for bound in spark_report.bounds(good))
    assert "| no |" not in spark_report.table(good)
    slow = report(**{"ingest": 1.4, "collect, one file": 3.0, "1 %": 0.3})
    missed = [bound.what for bound in spark_report.bounds(slow) if not bound.met]
    assert [what.split(",")[0] for what in missed] == ["ingest", "ingest", "slice of 1 %"]
    assert spark_report.table(slow).count("| no |") == 3
    spark_report.plot(slow, tmp_path / "spark.png")
    assert (tmp_path / "spark.png").read_bytes().startswith(b"\x89PNG")


def test_the_report_names_parts_that_failed(load, tmp_path):
    spark_report = load("spark_report")
    broken = report()
    broken["found"]["workers-2-1"] = "exit code 1: no memory"
    assert "workers-2-1" in spark_report.table(broken)
    spark_report.plot(broken, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_the_simulation_adds_up(load):
    scale = load("scale")
    cores = scale.EXECUTORS * scale.CORES
    alone = scale.makespan(1, 0, 2.0)
    assert alone == 2.0
    # Twice as many tasks as cores take two rounds, and the last ones are started last.
    twice = scale.makespan(2 * cores, 0, 100.0)
    assert 200.0 <= twice <= 200.0 + 2 * cores / scale.TASKS_PER_S
    # Tasks too short for the driver wait for it.
    assert scale.makespan(20_000, 0, 0.0) == pytest.approx(19_999 / scale.TASKS_PER_S)
    assert scale.makespan(1_000, 50, 0.0) >= 50 * scale.REQUEST_S


@pytest.mark.soak
def test_the_log_is_measured_and_the_model_follows(load, tmp_path, monkeypatch, capsys):
    scale = load("scale")
    monkeypatch.setattr(sys, "argv", ["scale.py", "--files", "20", "120", "--out", str(tmp_path)])
    assert scale.main() == 0
    text = (tmp_path / "scale.md").read_text()
    assert text in capsys.readouterr().out
    assert "| 20 |" in text
    assert "| 120 |" in text
    assert "| 128 MiB | 745,059 |" in text


def test_large_files_are_links_that_a_job_may_delete(load, tmp_path):
    spark_audit = load("spark_audit")
    spark_audit.ROW_BYTES, spark_audit.ROWS = 1 << 10, 2
    spark_audit.large_files(tmp_path / "large", 3)
    storage = spark_audit.with_orphans(tmp_path / "large", tmp_path / "copy", 5)
    lake = tl.open(storage.uri)
    assert len(lake.vacuum(0)) == 5
    assert lake.purge("gone", now=True).verified
    assert lake.check().ok
    large = tl.open(tmp_path / "large")
    assert large.check().findings == ()
    assert large["gone"].shape == large["kept"].shape == (6, 1 << 10)
