"""The parts of the benchmark of loaders that have no row of peers: first batches, S3, ranks, memory, the interpreter.

Each starts fresh processes of its own and returns the lines of its report, and verdicts for `sample_report.Verdict`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import loader_media
import numpy as np
from harness import run_script

HERE = str(Path(__file__).resolve().parent)
ROWS = 1_220
"""Samples of a file of the table of 10 million: 128 MiB of images of 110 KB each."""
FILES = 8_197
RESUMED = 1_000_000
MEMORY = 512
"""MB, of the loader; and what the process may have beside it, whose modules alone take more than half."""
BESIDE = 150
LARGEST = 50_000_000
PAUSE_S = 0.1
"""After each batch of a slow loop: it lets the batches that wait fill the memory."""

BEGIN = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import json, os, time
    from pathlib import Path
    import numpy as np, pandas, pyarrow.dataset, simplejpeg, tensorlake_spark as tl
    import loader_engines, loader_media
    from harness import peak
"""

WRITE = (
    BEGIN
    + """
    _, _, place, kind, count, media = sys.argv
    source = loader_media.source_of(kind, int(count), Path(media))
    start = time.perf_counter()
    loader_engines.Ours(place, source).write()
    print(json.dumps(time.perf_counter() - start))
"""
)

LARGE = (
    BEGIN
    + """
    import shutil, uuid
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

    _, _, place, media, rows, count = sys.argv
    rows, count = int(rows), int(count)
    source = loader_media.source_of("small", rows, Path(media))
    loader_engines.Ours(place, source).write()
    handle = DeltaTable(place)
    (log,) = sorted((Path(place) / "_delta_log").glob("*1.json"))
    (add,) = (e["add"] for e in map(json.loads, log.read_text().splitlines()) if "add" in e)
    stats, first, made = json.loads(add["stats"]), rows, []
    for _ in range(count - 1):
        stats["minValues"]["sid"], stats["maxValues"]["sid"] = first, first + rows - 1
        first += rows
        name = add["path"].rsplit("-", 5)[0] + f"-{uuid.uuid4()}.parquet"
        os.link(f"{place}/{add['path']}", f"{place}/{name}")
        made.append(AddAction(name, add["size"], {}, 1_700_000_000_000, True, json.dumps(stats)))
    handle.create_write_transaction(made, "append", handle.schema())
    DeltaTable(place).create_checkpoint()
    print(json.dumps(len(tl.dataset(place, create=False))))
"""
)

FIRST = (
    BEGIN
    + """
    _, _, few, place, order, position = sys.argv
    order, position = json.loads(order), int(position)
    columns = ["image", "label"]
    for _ in tl.dataset(few, create=False).loader(64, columns=columns, shuffle=order):
        pass  # every module is imported
    start = time.perf_counter()
    ds = tl.dataset(place, create=False)
    loader = ds.loader(64, columns=columns, shuffle=order, seed=1)
    opened = time.perf_counter()
    if position:
        loader.load_state_dict(loader.state_dict() | {"samples": position - position % 64})
    batches = iter(loader)
    batch = next(batches)
    done = time.perf_counter()
    assert len(batch["label"]) == 64 and batch["image"][0].ndim == 3, batch["label"]
    batches.close()
    print(json.dumps([opened - start, done - opened, done - start, peak()]))
"""
)

RANK = (
    BEGIN
    + """
    _, _, few, place, rank, world = sys.argv
    rank, world = int(rank), int(world)
    columns = ["image", "label"]
    for _ in tl.dataset(few, create=False).loader(64, columns=columns, shuffle=True):
        pass
    loader = tl.dataset(place, create=False).loader(64, columns=columns, shuffle=True, rank=rank, world_size=world)
    print("READY", flush=True)
    sys.stdin.readline()
    start, count = time.time(), 0
    for batch in loader:
        loader_media.touch(batch["image"])
        count += len(batch["label"])
    print(json.dumps([start, time.time(), count]), flush=True)
"""
)

MIXED = (
    BEGIN
    + """
    _, _, place, count, largest = sys.argv
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.uniform(np.log(1_000), np.log(int(largest)), int(count))).astype(int)
    noise = rng.integers(0, 256, int(largest), np.uint8)
    # Samples as large as these are tiles by default, and read as such; here all lie in their rows.
    tiles = {"tile_bytes": 2 * int(largest)} if json.loads("%s") else {}
    ds = tl.dataset(place, schema={"x": tl.types.Tensor("uint8", (None,)), "size": "int64"}, **tiles)
    ds.extend({"x": noise[:size], "size": size} for size in sizes.tolist())
    print(json.dumps(int(sizes.sum())))
"""
)

PEAK = (
    BEGIN
    + """
    _, _, few, place, memory, pause = sys.argv
    for _ in tl.dataset(few, create=False).loader(64, columns=["image"], shuffle=True):
        pass
    ds = tl.dataset(place, create=False)
    before = peak()
    loader = ds.loader(8, columns=["x", "size"], shuffle=True, memory=f"{memory}MB")
    count, largest = 0, 0
    for batch in loader:
        for x, size in zip(batch["x"], batch["size"].tolist(), strict=True):
            assert len(x) == size, (len(x), size)
        count += len(batch["size"])
        largest = max(largest, int(batch["size"].sum()))
        time.sleep(float(pause))  # of a slow loop the batches wait, and fill the memory
    assert count == len(ds), count
    print(json.dumps([before, peak(), largest / 1e6]))
"""
)

INTERPRETER = (
    BEGIN
    + """
    _, _, place, kind, count, media = sys.argv
    source = loader_media.source_of(kind, int(count), Path(media))
    memory, ours = loader_engines.MemoryStacked("", source), loader_engines.Ours(place, source)
    found = {"memory": [], "ours": []}
    for number in range(4):
        for name, loader in (("memory", memory), ("ours", ours)):
            handle = loader.open(True)
            start = time.process_time()
            count = sum(len(numbers) for _, numbers in loader.epoch(handle, number))
            found[name].append(time.process_time() - start)
            assert count == source.count
    batches = -(-source.count // 64)
    print(json.dumps([np.median(found[name][1:]) / batches * 1e3 for name in ("memory", "ours")]))
"""
)


def run(name: str, count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Run a part by its name."""
    parts: dict[str, Callable[..., dict[str, Any]]] = {
        "first": first, "resume": resume, "s3": s3, "ranks": ranks, "memory": memory, "interpreter": interpreter,
    }  # fmt: skip
    try:
        return parts[name](count, repeat, media, work)
    except SystemExit as error:  # a child has failed, and says why in its last line
        said = (str(error).strip().splitlines() or ["nothing said"])[-1]
        return {"lines": [f"failed: {said}"], "errors": {name: said}}


def written(work: Path, media: Path, kind: str, count: int | None) -> Path:
    """Return a dataset of samples of a kind, written if it is not there."""
    source = loader_media.source_of(kind, count, media)
    place = work / f"own-{kind}-{source.count}"
    if not place.exists():
        run_script(WRITE, HERE, place, kind, source.count, media)
    return place


def large(work: Path, media: Path, count: int | None) -> tuple[Path, int]:
    """Return a table of 10 million samples and their number: all files of its log are links of one."""
    files = max(2, count // ROWS) if count else FILES
    place = work / f"own-large-{files}"
    if not place.exists():
        run_script(LARGE, HERE, place, media, ROWS, files)
    return place, files * ROWS


def first(count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Measure the first batch of a dataset that this process has not seen."""
    few = written(work, media, "small", 200)
    small = written(work, media, "photos", count)
    many, samples = large(work, media, count)
    lines = [
        "| samples | order | dataset and loader opened, s | first batch after that, s | both, s | peak, MB |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    verdicts = []
    for place, number in ((small, "photos"), (many, f"{samples:,}")):
        for order in (False, True, "global"):
            given = '"global"' if order == "global" else str(order).lower()
            found = [run_script(FIRST, HERE, few, place, given, 0) for _ in range(repeat)]
            opened, batch, both, most = map(median, zip(*found, strict=True))
            what = (
                number
                if place == many
                else f"{loader_media.source_of('photos', count, media).count:,}"
            )
            lines.append(
                f"| {what} | {order} | {opened:.3f} | {batch:.3f} | {both:.3f} | {most:.0f} |"
            )
            if order is True:
                verdicts.append((f"first batch, {what} samples, s", both, None, "", 0.5))
    return {"lines": lines, "verdicts": verdicts}


def resume(count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Measure the first batch after a state was loaded that is at sample 1,000,000."""
    few = written(work, media, "small", 200)
    many, samples = large(work, media, count)
    position = min(RESUMED, samples // 2)
    lines = ["| order | opened, s | first batch, s | both, s |", "|---|---|---|---|"]
    verdicts = []
    for order in (False, True, "global"):
        given = '"global"' if order == "global" else str(order).lower()
        found = [run_script(FIRST, HERE, few, many, given, position) for _ in range(repeat)]
        opened, batch, both, _ = map(median, zip(*found, strict=True))
        lines.append(f"| {order} | {opened:.3f} | {batch:.3f} | {both:.3f} |")
        verdicts.append((f"resume at sample {position:,}, shuffle={order}, s", both, None, "", 0.5))
    return {"lines": [f"Of {samples:,} samples.", "", *lines], "verdicts": verdicts}


def ranks(count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Measure two ranks at the same time on this machine, beside one that is alone."""
    few = written(work, media, "small", 200)
    place = written(work, media, "photos", count)
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(repeat):
        for world in (1, 2):
            rates[world].append(together(few, place, world))
    one, two = median(rates[1]), median(rates[2])
    lines = [
        "| ranks | images/s of all |",
        "|---|---|",
        f"| 1 | {one:,.0f} |",
        f"| 2 | {two:,.0f} |",
    ]
    return {"lines": lines, "verdicts": [("two ranks, of one", two, one, "one rank", 1.0, True)]}


def together(few: Path, place: Path, world: int) -> float:
    """Start a process for each rank, let them run when all are ready, and return their samples a second."""
    import textwrap

    script = textwrap.dedent(RANK)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, HERE, str(few), str(place), str(rank), str(world)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    for process in processes:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "READY":
            raise SystemExit(f"a rank of {world} has failed")
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate()[0].strip().splitlines() for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit(f"a rank of {world} has failed")
    import json

    found = [json.loads(lines[-1]) for lines in said]
    start, end = min(f[0] for f in found), max(f[1] for f in found)
    return float(sum(f[2] for f in found) / (end - start))


def memory(count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Measure the peak of a process that loads samples from 1 KB to 50 MB."""
    few = written(work, media, "small", 200)
    number, largest = (40, 2_000_000) if count else (400, LARGEST)
    lines = [
        "| samples of 1 KB to 50 MB | MB | peak before, MB | largest batch, MB | peak, MB | the loader's, MB |",
        "|---|---|---|---|---|---|",
    ]
    verdicts = []
    for rows in (True, False):
        place = work / f"own-mixed-{rows}"
        nbytes = run_script(MIXED % str(rows).lower(), HERE, place, number, largest)
        for pause in (0.0, PAUSE_S):
            found = [run_script(PEAK, HERE, few, place, MEMORY, pause) for _ in range(repeat)]
            before, top, batch = (max(f[k] for f in found) for k in range(3))
            what = ("all in their rows" if rows else "tiles above 8 MiB") + (
                ", a slow loop" if pause else ""
            )
            lines.append(
                f"| {number}, {what} | {nbytes / 1e6:,.0f} | {before:.0f} | {batch:.0f} | {top:.0f} | {top - before:.0f} |"
            )
            bound = float(MEMORY + BESIDE)
            verdicts.append((f"memory, {what}: peak of the process, MB", top, None, "", bound))
            verdicts.append(
                (f"memory, {what}: above the modules, MB", top - before, None, "", bound)
            )
    return {"lines": lines, "verdicts": verdicts}


def interpreter(count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Measure the processor time of the loader beside that of decoding the same bytes, in one process, in turns."""
    lines = [
        "| | decoding, ms a batch of 64 | the loader, ms | beside decoding, ms |",
        "|---|---|---|---|",
    ]
    verdicts = []
    for kind in loader_media.JPEG:
        source = loader_media.source_of(kind, count, media)
        place = written(work, media, kind, count)
        given = (INTERPRETER, HERE, place, kind, source.count, media)
        found = np.array([run_script(*given) for _ in range(repeat)])
        decode, ours = np.median(found, axis=0).tolist()
        beside = float(np.median(found[:, 1] - found[:, 0]))
        lines.append(f"| {kind} | {decode:.2f} | {ours:.2f} | {beside:.2f} |")
        what = f"{kind}: processor time beside decode, ms a batch of 64"
        verdicts.append((what, beside, None, "", 1.5))
    return {"lines": lines, "verdicts": verdicts}


def s3(count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Measure photographs on S3, each request 20 ms longer."""
    import loader_s3

    return loader_s3.run(count, repeat, media, work)
