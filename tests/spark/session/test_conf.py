"""conf/: every setting is one that Spark knows, with a value that it takes, and files start what they are for."""

import re
from pathlib import Path

import pytest

from tensorlake_spark.spark.session import CONF, default_settings

FILES = (
    "spark-defaults.conf", "standalone.conf", "kubernetes.conf", "databricks.conf", "s3a.conf",
)  # fmt: skip
FREE = re.compile(
    r"spark\.kubernetes\.(driver|executor)\.secretKeyRef\.\w+|spark\.jars\.\w+|spark\.sql\.catalog\.\w+"
    r"|spark\.hadoop\.fs\.s3\.impl"
)
"""Names that end in what the user chooses, or are read by spark-submit alone."""
HADOOP = "spark.hadoop."


def settings(name):
    """What a file sets, as Java's properties are read."""
    out = {}
    for line in (Path(str(CONF)) / name).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            key, value = line.split(None, 1)
            assert key not in out, f"{key} is there twice"
            out[key] = value.strip()
    return out


@pytest.mark.parametrize("name", FILES)
def test_spark_knows_every_setting_and_takes_its_value(spark, name):
    jvm = spark._jvm
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    for known in ("deploy.k8s.Config$", "internal.config.UI$", "sql.delta.sources.DeltaSQLConf$"):
        jvm.java.lang.Class.forName(f"org.apache.spark.{known}", True, loader)
    entries = jvm.org.apache.spark.internal.config.ConfigEntry
    s3a = jvm.java.lang.Class.forName("org.apache.hadoop.fs.s3a.Constants", True, loader)
    hadoop = {field.get(None) for field in s3a.getFields()}
    for key, value in settings(name).items():
        if key.startswith(HADOOP) and not FREE.fullmatch(key):
            assert key.removeprefix(HADOOP) in hadoop, key
        elif not FREE.fullmatch(key):
            entry = entries.findEntry(key)
            assert entry is not None, key
            entry.valueConverter().apply(value)


def test_the_local_file_is_what_a_session_gets(spark):
    assert settings("spark-defaults.conf") == default_settings()
    for key, value in default_settings().items():
        if not key.startswith("spark.jars"):
            assert spark.conf.get(key) == value
    assert (
        settings("databricks.conf").items()
        <= {
            **default_settings(),
            "spark.databricks.delta.autoCompact.enabled": "false",
            "spark.databricks.delta.optimizeWrite.enabled": "false",
        }.items()
    )


def test_only_errors_are_logged(spark):
    manager = spark._jvm.org.apache.logging.log4j.LogManager
    assert manager.getRootLogger().getLevel().toString() == "ERROR"
    gateway = manager.getLogger("org.apache.spark.api.python.PythonGatewayServer")
    assert gateway.getLevel().toString() == "ERROR"
    configuration = manager.getContext(False).getConfiguration()
    assert configuration.getAppenders().containsKey("console")


TOGETHER = (
    r"spark\.sql\.(extensions|catalog\.spark_catalog)",
    r"spark\.jars\.(packages|excludes)",
    r"spark\.(sql\.shuffle\.partitions|databricks\.delta\.snapshotPartitions"
    r"|sql\.sources\.parallelPartitionDiscovery\.parallelism)",
    r"spark\.(executor|driver)\.memory(Overhead)?",
    r"spark\.kubernetes\.(driver|executor)\.secretKeyRef\.\w+",
    r"spark\.databricks\.delta\.(autoCompact|optimizeWrite)\.enabled",
    r"spark\.hadoop\.fs\.s3a\.(input\.stream\.type|experimental\.input\.fadvise)",
    r"spark\.hadoop\.fs\.s3a\.(attempts\.maximum|retry\.limit)",
)
"""Settings that have one reason."""


@pytest.mark.parametrize("name", FILES)
def test_a_comment_says_why_a_setting_is_there(name):
    """In the line before it, or before one that it belongs to."""
    before = ""
    for line in (Path(str(CONF)) / name).read_text().splitlines():
        key = line.partition(" ")[0]
        if key and key != "#" and not line.startswith("#"):
            kin = any(re.fullmatch(k, key) and re.fullmatch(k, before) for k in TOGETHER)
            assert before.startswith("#") or kin, f"{key} has no reason"
        before = key


def test_no_file_has_a_secret():
    for path in Path(str(CONF)).rglob("*.*"):
        for line in path.read_text().splitlines():
            assert line.startswith("#") or not re.search(
                r"(secret|password)\S*\s+(?!lake:)\S", line
            ), line
