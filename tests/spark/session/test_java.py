"""A Java that Spark runs on: found, or named in one line."""

import os
import subprocess
import sys

from tensorlake_spark.spark.session.java import java_problem


def run(code, *arguments, **environment):
    """Run `code` in a Python of its own; None takes a variable out of its environment."""
    env = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True, text=True, env=env, check=False,
    )  # fmt: skip


def test_a_machine_without_java_is_told_in_one_line(tmp_path):
    code = "from tensorlake_spark.spark import local_session; local_session()"
    done = run(code, PATH=str(tmp_path), JAVA_HOME="")
    last = done.stderr.strip().splitlines()[-1]
    assert "MissingDependencyError: Spark needs Java 17 or 21: no java on the PATH" in last
    done = run(
        "from tensorlake_spark.spark.session.java import java_problem as j; print(j())",
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
        "from tensorlake_spark.spark.session.java import java_problem as j; print(j())",
        JAVA_HOME=str(tmp_path),
    )
    assert "is Java 11; install a JDK 17 or 21" in done.stdout
