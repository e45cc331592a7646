"""The notebook on queries runs as it stands, in a kernel of its own."""

import nbformat
from nbclient import NotebookClient
from places import ROOT


def test_it_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    book = nbformat.read(ROOT / "docs" / "query.ipynb", as_version=4)
    NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    texts = [
        str(output.get("text") or output.get("data", {}).get("text/plain"))
        for cell in book.cells
        for output in cell.get("outputs", ())
    ]
    assert any("(32, 32, 2)" in text for text in texts)
    assert any("sha256" in text for text in texts)
