"""The front door: its names come late, and are all there."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tensorlake_spark as tl

SOURCE = Path(tl.__file__).read_text()


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_every_name_is_there_and_dir_lists_it():
    assert sorted(set(tl.__all__)) == tl.__all__
    assert {*tl.__all__, "spark", "__version__"} <= set(dir(tl))
    for name in tl.__all__:
        value = getattr(tl, name)
        if isinstance(value, ModuleType):  # a room that is called by the name of its door
            assert callable(value)
        else:
            assert getattr(sys.modules[value.__module__], name) is value
        assert vars(tl)[name] is value, "the next use asks nobody"


def test_what_type_checkers_read_is_what_python_finds():
    """`TYPE_CHECKING` and `_HOMES` say the same."""
    (late,) = (node for node in ast.parse(SOURCE).body if isinstance(node, ast.If))
    read = {
        name.name: node.module.removeprefix("tensorlake_spark.")
        for node in late.body
        for name in node.names
    }
    assert read == tl._HOMES
    assert set(tl._HOMES) < set(tl.__all__)


def test_a_fresh_process_takes_names_in_either_way(tmp_path):
    out = run(
        "from tensorlake_spark import TensorLake, open\n"
        "import tensorlake_spark as tl\n"
        f"lake = open({str(tmp_path)!r})\n"
        "assert isinstance(lake, TensorLake) and tl.open is open and tl.TensorLake is TensorLake\n"
        "print(lake.write('x', [1, 2])[...].tolist())"
    )
    assert out == "[1, 2]"


def test_a_star_brings_all_names():
    names = run("from tensorlake_spark import *; print(*dir())").split()
    assert set(tl.__all__) <= set(names)


def test_rooms_are_found_and_what_is_not_there_is_an_error():
    assert (
        run("import tensorlake_spark as tl; print(tl.spark.__name__)") == "tensorlake_spark.spark"
    )
    code = "import tensorlake_spark as tl; print(tl.tensor.spec.STORED_AXES)"
    assert run(code.replace("tl.tensor", "tl.lake.lake.write, tl.tensor")).endswith(" 8")
    for name in ("opne", "_pytestfixturefunction", "no room"):
        assert not hasattr(tl, name)
    with pytest.raises(AttributeError, match="module 'tensorlake_spark' has no attribute 'opne'"):
        tl.opne
