"""What the parameter study makes of its figures: a page of tables, and a plot for each workload."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

MARK = "<!-- below: made by make bench-parameters -->"
"""What stands above it in the page is written by hand, and stays."""

READS = {"photos": ("full", "ten", "crop", "line"), "uber": ("full", "day", "box", "hour")}
TITLES = {
    "block_shape": "Block shape",
    "order": "Order of the axes inside a block",
    "row_group_bytes": "Row group, bytes of payload",
    "level": "zstd level",
    "file_bytes": "File",
}


def label(factor: str, value: Any) -> str:
    """Return a value as it is shown.

    Examples
    --------
    >>> label("block_shape", (1, 3, 8)), label("row_group_bytes", 65536), label("level", 9)
    ('1x3x8', '64 KiB', '9')
    """
    if factor == "block_shape":
        return "x".join(map(str, value))
    if factor == "order":
        return ", ".join(map(str, value))
    if factor == "level":
        return str(value)
    if value >= 1 << 30:
        return f"{value / (1 << 30):g} GiB"
    return f"{value / (1 << 20):g} MiB" if value >= 1 << 20 else f"{value / (1 << 10):g} KiB"


def series(found: dict[str, Any], factor: str) -> list[tuple[str, dict[str, float], bool]]:
    """Return ``(label, medians, is the default)`` of a factor's values; numbers in ascending order."""
    default, *others = found["settings"]
    points = [(found["defaults"][factor], default["medians"], True)]
    points += [(s["value"], s["medians"], False) for s in others if s["factor"] == factor]
    if factor not in ("block_shape", "order"):
        points.sort(key=lambda point: point[0])
    return [(label(factor, value), medians, first) for value, medians, first in points]


def mean_ratio(medians: dict[str, float], base: dict[str, float], names: tuple[str, ...]) -> float:
    """Return the geometric mean of some figures as ratios to those of the defaults."""
    return math.exp(sum(math.log(medians[n] / base[n]) for n in names) / len(names))


def wrapped(text: str) -> list[str]:
    """Return the lines of a paragraph, or of an entry of a list, as wide as those of the other pages.

    Examples
    --------
    >>> wrapped("- " + "word " * 30)[1]
    '  word word word word word word word'
    """
    indent = "  " if text.startswith("- ") else ""
    return textwrap.wrap(text, 120, subsequent_indent=indent, break_on_hyphens=False)


def tables(report: dict[str, Any]) -> str:
    """Return the part of the page that is made anew every time."""
    lines = [
        MARK,
        "",
        "## Figures",
        "",
        *wrapped(
            f"Date {report['date']}, {report['cpus']} CPUs ({report['machine']}), Python {report['python']}; "
            + ", ".join(f"{k} {v}" for k, v in report["versions"].items())
            + f". Command: `{report['command']}`."
        ),
        "",
        *wrapped(
            f"In each of {report['repeat']} rounds, a fresh process writes and another one reads. All figures are "
            f"medians of the rounds. The time of a read is the median of {report['again']} reads of an opened "
            "lake, with its files in the page cache."
        ),
        "",
        "- **Bold**: the default.",
        "- `rows`, `groups`, `files`: how many rows, row groups and data files the table has.",
        *wrapped(
            "- `size`: a share of the raw size. Raw is the array for photos, and int64 coordinates with float64 "
            "values for uber."
        ),
        "- `write s`: the time of the write, in seconds. The times of the reads are in ms.",
        "- `reads`: the geometric mean of the reads, as a ratio to that of the defaults.",
    ]
    for name, found in report["workloads"].items():
        reads = READS[name]
        base = found["settings"][0]["medians"]
        lines += [
            "",
            f"### {name}",
            "",
            f"![{name}, relative to the defaults](parameters-{name}.png)",
        ]
        for factor in found["defaults"]:
            columns = ["rows", "groups", "files", "size", "write s", *reads, "reads"]
            lines += ["", f"| {TITLES[factor]} | {' | '.join(columns)} |"]
            lines += ["|---" * (len(columns) + 1) + "|"]
            for text, m, is_default in series(found, factor):
                cells = [f"**{text}**" if is_default else text]
                cells += [f"{m[n]:.0f}" for n in ("rows", "groups", "files")]
                cells += [f"{m['size']:.4f}", f"{m['write']:.2f}"]
                cells += [f"{m[r] * 1e3:.1f}" for r in reads]
                cells.append(f"{mean_ratio(m, base, reads):.2f}")
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def write(report: dict[str, Any], page: Path) -> None:
    """Write the page; what stands above the mark stays."""
    above = "# Parameters\n\n"
    if page.exists():
        above = page.read_text().split(MARK)[0]
    page.write_text(above + tables(report))


def plot(report: dict[str, Any], name: str, path: Path) -> None:
    """Draw a panel for each factor: every measure relative to the defaults, below 1 is better."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    found = report["workloads"][name]
    base = found["settings"][0]["medians"]
    measures = ("size", "write", *READS[name])
    factors = list(found["defaults"])
    made, axes = plt.subplots(
        len(factors), 1, figsize=(11, 3.4 * len(factors)), squeeze=False, layout="constrained"
    )
    colors = dict(zip(measures, plt.get_cmap("tab10").colors))
    for axis, factor in zip(axes[:, 0], factors):
        points = series(found, factor)
        for measure in measures:
            ratios = [m[measure] / base[measure] for _, m, _ in points]
            style = "o" if factor in ("block_shape", "order") else "o-"
            axis.plot(ratios, style, color=colors[measure], label=measure, markersize=6, alpha=0.85)
        axis.set_yscale("log")
        low = min(m[n] / base[n] for _, m, _ in points for n in measures)
        high = max(m[n] / base[n] for _, m, _ in points for n in measures)
        near_one = [0.8, 0.9, 1.1, 1.2] if high < 2.5 * low else []  # else they overlap
        axis.set_yticks([0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, *near_one])
        axis.minorticks_off()
        axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axis.set_ylim(min(low / 1.15, 0.75), max(high * 1.15, 1.35))
        axis.axhline(1, color="black", linewidth=1)
        axis.axvline(
            next(k for k, point in enumerate(points) if point[2]),
            color="0.85",
            linewidth=9,
            zorder=0,
        )
        turned = 30 if factor == "block_shape" else 0
        axis.set_xticks(
            range(len(points)), [text for text, _, _ in points], rotation=turned,
            ha="right" if turned else "center",
        )  # fmt: skip
        axis.set_xlim(-0.5, len(points) - 0.5)
        axis.set_title(TITLES[factor], loc="left", fontsize=11)
        axis.grid(axis="y", alpha=0.3)
    axes[0, 0].legend(ncol=len(measures), loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    made.suptitle(f"{name}: relative to the defaults (grey), below 1 is better", x=0.01, ha="left")
    made.savefig(path, dpi=110)
    plt.close(made)
