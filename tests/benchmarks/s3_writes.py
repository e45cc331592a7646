"""Small writes on S3: round trips, requests and times, beside plain appends by deltalake and arrays of Zarr.

Run as a program, or with ``make bench-s3``::

    python tests/benchmarks/s3_writes.py [ROUNDS]

Every request takes 20 ms longer. An engine is a fresh process, which writes each thing several times and tells the
median; what is made first is left out, for it makes the table. Zarr commits nothing: a reader may see half of a write.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))  # the server is there
sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import run_script
from s3_road import S3Road, requests, round_trips
from s3server import S3Server

DELAY_S = 0.02
TIMES = 5
ENGINES = ("tensorlake", "tensorlake without boto3", "deltalake", "zarr")

Act = Callable[[], object]


def tensor() -> Any:
    """Return one small tensor, of 48 KiB."""
    return np.random.default_rng(0).integers(0, 256, (4, 3, 64, 64), np.uint8)


def _ours(url: str, options: dict[str, str]) -> Iterator[tuple[str, Act]]:
    import tensorlake_spark as tl

    x = tensor()
    lake = tl.open(url, storage_options=options)
    lake.write("x", x)
    yield "write a new tensor", lambda: lake.write(f"t/{uuid.uuid4()}", x)
    yield "append to a tensor", lambda: lake.write("x", x, mode="append")
    yield "assign one element", lambda: lake["x"].__setitem__((0, 0, 0, 0), 7)
    ds = tl.dataset(f"{url}-samples", {"n": "int32", "b": "bytes"}, storage_options=options)
    ds.extend({"n": [0], "b": [x.tobytes()]})
    yield "extend a dataset", lambda: ds.extend({"n": [1], "b": [x.tobytes()]})
    yield "update a sample", lambda: ds.update([1], {"n": 5})


def _without_boto3(url: str, options: dict[str, str]) -> Iterator[tuple[str, Act]]:
    from tensorlake_spark.delta.store import s3_objects

    s3_objects.has_client = lambda: False  # as where it is not installed
    return _ours(url, options)


def _deltalake(url: str, options: dict[str, str]) -> Iterator[tuple[str, Act]]:
    """A row of the same bytes: to a handle that is kept, and that is told of what came since."""
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    rows = pa.table({"n": pa.array([0], pa.int32()), "b": [tensor().tobytes()]})
    write_deltalake(url, rows, storage_options=options)
    table = DeltaTable(url, storage_options=options)

    def append() -> None:
        table.update_incremental()
        write_deltalake(table, rows, mode="append")

    yield "extend a dataset", append


def _zarr(url: str, options: dict[str, str]) -> Iterator[tuple[str, Act]]:
    import zarr
    from obstore.store import S3Store
    from zarr.storage import ObjectStore

    x = tensor()
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    found = S3Store(
        bucket,
        prefix=prefix,
        endpoint=options["AWS_ENDPOINT_URL"],
        access_key_id=options["AWS_ACCESS_KEY_ID"],
        secret_access_key=options["AWS_SECRET_ACCESS_KEY"],
        region=options["AWS_REGION"],
        client_options={"allow_http": True},
        virtual_hosted_style_request=False,
    )
    store = ObjectStore(found)
    yield (
        "write a new tensor",
        lambda: zarr.create_array(store, name=str(uuid.uuid4()), data=x, chunks=(1, 3, 64, 64)),
    )
    long = zarr.create_array(store, name="long", data=x, chunks=(1, 3, 64, 64))
    yield "append to a tensor", lambda: long.append(x)
    yield "assign one element", lambda: long.__setitem__((0, 0, 0, 0), 7)


_MAKERS = dict(zip(ENGINES, (_ours, _without_boto3, _deltalake, _zarr), strict=True))


def measure(engine: str, url: str, options: dict[str, str]) -> dict[str, dict[str, float]]:
    """Do what an engine does several times; return milliseconds, round trips and requests of each.

    Parameters
    ----------
    engine : str
        One of `ENGINES`.
    url : str
        An empty place.
    options : dict of str to str
        Its store's, with the endpoint of a road.
    """
    out = {}
    endpoint = options["AWS_ENDPOINT_URL"]
    for name, act in _MAKERS[engine](url, options):
        act()
        seconds, seen = [], []
        for _ in range(TIMES):
            requests(endpoint)
            start = time.perf_counter()
            act()
            seconds.append(time.perf_counter() - start)
            seen.append(requests(endpoint))
        out[name] = {
            "ms": 1e3 * statistics.median(seconds),
            "trips": min(map(round_trips, seen)),  # load can only add to them
            "requests": statistics.median(map(len, seen)),
        }
    return out


_CHILD = """
import json, os, sys
sys.path[:0] = json.loads(sys.argv[1])
import s3_writes
print(json.dumps(s3_writes.measure(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))))
"""


def run(rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return the medians of all engines, measured in turns."""
    found: dict[str, list[dict[str, dict[str, float]]]] = {engine: [] for engine in ENGINES}
    with (
        tempfile.TemporaryDirectory() as folder,
        S3Server(Path(folder) / "server") as server,
        S3Road(server.port, DELAY_S) as road,
    ):
        server.make_bucket("bucket")
        options = {**server.options, "AWS_ENDPOINT_URL": road.endpoint}
        for number in range(rounds):
            turn = number % len(ENGINES)
            for engine in ENGINES[turn:] + ENGINES[:turn]:
                url = f"s3://bucket/{uuid.uuid4()}"
                paths = json.dumps([path for path in sys.path if path])
                found[engine].append(run_script(_CHILD, paths, engine, url, json.dumps(options)))
    return {
        engine: {
            act: {what: statistics.median(r[act][what] for r in runs) for what in runs[0][act]}
            for act in runs[0]
        }
        for engine, runs in found.items()
    }


def table(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return the figures as a table in Markdown.

    Examples
    --------
    >>> print(table({"zarr": {"append": {"ms": 51.2, "trips": 2, "requests": 3}}}))
    | round trips, requests, ms | zarr |
    |---|---|
    | append | 2, 3, 51 |
    """
    acts = list(dict.fromkeys(act for measured in found.values() for act in measured))
    lines = [["round trips, requests, ms", *found], ["---"] * (1 + len(found))]
    for act in acts:
        cells = [
            f"{one['trips']:.0f}, {one['requests']:.0f}, {one['ms']:.0f}"
            if (one := measured.get(act))
            else ""
            for measured in found.values()
        ]
        lines.append([act, *cells])
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text[1] = "|" + "---|" * (1 + len(found))
    return "\n".join(text)


if __name__ == "__main__":
    os.environ.pop("TENSORLAKE_KERNELS", None)
    print(table(run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)))
