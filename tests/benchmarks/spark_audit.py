"""What keeps a table right, by executors: a check, a purge and a vacuum of tables of large files."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tensorlake_spark.audit.check import check
from tensorlake_spark.audit.purge import purge
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, commit
from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.cluster.runner import run_in
from tensorlake_spark.upkeep.vacuum import vacuum
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.source import source_of

NAMES = ("check", "purge", "vacuum")
ROW_BYTES = 1 << 20
ROWS = 32
"""Of each of two tensors in a file."""
ORPHANS = 20_000


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


def audit(spark: Any, folder: Path, count: int, files: int, repeat: int = 3) -> dict[str, float]:
    """Return the median seconds of each job on so many workers, and the share of it that this process computes."""
    table = folder / "large"
    if not table.exists():
        large_files(table, files)
    run = run_in(spark)
    places = {name: folder / f"{name}-{count}" for name in NAMES}

    def do_check(storage: Storage) -> None:
        report = check(Snapshot.open(storage), None, False, run)
        if report.findings or report.tensors != 2:
            raise AssertionError(str(report))

    def do_purge(storage: Storage) -> None:
        receipt = purge(storage, "gone", None, None, True, False, run)
        if not receipt.verified or len(receipt.deleted) < files:
            raise AssertionError(str(receipt))

    def do_vacuum(storage: Storage) -> None:
        if len(vacuum(Snapshot.open(storage), 0, False, run)) != ORPHANS:
            raise AssertionError("other files than the orphans were deleted")

    jobs: dict[str, tuple[Callable[[], Storage], Callable[[Storage], None]]] = {
        "check": (lambda: linked(table, places["check"]), do_check),
        "purge": (lambda: linked(table, places["purge"]), do_purge),
        "vacuum": (lambda: with_orphans(table, places["vacuum"], ORPHANS), do_vacuum),
    }
    found: dict[str, float] = {}
    for name, (prepare, work) in jobs.items():
        times, own = [], []
        for number in range(repeat + 1):  # the first round is for warmth
            storage = prepare()
            start, mine = time.perf_counter(), time.process_time()
            work(storage)
            if number:
                times.append(time.perf_counter() - start)
                own.append(time.process_time() - mine)
            shutil.rmtree(places[name])
        found[name] = statistics.median(times)
        found[f"{name}, driver"] = statistics.median(own) / found[name]
    return found
