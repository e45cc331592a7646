"""What Spark is compared with: plain Delta and Parquet with the same rows, the driver, a source of one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import tensorlake_spark as tl

ROW = (1, 3, 256, 1024)
"""What one row holds: the chunk that the lake chooses for the photographs, 768 KiB."""

_TASKS_PER_CORE = 4


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
    rows = x.reshape(-1, int(np.prod(ROW)))
    Path(path).mkdir()
    schema = pa.schema({"values": pa.binary()})
    for first in range(0, len(rows), 128):
        with pq.ParquetWriter(
            f"{path}/{first:06}.parquet", schema, compression="zstd", compression_level=1,
            use_dictionary=False, write_statistics=False,
        ) as writer:  # fmt: skip
            for start in range(first, min(first + 128, len(rows)), 4):
                values = pa.array([r.tobytes() for r in rows[start : start + 4]], pa.binary())
                writer.write_table(pa.table({"values": values}))


def chunk_rows(session: SparkSession, files: Sequence[str]) -> DataFrame:
    """Return the chunks of ``.npy`` files as rows: what one would write by hand.

    Executors map the files and read what is theirs.
    """
    images = [
        (path, i, number * len(np.load(path, mmap_mode="r")) + i)
        for number, path in enumerate(files)
        for i in range(len(np.load(path, mmap_mode="r")))
    ]
    schema = pa.schema(
        {"id": pa.string(), "lo": pa.list_(pa.int64()), "hi": pa.list_(pa.int64()),
         "dtype": pa.string(), "values": pa.binary()}
    )  # fmt: skip
    height = ROW[2]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, i, place in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                image = np.load(path, mmap_mode="r")[i]
                tops = range(0, image.shape[1], height)
                lo = [[place, 0, y, 0] for y in tops]
                hi = [[place + 1, 3, y + height, image.shape[2]] for y in tops]
                parts = [image[:, y : y + height].tobytes() for y in tops]
                columns = ["photos"] * len(lo), lo, hi, ["uint8"] * len(lo), parts
                yield pa.RecordBatch.from_arrays(
                    [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)],
                    schema=schema,
                )

    tasks = _TASKS_PER_CORE * session.sparkContext.defaultParallelism
    frame = session.createDataFrame(images, "path string, i bigint, place bigint")
    return frame.repartitionByRange(tasks, "place").mapInArrow(
        read, "id string, lo array<bigint>, hi array<bigint>, dtype string, values binary"
    )


def write_plain_delta(session: SparkSession, files: Sequence[str], path: str) -> None:
    """Write the rows as a plain Delta table, zstd."""
    frame = chunk_rows(session, files)
    frame.write.format("delta").option("compression", "zstd").mode("overwrite").save(path)


def collect_and_write(session: SparkSession, files: Sequence[str], path: str, arrow: bool) -> None:
    """Bring the rows to the driver, put them together, and write the tensor there."""
    frame = chunk_rows(session, files).select("lo", "hi", "values")
    if arrow:
        table = frame.toArrow()
        lo, hi = table["lo"].to_pylist(), table["hi"].to_pylist()
        values: Sequence[Any] = [value.as_buffer() for value in table["values"]]
    else:
        lo, hi, values = zip(*frame.collect(), strict=True)
    x = np.empty(np.max(hi, axis=0), np.uint8)
    for start, stop, part in zip(lo, hi, values, strict=True):
        box = tuple(slice(a, b) for a, b in zip(start, stop, strict=True))
        x[box] = np.frombuffer(part, np.uint8).reshape(np.subtract(stop, start))
    tl.open(path).write("photos", x, mode="overwrite")
