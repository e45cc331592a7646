"""New samples: their numbers, and writers that work at once."""

import subprocess
import sys

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.samples import appending
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(tmp_path / "ds", {"size": "int32"})
    found.extend({"size": np.arange(30)})
    return found


def test_an_append_that_is_too_large_to_wait_takes_its_numbers_first(tmp_path, monkeypatch):
    monkeypatch.setattr(appending, "HELD_BYTES", 1000)
    ds = tl.dataset(tmp_path, {"x": tl.types.Tensor("int64")})
    ds.extend([{"x": np.arange(n % 50)} for n in range(3000)])
    assert ds.sids.tolist() == [*range(3000)]
    ds.append({"x": np.arange(2)})
    assert ds.sids[-1] == 3000, "numbers that were not used went back"
    assert [len(x) for x in ds["x"][:100]] == [n % 50 for n in range(100)]


def test_a_batch_that_was_committed_before_changes_nothing(ds):
    ds.extend([{"size": 1}], transaction=("job", 4))
    ds.extend([{"size": 1}], transaction=("job", 4))
    ds.extend([{"size": 1}], transaction=("job", 3))
    assert len(ds) == 31


TWO = """
import sys, tensorlake_spark as tl
ds = tl.dataset(sys.argv[1])
for n in range(20):
    ds.append({"size": int(sys.argv[2]) + n})
"""


def test_two_writers_both_land(ds):
    commands = [[sys.executable, "-c", TWO, ds.uri, str(first)] for first in (100, 200)]
    running = [subprocess.Popen(command) for command in commands]
    assert [process.wait(120) for process in running] == [0, 0]
    ds.refresh()
    assert len(ds) == 70
    assert ds.sids.tolist() == [*range(70)]
    assert sorted(ds["size"][30:].tolist()) == [*range(100, 120), *range(200, 220)]


def test_numbers_that_were_reserved_stay_apart_from_those_of_others(ds):
    storage = Storage(ds.uri)
    snapshot, first = appending.reserve(storage, Snapshot.open(storage, kind=SAMPLES), 100)
    assert (first, appending.next_sid(snapshot)) == (30, 130)
    ds.append({"size": 1})
    assert ds.sids[-1] == 130
    _, again = appending.reserve(storage, snapshot, 5)
    assert again == 131, "an older version will do"


def test_a_writer_that_fails_leaves_nothing(ds, tmp_path, monkeypatch):
    monkeypatch.setattr(appending, "HELD_BYTES", 1000)
    before = {path.name for path in (tmp_path / "ds").iterdir()}

    def samples():
        for number in range(5000):
            yield {"size": number}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ds.extend(samples())
    assert {path.name for path in (tmp_path / "ds").iterdir()} == before
    ds.refresh()
    assert len(ds) == 30
