"""Draws docs/pictures/slice-light.png and slice-dark.png: a tensor as rows. ``make pictures`` runs it.

The README shows the one that suits the page. ``python docs/pictures/slice.py FOLDER`` draws them into another folder.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHAPE, CHUNK = (6, 8), (2, 4)
SLICE = ((3, 6), (1, 3))
TEXT = "x[3:6, 1:3]"


@dataclass(frozen=True)
class Theme:
    """Colours of one kind of page."""

    ink: str
    faint: str
    boxes: tuple[str, ...]
    picked: str


THEMES = {
    "light": Theme(
        "#1f2328", "#8c959f",
        ("#cfe2f3", "#d9ead3", "#fff2cc", "#fce5cd", "#ead1dc", "#d9d2e9"), "#c4320a",
    ),
    "dark": Theme(
        "#e6edf3", "#7d8590",
        ("#23425f", "#2c4f2e", "#5a4a14", "#5e3a1d", "#552f43", "#40356a"), "#ff8a5c",
    ),
}  # fmt: skip

Corner = tuple[int, int]


def boxes() -> list[tuple[Corner, Corner]]:
    """Return the lower and upper corners of all chunks, in storage order."""
    starts = product(*(range(0, n, c) for n, c in zip(SHAPE, CHUNK, strict=True)))
    return [((a, b), (a + CHUNK[0], b + CHUNK[1])) for a, b in starts]


def overlaps(lo: Corner, hi: Corner) -> bool:
    """Return whether a box holds a part of the slice: the test by which rows are found."""
    return all(a < stop and b > start for a, b, (start, stop) in zip(lo, hi, SLICE, strict=True))


def cells(
    axes: Axes, theme: Theme, x: float, y: float, lo: Corner, hi: Corner, side: float
) -> None:
    """Draw the elements of a box with its first one at (x, y), each in the colour of its chunk."""
    across = SHAPE[1] // CHUNK[1]
    for i, j in product(range(lo[0], hi[0]), range(lo[1], hi[1])):
        colour = theme.boxes[i // CHUNK[0] * across + j // CHUNK[1]]
        place = x + (j - lo[1]) * side, y - (i - lo[0] + 1) * side
        axes.add_patch(Rectangle(place, side, side, fc=colour, ec=theme.faint, lw=0.5))


def outline(axes: Axes, x: float, y: float, width: float, height: float, colour: str) -> None:
    """Draw the frame of a slice or a row, with its upper left corner at (x, y)."""
    axes.add_patch(Rectangle((x, y - height), width, height, fill=False, ec=colour, lw=2.4))


def arrow(axes: Axes, theme: Theme, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow from one step to the next."""
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=16, color=theme.ink, lw=1.4)
    )


def slice_of_a_table(theme: Theme) -> Figure:
    """Draw a tensor, its boxes, their rows in a Delta table, and the rows that a slice reads."""
    figure = Figure(figsize=(12.4, 3.9))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 124), ylim=(0, 39))
    axes.set_axis_off()
    top, side = 29.0, 2.6

    def title(x: float, text: str) -> None:
        axes.text(x, 34.5, text, color=theme.ink, fontsize=13, weight="bold", ha="left")

    def note(x: float, text: str, colour: str, y: float = 4.2) -> None:
        axes.text(x, y, text, color=colour, fontsize=11, ha="left", va="center", family="monospace")

    title(2, "A tensor")
    cells(axes, theme, 2, top, (0, 0), SHAPE, side)
    (i, i_end), (j, j_end) = SLICE
    outline(
        axes, 2 + j * side, top - i * side, (j_end - j) * side, (i_end - i) * side, theme.picked
    )
    note(2, "x.shape == (6, 8)", theme.ink, 9.6)
    note(2, TEXT, theme.picked, 6.4)

    arrow(axes, theme, (24.2, 21.2), (28.4, 21.2))
    title(30, "is cut into boxes")
    gap = 1.4
    for number, (lo, hi) in enumerate(boxes()):
        x = 30 + lo[1] * side + lo[1] // CHUNK[1] * gap
        y = top - lo[0] * side - lo[0] // CHUNK[0] * gap
        cells(axes, theme, x, y, lo, hi, side)
        middle = x + CHUNK[1] * side / 2, y - CHUNK[0] * side / 2
        axes.text(*middle, str(number), color=theme.ink, fontsize=13, ha="center", va="center")

    arrow(axes, theme, (54, 21.2), (58.2, 21.2))
    title(60, "A box is a row of a Delta table")
    places = dict(zip(("id", "seq", "lo", "hi", "values"), (61, 66, 72, 80.5, 89), strict=True))
    for name, x in places.items():
        axes.text(x, 29.6, name, color=theme.ink, fontsize=11, family="monospace", weight="bold")
    height = 3.6
    for number, (lo, hi) in enumerate(boxes()):
        y, wanted = 28.6 - number * height, overlaps(lo, hi)
        colour = theme.ink if wanted else theme.faint
        fill = theme.boxes[number] if wanted else "none"
        axes.add_patch(Rectangle((60, y - height), 37, height, fc=fill, ec=theme.faint, lw=0.6))
        texts = ("x", str(number), str(lo), str(hi), "bytes")
        for x, text in zip(places.values(), texts, strict=True):
            axes.text(
                x, y - height / 2, text, color=colour, fontsize=11, va="center", family="monospace"
            )
        if wanted:
            outline(axes, 60, y, 37, height, theme.picked)
    note(60, "lo[k] < stop[k]  and  hi[k] > start[k]", theme.picked, 4.2)

    arrow(axes, theme, (98.4, 21.2), (102.6, 21.2))
    title(104.2, "A slice reads")
    axes.text(104.2, 31.6, "only these rows", color=theme.ink, fontsize=13, weight="bold")
    side = 3.6
    lo, hi = (SLICE[0][0], SLICE[1][0]), (SLICE[0][1], SLICE[1][1])
    cells(axes, theme, 106, 26.6, lo, hi, side)
    outline(axes, 106, 26.6, side * (hi[1] - lo[1]), side * (hi[0] - lo[0]), theme.picked)
    note(104.2, TEXT, theme.picked, 12.4)
    note(104.2, "2 rows of 6", theme.ink, 9.2)
    return figure


PICTURES = {"slice": slice_of_a_table}


def main(folder: Path) -> None:
    """Write every picture into a folder, as ``NAME-light.png`` and ``NAME-dark.png``."""
    for (name, draw), (kind, theme) in product(PICTURES.items(), THEMES.items()):
        picture = draw(theme)
        path = folder / f"{name}-{kind}.png"
        picture.savefig(path, dpi=110, transparent=True, metadata={"Software": None})
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
