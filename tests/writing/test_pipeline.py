"""Changes that are computed anew."""

import json
from pathlib import Path

import numpy as np
import pytest
from stored import drop_statistics

import tensorlake_spark as tl
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.threads import THREADS
from tensorlake_spark.writing import pipeline as put


def orphans(lake):
    """Data files that no commit of the log has ever named."""
    log = [p.read_text().splitlines() for p in Path(lake.uri).glob("_delta_log/*.json")]
    named = {a["add"]["path"] for lines in log for a in map(json.loads, lines) if "add" in a}
    return {path.name for path in Path(lake.uri).glob("*.parquet")} - named


def test_a_change_that_is_computed_anew_too_often_gives_up(lake, monkeypatch):
    """An append beside a writer of the same tensor, a partial write beside one who moves its files."""
    lake.write("x", np.arange(3))
    commit, other, busy = put.commit, tl.open(lake.uri), []

    def behind(work):
        def late(storage, change):
            if not busy:
                busy.append(change)
                work()
                busy.clear()
            return commit(storage, change)

        return late

    def move():
        other.write("y", np.arange(3), mode="append")
        assert other.optimize().files_after == 1

    monkeypatch.setattr(put, "RECOMPUTE", 3)
    monkeypatch.setattr(put, "commit", behind(lambda: other.write("x", [9], mode="append")))
    with pytest.raises(tl.ConcurrentWriteError, match="during each of 3 attempts"):
        lake.write("x", np.arange(3), mode="append")
    assert lake["x"][:].tolist() == [0, 1, 2, 9, 9, 9]
    monkeypatch.setattr(put, "commit", behind(move))
    with pytest.raises(tl.ConcurrentWriteError, match="moved its files, during each of 3 attempts"):
        lake["x"][0] = 7
    assert lake["y"].shape == (9,), "once for each attempt"
    assert lake["x"][:].tolist() == [0, 1, 2, 9, 9, 9]
    assert orphans(lake) == set()


@pytest.mark.local_disk
def test_others_stay_where_a_file_does_not_say_whose_rows_it_has(lake):
    """As after a writer without statistics: the deleted tensor's rows go, and those of the others are kept."""
    with lake.transaction() as t:
        for name in "abc":
            t.write(name, np.arange(4))
    drop_statistics(lake.uri)
    fresh = tl.open(lake.uri)
    fresh.delete("b")
    assert [*fresh] == ["a", "c"]
    assert [fresh[name][:].tolist() for name in "ac"] == [[0, 1, 2, 3]] * 2


def test_only_a_few_parts_are_encoded_ahead():
    """So memory does not grow with the tensor."""
    begun = []

    def regions():
        for number in range(200):
            begun.append(number)
            yield (number,), np.full(1, number + 1)

    spec = TensorSpec("x", (200,), np.dtype("i8"), "ftsf", block_shape=(1,), codec="raw")
    done = 0
    for _, rows in put.encode(spec, regions()):
        assert [row.lo for row in rows] == [(done,)]
        done += 1
        assert len(begun) - done <= 4 * THREADS + 2
    assert done == 200


def test_an_iterator_is_not_read_twice(lake, monkeypatch):
    """It has ended, and the second attempt would append nothing of it."""
    lake.write("x", np.arange(3))
    commit, other, tries = put.commit, tl.open(lake.uri), []

    def late(storage, change):
        tries.append(change)
        if len(tries) == 1:
            other.write("x", [9], mode="append")
        return commit(storage, change)

    monkeypatch.setattr(put, "commit", late)
    with pytest.raises(tl.ConcurrentWriteError, match="nothing of this write was committed"):
        lake.write("x", iter([np.arange(2), np.arange(3)]), mode="append")
    assert lake["x"][:].tolist() == [0, 1, 2, 9]
    assert orphans(lake) == set()
