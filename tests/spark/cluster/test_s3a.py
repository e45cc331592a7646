"""Who may commit to a table by delta-spark: what `check_log_store` says of local paths."""

import warnings

import pytest

from tensorlake_spark.spark import check_log_store

NAME = "spark.delta.logStore.file.impl"


@pytest.mark.parametrize("uri", ["/data/lake", "data/lake", "file:///data/lake"])
def test_a_local_path_is_for_one_process_at_a_time(spark, uri):
    with pytest.warns(UserWarning, match="locks out the threads of its own JVM only") as caught:
        check_log_store(spark, uri)
    (warning,) = caught
    assert f"a commit of delta-spark to {uri} may be lost" in str(warning.message)
    assert "let one process at a time run delta-spark's commands there" in str(warning.message)
    assert warning.filename == __file__


def test_a_log_store_of_the_users_own_is_trusted(spark):
    conf = spark.sparkContext._conf
    conf.set(NAME, "org.example.LockingLogStore")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_log_store(spark, "/data/lake")
    finally:
        conf._jconf.remove(NAME)
