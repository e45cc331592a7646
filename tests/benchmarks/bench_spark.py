"""The Spark benchmark: ingestion, reading, two workers beside one, the driver's memory.

``make bench-spark`` writes a table and a plot. Six kinds of process: a warm session on local[2], in which
the measures take turns; one that optimises tables and runs functions; one that ingests beside others that optimise,
purge, overwrite and read; clusters of one and of two workers of one core, and as many processes without Spark; and
drivers that ingest 1 to 10,000 pieces.

``--large`` runs only the jobs on large files, a table of 1.5 GiB in 24 files, twice with one worker and twice with two,
in about ten minutes on two cores. Each worker is a process that is held to one core, and so is the Python it starts. The
driver has no core of its own: beside one worker it has the other core, beside two it takes from them. So the
ratio of the times is the least that a cluster gains. Beside it stands the ratio of the processor time on the longest
way, the driver's and that of its busiest worker, which other programs on the machine do not change much.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import spark_report
from harness import machine, peak, positive, start_child, tell, versions
from spark_workers import cluster, family, session_of
from workloads import photos

SCRIPT = Path(__file__)
PIECES = (1, 100, 10_000)
ROUNDS = 2
WARM = 5
TOGETHER_S = 180
LARGE_FILES = 24  # of 64 MiB each


def main() -> int:
    """Run every part in processes of their own, and write what they found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=positive, default=5, help="rounds that count")
    parser.add_argument("--files", type=positive, default=10, help="of 201 MB each")
    parser.add_argument("--images", type=positive, default=64, help="in a file")
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    parser.add_argument(
        "--large", action="store_true", help="only the jobs on large files, by workers"
    )
    parts = {p.__name__: p for p in (local, upkeep, at_once, workers, processes, large, memory)}
    parser.add_argument("--child", choices=tuple(parts), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        tell(parts[args.child](args))
        return 0
    if args.large:
        with tempfile.TemporaryDirectory() as folder:
            print(spark_report.large_table({"found": clusters(["large"], ["--folder", folder])}))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), args.files, args.images)
        shared = ["--repeat", str(args.repeat), "--folder", folder]
        found: dict[str, Any] = {"local": start_child(SCRIPT, ["local", *shared])}
        found["upkeep"] = start_child(SCRIPT, ["upkeep", *shared])
        found["at once"] = start_child(SCRIPT, ["at_once", *shared])
        found |= clusters(["workers", "processes", "large"], shared)
        for count in PIECES:
            found[f"pieces-{count}"] = start_child(
                SCRIPT, ["memory", *shared, "--count", str(count)]
            )
    report = {
        **machine(),
        "repeat": args.repeat,
        "versions": versions(["tensorlake-spark", "pyspark", "delta-spark", "pyarrow", "numpy"]),
        "command": "make bench-spark",
        "found": found,
    }
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "spark.json").write_text(json.dumps(report, indent=1))
    text = spark_report.table(report)
    (args.out / "spark.md").write_text(text)
    spark_report.plot(report, args.out / "spark.png")
    print(text)
    wrong = {name: part for name, part in found.items() if isinstance(part, str)}
    for name, said in wrong.items():
        print(f"{name}: {said}", file=sys.stderr)
    return 1 if wrong else 0


def clusters(names: Sequence[str], shared: Sequence[str]) -> dict[str, Any]:
    """Return what each of some parts measured with one worker and with two, round by round."""
    return {
        f"{name}-{count}-{rounds}": start_child(SCRIPT, [name, *shared, "--count", str(count)])
        for rounds in range(ROUNDS)
        for name in names
        for count in (1, 2)
    }


def prepare(folder: Path, files: int, images: int) -> None:
    """Write photographs to ``.npy`` files, each with other noise."""
    x = photos(images)
    (folder / "input").mkdir()
    for k in range(files):
        np.save(folder / "input" / f"{k:03}.npy", np.roll(x, 17 * k, axis=-1) + np.uint8(k))


def inputs(folder: Path) -> list[str]:
    """Return the files of `prepare`."""
    return sorted(map(str, (folder / "input").glob("*.npy")))


def timed(action: Callable[[], object]) -> float:
    """Return how long something takes, in seconds."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def turns(measures: dict[str, Callable[[], object]], repeat: int) -> dict[str, list[float]]:
    """Return the times of all measures, which take turns; the first round is for warmth only."""
    times: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(repeat + 1):
        for name, measure in measures.items():
            seconds = timed(measure)
            if number:
                times[name].append(seconds)
    return times


def ingest(spark: Any, table: Path, sources: Sequence[str]) -> None:
    """Write files as one tensor, in a lake of its own, by what the job calls."""
    from tensorlake_spark.spark.ingest.ingest_options import IngestOptions
    from tensorlake_spark.spark.ingest.ingestion import run

    shutil.rmtree(table, ignore_errors=True)
    run(spark, str(table), "photos", sources, IngestOptions(how="concat"))


def local(args: argparse.Namespace) -> dict[str, Any]:
    """Measure ingestion and reading in one session on two cores."""
    import spark_peers as peers
    from pyspark.sql import functions as f

    import tensorlake_spark as tl
    from tensorlake_spark.spark import functions as tf

    folder = Path(args.folder)
    files = inputs(folder)
    one = np.load(files[0])
    spark = session_of("local[2]")
    names = ("lake", "small", "delta", "parquet", "collected")
    lake, small, delta, parquet, collected = (folder / name for name in names)
    tl.open(small).write("photos", one)
    peers.plain_parquet(one, str(parquet))
    ingest(spark, lake, files)
    count = len(files) * len(one)
    part = max(1, count // 100)
    few = f"{count // 2}:{count // 2 + part}"

    def tensor(table: Path, text: str) -> Any:
        return (
            spark.read.format("tensor")
            .option("id", "photos")
            .option("slice", text)
            .load(str(table))
        )

    def plain(table: Path, text: str) -> Any:
        rows = spark.read.format("delta").load(str(table)).where(tf.slice_filter(text, "photos"))
        return rows.select(tf.tensor_decode(f.struct("*"), text).alias("tensor"))

    def size(frame: Any, column: str, nbytes: int) -> None:
        found = frame.selectExpr(f"sum(length({column}))").collect()[0][0]
        if found != nbytes:
            raise AssertionError(f"{found} bytes were read, {nbytes} are there")

    item = one[0].nbytes
    ten = min(10, len(one))
    writes = {
        "ingest": lambda: ingest(spark, folder / "again", files),
        "plain Delta": lambda: peers.write_plain_delta(spark, files, str(delta)),
    }
    collects = {
        "ingest, one file": lambda: ingest(spark, folder / "again", files[:1]),
        "collect, one file": lambda: peers.collect_and_write(spark, files[:1], collected, False),
        "toArrow, one file": lambda: peers.collect_and_write(spark, files[:1], collected, True),
    }
    reads = {
        "all": lambda: size(tensor(small, ""), "tensor.data", one.nbytes),
        "all, plain Delta and functions": lambda: size(
            plain(small, ""), "tensor.data", one.nbytes
        ),
        "all files": lambda: size(tensor(lake, ""), "tensor.data", count * item),
        "all files, plain Delta and functions": lambda: size(
            plain(lake, ""), "tensor.data", count * item
        ),
        "all, plain Parquet": lambda: size(
            spark.read.parquet(str(parquet)), "values", one.nbytes
        ),
        "to Arrow": lambda: tensor(small, "").toArrow(),
        "to Arrow, plain Parquet": lambda: spark.read.parquet(str(parquet)).toArrow(),
        "ten images": lambda: size(tensor(small, f"0:{ten}"), "tensor.data", ten * item),
        "1 %": lambda: size(tensor(lake, few), "tensor.data", part * item),
        "1 %, plain Delta and functions": lambda: size(
            plain(lake, few), "tensor.data", part * item
        ),
        "one row": lambda: spark.read.format("onerow").load().collect(),
    }  # fmt: skip
    times = turns(writes, min(args.repeat, 3)) | turns(collects, min(args.repeat, 3))
    times |= turns(reads, args.repeat)
    np.testing.assert_array_equal(tl.open(lake)["photos"][: len(one)], one)
    np.testing.assert_array_equal(tl.open(collected)["photos"][:], one)
    plan = tl.open(lake)["photos"].explain(few)
    spark.stop()
    return {
        "bytes": sum(np.load(f, mmap_mode="r").nbytes for f in files),
        "bytes of a file": one.nbytes,
        "times": times,
        "slice": {"planned": plan.n_bytes, "needed": needed(lake, few)},
    }


def needed(lake: Path, key: str) -> int:
    """Return the stored bytes of the chunks that a slice overlaps."""
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    start, stop = map(int, key.split(":"))
    rows = DeltaTable(lake).to_pyarrow_table(columns=["lo", "hi", "nnz", "values"])
    first, last = (pc.struct_field(rows[name], "d0") for name in ("lo", "hi"))
    inside = pc.and_(pc.less(first, stop), pc.greater(last, start))
    inside = pc.and_(inside, pc.greater(rows["nnz"], 0))
    return int(pc.sum(pc.binary_length(rows.filter(inside)["values"])).as_py())


def upkeep(args: argparse.Namespace) -> dict[str, Any]:
    """Measure in a session on two cores what keeps a table fast, and functions on a core."""
    import spark_upkeep

    spark = session_of("local[2]")
    found = spark_upkeep.upkeep(spark, Path(args.folder))
    spark.stop()
    return found


def at_once(args: argparse.Namespace) -> dict[str, Any]:
    """Return how often each of five kinds of work was done beside the others; every answer is held against NumPy's."""
    sys.path.append(str(SCRIPT.parents[1] / "support"))
    from together import together

    spark = session_of("local[2]")
    folder = Path(args.folder) / "at-once"
    folder.mkdir()
    done = together(spark, folder, TOGETHER_S)
    spark.stop()
    return {"seconds": TOGETHER_S, "done": done}


def workers(args: argparse.Namespace) -> dict[str, Any]:
    """Measure ingestion and reading on a cluster of so many workers."""
    folder = Path(args.folder)
    files = inputs(folder)
    spark = cluster(args.count)
    table = folder / f"workers-{args.count}"

    def read() -> None:
        frame = spark.read.format("tensor").option("id", "photos").load(str(table))
        frame.selectExpr("sum(length(tensor.data))").collect()

    found = {}
    for name, measure in {"ingest": lambda: ingest(spark, table, files), "read": read}.items():
        for _ in range(WARM):  # of two executors each does half of the tasks, and so is warm later
            measure()
        found[name] = statistics.median(timed(measure) for _ in range(3))
    spark.stop()
    return found


def large(args: argparse.Namespace) -> dict[str, Any]:
    """Measure the jobs that keep a table right, on large files, on a cluster of so many workers."""
    import spark_audit

    spark = cluster(args.count)
    found = spark_audit.audit(spark, Path(args.folder), args.count, LARGE_FILES)
    spark.stop()
    return found


def processes(args: argparse.Namespace) -> dict[str, Any]:
    """Measure so many processes of one core that do the same without Spark."""
    from spark_alone import alone

    folder = Path(args.folder)
    return alone(folder, inputs(folder), args.count)


def memory(args: argparse.Namespace) -> dict[str, Any]:
    """Return the peak memory of a job that ingests an array in so many pieces, in MB."""
    folder = Path(args.folder) / f"pieces-{args.count}"
    folder.mkdir()
    side = 64
    step = PIECES[-1] // args.count
    for k in range(args.count):
        first = np.arange(k * step, (k + 1) * step, dtype=np.uint16)
        piece = np.broadcast_to(first[:, None, None], (step, side, side))
        np.save(folder / f"{k:06}.npy", piece)
    spark = session_of("local[2]", **{"spark.driver.memory": "1g"})
    watch = Watch()
    with watch:
        seconds = timed(lambda: ingest(spark, folder / "lake", [str(folder / "*.npy")]))
    spark.stop()
    return {"peak": peak(), "workers": watch.python, "jvm": watch.java, "seconds": seconds}


class Watch:
    """Looks, while it is entered, at how much memory the descendants of this process have taken, in MB.

    Attributes
    ----------
    python, java : float
        The greatest peak of one process of each kind.
    """

    def __init__(self) -> None:
        self.python = self.java = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            for name, most in _descendants():
                if "java" in name:
                    self.java = max(self.java, most)
                elif "python" in name:
                    self.python = max(self.python, most)


def _descendants() -> list[tuple[str, float]]:
    """Return the name and the peak in MB of every process that this one, or one of those, started."""
    out = []
    for pid in family() - {os.getpid()}:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
            if "VmHWM" in fields:
                most = int(fields["VmHWM"].split()[0]) * 1024 / 1e6
                out.append((fields["Name"].strip(), most))
    return out


if __name__ == "__main__":
    sys.exit(main())
