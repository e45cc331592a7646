"""The purge as a job: its receipt outlasts whatever goes wrong with the file, and it may run twice."""

import json
import os
import resource
import subprocess
import sys
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
        (("--coords", "empty"), "empty is not a .npy file of integers: EOF"),
        (("--coords", "taken"), "taken is not a .npy file of integers: the magic string"),
        (("--coords", "torn"), "torn is not a .npy file of integers: "),
        (("--coords", "huge"), "huge is not a .npy file of integers: Unable to allocate"),
    ],
)
def test_what_will_not_do_is_told_before_anything_is_purged(
    lake, x, words, run_job, tmp_path, given, says
):
    (tmp_path / "taken").write_text("a receipt")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    (tmp_path / "empty").touch()
    for name, head in (("torn", "{'descr': ['<i8', "), ("huge", "{'descr': '<i8', ")):
        text = f"{head}'fortran_order': False, 'shape': (2, {10**14})}}".ljust(117) + "\n"
        (tmp_path / name).write_bytes(b"\x93NUMPY\x01\x00v\x00" + text.encode())
    before, there = lake.version, sorted(tmp_path.iterdir())
    done = run_job(purge, *words, given[0], tmp_path / given[1])
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert tl.open(lake.uri).version == before
    np.testing.assert_array_equal(lake["x"][...], x)
    assert (tmp_path / "taken").read_text() == "a receipt"
    assert sorted(tmp_path.iterdir()) == there


@pytest.mark.parametrize(
    ("given", "says"),
    [
        # A variable of a script that is not set names no part, and must not mean all of the tensor.
        (("--region", ""), "region is an empty text; name a part"),
        (("--region", "  "), "region is an empty text; name a part"),
        # The last of two would be purged, and the first would stay without a word.
        (("--id", "y"), "argument --id is given twice"),
        (("--region", "1", "--region", "2"), "argument --region is given twice"),
        (("--receipt", ""), "--receipt  cannot be written"),
        (("--key-file", ""), "--key-file  cannot be read"),
        (("--coords", ""), "--coords  cannot be read"),
        # As a configuration may have it: "\0".
        (("--receipt", "r\0"), "cannot be written, and nothing was purged: embedded null byte"),
        (("--key-file", "k\0"), "cannot be read: embedded null byte"),
        (("--coords", "c\0"), "cannot be read: embedded null byte"),
    ],
)
def test_no_mistake_purges_more_or_less_than_was_meant(lake, x, words, run_job, given, says):
    before = lake.version
    done = run_job(purge, *words, *given)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert tl.open(lake.uri).version == before
    np.testing.assert_array_equal(lake["x"][...], x)


def test_a_region_is_purged_and_the_rest_stays(lake, x, words, run_job):
    done = run_job(purge, *words, "--region", "3:5, :100")
    assert (done.code, done.json["status"]) == (0, "verified"), done.err
    want = x.copy()
    want[3:5, :100] = 0
    np.testing.assert_array_equal(lake["x"][...], want)
    np.testing.assert_array_equal(lake["y"][...], x + 1)
    told = done.json["receipt"]["receipt"]
    assert (told["region"], len(told["deleted"]), len(told["written"])) == ("3:5, :100", 1, 1)


def test_elements_are_purged_by_their_coordinates(lake, run_job, tmp_path):
    s = tl.SparseTensor.from_dense(np.arange(60.0).reshape(6, 10) % 7)
    lake.write("s", s, layout="bsgs", block_shape=(2, 10))
    gone = s.coords[:, 5:9]
    words = ("--table", lake.uri, "--id", "s", "--now", "--coords")
    for name, array, says in (
        ("flat.npy", gone[0], "has shape (4,) and dtype int64; it should hold integers, a row for"),
        ("text.npy", None, "is not a .npy file"),
    ):
        if array is None:
            (tmp_path / name).write_text("1 2")
        else:
            np.save(tmp_path / name, array)
        refused = run_job(purge, *words, tmp_path / name)
        assert (refused.code, lake["s"].nnz) == (2, s.nnz)
        assert says in refused.err
    np.save(tmp_path / "gone.npy", gone)
    done = run_job(purge, *words, tmp_path / "gone.npy")
    assert (done.code, done.json["status"]) == (0, "verified"), done.err
    want = s.todense()
    want[tuple(gone)] = 0
    np.testing.assert_array_equal(lake["s"][...].todense(), want)


def test_a_dry_run_tells_what_would_go(lake, x, words, run_job):
    before, there = lake.version, sorted(Path(lake.uri).glob("*.parquet"))
    done = run_job(purge, *words, "--dry-run")
    assert (done.code, done.json["status"]) == (0, "planned")
    told = done.json["receipt"]["receipt"]
    assert (told["dry_run"], len(told["deleted"]), told["written"]) == (True, 1, [])
    assert "dry run: purge of tensor 'x'" in done.out
    assert sorted(Path(lake.uri).glob("*.parquet")) == there
    assert tl.open(lake.uri).version == before
    np.testing.assert_array_equal(lake["x"][...], x)


def test_what_the_retention_keeps_is_told_by_the_exit_code(lake, words, run_job):
    done = run_job(purge, *words[:4])
    assert (done.code, done.json["exit_code"], done.json["status"]) == (3, 3, "unverified")
    told = done.json["receipt"]["receipt"]
    assert (len(told["pending"]), told["deleted"]) == (1, [])
    assert "1 files are kept by the retention" in told["reason"]
    assert f"pending until {told['pending'][0]['due']}" in done.out
    assert "x" not in tl.open(lake.uri)
    assert run_job(purge, *words).json["status"] == "verified"


def test_a_configuration_and_the_command_line_wins(lake, x, run_job, tmp_path):
    lake.write("x", x, block_shape=(1, 400), axes=("user", "film"), codec="raw")
    text = f"table: {lake.uri}\nid: x\nregion: user=4\nnow: true\nreceipt: {tmp_path}/r.json\n"
    (tmp_path / "job.yaml").write_text(text)
    done = run_job(purge, "--config", tmp_path / "job.yaml", "--region", "user=7")
    assert (done.code, done.json["status"]) == (0, "verified"), done.err
    assert tl.verify_receipt((tmp_path / "r.json").read_text()).region == "7, :"
    assert np.flatnonzero(~lake["x"][...].any(1)).tolist() == [7]
    (tmp_path / "job.yaml").write_text(text + "retention: 5\n")
    wrong = run_job(purge, "--config", tmp_path / "job.yaml")
    assert wrong.code == 2
    assert "unknown key 'retention'" in wrong.err


def test_a_purge_that_fails_leaves_no_receipt(lake, words, run_job, tmp_path):
    done = run_job(purge, *words, "--region", "99", "--receipt", tmp_path / "r.json")
    assert done.code == 2
    assert not (tmp_path / "r.json").exists()


def test_the_receipt_is_kept_where_nobody_takes_the_output(words, tmp_path):
    there, here = os.pipe()
    os.close(there)  # as behind "| head"
    kept = tmp_path / "r.json"
    command = [
        sys.executable,
        "-u",
        "-m",
        "tensorlake_spark",
        "purge",
        *words[1:],
        "--receipt",
        kept,
    ]
    done = subprocess.run(command, stdout=here, stderr=subprocess.PIPE, text=True)
    os.close(here)
    assert done.returncode == 1
    told = json.loads(done.stderr.splitlines()[-1].partition("its last line: ")[2])["receipt"]
    assert told == json.loads(kept.read_text())
    assert tl.verify_receipt(kept.read_text()).deleted


def test_a_receipt_that_cannot_be_written_is_in_the_output(
    lake, words, run_job, tmp_path, monkeypatch
):
    """The disk is full when the purge is over."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    real = purge.purge

    def full(*arguments):
        receipt = real(*arguments)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        return receipt

    monkeypatch.setattr(purge, "purge", full)
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
