"""The benchmark runs, checks its answers, survives an engine that fails, and writes what it promises."""

import importlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("dense.py")
PNG = b"\x89PNG"


@pytest.fixture
def dense(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    yield importlib.import_module("dense")
    for name in ("dense", "dense_report", "dense_engines", "workloads", "harness", "reporting"):
        sys.modules.pop(name, None)


def run(*options):
    command = [sys.executable, SCRIPT, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def figures(**changes):
    """Return the medians of an engine whose reads all take 10 ms."""
    reads = {r + s: 0.01 for r in ("full", "ten", "crop", "line") for s in ("", "_first", "_peak")}
    return {"size": 0.7, "write": 1.0, "write_peak": 1.0, **reads, **changes}


def report(medians, errors, name="photos"):
    found = {"raw_bytes": 1000, "medians": medians, "samples": {}, "errors": errors}
    peers = [e for e in medians if e not in ("tensorlake", "npy")]
    return {
        "date": "2026-01-01", "cpus": 2, "machine": "x", "python": "3", "repeat": 1,
        "versions": {}, "command": "c", "settings": dict.fromkeys(medians, "s"), "peers": peers,
        "workloads": {name: found},
    }  # fmt: skip


@pytest.mark.soak  # the other benchmarks run through the same harness
def test_the_dense_benchmark_writes_table_and_plot(tmp_path):
    options = ["--engines", "npy,tensorlake", "--size", "tiny", "--repeat", "1", "--out", tmp_path]
    done = run(*options)
    assert done.returncode == 0, done.stderr[-2000:]
    written = json.loads((tmp_path / "dense.json").read_text())
    for workload in ("photos", "field"):
        for engine in ("npy", "tensorlake"):
            found = written["workloads"][workload]["medians"][engine]
            assert {"size", "write", "write_peak", "full_peak", "line_first"} <= set(found)
            for measure in ("full", "ten", "crop", "line"):
                assert found[measure] > 0
                assert found[f"{measure}_checked"] >= 6
    assert "### photos" in (tmp_path / "dense.md").read_text()
    assert (tmp_path / "dense.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("wrong", ["value", "shape", "dtype", "later"])
def test_a_wrong_answer_never_counts(dense, monkeypatch, tmp_path, wrong):
    x = np.arange(24, dtype=np.uint8).reshape(4, 3, 2)
    assert dense.BENCHMARK.save(x, tmp_path / "in") == 24
    calls = []

    def read(handle, key):
        calls.append(key)
        late = wrong == "later" and len(calls) > 3
        if wrong == "value" or late:
            return x[key] + np.uint8(1)
        answers = {"shape": x[key][:1], "dtype": x[key].astype(np.int64)}
        return answers.get(wrong, x[key])

    made = dense.ENGINES["npy"]._replace(open=lambda path: None, read=read)
    monkeypatch.setitem(dense.ENGINES, "npy", made)
    with pytest.raises(AssertionError, match="npy ten"):
        dense.BENCHMARK.measure_read("npy", tmp_path / "in", tmp_path, "ten", np.s_[1:3])


def test_an_engine_that_fails_does_not_stop_the_others(dense, monkeypatch, tmp_path):
    asked = []

    def run_child(engine, measure, *rest):
        asked.append((engine, measure))
        if engine == "zarr-zstd" and measure == "ten":
            return "exit code 1: it | broke"
        return figures() if measure == "write" else {measure: 0.01}

    monkeypatch.setattr(dense.BENCHMARK, "run_child", run_child)
    found = dense.BENCHMARK.run(
        "photos", ["tensorlake", "zarr-zstd", "tiledb"], 2, "tiny", tmp_path
    )
    assert found["errors"] == {"zarr-zstd": "ten: exit code 1: it | broke"}
    assert ("zarr-zstd", "crop") not in asked
    assert asked.count(("tiledb", "line")) == 2
    text = dense.BENCHMARK.table(report(found["medians"], found["errors"]))
    assert "| zarr-zstd | failed: ten: exit code 1: it / broke |" in text
    assert "| size | 0.700 | tiledb |" in text


def test_without_options_all_peers_are_measured_five_times(dense, monkeypatch, tmp_path):
    asked = Counter()

    def run_child(engine, measure, source, store, workload, size):
        asked[engine, measure, workload, size] += 1
        return figures() if measure == "write" else {measure: 0.01}

    changes = {"run_child": run_child, "save": lambda made, source: 1000, "plot": lambda *_: None}
    for name, value in changes.items():
        monkeypatch.setattr(dense.BENCHMARK, name, value)
    for name, workload in dense.DENSE.items():
        monkeypatch.setitem(dense.DENSE, name, {**workload, "full": (lambda: None, {})})
    monkeypatch.setattr(sys, "argv", ["dense.py", "--out", str(tmp_path)])
    assert dense.BENCHMARK.main() == 0
    peers = {"npy", "zarr-zstd", "zarr-blosc", "tensorstore", "tiledb", "lance"}
    assert {engine for engine, *_ in asked} >= {"tensorlake", *peers}
    assert set(asked.values()) == {5}
    assert {key[1:] for key in asked} == {
        (measure, workload, "full")
        for measure in ("write", "full", "ten", "crop", "line")
        for workload in ("photos", "field")
    }
    assert json.loads((tmp_path / "dense.json").read_text())["repeat"] == 5


def test_a_process_that_dies_is_a_failure(dense, tmp_path):
    missing = tmp_path / "none.npy"
    said = dense.BENCHMARK.run_child("npy", "write", missing, tmp_path / "s", "photos", "tiny")
    assert said.startswith("exit code 1: FileNotFoundError")


def test_the_criteria_pass_over_what_failed_or_did_not_compress(dense):
    medians = {
        "tensorlake": figures(size=0.62, write=0.6, line=0.007),
        "npy": figures(size=1.0, full=0.001),
        "tiledb": figures(),
        "lance": figures(size=1.0, full=0.002),
        "zarr-zstd": figures(full=0.003),
    }
    made = report(medians, {"zarr-zstd": "line: wrong"})
    rows = dense.BENCHMARK.table(made).splitlines()
    assert "| size | 0.620 | tiledb | 0.700 | 0.89 | <= 0.625 of raw | yes |" in rows
    assert "| full | 10.000 | tiledb | 10.000 | 1.00 | <= 1.0 | yes |" in rows
    assert "| line | 7.000 | tiledb | 10.000 | 0.70 | <= 0.6 | no |" in rows
    assert "met" not in dense.BENCHMARK.table(report(medians, {}, "field"))


@pytest.mark.parametrize("failed", ["tensorlake", "tiledb", "both"])
def test_there_is_a_plot_whoever_failed(dense, tmp_path, failed):
    medians = {"tensorlake": figures(), "tiledb": figures(full=9.0)}
    errors = dict.fromkeys(medians if failed == "both" else [failed], "full: no")
    dense.BENCHMARK.plot(report(medians, errors), tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("options", [["--engines", "npy,nothing"], ["--repeat", "0"]])
def test_a_wrong_option_is_refused_before_anything_runs(tmp_path, options):
    done = run(*options, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()


def test_loops_that_are_loaded_before_the_clock_are_there(dense, monkeypatch):
    """A module that is not there would turn the loops off, and NumPy would be measured."""
    from tensorlake_spark import kernel_switch

    asked = []
    monkeypatch.setattr(kernel_switch, "compiled", lambda *key, nbytes: asked.append(key))
    importlib.import_module("harness").load_loops()
    assert asked
    for module, *key in asked:
        importlib.import_module(module).warm(*key)
