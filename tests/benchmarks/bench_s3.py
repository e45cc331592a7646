"""The benchmark on S3: ten images, all of them, a day; round trips and times, each request 20 ms longer.

``make bench-s3`` runs it in a virtual environment of its own, beside a server on this machine, and writes
a table and a plot.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))  # the server is there
sys.path.insert(0, str(Path(__file__).resolve().parent))

import s3_report
from bench_sparse import BENCHMARK as SPARSE_BENCHMARK
from dense import BENCHMARK as DENSE_BENCHMARK
from harness import Benchmark, load_packages, start_child, tell
from s3_engines import BUCKET, ENGINES, Place
from s3_road import S3Road, requests, round_trips
from s3server import IDENTITY, REGION, SECRET, S3Server
from workloads import DENSE, SPARSE

WORKLOADS = {"photos": DENSE["photos"], "uber": SPARSE["uber"]}
DELAY_S = 0.02
LINK = 125e6  # bytes per second: 1 Gbit/s
AGAIN, ALL_AGAIN = (5, 3), (3, 1)
"""How often a slice, or all, is read again: warm, and renewed."""


def place_of(endpoint: str, name: str) -> Place:
    """Return a place on the server with this URL."""
    options = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": IDENTITY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
        "AWS_ALLOW_HTTP": "true",
    }
    return Place(name, options)


class S3(Benchmark):
    """Tensors on S3; what a right answer is, the dense and the sparse benchmark say."""

    name = "s3"
    script = Path(__file__)
    engines = ENGINES
    workloads = WORKLOADS
    reads = tuple(m for measures in s3_report.MEASURES.values() for m in measures)

    def save(self, made: Any, source: Path) -> int:
        return self._kind(isinstance(made, np.ndarray)).save(made, source)

    def load(self, source: Path) -> tuple[Any, int]:
        return self._of(source).load(source)

    def wanted(self, source: Path, key: Any) -> Any:
        return self._of(source).wanted(source, key)

    def check(self, got: Any, want: Any, key: Any, what: str) -> None:
        self._kind(isinstance(want, np.ndarray)).check(got, want, key, what)

    def table(self, report: dict[str, Any]) -> str:
        return s3_report.table(report)

    def plot(self, report: dict[str, Any], path: Path) -> None:
        s3_report.plot(report, path)

    def _kind(self, dense: bool) -> Benchmark:
        return DENSE_BENCHMARK if dense else SPARSE_BENCHMARK

    def _of(self, source: Path) -> Benchmark:
        return self._kind((source / "x.npy").exists())

    def measure(
        self, engine: str, source: Path, place: Place, measure: str, key: Any
    ) -> dict[str, float]:
        """Open and read in a process that has done neither, then read again, then what is there now.

        Parameters
        ----------
        engine : str
            A name in `engines`.
        source : path
            The workload, as `save` left it.
        place : Place
            The store, over the road.
        measure : str
            The measure's name.
        key : slice or tuple
            What is read.

        Returns
        -------
        dict
            For ``cold``, ``warm`` and ``renewed`` the seconds under ``{measure}_{kind}``, medians of several
            reads for the last two; the round trips with ``_trips``, the requests with ``_requests``, the MB
            with ``_mb``; how many answers were right with ``_checked``.
        """
        made = self.engines[engine]
        load_packages(made.module)
        want = None if made.plain else self.wanted(source, key)
        endpoint = place.options["AWS_ENDPOINT_URL"]
        requests(endpoint)
        out: dict[str, float] = {}

        def took(kind: str, times: int, act: Any) -> None:
            seconds, seen = [], []
            for _ in range(times):
                start = time.perf_counter()
                got = act()
                seconds.append(time.perf_counter() - start)
                seen.append(requests(endpoint))
                if not made.plain:
                    self.check(got, want, key, f"{engine} {measure} {kind}")
            name = f"{measure}_{kind}"
            out[name] = statistics.median(seconds)
            # One that starts late, for the machine was busy, is taken for one that waited.
            out[f"{name}_trips"] = min(map(round_trips, seen))
            out[f"{name}_requests"] = min(map(len, seen))
            out[f"{name}_mb"] = min(sum(r.nbytes for r in found) for found in seen) / 1e6
            out[f"{measure}_checked"] = out.get(f"{measure}_checked", 0) + times

        opened: list[Any] = []

        def cold() -> Any:
            opened.append(made.open(place))
            return made.read(opened[0], key)

        took("cold", 1, cold)
        warm, renewed = AGAIN if measure in s3_report.SLICES else ALL_AGAIN
        took("warm", warm, lambda: made.read(opened[0], key))
        took("renewed", renewed, lambda: made.renew(opened[0], key))
        return out

    def child(self, arguments: list[str]) -> None:
        """Do what a fresh process does: write a store, or one measure of one engine."""
        engine, measure, source, name, endpoint, workload, size = arguments
        place = place_of(endpoint, name)
        if measure == "write":
            data, _ = self.load(Path(source))
            load_packages(self.engines[engine].module)
            self.engines[engine].write(place, data)
            tell({})
            return
        keys = self.workloads[workload]["keys" if size == "full" else "tiny_keys"]
        key = keys[measure.removesuffix("-link")]
        tell(self.measure(engine, Path(source), place, measure, key))

    def run(
        self, workload: str, engines: list[str], repeat: int, size: str, work: Path
    ) -> dict[str, Any]:
        """Write every store once, then measure all engines, interleaved round by round."""
        make, options = self.workloads[workload][size]
        source = work / f"{workload}.input"
        raw = self.save(make(**options), source)
        measures = s3_report.MEASURES[workload]
        engines = [e for e in engines if {*measures} & {*self.engines[e].reads}]
        samples: dict[str, dict[str, list[float]]] = {e: {} for e in engines}
        errors: dict[str, str] = {}
        with (
            S3Server(work / f"{workload}.server") as server,
            S3Road(server.port, DELAY_S) as road,
            S3Road(server.port, DELAY_S, LINK) as link,
        ):
            server.make_bucket(BUCKET)

            def child(engine: str, measure: str, endpoint: str) -> None:
                if engine in errors:
                    return
                name = f"{workload}-{engine}"
                arguments = [engine, measure, str(source), name, endpoint, workload, size]
                out = start_child(self.script, arguments)
                if isinstance(out, str):
                    errors[engine] = f"{measure}: {out}"
                    print(f"{workload}: {engine} failed: {errors[engine]}", file=sys.stderr)
                    return
                for figure, value in out.items():
                    samples[engine].setdefault(figure, []).append(value)

            for engine in engines:
                child(engine, "write", server.endpoint)
            os.sync()
            for number in range(repeat):
                turn = number % len(engines)
                for measure in measures:
                    for engine in engines[turn:] + engines[:turn]:
                        over = link if measure.endswith("-link") else road
                        if measure in self.engines[engine].reads:
                            child(engine, measure, over.endpoint)
                print(f"{workload}: round {number + 1} of {repeat}", file=sys.stderr)
        return {
            "raw_bytes": raw,
            "medians": {e: s3_report.medians(found) for e, found in samples.items()},
            "samples": samples,
            "errors": errors,
        }


BENCHMARK = S3()

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
