"""The parts of the benchmark of samples that have no row of peers: tiles, memory, round trips on S3, workers of Spark.

Each starts fresh processes of its own and returns the lines of its report, and verdicts for `sample_report.Verdict`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import sample_media
from harness import run_script

HERE = str(Path(__file__).resolve().parent)
SIDE, CROP = 20_000, 256
STREAMED = 2 * 10**9
"""Bytes that are extended from an iterator."""

WRITE_TILES = """
    import json, sys, time
    import numpy as np, pandas, tensorlake_spark as tl

    source, kind, place = sys.argv[1:]
    x = np.load(source, mmap_mode="r")
    start = time.perf_counter()
    if kind == "sample":
        ds = tl.dataset(place, schema={"scan": tl.types.Tensor(str(x.dtype), (None, None))})
        ds.append({"scan": x})
    else:
        tl.open(place).write("scan", x)
    print(json.dumps(time.perf_counter() - start))
"""

READ_TILES = """
    import json, os, sys, time
    import numpy as np, pandas, tensorlake_spark as tl

    source, kind, place, crop = sys.argv[1:]
    x, crop = np.load(source, mmap_mode="r"), int(crop)
    if kind == "sample":
        column = tl.dataset(place, create=False)["scan"]
        read = lambda y, x: column[0, y : y + crop, x : x + crop]
    else:
        ref = tl.open(place)["scan"]
        read = lambda y, x: ref[y : y + crop, x : x + crop]
    rng = np.random.default_rng(1)
    wall, cpu = [], []
    for y, z in rng.integers(len(x) - crop, size=(120, 2)).tolist():
        start, work = time.perf_counter(), time.process_time()
        found = read(y, z)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - work)
        assert np.array_equal(found, x[y : y + crop, z : z + crop]), (y, z)
    print(json.dumps([np.median(wall[20:]) * 1e3, np.mean(cpu[20:]) * 1e3]))
"""

EXTEND = """
    import json, sys, time
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    import numpy as np, pandas, tensorlake_spark as tl
    import sample_media
    from harness import peak

    media = sample_media.load(Path(sys.argv[2]), 1000)
    count = int(sys.argv[4])
    schema = {"image": tl.types.Image("jpeg"), "label": tl.types.ClassLabel(sample_media.names())}
    ds = tl.dataset(sys.argv[3], schema=schema)
    before, start, work = peak(), time.perf_counter(), time.process_time()
    ds.extend({"image": media.images[k % 1000], "label": int(media.labels[k % 1000])} for k in range(count))
    took = time.perf_counter() - start, time.process_time() - work
    assert len(tl.dataset(sys.argv[3], create=False)) == count
    print(json.dumps([before, peak(), *took]))
"""


def run(name: str, count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Run a part by its name."""
    parts: dict[str, Callable[..., dict[str, Any]]] = {
        "tiles": tiles, "memory": memory, "s3": s3, "spark": spark,
    }  # fmt: skip
    try:
        return parts[name](count, repeat, media, work)
    except SystemExit as error:  # a child has failed, and says why in its last line
        said = str(error).strip().splitlines()[-1]
        return {"lines": [f"failed: {said}"], "errors": {name: said}}


def scan_image(side: int, path: Path) -> Path:
    """Write a large image in grey, once: a picture beside itself again and again, each time as bright as no other."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        step = min(side, 2_000)
        tile = sample_media.picture(np.random.default_rng(3), step, 45.0)[..., 0]
        out = np.lib.format.open_memmap(path, "w+", np.uint8, (side, side))
        for y in range(0, side, step):
            for x in range(0, side, step):
                part = np.roll(tile, (y // 7, x // 11), (0, 1)) + np.uint8((y + 3 * x) // step)
                out[y : y + step, x : x + step] = part[: side - y, : side - x]
        out.flush()
    return path


def tiles(count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Measure a crop of a large sample beside that of a tensor."""
    side = 4_000 if count else SIDE
    source = scan_image(side, media / f"scan-{side}.npy")
    kinds = ("sample", "tensor")
    wrote = {kind: run_script(WRITE_TILES, source, kind, work / f"tiles-{kind}") for kind in kinds}
    found: dict[str, list[list[float]]] = {kind: [] for kind in kinds}
    for _ in range(repeat):
        for kind in kinds:
            found[kind].append(run_script(READ_TILES, source, kind, work / f"tiles-{kind}", CROP))
    ms = {kind: median(f[0] for f in found[kind]) for kind in kinds}
    cpu = {kind: median(f[1] for f in found[kind]) for kind in kinds}
    lines = [
        f"A crop of {CROP} x {CROP} of {side:,} x {side:,} uint8.", "",
        "| | crop ms | processor ms | write s |", "|---|---|---|---|",
        *(f"| {kind} | {ms[kind]:.2f} | {cpu[kind]:.2f} | {wrote[kind]:.1f} |" for kind in kinds),
    ]  # fmt: skip
    what = f"crop {CROP} x {CROP} of a tiled sample, ms"
    return {"lines": lines, "verdicts": [(what, ms["sample"], ms["tensor"], "tensor", 1.2)]}


def memory(count: int | None, _: int, media: Path, work: Path) -> dict[str, Any]:
    """Measure the peak of a process that extends gigabytes from an iterator, and of one that extends a tenth."""
    source = sample_media.cached("photos", 1_000, media)
    mean = sample_media.load(source).nbytes / 1000
    most = count or round(STREAMED / mean)
    lines = [
        "| streamed, MB | peak before, MB | peak, MB | s | processor s |",
        "|---|---|---|---|---|",
    ]
    top = 0.0
    for number in (most // 10, most):
        found = run_script(EXTEND, HERE, source, work / f"streamed-{number}", number)
        before, top, seconds, cpu = found
        lines.append(
            f"| {number * mean / 1e6:,.0f} | {before:.0f} | {top:.0f} | {seconds:.1f} | {cpu:.1f} |"
        )
    return {"lines": lines, "verdicts": [("streamed extend, peak MB", top, None, "", 512.0)]}


def s3(count: int | None, _: int, media: Path, work: Path) -> dict[str, Any]:
    """Count the round trips of one random sample."""
    import sample_s3

    return sample_s3.run(count or sample_s3.COUNT, media, work)


def spark(count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Measure the job on one worker and on two, by the Python that has Spark: not the one of the peers."""
    python = Path(HERE).parents[1] / ".venv" / "bin" / "python"
    command = [
        str(python if python.exists() else sys.executable), f"{HERE}/samples_spark.py",
        "--media", str(media), "--work", str(work), "--repeat", str(repeat),
        *(["--count", str(count)] if count else []),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        return {"lines": [f"failed: {said}"], "errors": {"spark": said}}
    lines = done.stdout.strip().splitlines()
    ratio = float(next(line for line in lines if line.startswith("RATIO ")).split()[1])
    shown = [line for line in lines if line.startswith("|")]
    row = ("ingest by spark-submit, 1 to 2 workers", ratio, None, "", 1.7, True)
    return {"lines": shown, "verdicts": [row]}
