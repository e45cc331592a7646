"""What the benchmarks share: engines and workloads, fresh processes, rounds that take turns, medians.

A benchmark is a program. It starts itself with ``--child`` for every figure, so that no engine warms
memory, threads or a cache for another one.
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
import textwrap
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

AGAIN = 7
"""Reads on the opened store, after the first one."""

LIMIT_S = 600
"""For one process."""


class Engine(NamedTuple):
    """One store.

    Attributes
    ----------
    write : callable
        ``write(path, data)``; the folder is not there yet.
    open : callable
        ``open(path)`` returns a handle.
    read : callable
        ``read(handle, key)`` returns the answer.
    package : str
        Whose version is reported.
    module : str
        What is imported before the clock starts.
    settings : str
        How it is set up, for the report.
    peer : bool
        Whether it is a peer to be compared with.
    extra : bool
        Whether it runs only when it is named, or with ``--engines all``.
    """

    write: Callable[[Path, Any], Any]
    open: Callable[[Path], Any]
    read: Callable[[Any, Any], Any]
    package: str
    module: str
    settings: str
    peer: bool = True
    extra: bool = False


def peak() -> float:
    """Return the peak of this process's resident memory in MB.

    Linux starts VmHWM anew with the program; ru_maxrss begins with that of the parent.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def stored_bytes(store: Path) -> int:
    """Return the size of all files below a folder."""
    return sum(f.stat().st_size for f in store.rglob("*") if f.is_file())


def start_child(
    script: Path, arguments: Sequence[str], aloud: bool = False
) -> dict[str, Any] | str:
    """Start a program anew with ``--child``; return its result, or the error as text.

    If it is `aloud`, what it says on its way is heard at once.
    """
    command = [sys.executable, str(script), "--child", *arguments]
    err = None if aloud else subprocess.PIPE
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=err, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return f"no end within {LIMIT_S} s"
    results = [line[7:] for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode == 0 and results:
        found: dict[str, Any] = json.loads(results[-1])
        return found
    said = (done.stderr or "").strip().splitlines() or ["nothing said"]
    return f"exit code {done.returncode}: {said[-1]}"


def run_script(script: str, *arguments: object) -> Any:
    """Run a text as a program in a new process, and return what it prints as JSON."""
    run = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def tell(result: Mapping[str, Any]) -> None:
    """Hand a child's result to `start_child`."""
    print("RESULT " + json.dumps(result))


def positive(text: str) -> int:
    """Return a whole number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("1 or more")
    return number


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of some packages, each once."""
    out = {}
    for name in dict.fromkeys(packages):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out[name] = "not installed"
    return out


def machine() -> dict[str, Any]:
    """Return what a report says of the day and the machine."""
    return {
        "date": dt.date.today().isoformat(),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


def load_packages(module: str) -> None:
    """Import an engine before it is timed, and pandas, which pyarrow imports at the first conversion of a process.

    Our own package imports what its door is built on when the door is first named; peers do so at once. With
    ``TENSORLAKE_KERNELS=fast`` our compiled loops are loaded too: those of the peers come with their import.
    """
    engine = import_module(module)
    import_module("pandas")
    if module == "tensorlake_spark":
        _ = engine.open  # imports deltalake and pyarrow
        if os.environ.get("TENSORLAKE_KERNELS") == "fast":
            load_loops()


def load_loops() -> None:
    """Have the loops that blocks and sparse rows go through taken from numba's cache, or compiled where it has none."""
    from tensorlake_spark.kernel_switch import compiled

    room = "tensorlake_spark.layouts.kernels"
    for itemsize, encodes in product((1, 2, 4, 8), (True, False)):
        for loop in ("plain", "lines", "rows", "lorenzo"):
            compiled(f"{room}.dense", loop, itemsize, encodes, nbytes=0)
        compiled(f"{room}.packing", "pack" if encodes else "unpack", itemsize, nbytes=0)
    for itemsize in (4, 8):
        for loop in ("fits", "float_lorenzo"):
            compiled(f"{room}.dense", loop, itemsize, True, nbytes=0)
        for loop in ("float_lorenzo", "packed_floats"):
            compiled(f"{room}.dense", loop, itemsize, False, nbytes=0)
    for loop in ("pick", "unravel"):
        compiled(f"{room}.sparse", loop, nbytes=0)
    for itemsize in (1, 2, 4, 8):
        compiled(f"{room}.sparse", "sort", itemsize, nbytes=0)
        compiled(f"{room}.timeline_loops", itemsize, nbytes=0)
    compiled(f"{room}.half_loops", nbytes=0)


class Benchmark(ABC):
    """A benchmark of engines on workloads: size, write, and some reads.

    Attributes
    ----------
    name : str
        Of the files that it writes, and of its verb: ``make bench-NAME``.
    script : path
        The program.
    engines : dict
        `Engine` by name.
    workloads : dict
        By name: ``full`` and ``tiny`` are a function and its options, ``keys`` and ``tiny_keys`` the keys
        by measure.
    reads : tuple of str
        The measures that read.
    """

    name: str
    script: Path
    engines: dict[str, Engine]
    workloads: dict[str, dict[str, Any]]
    reads: tuple[str, ...]

    @abstractmethod
    def save(self, made: Any, source: Path) -> int:
        """Keep a workload for the children; return its size in bytes as it would be stored raw."""

    @abstractmethod
    def load(self, source: Path) -> tuple[Any, int]:
        """Return the workload in memory, and its raw size."""

    @abstractmethod
    def wanted(self, source: Path, key: Any) -> Any:
        """Return the right answer by NumPy."""

    @abstractmethod
    def check(self, got: Any, want: Any, key: Any, what: str) -> None:
        """Raise AssertionError, which begins with `what`, if an answer is not the right one."""

    @abstractmethod
    def table(self, report: dict[str, Any]) -> str:
        """Return the report as Markdown."""

    @abstractmethod
    def plot(self, report: dict[str, Any], path: Path) -> None:
        """Draw the report."""

    def measure_write(self, engine: str, source: Path, store: Path) -> dict[str, float]:
        """Write the workload once; the input is in memory before the clock starts.

        Parameters
        ----------
        engine : str
            A name in `engines`.
        source : path
            The workload, as `save` left it.
        store : path
            Where the engine writes; does not exist yet.

        Returns
        -------
        dict
            ``write`` in s, ``size`` of all files as a share of raw, ``write_peak`` in MB: the whole
            process, with the packages and the input.
        """
        data, raw = self.load(source)
        load_packages(self.engines[engine].module)
        start = time.perf_counter()
        self.engines[engine].write(store, data)
        seconds = time.perf_counter() - start
        most = peak()
        os.sync()  # or writing back would burden the next process
        return {"write": seconds, "size": stored_bytes(store) / raw, "write_peak": most}

    def measure_read(
        self, engine: str, source: Path, store: Path, measure: str, key: Any
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
            If an answer differs from NumPy's.
        """
        made = self.engines[engine]
        load_packages(made.module)
        before = peak()
        start = time.perf_counter()
        handle = made.open(store)
        got = made.read(handle, key)
        first = time.perf_counter() - start
        more = peak() - before
        want = self.wanted(source, key)
        self.check(got, want, key, f"{engine} {measure}")
        times = []
        for _ in range(AGAIN):
            del got
            start = time.perf_counter()
            got = made.read(handle, key)
            times.append(time.perf_counter() - start)
            self.check(got, want, key, f"{engine} {measure}")
        return {
            measure: statistics.median(times),
            f"{measure}_first": first,
            f"{measure}_peak": more,
            f"{measure}_checked": 1 + len(times),
        }

    def child(self, arguments: list[str]) -> None:
        """Do what a fresh process does: one measure of one engine."""
        engine, measure, source, store, workload, size = arguments
        if measure == "write":
            out = self.measure_write(engine, Path(source), Path(store))
        else:
            key = self.workloads[workload]["keys" if size == "full" else "tiny_keys"][measure]
            out = self.measure_read(engine, Path(source), Path(store), measure, key)
        tell(out)

    def run_child(
        self, engine: str, measure: str, source: Path, store: Path, workload: str, size: str
    ) -> dict[str, float] | str:
        """Start a fresh process for one measure; return its result, or the error as text."""
        arguments = [engine, measure, str(source), str(store), workload, size]
        return start_child(self.script, arguments)

    def run(
        self, workload: str, engines: list[str], repeat: int, size: str, work: Path
    ) -> dict[str, Any]:
        """Measure all engines, interleaved round by round, so that drift hits all of them alike.

        Every round another engine is the first. An engine that fails is left out from then on.

        Parameters
        ----------
        workload : str
            A name in `workloads`.
        engines : list of str
            Names in `engines`.
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
        make, options = self.workloads[workload][size]
        source = work / f"{workload}.input"
        raw = self.save(make(**options), source)
        os.sync()
        samples: dict[str, dict[str, list[float]]] = {e: {} for e in engines}
        errors: dict[str, str] = {}
        for number in range(repeat):
            turn = number % len(engines)
            for measure in ("write", *self.reads):
                for engine in engines[turn:] + engines[:turn]:
                    if engine in errors:
                        continue
                    store = work / f"{workload}-{engine}"
                    if measure == "write":
                        shutil.rmtree(store, ignore_errors=True)
                    out = self.run_child(engine, measure, source, store, workload, size)
                    if isinstance(out, str):
                        errors[engine] = f"{measure}: {out}"
                        print(f"{workload}: {engine} failed: {errors[engine]}", file=sys.stderr)
                        continue
                    for name, value in out.items():
                        samples[engine].setdefault(name, []).append(value)
            print(f"{workload}: round {number + 1} of {repeat}", file=sys.stderr)
        for engine in engines:
            shutil.rmtree(work / f"{workload}-{engine}", ignore_errors=True)
        shutil.rmtree(source, ignore_errors=True)
        medians = {
            engine: {name: statistics.median(values) for name, values in found.items()}
            for engine, found in samples.items()
        }
        return {"raw_bytes": raw, "medians": medians, "samples": samples, "errors": errors}

    def engine_names(self, text: str) -> list[str]:
        """Return the engines that the option asks for: names, "default" or "all"."""
        if text in ("default", "all"):
            return [e for e, made in self.engines.items() if text == "all" or not made.extra]
        names = list(dict.fromkeys(text.split(",")))
        unknown = [e for e in names if e not in self.engines]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"no engine {', '.join(unknown)}; there are {', '.join(self.engines)}"
            )
        return names

    def main(self) -> int:
        """Run the program; the exit code is 1 if an engine failed."""
        if sys.argv[1:2] == ["--child"]:
            self.child(sys.argv[2:])
            return 0
        module = sys.modules[type(self).__module__]
        parser = argparse.ArgumentParser(description=(module.__doc__ or "").splitlines()[0])
        if len(self.workloads) > 1:
            parser.add_argument("--workload", choices=(*self.workloads, "all"), default="all")
        parser.add_argument(
            "--engines", type=self.engine_names, default="default", help="names with commas, or all"
        )
        parser.add_argument("--repeat", type=positive, default=5)
        parser.add_argument("--size", choices=("full", "tiny"), default="full")
        parser.add_argument("--out", type=Path, default=Path("bench-output"))
        args = parser.parse_args()
        chosen = getattr(args, "workload", "all")
        names = list(self.workloads) if chosen == "all" else [chosen]
        args.out.mkdir(parents=True, exist_ok=True)
        alone = f"make bench-{self.name}" if len(sys.argv) == 1 else ""
        script = f"python tests/benchmarks/{self.script.name}"
        packages = [
            *(self.engines[e].package for e in args.engines),
            "pyarrow",
            "deltalake",
            "numpy",
        ]
        report = {
            **machine(),
            "repeat": args.repeat,
            "versions": versions(packages),
            "settings": {e: self.engines[e].settings for e in args.engines},
            "peers": [e for e in args.engines if self.engines[e].peer],
            "command": alone or " ".join([script, *sys.argv[1:]]),
            "workloads": {},
        }
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                found = self.run(name, args.engines, args.repeat, args.size, Path(folder))
                report["workloads"][name] = found
                # After every workload: what is measured stays, whatever happens to the next.
                (args.out / f"{self.name}.json").write_text(json.dumps(report, indent=1))
                (args.out / f"{self.name}.md").write_text(self.table(report))
        self.plot(report, args.out / f"{self.name}.png")
        print(self.table(report))
        return 1 if any(found["errors"] for found in report["workloads"].values()) else 0
