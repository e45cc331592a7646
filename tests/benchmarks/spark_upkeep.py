"""What keeps a table fast, measured: small files brought together by Spark, rows in Morton order."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from workloads import field

import tensorlake_spark as tl
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, commit
from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.cluster.executor_runner import run_in
from tensorlake_spark.upkeep.optimize import optimize
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.source import source_of

DAY_BYTES = 200_000
BLOCK = (8, 32, 32)
BOX = np.s_[:, 192:256, 192:256]


def small_files(table: Path, days: int) -> np.ndarray:
    """Write a tensor that has a file of 200 kB for every day, in one commit; return a day of it."""
    storage = Storage(str(table))
    create_table(storage)
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, DAY_BYTES, np.uint8)

    def day(number: int) -> np.ndarray:
        return np.roll(noise, 7919 * number)[None]

    options = WriteOptions(layout="ftsf", block_shape=(1, DAY_BYTES), codec="raw")
    spec = new_spec("days", source_of(np.broadcast_to(noise, (days, DAY_BYTES))), options)
    encode = layout_of("ftsf").encode
    adds, totals = [], Totals()
    for number in range(days):
        rows = encode(day(number), (number, 0), spec)
        with FileWriter(storage) as writer:
            for row in rows:
                writer.add(spec, number, row)
            adds += writer.finish()
        totals += Totals.of(rows)
    with FileWriter(storage) as writer:
        writer.add_meta([spec], [days], [totals])
        adds += writer.finish()
    commit(storage, Change({"days": None}, adds))
    return day(days // 2)


def compaction(spark: Any, folder: Path, days: int) -> dict[str, float]:
    """Bring small files together by executors; megabytes a second, and what a day's slice reads."""
    table = folder / "small"
    day = small_files(table, days)
    start = time.perf_counter()
    done = optimize(Storage(str(table)), run=run_in(spark))
    seconds = time.perf_counter() - start
    ref = tl.open(table)["days"]
    np.testing.assert_array_equal(ref[days // 2], day[0])
    return {
        "rate": done.bytes_before / 1e6 / seconds,
        "seconds": seconds,
        "files before": done.files_before,
        "files after": done.files_after,
        "files of a day": len(ref.explain(days // 2).files),
    }


def zorder(spark: Any, folder: Path, side: int) -> dict[str, float]:
    """Bring a field's chunks into Morton order by executors; what a box on its inner axes reads."""
    lake = tl.open(folder / "field")
    x = field(side)
    ref = lake.write("field", x, block_shape=BLOCK)
    before = ref.explain(BOX).n_bytes
    start = time.perf_counter()
    done = optimize(Storage(lake.uri), "field", zorder=(1, 2), run=run_in(spark))
    seconds = time.perf_counter() - start
    after = lake["field"].explain(BOX).n_bytes
    np.testing.assert_array_equal(lake["field"][BOX], x[BOX])
    return {"before": before, "after": after, "rate": done.bytes_before / 1e6 / seconds}


def functions(spark: Any, count: int = 512, repeat: int = 3) -> dict[str, float]:
    """Return for functions of TENSOR columns how many megabytes of input they take in a second, in one task."""
    from pyspark.sql import functions as f

    from tensorlake_spark.spark import functions as tf

    tensor = (
        "named_struct('dtype', 'float32', 'shape', array(512L, 512L), "
        "'data', cast(repeat('wxyz', 262144) AS binary))"
    )
    frame = spark.range(0, count, 1, 1).select(f.expr(tensor).alias("t"))
    kinds = {
        "element-wise": f.sum(f.length(tf.tensor_add("t", 1.5)["data"])),
        "reduction": f.sum(tf.tensor_sum("t")),
    }
    rates = {}
    for name, column in kinds.items():
        times = []
        for _ in range(repeat + 1):
            start = time.perf_counter()
            frame.select(column).collect()
            times.append(time.perf_counter() - start)
        rates[name] = count * 1.048576 / statistics.median(times[1:])
    return rates


def upkeep(spark: Any, folder: Path, days: int = 10_000, side: int = 512) -> dict[str, Any]:
    """Return all figures of a table's upkeep."""
    return {
        "functions": functions(spark),
        "compaction": compaction(spark, folder, days),
        "zorder": zorder(spark, folder, side),
    }
