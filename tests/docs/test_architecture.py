"""docs/architecture.md and its picture name what is there."""

import ast
import importlib.util
import re

import pytest
from places import ROOT

PACKAGE = ROOT / "tensorlake_spark"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PICTURE = ROOT / "docs" / "pictures" / "architecture.py"
ANSWERS = re.findall(r"^\| (Where [^|]+\?) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def picture():
    spec = importlib.util.spec_from_file_location("architecture", PICTURE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def defines(path, name):
    """Whether a module defines a function or a class; ``Class.method`` is a method."""
    body = ast.parse(path.read_text()).body
    for part in name.split("."):
        found = [node for node in body if getattr(node, "name", None) == part]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def test_many_questions_are_answered():
    assert len(ANSWERS) == 22


@pytest.mark.parametrize(("question", "modules", "names"), ANSWERS)
def test_an_answer_is_true(question, modules, names):
    paths, found = re.findall(r"`([\w/]+\.py)`", modules), re.findall(r"`([\w.]+)`", names)
    assert paths
    assert len(paths) == len(found)
    for path, name in zip(paths, found):
        assert (PACKAGE / path).exists(), question
        assert defines(PACKAGE / path, name), f"{path} has no {name}"


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target


def test_the_rooms_of_the_picture_are_the_folders_of_the_package(picture):
    folders = {p.parent.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("__init__.py")}
    assert {*picture.ROOMS} == folders - {"."}
    assert len({*picture.ROOMS}) == len(picture.ROOMS)


def test_the_rooms_of_the_picture_are_in_the_order_of_imports(picture):
    """As import-linter has it in pyproject.toml, from the top down."""
    text = (ROOT / "pyproject.toml").read_text()
    layers = re.search(
        r'containers = \["tensorlake_spark"\].*?layers = \[(.*?)\n\]', text, re.DOTALL
    )
    order = [
        room
        for layer in re.findall(r'"([^"]+)"', layers[1])
        for room in layer.split(" | ")
        if (PACKAGE / room).is_dir()
    ]
    assert [room for room in picture.ROOMS if "/" not in room] == order


def test_every_step_of_the_picture_is_there(picture):
    steps = [step for *_, steps in picture.WAYS for step in steps]
    assert len(steps) > 30
    for room, step in steps:
        module, name = step.split(".", 1)
        assert defines(PACKAGE / room / f"{module}.py", name), f"{room}: {step}"


def test_the_picture_is_the_one_that_make_pictures_draws(picture):
    """Its text, that is: lines differ with the version of Matplotlib."""
    text = PICTURE.with_suffix(".svg").read_text()
    drawn = re.findall(r"<text [^>]*>([^<]+)</text>", text)
    wanted = [room.split("/")[-1] for room in picture.ROOMS]
    for name, start, _, steps in picture.WAYS:
        wanted += [name, start, *(step for _, step in steps)]
        wanted += [str(number) for number, _ in enumerate(steps, 1)]
    assert sorted(drawn) == sorted(wanted), "run make pictures"
