"""The benchmark of operations on sparse tensors in memory, beside what others offer.

``make bench-operations`` runs it. Every engine has a process of its own for every tensor. A result is compared with
ours before it is timed. Times are of the processor, with one thread for the others; with ``--clock`` by the clock, where
every engine has as many threads as it likes. The best of several calls counts; the first call is shown for ours, since
it may make what the others find ready. PyTorch takes part where it is installed.

Every operation is told when it is done. One that says nothing for long, as it compiles or computes where no signal
comes through, is ended with its process, and a new process does the others.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from operation_engines import CLOCK, ENGINES, WORST_S, Plain, Work, same, work

import tensorlake_spark

TENSORS = {
    "3-d": ((300, 400, 500), 1_000_000),
    "4-d": ((60, 24, 200, 300), 1_000_000),
    "matrix": ((100_000, 100_000), 1_000_000),
}
TINY = {"3-d": ((6, 5, 4), 40), "4-d": ((4, 3, 5, 6), 60), "matrix": ((40, 40), 200)}
OURS = ("numpy", "fast")
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
STUCK_S = 12 * WORST_S
"""So long an operation may take with compiling and all its calls, before its process is ended."""
MUST = {"numpy": 1.2, "fast": 1.0}
FIFTH = 0.2
"""Of `sparse`, what `FIFTHS` may take, by the quicker of our bodies."""
FIFTHS = ("x + y", "x * y", "sum, last axis", "var, last axis", "argmax, last axis", "mttkrp, first mode")  # fmt: skip
OF_SCIPY = ("A v", "v A", "A B, dense", "A B", "triangle", "triangle, 16 sides")
"""Products and triangles: without compiled loops only SciPy sets the bound."""
SECONDS = {"put 1,000": 0.005, "100,000 puts, build": 1.0}
"""What may take so long, whatever others take."""


class TooLongError(Exception):
    """A call took more than `WORST_S`."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TooLongError in what takes longer."""

    def stop(*_: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def builder_calls(w: Work) -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return for each operation of a builder what comes before it, and itself."""
    import tensorlake_spark as tl

    x = tl.SparseTensor(w.coords(0), w.values[0], w.shape)
    rng = np.random.default_rng(11)
    count = 100_000 if len(w.places[0]) > 1000 else 50
    cells = [rng.integers(0, n, count) for n in w.shape]
    thousand = tuple(axis[: min(1000, count)] for axis in cells)
    single = list(zip(*(axis.tolist() for axis in cells)))

    def put(builder: Any) -> Any:
        builder[thousand] = 1.5
        return builder

    def puts(builder: Any) -> Any:
        for cell in single:
            builder[cell] = 2.5
        return builder.build()

    return {
        "put 1,000": (x.builder, put),
        "100,000 puts, build": (lambda: tl.SparseBuilder(w.shape, "f8"), puts),
    }


def now() -> float:
    """Return the seconds that are measured: of the processor, or by the clock."""
    return time.perf_counter() if CLOCK in os.environ else time.process_time()


def timed(call: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
    """Return the time of a call, after what comes before it."""
    arguments = () if before is None else (before(),)
    gc.disable()
    start = now()
    call(*arguments)
    taken = now() - start
    gc.enable()
    return taken


def child(
    tensor: str, engine: str, folder: Path, repeat: int, tiny: bool, skip: Collection[str] = ()
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the name of every operation of an engine, and after it again its first and best time, or why there is none."""
    small = {} if tiny else ENGINES[engine].operations(work(*TINY[tensor]))
    w = work(*(TINY if tiny else TENSORS)[tensor])
    for name, call in ENGINES[engine].operations(w).items():
        if name in skip:
            continue
        yield name, None
        with suppress(Exception):  # it is said below; here packages are imported and compiled
            small.get(name, call)()
        yield name, operation(call, engine, folder / f"{tensor} {name}.npz".replace("/", "_"), repeat, tiny)  # fmt: skip
    if engine in OURS and tensor == "3-d":
        for name, (before, call) in builder_calls(w).items():
            yield name, None
            try:
                best = min(timed(call, before) for _ in range(min(3, repeat)))
                yield name, {"first": best, "best": best}
            except Exception as error:
                yield name, {"error": f"{type(error).__name__}: {error}"[:200]}


def operation(
    call: Callable[[], Any], engine: str, file: Path, repeat: int, tiny: bool
) -> dict[str, Any]:
    """Return the first and the best time of an operation in seconds, or why there is none."""
    try:
        with limit(60 if tiny else WORST_S):
            start = now()
            result = call()
            first = now() - start
        compare(ENGINES[engine].plain(result), file, engine)
        del result
        often = repeat if first < 1 else 2
        return {"first": first, "best": min(timed(call) for _ in range(often))}
    except TooLongError:
        return {"over": WORST_S}
    except Exception as error:  # what a package cannot do is a gap in the table
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def compare(got: Plain, file: Path, engine: str) -> None:
    """Keep a result of ours, or hold another one to it."""
    if not file.exists():
        if engine in OURS:
            places = got.places if got.places is not None else np.zeros(0, np.int64)
            np.savez(file, values=got.values, places=places, dense=got.places is None)
        return
    with np.load(file) as kept:
        want = Plain(None if kept["dense"] else kept["places"], kept["values"])
    if not same(got, want):
        raise AssertionError("the answer is not ours")


def run(tensor: str, engine: str, folder: Path, repeat: int, tiny: bool) -> dict[str, Any]:
    """Return what `child` finds in a fresh process, and in others where an operation has to be ended."""
    kernels = "fast" if engine == "fast" else "numpy"
    threads = {} if CLOCK in os.environ else dict.fromkeys(ONE_THREAD, "1")
    environment = {**os.environ, "TENSORLAKE_KERNELS": kernels, "NUMBA_DISABLE_JIT": "0", **threads}
    command = [sys.executable, __file__, "--child", tensor, engine, str(folder)]
    command += ["--repeat", str(repeat), *["--tiny"] * tiny]
    found: dict[str, Any] = {}
    begun: str | None = ""
    while begun is not None:
        begun, since = None, time.monotonic()
        for name, one in told([*command, "--skip", *found], environment):
            begun, since = (name, time.monotonic()) if one is None else (None, since)
            if one is not None:
                found[name] = one
                print(f"  {tensor}, {engine}: {name}: {shown(one)} ms", file=sys.stderr, flush=True)
        if begun is not None and begun not in found:
            is_stuck = time.monotonic() - since > STUCK_S - 1
            found[begun] = {"over": STUCK_S} if is_stuck else {"error": "its process broke off"}
            print(f"  {tensor}, {engine}: {begun}: ended", file=sys.stderr, flush=True)
    return found or {"all": {"error": "it said nothing"}}


def told(
    command: list[str], environment: dict[str, str], patience: float = STUCK_S
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield what a process tells; one that is silent for too long is ended."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        lines: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=lambda: [*map(lines.put, process.stdout), lines.put("")])  # type: ignore[arg-type]
        reader.start()
        while True:
            try:
                line = lines.get(timeout=patience)
            except queue.Empty:
                process.kill()
                break
            if not line:
                break
            if line.startswith("RESULT "):
                name, one = json.loads(line[7:])
                yield name, one
        reader.join()


def installed(name: str) -> str | None:
    """Return the version of an engine's package, or None."""
    if name in OURS:
        return tensorlake_spark.__version__
    try:
        return version(ENGINES[name].package)
    except PackageNotFoundError:
        return None


def seconds(found: dict[str, Any] | None) -> float | None:
    """Return the best time, the limit where that was passed, None where there is none."""
    return None if not found or "error" in found else found.get("best", found.get("over"))


def verdicts(name: str, engines: dict[str, dict[str, Any]]) -> list[tuple[str, float, str, float]]:
    """Return what must hold of an operation: whose time, its share of the bound, of which peer, and at most what."""
    times = {engine: seconds(found) for engine, found in engines.items()}
    out = []
    for body in OURS:
        mine = times.get(body)
        if mine is None:
            continue
        if name in SECONDS:
            out.append((body, mine / SECONDS[name], f"{SECONDS[name] * 1e3:g} ms", 1.0))
        among = ["SciPy"] if body == "numpy" and name in OF_SCIPY else [e for e in ENGINES if ENGINES[e].sets_bound]  # fmt: skip
        peers = {peer: t for peer in among if (t := times.get(peer)) is not None}
        if peers:
            best = min(peers, key=lambda peer: peers[peer])
            out.append((body, mine / peers[best], best, MUST[body]))
    bodies = [t for body in OURS if (t := times.get(body)) is not None]
    theirs = times.get("sparse")
    if name in FIFTHS and bodies and theirs is not None:
        out.append(("best", min(bodies) / theirs, "sparse", FIFTH))
    return out


def table(tensor: str, found: dict[str, dict[str, Any]], tiny: bool) -> str:
    """Return what was measured with a tensor as text; `found` has the engines' operations."""
    shape, count = (TINY if tiny else TENSORS)[tensor]
    engines = list(found)
    lines = [
        f"## {tensor}: {' x '.join(map(str, shape))}, {count:,} elements", "",
        "| operation | " + " | ".join(f"{b} / fastest" for b in OURS) + " | best / sparse | missed | first call ms | "
        + " | ".join(f"{e} ms" for e in engines) + " |",
        "|---" * (6 + len(engines)) + "|",
    ]  # fmt: skip
    names = dict.fromkeys(name for ops in found.values() for name in ops)
    for name in names:
        each = {engine: ops[name] for engine, ops in found.items() if name in ops}
        held = verdicts(name, each)
        ratios = {(body, must): (ratio, peer) for body, ratio, peer, must in held}
        cells = [
            " ".join(f"{r:.2f} {p}" for b, r, p, m in held if b == body) or "-" for body in OURS
        ]
        fifth = ratios.get(("best", FIFTH))
        cells.append(f"{fifth[0]:.2f}" if fifth else "-")
        cells.append(", ".join(f"{b} <= {m:g}" for b, r, _, m in held if r > m) or "")
        first = each.get("fast", each.get("numpy", {})).get("first")
        cells.append("-" if first is None else f"{first * 1e3:.1f}")
        cells += [shown(each.get(engine)) for engine in engines]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    errors = {
        f"{e}, {n}: {r['error']}"
        for e, ops in found.items()
        for n, r in ops.items()
        if "error" in r
    }
    return "\n".join([*lines, "", *(f"- {error}" for error in sorted(errors))]) + "\n"


def shown(found: dict[str, Any] | None) -> str:
    """Return a time in ms as text."""
    if not found or "error" in found:
        return "-" if not found else "error"
    return f"{found['best'] * 1e3:.1f}" if "best" in found else f"over {found['over'] * 1e3:.0f}"


def main(argv: list[str] | None = None) -> int:
    """Print a table for each tensor; return 1 if something that must be is not."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="small tensors, to see that it runs")
    parser.add_argument("--clock", action="store_true", help="by the clock, with all threads")
    parser.add_argument("--repeat", type=int, default=7, help="how often each operation is timed")
    parser.add_argument("--tensors", nargs="*", default=list(TENSORS), choices=TENSORS)
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--skip", nargs="*", default=[], help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.child:
        tensor, engine, folder = given.child
        for told_ in child(tensor, engine, Path(folder), given.repeat, given.tiny, given.skip):
            print("RESULT " + json.dumps(told_), flush=True)
        return 0
    if given.clock:
        os.environ[CLOCK] = "1"  # for the processes of the engines, too
    known = {engine: v for engine in given.engines if (v := installed(engine)) is not None}
    how = "by the clock, all threads" if CLOCK in os.environ else "processor time, one thread"
    print(", ".join(f"{e} {v}" for e, v in known.items()) + f"; {how}\n", flush=True)
    missed = False
    for tensor in given.tensors:
        with tempfile.TemporaryDirectory() as folder:
            measured = {
                engine: run(tensor, engine, Path(folder), given.repeat, given.tiny)
                for engine in known
            }
        print(table(tensor, measured, given.tiny), flush=True)
        for name in dict.fromkeys(n for ops in measured.values() for n in ops):
            each = {engine: ops[name] for engine, ops in measured.items() if name in ops}
            missed |= any(ratio > must for _, ratio, _, must in verdicts(name, each))
    return int(missed and not given.tiny)


if __name__ == "__main__":
    sys.exit(main())
