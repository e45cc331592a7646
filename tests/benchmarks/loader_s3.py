"""Photographs on S3, each request 20 ms longer: the rate beside that from the disk, and that of a second epoch."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))  # the server is there
sys.path.insert(0, str(Path(__file__).resolve().parent))

import loader_engines
import loader_media
from harness import load_packages, start_child, tell
from s3_road import S3Road, requests
from s3server import S3Server
from sample_s3 import BUCKET, options_of

DELAY_S = 0.02
COUNT = 20_000
KINDS = ("local", "s3", "cache")


def child(act: str, where: str, source: str, kind: str, few: str, folder: str) -> dict[str, Any]:
    """Write the dataset, or read two epochs of it; `where` is a folder, or the URL of the server."""
    name, count = Path(source).name.rsplit("-", 1)
    samples = loader_media.source_of(name, int(count), Path(source).parent)
    remote = where.startswith("http")

    class Here(loader_engines.Ours):
        options = options_of(where) if remote else None

        def open(self, shuffle: bool) -> Any:
            import tensorlake_spark as tl

            ds = tl.dataset(self.place, storage_options=self.options, create=False)
            cache = {"cache": folder} if kind == "cache" else {}
            return ds.loader(64, columns=["image", "label"], shuffle=shuffle, seed=1, **cache)

    place = f"s3://{BUCKET}/photos" if remote else where
    loader = Here(place, samples)
    load_packages("tensorlake_spark")
    if act == "write":
        loader.write()
        return {}
    rehearsed = loader_engines.Ours(few, samples._replace(count=200))
    for _ in rehearsed.epoch(rehearsed.open(True), 0):
        pass
    out: dict[str, Any] = {}
    handle = loader.open(True)
    for number in range(2):
        if remote:
            requests(where)
        start, work, found = time.perf_counter(), time.process_time(), 0
        for values, _ in loader.epoch(handle, number):
            found += loader_media.touch(values)
        seconds = time.perf_counter() - start
        if found != samples.count:
            raise AssertionError(f"{found} samples")
        seen = requests(where) if remote else []
        out[f"rate{number}"] = found / seconds
        out[f"cpu{number}"] = (time.process_time() - work) / found * 1e6
        out[f"requests{number}"] = len(seen)
        out[f"mb{number}"] = sum(r.nbytes for r in seen) / 1e6
    return out


def spent(pids: list[int]) -> float:
    """Return the processor seconds of some processes that still run."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def run(count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Read from the disk, from S3, and from S3 with a cache, in turns."""
    import loader_parts

    number = min(COUNT, count or COUNT)
    source = loader_media.source_of("photos", number, media).folder
    local = loader_parts.written(work, media, "photos", number)
    few = loader_parts.written(work, media, "photos", 200)
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    with S3Server(work / "s3") as server, S3Road(server.port, DELAY_S) as road:
        server.make_bucket(BUCKET)
        given = ["write", server.endpoint, str(source), "", str(few), ""]
        said = start_child(Path(__file__), given)
        pids = [server._process.pid, road._process.pid]
        for turn in range(repeat):
            for kind in KINDS if not isinstance(said, str) else ():
                where = str(local) if kind == "local" else road.endpoint
                folder = work / f"s3-cache-{turn}"
                before = spent(pids)
                out = start_child(
                    Path(__file__), ["read", where, str(source), kind, str(few), str(folder)]
                )
                shutil.rmtree(folder, ignore_errors=True)
                if isinstance(out, str):
                    said = out
                    break
                found[kind].append(out | {"server": (spent(pids) - before) / 2 / number * 1e6})
    if isinstance(said, str):
        return {"lines": [f"failed: {said}"], "errors": {"s3": said}}
    m = {
        kind: {figure: median(f[figure] for f in some) for figure in some[0]}
        for kind, some in found.items()
    }
    cores = loader_engines.CORES
    lines = [
        f"{number:,} photographs, each request {DELAY_S * 1e3:.0f} ms longer. Server and road are on the same {cores} "
        "processors: what they take is missing from the loader.", "",
        "| | first epoch, images/s | second | processor, us an image | the server's and the road's | requests | MB |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for kind, f in m.items():
        lines.append(
            f"| {kind} | {f['rate0']:,.0f} | {f['rate1']:,.0f} | {f['cpu0']:.0f}, {f['cpu1']:.0f} | {f['server']:.0f} "
            f"| {f['requests0']:.0f}, {f['requests1']:.0f} | {f['mb0']:.1f}, {f['mb1']:.1f} |"
        )
    # What the processors would do at best, if all of them were busy with the loader, the server and the road.
    possible = cores / (m["s3"]["cpu0"] + m["s3"]["server"]) * 1e6
    verdicts = [
        ("S3 at 20 ms a request, first epoch, of local", m["s3"]["rate0"], m["local"]["rate0"], "local", 0.95, True),
        ("S3 at 20 ms a request, of what the processors leave beside the server", m["s3"]["rate0"],
         min(possible, m["local"]["rate0"]), "the bound", 0.95, True),
        ("S3 with a cache, second epoch, of local", m["cache"]["rate1"], m["local"]["rate1"], "local", 0.98, True),
    ]  # fmt: skip
    return {"lines": lines, "verdicts": verdicts}


if __name__ == "__main__":
    tell(child(*sys.argv[2:8]))
