"""The benchmark of loaders: ours beside Deep Lake, Lance, MDS, LitData, WebDataset, Hugging Face and PyTorch's.

``make bench-loader`` makes the samples once, in the folder of ``--out``, and prints a table after each part. Every
figure comes from a fresh process, the loaders take turns, and what they deliver is held against what was written.
``--parts`` names what is to run, ``--stores`` who takes part, ``--count`` makes it small.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import loader_engines
import loader_media
import loader_report
from harness import load_packages, machine, peak, positive, start_child, tell, versions

SCRIPT = Path(__file__)
ALONE = ("first", "resume", "s3", "ranks", "memory", "interpreter")
PARTS = (*loader_media.KINDS, *ALONE)
CHECKED = 3
"""Batches of an epoch whose every sample is compared."""
FEW = 3 * loader_engines.BATCH


def epoch(
    loader: loader_engines.Loader, handle: Any, number: int, check: int = 0
) -> dict[str, Any]:
    """Run one epoch; return its seconds, those until the first batch, and the numbers of the samples in their order."""
    labels: list[np.ndarray] = []
    kept: list[tuple[int, np.ndarray]] = []
    first = 0.0
    start = time.perf_counter()
    for batch, (values, numbers) in enumerate(loader.epoch(handle, number)):
        if not batch:
            first = time.perf_counter() - start
        found = np.array(numbers).reshape(-1)
        if loader_media.touch(values) != len(found):
            raise AssertionError(f"{len(values)} values and {len(found)} labels")
        if (
            batch < check
        ):  # copies, as a loader may use its buffers again; compared when no clock runs
            kept += [(k, np.array(v)) for k, v in zip(found.tolist(), values, strict=True)]
        labels.append(found)
    seconds = time.perf_counter() - start
    for label, value in kept:
        loader.source.check(label, value)
    order = np.concatenate(labels)
    if not np.array_equal(np.sort(order), np.arange(loader.source.count)):
        raise AssertionError(f"{len(order)} samples, not each of {loader.source.count} once")
    return {"seconds": seconds, "first": first, "order": order}


def write(name: str, place: str, source: loader_media.Source) -> dict[str, float]:
    """Write the store of a loader."""
    start = time.perf_counter()
    loader_engines.loaders()[name](place, source).write()
    seconds = time.perf_counter() - start
    os.sync()  # or writing back would burden the next process
    return {"write": seconds}


def rehearse(name: str, source: loader_media.Source) -> None:
    """Write a few samples elsewhere and read them, so that every module is imported before a clock starts."""
    kind = loader_engines.loaders()[name]
    load_packages(kind.module)
    with tempfile.TemporaryDirectory() as folder:
        few = source._replace(count=min(FEW, source.count))
        writer = loader_engines.loaders()[kind.stored or name]
        writer(f"{folder}/few", few).write()
        loader = kind(f"{folder}/few", few)
        for _ in loader.epoch(loader.open(False), 0):
            pass


def cpu() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, both))


def read(name: str, order: str, place: str, source: loader_media.Source) -> dict[str, float]:
    """Read epochs: the first begins with nothing; of the second, whose workers are there already, the rate counts."""
    rehearse(name, source)
    loader = loader_engines.loaders()[name](place, source)
    shuffle = order == "shuffled"
    start = time.perf_counter()
    handle = loader.open(shuffle)
    opened = time.perf_counter() - start
    one = epoch(loader, handle, 0, CHECKED)
    work = cpu()
    two = epoch(loader, handle, 1)
    work = cpu() - work
    for found in (one, two):
        moved = not np.array_equal(found["order"], np.arange(source.count))
        if shuffle and loader.shuffles and not moved and name not in loader_report.BOUNDS:
            raise AssertionError("the order is not shuffled")
    return {
        order: source.count / two["seconds"], f"{order}_first_epoch": source.count / one["seconds"],
        f"{order}_first_batch": opened + one["first"], f"{order}_cpu": work / source.count * 1e6,
        f"{order}_peak": peak(),
    }  # fmt: skip


def child(
    name: str, measure: str, place: str, kind: str, count: str, media: str
) -> dict[str, float]:
    """Do what a fresh process does: one measure of one loader."""
    source = loader_media.source_of(kind, int(count), Path(media))
    if measure == "write":
        return write(name, place, source)
    return read(name, measure, place, source)


def warm(place: Path) -> None:
    """Read all files below a folder, so that they are in the page cache as far as they fit."""
    for path in place.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.read(8 << 20):
                    pass


def compare(
    source: loader_media.Source, names: list[str], repeat: int, work: Path
) -> dict[str, Any]:
    """Measure loaders on one kind of samples, interleaved round by round; what fails is left out from then on."""
    known = loader_engines.loaders()
    names = [name for name in names if source.kind in known[name].kinds]
    orders = ("sequential", "shuffled") if source.raw else ("shuffled",)
    samples: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    errors: dict[str, str] = {}

    def run(name: str, measure: str, place: Path) -> None:
        given = [
            name,
            measure,
            str(place),
            source.kind,
            str(source.count),
            str(source.folder.parent),
        ]
        out = start_child(SCRIPT, given)
        if isinstance(out, str):
            errors[f"{name}, {measure}"] = out
            print(f"{source.kind}: {name}, {measure} failed: {out}", file=sys.stderr)
            return
        for figure, value in out.items():
            samples.setdefault(name, {}).setdefault(figure, []).append(value)

    places = {
        name: work / f"{source.kind}-{(known[name].stored or name).replace(' ', '-')}"
        for name in names
    }
    for store in dict.fromkeys(known[name].stored or name for name in names):
        run(store, "write", work / f"{source.kind}-{store.replace(' ', '-')}")
    for number in range(repeat):
        turn = number % len(names)
        for order in orders:
            for name in names[turn:] + names[:turn]:
                store = known[name].stored or name
                if f"{name}, {order}" in errors or f"{store}, write" in errors:
                    continue
                if not known[name].shuffles and order == "shuffled" and source.raw:
                    continue
                warm(places[name])
                run(name, order, places[name])
        print(f"{source.kind}: round {number + 1} of {repeat}", file=sys.stderr)
    for path in work.glob(f"{source.kind}-*"):
        shutil.rmtree(path, ignore_errors=True)
    medians = {
        name: {figure: statistics.median(values) for figure, values in found.items()}
        for name, found in samples.items()
    }
    return {"medians": medians, "samples": samples, "errors": errors}


def part(name: str, args: argparse.Namespace, media: Path, work: Path) -> dict[str, Any]:
    """Run one part and return what it found."""
    if name in loader_media.KINDS:
        source = loader_media.source_of(name, args.count, media)
        found = compare(source, list(args.stores), args.repeat, work)
        return found | {"count": source.count, "bytes": source.nbytes, "each": source.sample_bytes}
    import loader_parts

    return loader_parts.run(name, args.count, args.repeat, media, work)


def main() -> int:
    """Run the parts that were asked for; the exit code is 1 if a loader failed."""
    if sys.argv[1:2] == ["--child"]:
        tell(child(*sys.argv[2:8]))
        sys.stdout.flush()
        os._exit(0)  # workers and threads that peers leave behind would abort an orderly end
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="names with commas")
    parser.add_argument(
        "--stores", type=loader_engines.chosen, default="all", help="names with commas, or all"
    )
    parser.add_argument("--repeat", type=positive, default=3)
    parser.add_argument("--count", type=positive, help="samples at most, of each kind")
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    args = parser.parse_args()
    names = args.parts.split(",")
    if unknown := set(names) - set(PARTS):
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    known = loader_engines.loaders()
    alone = "make bench-loader" if len(sys.argv) == 1 else ""
    report: dict[str, Any] = {
        **machine(),
        "repeat": args.repeat,
        "versions": versions(
            [known[n].package for n in args.stores] + ["simplejpeg", "pyarrow", "deltalake", "numpy"]
        ),
        "settings": {n: f"{known[n].settings}; decodes by {known[n].decodes}" for n in args.stores},
        "command": alone or " ".join([f"python tests/benchmarks/{SCRIPT.name}", *sys.argv[1:]]),
        "parts": {},
    }  # fmt: skip
    with tempfile.TemporaryDirectory(
        prefix="bench-loader-", dir=os.environ.get("BENCH_WORK")
    ) as folder:
        for name in names:
            report["parts"][name] = part(name, args, args.out.resolve() / "media", Path(folder))
            # After every part: what is measured stays, whatever happens to the next.
            (args.out / "loader.json").write_text(json.dumps(report, indent=1))
            (args.out / "loader.md").write_text(loader_report.text(report))
            print("\n".join(loader_report.part(name, report["parts"][name])), flush=True)
    print("\n".join(loader_report.verdicts(report)))
    return 1 if any(found.get("errors") for found in report["parts"].values()) else 0


if __name__ == "__main__":
    os.environ.setdefault("LITDATA_DISABLE_VERSION_CHECK", "1")
    sys.exit(main())
