"""Versions for a report: everything that matters, without an import, and never an error."""

import configparser
import json
import platform
import re
import subprocess
import sys
from importlib import metadata

import numpy as np
from places import ROOT

import tensorlake_spark as tl
from tensorlake_spark import environment
from tensorlake_spark.__main__ import main as command
from tensorlake_spark.environment import PACKAGES, versions

OF_DEVELOPERS = {"demo", "dev", "bench", "bench-samples"}


def test_the_versions_are_those_of_this_machine():
    found = versions()
    assert found["tensorlake_spark"] == tl.__version__
    assert found["python"].startswith(platform.python_version())
    assert found["numpy"] == np.__version__
    assert found["deltalake"] == metadata.version("deltalake")
    assert re.fullmatch(r'openjdk version "\d.* \(.+/java\)', found["java"])
    assert found["kernels"] == "numpy"


def test_every_package_that_a_user_may_install_is_named():
    options = configparser.ConfigParser()
    options.read(ROOT / "setup.cfg")
    extras = options["options.extras_require"]
    wanted = "\n".join(
        [
            options["options"]["install_requires"],
            *(text for name, text in extras.items() if name not in OF_DEVELOPERS),
        ]
    )
    names = set(re.findall(r"^([\w-]+)(?:\[\w+\])?[>=]=", wanted, re.MULTILINE))
    assert len(names) > 25
    names -= {"tensorlake-spark"}  # an extra that brings another one
    assert names <= set(PACKAGES)


def test_they_are_printed_a_line_each(capsys):
    tl.show_versions()
    printed = capsys.readouterr().out.splitlines()
    assert printed == [f"{name}: {version}" for name, version in versions().items()]


def test_what_is_missing_says_so(monkeypatch, tmp_path):
    """Packages without metadata, as Spark's own pyspark; no Java; a Java that does not run."""

    def none(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", none)
    monkeypatch.setitem(PACKAGES, "torch", "a_package_that_nobody_has")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = versions()
    assert found["torch"] == "not installed"
    assert re.fullmatch(
        r"unknown \(at .*pyspark.__init__\.py, without metadata\)", found["pyspark"]
    )
    assert found["java"] == f"not installed (JAVA_HOME is {tmp_path}, which has no bin/java)"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert versions()["java"] == "not installed"
    (tmp_path / "java").write_bytes(b"\x7fELF, but no program")
    (tmp_path / "java").chmod(0o755)
    assert versions()["java"].startswith("unknown (OSError: ")


def test_a_switch_that_does_not_exist_says_so(monkeypatch):
    monkeypatch.setenv("TENSORLAKE_KERNELS", "fats")
    assert "'fats' is not one of auto, fast, numpy; did you mean 'fast'" in versions()["kernels"]


def test_a_broken_package_does_not_break_the_report(monkeypatch):
    def broken(name):
        raise RuntimeError(f"metadata of {name} cannot be read")

    monkeypatch.setattr(metadata, "version", broken)
    monkeypatch.setattr(environment.platform, "platform", lambda: broken("the system"))
    found = versions()
    assert found["numpy"] == "unknown (RuntimeError: metadata of numpy cannot be read)"
    assert found["system"].startswith("unknown (RuntimeError")


def test_nothing_is_imported_for_it():
    code = (
        "import sys, tensorlake_spark as tl; tl.show_versions()\n"
        "print(*sys.modules.keys() & {'numpy', 'pyarrow', 'pyspark', 'pandas', 'google', 'torch'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


def test_the_command_line_says_the_version(capsys):
    assert command(["--version"]) == 0
    assert capsys.readouterr().out == f"tensorlake_spark {tl.__version__}\n"


def test_an_interrupt_while_a_verb_is_imported_is_told_in_one_line(monkeypatch, capsys):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("tensorlake_spark.__main__.import_module", interrupted)
    assert command(["check", "lake"]) == 130
    out, err = capsys.readouterr()
    assert err == "check.py: interrupted\n"
    assert json.loads(out) == {"status": "interrupted", "exit_code": 130, "seconds": 0.0}
