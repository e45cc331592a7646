"""What the benchmark on S3 makes of its figures: tables, the criteria, a plot."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reporting import settings, whole_engines, yes
from s3_engines import OURS

MEASURES = {"photos": ("ten", "ten-link", "full", "full-link"), "uber": ("day",)}
"""What is read of each workload; ``-link`` is over a link of 1 Gbit/s."""

_ACROSS = 3  # panels of the plot

SLICES = ("ten", "ten-link", "day")

TITLES = {
    "ten": "ten images (`x[30:40]`)",
    "ten-link": "ten images over a link of 1 Gbit/s",
    "full": "all",
    "full-link": "all over a link of 1 Gbit/s",
    "day": "a day (`x[77]`)",
}

KINDS = ("warm", "renewed", "cold")
MOST_TRIPS = {"warm": 1, "renewed": 4, "cold": 6}
"""Round trips of ours; warm is with the footers at hand."""
LEAST_BANDWIDTH = 0.8
"""Of a full read, as a share of a plain parallel GET's."""


def medians(samples: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median of every figure; of round trips and requests the least, for load adds to them."""
    return {
        name: min(values) if name.endswith(("_trips", "_requests")) else statistics.median(values)
        for name, values in samples.items()
    }


class Criterion(NamedTuple):
    """Something that is asked of ours.

    Attributes
    ----------
    what, found, bound : str
        What it is, what was found, what was asked.
    met : bool
        Whether it is so.
    """

    what: str
    found: str
    bound: str
    met: bool


def criteria(report: dict[str, Any]) -> list[Criterion]:
    """Return what is asked of ours, as far as those took part who have to."""
    out = []
    for workload, found in report["workloads"].items():
        engines = whole_engines(found)
        for measure in MEASURES[workload]:
            took_part = {e: m for e, m in engines.items() if f"{measure}_warm" in m}
            if measure in SLICES:
                out += _trips(took_part, measure)
                out += _beside_peers(took_part, report["peers"], measure)
            elif OURS in took_part and "get" in took_part:
                share = took_part["get"][f"{measure}_warm"] / took_part[OURS][f"{measure}_warm"]
                what = f"{measure}: bandwidth as a share of a plain parallel GET's"
                met = share >= LEAST_BANDWIDTH
                out.append(Criterion(what, f"{share:.2f}", f">= {LEAST_BANDWIDTH}", met))
    return out


def _trips(engines: dict[str, dict[str, float]], measure: str) -> list[Criterion]:
    out = []
    for ours in (e for e in engines if e.startswith(OURS)):
        for kind, most in MOST_TRIPS.items():
            trips = int(engines[ours][f"{measure}_{kind}_trips"])
            what = f"{ours}, {measure}, {kind}: round trips"
            out.append(Criterion(what, str(trips), f"<= {most}", trips <= most))
    return out


def _beside_peers(
    engines: dict[str, dict[str, float]], peers: Sequence[str], measure: str
) -> list[Criterion]:
    """Compare ours, warm with the fastest peer, and cold with TileDB."""
    there = [e for e in engines if e in peers]
    cold = [e for e in there if e.startswith("tiledb")]
    out = []
    for kind, among in (("warm", there), ("cold", cold)):
        if OURS in engines and among:
            name = f"{measure}_{kind}"
            best = min(among, key=lambda e: engines[e][name])
            ratio = engines[OURS][name] / engines[best][name]
            what = f"{measure}, {kind}: time as a share of {best}'s"
            out.append(Criterion(what, f"{ratio:.2f}", "<= 1", ratio <= 1))
    return out


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = [
        f"Date {report['date']}, {report['cpus']} CPUs ({report['machine']}), Python {report['python']}; "
        f"median of {report['repeat']} fresh processes for every figure. S3Proxy is on the same machine, with 20 ms "
        "added to every request. Client, proxy and server share the processors.",
        "",
        "Packages: " + ", ".join(f"{k} {v}" for k, v in report["versions"].items()) + ".",
        "",
        *settings(report),
        "",
        f"Command: `{report['command']}`",
        "",
        "Times are in ms.",
        "",
        "- **Warm**: again with the same handle.",
        "- **Renewed**: again, after a look for a newer version.",
        "- **Cold**: opening and the first read of a process that has imported its packages.",
        "- **Round trips**: the least of all runs, because load can only add to them.",
    ]
    for workload, found in report["workloads"].items():
        for measure in MEASURES[workload]:
            lines += ["", f"### {workload}, {TITLES[measure]}", "", *_figures(found, measure)]
    rows = criteria(report)
    if rows:
        lines += ["", "| criterion | found | bound | met |", "|---|---|---|---|"]
        lines += [
            f"| {what} | {value} | {bound} | {yes(met)} |" for what, value, bound, met in rows
        ]
    return "\n".join(lines) + "\n"


def _figures(found: dict[str, Any], measure: str) -> list[str]:
    columns = [f"{kind} ms | round trips | requests | MB" for kind in KINDS]
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (4 * len(columns) + 1) + "|"]
    for engine, m in found["medians"].items():
        if engine in found["errors"]:
            said = found["errors"][engine].replace("|", "/")[:200]
            lines.append(f"| {engine} | failed: {said} |" + " |" * (4 * len(columns) - 1))
        elif f"{measure}_cold" in m:
            cells = []
            for kind in KINDS:
                name = f"{measure}_{kind}"
                cells += [f"{m[name] * 1e3:.0f}", f"{m[name + '_trips']:.0f}"]
                cells += [f"{m[name + '_requests']:.0f}", f"{m[name + '_mb']:.2f}"]
            lines.append(f"| {engine} | " + " | ".join(cells) + " |")
    return lines


def plot(report: dict[str, Any], path: Path) -> None:
    """Draw the times of every engine as bars, a panel for each measure; a number is the round trips."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [(w, m) for w in report["workloads"] for m in MEASURES[w]]
    rows = -(-len(panels) // _ACROSS)
    figure, axes = plt.subplots(
        rows, _ACROSS, figsize=(4.6 * _ACROSS, 4.2 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    shades = {"warm": "#1f77b4", "renewed": "#7fb2d9", "cold": "#c9c9c9"}
    handles: dict[str, Any] = {}
    for axis, (workload, measure) in zip(axes.flat, panels):
        found = whole_engines(report["workloads"][workload])
        engines = [e for e in found if f"{measure}_cold" in found[e]]
        for y, engine in enumerate(engines):
            for k, kind in enumerate(KINDS):
                name = f"{measure}_{kind}"
                at = y + (k - 1) * 0.27
                value = found[engine][name] * 1e3
                handles[kind] = axis.barh(at, value, 0.25, color=shades[kind])
                trips = f" {found[engine][name + '_trips']:.0f}"
                axis.text(value, at, trips, va="center", fontsize=8)
        axis.set_yticks(range(len(engines)), engines)
        axis.set_ylim(max(len(engines), 1) - 0.5, -0.5)
        axis.set_title(f"{workload}, {measure}")
        axis.set_xlabel("ms; the number: round trips")
        axis.margins(x=0.1)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncol=3)
    figure.savefig(path, dpi=120)
    plt.close(figure)
