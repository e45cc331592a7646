"""Old import paths: the same object, one warning for each, and no other name."""

import ast
import importlib
import subprocess
import sys
import warnings
from importlib.metadata import version

import pytest
from places import ROOT

import tensorlake_spark as tl
from tensorlake_spark import moved

PACKAGE = "tensorlake_spark"
NAMES = [(folder, name) for folder, names in moved.NAMES.items() for name in names]


@pytest.fixture(autouse=True)
def as_before():
    """Leave what is imported, and what folders have, as it was."""
    modules = dict(sys.modules)
    folders = {name: module for name, module in modules.items() if name.startswith(PACKAGE)}
    attributes = {name: dict(vars(module)) for name, module in folders.items()}
    yield
    for name in [name for name in sys.modules if name.startswith(PACKAGE) and name not in modules]:
        if name.removeprefix(f"{PACKAGE}.") in moved.MODULES:
            del sys.modules[name]
    for name, before in attributes.items():
        for added in vars(folders[name]).keys() - before.keys():
            if f"{name}.{added}" not in sys.modules:
                delattr(folders[name], added)


ZARR_3 = {"spark.zarr_objects"} if version("zarr") < "3" else set()
"""What cannot be imported with Zarr 2, which Python 3.10 has."""


@pytest.mark.parametrize("old", [one for one in moved.MODULES if one not in ZARR_3])
def test_an_old_path_is_the_new_module_and_warns_once(old):
    new = importlib.import_module(f"{PACKAGE}.{moved.MODULES[old]}")
    own = new.__name__, new.__spec__
    text = (
        f"{PACKAGE}.{old} is now {new.__name__}; the old path goes with release {moved.DROPPED_IN}"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = importlib.import_module(f"{PACKAGE}.{old}")
        assert importlib.import_module(f"{PACKAGE}.{old}") is found
    assert found is new
    assert (new.__name__, new.__spec__) == own, "the new module does not notice"
    (warning,) = caught
    assert (str(warning.message), warning.category) == (text, DeprecationWarning)


@pytest.mark.parametrize(("folder", "name"), NAMES)
def test_a_name_of_a_module_that_is_a_folder_now_is_the_same_object_and_warns_once(folder, name):
    here = importlib.import_module(f"{PACKAGE}.{folder}")
    new = f"{PACKAGE}.{moved.NAMES[folder][name]}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = getattr(here, name)
        assert getattr(here, name) is found
    assert found is getattr(importlib.import_module(new), name)
    (warning,) = caught
    assert f"{PACKAGE}.{folder}.{name} is now {new}.{name};" in str(warning.message)
    assert warning.filename == __file__


def test_the_warning_names_the_line_that_imports():
    with pytest.warns(
        DeprecationWarning, match=r"spec is now tensorlake_spark\.tensor\.spec;"
    ) as caught:
        from tensorlake_spark.spec import TensorSpec
    assert TensorSpec is tl.TensorSpec
    assert [warning.filename for warning in caught] == [__file__]


def test_an_old_module_is_still_an_attribute_of_the_package():
    with pytest.warns(DeprecationWarning, match="tensorlake_spark.sparse is now"):
        assert tl.sparse.SparseTensor is tl.SparseTensor


def test_what_was_imported_on_purpose_does_not_warn():
    from tensorlake_spark.lake import TensorLake
    from tensorlake_spark.spark.functions import register
    from tensorlake_spark.spark.session import local_session

    assert TensorLake is tl.TensorLake
    assert register is not tl.spark.register
    assert local_session is tl.spark.local_session


@pytest.mark.parametrize(
    "name", ["nothing", "delta.nothing", "spec.nothing", "layouts.sparse.nothing"]
)
def test_an_unknown_module_is_an_error_as_ever(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ModuleNotFoundError, match="nothing"):
            importlib.import_module(f"{PACKAGE}.{name}")


@pytest.mark.parametrize("folder", ["", *(f".{folder}" for folder in moved.NAMES)])
def test_an_unknown_name_of_a_folder_is_an_error_as_ever(folder):
    here = importlib.import_module(f"{PACKAGE}{folder}")
    with pytest.raises(
        AttributeError, match=f"module '{PACKAGE}{folder}' has no attribute 'nothing'"
    ):
        _ = here.nothing


def test_no_old_path_hides_a_new_one():
    for old, new in moved.MODULES.items():
        place = ROOT / PACKAGE / old.replace(".", "/")
        assert not place.with_suffix(".py").exists()
        assert not place.is_dir(), f"{old}: its names belong into NAMES"
        assert new not in moved.MODULES


def test_the_old_paths_go_when_they_said():
    now, then = (tuple(map(int, v.split("."))) for v in (tl.__version__, moved.DROPPED_IN))
    assert now < then, "remove moved.py"


def test_install_twice_is_once():
    moved.install()
    assert sum(isinstance(finder, moved.MovedModules) for finder in sys.meta_path) == 1


def test_importing_the_package_looks_at_no_moved_module():
    code = "import sys, tensorlake_spark; print(*[m for m in sys.modules if m.startswith('tensorlake_spark.')])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {name.removeprefix(f"{PACKAGE}.") for name in done.stdout.split()}
    assert "moved" in loaded
    assert not loaded & moved.MODULES.keys()


def imported(path):
    """Return the dotted names that a file imports, below the package."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_of_ours_uses_an_old_path():
    old = {f"{PACKAGE}.{name}" for name in (*moved.MODULES, *(".".join(n) for n in NAMES))}
    files = [
        path
        for folder in (PACKAGE, "pyspark_tensorlake", "jobs", "tests", "docs", "docker")
        for path in (ROOT / folder).rglob("*.py")
        if path != ROOT / "tests" / "test_moved.py"
    ]
    assert len(files) > 200
    assert {(str(path), name) for path in files for name in imported(path) if name in old} == set()
