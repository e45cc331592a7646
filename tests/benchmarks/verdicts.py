"""Which figures are as they must be, and the page of a report that begins with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from reporting import settings, yes


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


def must_table(rows: Sequence[Verdict]) -> list[str]:
    """Return verdicts as a table.

    Examples
    --------
    >>> must_table([Verdict("rate", 3.0, 2.0, "lance", 1.2, at_least=True)])[-2]
    '| rate | 1.5 | >= 1.2 | 3 | lance 2 | yes |'
    """
    if not rows:
        return []
    lines = [
        "| what | ratio or figure | must be | ours | peer | met |",
        "|---|---|---|---|---|---|",
    ]
    for v in rows:
        peer = "" if v.theirs is None else f"{v.peer} {v.theirs:,.4g}"
        bound = f"{'>=' if v.at_least else '<='} {v.must:g}"
        lines.append(
            f"| {v.what} | {v.value:.3g} | {bound} | {v.ours:,.4g} | {peer} | {yes(v.met)} |"
        )
    return ["### What must be", "", *lines, ""]


def page(
    report: dict[str, Any],
    verdicts: Sequence[str],
    part: Callable[[str, dict[str, Any]], list[str]],
    note: str,
) -> str:
    """Return a whole report as Markdown.

    Parameters
    ----------
    report : dict
        What was found, and by which machine and packages.
    verdicts : sequence of str
        Lines of what must be.
    part : callable
        Takes the name of a part and what it found, returns its lines.
    note : str
        How the figures are to be read.
    """
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
        *verdicts,
    ]
    for name, found in report["parts"].items():
        lines += part(name, found)
    return "\n".join([*lines, note]) + "\n"
