"""Sequences that slide, in layout ``window`` beside Parquet: bytes of the files, reads, decoding.

``python tests/benchmarks/sequences.py`` prints a line for each figure: its ratio first, then the bound that it
must keep. Parquet is a column of fixed-size lists of int64, zstd at level 3, no dictionary. Both are read back and
compared before anything is timed. The times of decoding are processor time of one thread.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tensorlake_spark as tl
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.indexing import select
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.row import data_batch
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]

IDS = {"ids below 10^6": 10**6, "64-bit ids": 2**63 - 1}
"""What the ids of a sequence are drawn from, alike likely."""


def sequences(users: int, rows: int, width: int, most: int, seed: int = 0) -> Array:
    """Return clicks of some users over time, the newest first: int64, shape (users * rows, width).

    From a row to the next one of a user 0 to 3 clicks are dropped at the tail, and as many are new at the head.
    One row in a hundred is edited: one to three of its elements are others, in this row only.
    """
    rng = np.random.default_rng(seed)
    drops = rng.integers(0, 4, (users, rows))
    drops[:, 0] = 0
    clicked = drops.cumsum(axis=1)
    out = np.empty((users, rows, width), np.int64)
    for user, counts in enumerate(clicked):
        timeline = rng.integers(0, most, width + counts[-1])
        at = counts[-1] - counts
        out[user] = timeline[at[:, None] + np.arange(width)]
    flat = out.reshape(-1, width)
    for row in np.flatnonzero(rng.random(len(flat)) < 0.01):
        places = rng.integers(0, width, rng.integers(1, 4))
        flat[row, places] = rng.integers(0, most, len(places))
    return flat


def data_bytes(uri: str) -> int:
    """Return the bytes of the data files of a lake: rows, metadata and footers."""
    return int(np.sum(Snapshot.open(Storage(uri)).files.size))


def parquet_bytes(path: Path, x: Array) -> int:
    """Write a Parquet file, read it back, and return its bytes."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])
    table = pa.table({"ids": column.cast(pa.list_(pa.int64(), x.shape[1]))})
    pq.write_table(table, path, compression="zstd", compression_level=3, use_dictionary=False)
    back = pq.read_table(path)["ids"].combine_chunks().flatten().to_numpy()
    assert np.array_equal(back.reshape(x.shape), x)
    return path.stat().st_size


def timed(clock: Callable[[], float], act: Callable[[int], object], times: int) -> float:
    """Return the median time of an act, which is given the number of the turn."""
    spent = []
    for turn in range(times):
        start = clock()
        act(turn)
        spent.append(clock() - start)
    return median(spent)


def decode_speed(x: Array) -> float:
    """Return the bytes per second at which encoded rows become the array, of processor time."""
    layout = layout_of("window")
    block = layout.default_block(x.shape, x.dtype)
    codec = layout.choose_codec(x[: block[0]])
    spec = TensorSpec("x", x.shape, x.dtype, "window", block, codec=codec)
    selection = select(..., x.shape)
    rows = [
        row
        for piece in layout.pieces(spec, selection.box)
        for row in layout.encode(x[piece.slices()], piece.lo, spec)
    ]
    batch = data_batch(spec, range(len(rows)), rows)
    result = layout.new_result(spec, selection, True)
    assert layout.decode(batch, spec, selection, result).nnz == x.size
    assert np.array_equal(layout.finish(spec, selection, result), x)

    def decode(_: int) -> None:
        layout.decode(batch, spec, selection, result)

    return x.nbytes / timed(time.process_time, decode, 15)


def measured(name: str, x: Array, most: int, folder: Path) -> Iterator[tuple[float, float, str]]:
    """Yield value, bound and text of every figure: rows that slide, these shuffled, and rows without a common id."""
    rng = np.random.default_rng(1)
    shuffled = x[rng.permutation(len(x))]
    unlike = rng.integers(0, most, (len(x) // 4, x.shape[1]))
    kinds = ("sliding", x, 0.85), ("shuffled", shuffled, 1.02), ("unlike", unlike, 1.02)
    for kind, rows, bound in kinds:
        lake = tl.open(folder / name.replace(" ", "") / kind)
        start = time.process_time()
        ref = lake.write("clicks", rows, layout="window")
        spent = time.process_time() - start
        assert np.array_equal(ref[...], rows)
        assert np.array_equal(ref[5::7, 3:-1], rows[5::7, 3:-1])
        peer = parquet_bytes(folder / "peer.parquet", rows)
        ours = data_bytes(str(lake.uri))
        yield (
            ours / peer,
            bound,
            (
                f"{name}, {kind}: bytes beside Parquet zstd-3 ({ours} and {peer} of {rows.nbytes}; "
                f"{ref.codec}, {ref.stored_bytes} bytes of payload, written at "
                f"{rows.nbytes / spent / 1e6:.0f} MB/s)"
            ),
        )
        chosen = np.random.default_rng(2).integers(0, len(rows), 201).tolist()
        assert all(np.array_equal(ref[n], rows[n]) for n in chosen)
        wall = timed(time.perf_counter, lambda turn, r=ref, c=chosen: r[c[turn]], len(chosen))
        yield (
            wall * 1000,
            1 if kind == "sliding" else float("inf"),
            (f"{name}, {kind}: ms to read one row of {len(rows)}, warm"),
        )
        speed = decode_speed(rows)
        yield (
            2e9 / speed,
            1 if kind == "sliding" else float("inf"),
            (f"{name}, {kind}: 2 GB/s beside the speed of decoding ({speed / 1e9:.2f} GB/s)"),
        )


def main() -> int:
    """Print every figure, and which bounds are not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--rows", type=int, default=100, help="of each user")
    parser.add_argument("--width", type=int, default=256)
    given = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, most in IDS.items():
            x = sequences(given.users, given.rows, given.width, most)
            for value, bound, text in measured(name, x, most, Path(scratch)):
                kept = value <= bound
                missed += not kept
                verdict = (
                    ""
                    if bound == float("inf")
                    else f" (at most {bound:g}{'' if kept else ', MISSED'})"
                )
                print(f"{value:8.3f}{verdict}  {text}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
