"""The report of the benchmark of loaders: tables of figures, and which of them are as they must be."""

from __future__ import annotations

from typing import Any

from loader_media import RAW
from verdicts import Verdict, best, must_table, page

OURS = ("tensorlake", "tensorlake global")
BOUNDS = ("memory", "memory stacked", "fromfile", "fromfile batches")
"""What is no loader, but what a loader can reach at best."""
DEEPLAKE = ("deeplake", "deeplake batches")
TITLES = {
    "": "{order}, images/s",
    "_first_epoch": "first epoch",
    "_first_batch": "opening and first batch, s",
    "_cpu": "processor, us an image",
    "_peak": "peak, MB",
}
FORMS = {
    "": "{:,.0f}",
    "_first_epoch": "{:,.0f}",
    "_first_batch": "{:.3f}",
    "_cpu": "{:,.0f}",
    "_peak": "{:,.0f}",
}


def orders(name: str) -> tuple[str, ...]:
    """Return the orders in which samples of a kind are read.

    Examples
    --------
    >>> orders("photos"), orders("uint8")
    (('shuffled',), ('sequential', 'shuffled'))
    """
    return ("sequential", "shuffled") if name in RAW else ("shuffled",)


def of_kind(kind: str, found: dict[str, Any]) -> list[Verdict]:
    """Return the verdicts on one kind of samples."""
    medians = found["medians"]
    ours = medians.get(OURS[0], {})
    peers = [n for n in medians if n not in (*OURS, *BOUNDS)]
    out = []

    def beside(what: str, order: str, names: list[str] | tuple[str, ...], must: float) -> None:
        try:
            peer, theirs = best(found, order, names, most=True)
        except KeyError:
            return
        if order in ours:
            out.append(Verdict(f"{kind}: {what}", ours[order], theirs, peer, must, at_least=True))

    if kind == "photos":
        beside("shuffled, of the fastest peer", "shuffled", peers, 1.0)
        beside("shuffled, of Deep Lake", "shuffled", DEEPLAKE, 2.0)
        beside("shuffled, of decoding from memory", "shuffled", ("memory",), 0.95)
    elif kind == "small":
        beside("shuffled, of the fastest peer", "shuffled", peers, 1.2)
    else:
        for order, must in (("sequential", 0.9), ("shuffled", 0.8)):
            beside(f"{order}, of numpy.fromfile", order, ("fromfile",), must)
            beside(f"{order}, of the fastest peer", order, peers, 1.2)
    return out


def verdicts(report: dict[str, Any]) -> list[str]:
    """Return the table of what must be, the ratio first."""
    rows = []
    for name, found in report["parts"].items():
        rows += of_kind(name, found) if "medians" in found else []
        rows += [Verdict(*row) for row in found.get("verdicts", ())]
    return must_table(rows)


def part(name: str, found: dict[str, Any]) -> list[str]:
    """Return the lines of one part."""
    failed = [f"- {what} failed: {said[:300]}" for what, said in found.get("errors", {}).items()]
    if "medians" not in found:
        return [f"### {name}", "", *found["lines"], "", *failed, ""]
    heads, figures = [], []
    for order in orders(name):
        for ending, title in TITLES.items():
            heads.append(title.format(order=order))
            figures.append((order + ending, FORMS[ending]))
    lines = [
        f"### {name}: {found['count']:,} samples, {found['bytes'] / 1e6:,.0f} MB stored, "
        f"{found['each'] / 1e3:,.0f} KB each decoded", "",
        "| | of the fastest | " + " | ".join(heads) + " |", "|---" * (len(heads) + 2) + "|",
    ]  # fmt: skip
    main = orders(name)[0]
    most = max(
        (m.get(main, 0.0) for n, m in found["medians"].items() if n not in BOUNDS), default=0.0
    )
    for loader, m in found["medians"].items():
        cells = [form.format(m[figure]) if figure in m else "-" for figure, form in figures]
        share = f"{m[main] / most:.2f}" if most and main in m else "-"
        lines.append(f"| {loader} | {share} | " + " | ".join(cells) + " |")
    return [*lines, "", *failed, ""]


def text(report: dict[str, Any]) -> str:
    """Return the whole report as Markdown."""
    return page(
        report,
        verdicts(report),
        part,
        "Files are in the page cache, as far as they fit. Batches of 64; one byte in 4 KiB of each is looked at. The rate "
        "is that of the second epoch of a process, so that workers are there already and modules are imported. Processor "
        "time and peak are those of the process itself: workers of a DataLoader are not in them. `memory` and `fromfile` "
        "are no loaders: the first decodes the same bytes from memory on all cores, the second reads the same arrays "
        "from files by numpy.fromfile.",
    )
