"""Features that are dropped or moved leave the blocks before them, and the files of these, as they are."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from feature_examples import files_of, wide

import tensorlake_spark as tl
from tensorlake_spark.columns.feature_cut import unchanged
from tensorlake_spark.columns.feature_table import FeatureTable
from tensorlake_spark.writing import overlay


def live(lake):
    return {*lake._snapshot().files.path}


def with_nulls(features, rows, start=0):
    rng = np.random.default_rng(start)
    return pa.table(
        {
            f"f{k}": pa.array(rng.normal(size=rows).astype("f4"), mask=rng.random(rows) < 0.1 * (k % 3))
            for k in range(start, start + features)
        }
    )  # fmt: skip


def test_features_that_were_added_last_are_dropped_without_the_others(lake):
    first, last = wide(320, rows=3000), wide(40, rows=3000, start=320)
    features = lake.features("w").write(first)
    before, bytes_before = live(lake), files_of(lake)
    features.add(last)
    features.drop(last.column_names)
    assert features.read().equals(first)
    data = {name for name in before if len(bytes_before[name]) > 1 << 20}
    assert data <= live(lake)
    new = [Path(lake.uri, name) for name in live(lake) - before]
    assert sum(path.stat().st_size for path in new) < 64 << 10
    assert lake.check().ok


def test_blocks_before_the_first_that_goes_stay(lake):
    table = wide(64, rows=9000)
    features = lake.features("w").write(table)
    features.add(wide(64, rows=9000, start=64))
    digests = {(r.lo, r.hi): r.digest for r in lake.digest("w/float32").rows}
    features.drop(["f37", "f100"])
    now = {(r.lo, r.hi): r.digest for r in lake.digest("w/float32").rows}
    stay = {box for box in digests if box[0][1] < 32}
    assert len(stay) == 6
    assert {box: now[box] for box in stay} == {box: digests[box] for box in stay}
    both = pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **_columns(wide(64, rows=9000, start=64))})  # fmt: skip
    assert features.read().equals(both.drop_columns(["f37", "f100"]))
    assert lake.check().ok


def _columns(table):
    return dict(zip(table.column_names, table.columns, strict=True))


@pytest.mark.parametrize("rows", [3, 5000])
@pytest.mark.parametrize("seed", range(4))
def test_any_changes_one_after_the_other(lake, rows, seed):
    """A table in memory is the oracle; small tensors share files, larger ones have their own."""
    rng = np.random.default_rng(seed)
    lake.write("beside", np.arange(10))
    want = with_nulls(20, rows)
    features = lake.features("w").write(want)
    start = 20
    for step in range(8):
        names = want.column_names
        what = rng.choice(["add", "drop", "reorder", "append", "optimize"])
        if what == "add":
            new = with_nulls(int(rng.integers(1, 40)), want.num_rows, start)
            start += new.num_columns
            features.add(new)
            want = pa.table({**_columns(want), **_columns(new)})
        elif what == "drop" and len(names) > 2:
            gone = [names[k] for k in rng.permutation(len(names))[: rng.integers(1, len(names) // 2 + 1)]]  # fmt: skip
            if rng.random() < 0.5:
                gone = names[-len(gone) :]
            features.drop(gone)
            want = want.drop_columns(gone)
        elif what == "reorder":
            order = [names[k] for k in rng.permutation(len(names))[: len(names) // 2]]
            features.reorder([*dict.fromkeys([*names[: len(names) // 2], *order[:3]])])
        elif what == "append":
            more = pa.table({n: pa.array(rng.normal(size=7).astype("f4")) for n in names})
            features.append(more)
            want = pa.concat_tables([want, more])
        elif what == "optimize":
            lake.optimize()
            features = lake.features("w")
        assert features.names == want.column_names, (step, what)
        assert features.read().equals(want.combine_chunks()), (step, what)
    assert lake.check().ok
    assert np.array_equal(lake["beside"][...], np.arange(10))
    assert tl.open(lake.uri).features("w").read().equals(want.combine_chunks())


def test_a_drop_leaves_other_tensors_of_a_file_and_holds_after_a_change_of_metadata(
    lake, monkeypatch
):
    monkeypatch.setattr(overlay, "SMALL_BYTES", 0)
    lake.write("beside", np.arange(10))
    table = wide(40, rows=3)
    lake.features("w").write(table)
    lake.optimize()  # one file has all of them
    names = table.column_names
    lake.features("w").deprecate(["f3"]).drop(names[32:])
    again = tl.open(lake.uri)
    assert again.features("w").read().equals(table.drop_columns(["f3", *names[32:]]))
    assert np.array_equal(again["beside"][...], np.arange(10))
    assert lake.check().ok


def test_a_drop_beside_an_optimisation_is_made_anew(lake, monkeypatch):
    features = lake.features("w").write(wide(40, rows=5000))
    features.append(wide(40, rows=5000))
    real, times = FeatureTable._change, []

    def beside(table, what, nbytes, make, *rest):
        def late(now):
            make(now)
            times.append(what)
            if len(times) == 1:
                tl.open(lake.uri).optimize()
                tl.open(lake.uri).features("w").append(wide(40, rows=3))

        return real(table, what, nbytes, late, *rest)

    monkeypatch.setattr(FeatureTable, "_change", beside)
    features.drop(["f20"])
    assert times == ["drop", "append", "drop"]
    assert len(features) == 10_003
    assert "f20" not in features
    assert {n for n in os.listdir(lake.uri) if n.endswith(".parquet")} >= live(lake)
    assert lake.check().ok


def test_unchanged_counts_whole_blocks():
    def spec(count, segments=()):
        return tl.TensorSpec(id="x", shape=(5, count), dtype=np.dtype("f4"), layout="ftsf", block_shape=(4096, 16), codec="raw", segments=segments)  # fmt: skip

    def kept(*gone, count=50):
        return np.setdiff1d(np.arange(count), gone)

    assert unchanged(spec(50), kept(0)) == 0
    assert unchanged(spec(50), kept(17)) == 16
    assert unchanged(spec(50), kept(49)) == 48
    assert unchanged(spec(50), kept(48, 49)) == 48
    assert unchanged(spec(50), kept()) == 50
    assert unchanged(spec(50, ((0,), (0, 40))), kept(45)) == 40
    assert unchanged(spec(50), np.array([0, 2, 1])) == 0
    swapped = kept()
    swapped[[3, 40]] = swapped[[40, 3]]
    assert unchanged(spec(50), swapped) == 0
