"""The report of the Spark benchmark: what was measured, held against the bounds, as a table and a plot."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

AUDIT = ("check", "purge", "purge of a part", "vacuum")


class Bound(NamedTuple):
    """A figure and what it must be.

    Attributes
    ----------
    what : str
    figure, must : float
    least : bool
        Whether `must` is the least that will do, and not the most.
    unit : str
    """

    what: str
    figure: float
    must: float
    least: bool = False
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the bound holds."""
        return self.figure >= self.must if self.least else self.figure <= self.must


def medians(report: dict[str, Any]) -> dict[str, float]:
    """Return the median seconds of every measure of the warm session."""
    times = report["found"]["local"]["times"]
    return {name: statistics.median(values) for name, values in times.items()}


def workers(report: dict[str, Any], count: int, kind: str = "workers") -> dict[str, float]:
    """Return the median seconds on a cluster of so many workers, or of so many ``"processes"`` without Spark."""
    parts = [p for n, p in report["found"].items() if n.startswith(f"{kind}-{count}-")]
    return {name: statistics.median(p[name] for p in parts) for name in parts[0]}


def pieces(report: dict[str, Any]) -> dict[int, dict[str, float]]:
    """Return what was measured for every number of pieces."""
    found = report["found"]
    return {int(n.split("-")[1]): p for n, p in found.items() if n.startswith("pieces-")}


def bounds(report: dict[str, Any]) -> Iterator[Bound]:
    """Yield every figure that has a bound."""
    s = medians(report)
    local = report["found"]["local"]
    piece = local["slice"]
    one, two = workers(report, 1), workers(report, 2)
    memory = pieces(report)
    least, most = memory[min(memory)], memory[max(memory)]
    yield Bound("ingest, times plain Delta with Spark", s["ingest"] / s["plain Delta"], 1.3)
    yield Bound(
        "ingest, times the rate of collect() on the driver, file by file",
        local["bytes"] / s["ingest"] / (local["bytes of a file"] / s["collect, one file"]),
        4, least=True,
    )  # fmt: skip
    for name, verb in (("ingest", "ingest"), ("read", "full read")):
        yield Bound(f"{verb}, 1 to 2 workers of one core", one[name] / two[name], 1.7, least=True)
    single, double = workers(report, 1, "large"), workers(report, 2, "large")
    for name in AUDIT[:3]:
        gain = single[name] / double[name]
        yield Bound(f"{name}, 1 to 2 workers of one core", gain, 1.6, least=True)
    yield Bound("vacuum of 20,000 files that no version names", double["vacuum"], 3, unit=" s")
    yield Bound(
        "full read to Arrow, times plain Parquet",
        s["to Arrow"] / s["to Arrow, plain Parquet"], 1.3,
    )  # fmt: skip
    yield Bound("full read in Spark, times plain Parquet", s["all"] / s["all, plain Parquet"], 1.5)
    yield Bound("ten images, over one row", s["ten images"] - s["one row"], 0.15, unit=" s")
    yield Bound("slice of 1 %, over one row", s["1 %"] - s["one row"], 0.1, unit=" s")
    yield Bound("slice of 1 %, bytes planned", piece["planned"] / piece["needed"], 1.5)
    for name, what in (("1 %", "slice of 1 %"), ("all files", "full read")):
        yield Bound(
            f"{what} by plain Delta and functions, times format('tensor')",
            s[f"{name}, plain Delta and functions"] / s[name], 1.3,
        )  # fmt: skip
    small, order = (report["found"]["upkeep"][name] for name in ("compaction", "zorder"))
    yield Bound("10,000 small files optimised", small["rate"], 100, least=True, unit=" MB/s")
    yield Bound("files that a day's slice reads afterwards", small["files of a day"], 1)
    yield Bound(
        "box on inner axes, bytes after Morton order", order["after"] / order["before"], 1 / 3
    )
    for name, rate in report["found"]["upkeep"]["functions"].items():
        yield Bound(f"functions, {name}, one task", rate, 200, least=True, unit=" MB/s")
    together = report["found"]["at once"]
    yield Bound(
        f"five kinds of work at once, {together['seconds']} s without an error: fewest times of one",
        min(together["done"].values()), 10, least=True,
    )  # fmt: skip
    for name, what in (("peak", "driver"), ("workers", "largest Python worker")):
        yield Bound(
            f"memory of the {what}, {min(memory)} to {max(memory)} pieces",
            most[name] / least[name], 1.25,
        )  # fmt: skip


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    broken = [name for name, part in report["found"].items() if isinstance(part, str)]
    if broken:
        return f"These parts failed: {', '.join(broken)}.\n"
    found = report["found"]["local"]
    packages = ", ".join(f"{k} {v}" for k, v in report["versions"].items())
    lines = [
        f"Date {report['date']}, {report['cpus']} CPUs ({report['machine']}), Python {report['python']}; medians. "
        f"Packages: {packages}. Command: `{report['command']}`.",
        "",
        "| | measured | must | met |",
        "|---|---|---|---|",
    ]
    for bound in bounds(report):
        sign = ">=" if bound.least else "<="
        met = "yes" if bound.met else "no"
        lines.append(
            f"| {bound.what} | {bound.figure:.2f}{bound.unit} | {sign} {bound.must:.3g}{bound.unit} | {met} |"
        )
    lines += ["", f"| local[2], warm; {found['bytes'] / 1e9:.1f} GB ingested | s |", "|---|---|"]
    lines += [f"| {name} | {seconds:.3f} |" for name, seconds in medians(report).items()]
    lines += ["", "| cluster, all files | ingest s | read s |", "|---|---|---|"]
    for kind, what in (
        ("workers", "worker(s) of one core"),
        ("processes", "process(es) of one core, without Spark"),
    ):
        one, two = (workers(report, count, kind) for count in (1, 2))
        for count, s in enumerate((one, two), 1):
            lines.append(f"| {count} {what} | {s['ingest']:.2f} | {s['read']:.2f} |")
        gain = " | ".join(f"{one[name] / two[name]:.2f}" for name in ("ingest", "read"))
        lines.append(f"| two, times one | {gain} |")
    lines += ["", large_table(report)]
    done = report["found"]["at once"]["done"]
    lines += ["", "At once: " + ", ".join(f"{name} {n} times" for name, n in done.items()) + "."]
    lines += [
        "",
        "| pieces | seconds | driver MB | largest Python worker MB | JVM of driver and executor MB |",
        "|---|---|---|---|---|",
    ]
    for count, m in pieces(report).items():
        figures = " | ".join(f"{m[n]:.0f}" for n in ("peak", "workers", "jvm"))
        lines.append(f"| {count} | {m['seconds']:.1f} | {figures} |")
    return "\n".join(lines) + "\n"


def large_table(report: dict[str, Any]) -> str:
    """Return what the jobs on large files took; a vacuum is the driver's."""
    one, two = workers(report, 1, "large"), workers(report, 2, "large")
    lines = [
        "| cluster, a table of large files | one worker s | two s | times | processor s on the longest way: one | two | times |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in AUDIT:
        pairs = [(one[n], two[n]) for n in (name, f"{name}, processor")]
        figures = " | ".join(f"{a:.2f} | {b:.2f} | {a / b:.2f}" for a, b in pairs)
        lines.append(f"| {name} | {figures} |")
    return "\n".join(lines)


def plot(report: dict[str, Any], path: Path) -> None:
    """Draw every figure as a share of its bound."""
    if any(isinstance(part, str) for part in report["found"].values()):
        return
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = list(bounds(report))
    shares = [b.must / b.figure if b.least else b.figure / b.must for b in found]
    figure, axes = plt.subplots(figsize=(11, 0.4 * len(found) + 1))
    colours = ["#2a7f62" if b.met else "#b5442e" for b in found]
    axes.barh([b.what for b in found], shares, color=colours)
    axes.axvline(1, color="black", linewidth=1)
    axes.invert_yaxis()
    axes.set_xlabel("share of the bound: left of the line it holds")
    axes.margins(y=0.01)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
