"""What goes wrong on the way to a real S3 server: the right answer, or an error of ours after a bounded number of tries.

Afterwards, with the fault gone, everything that was committed reads back. No credential is ever shown.
"""

import logging
import re
import subprocess
import sys
import textwrap
import time
import traceback
import uuid

import numpy as np
import pyarrow.fs as pafs
import pytest
from examples import mostly
from s3faults import PATIENCE, TOKEN, S3Road
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

MOST = 200
"""Requests of a call that fails, twice as many as are usual; each has the time-out of `PATIENCE`."""

DATA, HEAD, LOG, LIST = "^GET .*part-", "^HEAD .*part-", "^GET .*_delta_log/0", "list-type"
WHOLE, COMMIT = "^PUT .*part-[^?]*$", "^PUT .*_delta_log/0"
PART, BEGIN, END = "^PUT .*part-.*partNumber", "^POST .*part-.*uploads", "^POST .*part-.*uploadId"
"""Of a file that is sent in parts."""

SENT = "^(PUT|POST)"

PASSING = ("fail", "slow down", "reset", "short", "silent")  # a repeat mends it
FINAL = ("refuse", "expired", "expired, 403")


@pytest.fixture(scope="module")
def road(s3):
    """One road for all tests here."""
    with S3Road(s3.port) as road:
        yield road


@pytest.fixture
def url():
    """A place in the bucket that no other test uses."""
    return f"s3://bucket/{uuid.uuid4()}/a lake"


@pytest.fixture
def far(road, s3):
    """Options for those who take the road, and who soon give up."""
    return {**s3.options, "AWS_ENDPOINT_URL": road.endpoint, **PATIENCE}


@pytest.fixture
def lake(s3, url):
    return tl.open(url, storage_options=s3.options)


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).integers(0, 1000, (24, 30, 8)).astype("i4")


@pytest.fixture(scope="module")
def big():
    """An upload of three parts."""
    return np.random.default_rng(1).integers(0, 256, (28, 1 << 20), np.uint8)


@pytest.fixture(scope="module")
def there(s3, x):
    """A table in two commits that is only read."""
    url = f"s3://bucket/{uuid.uuid4()}/there"
    lake = tl.open(url, storage_options=s3.options)
    lake.write("x", x[:12], block_shape=(3, 30, 8))
    lake.write("x", x[12:], mode="append")
    return url


class Told(list):
    """What a user sees of errors, the `road` on which they come about, and the `log`."""

    road: S3Road
    log: pytest.LogCaptureFixture


@pytest.fixture(autouse=True)
def told(road, s3, caplog, capfd):
    """Collects what a user sees of errors; none of it, of any log or of the output, may have a credential."""
    caplog.set_level(logging.DEBUG)
    out = Told()
    out.road, out.log = road, caplog
    forget()
    yield out
    road.fault("")
    records = caplog.get_records(
        "call"
    )  # those of `caplog.records` are of the end of the test only
    logged = [record.getMessage() for record in records]
    everything = "".join([*out, *logged, *map(repr, records), *capfd.readouterr()])
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        assert s3.options[name] not in everything
    assert TOKEN not in everything


def failing(told, call, kind=tl.StorageError):
    """Return the text of the error that a call raises after few requests."""
    told.road.requests()
    with pytest.raises(kind) as caught:
        call()
    asked = told.road.requests()
    assert len(asked) <= MOST, asked
    told.append("".join(traceback.format_exception(caught.value)) + repr(caught.value))
    return str(caught.value)


def objects(s3, url):
    found = s3.filesystem().get_file_info(pafs.FileSelector(url.removeprefix("s3://")))
    return {info.base_name for info in found if info.is_file}


KEYS = {"slice": np.s_[3:14, ::2, 5], "whole": np.s_[...]}
WAYS = [("slice", DATA), ("whole", DATA), ("slice", HEAD), ("slice", LOG), ("slice", LIST)]

CROSS = [(verdict, *way) for verdict in PASSING for way in WAYS]
SOME = [case for case in CROSS if case[0] == "fail" or case[1:] == WAYS[0]]


@pytest.mark.parametrize(("verdict", "what", "where"), mostly(CROSS, SOME))
def test_a_fault_that_passes_is_not_noticed(road, there, far, x, verdict, what, where):
    road.fault(verdict, where, times=1)
    ref = tl.open(there, storage_options=far)["x"]
    np.testing.assert_array_equal(ref[KEYS[what]], x[KEYS[what]])


@pytest.mark.parametrize(("what", "where"), [WAYS[0], WAYS[3]])
@pytest.mark.parametrize("verdict", [*PASSING, *FINAL])
def test_a_fault_that_stays_is_an_error_in_time(road, there, far, x, told, verdict, what, where):
    road.fault(verdict, where)
    said = failing(told, lambda: tl.open(there, storage_options=far)["x"][KEYS[what]])
    assert there in said
    if verdict.startswith("expired") and where == LOG:
        assert "ExpiredToken" in said
        assert "new ones" in said
    road.fault("")
    ref = tl.open(there, storage_options=far)["x"]
    np.testing.assert_array_equal(ref[...], x)


@pytest.mark.parametrize("verdict", ["fail", "silent", "refuse"])
def test_a_whole_read_ends_too(road, there, far, x, told, verdict):
    ref = tl.open(there, storage_options=far)["x"]
    road.fault(verdict, DATA, after=1)
    failing(told, lambda: ref[...])
    road.fault("")
    np.testing.assert_array_equal(ref[...], x)


@pytest.mark.parametrize("where", [DATA, LOG, LIST])
def test_a_body_that_says_half_is_all_is_not_taken_for_it(road, there, far, x, told, where):
    """An error, or the right answer where it is not needed."""
    road.fault("trimmed", where)
    try:
        found = tl.open(there, storage_options=far)["x"][...]
    except tl.TensorLakeError as error:
        told.append("".join(traceback.format_exception(error)))
    else:
        np.testing.assert_array_equal(found, x)
    road.fault("")
    np.testing.assert_array_equal(tl.open(there, storage_options=far)["x"][...], x)


@pytest.mark.parametrize("where", [DATA, LOG])
def test_a_first_byte_may_be_slow_but_not_slower_than_the_time_out(
    road, there, far, x, told, where
):
    road.fault("late", where, wait=0.4)
    ref = tl.open(there, storage_options=far)["x"]
    np.testing.assert_array_equal(ref[KEYS["slice"]], x[KEYS["slice"]])
    forget()
    road.fault("late", where, wait=2.5)
    failing(told, lambda: tl.open(there, storage_options=far)["x"][KEYS["slice"]])


def test_a_store_that_nobody_answers_for(told, s3):
    """Nothing listens at the endpoint."""
    refused = {**s3.options, **PATIENCE, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    failing(told, lambda: tl.open("s3://bucket/lake", storage_options=refused))


def test_no_such_bucket(road, far, told, x):
    for call in (
        lambda: tl.open("s3://nobodys/lake", storage_options=far),
        lambda: tl.TensorLake(Storage("s3://nobodys/lake", far)).write("x", x),
    ):
        assert "NoSuchBucket" in failing(told, call)


def sent(where, x, big):
    """Return what has to be written for a request of this kind."""
    return big if where in (PART, BEGIN, END) else x[:5]


def settled(s3, url, keep, also=()):
    """Hold a table against what was committed: all that is named reads back, and nothing lies about."""
    forget()
    lake = tl.open(url, storage_options=s3.options)
    np.testing.assert_array_equal(lake["keep"][...], keep)
    for name, want in also:
        np.testing.assert_array_equal(lake[name][...], want)
    assert list(lake) == sorted(["keep", *(name for name, _ in also)])
    return objects(s3, url) == set(Snapshot.open(Storage(url, s3.options)).files.path)


MENDED = [
    *((verdict, where) for verdict in ("fail", "slow down", "drop") for where in (WHOLE, PART, COMMIT)),
    ("fail", BEGIN), ("silent", BEGIN), ("slow down", END), ("error", WHOLE), ("error", PART), ("error", COMMIT),
    ("silent", WHOLE), ("silent", COMMIT), ("reset", END), ("late", WHOLE), ("late", PART), ("late", COMMIT),
]  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "where"),
    mostly(
        MENDED,
        [
            ("fail", PART), ("drop", WHOLE), ("drop", COMMIT), ("silent", BEGIN), ("slow down", END),
            ("error", WHOLE), ("error", COMMIT), ("silent", COMMIT), ("late", WHOLE),
        ],
    ),
)  # fmt: skip
def test_a_write_outlives_a_fault_that_passes(road, s3, lake, url, far, x, big, verdict, where):
    lake.write("keep", x)
    writer = tl.open(url, storage_options=far)
    road.requests()
    road.fault(verdict, where, times=1, wait=0.4)
    more = sent(where, x, big)
    writer.write("x", more, codec="raw")
    assert any(re.search(where, line) for line in road.requests())
    assert settled(s3, url, x, [("x", more)])


def test_a_store_that_is_busy_for_a_while_is_asked_again(road, s3, lake, url, x):
    """The waits between the requests for a commit grow, as the options say."""
    lake.write("keep", x)
    waits = {"max_retries": "5", "backoff_config.init_backoff": "80ms"}
    writer = tl.open(
        url, storage_options={**s3.options, **waits, "AWS_ENDPOINT_URL": road.endpoint}
    )
    for verdict in ("slow down", "fail"):
        road.fault(verdict, COMMIT, times=4)
        road.requests()
        begun = time.monotonic()
        writer.write("x", x[:5], mode="overwrite")
        assert time.monotonic() - begun > 0.2 * (0.08 + 0.16 + 0.32 + 0.64)
        assert sum(1 for line in road.requests() if re.search(COMMIT, line)) == 5
    assert settled(s3, url, x, [("x", x[:5])]) is False  # one file was overwritten


@pytest.mark.parametrize("verdict", ["fail", "slow down", "drop", "error", "silent"])
def test_a_table_is_made_although_a_fault_passes(road, s3, url, far, verdict):
    writer = tl.open(url, storage_options={**far, "max_retries": "2"})
    road.fault(verdict, COMMIT, times=2)
    writer.write("keep", np.arange(3))
    assert writer.version == 1
    assert settled(s3, url, np.arange(3))


@pytest.mark.parametrize("verdict", ["refuse", "expired, 403"])
def test_a_checkpoint_that_is_refused_leaves_the_commit(road, s3, url, far, x, told, verdict):
    """It is logged, and the log shows no credential, see `told`."""
    writer = tl.open(url, storage_options=far)
    road.fault(verdict, "^(PUT|POST) .*checkpoint")
    for _ in range(10):
        writer.write("keep", x, mode="overwrite")
    assert "no checkpoint" in told.log.text
    assert settled(s3, url, x) is False  # the files of earlier versions are there
    assert writer.version == 10


LOST = [
    ("fail", PART), ("slow down", END), ("reset", BEGIN), ("silent", BEGIN), ("refuse", PART),
    ("fail", WHOLE), ("drop", WHOLE), ("silent", WHOLE), ("refuse", WHOLE), ("expired", WHOLE),
    ("expired", PART), ("fail", COMMIT), ("slow down", COMMIT), ("refuse", COMMIT), ("expired", COMMIT),
]  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "where"),
    mostly(
        LOST,
        [
            ("fail", WHOLE), ("drop", WHOLE), ("slow down", END), ("silent", BEGIN), ("expired", PART),
            ("fail", COMMIT), ("refuse", COMMIT),
        ],
    ),
)  # fmt: skip
def test_a_write_that_fails_leaves_the_table_as_it_was(
    road, s3, lake, url, far, x, big, told, verdict, where
):
    lake.write("keep", x)
    writer = tl.open(url, storage_options=far)
    road.fault(verdict, where)
    more = sent(where, x, big)
    said = failing(told, lambda: writer.write("x", more, codec="raw"))
    road.fault("")
    # A commit without an answer may be on its way, for all that is known, so its files wait for vacuum.
    stays = "may still be on its way" in said
    assert stays == (where == COMMIT and verdict in ("fail", "slow down"))
    assert settled(s3, url, x) != stays
    writer.write("x", x[:5])
    lake.vacuum(0)
    assert settled(s3, url, x, [("x", x[:5])])


@pytest.mark.parametrize("verdict", ["refuse", "expired"])
def test_rights_that_end_in_the_middle_of_a_job(road, s3, lake, url, far, big, x, told, verdict):
    lake.write("keep", x)
    writer = tl.open(url, storage_options=far)
    road.fault(verdict, "^(PUT|POST) ", after=2)  # the upload begins, its first part goes through
    failing(told, lambda: writer.write("big", big, codec="raw"))
    road.fault("")
    assert settled(s3, url, x)


@pytest.mark.parametrize(("verdict", "where"), [("cut", COMMIT), ("refuse", "")])
def test_a_commit_that_nobody_can_look_for_may_be_there(
    road, s3, lake, url, far, x, told, verdict, where
):
    """It landed; with "cut" its answer is lost, else only the look at the log after it fails."""
    lake.write("keep", x)
    writer = tl.open(url, storage_options=far)
    writer.write("x", x[:2], mode="append")
    road.requests()
    writer.write("x", x[2:5], mode="append")
    looks = sum(1 for line in road.requests() if re.search(r"^GET .*_delta_log/0*3[.]json", line))
    following = r"^GET .*_delta_log/0*4[.]json"
    road.fault(verdict, where or following, after=0 if where else looks - 1)
    said = failing(told, lambda: writer.write("x", x[5:9], mode="append"))
    assert "look at the newest version before you repeat it" in said
    road.fault("")
    assert settled(s3, url, x, [("x", x[:9])])


@pytest.mark.parametrize("times", [1, None])
def test_a_commit_that_lands_after_its_writer_gave_up(road, s3, lake, url, far, x, told, times):
    """Its request may be on its way when nobody waits any more: its files must be there when it lands."""
    lake.write("keep", x)
    writer = tl.open(url, storage_options=far)
    road.fault("held", COMMIT, wait=3 if times else 6, times=times)
    if times:
        writer.write("x", x[:5])  # the repeat is first; the one that was held comes second
    else:
        said = failing(told, lambda: writer.write("x", x[:5]))
        assert "newest version" in said
    road.settle()
    assert lake.version == 2
    assert settled(s3, url, x, [("x", x[:5])])


def test_a_commit_may_land_after_its_repeats_were_refused(road, s3, lake, url, far, x, told):
    """The last answer is one, but the first request got none: it is not said that nothing was committed."""
    lake.write("keep", x)
    writer = tl.open(url, storage_options=far)
    road.fault("held", COMMIT, wait=5, times=1, then="slow down")
    said = failing(told, lambda: writer.write("x", x[:5]))
    assert "SlowDown" in said
    assert "may still be on its way" in said
    road.settle()
    assert settled(s3, url, x, [("x", x[:5])])


def test_a_tag_whose_answer_was_lost_is_there(road, s3, lake, url, far, x):
    lake.write("keep", x)
    tagger = tl.open(url, storage_options=far)
    road.fault("drop", COMMIT, times=1)
    assert tagger.tag("paper", 1) == 1
    road.fault("drop", COMMIT, times=1)
    tagger.untag("paper")
    road.fault("drop", COMMIT, times=1)
    assert tagger.tag("other", 0) == 0
    assert lake.tags() == {"other": 0}
    assert settled(s3, url, x)


WRITER = """
    import sys
    import numpy as np
    import tensorlake_spark as tl
    options = dict(line.split("=", 1) for line in sys.stdin.read().splitlines())
    data = np.random.default_rng(1).integers(0, 256, (28, 1 << 20), np.uint8)
    tl.open(sys.argv[1], storage_options=options).write("big", data, codec="raw")
"""


def test_a_writer_that_is_killed_in_the_middle_of_an_upload(road, s3, lake, url, x, big):
    """The table is what it was; the parts that lie in the bucket are listed, and aborted."""
    lake.write("keep", x)
    options = {**s3.options, "AWS_ENDPOINT_URL": road.endpoint}
    road.fault("silent", "partNumber=2")
    road.requests()
    command = [sys.executable, "-c", textwrap.dedent(WRITER), url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as writer:
        writer.stdin.write("\n".join(f"{name}={value}" for name, value in options.items()))
        writer.stdin.close()
        seen = []
        while not any("partNumber=2" in line for line in seen):
            assert writer.poll() is None, "it should be at work"
            time.sleep(0.05)
            seen += road.requests()
        writer.kill()
    road.fault("")
    assert settled(s3, url, x)
    (name,) = {re.search(r"(part-[^?]*)\?", line)[1] for line in seen if "partNumber=2" in line}
    assert lake.abort_uploads() == [], "a week has to pass"
    assert lake.abort_uploads(0, dry_run=True) == [name]
    assert lake.abort_uploads(0) == [name]
    assert lake.abort_uploads(0) == []
    assert lake.check().ok
    lake.write("big", big, codec="raw")
    assert settled(s3, url, x, [("big", big)])


def test_uploads_of_others_stay_and_those_of_a_faulty_store_are_told(
    road, s3, lake, far, url, x, told
):
    lake.write("keep", x)
    other = tl.open(f"{url}r", storage_options=s3.options)
    other.write("keep", x)
    with s3.filesystem().open_output_stream(f"{other.uri.removeprefix('s3://')}/part-a") as sink:
        sink.write(b"a" * (11 << 20))
        assert lake.abort_uploads(0) == []
        assert other.abort_uploads(0, dry_run=True) == ["part-a"]
    reached = tl.open(url, storage_options=far)
    road.fault("fail", "uploads", times=1)
    assert reached.abort_uploads(0) == []
    for verdict in ("silent", "slow down", "refuse"):
        road.fault(verdict, "uploads")
        failing(told, lambda: reached.abort_uploads(0))


@pytest.mark.parametrize("verdict", ["fail", "expired", "reset"])
def test_nothing_that_prints_has_a_credential(road, there, far, told, verdict):
    """Not the token either, which the road sees and the server ignores."""
    options = {**far, "AWS_SESSION_TOKEN": TOKEN}
    lake = tl.open(there, storage_options=options)
    ref = lake["x"]
    told += [repr(lake), repr(ref), repr(ref.explain()), str(ref.explain()), repr(lake._storage)]
    told += [str(vars(ref)), lake._repr_html_(), repr(lake.catalog()), str(lake.check())]
    for where in ("", DATA, LOG, SENT):
        forget()
        # The answer to a file that was sent has no body in the middle of which it could break off.
        road.fault("drop" if (verdict, where) == ("reset", SENT) else verdict, where)
        failing(
            told,
            lambda: (tl.open(there, storage_options=options)["x"][...], lake.write("y", ref[:2])),
        )
