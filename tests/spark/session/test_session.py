"""Sessions, settings, and a machine that lacks something."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from places import ROOT
from quick import BRIEF

import tensorlake_spark as tl
from tensorlake_spark.spark.session import CONF, default_settings, fetch


def run(code, *arguments, **environment):
    """Run `code` in a Python of its own; None takes a variable out of its environment."""
    env = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True, text=True, env=env, check=False,
    )  # fmt: skip


def test_a_session_has_the_settings_of_the_file(spark):
    for name, value in default_settings().items():
        if not name.startswith("spark.jars"):
            assert spark.conf.get(name) == value
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC", "keywords win"


def test_a_session_reads_and_writes_delta(spark, tmp_path):
    path = str(tmp_path / "table")
    spark.range(7).write.format("delta").save(path)
    assert spark.read.format("delta").load(path).count() == 7


@pytest.mark.soak
def test_a_fresh_session_is_quiet_and_takes_the_python_that_started_it(tmp_path):
    """From a folder whose name has a blank, and with no variable that says which Python."""
    package = tmp_path / "a folder"
    for name in ("tensorlake_spark", "pyspark_tensorlake"):
        shutil.copytree(ROOT / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
    tl.open(tmp_path / "lake").write("x", np.arange(6).reshape(2, 3))
    code = (
        "import os, sys\n"
        "sys.path[:0] = [sys.argv[1]]\n"
        "from tensorlake_spark.spark import local_session\n"
        "s = local_session('local[1]', 'mine', **{'spark.sql.shuffle.partitions': 3})\n"
        "read = s.read.format('tensor').option('id', 'x').option('view', 'cells')\n"
        "total = read.load(sys.argv[2]).agg({'value': 'sum'}).collect()[0][0]\n"
        "print(s.sparkContext.appName, s.conf.get('spark.sql.shuffle.partitions'), total)\n"
        "print(os.environ['PYSPARK_PYTHON'] == sys.executable, os.environ['SPARK_LOCAL_IP'])\n"
        "print(local_session.__code__.co_filename.startswith(sys.argv[1]))\n"
    )
    cleared = dict.fromkeys(["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"])
    quick = {"SPARK_SUBMIT_OPTS": BRIEF}  # of which Java says nothing
    done = run(code, package, tmp_path / "lake", PYTHONPATH=str(package), **cleared, **quick)
    assert done.stdout.splitlines() == ["mine 3 15", "True 127.0.0.1", "True"], done.stderr[-2000:]
    # Java's own line about a module of its own cannot be turned off.
    said = [x for x in done.stderr.splitlines() if "incubator modules" not in x]
    assert said == []


def test_spark_submit_takes_the_same_file(tmp_path):
    """Delta works, a session that never heard of us finds ``format("tensor")``, and nothing is fetched again."""
    tl.open(tmp_path / "lake").write("x", np.arange(6).reshape(2, 3))
    job = tmp_path / "job.py"
    job.write_text(
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "s = SparkSession.builder.getOrCreate()\n"
        "s.range(5).write.format('delta').save(sys.argv[1] + '/table')\n"
        "n = s.read.format('delta').load(sys.argv[1] + '/table').count()\n"
        "m = s.read.format('tensor').option('id', 'x').option('view', 'cells')\n"
        "c = s.read.format('tensor').option('view', 'catalog').load(sys.argv[1] + '/lake')\n"
        "size = s.conf.get('spark.sql.parquet.columnarReaderBatchSize')\n"
        "print('answer', n, m.load(sys.argv[1] + '/lake').count(), c.first().id, size)\n"
    )
    submit = Path(sys.executable).with_name("spark-submit")
    quick = {"SPARK_SUBMIT_OPTS": BRIEF}
    place = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = {**os.environ, **place, **quick}
    done = subprocess.run(
        [submit, "--master", "local[1]", "--properties-file", "conf/spark-defaults.conf", job, tmp_path],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "answer 5 6 x 64" in done.stdout.splitlines(), done.stderr[-3000:]
    assert "downloading" not in done.stdout + done.stderr


def test_the_folder_conf_is_what_is_shipped():
    assert (ROOT / "conf").resolve() == CONF.resolve()


def test_only_delta_itself_is_fetched():
    names = [url.rsplit("/", 1)[1] for url in fetch()]
    assert len(names) == 8
    assert "io.delta_delta-spark_4.2_2.13-4.4.0.jar" in names
    assert not [name for name in names if name.startswith(("org.apache.hadoop", "org.slf4j"))]


@pytest.mark.soak
def test_jars_that_went_away_are_fetched_again(tmp_path):
    names = fetch()
    here = Path(os.environ.get("TENSORLAKE_CACHE", Path.home() / ".cache" / "tensorlake-spark"))
    for note in here.glob("jars-*.json"):
        (tmp_path / note.name).write_text('["file:///not/there.jar"]')
    code = "from tensorlake_spark.spark.session import fetch; print(*fetch(), sep=chr(10))"
    done = run(code, TENSORLAKE_CACHE=str(tmp_path))
    assert done.stdout.split() == names, done.stderr[-2000:]


def test_a_session_needs_no_place_for_its_note(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TENSORLAKE_CACHE", str(tmp_path / "file" / "cache"))
    said = subprocess.CompletedProcess([], 0, stdout="file:///a.jar,file:///b.jar\n", stderr="")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: said)
    assert fetch() == ["file:///a.jar", "file:///b.jar"]
    (warned,) = caplog.messages
    assert warned.startswith(f"{tmp_path}/file/cache/jars-")
    assert "Not a directory; name another folder by TENSORLAKE_CACHE" in warned
    monkeypatch.setenv("TENSORLAKE_CACHE", str(tmp_path / "cache"))
    assert fetch() == ["file:///a.jar", "file:///b.jar"]
    (note,) = (tmp_path / "cache").iterdir()
    assert note.suffix == ".json"


def test_a_machine_without_pyspark_is_told_in_one_line():
    code = (
        "import sys; sys.modules['pyspark'] = None; sys.modules['pyspark.sql'] = None\n"
        "from tensorlake_spark.spark import local_session; local_session()"
    )
    last = run(code).stderr.strip().splitlines()[-1]
    assert "pip install 'tensorlake-spark[spark]'" in last


WITHOUT_SPARK = """
import sys
import time
from contextlib import suppress
sys.modules["pyspark"] = None
try:
    {}
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    "does",
    [
        "from tensorlake_spark.spark import register",
        "from tensorlake_spark.spark import functions as tf",
        "import tensorlake_spark.spark; tensorlake_spark.spark.query",
        "import tensorlake_spark.spark; tensorlake_spark.spark.local_session()",
    ],
)
def test_every_name_says_that_spark_is_missing(does):
    done = run(WITHOUT_SPARK.format(does), PYTHONPATH=str(ROOT))
    said = "MissingDependencyError Spark is not installed: pip install 'tensorlake-spark[spark]'"
    assert done.stdout.strip() == said, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["ingest", "--table", "t", "--id", "x", "x.npy"], ["query", "t", "SELECT 1", "--spark"]],
)
def test_a_command_says_that_spark_is_missing(arguments):
    code = f"from tensorlake_spark.__main__ import main; sys.exit(main({arguments}))"
    done = run(WITHOUT_SPARK.format(code), PYTHONPATH=str(ROOT))
    assert done.returncode == 2, done.stderr
    said = f"{arguments[0]}.py: Spark is not installed: pip install 'tensorlake-spark[spark]'"
    assert done.stderr.strip() == said
    assert '"type": "MissingDependencyError"' in done.stdout


def test_another_import_that_fails_is_not_taken_for_spark():
    code = WITHOUT_SPARK.replace('["pyspark"]', '["grpc_of_nobody"]').format(
        "sys.modules['tensorlake_spark.spark.queries'] = None; "
        "from tensorlake_spark.spark import query"
    )
    assert run(code, PYTHONPATH=str(ROOT)).stdout.startswith("ModuleNotFoundError")


INTERRUPTED = """
import os, signal
import pyspark.java_gateway as gateway
from tensorlake_spark.spark import local_session

real = gateway.Popen

def started(*arguments, **options):
    process = real(*arguments, **options)
    os.kill(os.getpid(), signal.SIGINT)
    return process

gateway.Popen = started
local_session()
"""


def test_ctrl_c_while_java_starts_leaves_no_process(tmp_path):
    """PySpark gave up the start, and the JVM waited for ever."""
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED], stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "JAVA_TOOL_OPTIONS": BRIEF},
        )  # fmt: skip
    try:
        assert process.wait(240) == -signal.SIGINT
        with pytest.raises(ProcessLookupError):
            for _ in range(400):
                os.killpg(process.pid, 0)
                time.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
