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
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from dense_report import plot, table
from engines import ENGINES
from workloads import WORKLOADS

READS = ("full", "ten", "crop", "line")
AGAIN = 7  # reads on the opened store, after the first one
LIMIT_S = 600  # for one process


def measure_write(engine: str, source: Path, store: Path) -> dict[str, float]:
    """Write the workload once; the input is in memory before the clock starts.

    Parameters
    ----------
    engine : str
        A name in `ENGINES`.
    source : path
        The workload as ``.npy``.
    store : path
        Where the engine writes; does not exist yet.

    Returns
    -------
    dict
        ``write`` in s, ``size`` of all files as a share of raw, ``write_peak`` in MB: the whole
        process, with the packages and the input.
    """
    array = np.load(source)
    import_module(ENGINES[engine].module)
    start = time.perf_counter()
    ENGINES[engine].write(store, array)
    seconds = time.perf_counter() - start
    peak = _peak()
    os.sync()  # or writing back would burden the next process
    size = sum(f.stat().st_size for f in store.rglob("*") if f.is_file())
    return {"write": seconds, "size": size / array.nbytes, "write_peak": peak}


def measure_read(
    engine: str, source: Path, store: Path, measure: str, key: Any
) -> dict[str, float]:
    """Open and read once, then read again and again; every answer is held against NumPy's.

    Parameters
    ----------
    engine, source, store : str; path
        As for `measure_write`; the store has been written.
    measure : str
        The measure's name.
    key : slice or tuple
        What is read.

    Returns
    -------
    dict
        Under the measure's name the median of the later reads in s; with ``_first`` opening and the
        first read; with ``_peak`` by how much they raised the process's peak, in MB; with
        ``_checked`` how many answers were right, which is all of them.

    Raises
    ------
    AssertionError
        If an answer differs from NumPy's in a value, the shape or the dtype.
    """
    made = ENGINES[engine]
    import_module(made.module)
    before = _peak()
    start = time.perf_counter()
    handle = made.open(store)
    got = made.read(handle, key)
    first = time.perf_counter() - start
    peak = _peak() - before
    want = np.array(np.load(source, mmap_mode="r")[key])
    _check(got, want, f"{engine} {measure}")
    times = []
    for _ in range(AGAIN):
        del got
        start = time.perf_counter()
        got = made.read(handle, key)
        times.append(time.perf_counter() - start)
        _check(got, want, f"{engine} {measure}")
    return {
        measure: statistics.median(times),
        f"{measure}_first": first,
        f"{measure}_peak": peak,
        f"{measure}_checked": 1 + len(times),
    }


def _check(got: Any, want: np.ndarray, what: str) -> None:
    if not isinstance(got, np.ndarray) or got.dtype != want.dtype or not np.array_equal(got, want):
        raise AssertionError(f"{what}: the answer is not NumPy's")


def _peak() -> float:
    """Return the peak of this process's resident memory in MB.

    Linux starts VmHWM anew with the program; ru_maxrss begins with that of the parent.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def child(arguments: list[str]) -> None:
    """Do what a fresh process does: one measure of one engine."""
    engine, measure, source, store, workload, size = arguments
    if measure == "write":
        out = measure_write(engine, Path(source), Path(store))
    else:
        key = WORKLOADS[workload]["keys" if size == "full" else "tiny_keys"][measure]
        out = measure_read(engine, Path(source), Path(store), measure, key)
    print("RESULT " + json.dumps(out))


def run_child(
    engine: str, measure: str, source: Path, store: Path, workload: str, size: str
) -> dict[str, float] | str:
    """Start a fresh process for one measure; return its result, or the error as text."""
    arguments = [engine, measure, str(source), str(store), workload, size]
    command = [sys.executable, __file__, "--child", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"no end within {LIMIT_S} s"
    results = [line[7:] for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode == 0 and results:
        found: dict[str, float] = json.loads(results[-1])
        return found
    said = done.stderr.strip().splitlines() or ["nothing said"]
    return f"exit code {done.returncode}: {said[-1]}"


def run(workload: str, engines: list[str], repeat: int, size: str, work: Path) -> dict[str, Any]:
    """Measure all engines, interleaved round by round, so that drift hits all of them alike.

    Every round another engine is the first. An engine that fails is left out from then on.

    Parameters
    ----------
    workload : str
        A name in `WORKLOADS`.
    engines : list of str
        Names in `ENGINES`.
    repeat : int
        Rounds, that is fresh processes for every figure.
    size : {"full", "tiny"}
        Tiny is for tests.
    work : path
        A folder for the input and the stores.

    Returns
    -------
    dict
        ``raw_bytes``, ``medians`` and ``samples`` by engine and figure, ``errors`` by engine.
    """
    make, options = WORKLOADS[workload][size]
    source = work / f"{workload}.npy"
    array = make(**options)
    np.save(source, array)
    raw = array.nbytes
    del array
    os.sync()
    samples: dict[str, dict[str, list[float]]] = {e: {} for e in engines}
    errors: dict[str, str] = {}
    for number in range(repeat):
        turn = number % len(engines)
        for measure in ("write", *READS):
            for engine in engines[turn:] + engines[:turn]:
                if engine in errors:
                    continue
                store = work / f"{workload}-{engine}"
                if measure == "write":
                    shutil.rmtree(store, ignore_errors=True)
                out = run_child(engine, measure, source, store, workload, size)
                if isinstance(out, str):
                    errors[engine] = f"{measure}: {out}"
                    print(f"{workload}: {engine} failed: {errors[engine]}", file=sys.stderr)
                    continue
                for name, value in out.items():
                    samples[engine].setdefault(name, []).append(value)
        print(f"{workload}: round {number + 1} of {repeat}", file=sys.stderr)
    for engine in engines:
        shutil.rmtree(work / f"{workload}-{engine}", ignore_errors=True)
    source.unlink()
    medians = {
        engine: {name: statistics.median(values) for name, values in found.items()}
        for engine, found in samples.items()
    }
    return {"raw_bytes": raw, "medians": medians, "samples": samples, "errors": errors}


def versions(engines: list[str]) -> dict[str, str]:
    """Return the versions of the packages that were measured, and of those that ours rests on."""
    out = {}
    wanted = [*(ENGINES[e].package for e in engines), "pyarrow", "deltalake", "numpy"]
    for name in dict.fromkeys(wanted):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out[name] = "not installed"
    return out


def engine_names(text: str) -> list[str]:
    """Return the engines that the option asks for: names, "default" or "all"."""
    if text in ("default", "all"):
        return [e for e, made in ENGINES.items() if text == "all" or not made.extra]
    names = list(dict.fromkeys(text.split(",")))
    unknown = [e for e in names if e not in ENGINES]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"no engine {', '.join(unknown)}; there are {', '.join(ENGINES)}"
        )
    return names


def positive(text: str) -> int:
    """Return a whole number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("1 or more")
    return number


def main() -> int:
    """Run the benchmark; the exit code is 1 if an engine failed."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workload", choices=(*WORKLOADS, "both"), default="both")
    parser.add_argument(
        "--engines", type=engine_names, default="default", help="names with commas, or all"
    )
    parser.add_argument("--repeat", type=positive, default=5)
    parser.add_argument("--size", choices=("full", "tiny"), default="full")
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    args = parser.parse_args()
    names = list(WORKLOADS) if args.workload == "both" else [args.workload]
    args.out.mkdir(parents=True, exist_ok=True)
    alone = "make bench-dense" if len(sys.argv) == 1 else ""
    report = {
        "date": dt.date.today().isoformat(),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "repeat": args.repeat,
        "versions": versions(args.engines),
        "settings": {e: ENGINES[e].settings for e in args.engines},
        "peers": [e for e in args.engines if ENGINES[e].peer],
        "command": alone or " ".join(["python tests/benchmarks/dense.py", *sys.argv[1:]]),
        "workloads": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            found = run(name, args.engines, args.repeat, args.size, Path(folder))
            report["workloads"][name] = found
            # After every workload: what is measured stays, whatever happens to the next.
            (args.out / "dense.json").write_text(json.dumps(report, indent=1))
            (args.out / "dense.md").write_text(table(report))
    plot(report, args.out / "dense.png")
    print(table(report))
    return 1 if any(found["errors"] for found in report["workloads"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
