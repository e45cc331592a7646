"""Versions on a real S3 server: history, restore and tags need nothing that only a disk has."""

import uuid

import numpy as np
import pytest

import tensorlake_spark as tl


def test_versions_on_s3(s3):
    url = f"s3://bucket/{uuid.uuid4()}/lake"
    lake = tl.open(url, storage_options=s3.options)
    x = np.arange(60.0).reshape(6, 10)
    first = lake.write("x", x).version
    lake.write("y", x)
    gone = lake.write("x", x + 1, mode="overwrite").version
    lake.optimize()
    lake.delete("x")
    assert lake.tag("paper", first) == first
    assert [*lake.history("x")["operation"]] == ["delete", "write", "write"]
    assert [*lake.history()["version"]] == [*range(lake.version, -1, -1)]
    np.testing.assert_array_equal(lake.restore("x", "paper")[...], x)
    np.testing.assert_array_equal(lake["y"][...], x)
    lake.write("x", x, mode="append")
    assert lake.vacuum(0)
    old = tl.open(url, storage_options=s3.options, version="paper")
    np.testing.assert_array_equal(old["x"][2:4], x[2:4])
    np.testing.assert_array_equal(lake["x"][4:8], np.concatenate([x, x])[4:8])
    with pytest.raises(tl.MissingDataError, match=f"version {gone} .* tag"):
        lake.restore("x", gone)
    lake.untag("paper")
    assert lake.tags() == {}
