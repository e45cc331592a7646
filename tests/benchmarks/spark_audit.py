"""What keeps a table right, by executors: a check, purges and a vacuum of tables of large files."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from spark_workers import processor_time

from tensorlake_spark.audit.check import check
from tensorlake_spark.audit.purge import purge
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, commit
from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.cluster.executor_runner import run_in
from tensorlake_spark.upkeep.vacuum import vacuum
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.source import source_of

NAMES = ("check", "purge", "purge of a part", "vacuum")
ROW_BYTES = 1 << 20
ROWS = 32
"""Of each of two tensors in a file."""
ORPHANS = 20_000
WARM, WARM_FILES = 3, 4
"""Rounds on a small table, with so many files for each worker: every one has done as much before it is measured."""


def large_files(table: Path, files: int) -> None:
    """Write two tensors of noise that share so many files of 64 MiB, in one commit."""
    storage = Storage(str(table))
    create_table(storage)
    noise = np.random.default_rng(0).integers(0, 256, ROW_BYTES, np.uint8)
    shape = (files * ROWS, ROW_BYTES)
    options = WriteOptions(layout="ftsf", block_shape=(1, ROW_BYTES), codec="raw")
    source = source_of(np.broadcast_to(noise, shape))
    specs = [new_spec(name, source, options) for name in ("gone", "kept")]
    encode = layout_of("ftsf").encode
    adds, totals = [], {spec.id: Totals() for spec in specs}
    for file in range(files):
        with FileWriter(storage, 1 << 30) as writer:
            for step, spec in enumerate(specs):
                for seq in range(file * ROWS, (file + 1) * ROWS):
                    # Even for one tensor and odd for the other, so that no run of bytes is in both.
                    number = 2 * seq + step
                    values = np.roll(noise, 7919 * number)[None] ^ np.uint8(number % 256)
                    rows = encode(values, (seq, 0), spec)
                    totals[spec.id] += Totals.of(rows)
                    for row in rows:
                        writer.add(spec, seq, row)
            adds += writer.finish()
    with FileWriter(storage) as writer:
        writer.add_meta(specs, [shape[0]] * 2, [totals[spec.id] for spec in specs])
        adds += writer.finish()
    commit(storage, Change({spec.id: None for spec in specs}, adds))


def linked(table: Path, place: Path) -> Storage:
    """Return a copy of a table whose data files are those of the table: a job that deletes them deletes links."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(table, place, copy_function=_link)
    return Storage(str(place))


def _link(source: str, target: str) -> None:
    (os.link if source.endswith(".parquet") else shutil.copy)(source, target)


def with_orphans(table: Path, place: Path, count: int) -> Storage:
    """Return `linked`, with so many files that no version names."""
    storage = linked(table, place)
    one = next(place.glob("*.parquet"))
    for number in range(count):
        os.link(one, place / f"part-{number:06}.parquet")
    return storage


def audit(spark: Any, folder: Path, count: int, files: int, repeat: int = 2) -> dict[str, float]:
    """Return the median seconds of each job on so many workers, and the processor time of its longest way.

    That is the driver's and its busiest worker's: what the job takes at the least where each has a core.
    Small tables come first, for warmth.
    """
    warm, large = folder / f"warm-{count}", folder / "large"
    for table, size in ((warm, WARM_FILES * count), (large, files)):
        if not table.exists():
            large_files(table, size)
    run = run_in(spark)
    place = folder / f"copy-{count}"
    orphans = 0

    def do_check(storage: Storage) -> None:
        report = check(Snapshot.open(storage), None, False, run)
        if report.findings or report.tensors != 2:
            raise AssertionError(str(report))

    def do_purge(storage: Storage) -> None:
        purged(storage, None)

    def do_purge_part(storage: Storage) -> None:
        purged(storage, np.s_[:, : ROW_BYTES // 2])

    def purged(storage: Storage, region: Any) -> None:
        receipt = purge(storage, "gone", region, None, True, False, run)
        if not receipt.verified or not receipt.deleted:
            raise AssertionError(str(receipt))

    def do_vacuum(storage: Storage) -> None:
        if len(vacuum(Snapshot.open(storage), 0, False, run)) != orphans:
            raise AssertionError("other files than the orphans were deleted")

    found: dict[str, float] = {}
    jobs = (do_check, do_purge, do_purge_part, do_vacuum)
    for name, work in zip(NAMES, jobs, strict=True):
        times, ways = [], []
        for number in range(WARM + repeat):
            orphans = ORPHANS if name == "vacuum" else 0
            storage = with_orphans(large if number >= WARM else warm, place, orphans)
            driver, workers = processor_time()
            start = time.perf_counter()
            work(storage)
            if number >= WARM:
                times.append(time.perf_counter() - start)
                own, spent = processor_time()
                ways.append(own - driver + max(spent[pid] - workers[pid] for pid in spent))
            shutil.rmtree(place)
        found[name] = statistics.median(times)
        found[f"{name}, processor"] = statistics.median(ways)
    return found
