"""Changes that are computed anew."""

import json
from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl
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
