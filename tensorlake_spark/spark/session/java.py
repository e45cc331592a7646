"""Find a Java that Spark 4 runs on. Imports nothing of the project: `make` runs it before any set-up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

SUPPORTED = (17, 21)


def java_problem() -> str | None:
    """Return in one line what is wrong with this machine's Java, None if it will do.

    Examples
    --------
    >>> java_problem() is None
    True
    """
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else shutil.which("java")
    remedy = (
        "install a JDK 17 or 21 (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    )
    if not command or not os.path.exists(command):
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "no java on the PATH"
        return f"Spark needs Java 17 or 21: {where}; {remedy}."
    try:
        text = subprocess.run(  # nosec B603 # no shell; the java of this machine
            [command, "-version"], capture_output=True, text=True, timeout=60, check=False
        ).stderr
    except OSError as error:
        return f"Spark needs Java 17 or 21: {command} does not run ({error}); {remedy}."
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    if not found or int(found.group(1)) not in SUPPORTED:
        version = found.group(1) if found else "of an unknown version"
        return f"Spark needs Java 17 or 21: {command} is Java {version}; {remedy}."
    return None


if __name__ == "__main__":
    PROBLEM = java_problem()
    if PROBLEM:
        sys.exit(PROBLEM)
