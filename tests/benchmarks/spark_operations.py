"""Operations on a stored tensor by Spark: a sum and a variance beside Spark's own full read, two workers beside one.

A part of ``make bench-operations``. Clusters of one and of two workers of one core compute on photographs. Each
cluster is a process of its own, and the clusters take turns; in a cluster the measures take turns after warm rounds,
which read an eighth of the tensor. Every measure is told when it is done.

Beside the time there is the processor time of the busiest worker: its JVM and its Python. On a quiet machine, where
every worker has a core, the two differ by what a worker waits for; on a busy one only the second says something.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_spark import WARM, timed
from harness import machine, positive, start_child, tell, versions
from spark_report import Bound
from spark_workers import cluster, workers_of
from workloads import photos

SCRIPT = Path(__file__)
ROUNDS = 2
WARM_SHARE = 8
IMAGES = 64  # of other noise; more are these, moved


def main() -> int:
    """Run every cluster, and write what it found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=positive, default=340, help="of 3.1 MB each (%(default)s)")
    parser.add_argument("--repeat", type=positive, default=3, help="rounds that count")
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    parser.add_argument("--child", choices=["measure"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        tell(measure(args.folder, args.count, args.repeat))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        nbytes = prepare(Path(folder), args.images)
        shared = ["measure", "--folder", folder, "--repeat", str(args.repeat)]
        found = {
            f"{count}-{number}": start_child(SCRIPT, [*shared, "--count", str(count)], aloud=True)
            for number in range(ROUNDS)
            for count in (1, 2)
        }
    report = {
        **machine(),
        "bytes": nbytes,
        "versions": versions(["tensorlake-spark", "pyspark", "pyarrow", "numpy"]),
        "command": "python " + " ".join(sys.argv),
        "found": found,
    }
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "spark-operations.json").write_text(json.dumps(report, indent=1))
    text = table(report)
    (args.out / "spark-operations.md").write_text(text)
    print(text)
    wrong = {name: part for name, part in found.items() if isinstance(part, str)}
    for name, said in wrong.items():
        print(f"{name}: {said}", file=sys.stderr)
    return 1 if wrong else 0


def prepare(folder: Path, images: int) -> int:
    """Write photographs as one tensor of a lake, and their sum beside it; return their bytes."""
    import tensorlake_spark as tl

    some = photos(min(images, IMAGES))
    lake = tl.open(folder / "lake")
    total = np.zeros(some.shape[1:], np.uint64)
    written = 0
    while written < images:
        part = np.roll(some, 17 * written, axis=-1)[: images - written]
        lake.write("photos", part, mode="append", axis=0)
        total += part.sum(axis=0)
        written += len(part)
    np.save(folder / "sum.npy", total)
    return lake["photos"].nbytes


def measure(folder: Path, count: int, repeat: int) -> dict[str, float]:
    """Return the median seconds of each measure on a cluster of so many workers, and its busiest worker's."""
    from tensorlake_spark.spark import compute

    spark = cluster(count)
    table = str(folder / "lake")
    whole = compute(spark, table, "photos")
    few = compute(spark, table, "photos", np.s_[: max(1, whole.shape[0] // WARM_SHARE)])

    def read(tensor: Any) -> None:
        options = {"id": "photos", "slice": f"0:{tensor.shape[0]}"}
        frame = spark.read.format("tensor").options(**options).load(table)
        frame.selectExpr("sum(length(tensor.data))").collect()

    measures = {"read": read, "sum": lambda x: x.sum(axis=0), "var": lambda x: x.var(axis=0)}
    times: dict[str, list[float]] = {}
    for number in range(WARM + repeat):  # of two executors each does half of the tasks
        tensor = few if number < WARM else whole
        for name, action in measures.items():
            before = workers_of()
            seconds = timed(partial(action, tensor))
            busiest = max(spent - before.get(pid, 0.0) for pid, spent in workers_of().items())
            print(
                f"  {count} worker(s), round {number + 1} of {WARM + repeat}, {name}: {seconds:.2f} s, "
                f"{busiest:.2f} s of the busiest worker",
                file=sys.stderr,
                flush=True,
            )
            if number >= WARM:
                times.setdefault(name, []).append(seconds)
                times.setdefault(f"{name}, processor", []).append(busiest)
    np.testing.assert_array_equal(whole.sum(axis=0), np.load(folder / "sum.npy"))
    spark.stop()
    return {name: statistics.median(found) for name, found in times.items()}


def table(report: dict[str, Any]) -> str:
    """Return the figures and the bounds as a table."""
    found: dict[str, Any] = report["found"]
    lines = [
        f"Date {report['date']}, {report['cpus']} CPUs ({report['machine']}), Python {report['python']}; "
        f"{report['bytes'] / 1e9:.2f} GB of photographs.",
        "",
        "Command: `" + report["command"] + "`",
        "",
        "| measure | bound | found | met |",
        "|---|---|---|---|",
    ]
    for bound in bounds(found):
        sign = ">=" if bound.least else "<="
        met = "yes" if bound.met else "no"
        lines.append(f"| {bound.what} | {sign} {bound.must} | {bound.figure:.2f} | {met} |")
    return "\n".join(lines) + "\n"


def bounds(found: dict[str, Any]) -> list[Bound]:
    """Return the bounds with what was found; the best round of each cluster counts."""
    best: dict[int, dict[str, float]] = {}
    for count in (1, 2):
        rounds = [part for name, part in found.items() if name.startswith(f"{count}-")]
        good = [part for part in rounds if not isinstance(part, str)]
        if good:
            best[count] = {name: min(part[name] for part in good) for name in good[0]}
    out = []
    for name, how in product(("sum", "var"), ("", ", processor")):
        if any(name + how not in of for of in best.values()):
            continue
        if len(best) == 2:
            gain = best[1][name + how] / best[2][name + how]
            out.append(Bound(f"{name}{how}, 1 to 2 workers of one core", gain, 1.7, least=True))
        out += [
            Bound(
                f"{name}{how}, {count} workers, times Spark's full read",
                of[name + how] / of["read" + how],
                1.3,
            )
            for count, of in best.items()
        ]
    return out


if __name__ == "__main__":
    sys.exit(main())
