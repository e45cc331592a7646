"""Two names for one store: what deltalake calls ``storage_options``, and Hadoop ``fs.s3a.*``.

And the one thing in which the two clients must not be mixed: who commits (`check_log_store`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tensorlake_spark.delta.store.store_options import (
    ENDPOINT,
    KEY,
    REGION,
    SECRET,
    TOKEN,
    UNSIGNED,
    as_text,
    get,
    get_or_env,
    is_true,
)
from tensorlake_spark.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIXES = ("spark.hadoop.fs.s3a.", "fs.s3a.")  # the later one wins, as in Spark
_SIGNING = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
}
_SECRET = (*_SIGNING, "encryption.key", "proxy.password")
_PROVIDER = "aws.credentials.provider"
_AUTH = "org.apache.hadoop.fs.s3a."
_CENTRAL = "s3.amazonaws.com"  # Hadoop's word for "the one of the region"

_SAFE_LOG_STORE = "io.delta.storage.S3DynamoDBLogStore"
_LOCAL_LOG_STORE = "io.delta.storage.LocalLogStore"  # Delta's own, if none is set

_SCHEMES = ("s3", "s3a", "s3n")

# Options that go together: where a user gives one of them, none is taken from elsewhere.
_GROUPS = (
    ("access_key_id", "secret_access_key", "session_token", "token", "skip_signature", "profile"),
    ("endpoint_url_s3", "endpoint_url", "endpoint", "allow_http"),
    ("region", "default_region"),
)


def settings_of(conf: Mapping[str, str]) -> dict[str, str]:
    """Return what Spark's settings say of S3A, by the names after ``fs.s3a.``.

    Examples
    --------
    >>> settings_of({"spark.hadoop.fs.s3a.endpoint": "http://h:9", "spark.app.name": "a"})
    {'endpoint': 'http://h:9'}
    """
    out: dict[str, str] = {}
    for prefix in _PREFIXES:
        out |= {k[len(prefix) :]: v for k, v in conf.items() if k.startswith(prefix)}
    return out


def is_secret(name: str) -> bool:
    """Whether a setting of Spark's is a credential of S3A, of all buckets or of one.

    Examples
    --------
    >>> is_secret("spark.hadoop.fs.s3a.bucket.b.secret.key"), is_secret("fs.s3a.endpoint")
    (True, False)
    """
    return name.startswith(_PREFIXES) and name.endswith(_SECRET)


def settings_of_session(session: SparkSession) -> dict[str, str]:
    """Return what a session's settings say of S3A; see `settings_of`."""
    return settings_of(session.conf.getAll)


def settings_of_submit() -> dict[str, str]:
    """Return what ``spark-submit --conf`` and its files say of S3A, without a session; empty elsewhere."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # connects to the JVM that spark-submit started
    return settings_of(dict(SparkConf().getAll()))


def check_log_store(session: SparkSession, uri: str) -> None:
    """Raise an error unless delta-spark may commit to a table while others do; warn where only one process may.

    Call it before ``df.write.format("delta")``, ``DeltaTable`` or SQL changes a table. You do not need it for
    commits of ``format("tensor")``, of the jobs and of `tensorlake_spark.open`, because these are not delta-spark's.
    Nor do you need it on platforms with a commit service of their own, such as Databricks.

    What it does depends on where the table lies:

    - S3: raises unless the session has a log store whose sessions commit safely there. With it, warns: deltalake
      does not ask the lock of this log store, so commits of this package are not safe beside its.
    - A local path: warns. Delta's log store looks whether a version is there and then renames over it, under a
      lock of its own JVM. Two processes can therefore commit one version, and the earlier commit is lost. No
      setting of Delta changes that, so let one process at a time run delta-spark's own commands there.
    - HDFS, and other stores: nothing.

    Parameters
    ----------
    session : SparkSession
        The session that commits. Its log store is the one with which it was started: Delta ignores
        ``spark.conf.set``.
    uri : str
        The table, as you give it to Spark: the log store goes by the scheme. A path without one lies where
        Hadoop's ``fs.defaultFS`` says.

    Raises
    ------
    UnsupportedFeatureError
        If the session's log store loses commits on S3. The message names the setting.

    Warns
    -----
    UserWarning
        If the table lies on a local disk and Delta's own log store commits there; on S3, if the log store is safe
        beside its like alone.

    Examples
    --------
    ::

        check_log_store(spark, "s3a://bucket/lake")
        tf.metadata_rows(found).write.format("delta").mode("append").save("s3a://bucket/lake")
    """
    # Late: other functions of this module are for processes without pyspark.
    from tensorlake_spark.spark.cluster.arguments import PATH, SESSION, check_argument

    check_argument("check_log_store", "session", session, SESSION)
    check_argument("check_log_store", "uri", uri, PATH)
    parts = urlsplit(os.fspath(uri))
    scheme = parts.scheme.lower() or _default_scheme(session)
    if scheme == "file":
        if _started_with(session, "spark.delta.logStore.file.impl") in (None, _LOCAL_LOG_STORE):
            warnings.warn(
                f"a commit of delta-spark to {uri} may be lost if another process commits there at the same time: "
                "Delta's log store for local paths locks out the threads of its own JVM only; let one process at a "
                "time run delta-spark's commands there, or write with format('tensor'), whose commits are safe",
                UserWarning,
                stacklevel=2,
            )
        return
    if scheme not in ("s3", "s3a", "s3n"):
        return
    name = f"spark.delta.logStore.{scheme}.impl"
    found = _started_with(session, name)
    place = f"{scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    if found != _SAFE_LOG_STORE:
        what = "Delta's own log store" if found is None else f"the log store {found}"
        raise UnsupportedFeatureError(
            f"a commit of delta-spark to {place} may be lost: {what} for {scheme}:// lets two writers write one "
            f"version, and tells both that it went well; start the session with {name}={_SAFE_LOG_STORE} (package "
            "io.delta:delta-storage-s3-dynamodb), and let nothing but such sessions commit meanwhile; or write with "
            "format('tensor'), whose commits are safe without"
        )
    warnings.warn(
        f"a commit of delta-spark to {place} may replace one that format('tensor'), a job or tl.open makes at the same "
        f"time: {_SAFE_LOG_STORE} asks a lock that deltalake does not; let only sessions with this log store commit "
        "meanwhile, or write with format('tensor')",
        UserWarning,
        stacklevel=2,
    )


def _started_with(session: SparkSession, name: str) -> str | None:
    """Return a setting as the session was started with it, None if it has none."""
    if hasattr(session, "sparkContext"):
        found: str | None = session.sparkContext.getConf().get(name)
        return found
    return session.conf.get(name, None)  # of Spark Connect


def _default_scheme(session: SparkSession) -> str:
    """Return where a path without a scheme lies, by Hadoop's settings."""
    if hasattr(session, "sparkContext"):
        place = session.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS")
    else:
        place = session.conf.get("spark.hadoop.fs.defaultFS", None)
    return urlsplit(place or "file:///").scheme.lower()


def completed(options: Mapping[str, str], settings: Mapping[str, str], uri: str) -> dict[str, str]:
    """Return the options of a store, and what they leave open as Hadoop's settings have it.

    Parameters
    ----------
    options : mapping of str to str
        As in `tensorlake_spark.open`; they win. A key goes with its secret, an endpoint with its scheme.
    settings : mapping of str to str
        From `settings_of`.
    uri : str
        What lies there; only ``s3://`` and Hadoop's names of it have such settings.

    Examples
    --------
    >>> completed({"AWS_REGION": "eu"}, {"endpoint.region": "us", "access.key": "k"}, "s3://b/x")
    {'AWS_ACCESS_KEY_ID': 'k', 'AWS_REGION': 'eu'}
    """
    parts = urlsplit(uri)
    if parts.scheme not in _SCHEMES:
        return dict(options)
    own = f"bucket.{parts.netloc}."
    here = {k: v for k, v in settings.items() if not k.startswith("bucket.")}
    here |= {k[len(own) :]: v for k, v in settings.items() if k.startswith(own)}
    given = {name.lower().removeprefix("aws_") for name in options}
    taken = {name for group in _GROUPS if given & {*group} for name in group}
    found = _from_hadoop(here)
    kept = {k: v for k, v in found.items() if k.lower().removeprefix("aws_") not in taken}
    return {**kept, **options}


def options_in_session(
    session: SparkSession, options: Mapping[str, str] | None, uri: str
) -> dict[str, str]:
    """Return the options of a store, and what they leave open as a session's settings have it; see `completed`.

    The settings are asked for only where they matter: to fetch all of them takes longer than to plan a query.
    """
    if urlsplit(uri).scheme not in _SCHEMES:
        return dict(options or {})
    return completed(options or {}, settings_of_session(session), uri)


def _from_hadoop(settings: Mapping[str, str]) -> dict[str, str]:
    out = {name: settings[key] for key, name in _SIGNING.items() if settings.get(key)}
    if "Anonymous" in settings.get(_PROVIDER, ""):
        out = {"AWS_SKIP_SIGNATURE": "true"}
    endpoint = settings.get("endpoint", "")
    if endpoint and urlsplit(f"//{endpoint.partition('://')[2] or endpoint}").hostname != _CENTRAL:
        if "://" not in endpoint:
            secure = settings.get("connection.ssl.enabled", "true").lower() == "true"
            endpoint = f"{'https' if secure else 'http'}://{endpoint}"
        out["AWS_ENDPOINT_URL"] = endpoint
        if endpoint.startswith("http://"):
            out["AWS_ALLOW_HTTP"] = "true"
    if settings.get("endpoint.region"):
        out["AWS_REGION"] = settings["endpoint.region"]
    return out


def to_hadoop(options: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings for the options of a store, with those of the environment where they say nothing.

    Examples
    --------
    >>> found = to_hadoop({"AWS_ENDPOINT_URL": "http://h:9", "AWS_REGION": "us-east-1"})
    >>> found["fs.s3a.endpoint"], found["fs.s3a.endpoint.region"], found["fs.s3a.path.style.access"]
    ('http://h:9', 'us-east-1', 'true')
    """
    options = as_text(options)
    out: dict[str, str | None] = {
        "endpoint": get_or_env(options, ENDPOINT),
        "endpoint.region": get_or_env(options, REGION),
    }
    if out["endpoint"]:  # a server of one's own has seldom a host name for each bucket
        out["path.style.access"] = "true"
    if is_true(options, UNSIGNED):
        out[_PROVIDER] = f"{_AUTH}AnonymousAWSCredentialsProvider"
    elif get(options, KEY):  # those of the environment S3A finds by itself
        token = get(options, TOKEN)
        out |= {
            "access.key": get(options, KEY),
            "secret.key": get(options, SECRET),
            "session.token": token,
            _PROVIDER: f"{_AUTH}{'Temporary' if token else 'Simple'}AWSCredentialsProvider",
        }
    return {f"fs.s3a.{name}": value for name, value in out.items() if value}
