"""What the dense benchmark makes of its figures: a table, the criteria, a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from reporting import Criterion, figures, head, unit, whole_engines, yes

MEASURES = ("size", "write", "full", "ten", "crop", "line")
MUST = {"size": 0.625, "write": 0.7, "full": 1.0, "ten": 1.0, "crop": 1.0, "line": 0.6}
"""For the photographs: size as a share of raw, the others as a ratio to the fastest compressed peer."""
COMPRESSED = 0.95  # of raw: what is larger has not been compressed
_EDGE = 10  # the plot's axis ends here


def criteria(found: dict[str, Any], peers: list[str], bounds: bool) -> list[Criterion]:
    """Compare ours with the best compressed peer, measure by measure.

    Parameters
    ----------
    found : dict
        What `harness.Benchmark.run` returned for a workload.
    peers : list of str
        Engines that may be compared with; those that failed or did not compress are passed over.
    bounds : bool
        Whether `MUST` holds for this workload.

    Returns
    -------
    list of Criterion
        Empty without ours or without a peer.
    """
    medians = whole_engines(found)
    ours = medians.get("tensorlake")
    packed = {e: medians[e] for e in peers if e in medians and medians[e]["size"] < COMPRESSED}
    if ours is None or not packed:
        return []
    rows = []
    for measure in MEASURES:
        best = min(packed, key=lambda e: packed[e][measure])
        must = MUST[measure] if bounds else None
        rows.append(Criterion(measure, ours[measure], packed[best][measure], best, must))
    return rows


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = head(report, "the raw bytes")
    for name, found in report["workloads"].items():
        lines += ["", f"### {name} ({found['raw_bytes'] / 1e6:.0f} MB)", ""]
        lines += figures(found, MEASURES[2:])
        lines += _criteria(criteria(found, report["peers"], name == "photos"))
    return "\n".join(lines) + "\n"


def _criteria(rows: list[Criterion]) -> list[str]:
    if not rows:
        return []
    bounds = rows[0].must is not None
    lines = [
        "",
        "| measure | ours | best compressed peer | its figure | ours / its |"
        + (" must | met |" if bounds else ""),
        "|---|---|---|---|---|" + ("---|---|" if bounds else ""),
    ]
    for row in rows:
        times = unit(row.measure)
        line = f"| {row.measure} | {row.ours * times:.3f} | {row.peer} | {row.theirs * times:.3f} "
        line += f"| {row.ratio:.2f} |"
        if bounds:
            of = " of raw" if row.measure == "size" else ""
            line += f" <= {row.must}{of} | {yes(row.met)} |"
        lines.append(line)
    return lines


def plot(report: dict[str, Any], path: Path) -> None:
    """Draw every measure relative to ours: a dot right of the line is slower, or larger, than ours.

    What lies beyond a tenth or ten times ours is a triangle at the edge. Without ours the first
    engine takes its place.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(report["workloads"])
    figure, axes = plt.subplots(1, len(names), figsize=(7.5 * len(names), 6.2), squeeze=False)
    engines = list(report["settings"])
    colors = {e: plt.get_cmap("tab10")(k % 10) for k, e in enumerate(engines)}
    handles: dict[str, Any] = {}
    for axis, name in zip(axes[0], names):
        found = report["workloads"][name]
        medians = whole_engines(found)
        axis.set_title(f"{name}, {found['raw_bytes'] / 1e6:.3g} MB")
        if not medians:
            continue
        base = "tensorlake" if "tensorlake" in medians else next(iter(medians))
        others = [e for e in medians if e != base]
        for k, engine in enumerate(others):
            for y, measure in enumerate(MEASURES):
                ratio = medians[engine][measure] / max(medians[base][measure], 1e-9)
                mark = "<" if ratio < 1 / _EDGE else ">" if ratio > _EDGE else "o"
                at = y + (k - (len(others) - 1) / 2) * 0.8 / max(1, len(others))
                shown = min(max(ratio, 1 / _EDGE), _EDGE)
                (dot,) = axis.plot(
                    shown, at, mark, color=colors[engine], markersize=7, clip_on=False
                )
                if mark == "o" or engine not in handles:
                    handles[engine] = dot
        for row in criteria(found, report["peers"], name == "photos"):
            if row.must is not None and row.measure != "size":
                y = MEASURES.index(row.measure)
                lines = axis.vlines(
                    1 / row.must, y - 0.45, y + 0.45, color="0.75", linewidth=5, zorder=0
                )
                handles["bound: compressed peers right of it"] = lines
        _dress(axis, base)
    figure.legend(
        handles.values(), handles.keys(), loc="lower center", ncol=3 * len(names), frameon=False,
        bbox_to_anchor=(0.5, 0),
    )  # fmt: skip
    figure.tight_layout(rect=(0, 0.16 if len(names) == 1 else 0.1, 1, 1))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _dress(axis: Any, base: str) -> None:
    """Set the scale, the ticks and the lines between the measures."""
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10]
    axis.axvline(1, color="black", linewidth=1)
    axis.set_xscale("log")
    axis.set_xlim(1 / _EDGE, _EDGE)
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axis.minorticks_off()
    axis.set_yticks(range(len(MEASURES)), MEASURES)
    axis.set_ylim(len(MEASURES) - 0.5, -0.5)
    axis.set_xlabel(f"times {base} (right of the line: slower or larger than {base})")
    axis.grid(axis="x", alpha=0.3)
    for y in np.arange(len(MEASURES) - 1):
        axis.axhline(y + 0.5, color="0.85", linewidth=0.8)
