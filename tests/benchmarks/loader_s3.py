"""Photographs on S3, each request 20 ms longer: the rate beside that from the disk, and that of a second epoch.

Server and road have one half of the processors, and the loader the other one, also where it reads from the disk. So
what they do does not slow it down, as a server elsewhere would not.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))  # the server is there
sys.path.insert(0, str(Path(__file__).resolve().parent))

import loader_engines
import loader_media
from harness import load_packages, start_child, tell
from pyarrow.fs import FileSelector
from s3_road import S3Road, requests
from s3server import S3Server
from sample_s3 import BUCKET, options_of

DELAY_S = 0.02
COUNT = 20_000
PIECE, WARM_S = 2 << 20, 10
KINDS = ("local", "s3", "cache")
FORMS = {"cpu": ".0f", "server": ".0f", "requests": ".0f", "mb": ".1f"}


def child(
    act: str, where: str, source: str, kind: str, few: str, folder: str, pids: str
) -> dict[str, Any]:
    """Write the dataset, or read two epochs of it; `where` is a folder, or the URL of the server, which has `pids`."""
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
        served = spent(pids)
        start, work, found = time.perf_counter(), time.process_time(), 0
        for values, _ in loader.epoch(handle, number):
            found += loader_media.touch(values)
        seconds = time.perf_counter() - start
        if found != samples.count:
            raise AssertionError(f"{found} samples")
        seen = requests(where) if remote else []
        out[f"rate{number}"] = found / seconds
        out[f"cpu{number}"] = (time.process_time() - work) / found * 1e6
        out[f"server{number}"] = (spent(pids) - served) / found * 1e6
        out[f"requests{number}"] = len(seen)
        out[f"mb{number}"] = sum(r.nbytes for r in seen) / 1e6
    return out


def spent(pids: str) -> float:
    """Return the processor seconds of some processes that still run; their numbers have commas between them."""
    ticks = 0
    for pid in pids.split(","):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def warm_up(endpoint: str) -> None:
    """Read files for some seconds: a new JVM takes three times as long to serve as one that has compiled its code."""
    from tensorlake_spark.delta.store.storage import Storage

    filesystem, base = Storage(f"s3://{BUCKET}/photos", options_of(endpoint)).place
    end = time.monotonic() + WARM_S
    for info in cycle(filesystem.get_file_info(FileSelector(base))):
        if info.is_file:
            with filesystem.open_input_file(info.path) as file:
                for start in range(0, info.size, PIECE):
                    file.read_at(PIECE, start)
        if time.monotonic() > end:
            return


def halves() -> tuple[set[int], set[int]]:
    """Return the processors of server and road, and those of the loader; all for both where there is only one."""
    if not hasattr(os, "sched_getaffinity"):
        return set(), set()
    found = sorted(os.sched_getaffinity(0))
    half = len(found) // 2
    return (set(found[:half]), set(found[half:])) if half else (set(found), set(found))


@contextmanager
def on(processors: set[int]) -> Iterator[None]:
    """Let processes that are started here run on some processors only."""
    if not processors:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run(count: int | None, repeat: int, media: Path, work: Path) -> dict[str, Any]:
    """Read from the disk, from S3, and from S3 with a cache, in turns."""
    import loader_parts

    number = min(COUNT, count or COUNT)
    source = loader_media.source_of("photos", number, media).folder
    local = loader_parts.written(work, media, "photos", number)
    few = loader_parts.written(work, media, "photos", 200)
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    theirs, ours = halves()
    with ExitStack() as stack:
        with on(theirs):
            server = stack.enter_context(S3Server(work / "s3"))
            road = stack.enter_context(S3Road(server.port, DELAY_S))
        server.make_bucket(BUCKET)
        pids = f"{server._process.pid},{road._process.pid}"
        given = ["write", server.endpoint, str(source), "", str(few), "", pids]
        said = start_child(Path(__file__), given)
        warm_up(server.endpoint)
        for turn in range(repeat):
            for kind in KINDS if not isinstance(said, str) else ():
                where = str(local) if kind == "local" else road.endpoint
                folder = work / f"s3-cache-{turn}"
                given = ["read", where, str(source), kind, str(few), str(folder), pids]
                with on(ours):
                    out = start_child(Path(__file__), given)
                shutil.rmtree(folder, ignore_errors=True)
                if isinstance(out, str):
                    said = out
                    break
                found[kind].append(out)
    if isinstance(said, str):
        return {"lines": [f"failed: {said}"], "errors": {"s3": said}}
    m = {
        kind: {figure: median(f[figure] for f in some) for figure in some[0]}
        for kind, some in found.items()
    }
    lines = [
        f"{number:,} photographs, each request {DELAY_S * 1e3:.0f} ms longer. The loader has {len(ours)} processors, "
        f"server and road have {len(theirs)} others.", "",
        "| | first epoch, images/s | second | processor, us an image | the server's and the road's | requests | MB |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for kind, f in m.items():
        both = (f"{f[what + '0']:{form}}, {f[what + '1']:{form}}" for what, form in FORMS.items())
        lines.append(f"| {kind} | {f['rate0']:,.0f} | {f['rate1']:,.0f} | {' | '.join(both)} |")
    verdicts = [
        ("S3 at 20 ms a request, first epoch, of local", m["s3"]["rate0"], m["local"]["rate0"], "local", 0.95, True),
        ("S3 with a cache, second epoch, of local", m["cache"]["rate1"], m["local"]["rate1"], "local", 0.98, True),
    ]  # fmt: skip
    return {"lines": lines, "verdicts": verdicts}


if __name__ == "__main__":
    tell(child(*sys.argv[2:9]))
