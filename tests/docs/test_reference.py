"""The reference pages are complete and right: their tables and the code name the same options, with the same defaults."""

import ast
import inspect
import re
from importlib import import_module

import pytest
from places import DOCS, ROOT

import tensorlake_spark as tl
from tensorlake_spark import loader
from tensorlake_spark.__main__ import VERBS
from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark.functions.aggregates import AGGREGATES
from tensorlake_spark.spark.functions.udfs import FUNCTIONS
from tensorlake_spark.spark.source import source_options as spark_options
from tensorlake_spark.spark.source.schemas import BLOCKS, CATALOG


def page(name):
    return (DOCS / f"reference-{name}.md").read_text("utf-8")


def section(text, title):
    """The part of a page under a heading, with what is below it."""
    level = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)[1]
    rest = text.split(f"\n{level} {title}\n", 1)[1]
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text, header):
    """The cells of all tables whose first column has one of these names."""
    out, inside = [], False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        found = [cell.strip() for cell in line.strip("|").split("|")]
        if found[0] == header:
            inside = True
        elif inside and not set(found[0]) <= {"-", ":"}:
            out.append(found)
    return out


def names(cell):
    """What stands in backquotes, up to its brackets or its value: ``tags()`` is ``tags``."""
    return [re.match(r"[-\w.*]+", text)[0] for text in re.findall(r"`([^`]+)`", cell)]


def listed(text, header):
    return [name for row in rows(text, header) for name in names(row[0])]


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return [p for p in found if p.name != "self"]


def shown(function):
    """A signature as the pages write it: without types, and without the mark of keywords."""
    texts = [
        f"**{p.name}" if p.kind is p.VAR_KEYWORD
        else f"*{p.name}" if p.kind is p.VAR_POSITIONAL
        else p.name if p.default is p.empty
        else f"{p.name}={p.default!r}"
        for p in parameters(function)
    ]  # fmt: skip
    return f"{function.__name__}({', '.join(texts)})"


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


# ------------------------------------------------------------------------------ Python


@pytest.mark.parametrize(
    ("title", "function"),
    [
        ("Open a lake", tl.open),
        ("Write", tl.TensorLake.write),
        ("Use a dataset", tl.dataset),
    ],
)
def test_options_of_python_and_their_defaults(title, function):
    table = rows(section(page("python"), title), "option")
    assert [names(row[0])[0] for row in table] == [p.name for p in parameters(function)]
    for row, parameter in zip(table, parameters(function), strict=True):
        default = "required" if parameter.default is parameter.empty else repr(parameter.default)
        assert row[2].strip("`").replace('"', "'") == default, parameter.name


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Use a lake", tl.TensorLake),
        ("Read", tl.TensorRef),
        ("Hold sparse data in memory", tl.SparseTensor),
        ("Change sparse data in memory", tl.SparseBuilder),
        ("A column of a dataset", tl.Column),
    ],
)
def test_members_of_python(title, kind):
    check_members(section(page("python"), title), kind)


def check_members(text, kind):
    table = rows(text, "member")
    found = {name for row in table for name in names(row[0])} - {"ref", "st", "b", "ds"}
    assert found == public(kind)
    for row in table:
        for text in re.findall(r"`(\w+\([^`]*\))`", row[0]):
            function = getattr(kind, text.partition("(")[0])
            if text.endswith("...)"):
                assert shown(function).startswith(text.removesuffix("...)"))
            else:
                assert text.replace("=Ellipsis", "=...") == shown(function).replace(
                    "Ellipsis", "..."
                )


def test_members_of_datasets():
    own = section(page("python"), "Use a dataset").split("### A column of a dataset")[0]
    check_members(own, tl.Dataset)


def test_types_of_columns():
    text = section(page("python"), "Types of columns")
    assert {n for row in rows(text, "type") for n in names(row[0])} | {
        "Type", "as_type", "SampleSchema", "Sound", "Reference", "Tiled",
    } == {*tl.types.__all__}  # fmt: skip
    for row in rows(text, "type"):
        for signature in re.findall(r"`(\w+\([^`]*\))`", row[0]):
            kind = getattr(tl.types, signature.partition("(")[0])
            said = shown(kind).replace("nullable=True, apart=False", "").replace(", )", ")")
            assert signature == said


def test_transforms_of_images():
    table = rows(section(page("python"), "Transforms of images"), "transform")
    assert {names(row[0])[0] for row in table} == {*loader.__all__}
    for row in table:
        kind = getattr(loader, names(row[0])[0])
        assert row[0].strip("`") == shown(kind)


def test_rules_of_links_and_their_defaults():
    table = rows(section(page("python"), "Rules for links"), "rule")
    listed = {names(row[0])[0]: row[1].strip("`") for row in table}
    defaults = {p.name: repr(p.default) for p in parameters(tl.LinkRules)}
    assert listed == {k: "{}" if v == "<factory>" else v for k, v in defaults.items()}


def test_what_convert_takes_is_what_write_takes():
    text = section(page("python"), "Write").split("Options of `lake.convert`")[1]
    convert = {p.name: p.default for p in parameters(tl.TensorLake.convert)}
    write = {p.name: p.default for p in parameters(tl.TensorLake.write)}
    assert convert.items() <= write.items()
    assert set(names(text)) - {"write"} == set(convert)


def test_names_and_errors_of_python():
    text = page("python")
    kinds = {n for n in tl.__all__ if isinstance(getattr(tl, n), type)}
    errors = {n for n in kinds if issubclass(getattr(tl, n), tl.TensorLakeError)}
    for row in rows(section(text, "Errors"), "error"):
        (name,), (builtin,) = names(row[0]), names(row[1])
        assert issubclass(getattr(tl, name), getattr(__import__("builtins"), builtin)), name
        errors.remove(name)
    assert errors == {"TensorLakeError"}
    others = {
        n for n in tl.__all__ if not (n in kinds and issubclass(getattr(tl, n), tl.TensorLakeError))
    }
    assert {n.removeprefix("tl.") for n in listed(text, "name")} == others
    assert shown(tl.estimate).replace("'", '"') in text.replace("tl.estimate", "estimate")
    spoken = 'SparseTensor(coords, values, shape, duplicates="error")'
    assert spoken in text
    assert (
        shown(tl.SparseTensor.__init__).replace("__init__", "SparseTensor").replace("'", '"')
        == spoken
    )


# ------------------------------------------------------------------------------ Spark


@pytest.mark.parametrize(
    ("title", "known", "inner"),
    [
        ("Read", spark_options._READ, set()),
        ("Write", spark_options._WRITE, {"lastChange", "resumption"}),
    ],
)
def test_options_of_spark(title, known, inner):
    text = section(page("spark"), title)
    assert sorted(listed(text, "option")) == sorted({*known, "storage.*"} - inner)
    for name in inner:
        assert f"`{name}`" in text


def test_names_and_views_of_spark():
    text = page("spark")
    assert sorted(listed(text, "name in `tensorlake_spark.spark`")) == sorted(tl.spark.__all__)
    views = {names(row[0])[0]: names(row[2]) for row in rows(text, "view")}
    assert tuple(views) == spark_options.VIEWS
    assert views["blocks"] == BLOCKS.names
    assert views["catalog"] == CATALOG.names


# ------------------------------------------------------------------------------ SQL


def test_functions_of_sql():
    text = page("sql")
    found = set(listed(text, "function")) | set(listed(text, "aggregate"))
    assert found == {*tf.__all__, *FUNCTIONS, *AGGREGATES}
    for row in rows(section(text, "Tables and rows"), "function"):
        signature = re.match(r"`([^`]+)`", row[0])[1]
        function = getattr(tf, signature.partition("(")[0])
        if signature != "register(spark)":
            assert signature == shown(function)


# ------------------------------------------------------------------------------ jobs


@pytest.mark.parametrize("verb", VERBS)
def test_options_of_jobs(verb):
    parser = import_module(f"tensorlake_spark.jobs.{verb}").parser
    known = {o for a in parser._actions for o in a.option_strings if o.startswith("--")}
    text = page("jobs")
    shared = set(listed(section(text, "Options of every job"), "option"))
    own = set(listed(section(text, verb), "option"))
    assert shared | own == known - {"--help"}
    assert not shared & own
    assert max(map(len, parser.epilog.splitlines())) <= 120, "help is read in a terminal"


def test_the_verbs_of_jobs():
    assert listed(page("jobs"), "job") == list(VERBS)


# ------------------------------------------------------------------------------ versions


def operations_of(source):
    """What a module calls its commits in the history."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in {
            "Change",
            "commit_change",
        }:
            given = {word.arg: word.value for word in call.keywords}
            place = 3 if call.func.id == "Change" else 4
            told = given.get("operation", call.args[place] if len(call.args) > place else call)
            if not isinstance(told, ast.Call | ast.Name | ast.Attribute):
                yield from (one.value for one in ast.walk(told) if isinstance(one, ast.Constant))


def test_the_history_names_changes_as_the_page_does():
    text = (DOCS / "versions.md").read_text("utf-8").split("have these names:")[1].split(". ")[0]
    package = ROOT / "tensorlake_spark"
    found = {
        name
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] != "datasets"
        for name in operations_of(path.read_text("utf-8"))
    }
    assert {"append", "spark append", "compute"} <= found
    assert found - {"drop"} <= set(re.findall(r"`([^`]+)`", text)), "a drop is in a transaction"
