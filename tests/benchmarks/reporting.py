"""What the reports of the benchmarks share: the head, the table of figures, the criteria."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Criterion(NamedTuple):
    """One measure of ours beside a peer's.

    Attributes
    ----------
    measure : str
        Its name; ``size`` is bounded by itself, the others by the ratio.
    ours, theirs : float
        The figures: a share of raw, or seconds.
    peer : str
        Which peer.
    must : float or None
        The bound, where there is one: of `ours` for the size, of `ratio` otherwise.
    """

    measure: str
    ours: float
    theirs: float
    peer: str
    must: float | None

    @property
    def ratio(self) -> float:
        """Ours as a share of theirs."""
        return self.ours / self.theirs

    @property
    def met(self) -> bool:
        """Whether the bound holds, or there is none."""
        if self.must is None:
            return True
        return (self.ours if self.measure == "size" else self.ratio) <= self.must


def whole_engines(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the medians of the engines that answered everything."""
    return {e: m for e, m in found["medians"].items() if e not in found["errors"] and m}


def head(report: dict[str, Any], size: str) -> list[str]:
    """Return what stands above the tables of a report.

    Parameters
    ----------
    report : dict
        As `harness.Benchmark.main` makes it.
    size : str
        What the size is a share of.
    """
    return [
        f"Date {report['date']}, {report['cpus']} CPUs ({report['machine']}), Python "
        f"{report['python']}; median of {report['repeat']} fresh processes for every figure.",
        "",
        "Packages: " + ", ".join(f"{k} {v}" for k, v in report["versions"].items()) + ".",
        "",
        *settings(report),
        "",
        f"Command: `{report['command']}`",
        "",
        f"- `size`: a share of {size}.",
        "- Reads: in ms, with the files in the page cache. The median of seven reads of an opened store; in brackets, "
        "opening and the first read together.",
        "- `memory write`: the peak of the process that writes, in MB, with packages and input.",
        "- `memory full`: by how many MB opening and the full read raise the peak of a process, with the result and "
        "the touched pages of mapped files.",
        "",
        "All packages are imported before the clock starts, pandas too.",
    ]


def settings(report: dict[str, Any]) -> list[str]:
    """Return the table of the engines' settings; engines that have the same ones share a row.

    Examples
    --------
    >>> settings({"settings": {"coo": "defaults", "csr": "defaults", "npy": "raw"}})[2:]
    ['| coo, csr | defaults |', '| npy | raw |']
    """
    engines: dict[str, list[str]] = {}
    for engine, said in report["settings"].items():
        engines.setdefault(said, []).append(engine)
    rows = [f"| {', '.join(names)} | {said} |" for said, names in engines.items()]
    return ["| engine | settings |", "|---|---|", *rows]


def figures(found: dict[str, Any], reads: Sequence[str], digits: int = 3) -> list[str]:
    """Return the table of what was measured, an engine a row."""
    columns = ["size", "write s", *reads, "memory write", "memory full"]
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for engine, m in found["medians"].items():
        if engine in found["errors"]:
            said = found["errors"][engine].replace("|", "/")[:200]
            lines.append(f"| {engine} | failed: {said} |" + " |" * (len(columns) - 1))
            continue
        cells = [f"{m['size']:.{digits}f}", f"{m['write']:.2f}"]
        cells += [f"{m[r] * 1e3:.1f} ({m[r + '_first'] * 1e3:.0f})" for r in reads]
        cells += [f"{m['write_peak']:.0f}", f"{m['full_peak']:.0f}"]
        lines.append(f"| {engine} | " + " | ".join(cells) + " |")
    return lines


def unit(measure: str) -> float:
    """Return what a figure is multiplied by when it is shown: reads in ms."""
    return 1 if measure in ("size", "write") else 1e3


def yes(met: bool) -> str:
    """Return a verdict as text."""
    return "yes" if met else "no"
