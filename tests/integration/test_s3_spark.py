"""Spark on S3: the data source by the settings of the session, and plain Delta through S3A."""

import json
import os
import re
import subprocess
import sys
import traceback
import uuid
from pathlib import Path

import numpy as np
import pyarrow.fs as pafs
import pytest
from places import ROOT
from pyspark.sql import functions as f
from quick import BRIEF

import tensorlake_spark as tl
from tensorlake_spark.spark import check_log_store, read_tensor, register
from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark.cluster.s3a import completed, settings_of, to_hadoop
from tensorlake_spark.spark.session import default_settings, fetch
from tensorlake_spark.spark.source.schemas import TENSOR


@pytest.fixture
def url():
    return f"s3://bucket/{uuid.uuid4()}/a lake"


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 1000, (24, 30, 8)).astype("i4")


@pytest.fixture
def lake(s3, url):
    return tl.open(url, storage_options=s3.options)


@pytest.fixture
def told(spark, s3):
    """A session whose own settings say where S3 is, as a platform's do."""
    settings = to_hadoop(s3.options)
    for name, value in settings.items():
        spark.conf.set(name, value)
    register(spark)
    yield spark
    for name in settings:
        spark.conf.unset(name)
    register(spark)


def log_of(s3, url):
    """Return the actions of all commits of a table."""
    filesystem, path = s3.filesystem(), url.removeprefix("s3://")
    out = []
    for info in filesystem.get_file_info(pafs.FileSelector(f"{path}/_delta_log")):
        if info.path.endswith(".json"):
            with filesystem.open_input_stream(info.path) as file:
                out.append([json.loads(line) for line in file.read().splitlines()])
    return out


def slabs(spark, x, step=4):
    rows = [
        ([i, 0, 0], ("int32", [step, *x.shape[1:]], x[i : i + step].tobytes()))
        for i in range(0, len(x), step)
    ]
    frame = spark.createDataFrame(rows, f"lo array<bigint>, tensor {TENSOR.simpleString()}")
    return frame.repartition(2)


def test_the_sessions_settings_are_enough(told, s3, lake, url, x):
    """No option of the read or write, no environment."""
    assert "AWS_ENDPOINT_URL" not in os.environ
    slabs(told, x).write.format("tensor").mode("append").options(id="x").save(url)
    np.testing.assert_array_equal(lake["x"][:], x)
    cells = told.read.format("tensor").options(id="x", view="cells", slice="3:5")
    cells = cells.load(url.replace("s3://", "s3a://"))
    assert cells.agg({"value": "sum"}).first()[0] == x[3:5].sum()
    catalog = told.read.format("tensor").option("view", "catalog").load(url)
    assert catalog.first().id == "x"


def test_cells_that_several_tasks_have(told, s3, lake, url):
    """The driver reads rows that no commit names yet, to see whether an element is there twice."""
    frame = told.range(0, 600, 1, 3).selectExpr(
        "id % 200 div 20 as i0", "id % 20 as i1", "double(id) as value"
    )
    write = frame.write.format("tensor").mode("append").options(id="x", shape="10,20", layout="csr")
    with pytest.raises(Exception, match="is given more than once"):
        write.save(url)
    write.option("duplicates", "sum").save(url)
    want = np.arange(600.0).reshape(3, 10, 20).sum(0)
    np.testing.assert_array_equal(lake["x"][...].todense(), want)
    more = told.range(20).selectExpr("id div 5 as i0", "id % 5 as i1", "1D as value")
    more.write.format("tensor").mode("append").options(id="x").save(url)
    want[:4, :5] += 1
    np.testing.assert_array_equal(lake["x"][...].todense(), want)


def test_an_option_wins_over_the_session(told, s3, lake, url, x):
    lake.write("x", x)
    read = told.read.format("tensor").option("id", "x")
    with pytest.raises(Exception, match="InvalidAccessKeyId"):
        read.options(
            **{"storage.AWS_ACCESS_KEY_ID": "nobody", "storage.AWS_SECRET_ACCESS_KEY": "x"}
        ).load(url)


def test_without_settings_and_options_it_says_what_is_missing(spark, lake, url, x):
    lake.write("x", x)
    with pytest.raises(Exception, match="refused a request, or does not answer"):
        spark.read.format("tensor").option("id", "x").option("storage.AWS_REGION", "eu").option(
            "storage.AWS_ENDPOINT_URL", "http://127.0.0.1:9"
        ).option("storage.AWS_ALLOW_HTTP", "true").option("storage.max_retries", "1").load(url)


def test_no_plan_and_no_error_has_the_secret(told, s3, lake, url, x, capfd):
    lake.write("x", x)
    frame = told.read.format("tensor").option("id", "x").load(url)
    frame.explain(True)
    plain = told.read.format("delta").load(url.replace("s3://", "s3a://"))
    plain.explain(True)
    shown = [
        *capfd.readouterr(),
        frame._jdf.queryExecution().toString(),
        frame._jdf.queryExecution().analyzed().toJSON(),
        plain._jdf.queryExecution().toString(),
    ]
    for read in (
        told.read.format("tensor").option("id", "y"),
        told.read.format("tensor").option("id", "x").option("slise", "3"),
    ):
        with pytest.raises(Exception, match=r"did you mean|no tensor") as caught:
            read.load(url).collect()
        shown.append("".join(traceback.format_exception(caught.value)))
    for text in shown:
        assert s3.options["AWS_SECRET_ACCESS_KEY"] not in text
        assert s3.options["AWS_ACCESS_KEY_ID"] not in text


def test_plain_delta_through_s3a(told, lake, url, x):
    lake.write("x", x, block_shape=(4, 30, 8), axes=("day", "row", "column"))
    lake.write("x", x[:6], mode="append")
    want = np.concatenate([x, x[:6]])
    place = url.replace("s3://", "s3a://")
    rows = told.read.format("delta").load(place).where(tf.slice_filter("3:5", id="x"))
    assert rows.count() < told.read.format("delta").load(place).count()
    decoded = rows.select(tf.tensor_decode(f.struct("*"), "3:5").alias("tensor"))
    days = [np.frombuffer(t.data, t.dtype).reshape(t.shape) for (t,) in decoded.collect()]
    assert sorted(int(day.sum()) for day in days) == sorted(int(day.sum()) for day in x[3:5])
    blocks = read_tensor(told, place, "x", "day=3:27, column=5")
    np.testing.assert_array_equal(tf.collect_tensor(blocks), want[3:27, :, 5])
    old = read_tensor(told, place, "x", version=1)
    np.testing.assert_array_equal(tf.collect_tensor(old), x)


def test_no_commit_is_delta_sparks(told, s3, lake, url, x):
    """Creation, appends, overwrites, changes and care: none goes through delta-spark's log store."""
    slabs(told, x).write.format("tensor").mode("append").options(id="x").save(url)
    slabs(told, x).write.format("tensor").mode("overwrite").options(id="x").save(url)
    lake.write("y", x, mode="append")
    lake["y"][0] = 3
    lake.optimize()
    lake.purge("y", now=True)
    lake.tag("kept")
    lake.delete("x")
    infos = [a["commitInfo"] for commit in log_of(s3, url) for a in commit if "commitInfo" in a]
    assert len(infos) == len(log_of(s3, url)) >= 8
    for info in infos:
        engine = info.get("engineInfo") or info.get("clientVersion", "")
        assert engine.startswith(("delta-rs", "tensorlake-spark delta-rs")), info


def test_nothing_of_ours_asks_delta_spark_for_a_commit():
    """The package has no write through format("delta"), no DeltaTable of delta-spark, no SQL that changes a table."""
    commits = re.compile(
        r"""format\(["']delta["']\)[^\n]*\.(?:save|insertInto|saveAsTable)|\.write\b[^\n]*["']delta["']|from delta\b|import delta\b"""
        r"""|sql\(\s*f?["'](?:INSERT|UPDATE|DELETE|MERGE|OPTIMIZE|VACUUM|ALTER|CREATE|RESTORE)"""
    )
    for path in (ROOT / "tensorlake_spark").rglob("*.py"):
        code = re.sub(r'"""[\s\S]*?"""', "", path.read_text())
        assert not commits.search(code), path


SAFE = "io.delta.storage.S3DynamoDBLogStore"
STORE = "spark.delta.logStore.s3a.impl"


@pytest.fixture
def started_with(spark):
    """What sets a setting as if the session had been started with it; Delta looks at these alone."""
    conf = spark.sparkContext._conf
    names = []

    def start(name, value):
        names.append(name)
        conf.set(name, value)

    yield start
    for name in names:
        conf._jconf.remove(name)


def test_a_commit_of_delta_spark_without_a_safe_log_store_is_refused(spark, started_with):
    """Reason and remedy are told, and no password of the URL; what is set too late does not count."""
    with pytest.raises(tl.UnsupportedFeatureError) as caught:
        check_log_store(spark, "s3a://me:word@bucket/a/lake")
    said = str(caught.value)
    assert "delta-spark to s3a://bucket/a/lake may be lost: Delta's own log store" in said
    assert f"start the session with {STORE}={SAFE} (package io.delta:delta-storage-s3" in said
    assert "LOCKING_PROVIDER" not in said, "deltalake 1.6 asks no lock"
    assert "word" not in said
    spark.conf.set(STORE, SAFE)
    try:
        with pytest.raises(tl.UnsupportedFeatureError, match="Delta's own log store"):
            check_log_store(spark, "s3a://bucket/lake")
    finally:
        spark.conf.unset(STORE)
    started_with(STORE, "io.delta.storage.S3SingleDriverLogStore")
    with pytest.raises(tl.UnsupportedFeatureError, match=r"log store io\.delta\.storage\.S3Single"):
        check_log_store(spark, "s3a://bucket/lake")


def test_a_commit_of_delta_spark_may_be_safe(spark, started_with):
    for elsewhere in ("hdfs://h/lake", "abfss://c@a/lake"):
        check_log_store(spark, elsewhere)
    started_with(STORE, SAFE)
    with pytest.warns(
        UserWarning, match=r"s3a://bucket/lake may replace one .* deltalake does not"
    ):
        check_log_store(spark, "s3a://me:word@bucket/lake")  # safe beside its like alone
    with pytest.raises(tl.UnsupportedFeatureError, match=r"spark\.delta\.logStore\.s3\.impl="):
        check_log_store(
            spark, "s3://bucket/lake"
        )  # the same bucket by a name that has another store


SESSION = """
import json, os, sys, numpy as np
from pathlib import Path
from tensorlake_spark.spark import local_session, read_tensor
from tensorlake_spark.spark.functions import collect_tensor
url, events = sys.argv[1:]
options = json.load(sys.stdin)

def family(pid):
    yield pid
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in file.read_text().split():
            yield from family(child)

conf = {"spark.driver.extraJavaOptions": %r, "spark.eventLog.enabled": "true", "spark.eventLog.dir": events,
        "spark.eventLog.compress": "false"}
spark = local_session("local[1]", s3=options or True, **conf)
print("tensor", spark.read.format("tensor").options(id="x", view="cells").load(url).count())
print("delta", collect_tensor(read_tensor(spark, url.replace("s3:", "s3a:"), "x", "1:3")).sum())
given = "".join(f", storage.{name} '{value}'" for name, value in options.items())
spark.sql(f"CREATE TEMPORARY VIEW v USING tensor OPTIONS (path '{url}', id 'x'{given})").collect()
spark.sql("SELECT * FROM v").collect()
for pid in family(os.getpid()):
    print("process", Path(f"/proc/{pid}/cmdline").read_bytes().replace(bytes(1), b" ").decode())
print("conf", spark.sparkContext.getConf().getAll())
print("SQL", spark.sql("SET").collect())
spark.stop()
"""


@pytest.mark.parametrize("way", [pytest.param("environment", marks=pytest.mark.soak), "options"])
def test_local_session_on_s3(s3, lake, url, x, way, tmp_path):
    """Keys are in no command line, in no setting that is shown, and not in the log of events."""
    lake.write("x", x)
    options = {**s3.options, "AWS_SESSION_TOKEN": "a-token-of-the-session"}
    environment = {**os.environ, **(s3.options if way == "environment" else {})}
    done = subprocess.run(
        [sys.executable, "-c", SESSION % BRIEF, url, tmp_path.as_uri()],
        input=json.dumps(options if way == "options" else {}),
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[:2] == [f"tensor {x.size}", f"delta {x[1:3].sum()}"], done.stderr[-3000:]
    assert any(line.startswith("process") and "java" in line for line in lines)
    events = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "SparkListenerEnvironmentUpdate" in events
    assert "CREATE TEMPORARY VIEW" in events or "CreateTempView" in events
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        assert options[name] not in done.stdout + done.stderr + events, name


def test_the_jars_come_without_the_aws_bundle():
    names = [url.rsplit("/", 1)[1] for url in fetch(s3=True)]
    assert not [n for n in names if "_bundle-" in n]
    assert {
        "io.delta_delta-spark_4.2_2.13-4.4.0.jar",
        "org.apache.hadoop_hadoop-aws-3.5.0.jar",
    } <= {*names}
    sizes = [Path(u.removeprefix("file://")).stat().st_size for u in fetch(s3=True)]
    assert sum(sizes) < 40e6


def test_the_file_of_s3a_goes_with_that_of_delta():
    alone, both = default_settings(), default_settings(s3=True)
    assert both["spark.jars.packages"].startswith(alone["spark.jars.packages"])
    assert {*alone["spark.jars.excludes"].split(",")} < {*both["spark.jars.excludes"].split(",")}
    assert alone.keys() < both.keys()


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"endpoint": "h:9", "connection.ssl.enabled": "false"},
         {"AWS_ENDPOINT_URL": "http://h:9", "AWS_ALLOW_HTTP": "true"}),
        ({"endpoint": "h:9"}, {"AWS_ENDPOINT_URL": "https://h:9"}),
        ({"endpoint": "s3.amazonaws.com", "endpoint.region": "eu"}, {"AWS_REGION": "eu"}),
        ({"access.key": "k", "bucket.b.access.key": "own", "bucket.c.access.key": "other"},
         {"AWS_ACCESS_KEY_ID": "own"}),
        ({"aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
         {"AWS_SKIP_SIGNATURE": "true"}),
    ],
)  # fmt: skip
def test_hadoops_settings_as_options(settings, options):
    assert completed({}, settings, "s3a://b/lake") == options
    assert completed({}, settings, "/data/lake") == {}


def test_a_key_goes_with_its_secret():
    settings = {"access.key": "k", "secret.key": "s", "session.token": "t", "endpoint": "http://h"}
    found = completed({"aws_access_key_id": "a", "aws_secret_access_key": "b"}, settings, "s3://b")
    assert not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} & found.keys()
    assert found["AWS_ENDPOINT_URL"] == "http://h"
    other = completed({"endpoint": "https://e"}, settings, "s3://b")
    assert "AWS_ENDPOINT_URL" not in other
    assert "AWS_ALLOW_HTTP" not in other


def test_there_and_back(s3):
    assert completed({}, settings_of(to_hadoop(s3.options)), "s3://b/x") == s3.options
    token = {**s3.options, "AWS_SESSION_TOKEN": "t"}
    assert completed({}, settings_of(to_hadoop(token)), "s3://b/x") == token
