"""How what is read is cut into work for threads; that it is read rightly is seen with every layout."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.delta.files import footer, scan
from tensorlake_spark.delta.files.scan import ScanPiece, _runs
from tensorlake_spark.indexing import select
from tensorlake_spark.threads import THREADS

sizes = st.lists(st.lists(st.integers(1, 1000), min_size=1, max_size=30), min_size=1, max_size=3)


@given(sizes, st.integers(1, 9), st.integers(1, 3))
def test_runs_have_all_row_groups_in_order_and_are_as_large_as_each_other(files, count, batches):
    groups = [
        ScanPiece(f"{name}", (n,), nbytes, 7)
        for name, of_file in enumerate(files)
        for n, nbytes in enumerate(of_file)
    ]
    runs = _runs(groups, count, batches)
    read = [(p.path, n) for run in runs for p in run for n in p.row_groups]
    assert read == [(group.path, *group.row_groups) for group in groups]
    assert all(len({piece.path for piece in run}) == 1 for run in runs), "a run has one map"
    most, total = max(group.nbytes for group in groups), sum(group.nbytes for group in groups)
    assert all(sum(p.nbytes for p in run) <= total / count + most for run in runs)
    assert all(p.nbytes <= total / count / batches + most for run in runs for p in run)
    assert len(runs) <= count + len(files) - 1
    assert all(len(run) <= batches for run in runs)
    assert [path for path, _ in groupby(read, lambda one: one[0])] == [
        f"{name}" for name in range(len(files))
    ]


def test_ten_and_a_half_row_groups_are_no_sixth_run():
    groups = [ScanPiece("a", (n,), 18, 7) for n in range(10)] + [ScanPiece("a", (10,), 9, 7)]
    assert [len(run[0].row_groups) for run in _runs(groups, 4, 1)] == [3, 2, 3, 3]
    assert _runs([], 4, 1) == []


@pytest.mark.local_disk
def test_what_a_thread_takes_at_a_time_is_one_batch(lake):
    noise = np.random.default_rng(0).integers(0, 256, (20, 1 << 20), np.uint8)
    lake.write("x", noise, codec="raw", block_shape=(1, 1 << 20))
    snapshot = lake._snapshot()
    plan = scan.plan(snapshot, "x", select((), noise.shape), ["values"])
    seen = scan.read(
        snapshot, plan, ["values"], lambda batch: batch.num_rows, job_bytes=4 * scan.JOB_BYTES
    )
    assert sum(seen) == len(noise)
    assert len(seen) <= THREADS


@pytest.mark.parametrize("kept", [1, 100])
@pytest.mark.local_disk
def test_a_footer_is_read_no_more_than_twice_however_many_files_there_are(lake, monkeypatch, kept):
    """Files are visited in one order each time, so that none of those is kept that are visited next."""
    for k in range(8):
        lake.write("x", np.full((1, 4), k + 1), mode="append")
    ref = lake["x"]
    footer._cache.clear()
    monkeypatch.setattr(footer, "_KEEP_ALL", kept)
    read = []
    indexed = footer.read_indexed
    monkeypatch.setattr(
        footer, "read_indexed", lambda *given: read.append(given[1]) or indexed(*given)
    )
    assert ref[...].tolist() == [[k + 1] * 4 for k in range(8)]
    assert len(read) <= (8 if kept == 100 else 16)
