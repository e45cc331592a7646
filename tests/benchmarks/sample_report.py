"""The report of the benchmark of samples: tables of figures, and which of them are as they must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from reporting import settings, yes
from sample_engines import STORES

OURS = ("tensorlake", "tensorlake apart")
LANCE = ("lance", "lance 2.0")
KINDS = ("small", "photos")
COLUMNS = {
    "over": ("bytes a sample above the media", "{:.1f}"),
    "write": ("ingest, images/s", "{:,.0f}"),
    "write_cpu": ("processor, us an image", "{:.1f}"),
    "write_peak": ("peak, MB", "{:.0f}"),
    "open": ("open ms", "{:.1f}"),
    "one": ("one random sample ms", "{:.3f}"),
    "one_cpu": ("processor ms", "{:.3f}"),
    "scan": ("scan, images/s", "{:,.0f}"),
    "scan_cpu": ("processor, us an image", "{:.2f}"),
    "labels": ("labels ms", "{:.2f}"),
    "labels_share": ("read for them", "{:.3%}"),
    "update": ("update s", "{:.3f}"),
    "update_share": ("rewritten", "{:.3%}"),
}


class Verdict(NamedTuple):
    """One figure that must be as the issue says.

    Attributes
    ----------
    what : str
    ours : float
    theirs : float or None
        The peer's; None where the bound is on our figure.
    peer : str
    must : float
        The bound of the ratio, or of the figure.
    at_least : bool
        Whether it is the least, not the most.
    """

    what: str
    ours: float
    theirs: float | None
    peer: str
    must: float
    at_least: bool = False

    @property
    def value(self) -> float:
        """What is bounded: the ratio to the peer, or the figure.

        Examples
        --------
        >>> Verdict("scan", 300.0, 100.0, "lance", 1.0, at_least=True).value
        3.0
        """
        return self.ours if self.theirs is None else self.ours / self.theirs

    @property
    def met(self) -> bool:
        """Whether it is as it must be."""
        return self.value >= self.must if self.at_least else self.value <= self.must


def best(found: dict[str, Any], figure: str, names: Sequence[str], most: bool) -> tuple[str, float]:
    """Return the store with the best figure of some, and the figure; KeyError where none of them has it.

    Examples
    --------
    >>> best({"medians": {"a": {"scan": 2.0}, "b": {"scan": 3.0}}}, "scan", ["a", "b", "c"], most=True)
    ('b', 3.0)
    """
    have = {n: found["medians"].get(n, {}).get(figure) for n in names}
    known = {n: value for n, value in have.items() if value is not None}
    if not known:
        raise KeyError(figure)
    name = (max if most else min)(known, key=known.__getitem__)
    return name, known[name]


def of_kind(kind: str, found: dict[str, Any]) -> list[Verdict]:
    """Return the verdicts on one kind of media."""
    medians = found["medians"]
    ours, apart = (medians.get(name, {}) for name in OURS)
    tables = [n for n, store in STORES.items() if store.table and n not in OURS]
    out = []

    def beside(what: str, figure: str, names: Sequence[str], must: float, at_least: bool) -> None:
        try:
            peer, theirs = best(found, figure, names, at_least)
        except KeyError:
            return
        if figure in ours:
            out.append(Verdict(f"{kind}: {what}", ours[figure], theirs, peer, must, at_least))

    if "over" in ours:
        mean = found["media"] / found["count"]
        out.append(Verdict(f"{kind}: stored bytes / (1.03 of the media + 40 a sample)", ours["share"] * mean,
                           1.03 * mean + 40, "the bound", 1.0))  # fmt: skip
    beside("ingest, images/s", "write", tables, 1.2, True)
    if kind == "photos":
        if "one" in ours:
            out.append(Verdict(f"{kind}: one random sample, ms", ours["one"], None, "", 0.3))
        beside("one random sample", "one", LANCE, 1.0, False)
    beside("scan", "scan", LANCE, 1.0, True)
    beside("scan", "scan", ["huggingface"], 1.0, True)
    beside("labels, time", "labels", ["parquet"], 1.2, False)
    if kind == "photos" and "labels_share" in ours:
        out.append(Verdict(f"{kind}: labels, bytes read", ours["labels_share"], None, "", 0.01))
    if "update_share" in apart:
        out.append(
            Verdict(f"{kind}: label update, bytes rewritten", apart["update_share"], None, "", 0.02)
        )
    return out


def verdicts(report: dict[str, Any]) -> list[str]:
    """Return the table of what must be, the ratio first."""
    rows = [
        v for kind in KINDS if kind in report["parts"] for v in of_kind(kind, report["parts"][kind])
    ]
    for found in report["parts"].values():
        rows += [Verdict(*row) for row in found.get("verdicts", ())]
    if not rows:
        return []
    lines = ["| what | ratio or figure | must be | ours | peer | |", "|---|---|---|---|---|---|"]
    for v in rows:
        peer = "" if v.theirs is None else f"{v.peer} {v.theirs:,.4g}"
        bound = f"{'>=' if v.at_least else '<='} {v.must:g}"
        lines.append(
            f"| {v.what} | {v.value:.3g} | {bound} | {v.ours:,.4g} | {peer} | {yes(v.met)} |"
        )
    return ["### What must be", "", *lines, ""]


def part(name: str, found: dict[str, Any]) -> list[str]:
    """Return the lines of one part."""
    if "medians" not in found:
        return [f"### {name}", "", *found["lines"], ""]
    lines = [
        f"### {name}: {found['count']:,} JPEG files, {found['media'] / 1e6:,.0f} MB", "",
        "| | " + " | ".join(title for title, _ in COLUMNS.values()) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]  # fmt: skip
    for store, m in found["medians"].items():
        cells = [form.format(m[f]) if f in m else "-" for f, (_, form) in COLUMNS.items()]
        lines.append(f"| {store} | " + " | ".join(cells) + " |")
    failed = [f"- {what} failed: {said[:300]}" for what, said in found["errors"].items()]
    return [*lines, "", *failed, ""]


def text(report: dict[str, Any]) -> str:
    """Return the whole report as Markdown."""
    lines = [
        f"Date {report['date']}, {report['cpus']} CPUs ({report['machine']}), Python {report['python']}; "
        f"median of {report['repeat']} fresh processes for every figure.",
        "",
        "Packages: " + ", ".join(f"{k} {v}" for k, v in report["versions"].items()) + ".",
        "",
        *settings(report),
        "",
        f"Command: `{report['command']}`",
        "",
        *verdicts(report),
    ]
    for name, found in report["parts"].items():
        lines += part(name, found)
    lines += [
        "Files are in the page cache. Ingest: from bytes in memory to a table that another process can read. One sample, "
        "scan: undecoded; of a scan one byte in 4 KiB is looked at. What is read for the labels is counted by the system "
        "calls of opening and the first read; a file that is mapped into memory is not in it. Rewritten: files that an "
        "update of 1 % of the labels made or changed, as a share of the media. A dash: the store has no such thing.",
    ]
    return "\n".join(lines) + "\n"
