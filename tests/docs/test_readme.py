"""What the pages show holds: their Python runs as it stands, and their links and pictures lead somewhere."""

import re
import subprocess
import sys

import pytest
from places import DOCS, ROOT

PICTURES = DOCS / "pictures"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
FORMATS = sorted((ROOT / "tensorlake_spark").glob("*/FORMAT.md"))
RUN_HERE = [
    "README.md",
    *(
        f"docs/{n}.md"
        for n in (
            "tour",
            "datasets",
            "features",
            "layouts",
            "loading",
            "operations",
            "queries",
            "reference-python",
            "reference-spark",
            "reference-sql",
            "shuffling",
        )
    ),
]
"""Those whose code no other test runs."""

ELSEWHERE = {
    "compliance", "connect", "object_stores", "plain_delta", "query-language", "streaming", "versions",
}  # fmt: skip
"""Those whose code the tests of their subject run."""


def text_of(page):
    return page.read_text("utf-8")


def blocks_of(page):
    return re.findall(r"```python\n(.*?)```", text_of(page), re.DOTALL)


def anchors_of(page):
    """The names under which a page's headings can be reached, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", RUN_HERE)
def test_the_code_runs(name, spark, monkeypatch):
    """All blocks of a page share one namespace; the session of the suite stands in for the one it starts."""
    blocks = blocks_of(ROOT / name)
    assert blocks
    monkeypatch.setattr("tensorlake_spark.spark.local_session", lambda: spark)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block.replace("spark.stop()", ""), name, "exec"), names)
    if name == "docs/tour.md":
        assert names["cells"].count() == 256


def test_the_code_of_every_page_is_run_by_a_test():
    have = {page.stem for page in PAGES if blocks_of(page)}
    assert have == ELSEWHERE | {name.removeprefix("docs/").removesuffix(".md") for name in RUN_HERE}


@pytest.mark.parametrize(
    "page", [*PAGES, *FORMATS], ids=lambda page: f"{page.parent.name}/{page.name}"
)
def test_links_lead_somewhere(page):
    text = text_of(page)
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src(?:set)?="([^"]+)"', text):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target), link


def test_the_index_leads_to_every_page():
    links = set(re.findall(r"\]\(([\w.-]+)(?:#[\w-]+)?\)", text_of(DOCS / "index.md")))
    assert {page.name for page in (*DOCS.glob("*.md"), *DOCS.glob("*.ipynb"))} - {
        "index.md"
    } <= links


def test_prose_is_wrapped():
    """Tables, code and addresses may be as long as they are."""
    for page in PAGES:
        prose = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
        for line in prose.splitlines():
            if not line.startswith(("|", "    ", "<", "  <", "!")):
                assert len(line) <= 120, f"{page.name}: {line}"


def test_the_pictures_are_drawn_by_the_command(tmp_path):
    subprocess.run(
        [sys.executable, PICTURES / "slice.py", tmp_path], check=True, capture_output=True
    )
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn
    for name in drawn:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
        assert (PICTURES / name).exists(), f"make pictures draws {name}"


def test_paths_that_are_named_are_there():
    for page in PAGES:
        for name in re.findall(
            r"`((?:jobs|conf|docker|tests|tensorlake_spark)/[\w./]+)`", text_of(page)
        ):
            assert (ROOT / name).exists(), f"{page.name}: {name}"


def test_the_format_lists_the_columns_of_the_code():
    from tensorlake_spark.layouts.coding.chain import CODECS
    from tensorlake_spark.rows.row import SCHEMA

    text = (ROOT / "tensorlake_spark" / "layouts" / "FORMAT.md").read_text()
    assert re.findall(r"^\| `(\w+)` \| [\w<>.: ,]+ \| (?:yes|no) \|", text, re.MULTILINE) == [
        *SCHEMA.names
    ]
    for step in {step for codec in CODECS for step in codec.split("+")}:
        assert f"`{re.sub('[0-9]', 'k', step) if step.startswith('decimal') else step}`" in text


def test_the_format_of_datasets_lists_the_types_of_the_code():
    import dataclasses

    from tensorlake_spark.datasets.types.base import KINDS
    from tensorlake_spark.datasets.types.media.images import IMAGE
    from tensorlake_spark.datasets.types.media.medical import DICOM
    from tensorlake_spark.datasets.types.media.recordings import AUDIO, VIDEO
    from tensorlake_spark.datasets.types.nested import LINK
    from tensorlake_spark.datasets.types.tensor_struct import TENSOR

    text = (ROOT / "tensorlake_spark" / "datasets" / "FORMAT.md").read_text()
    said = dict(re.findall(r"^\| `(\w+)` \|([^|]*)\| [^|]+ \|$", text, re.MULTILINE))
    for name, kind in KINDS.items():
        options = {f.name for f in dataclasses.fields(kind)} - {"nullable", "apart"}
        assert set(re.findall(r"`(\w+)`", said[name])) == options, name
    structs = {"TENSOR": TENSOR, "IMAGE": IMAGE, "VIDEO": VIDEO, "AUDIO": AUDIO, "DICOM": DICOM, "LINK": LINK}  # fmt: skip
    delta = {"int64": "long", "int32": "int", "list<item: int64>": "array<long>"}
    listed = dict(re.findall(r"^\| ([A-Z]+) \| `([^`]+)` \|$", text, re.MULTILINE))
    assert listed == {
        name: ", ".join(f"{f.name}: {delta.get(str(f.type), f.type)}" for f in struct)
        for name, struct in structs.items()
    }
