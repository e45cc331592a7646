"""The README's tour runs as it stands, in order."""

import re

import pytest
from places import ROOT

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_tour_runs(spark, monkeypatch):
    """All blocks share one namespace; the session of the suite stands in for the one it starts."""
    assert len(BLOCKS) >= 7
    monkeypatch.setattr("tensorlake_spark.spark.local_session", lambda: spark)
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block.replace("spark.stop()", ""), "README.md", "exec"), names)
    assert names["cells"].count() == 256


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)#:]+)\)", README))
def test_links_lead_somewhere(path):
    assert (ROOT / path).exists()


def test_paths_that_are_named_are_there():
    root = ROOT
    for name in ("tensorlake_spark/layouts/FORMAT.md", "jobs/ingest.py", "conf", "docker"):
        assert name.split("/")[-1] in README
        assert (root / name).exists()


def test_the_format_lists_the_columns_of_the_code():
    from tensorlake_spark.layouts.coding.codec import CODECS
    from tensorlake_spark.rows.row import SCHEMA

    text = (ROOT / "tensorlake_spark" / "layouts" / "FORMAT.md").read_text()
    assert re.findall(r"^\| `(\w+)` \| [\w<>.: ,]+ \| (?:yes|no) \|", text, re.MULTILINE) == [
        *SCHEMA.names
    ]
    for codec in CODECS:
        assert f"`{codec}`" in text
