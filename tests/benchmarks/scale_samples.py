"""How far a dataset goes: the log of 1 PB of samples, beside the chunk map of Deep Lake, at files of three sizes.

``make bench-scale`` prints it after the figures of tensors. A dataset with an image, a label and two numbers a sample
gets files in its log that are not there, with the statistics of one that is; a fresh process opens it and reads a
sample by its position. What one file more costs is the slope between the smallest and the largest log.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import machine, peak, start_child, tell, versions

SCRIPT = Path(__file__)
FILES = (1_000, 10_000, 100_000)
MIB, GIB = 1 << 20, 1 << 30
STORED = 10**15
SIZES = (128 * MIB, GIB, 4 * GIB)
CHUNK_MAP = 150e6
"""Bytes that the Deep Lake paper gives for its map of chunks at 1 PB."""
SAMPLE = 110_000
"""Bytes of a sample: an image of ImageNet, about."""


class Log(NamedTuple):
    """What the log of a dataset of so many files costs.

    Attributes
    ----------
    files : int
    commit_bytes, checkpoint_bytes : int
        Of the commit that names them, and of the checkpoint that stands for it afterwards.
    commit_s, open_s, sample_s : float
        To commit them; to open the dataset by its checkpoint; to find and read the first sample by position.
    memory : float
        By how much opening and reading raise the peak of a process, in MB.
    """

    files: int
    commit_bytes: int
    checkpoint_bytes: int
    commit_s: float
    open_s: float
    sample_s: float
    memory: float


def main() -> int:
    """Measure, compute, and write both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    parser.add_argument("--files", type=int, nargs="+", default=list(FILES))
    parser.add_argument("--child", choices=("commit", "read", "footer"), help=argparse.SUPPRESS)
    parser.add_argument("--table", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        made = {
            "commit": lambda: commit(args.table, args.files[0]),
            "read": lambda: read(args.table),
            "footer": lambda: footer(args.table),
        }
        tell(made[args.child]())
        return 0
    logs = []
    with tempfile.TemporaryDirectory() as folder:
        lasting = start_child(SCRIPT, ["footer", "--table", folder])
    for count in args.files:
        with tempfile.TemporaryDirectory() as folder:
            table = ["--table", folder, "--files", str(count)]
            made_, found = (start_child(SCRIPT, [part, *table]) for part in ("commit", "read"))
        if isinstance(made_, str) or isinstance(found, str) or isinstance(lasting, str):
            print(f"{count} files: {made_} {found} {lasting}", file=sys.stderr)
            return 1
        logs.append(Log(count, **made_, **found))
    assert not isinstance(lasting, str)
    text = report(logs, lasting["footer"], lasting["file"])
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "scale-samples.md").write_text(text)
    (args.out / "scale-samples.json").write_text(json.dumps([log._asdict() for log in logs]))
    print(text)
    return 0


def extend(table: str, count: int) -> Any:
    """Make a dataset of so many samples."""
    import tensorlake_spark as tl

    schema = {
        "image": tl.types.Image("jpeg"),
        "label": tl.types.ClassLabel([f"class_{k:03}" for k in range(1000)]),
        "taken": "int64",
        "score": "float32",
    }
    from PIL import Image

    rng = np.random.default_rng(0)
    noise = rng.integers(256, size=(256, 256, 3), dtype=np.uint8)
    file = tempfile.TemporaryFile()  # noqa: SIM115
    Image.fromarray(noise).save(file, "JPEG", quality=95)
    file.seek(0)
    image = file.read()
    ds = tl.dataset(table, schema=schema)
    ds.extend(
        {"image": image, "label": k % 1000, "taken": 10**9 + k, "score": k / (k + 1)}
        for k in range(count)
    )
    return ds


def commit(table: str, count: int) -> dict[str, Any]:
    """Make a dataset of one file with `count` files more, in one commit, and a checkpoint."""
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

    extend(table, 10)
    handle = DeltaTable(table)
    log = Path(table) / "_delta_log"
    entries = [
        json.loads(line) for f in sorted(log.glob("*.json")) for line in f.read_text().splitlines()
    ]
    (add,) = (entry["add"] for entry in entries if "add" in entry)
    stats = json.loads(add["stats"])
    rows = stats["numRecords"]
    first = rows
    made = []
    for k in range(count):
        stats["numRecords"] = 128 * MIB // SAMPLE
        stats["minValues"]["sid"] = first
        first += stats["numRecords"]
        stats["maxValues"]["sid"] = first - 1
        stats["minValues"]["taken"], stats["maxValues"]["taken"] = 10**9 + k, 10**9 + 3 * k
        name = f"samples-{uuid.uuid4()}.parquet"  # as they are: random names are not compressed
        made.append(AddAction(name, 128 * MIB, {}, 1_700_000_000_000, True, json.dumps(stats)))
    start = time.perf_counter()
    handle.create_write_transaction(made, "append", handle.schema())
    seconds = time.perf_counter() - start
    handle = DeltaTable(table)
    handle.create_checkpoint()
    return {
        "commit_s": seconds,
        "commit_bytes": max(f.stat().st_size for f in log.glob("*.json")),
        "checkpoint_bytes": sum(f.stat().st_size for f in log.glob("*.checkpoint*.parquet")),
    }


def read(table: str) -> dict[str, Any]:
    """Open the dataset and read a sample by its position."""
    import pandas  # noqa: F401

    import tensorlake_spark as tl

    tl.dataset(f"{table}-empty")  # all modules of the package are imported
    before = peak()
    start = time.perf_counter()
    ds = tl.dataset(table, create=False)
    opened = time.perf_counter()
    found = ds["image"].encoded(3)
    done = time.perf_counter()
    if found is None or not len(ds) > 10:
        raise AssertionError(f"{len(ds)} samples")
    return {"open_s": opened - start, "sample_s": done - opened, "memory": peak() - before}


def footer(table: str) -> dict[str, Any]:
    """Return the bytes of the footer of the first data file that is full, and of the file."""
    extend(table, 2_400)
    files = sorted(Path(table).glob("*.parquet"), key=lambda f: f.stat().st_size)
    with files[-1].open("rb") as file:
        file.seek(-8, os.SEEK_END)
        size = int.from_bytes(file.read(4), "little")
    return {"footer": size, "file": files[-1].stat().st_size}


def per_file(logs: Sequence[Log], field: str) -> float:
    """Return what one file more costs: the slope between the smallest and the largest dataset."""
    first, last = logs[0], logs[-1]
    return max(0.0, (getattr(last, field) - getattr(first, field)) / (last.files - first.files))


def report(logs: Sequence[Log], footer_bytes: int, file_bytes: int) -> str:
    """Return the measured constants and the arithmetic as Markdown."""
    about = machine()
    packages = ", ".join(f"{k} {v}" for k, v in versions(["tensorlake-spark", "deltalake"]).items())
    lines = [
        f"Date {about['date']}, {about['cpus']} CPUs ({about['machine']}), Python {about['python']}; {packages}. "
        "Command: `make bench-scale`.",
        "",
        "| files | commit, MB | checkpoint, MB | commit s | open s | first sample s | memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for log in logs:
        lines.append(
            f"| {log.files:,} | {log.commit_bytes / 1e6:.1f} | {log.checkpoint_bytes / 1e6:.2f} | {log.commit_s:.2f} "
            f"| {log.open_s:.2f} | {log.sample_s:.2f} | {log.memory:.0f} |"
        )
    written, kept = per_file(logs, "commit_bytes"), per_file(logs, "checkpoint_bytes")
    lines += [
        "",
        f"Each further file adds {written:,.0f} bytes to the commit and {kept:,.0f} bytes to the checkpoint. "
        f"The footer of a file of {file_bytes / MIB:,.0f} MiB has {footer_bytes:,} bytes, which is "
        f"{footer_bytes / file_bytes:.3%} of the file.",
        "",
        "| 1 PB, files of | files | 150 MB / files, bytes | commits, MB | checkpoint, MB "
        "| checkpoint / 150 MB | open s | memory of a reader MB | footers, GB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for size in SIZES:
        files = -(-STORED // size)
        seconds = files * (per_file(logs, "open_s") + per_file(logs, "sample_s"))
        lines.append(
            f"| {size // MIB:,} MiB | {files:,} | {CHUNK_MAP / files:.0f} | {files * written / 1e6:,.0f} "
            f"| {files * kept / 1e6:,.0f} | {files * kept / CHUNK_MAP:.1f} | {seconds:,.0f} "
            f"| {files * per_file(logs, 'memory'):,.0f} | {STORED * footer_bytes / file_bytes / 1e9:,.0f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
