"""The report of the benchmark of queries: tables of figures, and which of them are as they must be."""

from __future__ import annotations

from typing import Any

from verdicts import Verdict, must_table, page

OURS = "tensorlake"


def of_part(part: str, found: dict[str, Any]) -> list[Verdict]:
    """Return the verdicts on one part.

    Examples
    --------
    >>> found = {"medians": {"tensorlake": {"query": 6.0}, "numpy": {"query": 4.0}, "lancedb": {"query": 9.0}}}
    >>> [(v.peer, round(v.value, 2), v.met) for v in of_part("nearest", found)]
    [('numpy', 0.67, True), ('lancedb', 0.67, True)]
    """
    medians = found["medians"]
    ours = medians.get(OURS, {})
    out: list[Verdict] = []

    def beside(
        what: str, figure: str, peer: str, must: float, theirs: str = "", at_least: bool = False
    ) -> None:
        other = medians.get(peer, {})
        if figure in ours and (theirs or figure) in other:
            out.append(Verdict(what, ours[figure], other[theirs or figure], peer, must, at_least))

    if part in ("relational", "spark"):
        peer, must = ("duckdb", 1.2) if part == "relational" else ("spark sql", 1.3)
        for name in (n for n in ours if not n.endswith("_first")):
            beside(f"{part}: {name}, ms", name, peer, must)
    elif part == "figure4":
        beside("Figure 4, of a loop by hand, ms", "query", "numpy", 1.2)
        if "bytes" in ours:
            out.append(
                Verdict("Figure 4, bytes read of those needed", ours["bytes"], None, "", 1.05)
            )
    elif part == "pixels":
        beside("predicate on pixels, of the loader, images/s", "rate", "loader", 0.9, at_least=True)
        beside(
            "predicate on pixels, of Deep Lake, images/s", "rate", "deeplake", 3.0, at_least=True
        )
    elif part == "nearest":
        if "query" in ours and "query" in medians.get("numpy", {}):
            rates = [1e3 / m["query"] for m in (ours, medians["numpy"])]
            out.append(
                Verdict("10 nearest, of a matrix product, a second", *rates, "numpy", 0.5, True)
            )
        beside("10 nearest, of LanceDB, ms", "query", "lancedb", 1.0)
    elif part == "parse":
        out += [
            Verdict(f"parse and plan: {n}, ms", ours[n], None, "", 10.0)
            for n in ours
            if not n.endswith("_first")
        ]
    elif part == "views" and ours:
        out.append(Verdict("materialised view, of the loader's sequential rate", ours["materialized"],
                           ours["sequential"], "the dataset", 0.95, True))  # fmt: skip
        out.append(
            Verdict(
                "materialising, of ingestion",
                ours["materialize"],
                ours["ingest"],
                "extend",
                0.8,
                True,
            )
        )
    return out


def verdicts(report: dict[str, Any]) -> list[str]:
    """Return the table of what must be, the ratio first."""
    return must_table([v for part, found in report["parts"].items() for v in of_part(part, found)])


def part(name: str, found: dict[str, Any]) -> list[str]:
    """Return the lines of one part: who answers a row, a figure a column."""
    heads = list(dict.fromkeys(figure for m in found["medians"].values() for figure in m))
    failed = [f"- {what} failed: {said[:300]}" for what, said in found["errors"].items()]
    unit = {"pixels": "images a second", "views": "images a second"}.get(name, "ms")
    lines = [f"### {name}: {found['count']:,} samples, {unit}", ""]
    if heads:
        lines += [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for engine, m in found["medians"].items():
        cells = [f"{m[figure]:,.4g}" if figure in m else "-" for figure in heads]
        lines.append(f"| {engine} | " + " | ".join(cells) + " |")
    return [*lines, "", *failed, ""]


def text(report: dict[str, Any]) -> str:
    """Return the whole report as Markdown."""
    return page(
        report,
        verdicts(report),
        part,
        "Files are in the page cache. A figure is the median of a process's answers after the first, in ms where nothing "
        "else is said; `_first` opens what is asked, too. `bytes` is what the plan of the query reads, as a share of the "
        "images that are chosen and of all boxes. In Spark all is asked in one session, in turns.",
    )
