"""Samples of every kind, stored in several files and row groups."""

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.log.commit import Change, commit
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.samples.sample_writer import SampleWriter

IMAGE = pa.struct([("data", pa.binary()), ("format", pa.string()), ("height", pa.int32())])
SCHEMA = pa.schema(
    [
        pa.field("sid", pa.int64(), nullable=False),
        pa.field("image", IMAGE),
        pa.field("label", pa.int32()),
        pa.field("g", pa.struct([("image", IMAGE), ("when", pa.timestamp("us", "UTC"))])),
        pa.field("tags", pa.list_(pa.struct([("data", pa.binary()), ("n", pa.int64())]))),
    ]
)


def rows(first, count, seed=0):
    """Samples of every kind: nulls at every depth, payloads that are empty, short and long."""
    rng = np.random.default_rng([seed, first])
    blobs = [rng.bytes(int(n)) for n in rng.integers(0, 40, count)]

    def image(number):
        if number % 7 == 3:
            return None
        data = None if number % 7 == 5 else blobs[number - first]
        return {"data": data, "format": "jpeg", "height": number}

    numbers = range(first, first + count)
    groups = [None if n % 5 == 2 else {"image": image(n + 0), "when": n * 1000} for n in numbers]
    tags = [
        None if n % 4 == 1 else [{"data": b"x" * k, "n": k} for k in range(n % 3)] for n in numbers
    ]
    columns = [
        pa.array(numbers, pa.int64()),
        pa.array([image(n) for n in numbers], IMAGE),
        pa.array([None if n % 11 == 0 else n % 10 for n in numbers], pa.int32()),
        pa.array(groups, SCHEMA.field("g").type),
        pa.array(tags, SCHEMA.field("tags").type),
    ]
    return pa.table(columns, schema=SCHEMA)


def put(storage, table, **sizes):
    with SampleWriter(storage, SCHEMA, **sizes) as writer:
        writer.add(table)
        files = writer.finish()
    return commit(storage, Change({}, files, operation="extend", kind=SAMPLES))


def everything():
    return pa.concat_tables([rows(0, 500), rows(500, 300)]).combine_chunks()


def same(found, wanted):
    return found.combine_chunks().equals(wanted.combine_chunks())
