"""The sparse benchmark and the parameter study run, check their answers, and write what they promise."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl

HERE = Path(__file__).parent
PNG = b"\x89PNG"
READS = ("full", "day", "box", "crowd", "hour")
MODULES = (
    "bench_sparse", "dense", "dense_engines", "dense_report", "harness", "parameters",
    "parameters_report", "reporting", "sparse_engines", "sparse_report", "workloads",
)  # fmt: skip


@pytest.fixture
def load(monkeypatch):
    """Import a module of the benchmarks; all of them are gone again afterwards."""
    monkeypatch.syspath_prepend(str(HERE))
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)


def run(script, *options):
    command = [sys.executable, HERE / script, *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def figures(**changes):
    """Return the medians of an engine whose reads all take 10 ms."""
    reads = {r + s: 0.01 for r in READS for s in ("", "_first", "_peak")}
    return {"size": 0.04, "write": 1.0, "write_peak": 1.0, **reads, **changes}


def report(medians, errors):
    found = {"raw_bytes": 100_000_000, "medians": medians, "samples": {}, "errors": errors}
    return {
        "date": "2026-01-01", "cpus": 2, "machine": "x", "python": "3", "repeat": 1,
        "versions": {}, "command": "c", "settings": dict.fromkeys(medians, "s"), "peers": [],
        "workloads": {"uber": found},
    }  # fmt: skip


def test_the_workload_is_the_one_that_the_figures_are_about(load):
    made = load("workloads").uber((12, 24, 100, 150), 20_000)
    assert (made.coords.dtype, made.values.dtype) == (np.int64, np.float64)
    places = np.ravel_multi_index(tuple(made.coords), made.shape)
    assert len(places) == 20_000
    assert (np.diff(places) > 0).all()
    # Drawn by the function that the aims were measured with.
    assert (int(places.sum()), int(made.values.sum())) == (50_696_873_246, 20_387)


def test_the_crowd_is_the_busiest_of_its_size(load):
    x = load("workloads").SPARSE["uber"]
    made = x["tiny"][0](**x["tiny"][1])
    cells = np.zeros((101, 151), np.int64)
    np.add.at(cells[1:, 1:], (made.coords[2], made.coords[3]), 1)
    sums = cells.cumsum(0).cumsum(1)
    counts = sums[16:, 16:] - sums[:-16, 16:] - sums[16:, :-16] + sums[:-16, :-16]
    _, _, y, z = x["tiny_keys"]["crowd"]
    assert np.unravel_index(counts.argmax(), counts.shape) == (y.start, z.start)
    assert (y.stop - y.start, z.stop - z.start) == (16, 16)


RAW = "pt" if importlib.util.find_spec("torch") else "npy"


@pytest.mark.parametrize(
    "engines",
    [["bsgs", RAW], ["csf", "coo", "npz", "parquet", RAW]],
)
@pytest.mark.soak
def test_the_sparse_benchmark_writes_tables_and_plot(tmp_path, engines):
    options = ["--engines", ",".join(engines), "--size", "tiny", "--repeat", 1, "--out", tmp_path]
    done = run("bench_sparse.py", *options)
    assert done.returncode == 0, done.stderr[-2000:]
    medians = json.loads((tmp_path / "sparse.json").read_text())["workloads"]["uber"]["medians"]
    assert list(medians) == engines
    for found in medians.values():
        assert {"size", "write", "write_peak", "full_peak", "hour_first"} <= set(found)
        for measure in READS:
            assert found[measure] > 0
            assert found[f"{measure}_checked"] == 8
    text = (tmp_path / "sparse.md").read_text()
    assert "### uber (1 MB)" in text
    assert "| the paper's bsgs | 0.0483 |  | 0.7041 | 0.4466 |" in text
    assert (tmp_path / "sparse.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    "wrong", ["value", "place", "missing", "twice", "outside", "shape", "dtype", "later"]
)
@pytest.mark.parametrize("in_slice", [False, True])
def test_a_wrong_answer_never_counts(load, monkeypatch, tmp_path, wrong, in_slice):
    sparse, engines = load("bench_sparse"), load("sparse_engines")
    rng = np.random.default_rng(0)
    coords = np.array(np.nonzero(rng.random((4, 5, 6)) < 0.4))
    made = load("workloads").Elements(coords, np.arange(1.0, coords.shape[1] + 1), (4, 5, 6))
    sparse.BENCHMARK.save(made, tmp_path / "in")
    mask = (coords[0] == 2) & (coords[2] >= 1) & (coords[2] < 4)
    assert mask.sum() > 3
    right, values = coords[:, mask], made.values[mask]
    if in_slice:
        right = right[[1, 2]] - [[0], [1]]
    calls = []

    def read(handle, key):
        calls.append(key)
        mixed = rng.permutation(len(values))
        c, v = right[:, mixed], values[mixed]
        now = wrong if wrong != "later" else "value" if len(calls) > 3 else ""
        if now == "value":
            v = v + 1
        elif now == "place":
            c = c[:, ::-1]
        elif now == "missing":
            c, v = c[:, 1:], v[1:]
        elif now == "twice":
            c, v = np.hstack([c, c[:, :1]]), np.append(v, v[0])
        elif now == "outside":
            c = c + np.array([[0]] * (len(c) - 1) + [[9]])
        elif now == "dtype":
            c = c.astype(np.int32)
        shape = (5, 4 if now == "shape" else 3) if in_slice else None
        return engines.Found(c[:1] if now == "shape" else c, v, shape)

    engine = sparse.ENGINES["npz"]._replace(open=lambda path: None, read=read)
    monkeypatch.setitem(sparse.ENGINES, "npz", engine)
    key = np.s_[2, :, 1:4]
    with pytest.raises(AssertionError, match="npz day: the answer is not NumPy's"):
        sparse.BENCHMARK.measure_read("npz", tmp_path / "in", tmp_path, "day", key)
    assert len(calls) == (4 if wrong == "later" else 1)


def test_right_answers_count_in_any_order(load, tmp_path):
    sparse = load("bench_sparse")
    make, options = sparse.SPARSE["uber"]["tiny"]
    sparse.BENCHMARK.save(make(**options), tmp_path / "in")
    for engine in ("bsgs", "parquet"):
        sparse.BENCHMARK.measure_write(engine, tmp_path / "in", tmp_path / engine)
        for key in (np.s_[:], np.s_[5], np.s_[3:5, 2:, 7:60, 80], np.s_[:, :, 99:, 149]):
            out = sparse.BENCHMARK.measure_read(
                engine, tmp_path / "in", tmp_path / engine, "x", key
            )
            assert out["x_checked"] == 8


def test_the_criteria_are_held_against_every_tiledb(load):
    sparse = load("bench_sparse")
    medians = {
        "bsgs": figures(size=0.031, write=0.2, day=0.003, box=0.001, hour=0.009),
        "npy": figures(size=1.0, day=0.02, full=0.05),
        "tiledb": figures(),
        "tiledb-delta": figures(full=0.1),
        "coo": figures(day=0.03),
    }
    text = sparse.BENCHMARK.table(report(medians, {})).splitlines()
    said = "| size | 0.0310 | <= 0.0315 of npy | 0.0400 | 0.78 | yes | 0.0400 | 0.78 | yes |"
    assert said in text
    assert "| full | 10.00 | <= 0.7 | 10.00 | 1.00 | no | 100.00 | 0.10 | yes |" in text
    assert "| day | 3.00 | <= 0.25 | 10.00 | 0.30 | no | 10.00 | 0.30 | no |" in text
    assert "| coo | 0.0400 | 1.500 | no | 2.5 |" in text
    assert "| bsgs | 0.0310 | 0.20 | 0.200 (1.000) | 0.150 (1.000) |" in text
    failed = sparse.BENCHMARK.table(report(medians, {"tiledb": "box: it | broke"}))
    assert "| tiledb | failed: box: it / broke |" in failed
    assert "| full | 10.00 | <= 0.7 | 100.00 | 0.10 | yes |" in failed
    assert "<= 0.7" not in sparse.BENCHMARK.table(report(medians, {"bsgs": "full: no"}))
    assert "ratio to npy" not in sparse.BENCHMARK.table(report(medians, {"npy": "full: no"}))


@pytest.mark.parametrize("failed", ["bsgs", "tiledb", "both"])
def test_there_is_a_plot_whoever_failed(load, tmp_path, failed):
    sparse = load("bench_sparse")
    medians = {"bsgs": figures(), "tiledb": figures(full=9.0)}
    errors = dict.fromkeys(medians if failed == "both" else [failed], "full: no")
    sparse.BENCHMARK.plot(report(medians, errors), tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(PNG)


@pytest.mark.soak
def test_the_parameter_study_writes_page_and_plots(load, tmp_path):
    page = tmp_path / "docs" / "parameters.md"
    page.parent.mkdir()
    mark = load("parameters_report").MARK
    page.write_text(f"# Parameters\n\nWhat follows.\n\n{mark}\nold tables\n")
    options = ["--size", "tiny", "--repeat", 1, "--out", tmp_path, "--docs", page.parent]
    done = run("parameters.py", *options)
    assert done.returncode == 0, done.stderr[-2000:]
    text = page.read_text()
    assert text.startswith(f"# Parameters\n\nWhat follows.\n\n{mark}\n")
    assert "old tables" not in text
    for row in ("| **12x3x64x64** | 1 |", "| 1x3x16x64 | 48 |", "| 2, 3, 0, 1 |", "| 4 KiB |"):
        assert row in text
    found = json.loads((tmp_path / "parameters.json").read_text())["workloads"]
    by_name = {(s["factor"], str(s["value"])): s["medians"] for s in found["uber"]["settings"]}
    default = by_name["", "None"]
    assert by_name["block_shape", "[1, 24, 16, 16]"]["rows"] > default["rows"]
    assert by_name["row_group_bytes", "4096"]["groups"] > default["groups"]
    assert by_name["level", "1"]["size"] > default["size"]
    assert by_name["order", "[2, 3, 0, 1]"]["size"] != default["size"]
    for name in found:
        assert (page.parent / f"parameters-{name}.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("factor", ["level", "row_group_bytes", "file_bytes"])
def test_a_constant_that_is_set_takes_effect(load, monkeypatch, tmp_path, factor):
    from tensorlake_spark.delta.log import properties
    from tensorlake_spark.layouts import layout_of
    from tensorlake_spark.layouts.coding import buffers, codec

    parameters = load("parameters")
    ftsf = type(layout_of("ftsf"))
    for owner, name in (
        (properties, "FILE_BYTES"), (buffers, "ZSTD_LEVEL"), (codec, "ZSTD_LEVEL"), (codec, "_zstd"),
        (ftsf, "row_group_bytes"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, getattr(owner, name))  # so that it is restored
    x = np.random.default_rng(0).integers(0, 9, (60, 100, 100)).cumsum(0).astype(np.int32)

    def written(name):
        ref = tl.open(tmp_path / name).write("x", x, layout="ftsf", block_shape=(4, 100, 100))
        plan = ref.explain()
        return ref.stored_bytes, sum(len(f.row_groups) for f in plan.files), len(plan.files)

    before = written("before")
    parameters.options_of("photos", parameters.Setting("row_group_bytes", 64 << 10))
    assert written("groups")[1] > before[1]
    value = {"level": 19, "row_group_bytes": 32 << 10, "file_bytes": 200 << 10}[factor]
    parameters.options_of("photos", parameters.Setting(factor, value))
    after = written("after")
    place = ("level", "row_group_bytes", "file_bytes").index(factor)
    assert after[place] != before[place]


def test_every_factor_has_a_default_and_other_values(load):
    parameters, pages = load("parameters"), load("parameters_report")
    for size, workloads in parameters.SETTINGS.items():
        for workload, tried in workloads.items():
            if size == "tiny":
                assert all(
                    v not in tried[f] for f, v in parameters.defaults_of(workload, size).items()
                )
            assert set(tried) <= set(parameters.FACTORS) == set(pages.TITLES)


@pytest.mark.parametrize("script", ["bench_sparse.py", "parameters.py"])
def test_a_wrong_option_is_refused_before_anything_runs(tmp_path, script):
    options = ["--engines", "npy,nothing"] if script == "bench_sparse.py" else ["--repeat", "0"]
    done = run(script, *options, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()
