"""Reads of features are counted beside the table, and no read depends on it."""

import logging
import os
import pickle
import threading
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.columns import access_log
from tensorlake_spark.columns.access_log import AccessLog, accessed, bounded, folder_of, order_of
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def features(tmp_path):
    table = pa.table({f"f{k}": np.arange(10, dtype=np.float32) + k for k in range(64)})
    return tl.open(tmp_path / "lake").features("w").write(table)


def test_reads_are_counted_only_if_that_is_asked_for(features):
    features.read(["f1"])
    assert features.accessed == {}
    features.record()
    for _ in range(3):
        features.read(["f9", "f1"])
    features.read(["f2"])
    features.read()
    assert features.accessed == {("f1", "f9"): 3, ("f2",): 1}
    features.record(False)
    features.read(["f2"])
    assert features.accessed == {("f1", "f9"): 3, ("f2",): 1}


class SlowFirst(Storage):
    """A place whose first small file takes until `go` is set."""

    begun, go, done = threading.Event(), threading.Event(), threading.Event()

    def put_whole(self, name, data):
        is_first = not self.begun.is_set()
        self.begun.set()
        assert not is_first or self.go.wait(60)
        Storage.put_whole(self, name, data)
        if is_first:
            self.done.set()


def test_an_earlier_count_does_not_take_the_place_of_a_later_one(tmp_path):
    """The thread of the first read was still writing 1 when all three were written, and 1 stayed."""
    storage = SlowFirst(str(tmp_path))
    log = AccessLog(storage, "w")
    log.count(["a"])  # written by a thread, as it is the first
    assert storage.begun.wait(60)
    log.count(["a"])
    log.count(["a"])
    last = threading.Thread(target=log.flush)
    last.start()
    last.join(0.2)
    storage.go.set()
    last.join(60)
    assert storage.done.wait(60)
    assert accessed(storage, "w") == {("a",): 3}


def test_counts_of_all_processes_are_added_up(features):
    for _ in range(2):
        features.record().read(["f1"])
    assert features.record(False).accessed == {("f1",): 2}


def test_features_that_are_read_together_share_blocks(features, tmp_path):
    before, names = features.read(), features.names
    together = [f"f{k}" for k in range(0, 64, 5)]
    features.record().read(together)
    features.reorder()
    assert features.names == names
    assert features.read().equals(before)
    ref = tl.open(tmp_path / "lake")["w/float32"]
    assert sorted(ref.labels("feature")[:13].tolist()) == sorted(together)
    version = features.version
    features.reorder()  # nothing is to be done
    assert features.version == version


def test_an_order_may_be_given(features):
    before = features.read()
    features.reorder(["f63", "f0"])
    assert features.read().equals(before)
    with pytest.raises(tl.UnknownLabelError, match="no feature 'f64'"):
        features.reorder(["f64"])


def test_without_counts_there_is_no_order(features):
    with pytest.raises(
        tl.InvalidOptionError, match=r"no read of features 'w' was counted.*\.record"
    ):
        features.reorder()


def test_a_log_that_cannot_be_written_is_told_once_and_counts_for_its_process(
    features, tmp_path, caplog
):
    (tmp_path / "lake" / "_tensorlake").write_text("no folder")
    features.record()
    for number in (1, 2):
        assert features.read(["f1"]).num_rows == 10
        assert features.accessed == {("f1",): number}
    (told,) = [entry.getMessage() for entry in caplog.records if entry.levelname == "WARNING"]
    assert told.startswith("reads of features of 'w' are counted for this process alone: ")
    assert f"{folder_of('w')}/" in told


def test_a_damaged_log_is_left_out(tmp_path, caplog):
    storage = Storage(str(tmp_path))
    folder = tmp_path / folder_of("w")
    folder.mkdir(parents=True)
    (folder / "one.json").write_text("[[3, ")
    (folder / "two.json").write_text('[[2, ["a"]]]')
    with caplog.at_level(logging.WARNING, "tensorlake_spark"):
        assert accessed(storage, "w") == {("a",): 2}
    assert f"{folder_of('w')}/one.json is damaged" in caplog.text


@pytest.mark.parametrize("text", ["[" * 100_000, '[[1e400, ["a"]]]'])
def test_a_log_with_numbers_or_lists_without_end_is_left_out(tmp_path, text):
    folder = tmp_path / folder_of("w")
    folder.mkdir(parents=True)
    (folder / "one.json").write_text(text)
    assert accessed(Storage(str(tmp_path)), "w") == {}


def test_a_copy_of_a_table_that_counts_counts_for_itself(features):
    features.record().read(["f1"])
    copy = pickle.loads(pickle.dumps(features))
    copy.read(["f1"])
    assert ("f1",) in features.accessed  # which has written its count by then
    assert copy.accessed == {("f1",): 2}


def test_a_log_stays_small(monkeypatch):
    monkeypatch.setattr(access_log, "_MOST_NAMES", 4)
    counts = Counter({("a", "b"): 5, ("c", "d"): 3, ("e",): 1})
    assert bounded(counts) == {("a", "b"): 5, ("c", "d"): 3}


def test_vacuum_leaves_the_log_alone(features, tmp_path):
    features.record().read(["f1"])
    features.record(False)
    tl.open(tmp_path / "lake").vacuum()
    assert features.accessed == {("f1",): 1}


def test_features_that_are_gone_have_no_place():
    assert order_of({("a", "gone"): 2, ("b",): 3}, ["a", "b"]) == ["b", "a"]


def test_a_log_of_nothing_is_no_file(tmp_path):
    AccessLog(Storage(str(tmp_path)), "w").flush()
    assert not [*tmp_path.iterdir()]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_counts_for_itself(features):
    features.record()
    features.read(["f1"])
    assert features.accessed == {("f1",): 1}
    child = os.fork()
    if not child:
        code = 1
        try:
            features.read(["f2"])
            features.read(["f1"])
            code = 0 if features.accessed == {("f1",): 2, ("f2",): 1} else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    features.read(["f3"])
    assert features.accessed == {("f1",): 2, ("f2",): 1, ("f3",): 1}
