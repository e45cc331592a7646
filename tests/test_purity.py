"""What an import brings along."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("tensorlake_spark", ["pyspark", "matplotlib", "torch"]),
        ("tensorlake_spark.layouts", ["pyspark"]),
        ("tensorlake_spark.errors", ["pyspark"]),
    ],
)
def test_an_import_does_not_bring(module, absent):
    code = f"import sys, {module}; print(*[m for m in {absent!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
