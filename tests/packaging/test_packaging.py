"""What a wheel holds, and what `make` says on a machine that lacks something."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from places import ROOT

import tensorlake_spark as tl

COMMANDS = {"help", "setup", "demo", "test", "lint", "format", "bench-dense", "soak", "golden", "clean"}  # fmt: skip


BIN = ".venv/bin"
SET_UP = re.compile(r"-m venv|-m pip install|(?:s3server\.)?fetch\([^)]*\)|tests/support/quick\.py")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """What a clean clone has of the package; its path has a blank."""
    folder = tmp_path_factory.mktemp("clean clone")
    for name in ("Makefile", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("tensorlake_spark", "pyspark_tensorlake"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "conf").symlink_to(os.readlink(ROOT / "conf"))
    (folder / "tests" / "support").mkdir(parents=True)
    for name in ("quick.py", "s3server.py"):
        shutil.copy(ROOT / "tests" / "support" / name, folder / "tests" / "support")
    return folder


def make(folder, *arguments, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "PYTHON")}
    command = ["make", "--no-print-directory", "-C", str(folder), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={**env, **environment}, check=False
    )


def test_a_wheel_has_the_settings_and_is_found_by_spark(copy, tmp_path):
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-w", str(tmp_path), str(copy)], check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    shipped = {str(p.relative_to(installed)) for p in installed.rglob("*") if p.is_file()}
    assert {
        "tensorlake_spark/py.typed",
        "tensorlake_spark/layouts/FORMAT.md",
        "tensorlake_spark/datasets/FORMAT.md",
        "tensorlake_spark/spark/conf/spark-defaults.conf",
        "tensorlake_spark/spark/conf/log4j2.properties",
        "pyspark_tensorlake/__init__.py",
    } <= shipped
    assert not [name for name in shipped if name.startswith(("tests", "jobs", "conf", "docker"))]
    code = (
        "from tensorlake_spark.spark.session import CONF, default_settings as d\n"
        "print(CONF, d()['spark.sql.parquet.columnarReaderBatchSize'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=installed
    )
    assert done.stdout.split() == [str(installed / "tensorlake_spark" / "spark" / "conf"), "64"]


def test_the_version_is_written_alike_everywhere():
    assert f"version = {tl.__version__}\n" in (ROOT / "setup.cfg").read_text()


def test_the_oldest_versions_are_those_of_setup_cfg():
    """`make test-lowest` runs with what the lower bounds say."""
    options = configparser.ConfigParser()
    options.read(ROOT / "setup.cfg")
    extras = options["options.extras_require"]
    tried = [
        "dtypes",
        "codecs",
        "fast",
        "s3",
        "progress",
        "ingest",
        "images",
        "audio",
        "video",
        "dicom",
        "query",
    ]
    wanted = "\n".join([options["options"]["install_requires"], *(extras[name] for name in tried)])
    bounds = dict(re.findall(r"^([\w-]+)>=([\d.]+)", wanted, re.MULTILINE))
    found = dict(
        re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / "tests/lowest.txt").read_text(), re.MULTILINE)
    )
    assert len(bounds) == 23
    for name, bound in bounds.items():
        assert f"{found[name]}.".startswith(f"{bound}."), name


def test_make_alone_lists_every_command(copy):
    done = make(copy)
    assert done.returncode == 0
    listed = re.findall(r"^  make ([a-z0-9-]+) +\S", done.stdout, re.MULTILINE)
    assert set(listed) >= COMMANDS
    phony = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed == [name for line in phony for name in line.split()]


def test_make_clean_removes_every_environment():
    text = (ROOT / "Makefile").read_text()
    made = re.findall(r"^(\w+) *:= (?:\.venv\S*)$", text, re.MULTILINE)
    removed = re.search(r"^clean:.*\n\trm -rf (.*)", text, re.MULTILINE)[1].split()
    assert made
    assert {f"$({name})" for name in made} <= {*removed}


@pytest.mark.parametrize("command", ["setup", "demo", "test"])
def test_make_names_a_missing_java_and_stops(copy, command):
    done = make(copy, command, f"PYTHON={sys.executable}", JAVA_HOME=str(copy / "no java"))
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    assert len(said) == 1
    assert said[0].startswith("Spark needs Java 17 or 21: JAVA_HOME is ")
    assert "install a JDK 17 or 21" in said[0]
    assert not (copy / ".venv").exists()


def test_make_names_a_missing_or_old_python_and_stops(copy, tmp_path):
    old = tmp_path / "python3"
    old.write_text(
        "#!/bin/sh\nexit 1\n"
    )  # what an old Python answers to the question of its version
    old.chmod(0o755)
    for python in (old, tmp_path / "absent"):
        done = make(copy, "setup", f"PYTHON={python}")
        assert done.returncode != 0
        said = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
        assert len(said) == 1
        assert said[0].startswith("Python 3.10 or newer is needed: install it")
        assert not (copy / ".venv").exists()


def test_a_second_run_has_nothing_to_do(copy, tmp_path):
    folder = tmp_path / "ready"
    shutil.copytree(copy, folder, symlinks=True)
    stamps = folder / ".venv" / ".ready", folder / ".venv" / ".quick"

    def ready():
        stamps[0].parent.mkdir(exist_ok=True)
        for stamp in stamps:  # in the order in which they are made
            stamp.touch()

    def steps(command):
        said = make(folder, "--dry-run", command).stdout
        return [found[0] for found in SET_UP.finditer(said)]

    first = {"-m venv", "-m pip install"}
    assert first | {"fetch()"} == {*steps("demo")}, "the demo pays for no test"
    everything = first | {"fetch()", "fetch(s3=True)", "s3server.fetch()", "tests/support/quick.py"}
    for command in ("setup", "test", "soak"):
        assert everything == {*steps(command)}, command
    ready()
    assert "Nothing to be done" in make(folder, "setup").stdout
    for command in ("demo", "test", "lint", "soak", "test-s3", "s3", "dist"):
        done = make(folder, "--dry-run", command)
        assert done.returncode == 0, done.stderr
        assert f"{BIN}/" in done.stdout, command
        assert steps(command) == [], command
    for name in ("setup.cfg", "pyproject.toml", "conf/spark-defaults.conf"):
        ready()
        assert "Nothing to be done" in make(folder, "setup").stdout
        after = stamps[0].stat().st_mtime + 5
        os.utime(folder / name, (after, after))
        assert everything == {*steps("setup")}, name
        os.utime(folder / name, (after - 60, after - 60))
