"""The notebook runs as it stands, in a kernel of its own."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from quick import QUICK

TOUR = Path(__file__).resolve().parents[1] / "docs" / "tour.ipynb"


def test_the_tour_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK)
    book = nbformat.read(TOUR, as_version=4)
    NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    pictures = [
        output["data"]["image/png"]
        for cell in book.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 3
    assert len(set(pictures)) == 3
