"""Tables that grow: by many small appends, by many tensors, by many files. Counts and ratios; `make soak` has seconds."""

import json
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from work import calls, peak_bytes

import tensorlake_spark as tl
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.actions import all_transactions
from tensorlake_spark.delta.log.commit import Change, StaleChange, app_of, commit
from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.log.direct_commit import put_commit
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.source import source_of

DAY = (1, 24, 64, 64)
YEAR = 365


def day_of(layout, number):
    rng = np.random.default_rng(number)
    if layout == "ftsf":
        return np.full(DAY, number + 1, "f4")
    coords = np.unique(rng.integers(0, np.array(DAY)[:, None], (4, 50)), axis=1)
    return tl.SparseTensor(coords, np.full(coords.shape[1], number + 1, "f4"), DAY)


def one_row_group(plan):
    return [len(file.row_groups) for file in plan.files] == [1]


@pytest.mark.local_disk
@pytest.mark.parametrize(
    ("layout", "days"),
    [
        ("ftsf", 90),
        pytest.param("ftsf", YEAR, marks=pytest.mark.soak),
        pytest.param("bsgs", YEAR, marks=pytest.mark.soak),
    ],
)
def test_daily_appends(lake, layout, days):
    took = []
    for number in range(days):
        day = day_of(layout, number)
        took.append(calls(lambda day=day: lake.write("x", day, mode="append", layout=layout)))
    ref = lake["x"]
    assert ref.shape == (days, *DAY[1:])
    assert np.median(took[-30:]) <= 3 * np.median(took[:30])
    checkpoints = list(Path(lake.uri, "_delta_log").glob("*.checkpoint.parquet"))
    assert len(checkpoints) >= days // 10

    def check():
        ref = tl.open(lake.uri)["x"]
        for number in (0, 1, days // 3, days // 2, days - 1):
            assert one_row_group(ref.explain(np.s_[number]))
            got, want = ref[number], day_of(layout, number)
            if layout == "ftsf":
                np.testing.assert_array_equal(got, want[0])
            else:
                assert got.equals(want[0])

    check()
    assert len(Snapshot.open(Storage(lake.uri)).files.path) == days
    done = lake.optimize()
    assert (done.files_before, done.files_after) == (days, 1)
    check()


def rows_of(spec, x, block):
    layout = layout_of(spec.layout)
    return [
        row
        for i in range(0, len(x), block)
        for row in layout.encode(x[i : i + block], (i, 0), spec)
    ]


def many_tensors(path, count):
    """Tensors written by one commit, as by Spark: their metadata is in one file."""
    storage = Storage(str(path))
    create_table(storage)
    writer = FileWriter(storage)
    x = np.arange(64, dtype="f4").reshape(8, 8)
    options = WriteOptions(layout="ftsf", block_shape=(4, 8), codec="zstd")
    specs, totals = [], []
    for i in range(count):
        spec = new_spec(f"t/{i:05}", source_of(x), options)
        rows = rows_of(spec, x + i, 4)
        for seq, row in enumerate(rows):
            writer.add(spec, seq, row)
        specs.append(spec)
        totals.append(Totals.of(rows))
    writer.add_meta(specs, [2] * count, totals)
    commit(storage, Change({}, writer.finish()))


def many_files(path, count, own):
    """As many files, each of a tensor of its `own`, or of one tensor that was appended to."""
    storage = Storage(str(path))
    create_table(storage)
    x = np.arange(64, dtype="f4").reshape(8, 8)
    options = WriteOptions(layout="ftsf", block_shape=(4, 8), codec="zstd")
    spec = new_spec("x", source_of(x), options)
    total, files = Totals(), []
    for i in range(count):
        spec = replace(spec, id=f"t/{i:05}") if own else replace(spec, shape=(8 * i + 8, 8))
        rows = [
            replace(row, lo=(row.lo[0] + shift, 0), hi=(row.hi[0] + shift, 8))
            for shift in [0 if own else 8 * i]
            for row in rows_of(spec, x + i, 4)
        ]
        total = Totals.of(rows) if own else total + Totals.of(rows)
        writer = FileWriter(storage)
        for k, row in enumerate(rows):
            writer.add(spec, 3 * i + k, row)
        writer.add_meta([spec], [3 * i + 2], [total])
        files += writer.finish()
        if len(files) == 2000:
            commit(storage, Change({}, files))
            files = []
    commit(storage, Change({}, files))


FRESH = """
    import sys, time, json, numpy as np, tensorlake_spark as tl
    from tensorlake_spark.delta.files import footer

    found = {}

    def note(name, start):
        found[name] = [time.perf_counter() - start, len(footer._cache)]

    start = time.perf_counter()
    lake = tl.open(sys.argv[1])
    plan = lake[sys.argv[2]].explain(np.s_[int(sys.argv[3])])
    note("plan", start)
    assert [len(f.row_groups) for f in plan.files] == [1]
    start = time.perf_counter()
    found["ids"] = len(list(lake))
    note("list", start)
    start = time.perf_counter()
    assert len(lake.catalog()) == found["ids"]
    note("catalog", start)
    print(json.dumps(found))
"""


def ask(path, name, place):
    """Open, find and plan in a new process: for each step its seconds and the files opened so far."""
    run = [sys.executable, "-c", textwrap.dedent(FRESH), str(path), name, str(place)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def opened(found):
    return {name: found[name][1] for name in ("plan", "list", "catalog")}


def writes_into(path, count):
    """What a write into a table of so many tensors calls, and the bytes by which the next version is known."""
    many_files(path, count, own=True)
    storage, lake = Storage(str(path)), tl.open(path)
    commit(storage, Change({f"t/{i:05}": None for i in range(count)}, []))
    lake.write("warm", np.ones(3))
    called = [calls(lambda k=k: lake.write(f"u/{k}", np.ones(3))) for k in range(9)]
    held = []
    for k in range(9):  # commits of others, which this process reads on
        version = Snapshot.newest(storage).version + 1
        said = {"path": f"{k}.parquet", "size": 9, "stats": json.dumps({"minValues": {"id": "v"}})}
        txn = {"appId": f"tensor/v/{k}", "version": 1}
        put_commit(storage, version, [{"add": said}, {"txn": txn}])
        held.append(peak_bytes(lambda: Snapshot.newest(storage)))
        assert Snapshot.newest(storage).version == version
    return np.median(called), np.median(held)


@pytest.mark.local_disk
def test_a_write_costs_the_same_however_many_tensors_there_are(tmp_path):
    few_calls, few_bytes = writes_into(tmp_path / "few", 300)
    many_calls, many_bytes = writes_into(tmp_path / "many", 1200)
    assert many_calls <= 1.05 * few_calls
    assert many_bytes <= few_bytes + (8 << 10), "one array of all files has 9.6 KB more"


def test_hundreds_of_tensors_of_one_commit(tmp_path):
    many_tensors(tmp_path / "t", 300)
    found = ask(tmp_path / "t", "t/00150", 3)
    assert found["ids"] == 300
    assert opened(found) == {"plan": 1, "list": 1, "catalog": 1}


def test_hundreds_of_files_of_one_tensor(tmp_path):
    many_files(tmp_path / "t", 300, own=False)
    found = ask(tmp_path / "t", "x", 1200)
    assert found["ids"] == 1
    # The newest, which says what the tensor is, and the one that holds the slice.
    assert opened(found) == {"plan": 2, "list": 2, "catalog": 2}


def test_tensors_written_one_by_one(tmp_path):
    many_files(tmp_path / "t", 60, own=True)
    found = ask(tmp_path / "t", "t/00030", 3)
    assert found["ids"] == 60
    assert opened(found) == {"plan": 1, "list": 1, "catalog": 60}
    lake = tl.open(tmp_path / "t")
    ref = lake["t/00030"]
    done = lake.optimize()
    assert (done.files_before, done.files_after) == (60, 1)
    assert opened(ask(tmp_path / "t", "t/00030", 3)) == {"plan": 1, "list": 1, "catalog": 1}
    np.testing.assert_array_equal(lake["t/00030"][...], ref[...])


def test_a_lake_reads_its_log_anew_only_when_there_is_more_of_it(lake):
    lake.write("x", np.ones(3))
    shown = lake._snapshot()
    assert lake["x"]._snapshot is shown is lake._snapshot()
    tl.open(lake.uri).write("y", np.ones(3))
    assert list(lake) == ["x", "y"]
    assert lake._snapshot() is not shown


@pytest.mark.local_disk
def test_a_table_that_was_made_anew_is_seen(lake):
    lake.write("x", np.ones(3))
    shutil.rmtree(lake.uri)
    assert list(lake) == []
    assert lake.version is None
    tl.open(lake.uri).write("y", np.ones(3))
    assert list(lake) == ["y"]
    shutil.rmtree(lake.uri)
    lake.write("z", np.ones(3))
    assert list(lake) == ["z"]


def test_the_catalog_of_a_tensor_that_many_wrote(lake):
    for i in range(5):
        lake.write("x", np.full((1, 2), i + 1), mode="append", attrs={"n": i})
        lake.write("y", np.full(2, i + 1), mode="overwrite", attrs={"n": i})
    snapshot = Snapshot.open(Storage(lake.uri))
    assert catalog.ids(snapshot) == ["x", "y"]
    assert [m.spec.attrs["n"] for m in catalog.metas(snapshot)] == [4, 4]
    assert [m.spec.shape for m in catalog.metas(snapshot)] == [(5, 2), (2,)]


def test_many_transactions_are_looked_up_at_once(lake):
    """The log is read once, and says what deltalake says, with and without a checkpoint."""
    for i in range(24):
        lake.write(f"t/{i % 14:02}", np.full((1, 2), i + 1), mode="append")
    lake.delete("t/03")
    apps = [*(app_of(f"t/{i:02}") for i in range(14)), app_of("nobody")]
    for version in (3, 9, 10, 15, lake.version):
        snapshot = Snapshot.open(Storage(lake.uri), version)
        want = {app: snapshot.transaction(app) for app in apps}
        assert snapshot.transactions(apps) == want
        found = all_transactions(snapshot.storage, version)
        if version >= 20:
            assert found == {app: number for app, number in want.items() if number is not None}
        else:
            assert found is None, "the last checkpoint is of a later version"
    storage = Storage(lake.uri)
    many = {f"u/{i:02}": None for i in range(20)}
    commit(storage, Change(many, []))
    with pytest.raises(StaleChange, match="changed tensor 'u/00'"):
        commit(storage, Change(many, []))
    after = commit(storage, Change(dict.fromkeys(many, 1), []))
    assert set(after.transactions([app_of(name) for name in many]).values()) == {2}


@pytest.mark.soak
def test_ten_thousand_tensors_of_one_commit(tmp_path):
    many_tensors(tmp_path / "t", 10_000)
    found = ask(tmp_path / "t", "t/05000", 3)
    assert found["plan"][0] <= 1
    assert found["catalog"][0] <= 2


@pytest.mark.soak
def test_ten_thousand_files_of_one_tensor(tmp_path):
    many_files(tmp_path / "t", 10_000, own=False)
    found = ask(tmp_path / "t", "x", 40_000)
    assert found["plan"][0] <= 1
    assert found["catalog"][0] <= 2
    assert opened(found) == {"plan": 2, "list": 2, "catalog": 2}


@pytest.mark.soak
def test_ten_thousand_tensors_written_one_by_one(tmp_path):
    many_files(tmp_path / "t", 10_000, own=True)
    assert ask(tmp_path / "t", "t/05000", 3)["plan"][0] <= 1
    done = tl.open(tmp_path / "t").optimize()
    assert done.files_before == 10_000
    assert done.files_after < 5
    found = ask(tmp_path / "t", "t/05000", 3)
    assert found["plan"][0] <= 1
    assert found["catalog"][0] <= 2
