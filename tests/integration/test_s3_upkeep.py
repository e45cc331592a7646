"""Check and purge against a real S3 server."""

import uuid

import numpy as np
import pyarrow.fs as pafs
import pytest
from stored import forget

import tensorlake_spark as tl


@pytest.fixture
def url():
    """A place in the bucket that no other test uses."""
    return f"s3://bucket/{uuid.uuid4()}/a lake"


@pytest.fixture
def lake(s3, url):
    return tl.open(url, storage_options=s3.options)


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 2**31, (12, 400)).astype("i4")


def files(s3, url):
    """Return the path and the bytes of everything in a table's folder."""
    filesystem = s3.filesystem()
    selector = pafs.FileSelector(url.removeprefix("s3://"), recursive=True)
    out = {}
    for info in filesystem.get_file_info(selector):
        if info.is_file:
            with filesystem.open_input_file(info.path) as file:
                out[info.path] = file.read()
    return out


def put(s3, path, data):
    with s3.filesystem().open_output_stream(path) as file:
        file.write(bytes(data))


def test_a_check_finds_a_damaged_row_an_orphan_and_a_missing_file(s3, lake, url, x):
    lake.write("x", x, block_shape=(1, 400), codec="raw")
    lake.write("y", x, block_shape=(1, 400), codec="raw")
    report = lake.check()
    assert report.findings == (), str(report)
    assert (report.files, report.rows, report.tensors) == (2, 26, 2)
    data = {path: whole for path, whole in files(s3, url).items() if path.endswith(".parquet")}
    (first, whole), (second, _) = sorted(data.items())
    damaged = bytearray(whole)
    damaged[whole.find(x[7].tobytes()) + 5] ^= 1
    put(s3, first, damaged)
    put(s3, f"{url.removeprefix('s3://')}/part-orphan.parquet", whole)
    s3.filesystem().delete_file(second)
    forget()
    report = lake.check(repair=True)
    assert sorted((f.kind, f.repaired) for f in report.findings) == [
        ("missing", False),
        ("orphan", False),
        ("row", False),
    ]
    assert "box [7:8, 0:400]" in report.findings[0].place + report.findings[1].place
    assert s3.options["AWS_SECRET_ACCESS_KEY"] not in str(report)


def test_a_purge_leaves_no_byte_in_the_bucket(s3, lake, url, x):
    for name, sign in (("a", 1), ("b", -1)):
        lake.write(name, x * sign, block_shape=(1, 400), codec="raw")
    lake.optimize()
    needles = [row.tobytes()[100:180] for row in x]
    pending = lake.purge("a")
    assert not pending.verified
    assert len(pending.pending) == 2
    assert list(lake) == ["b"]
    receipt = lake.purge("a", now=True)
    assert receipt.verified, receipt.reason
    assert {file.path for file in receipt.deleted} == {file.path for file in pending.pending}
    left = files(s3, url)
    assert not any(needle in data for needle in needles for data in left.values())
    forget()
    np.testing.assert_array_equal(lake["b"][:], -x)
    assert lake.purge("b", "3, 10:20", now=True).verified
    x[3, 10:20] = 0
    np.testing.assert_array_equal(lake["b"][:], -x)
    assert lake.check().ok
    text = receipt.to_json(key=b"k")
    assert tl.verify_receipt(text, key=b"k") == receipt
    assert s3.options["AWS_SECRET_ACCESS_KEY"] not in text


def test_a_lake_in_a_folder_of_another_is_left_alone(s3, lake, url, x):
    inner = tl.open(f"{url}/another lake", storage_options=s3.options)
    for one in (lake, inner):
        one.write("a", x, block_shape=(1, 400), codec="raw")
        one.write("a", x + 1, mode="overwrite", block_shape=(1, 400), codec="raw")
    before = files(s3, inner.uri)
    place = url.removeprefix("s3://")
    with s3.filesystem().open_output_stream(f"{place}/another lake/part-a") as sink:
        sink.write(b"a" * (11 << 20))  # a writer of the inner lake is at work
        assert lake.abort_uploads(0) == []
        assert inner.abort_uploads(0, dry_run=True) == ["part-a"]
    s3.filesystem().delete_file(f"{place}/another lake/part-a")
    assert lake.check().findings == ()
    assert len(lake.vacuum(0, dry_run=True)) == len(lake.vacuum(0)) == 1
    receipt = lake.purge("a", now=True)
    assert receipt.verified, receipt.reason
    assert len(receipt.deleted) == 1
    assert files(s3, inner.uri) == before
    np.testing.assert_array_equal(inner["a"][:], x + 1)
