"""The purge as a job: its receipt outlasts whatever goes wrong with the file, and it may run twice."""

import json
import resource
from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.jobs import purge

pytestmark = pytest.mark.local_disk


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 2**31, (12, 400)).astype("i4")


@pytest.fixture
def words(lake, x):
    lake.write("x", x, block_shape=(1, 400), codec="raw")
    lake.write("y", x + 1, block_shape=(1, 400), codec="raw")
    return ("--table", lake.uri, "--id", "x", "--now")


def test_the_receipt_is_signed_and_kept(lake, words, run_job, tmp_path):
    (tmp_path / "key").write_bytes(b"secret")
    done = run_job(purge, *words, "--receipt", tmp_path / "r.json", "--key-file", tmp_path / "key")
    assert (done.code, done.json["status"]) == (0, "verified")
    receipt = tl.verify_receipt((tmp_path / "r.json").read_text(), key=b"secret")
    assert len(receipt.deleted) == 1
    assert json.loads((tmp_path / "r.json").read_text()) == done.json["receipt"]


def test_it_may_run_twice_but_not_with_a_name_that_never_was(words, run_job):
    assert run_job(purge, *words).code == 0
    again = run_job(purge, *words)
    assert (again.code, again.json["status"]) == (0, "verified")
    assert again.json["receipt"]["receipt"]["deleted"] == []
    wrong = run_job(purge, *words[:3], "yy", "--now")
    assert (wrong.code, wrong.json["error"]["type"]) == (2, "TensorNotFoundError")
    assert "did you mean 'y'?" in wrong.err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            ("--receipt", "nowhere/r.json"),
            "nowhere/r.json cannot be written, and nothing was purged",
        ),
        (("--receipt", "."), "is there already"),
        (("--receipt", "taken"), "taken is there already; name another file"),
        (("--receipt", "link"), "link is there already"),
        (("--key-file", "empty"), "empty is empty, so anybody could sign with it"),
        (("--key-file", "gone"), "gone cannot be read"),
    ],
)
def test_what_will_not_do_is_told_before_anything_is_purged(
    lake, x, words, run_job, tmp_path, given, says
):
    (tmp_path / "taken").write_text("a receipt")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    (tmp_path / "empty").touch()
    before, there = lake.version, sorted(tmp_path.iterdir())
    done = run_job(purge, *words, given[0], tmp_path / given[1])
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert tl.open(lake.uri).version == before
    np.testing.assert_array_equal(lake["x"][...], x)
    assert (tmp_path / "taken").read_text() == "a receipt"
    assert sorted(tmp_path.iterdir()) == there


def test_a_purge_that_fails_leaves_no_receipt(lake, words, run_job, tmp_path):
    done = run_job(purge, *words, "--region", "99", "--receipt", tmp_path / "r.json")
    assert done.code == 2
    assert not (tmp_path / "r.json").exists()


def test_a_receipt_that_cannot_be_written_is_in_the_output(
    lake, words, run_job, tmp_path, monkeypatch
):
    """The disk is full when the purge is over."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    real = tl.TensorLake.purge

    def full(self, *arguments, **options):
        receipt = real(self, *arguments, **options)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        return receipt

    monkeypatch.setattr(tl.TensorLake, "purge", full)
    try:
        done = run_job(purge, *words, "--receipt", tmp_path / "r.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (done.code, done.json["status"]) == (1, "verified")
    assert "r.json cannot be written: File too large" in done.err
    assert done.json["error"]["message"] in done.err
    receipt = tl.verify_receipt(json.dumps(done.json["receipt"]))
    assert receipt.verified
    assert len(receipt.deleted[0].sha256) == 64
    assert not (tmp_path / "r.json").exists()
    assert list(Path(lake.uri).glob("*.parquet"))
