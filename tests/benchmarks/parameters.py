"""The parameter study: one factor at a time around the defaults; fresh processes, medians of rounds.

``make bench-parameters`` measures both workloads, and writes docs/parameters.md and its plots: what
stands there above a mark stays, the tables below it are made anew.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import parameters_report
from bench_sparse import BENCHMARK as SPARSE
from dense import BENCHMARK as DENSE
from harness import Benchmark, machine, peak, positive, start_child, stored_bytes, tell, versions
from workloads import Elements

AGAIN = 5
"""Reads of every key, after the first one."""

FACTORS = ("block_shape", "order", "row_group_bytes", "level", "file_bytes")
_KIB, _MIB = 1 << 10, 1 << 20

SETTINGS: dict[str, dict[str, dict[str, list[Any]]]] = {
    "full": {
        "photos": {
            "block_shape": [
                (1, 3, 1024, 1024), (1, 3, 512, 1024), (1, 3, 128, 1024), (1, 3, 64, 1024),
                (1, 3, 512, 512), (1, 3, 256, 256), (1, 1, 1024, 1024), (1, 1, 256, 1024),
                (4, 3, 64, 1024), (4, 3, 256, 1024),
            ],
            "row_group_bytes": [256 * _KIB, 512 * _KIB, _MIB, 4 * _MIB, 8 * _MIB, 32 * _MIB],
            "level": [-3, 2, 3, 6, 9],
            "file_bytes": [8 * _MIB, 32 * _MIB, 1024 * _MIB],
        },
        "uber": {
            "block_shape": [
                (1, 24, 128, 128), (2, 24, 128, 128), (8, 24, 128, 128), (16, 24, 128, 128),
                (4, 8, 128, 128), (4, 12, 128, 128), (16, 2, 128, 128), (32, 1, 64, 64),
                (4, 24, 64, 64), (16, 24, 32, 32), (4, 24, 64, 256), (4, 24, 256, 256),
                (1, 24, 256, 256), (2, 24, 256, 256),
            ],
            "order": [
                (1, 0, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (0, 2, 3, 1), (3, 2, 1, 0),
            ],
            "row_group_bytes": [n * _KIB for n in (32, 64, 128, 256, 1024, 4096)],
            "level": [1, 3, 6, 12, 15],
            "file_bytes": [256 * _KIB, 1 * _MIB, 1024 * _MIB],
        },
    },
    "tiny": {
        "photos": {
            "block_shape": [(1, 3, 16, 64)],
            "row_group_bytes": [16 * _KIB],
            "level": [9],
            "file_bytes": [32 * _KIB],
        },
        "uber": {
            "block_shape": [(1, 24, 16, 16)],
            "order": [(2, 3, 0, 1)],
            "row_group_bytes": [4 * _KIB],
            "level": [1],
            "file_bytes": [16 * _KIB],
        },
    },
}  # fmt: skip
"""What is tried beside the default, by size, workload and factor."""

HOMES: dict[str, Benchmark] = {"photos": DENSE, "uber": SPARSE}
LAYOUT = {"photos": "ftsf", "uber": "bsgs"}


class Setting(NamedTuple):
    """One factor at another value than the default.

    Attributes
    ----------
    factor : str
        One of `FACTORS`; empty for the defaults themselves.
    value : object
        As `lake.write` or the module's constant takes it.
    """

    factor: str = ""
    value: Any = None

    @property
    def name(self) -> str:
        """Of the folder that it is stored in, and in the JSON file."""
        return f"{self.factor}={self.value}" if self.factor else "default"


def settings_of(workload: str, size: str) -> list[Setting]:
    """Return the default, and every factor's other values."""
    tried = SETTINGS[size][workload]
    return [Setting(), *(Setting(factor, v) for factor in tried for v in tried[factor])]


def defaults_of(workload: str, size: str) -> dict[str, Any]:
    """Return the package's own value of every factor of a workload."""
    from tensorlake_spark.delta.log import properties
    from tensorlake_spark.layouts import layout_of
    from tensorlake_spark.layouts.coding import buffers, codec

    layout = layout_of(LAYOUT[workload])
    make, options = HOMES[workload].workloads[workload][size]
    made = make(**options)
    if isinstance(made, Elements):
        density = len(made.values) / np.prod(made.shape, dtype=float)
        block = layout.default_block(made.shape, made.values.dtype, density)
        level = buffers.ZSTD_LEVEL
    else:
        block, level = layout.default_block(made.shape, made.dtype), codec.ZSTD_LEVEL
    found = {
        "block_shape": block,
        "order": tuple(range(len(made.shape))),
        "row_group_bytes": layout.row_group_bytes,
        "level": level,
        "file_bytes": properties.FILE_BYTES,
    }
    return {factor: found[factor] for factor in SETTINGS[size][workload]}


def options_of(workload: str, setting: Setting) -> dict[str, Any]:
    """Set what is a constant of the package, in this process; return the options of `lake.write`."""
    import pyarrow as pa

    from tensorlake_spark.delta.log import properties
    from tensorlake_spark.layouts import layout_of
    from tensorlake_spark.layouts.coding import buffers, codec

    options = {"layout": LAYOUT[workload]}
    factor, value = setting
    if factor in ("block_shape", "order"):
        options[factor] = tuple(value)
    elif factor == "row_group_bytes":
        type(layout_of(LAYOUT[workload])).row_group_bytes = value
    elif factor == "level":
        for module in (buffers, codec):
            assert hasattr(module, "ZSTD_LEVEL")
            module.ZSTD_LEVEL = value
        codec._zstd = pa.Codec("zstd", value)
    elif factor == "file_bytes":
        properties.FILE_BYTES = value
    return options


def measure_write(workload: str, setting: Setting, source: Path, store: Path) -> dict[str, float]:
    """Write once; return seconds, the size as a share of raw, and what the table is made of."""
    import tensorlake_spark as tl

    data, raw = HOMES[workload].load(source)
    options = options_of(workload, setting)
    start = time.perf_counter()
    given = tl.SparseTensor(*data) if isinstance(data, Elements) else data
    tl.open(store).write("x", given, **options)
    seconds = time.perf_counter() - start
    most = peak()
    os.sync()
    plan = tl.open(store)["x"].explain()
    return {
        "write": seconds,
        "size": stored_bytes(store) / raw,
        "write_peak": most,
        "files": len(plan.files),
        "groups": sum(len(file.row_groups) for file in plan.files),
        "rows": sum(file.rows for file in plan.files),
    }


def measure_reads(workload: str, source: Path, store: Path, size: str) -> dict[str, float]:
    """Read every key of a workload again and again; the first answer of each is checked."""
    import tensorlake_spark as tl

    home = HOMES[workload]
    keys = home.workloads[workload]["keys" if size == "full" else "tiny_keys"]
    found = {}
    for measure, key in keys.items():
        ref = tl.open(store)["x"]
        got = ref[key]
        if workload == "uber":
            from sparse_engines import Found

            got = Found(got.coords, got.values, got.shape)
        home.check(got, home.wanted(source, key), key, measure)
        del got
        found[measure] = statistics.median(_seconds(ref, key) for _ in range(AGAIN))
    return found


def _seconds(ref: Any, key: Any) -> float:
    """Return how long a read takes; the answer is let go of after the clock has stopped."""
    start = time.perf_counter()
    answer = ref[key]
    seconds = time.perf_counter() - start
    del answer
    return seconds


def child(arguments: list[str]) -> None:
    """Do what a fresh process does: write a setting, or read it."""
    what, workload, size, setting, source, store = arguments
    if what == "write":
        tell(measure_write(workload, Setting(*json.loads(setting)), Path(source), Path(store)))
    else:
        tell(measure_reads(workload, Path(source), Path(store), size))


def run(workload: str, size: str, repeat: int, work: Path) -> dict[str, Any]:
    """Measure all settings of a workload, round by round; every round begins with another one.

    Returns
    -------
    dict
        ``defaults`` by factor, ``settings``: a list of ``factor``, ``value``, ``medians`` and
        ``samples``; the first is the default.

    Raises
    ------
    RuntimeError
        If a setting cannot be measured.
    """
    home = HOMES[workload]
    make, options = home.workloads[workload][size]
    source = work / f"{workload}.input"
    home.save(make(**options), source)
    os.sync()
    settings = settings_of(workload, size)
    samples: list[dict[str, list[float]]] = [{} for _ in settings]
    for number in range(repeat):
        turn = number * len(settings) // repeat
        for place in [*range(turn, len(settings)), *range(turn)]:
            store = work / "store"
            shutil.rmtree(store, ignore_errors=True)
            text = json.dumps(settings[place])
            for what in ("write", "read"):
                arguments = [what, workload, size, text, str(source), str(store)]
                found = start_child(Path(__file__), arguments)
                if isinstance(found, str):
                    raise RuntimeError(f"{workload}, {settings[place].name}, {what}: {found}")
                for name, value in found.items():
                    samples[place].setdefault(name, []).append(value)
        print(f"{workload}: round {number + 1} of {repeat}", file=sys.stderr)
    shutil.rmtree(work / "store", ignore_errors=True)
    shutil.rmtree(source)
    return {
        "defaults": defaults_of(workload, size),
        "settings": [
            {
                "factor": setting.factor,
                "value": setting.value,
                "medians": {name: statistics.median(v) for name, v in found.items()},
                "samples": found,
            }
            for setting, found in zip(settings, samples)
        ],
    }


def main() -> int:
    """Run the study."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workload", choices=(*HOMES, "all"), default="all")
    parser.add_argument("--repeat", type=positive, default=3)
    parser.add_argument("--size", choices=("full", "tiny"), default="full")
    parser.add_argument("--out", type=Path, default=Path("bench-output"), help="for the JSON file")
    parser.add_argument(
        "--docs", type=Path, default=Path("docs"), help="for the page and its plots"
    )
    args = parser.parse_args()
    for folder in (args.out, args.docs):
        folder.mkdir(parents=True, exist_ok=True)
    arguments = f' BENCH_ARGS="{" ".join(sys.argv[1:])}"' if len(sys.argv) > 1 else ""
    report = {
        **machine(),
        "repeat": args.repeat,
        "again": AGAIN,
        "versions": versions(["tensorlake-spark", "numpy", "pyarrow", "deltalake"]),
        "command": "make bench-parameters" + arguments,
        "workloads": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in HOMES if args.workload == "all" else [args.workload]:
            report["workloads"][name] = run(name, args.size, args.repeat, Path(folder))
            (args.out / "parameters.json").write_text(json.dumps(report, indent=1))
            parameters_report.plot(report, name, args.docs / f"parameters-{name}.png")
    parameters_report.write(report, args.docs / "parameters.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
