"""The benchmark of samples: small pictures and photographs, ours beside Deep Lake, Lance, MDS, WebDataset, Hugging Face.

``make bench-samples`` makes the JPEG files once, in the folder of ``--out``, and prints a table after each part.
Every figure comes from a fresh process, the stores take turns, and every answer is held against what was written.
``--parts`` names what is to run, ``--stores`` who takes part, ``--count`` makes it small.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import sample_media
import sample_report
from harness import (
    machine,
    peak,
    positive,
    start_child,
    stored_bytes,
    tell,
    versions,
)
from sample_engines import STORES, Store, changed_bytes, chosen, files_of, rehearse, touch

SCRIPT = Path(__file__)
TOUCHED = 2 << 30
"""Bytes of memory that are touched before samples are written."""

MEASURES = ("write", "one", "scan", "labels", "update")
PARTS = (*sample_media.KINDS, "tiles", "memory", "s3", "spark")
RANDOM = 300
"""Random samples of one process, each timed, after `WARM` that are not."""
WARM = 30
AGAIN = 5
SHARE = 0.01
"""Of the samples that get another label."""
NEW_LABEL = 7


def read_bytes() -> int:
    """Return how many bytes this process has read by system calls; what is mapped into memory is not among them."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("rchar:"):
            return int(line.split()[1])
    raise OSError("no rchar in /proc/self/io")


def timed(act: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return the seconds of something, those of the processor, and what it returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = act()
    return time.perf_counter() - wall, time.process_time() - cpu, found


def write(store: Store, media: sample_media.Media) -> dict[str, float]:
    """Write all samples, which are in memory as bytes; the size is in bytes a sample above the media."""
    seconds, cpu, _ = timed(lambda: store.write(media))
    most = peak()
    size = stored_bytes(Path(store.place))
    os.sync()  # or writing back would burden the next process
    count = len(media.images)
    return {
        "write": count / seconds, "write_cpu": cpu / count * 1e6, "write_peak": most,
        "share": size / media.nbytes, "over": (size - media.nbytes) / count,
    }  # fmt: skip


def one(store: Store, media: sample_media.Media) -> dict[str, float]:
    """Read random samples, one by one."""
    seconds, _, handle = timed(store.open)
    rng = np.random.default_rng(os.getpid())
    times, work = [], []
    for k in rng.integers(len(media.images), size=WARM + RANDOM).tolist():
        took, cpu, found = timed(lambda: store.one(handle, k))  # type: ignore[misc]  # noqa: B023
        if bytes(found) != media.images[k]:
            raise AssertionError(f"sample {k} is another one")
        times.append(took)
        work.append(cpu)
    return {
        "open": seconds * 1e3, "one_first": times[0] * 1e3,
        "one": statistics.median(times[WARM:]) * 1e3, "one_cpu": statistics.mean(work[WARM:]) * 1e3,
    }  # fmt: skip


def scan(store: Store, media: sample_media.Media) -> dict[str, float]:
    """Read all images once for warmth and then again and again; a byte of every page is looked at."""

    handle = store.open()

    def all_of_them() -> None:
        counts, sizes = zip(*map(touch, store.scan(handle)), strict=True)
        if (sum(counts), sum(sizes)) != (len(media.images), media.nbytes):
            raise AssertionError(f"{sum(counts)} samples of {sum(sizes)} bytes")

    start = 0
    for piece in store.scan(handle):  # the values, once
        for k, found in enumerate(piece, start):
            if bytes(found if isinstance(found, bytes) else found.as_py()) != media.images[k]:
                raise AssertionError(f"sample {k} is another one")
        start += len(piece)
    found = [timed(all_of_them) for _ in range(AGAIN)]
    count = len(media.images)
    return {
        "scan": count / statistics.median(f[0] for f in found),
        "scan_cpu": statistics.median(f[1] for f in found) / count * 1e6,
    }


def labels(store: Store, media: sample_media.Media) -> dict[str, float]:
    """Read the labels of all samples; the bytes are those of opening and the first read, not of importing modules."""
    handle = store.open()
    times = []
    for _ in range(AGAIN + 2):
        seconds, _, found = timed(lambda: store.labels(handle))  # type: ignore[misc]
        if not np.array_equal(found, media.labels):
            raise AssertionError("other labels")
        times.append(seconds)
    # The same files under another name, of which this process knows nothing yet.
    other = f"{store.place}-linked"
    shutil.copytree(store.place, other, copy_function=os.link)
    anew = type(store)(other)
    before = read_bytes()
    anew.labels(anew.open())  # type: ignore[misc]
    nbytes = read_bytes() - before
    shutil.rmtree(other)
    return {"labels": statistics.median(times[1:]) * 1e3, "labels_share": nbytes / media.nbytes}


def update(store: Store, media: sample_media.Media) -> dict[str, float]:
    """Give random samples another label, and read all labels back."""
    count = len(media.images)
    sids = np.sort(np.random.default_rng(1).choice(count, round(count * SHARE), replace=False))
    handle = store.open()
    before = files_of(Path(store.place))
    seconds, cpu, _ = timed(lambda: store.update(handle, sids, NEW_LABEL))  # type: ignore[misc]
    nbytes = changed_bytes(before, files_of(Path(store.place)))
    wanted = media.labels.copy()
    wanted[sids] = NEW_LABEL
    reader = store.open()
    if not np.array_equal(store.labels(reader), wanted):  # type: ignore[misc]
        raise AssertionError("other labels after the update")
    return {"update": seconds, "update_cpu": cpu, "update_share": nbytes / media.nbytes}


def child(name: str, measure: str, place: str, source: str) -> dict[str, float]:
    """Do what a fresh process does: one measure of one store."""
    media = sample_media.load(Path(source))
    rehearse(name, media)
    acts = {"write": write, "one": one, "scan": scan, "labels": labels, "update": update}
    return acts[measure](STORES[name](place), media)


def touch_memory() -> None:
    """Take memory, and give it back.

    A virtual machine gets memory from its host when it is first touched, which takes ten times as long as writing into
    it. Whoever is measured first would pay for all.
    """
    np.full(TOUCHED, 1, np.uint8)


def can(name: str, measure: str) -> bool:
    """Return whether a store has this at all."""
    return measure in ("write", "scan") or getattr(STORES[name], measure) is not None


def compare(kind: str, names: list[str], repeat: int, source: Path, work: Path) -> dict[str, Any]:
    """Measure all stores on one kind of media, interleaved round by round; what fails is left out from then on."""
    samples: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    errors: dict[str, str] = {}
    for number in range(repeat):
        turn = number % len(names)
        for measure in MEASURES:
            for name in names[turn:] + names[:turn]:
                what = f"{name}, {measure}"
                if what in errors or f"{name}, write" in errors or not can(name, measure):
                    continue
                place = work / f"{kind}-{name.replace(' ', '-')}"
                if measure == "write":
                    shutil.rmtree(place, ignore_errors=True)
                    touch_memory()
                out = start_child(SCRIPT, [name, measure, str(place), str(source)])
                if isinstance(out, str):
                    errors[what] = out
                    print(f"{kind}: {what} failed: {out}", file=sys.stderr)
                    continue
                for figure, value in out.items():
                    samples[name].setdefault(figure, []).append(value)
        print(f"{kind}: round {number + 1} of {repeat}", file=sys.stderr)
    for path in work.glob(f"{kind}-*"):
        shutil.rmtree(path, ignore_errors=True)
    medians = {
        name: {figure: statistics.median(values) for figure, values in found.items()}
        for name, found in samples.items()
    }
    return {"medians": medians, "samples": samples, "errors": errors}


def part(name: str, args: argparse.Namespace, media: Path, work: Path) -> dict[str, Any]:
    """Run one part and return what it found."""
    if name in sample_media.KINDS:
        kind = sample_media.KINDS[name]
        count = min(kind.count, args.count or kind.count)
        source = sample_media.cached(name, count, media)
        about = sample_media.load(source)
        found = compare(name, list(args.stores), args.repeat, source, work)
        return found | {"count": count, "media": about.nbytes}
    import sample_parts

    return sample_parts.run(name, args.count, args.repeat, media, work)


def main() -> int:
    """Run the parts that were asked for; the exit code is 1 if a store failed."""
    if sys.argv[1:2] == ["--child"]:
        tell(child(*sys.argv[2:6]))
        sys.stdout.flush()
        os._exit(0)  # threads that `datasets` leaves behind would abort an orderly end
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="names with commas")
    parser.add_argument("--stores", type=chosen, default="all", help="names with commas, or all")
    parser.add_argument("--repeat", type=positive, default=3)
    parser.add_argument("--count", type=positive, help="samples at most, of each kind")
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    args = parser.parse_args()
    names = args.parts.split(",")
    if unknown := set(names) - set(PARTS):
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    alone = "make bench-samples" if len(sys.argv) == 1 else ""
    report: dict[str, Any] = {
        **machine(),
        "repeat": args.repeat,
        "versions": versions([STORES[n].package for n in args.stores] + ["pyarrow", "deltalake", "numpy"]),
        "settings": {n: STORES[n].settings for n in args.stores},
        "command": alone or " ".join([f"python tests/benchmarks/{SCRIPT.name}", *sys.argv[1:]]),
        "parts": {},
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-samples-") as folder:
        for name in names:
            report["parts"][name] = part(name, args, args.out / "media", Path(folder))
            # After every part: what is measured stays, whatever happens to the next.
            (args.out / "samples.json").write_text(json.dumps(report, indent=1))
            (args.out / "samples.md").write_text(sample_report.text(report))
            print("\n".join(sample_report.part(name, report["parts"][name])), flush=True)
    print("\n".join(sample_report.verdicts(report)))
    return 1 if any(found.get("errors") for found in report["parts"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
