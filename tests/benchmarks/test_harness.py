"""The benchmark runs, checks its answers and writes what it promises."""

import json
import subprocess
import sys
from pathlib import Path


def test_the_dense_benchmark_writes_table_and_plot(tmp_path):
    script = Path(__file__).with_name("dense.py")
    options = ["--engines", "npy,tensorlake", "--size", "tiny", "--repeat", "1", "--out", tmp_path]
    done = subprocess.run(
        [sys.executable, script, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads((tmp_path / "dense.json").read_text())
    for workload in ("photos", "field"):
        for engine in ("npy", "tensorlake"):
            found = report["workloads"][workload]["medians"][engine]
            assert {"size", "write", "full", "ten", "crop", "line", "write_peak"} <= set(found)
    assert "### photos" in (tmp_path / "dense.md").read_text()
    assert (tmp_path / "dense.png").read_bytes().startswith(b"\x89PNG")
