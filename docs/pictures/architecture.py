"""Draws docs/pictures/architecture.svg: four ways through the rooms. ``make pictures`` runs it."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.patches

matplotlib.use("svg")
from matplotlib.figure import Figure

OUT = Path(__file__).with_suffix(".svg")

# Every folder of the package, from the doors down: imports between the rooms in bold go downwards only.
ROOMS = (
    "jobs",
    "spark",
    "spark/session",
    "spark/ingest",
    "spark/ingest/arrays",
    "spark/ingest/records",
    "spark/ingest/samples",
    "spark/queries",
    "spark/queries/batch_functions",
    "spark/computing",
    "spark/functions",
    "spark/frames",
    "spark/source",
    "spark/source/write",
    "spark/source/read",
    "spark/cluster",
    "query",
    "query/views",
    "query/engine",
    "query/nearest",
    "query/planning",
    "query/sources",
    "query/functions",
    "query/language",
    "loader",
    "loader/frameworks",
    "loader/pipeline",
    "loader/sources",
    "loader/columns",
    "loader/transforms",
    "loader/decoding",
    "loader/caching",
    "loader/order",
    "datasets",
    "datasets/sources",
    "datasets/sources/annotated",
    "datasets/sources/tables",
    "datasets/derived",
    "datasets/maintenance",
    "datasets/changes",
    "datasets/interchange",
    "datasets/samples",
    "datasets/apart",
    "datasets/links",
    "datasets/types",
    "datasets/types/media",
    "lake",
    "columns",
    "columns/elsewhere",
    "audit",
    "computing",
    "computing/operations",
    "computing/operations/products",
    "upkeep",
    "writing",
    "writing/editing",
    "reading",
    "layouts",
    "layouts/testing",
    "layouts/sparse",
    "layouts/timelines",
    "layouts/quantization",
    "layouts/coding",
    "layouts/coding/filters",
    "layouts/kernels",
    "delta",
    "delta/plain",
    "delta/samples",
    "delta/samples/scattered",
    "delta/files",
    "delta/files/compacting",
    "delta/log",
    "delta/log/replaying",
    "delta/store",
    "delta/store/memory_maps",
    "rows",
    "tensor",
    "tensor/sparse",
    "ops",
    "ops/products",
    "ops/shapes",
    "ops/reducing",
    "indexing",
    "indexing/keys",
)

# A way: its name, what starts it, its colour, and its steps in their order: room, module and function.
WAYS = (
    (
        "A slice",
        "ref[30:40]",
        "#1b6ca8",
        (
            ("lake", "ref.TensorRef"),
            ("indexing/keys", "key.select"),
            ("reading", "read.read"),
            ("delta/files", "scan.plan"),
            ("indexing", "predicate.Predicate"),
            ("delta/files", "scan.read"),
            ("delta/store", "storage.Storage"),
            ("layouts", "ftsf.Ftsf"),
            ("layouts", "verification.checked"),
            ("rows", "checksum.crc_payload"),
            ("layouts/coding", "codec.decode_into"),
        ),
    ),
    (
        "A write",
        "lake.write(...)",
        "#2e7d32",
        (
            ("lake", "lake.TensorLake"),
            ("writing", "write.write"),
            ("writing", "options.new_spec"),
            ("layouts/coding", "codec_choice.choose_codec"),
            ("writing", "pipeline.encode"),
            ("layouts", "ftsf.Ftsf"),
            ("layouts/coding", "codec.encode"),
            ("rows", "row.data_batch"),
            ("delta/files", "writer.FileWriter"),
            ("writing", "pipeline.commit_change"),
        ),
    ),
    (
        "An ingestion",
        "jobs/ingest.py",
        "#b3541e",
        (
            ("jobs", "ingest.main"),
            ("spark/ingest", "ingestion.run"),
            ("spark/ingest", "sources.expand"),
            ("spark/ingest/arrays", "array_job.write_arrays"),
            ("spark/ingest/records", "cell_job.write_cells"),
            ("spark/ingest", "resume.resumed"),
            ("spark/source/write", "source_writer.TensorWriter"),
            ("layouts", "bsgs.Bsgs"),
            ("spark/source", "task_notes.Resumption"),
            ("delta/log", "commit.commit"),
        ),
    ),
    (
        "A commit",
        "the end of every change",
        "#6a3d9a",
        (
            ("delta/files", "writer.FileWriter"),
            ("delta/log", "data_file.DataFile"),
            ("writing", "pipeline.commit_change"),
            ("delta/log", "commit.commit"),
            ("delta/log", "snapshot.Snapshot"),
            ("delta/store", "storage.Storage"),
            ("writing", "pipeline.recomputed"),
        ),
    ),
)

LINE, LANE, NAMES = 0.235, 2.55, 2.0  # inches


def lines_of(room: str) -> int:
    """Return how many lines a room takes: the most steps that a way has in it."""
    return max(1, *(sum(room == place for place, _ in steps) for *_, steps in WAYS))


def draw() -> Figure:
    """Return the picture: rooms as bands from top to bottom, ways as lanes from left to right."""
    top, bands = 0.0, {}
    for room in ROOMS:
        if "/" not in room:
            top += 0.05
        bands[room] = (top, lines_of(room) * LINE + 0.07)
        top += bands[room][1] + 0.02
    width, height = NAMES + LANE * len(WAYS), top + 0.75
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(top + 0.08, -0.67))
    axes.axis("off")
    for room, (start, size) in bands.items():
        depth = room.count("/")
        colour = ("#e4e9ee", "#eff2f5", "#f6f8fa")[depth]
        left = 0.08 + 0.16 * depth
        axes.add_patch(
            matplotlib.patches.Rectangle(
                (left, start), width - left - 0.08, size, color=colour, lw=0
            )
        )
        weight = "bold" if depth == 0 else "normal"
        axes.text(left + 0.08, start + size / 2, room.split("/")[-1], va="center", fontsize=9, weight=weight)  # fmt: skip
    for lane, (name, start, colour, steps) in enumerate(WAYS):
        draw_way(axes, NAMES + lane * LANE, name, start, colour, steps, bands)
    return figure


def draw_way(axes, x, name, start, colour, steps, bands) -> None:
    """Draw a lane: its name, a line, and a numbered stop for every step."""
    axes.text(x - 0.1, -0.42, name, fontsize=12, weight="bold", color=colour, va="center")
    axes.text(x - 0.1, -0.19, start, fontsize=8, color="#444444", va="center", family="monospace")
    used, places = dict.fromkeys(bands, 0), []
    for room, _ in steps:
        begin, _ = bands[room]
        places.append(begin + 0.035 + LINE * (used[room] + 0.5))
        used[room] += 1
    axes.plot([x, x], [min(places), max(places)], color=colour, lw=2, alpha=0.45, zorder=1)
    for number, (y, (_, step)) in enumerate(zip(places, steps), 1):
        axes.plot(x, y, "o", ms=12, color=colour, zorder=2)
        axes.text(x, y + 0.005, str(number), color="white", fontsize=7.5, weight="bold", ha="center", va="center", zorder=3)  # fmt: skip
        axes.text(x + 0.15, y, step, fontsize=8, va="center", color="#111111", zorder=3)


if __name__ == "__main__":
    # The same code gives the same file: text as text, no date, no random names.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "architecture"})
    draw().savefig(OUT, metadata={"Date": None})
    print(OUT)
