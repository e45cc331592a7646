"""Spark's reads of the photographs: the whole workload beside plain Parquet, ten images beside one row.

``make bench-spark-dense``: one warm session on local[2], the measures interleaved, medians.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

sys.path.insert(0, str(Path(__file__).resolve().parent))

from workloads import photos

import tensorlake_spark as tl
from tensorlake_spark.spark import local_session


class OneRow(DataSource):
    """The least that a Python data source can do."""

    @classmethod
    def name(cls) -> str:
        return "onerow"

    def schema(self) -> str:
        return "i bigint"

    def reader(self, schema: Any) -> DataSourceReader:
        return OneRowReader()


class OneRowReader(DataSourceReader):
    """Yields one row."""

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (1,)


def plain_parquet(x: np.ndarray, path: str) -> None:
    """Write the same bytes as rows of 768 KiB, zstd, in files and row groups as the lake has them."""
    rows = x.reshape(-1, 256 * 1024 * 3)
    names = {"values": pa.binary()}
    writer = None
    for number, start in enumerate(range(0, len(rows), 4)):
        if number % 32 == 0:
            if writer is not None:
                writer.close()
            Path(path).mkdir(exist_ok=True)
            writer = pq.ParquetWriter(
                f"{path}/{number:04}.parquet", pa.schema(names), compression="zstd",
                compression_level=1, use_dictionary=False, write_statistics=False,
            )  # fmt: skip
        values = pa.array([r.tobytes() for r in rows[start : start + 4]], pa.binary())
        writer.write_table(pa.table({"values": values}))
    writer.close()


def main() -> int:
    """Run and print the table; the exit code says whether the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    args = parser.parse_args()
    x = photos()
    with tempfile.TemporaryDirectory() as folder:
        tl.open(f"{folder}/lake").write("photos", x)
        plain_parquet(x, f"{folder}/plain")
        spark = local_session(**{"spark.driver.memory": "4g"})
        spark.dataSource.register(OneRow)

        def tensor(text: str) -> Any:
            reader = spark.read.format("tensor").option("id", "photos").option("slice", text)
            return reader.load(f"{folder}/lake")

        def size_of(frame: Any, column: str) -> int:
            return int(frame.selectExpr(f"sum(length({column}))").collect()[0][0])

        def whole(frame: Any, column: str) -> None:
            assert size_of(frame, column) == x.nbytes

        measures: dict[str, Callable[[], object]] = {
            "all, data source": lambda: whole(tensor(""), "tensor.data"),
            "all, plain Parquet": lambda: whole(spark.read.parquet(f"{folder}/plain"), "values"),
            "all to Arrow, data source": lambda: tensor("").toArrow(),
            "all to Arrow, plain Parquet": lambda: spark.read.parquet(f"{folder}/plain").toArrow(),
            "ten images": lambda: size_of(tensor("30:40"), "tensor.data"),
            "one row of a Python data source": lambda: spark.read.format("onerow").load().collect(),
        }
        times: dict[str, list[float]] = {name: [] for name in measures}
        for number in range(args.repeat + 2):
            for name, measure in measures.items():
                start = time.perf_counter()
                measure()
                if number >= 2:  # the first rounds warm the session
                    times[name].append(time.perf_counter() - start)
        spark.stop()
    found = {name: statistics.median(values) for name, values in times.items()}
    ratio = found["all, data source"] / found["all, plain Parquet"]
    arrow = found["all to Arrow, data source"] / found["all to Arrow, plain Parquet"]
    over = found["ten images"] - found["one row of a Python data source"]
    lines = [
        f"Date {dt.date.today().isoformat()}, local[2], warm session, median of {args.repeat}; "
        f"pyspark {version('pyspark')}, pyarrow {version('pyarrow')}. Command: `make bench-spark-dense`",
        "",
        "| 201 MB of photographs | s |",
        "|---|---|",
        *(f"| {name} | {seconds:.3f} |" for name, seconds in found.items()),
        "",
        "| | measured | must | met |",
        "|---|---|---|---|",
        f"| all, times plain Parquet | {ratio:.2f} | <= 1.5 | {'yes' if ratio <= 1.5 else 'no'} |",
        f"| all to Arrow, times plain Parquet | {arrow:.2f} | | |",
        f"| ten images, over one row | {over:.3f} s | <= 0.15 s | {'yes' if over <= 0.15 else 'no'} |",
    ]
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "spark_dense.md").write_text("\n".join(lines) + "\n")
    (args.out / "spark_dense.json").write_text(json.dumps(times, indent=1))
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
