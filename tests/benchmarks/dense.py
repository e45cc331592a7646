"""The dense benchmark: size, write, full read, ten images, a crop, a line; fresh processes, medians.

``make bench-dense`` runs it in a virtual environment of its own and writes a table and a plot.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from engines import ENGINES
from workloads import WORKLOADS

READS = ("full", "ten", "crop", "line")
MUST = {"size": 0.625, "write": 0.7, "full": 1.0, "ten": 1.0, "crop": 1.0, "line": 0.6}
"""For the photographs: size as a share of raw, the others as a ratio to the fastest compressed peer."""


def measure_write(engine: str, source: Path, store: Path) -> dict[str, float]:
    """Write the workload once; the input is in memory before the clock starts."""
    array = np.load(source)
    _warm_imports(engine)
    start = time.perf_counter()
    ENGINES[engine].write(store, array)
    seconds = time.perf_counter() - start
    size = sum(f.stat().st_size for f in store.rglob("*") if f.is_file())
    return {"write": seconds, "size": size / array.nbytes, "write_peak": _peak()}


def measure_read(
    engine: str, source: Path, store: Path, measure: str, keys: Any
) -> dict[str, float]:
    """Open and read once, then read again and again; every answer is held against NumPy's."""
    key = keys[measure]
    made = ENGINES[engine]
    _warm_imports(engine)
    before = _peak()
    start = time.perf_counter()
    handle = made.open(store)
    got = made.read(handle, key)
    first = time.perf_counter() - start
    peak = _peak() - before
    want = np.load(source, mmap_mode="r")[key]
    if not np.array_equal(got, want):
        raise AssertionError(f"{engine} read {measure} wrongly")
    del got
    times = []
    for _ in range(7):
        start = time.perf_counter()
        got = made.read(handle, key)
        times.append(time.perf_counter() - start)
        del got
    return {measure: statistics.median(times), f"{measure}_first": first, f"{measure}_peak": peak}


def _warm_imports(engine: str) -> None:
    """Imports do not count: load the packages that `open` would."""
    names = {"tensorlake": "tensorlake_spark", "zarr-zstd": "zarr", "zarr-blosc": "zarr"}
    name = names.get(engine, engine)
    if name != "npy":
        __import__(name)


def _peak() -> float:
    """Peak of this process's resident memory in MB; Linux starts it anew with the program, unlike ru_maxrss."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def child(arguments: list[str]) -> None:
    """What a fresh process does: one measure of one engine."""
    engine, measure, source, store, workload, size = arguments
    keys = WORKLOADS[workload]["keys" if size == "full" else "tiny_keys"]
    if measure == "write":
        out = measure_write(engine, Path(source), Path(store))
    else:
        out = measure_read(engine, Path(source), Path(store), measure, keys)
    print("RESULT " + json.dumps(out))


def run_child(
    engine: str, measure: str, source: Path, store: Path, workload: str, size: str
) -> Any:
    """Start a fresh process for one measure; return its result, or the error as text."""
    command = [
        sys.executable,
        __file__,
        "--child",
        engine,
        measure,
        str(source),
        str(store),
        workload,
        size,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    return (done.stderr.strip().splitlines() or ["no result"])[-1]


def run(workload: str, engines: list[str], repeat: int, size: str, work: Path) -> dict[str, Any]:
    """Measure all engines, interleaved round by round, so that drift hits all of them alike."""
    make, options = WORKLOADS[workload][size]
    source = work / f"{workload}.npy"
    array = make(**options)
    np.save(source, array)
    raw = array.nbytes
    del array
    results: dict[str, dict[str, list[float]]] = {e: {} for e in engines}
    errors: dict[str, str] = {}
    for number in range(repeat):
        for measure in ("write", *READS):
            for engine in engines:
                if engine in errors:
                    continue
                store = work / f"{workload}-{engine}"
                if measure == "write":
                    shutil.rmtree(store, ignore_errors=True)
                out = run_child(engine, measure, source, store, workload, size)
                if isinstance(out, str):
                    errors[engine] = f"{measure}: {out}"
                    continue
                for name, value in out.items():
                    results[engine].setdefault(name, []).append(value)
        print(f"{workload}: round {number + 1} of {repeat}", file=sys.stderr)
    medians = {
        e: {name: statistics.median(values) for name, values in found.items()}
        for e, found in results.items()
    }
    for engine in engines:
        shutil.rmtree(work / f"{workload}-{engine}", ignore_errors=True)
    source.unlink()
    return {"raw_bytes": raw, "medians": medians, "samples": results, "errors": errors}


def criteria(
    medians: dict[str, dict[str, float]],
) -> list[tuple[str, float, str, float, float, float]]:
    """Return ``(measure, ours, peer, the peer's figure, ratio, must)`` for the photographs."""
    rows = []
    # What leaves the data as large as it was is no compressed peer, whatever it was asked for.
    peers = {
        e: m
        for e, m in medians.items()
        if ENGINES[e].compressed and "full" in m and m["size"] < 0.95
    }
    ours = medians.get("tensorlake", {})
    for measure, must in MUST.items():
        if measure not in ours or not peers:
            continue
        peer = min(peers, key=lambda e: peers[e][measure])
        ratio = ours[measure] if measure == "size" else ours[measure] / peers[peer][measure]
        rows.append((measure, ours[measure], peer, peers[peer][measure], ratio, must))
    return rows


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = [
        f"Date {report['date']}, {report['cpus']} CPUs ({report['machine']}), Python {report['python']}; "
        f"median of {report['repeat']} fresh processes for every figure.",
        "",
        "Packages: " + ", ".join(f"{k} {v}" for k, v in report["versions"].items()) + ".",
        "",
        f"Command: `{report['command']}`",
    ]
    for name, found in report["workloads"].items():
        raw = found["raw_bytes"] / 1e6
        lines += [
            "",
            f"### {name} ({raw:.0f} MB)",
            "",
            "Reads in ms: the median of seven on an opened store (in brackets opening and the first read).",
            "Memory in MB: peak of the process that writes, input and packages included; growth of the "
            "peak by opening and the full read, the result included.",
            "",
            "| | size | write s | full | ten | crop | line | memory write | memory full |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for engine, m in found["medians"].items():
            if engine in found["errors"]:
                lines.append(f"| {engine} | failed: {found['errors'][engine]} | | | | | | | |")
                continue
            reads = " | ".join(f"{m[r] * 1e3:.1f} ({m[r + '_first'] * 1e3:.0f})" for r in READS)
            lines.append(
                f"| {engine} | {m['size']:.3f} | {m['write']:.2f} | {reads} | {m['write_peak']:.0f} | "
                f"{m['full_peak']:.0f} |"
            )
        rows = criteria(found["medians"])
        if rows:
            lines += [
                "",
                "| measure | ours | fastest compressed peer | its figure | ratio |"
                + (" must | met |" if name == "photos" else ""),
                "|---|---|---|---|---|" + ("---|---|" if name == "photos" else ""),
            ]
        for measure, ours, peer, theirs, ratio, must in rows:
            unit = 1 if measure in ("size", "write") else 1e3
            line = f"| {measure} | {ours * unit:.3f} | {peer} | {theirs * unit:.3f} | {ratio:.2f} |"
            if name == "photos":
                line += f" <= {must} | {'yes' if ratio <= must else 'no'} |"
            lines.append(line)
    return "\n".join(lines) + "\n"


def plot(report: dict[str, Any], path: Path) -> None:
    """Draw every measure relative to ours: a dot right of the line is slower, or larger, than ours."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(report["workloads"])
    figure, axes = plt.subplots(1, len(names), figsize=(7 * len(names), 4.6), squeeze=False)
    for axis, name in zip(axes[0], names):
        medians = report["workloads"][name]["medians"]
        measures = ["size", "write", *READS]
        # A memory map of plain bytes is so much faster on slices that the others would not be told apart.
        others = [e for e in medians if e not in ("tensorlake", "npy") and "line" in medians[e]]
        for k, engine in enumerate(others):
            ratios = [medians[engine][m] / medians["tensorlake"][m] for m in measures]
            offsets = np.arange(len(measures)) + (k - (len(others) - 1) / 2) * 0.11
            axis.plot(ratios, offsets, "o", markersize=6, label=engine)
        axis.axvline(1, color="black", linewidth=1)
        axis.set_xscale("log")
        axis.set_yticks(range(len(measures)), measures)
        axis.invert_yaxis()
        axis.set_xlabel("times ours (log scale): right of the line = worse than tensorlake")
        axis.set_title(f"{name}, {report['workloads'][name]['raw_bytes'] / 1e6:.0f} MB")
        axis.grid(axis="x", alpha=0.3)
        for y in range(len(measures) - 1):
            axis.axhline(y + 0.5, color="0.9", linewidth=0.8)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=max(1, len(labels)), frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def versions(engines: list[str]) -> dict[str, str]:
    """Return the versions of the packages that were measured."""
    out = {}
    for name in dict.fromkeys(
        [*(ENGINES[e].package for e in engines), "pyarrow", "deltalake", "numpy"]
    ):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out[name] = "-"
    return out


def main() -> int:
    """Run the benchmark; the exit code is 1 if an engine failed."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", choices=(*WORKLOADS, "both"), default="both")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--size", choices=("full", "tiny"), default="full")
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    args = parser.parse_args()
    engines = args.engines.split(",")
    names = list(WORKLOADS) if args.workload == "both" else [args.workload]
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        workloads = {n: run(n, engines, args.repeat, args.size, Path(folder)) for n in names}
    report = {
        "date": dt.date.today().isoformat(),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "repeat": args.repeat,
        "versions": versions(engines),
        "command": "make bench-dense" if len(sys.argv) == 1 else "python tests/benchmarks/dense.py "
        + " ".join(sys.argv[1:]),
        "workloads": workloads,
    }  # fmt: skip
    (args.out / "dense.json").write_text(json.dumps(report, indent=1))
    (args.out / "dense.md").write_text(table(report))
    if "tensorlake" in engines:
        plot(report, args.out / "dense.png")
    print(table(report))
    return 1 if any(w["errors"] for w in workloads.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
