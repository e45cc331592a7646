"""Spark Connect: Spark's own server, which has the package from its client only."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyspark
import pytest
from places import ROOT
from quick import BRIEF

import tensorlake_spark as tl

PATIENCE = 240
"""Seconds after which a process is taken to hang."""


@pytest.fixture
def server(bare_python, bare_environment, tmp_path):
    """The address of a server of Spark Connect whose Python does not have the package."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    (tmp_path / "tmp").mkdir()
    settings = {
        "spark.master": "local[2]",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.sql.warehouse.dir": tmp_path / "warehouse",
        "spark.driver.extraJavaOptions": f"{BRIEF} -Djava.io.tmpdir={tmp_path / 'tmp'}",
    }
    command = [
        Path(pyspark.__file__).parent / "bin" / "spark-submit",
        "--properties-file", ROOT / "conf" / "spark-defaults.conf",
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal",
    ]  # fmt: skip
    environment = {
        **bare_environment,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "PYSPARK_PYTHON": str(bare_python),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    log = tmp_path / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(map(str, command)), env=environment, cwd=tmp_path, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
        )  # fmt: skip
    try:
        stop = time.monotonic() + PATIENCE
        while not _listens(port):
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < stop, log.read_text()[-3000:]
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)


def _listens(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("which", ["not soak", pytest.param("soak", marks=pytest.mark.soak)])
def test_a_client_writes_and_reads(server, archive, tmp_path, which):
    """The tests of connect_client.py; Connect and classic sessions do not mix in one process."""
    client = Path(__file__).with_name("connect_client.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", which, f"--basetemp={tmp_path / 'client'}", client],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
        env={
            **os.environ,
            "JAVA_HOME": str(tmp_path / "no java"),
            "CONNECT_URL": server,
            "CONNECT_ARCHIVE": str(archive),
        },
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert " passed" in done.stdout


OURS = """
import sys
from tensorlake_spark.spark import local_session

path = sys.argv[1] + "/lake"
spark = local_session(**{"spark.api.mode": "connect"})
read = spark.read.format("tensor").options(id="x", view="cells")
total = read.load(path).agg({"value": "sum"}).collect()[0][0]
count = spark.read.format("delta").load(path).count()
print(type(spark).__module__, total, count)
spark.stop()
"""

SPARKS = """
import sys
from pyspark.sql import SparkSession
from tensorlake_spark.spark.functions import sql_registration as functions
from tensorlake_spark.spark import register

path = sys.argv[1] + "/lake"
spark = SparkSession.builder.remote("local[2]").getOrCreate()
register(spark)
functions.register(spark)
blocks = spark.read.format("tensor").option("id", "x").load(path)
blocks.select("lo", "tensor").write.format("tensor").mode("append").option("id", "x").save(path)
blocks = spark.read.format("tensor").options(id="x", slice="2:").load(path)
print(type(spark).__module__, blocks.selectExpr("sum(tensor_sum(tensor))").first()[0])
"""


@pytest.fixture
def start(tmp_path):
    """What runs a program that starts a server, with the folder of a lake, and returns the last line it prints."""
    tl.open(tmp_path / "lake").write("x", np.arange(6).reshape(2, 3))
    # With SPARK_TESTING Spark takes a free port in place of 15002.
    options = f"{BRIEF} -Djava.io.tmpdir={tmp_path}"

    def start(program):
        done = subprocess.run(
            [sys.executable, "-c", program, tmp_path], cwd=tmp_path, timeout=PATIENCE, check=False,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_TESTING": "1", "JDK_JAVA_OPTIONS": options},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()[-1]

    return start


@pytest.mark.soak
def test_remote_starts_a_server_of_a_session(start, tmp_path):
    assert start(SPARKS) == "pyspark.sql.connect.session 15.0"
    np.testing.assert_array_equal(tl.open(tmp_path / "lake")["x"][2:], np.arange(6).reshape(2, 3))


@pytest.mark.soak
def test_a_local_session_of_connect_has_delta(start, tmp_path):
    rows = sum(pq.read_metadata(path).num_rows for path in tmp_path.glob("lake/*.parquet"))
    assert start(OURS) == f"pyspark.sql.connect.session 15 {rows}"
