"""The house: rooms of few modules, each with a map that is complete and true."""

import ast
import re
from collections import defaultdict

import pytest
from places import ROOT

PACKAGE = ROOT / "tensorlake_spark"
TESTS = ROOT / "tests"
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")

MOST = 12
# More than MOST modules, at most 15, and why.
LARGE = {
    "delta/log": "one module for each noun of the Delta protocol, and nothing in between to part them by",
}
LONGEST = 450  # lines

# The same name for two things, and why it is no mistake.
ALIKE = {
    "check": "jobs/check is the command line of audit/check",
    "ingest": "jobs/ingest is the command line of spark/ingest",
    "optimize": "jobs/optimize is the command line of upkeep/optimize",
    "purge": "jobs/purge is the command line of audit/purge",
    "vacuum": "jobs/vacuum is the command line of upkeep/vacuum",
    "progress": "a bar for a terminal, and lines for the log of a scheduler",
    "blocks": "of elements in memory, and of rows that Spark has read",
    "lake": "the room is the door, its first module TensorLake",
    "session": "the room has one thing, and what makes it",
    "upkeep": "lake/upkeep has the methods of TensorLake for the room upkeep",
    "options": "of a store, of a write, and of Spark's data source: each parses its own",
    "read": "reading/read in this process, spark/source/read by executors",
    "write": "writing/write in this process, spark/source/write by executors",
    "writer": "of Parquet files, and of Spark's data source: Spark's word for it",
    "runner": "who does work on files: this process, or executors (its counterpart)",
    "source": "what is written, and Spark's word for a data source",
    "sparse": "SparseTensor, and what the sparse layouts share",
}


def short(path):
    return path.relative_to(PACKAGE).as_posix().removesuffix(".py")


def map_of(room):
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""


def contents(room):
    """Return the names of what lies in a room: modules, and rooms in it."""
    modules = {path.stem for path in room.glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in room.glob("*/__init__.py")}


def is_there(name, room):
    """Whether a dotted name is a module or a room, seen from `room`, the room around it, or the package."""
    for start in (room, room.parent, PACKAGE):
        place = start / name.replace(".", "/")
        if place.is_dir() or place.with_suffix(".py").exists():
            return True
    return False


def named_in(text):
    """Return the names between backticks that are written as modules are: lower case, no brackets."""
    quoted = {name for _, name in re.findall(r"(`+)([^`\n]+)\1", text)}
    return {name for name in quoted if re.fullmatch(r"[a-z0-9_.]+", name)}


@pytest.mark.parametrize("room", ROOMS, ids=short)
def test_a_room_has_few_modules(room):
    count = len([*room.glob("*.py")]) - 1
    assert count <= (15 if short(room) in LARGE else MOST), "part the room, or write the reason"


def test_the_top_has_few_modules_and_rooms():
    assert len([path for path in MODULES if path.parent == PACKAGE]) <= MOST


def test_reasons_are_of_rooms_that_are_large():
    large = {short(room) for room in ROOMS if len([*room.glob("*.py")]) - 1 > MOST}
    assert large == LARGE.keys()


@pytest.mark.parametrize("room", ROOMS, ids=short)
def test_the_map_of_a_room_names_all_that_is_in_it(room):
    assert contents(room) - named_in(map_of(room)) == set()


@pytest.mark.parametrize("room", ROOMS, ids=short)
def test_the_map_of_a_room_names_nothing_that_is_not_there(room):
    # Names of the outside: of Spark's folder of settings, and of the one function of the first line.
    other = {"conf", "open", "write", "tensorlake_spark.spark"}
    gone = {name for name in named_in(map_of(room)) if not is_there(name, room)}
    assert gone - other == set()


@pytest.mark.parametrize("room", ROOMS, ids=short)
def test_the_map_of_a_room_says_what_it_may_import_and_where_to_begin(room):
    text = map_of(room)
    assert re.search(r"[Mm]ay\s+import|each importing only", text)
    assert re.search(r"[Bb]egin\s+with\s+`", text)
    assert len(text.splitlines()) <= (20 if room.name == "indexing" else 10), "a map is short"


def test_no_file_is_long():
    lines = {short(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


def test_one_name_means_one_thing():
    found = defaultdict(set)
    for path in MODULES:
        found[path.stem].add(short(path))
    for room in ROOMS[1:]:
        found[room.name].add(f"{short(room)}/")
    assert {name for name, places in found.items() if len(places) > 1} == ALIKE.keys()
