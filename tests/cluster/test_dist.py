"""``make dist``: a wheel, and one archive of the same for ``spark-submit --py-files``."""

import re
import subprocess
import zipfile

from places import ROOT

import tensorlake_spark as tl

PACKAGES = ("tensorlake_spark", "pyspark_tensorlake")


def names(path):
    with zipfile.ZipFile(path) as opened:
        assert opened.testzip() is None
        return {name for name in opened.namelist() if not name.endswith("/")}


def test_two_files_with_the_version_in_their_names(dist):
    assert sorted(path.name for path in dist.iterdir()) == [
        f"tensorlake_spark-{tl.__version__}-py3-none-any.whl",
        f"tensorlake_spark-{tl.__version__}.zip",
    ]


def test_both_hold_the_package_and_nothing_else(dist):
    copy = dist.parent
    held = [names(path) for path in dist.iterdir()]
    assert held[0] == held[1]
    shipped = {
        name for name in held[0] if not re.match(r"tensorlake_spark-[^/]+\.dist-info/", name)
    }
    there = {str(p.relative_to(copy)) for name in PACKAGES for p in (copy / name).rglob("*")}
    needed = {name for name in there if name.endswith(".py")} | {
        "tensorlake_spark/py.typed",
        "tensorlake_spark/layouts/FORMAT.md",
        "tensorlake_spark/spark/conf/log4j2.properties",
        "tensorlake_spark/spark/conf/spark-defaults.conf",
    }
    assert needed <= shipped <= there, "no test, nothing compiled, and nothing of an older build"


def test_building_leaves_nothing_else_behind(dist):
    assert not (dist.parent / "build").exists()
    assert not list(dist.parent.glob("*.egg-info"))
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"dist/", "build/", "*.egg-info/"} <= set(ignored)


CODE = """
import sys
sys.path.insert(0, sys.argv[1])
import tensorlake_spark as tl
from tensorlake_spark.spark.session import default_settings
lake = tl.open("lake")
lake.write("x", [[1, 2], [3, 4]])
print(tl.__file__.startswith(sys.argv[1]), lake["x"][1].tolist(), "pyspark" in sys.modules)
"""


def test_the_archive_is_imported_as_it_is(archive, bare_python, bare_environment, tmp_path):
    done = subprocess.run(
        [bare_python, "-c", CODE, archive], cwd=tmp_path, env=bare_environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "True [3, 4] False\n", done.stderr


def test_the_settings_are_read_out_of_the_archive(archive, bare_python, bare_environment, tmp_path):
    code = CODE + "print(default_settings()['spark.sql.parquet.columnarReaderBatchSize'])"
    done = subprocess.run(
        [bare_python, "-c", code, archive], cwd=tmp_path, env=bare_environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[1:] == ["64"], done.stderr
