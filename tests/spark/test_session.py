"""Sessions, settings, and a machine that lacks something."""

import os
import subprocess
import sys
from pathlib import Path

from tensorlake_spark.spark.java import java_problem
from tensorlake_spark.spark.session import CONF, default_settings

ROOT = Path(__file__).resolve().parents[2]


def test_a_session_has_the_settings_of_the_file(spark):
    for name, value in default_settings().items():
        if not name.startswith("spark.jars"):
            assert spark.conf.get(name) == value
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC", "keywords win"


def test_the_folder_conf_is_what_is_shipped():
    assert (ROOT / "conf").resolve() == CONF.resolve()


def run(code, **environment):
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False
    )


def test_a_machine_without_java_is_told_in_one_line(tmp_path):
    code = "from tensorlake_spark.spark import local_session; local_session()"
    done = run(code, PATH=str(tmp_path), JAVA_HOME="")
    last = done.stderr.strip().splitlines()[-1]
    assert "MissingDependencyError: Spark needs Java 17 or 21: no java on the PATH" in last
    done = run(
        "from tensorlake_spark.spark.java import java_problem as j; print(j())",
        JAVA_HOME=str(tmp_path),
    )
    assert "JAVA_HOME is" in done.stdout
    assert java_problem() is None


def test_another_java_is_named(tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    done = run(
        "from tensorlake_spark.spark.java import java_problem as j; print(j())",
        JAVA_HOME=str(tmp_path),
    )
    assert "is Java 11; install a JDK 17 or 21" in done.stdout


def test_a_machine_without_pyspark_is_told_in_one_line():
    code = (
        "import sys; sys.modules['pyspark'] = None; sys.modules['pyspark.sql'] = None\n"
        "from tensorlake_spark.spark import local_session; local_session()"
    )
    last = run(code).stderr.strip().splitlines()[-1]
    assert "pip install 'tensorlake-spark[spark]'" in last
