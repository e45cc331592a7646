"""What the sparse benchmark makes of its figures: tables, the criteria, the paper's ratios, a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reporting import Criterion, figures, head, unit, whole_engines, yes
from sparse_engines import BASE, LAYOUTS

MEASURES = ("size", "write", "full", "day", "box", "hour")
READS = ("full", "day", "box", "crowd", "hour")
"""All that is read; ``crowd``, the box of its size with the most non-zeros, has no bound."""

MUST = {"size": 0.0315, "write": 0.25, "full": 0.7, "day": 0.25, "box": 0.2, "hour": 0.8}
"""For bsgs: size as a share of the ``.pt`` file, the others as a ratio to TileDB."""

ELEMENT_BYTES = 40
"""Of a non-zero of the workload: four coordinates of int64, a float64."""

PAPER = {
    "bsgs": {"size": 0.0483, "full": 1 - 0.2959, "day": 1 - 0.5534},
    "csf": {"write": 1 - 0.2668},
}
"""What the Delta Tensor paper says of its layouts (section V): ratios to ``.pt``."""


def criteria(found: dict[str, Any], peer: str) -> list[Criterion]:
    """Compare bsgs with a peer, measure by measure; empty if one of them is not there."""
    medians = whole_engines(found)
    if "bsgs" not in medians or peer not in medians:
        return []
    return [Criterion(m, medians["bsgs"][m], medians[peer][m], peer, MUST[m]) for m in MEASURES]


def ratios(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the figures of our layouts as ratios to the whole file; the size is one already."""
    medians = whole_engines(found)
    if BASE not in medians:
        return {}
    base = {**medians[BASE], "size": 1.0}
    names = [m for measure in MEASURES for m in (measure, f"{measure}_first") if m in base]
    return {e: {m: medians[e][m] / base[m] for m in names} for e in LAYOUTS if e in medians}


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = head(report, f"the bytes of the {BASE} file, with int64 coordinates and float64 values")
    for name, found in report["workloads"].items():
        lines += ["", f"### {name} ({found['raw_bytes'] / 1e6:.0f} MB)", ""]
        lines += figures(found, READS, digits=4)
        lines += ["", "crowd: the box of 64 x 64 cells with the most non-zeros, all days."]
        lines += _criteria(found)
        lines += _beside_base(found)
        lines += _beside_paper(found)
    return "\n".join(lines) + "\n"


def _criteria(found: dict[str, Any]) -> list[str]:
    peers = [e for e in whole_engines(found) if e.startswith("tiledb")]
    by_peer = {peer: criteria(found, peer) for peer in peers}
    if not any(by_peer.values()):
        return []
    lines = [
        "",
        f"bsgs beside TileDB. The aim for the size is a share of the {BASE} file; the other aims are ratios to TileDB.",
        "",
        "| measure | bsgs | must | " + " | ".join(f"{p} | ratio | met" for p in peers) + " |",
        "|---|---|---" + "|---|---|---" * len(peers) + "|",
    ]
    for rows in zip(*by_peer.values()):
        first, times = rows[0], unit(rows[0].measure)
        digits = 4 if first.measure == "size" else 2
        of = f" of {BASE}" if first.measure == "size" else ""
        cells = [first.measure, f"{first.ours * times:.{digits}f}", f"<= {first.must}{of}"]
        for row in rows:
            cells += [f"{row.theirs * times:.{digits}f}", f"{row.ratio:.2f}", yes(row.met)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _beside_base(found: dict[str, Any]) -> list[str]:
    measured = ratios(found)
    if not measured:
        return []
    lines = [
        "",
        f"| ratio to {BASE} | size | day | both smaller | million non-zeros written a second |",
        "|---|---|---|---|---|",
    ]
    medians = whole_engines(found)
    for layout, m in measured.items():
        met = yes(m["size"] < 1 and m["day"] < 1)
        rate = found["raw_bytes"] / ELEMENT_BYTES / medians[layout]["write"] / 1e6
        lines.append(f"| {layout} | {m['size']:.4f} | {m['day']:.3f} | {met} | {rate:.1f} |")
    return lines


def _beside_paper(found: dict[str, Any]) -> list[str]:
    measured = ratios(found)
    if not measured:
        return []
    lines = [
        "",
        f"The paper's four figures, as ratios to {BASE}; in brackets, with opening and the first read:",
        "",
        "| | size | write | read | slice (one day) |",
        "|---|---|---|---|---|",
    ]
    for layout, m in measured.items():
        reads = [f"{m[r]:.3f} ({m[f'{r}_first']:.3f})" for r in ("full", "day")]
        lines.append(
            f"| {layout} | {m['size']:.4f} | {m['write']:.2f} | " + " | ".join(reads) + " |"
        )
    for layout, said in PAPER.items():
        cells = [f"{said[m]:.4g}" if m in said else "" for m in ("size", "write", "full", "day")]
        lines.append(f"| the paper's {layout} | " + " | ".join(cells) + " |")
    return lines


def plot(report: dict[str, Any], path: Path) -> None:
    """Draw a panel for each measure, a line for each engine; a bar marks what bsgs must reach."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(report["workloads"])
    engines = list(report["settings"])
    rows = 2 * len(names)
    height = 1.0 + 0.26 * len(engines)
    made, axes = plt.subplots(
        rows, 3, figsize=(13, height * rows), squeeze=False, sharey=True, layout="constrained"
    )
    for number, name in enumerate(names):
        found = report["workloads"][name]
        for axis, measure in zip(axes[2 * number : 2 * number + 2].flatten(), MEASURES):
            _panel(axis, measure, engines, found)
    made.suptitle(
        f"{', '.join(names)}: left is better, logarithmic; dark: our layouts; "
        "red: the bound for bsgs beside the first TileDB",
        x=0.01, ha="left", fontsize=11,
    )  # fmt: skip
    made.savefig(path, dpi=110)
    plt.close(made)


_TITLES = {
    "size": "size, share of the raw elements",
    "write": "write, s",
    "full": "full read, ms",
    "day": "one day, ms",
    "box": "all days, 64 x 64 cells, ms",
    "hour": "one hour of all days, ms",
}


def _panel(axis: Any, measure: str, engines: list[str], found: dict[str, Any]) -> None:
    medians = whole_engines(found)
    shown = {e: m[measure] * unit(measure) for e, m in medians.items()}
    axis.set_title(_TITLES[measure], loc="left", fontsize=11)
    axis.set_xscale("log")
    axis.xaxis.set_minor_formatter("")  # over less than a decade their labels would overlap
    if shown:
        axis.set_xlim(min(shown.values()) / 2, max(shown.values()) * 3)
    for y, engine in enumerate(engines):
        if engine not in shown:
            axis.text(0.02, y, "failed", transform=axis.get_yaxis_transform(), va="center")
            continue
        color = "#1f4e79" if engine in LAYOUTS else "#8c9aa6"
        axis.plot([axis.get_xlim()[0], shown[engine]], [y, y], color=color, alpha=0.35)
        axis.plot(shown[engine], y, "o", color=color, markersize=7)
        axis.text(
            shown[engine] * 1.13, y, f"{shown[engine]:.3g}", va="center", fontsize=9, zorder=3,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    for row in criteria(found, "tiledb"):
        if row.measure == measure and row.must is not None:
            bound = row.must if measure == "size" else row.must * row.theirs * unit(measure)
            y = engines.index("bsgs")
            axis.vlines(bound, y - 0.4, y + 0.4, color="#c0392b", linewidth=3)
    axis.set_yticks(range(len(engines)), engines)
    axis.set_ylim(len(engines) - 0.4, -0.6)
    axis.grid(axis="x", alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
