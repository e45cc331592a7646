"""Ingestion of a folder of classes by the job, on one worker of a core and on two.

``bench_samples.py`` starts it with the Python that has Spark. Rounds take turns, each in a cluster of its own; the
executors are warm, and have a core each.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import sample_media
from harness import start_child, tell
from spark_workers import cluster

COUNT = 8_000
WARM, AGAIN = 3, 3


def prepare(folder: Path, media: sample_media.Media) -> None:
    """Write the images to files, in a folder for each class."""
    names = sample_media.names()
    for name in names:
        (folder / name).mkdir(parents=True)
    for k, (image, label) in enumerate(zip(media.images, media.labels.tolist(), strict=True)):
        (folder / names[label] / f"{k:06}.jpg").write_bytes(image)


def job(session: Any, source: Path, table: Path) -> float:
    """Run the job once and return its seconds."""
    from tensorlake_spark.jobs.ingest import main as ingest

    shutil.rmtree(table, ignore_errors=True)
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = ingest(["--dataset", str(table), str(source)], session)
    seconds = time.perf_counter() - start
    if code:
        raise SystemExit(said.getvalue().strip().splitlines()[-1])
    return seconds


def child(workers: int, source: Path, table: Path) -> dict[str, float]:
    """Measure the job on a cluster of so many workers."""
    import tensorlake_spark as tl

    spark = cluster(workers)
    for _ in range(WARM):
        job(spark, source, table)
    seconds = statistics.median(job(spark, source, table) for _ in range(AGAIN))
    spark.stop()
    return {"seconds": seconds, "samples": len(tl.dataset(str(table), create=False))}


def main() -> int:
    """Measure both in turns, and print a table and the ratio."""
    if sys.argv[1:2] == ["--child"]:
        tell(child(int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])))
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--media", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    source = args.work / "classes"
    prepare(source, sample_media.load(sample_media.cached("photos", args.count, args.media)))
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(args.repeat):
        for workers in seconds:
            table = args.work / f"ingested-{workers}"
            found = start_child(Path(__file__), [str(workers), str(source), str(table)])
            if isinstance(found, str):
                print(found, file=sys.stderr)
                return 1
            if found["samples"] != args.count:
                print(f"{found['samples']} samples of {args.count}", file=sys.stderr)
                return 1
            seconds[workers].append(found["seconds"])
    one, two = (statistics.median(seconds[workers]) for workers in (1, 2))
    print("| workers | s | images/s |")
    print("|---|---|---|")
    for workers, took in ((1, one), (2, two)):
        print(f"| {workers} | {took:.2f} | {args.count / took:,.0f} |")
    print(f"RATIO {one / two:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
