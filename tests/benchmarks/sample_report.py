"""The report of the benchmark of samples: tables of figures, and which of them are as they must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sample_engines import STORES
from verdicts import Verdict, best, must_table, page

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
    return must_table(rows)


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
    return page(
        report,
        verdicts(report),
        part,
        "Files are in the page cache. Ingest: from bytes in memory to a table that another process can read. One sample, "
        "scan: undecoded; of a scan one byte in 4 KiB is looked at. What is read for the labels is counted by the system "
        "calls of opening and the first read; a file that is mapped into memory is not in it. Rewritten: files that an "
        "update of 1 % of the labels made or changed, as a share of the media. A dash: the store has no such thing.",
    )
