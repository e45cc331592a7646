"""Compaction: few files instead of many, the same rows in them, and nobody else in the way."""

import json
import multiprocessing
import subprocess
import sys
import textwrap
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.files.compacting import compaction as compact
from tensorlake_spark.delta.files.compacting.rewrite import live_batches
from tensorlake_spark.delta.files.payload import plain_column
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.layouts.testing.laws import bits
from tensorlake_spark.writing import pipeline as put


def snapshot_of(lake):
    return Snapshot.open(Storage(lake.uri))


def live(lake):
    return snapshot_of(lake).files.path


def rows_of(lake):
    """All data rows as stored, by (id, seq)."""
    snapshot = snapshot_of(lake)
    batches = [b for path in snapshot.files.path for b in live_batches(snapshot, path)]
    table = pa.Table.from_batches(batches).sort_by([("id", "ascending"), ("seq", "ascending")])
    return table.filter(pa.compute.greater(table["nnz"], 0))


def last_commit(lake):
    path = Path(lake.uri) / "_delta_log" / f"{lake.version:020}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]


def sparse(seed, shape=(1, 6, 20, 20), count=40):
    rng = np.random.default_rng(seed)
    flat = rng.choice(np.prod(shape), count, replace=False)
    coords = np.stack(np.unravel_index(np.sort(flat), shape))
    return tl.SparseTensor(coords, rng.integers(1, 99, count).astype("f4"), shape)


@pytest.fixture
def model(lake):
    """Three tensors that grow by turns, one of them along its second axis."""
    rng = np.random.default_rng(0)
    model = {"dense": rng.random((1, 8, 16)), "hits": sparse(0).todense(), "wide": np.ones((3, 2))}
    lake.write("dense", model["dense"], block_shape=(1, 8, 8))
    lake.write("hits", sparse(0), layout="bsgs", block_shape=(1, 6, 10, 10))
    lake.write("wide", model["wide"], layout="ftsf")
    for i in range(1, 5):
        for name, more, axis in (
            ("dense", rng.random((1, 8, 16)), 0),
            ("hits", sparse(i), 0),
            ("wide", rng.random((3, 2)), 1),
        ):
            lake.write(name, more, mode="append", axis=axis)
            more = more if isinstance(more, np.ndarray) else more.todense()
            model[name] = np.concatenate([model[name], more], axis)
    return model


def check(lake, model):
    assert list(lake) == sorted(model)
    for name, x in model.items():
        found = lake[name][...]
        assert bits(found if isinstance(found, np.ndarray) else found.todense()) == bits(x)


@pytest.mark.local_disk
def test_small_files_become_one_and_the_rows_stay_as_they_are(lake, model):
    before, version = rows_of(lake), lake.version
    size = snapshot_of(lake).files.size
    done = lake.optimize()
    (path,) = live(lake)
    assert (done.files_before, done.files_after, done.version) == (15, 1, version + 1)
    assert done.bytes_before == size.sum()
    assert done.bytes_after == Path(lake.uri, path).stat().st_size < done.bytes_before
    assert rows_of(lake).equals(before), "payloads, checksums and places are the same bytes"
    check(tl.open(lake.uri), model)
    check(tl.open(lake.uri, version=version), model)
    table = pq.read_table(f"{lake.uri}/{path}", columns=["id", "seq", "nnz"])
    assert table.num_rows == done.rows
    data = table.filter(pa.compute.greater(table["nnz"], 0)).select(["id", "seq"])
    assert data.equals(data.sort_by([("id", "ascending"), ("seq", "ascending")]))
    assert table["nnz"].to_pylist()[-3:] == [0, 0, 0], "one metadata row a tensor, after all data"
    assert table["nnz"].to_pylist().count(0) == 3


@pytest.mark.local_disk
def test_payloads_stay_plain_and_files_are_sealed(lake, model):
    lake.optimize()
    (path,) = live(lake)
    meta = pq.read_metadata(f"{lake.uri}/{path}")
    column = meta.schema.names.index("values")
    places = {meta.schema.column(i).path: i for i in range(meta.num_columns)}
    assert column
    for group in range(meta.num_row_groups - 1):
        assert plain_column(meta.row_group(group), places["values"]) is not None
        assert not meta.row_group(group).column(places["values"]).is_stats_set
    assert b"TLFC" in Path(lake.uri, path).read_bytes()


def test_a_second_run_does_nothing(lake, model):
    first = lake.optimize()
    again = lake.optimize()
    assert again == compact.OptimizeReport(0, 0, 0, 0, 0, first.version)
    assert lake.version == first.version


@pytest.mark.local_disk
def test_the_log_says_that_no_data_changed(lake, model):
    numbers = {name: snapshot_of(lake).transaction(app_of(name)) for name in model}
    lake.optimize()
    actions = last_commit(lake)
    removes = [a["remove"] for a in actions if "remove" in a]
    adds = [a["add"] for a in actions if "add" in a]
    assert len(removes) == 15
    assert len(adds) == 1
    assert not any(action["dataChange"] for action in removes + adds)
    assert not any("txn" in action for action in actions)
    assert actions[0]["commitInfo"]["tensorlake.operation"] == "optimize"
    assert {name: snapshot_of(lake).transaction(app_of(name)) for name in model} == numbers


def test_only_the_newest_metadata_row_is_kept(lake):
    ref = lake.write("x", np.ones(5), attrs={"n": 0})
    for n in range(1, 5):
        ref.update_attrs({"n": n})
    version = lake.version
    done = lake.optimize()
    assert (done.files_before, done.rows) == (5, 2)
    assert lake["x"].attrs == {"n": 4}
    for back in range(5):
        assert tl.open(lake.uri, version=version - back)["x"].attrs == {"n": 4 - back}


def test_large_files_stay_as_they_are(lake):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (1 << 18,), np.uint8)
    lake.write("x", x, codec="raw")
    (large,) = live(lake)
    for _ in range(3):
        lake.write("x", x[:100], mode="append")
    done = lake.optimize(target_bytes=400_000)
    assert (done.files_before, done.files_after) == (3, 1)
    assert large in live(lake)
    np.testing.assert_array_equal(lake["x"][:], np.concatenate([x, *[x[:100]] * 3]))
    assert lake.optimize(target_bytes=400_000).files_before == 0


def test_files_come_near_the_target(lake):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (40, 1 << 14), np.uint8)
    for row in x:
        lake.write("x", row[None], mode="append", codec="raw", block_shape=(1, 1 << 14))
    target = 200_000
    done = lake.optimize(target_bytes=target)
    sizes = snapshot_of(lake).files.size
    assert done.files_after == len(sizes) < 8
    assert sizes.max() <= target
    assert (sizes < target // 2).sum() <= 1
    np.testing.assert_array_equal(lake["x"][:], x)
    assert lake.optimize(target_bytes=target).files_before == 0


@pytest.mark.parametrize(("text", "files"), [("2097152", 3), ("2 MB", 3), ("1gb", 1), (None, 1)])
def test_the_table_says_how_large_files_are(lake, text, files):
    x = np.random.default_rng(0).integers(0, 256, (24, 1 << 18), np.uint8)
    lake.write("other", x[:1])
    if text is not None:
        table = deltalake.DeltaTable(lake.uri)
        table.alter.set_table_properties({"delta.targetFileSize": text}, False)
    lake.write("x", x, codec="raw", block_shape=(1, 1 << 18))
    assert len(lake["x"].explain().files) == files
    for row in x:
        lake.write("grows", row[None], mode="append", codec="raw", block_shape=(1, 1 << 18))
    lake.optimize()
    assert len(lake["grows"].explain().files) in (files, files + 1)
    np.testing.assert_array_equal(lake["grows"][:], x)


def test_a_size_that_is_none(lake):
    lake.write("x", np.ones(3))
    table = deltalake.DeltaTable(lake.uri)
    table.alter.set_table_properties({"delta.targetFileSize": "large"}, False)
    with pytest.raises(tl.FormatError, match=r"'large'.*256mb"):
        lake.write("x", np.ones(3), mode="append")
    np.testing.assert_array_equal(lake["x"][:], np.ones(3))


def test_a_bound_of_what_is_read(lake, model):
    size = snapshot_of(lake).files.size
    bound = int(size.sum()) // 3
    first = lake.optimize(max_bytes=bound)
    assert 2 <= first.files_before < 15
    assert first.bytes_before <= bound
    check(lake, model)
    while lake.optimize(max_bytes=bound).files_before:
        check(lake, model)
    assert len(live(lake)) < 5
    assert lake.optimize(max_bytes=10).files_before == 0


def test_a_least_number_of_files(lake):
    for i in range(4):
        lake.write("x", np.full((1, 3), i + 1), mode="append")
    assert lake.optimize(min_files=5).files_before == 0
    assert lake.optimize(min_files=4).files_before == 4


def test_a_dry_run_says_what_would_be_done(lake, model):
    before, version = live(lake), lake.version
    plan = lake.optimize(dry_run=True)
    assert live(lake) == before
    assert plan.version == version
    done = lake.optimize()
    assert (plan.files_before, plan.files_after) == (done.files_before, done.files_after)
    assert plan.bytes_before == done.bytes_before
    assert lake.optimize(dry_run=True).files_before == 0


def test_the_files_of_some_tensors_only(lake, model):
    done = lake.optimize("dense")
    assert done.files_before == 5
    assert len(live(lake)) == 11
    check(lake, model)
    assert lake.optimize(["dense"]).files_before == 0
    assert lake.optimize([]).files_before == 0
    assert lake.optimize(["hits", "wide"]).files_before == 10
    with pytest.raises(tl.TensorNotFoundError, match="did you mean 'hits'"):
        lake.optimize(["hit"])


def test_mistakes_are_named(lake, model):
    with pytest.raises(tl.InvalidOptionError, match="min_files is 1"):
        lake.optimize(min_files=1)
    with pytest.raises(tl.InvalidOptionError, match="target_bytes='1GB' is not a whole number of"):
        lake.optimize(target_bytes="1GB")
    with pytest.raises(tl.InvalidOptionError, match="min_files=None is not a whole number"):
        lake.optimize(min_files=None)
    with pytest.raises(tl.InvalidOptionError, match="target_bytes is 0"):
        lake.optimize(target_bytes=0)
    with pytest.raises(tl.InvalidOptionError, match="1 GiB"):
        lake.optimize(target_bytes=1 << 40)
    with pytest.raises(tl.InvalidOptionError, match="max_bytes is 0"):
        lake.optimize(max_bytes=0)
    with pytest.raises(tl.InvalidOptionError, match="for reading only"):
        tl.open(lake.uri, version=1).optimize()


def test_a_lake_without_a_table(lake):
    with pytest.raises(tl.TableNotFoundError):
        lake.optimize()


def test_a_slice_reads_one_row_group_before_and_after(lake, model):
    keys = {"dense": np.s_[4], "hits": np.s_[3], "wide": np.s_[:, 6:8]}
    counts = {}
    for name, key in keys.items():
        plan = lake[name].explain(key)
        counts[name] = [len(f.row_groups) for f in plan.files]
    assert counts == {name: [1] for name in keys}
    lake.optimize()
    for name, key in keys.items():
        assert [len(f.row_groups) for f in lake[name].explain(key).files] == [1]


def test_row_groups_become_as_large_as_the_layout_wants_them(lake):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (60, 1, 100, 1000), np.uint8)  # 100 kB a day
    for day in x:
        lake.write("x", day[None], mode="append", codec="raw", block_shape=(1, 1, 50, 1000))
    lake.optimize()
    (path,) = live(lake)
    meta = pq.read_metadata(f"{lake.uri}/{path}")
    sizes = [meta.row_group(g).num_rows * 50_000 for g in range(meta.num_row_groups - 1)]
    assert sum(sizes) == x.nbytes
    assert max(sizes) <= 2 << 20
    assert len(sizes) <= 8
    for day in range(60):
        plan = lake["x"].explain(np.s_[day])
        assert [len(f.row_groups) for f in plan.files] == [1]


def test_small_tensors_share_row_groups(lake):
    for i in range(12):
        lake.write(f"t/{i:02}", np.full((4, 4), i + 1.0), block_shape=(2, 4), layout="ftsf")
    lake.optimize()
    (path,) = live(lake)
    assert pq.read_metadata(f"{lake.uri}/{path}").num_row_groups == 2, "data, and metadata"
    for i in range(12):
        assert (lake[f"t/{i:02}"][...] == i + 1).all()
        assert (lake[f"t/{i:02}"][2:, 1] == i + 1).all()
    lake["t/05"][1:3] = 7
    lake.delete("t/06")
    assert lake["t/05"][:, 0].tolist() == [6, 7, 7, 6]
    assert len(lake) == 11


def test_columns_of_users_are_kept(lake, model):
    table = deltalake.DeltaTable(lake.uri)
    table.alter.add_columns([deltalake.Field("owner", deltalake.schema.PrimitiveType("string"))])
    deltalake.DeltaTable(lake.uri).update(updates={"owner": "'me'"}, predicate="id = 'dense'")
    lake.optimize()
    found = rows_of(lake)
    owned = pa.compute.equal(found["owner"], "me").fill_null(False)
    assert found.filter(owned)["id"].unique().to_pylist() == ["dense"]
    assert owned.to_pylist().count(True) == 10
    check(lake, model)


def test_rows_that_lie_in_any_order_are_sorted(lake, model):
    """What a writer of plain Delta may leave: files and row groups that mix everything."""
    snapshot = snapshot_of(lake)
    paths = snapshot.files.path
    table = pa.Table.from_batches([b for p in paths for b in live_batches(snapshot, p)])
    order = np.random.default_rng(1).permutation(table.num_rows)
    mixed = table.take(pa.array(order)).combine_chunks()
    deltalake.write_deltalake(lake.uri, mixed.slice(0, 30), mode="overwrite")
    for start in range(30, mixed.num_rows, 30):
        deltalake.write_deltalake(lake.uri, mixed.slice(start, 30), mode="append")
    before = rows_of(lake)
    check(lake, model)
    lake.optimize()
    (path,) = live(lake)
    assert rows_of(lake).equals(before)
    data = pq.read_table(f"{lake.uri}/{path}", columns=["id", "seq", "nnz"])
    data = data.filter(pa.compute.greater(data["nnz"], 0)).select(["id", "seq"])
    assert data.equals(data.sort_by([("id", "ascending"), ("seq", "ascending")]))
    check(lake, model)


def beside(lake, change, times=1):
    """Compact, while another writer makes a change after the rows were read and before the commit."""
    other = tl.open(lake.uri)
    calls = 0

    def row_group_bytes(layout):
        nonlocal calls
        calls += 1
        if calls <= times:
            change(other)
        return 1 << 20

    return compact.compact(Storage(lake.uri), None, row_group_bytes)


@pytest.mark.local_disk
def test_an_overwritten_tensor_does_not_come_back(lake, model):
    model["hits"] = np.full((2, 3), 5.0)
    done = beside(lake, lambda o: o.write("hits", model["hits"], mode="overwrite", layout="ftsf"))
    assert done.files_after == 1, "the rest was brought together all the same"
    check(lake, model)
    others = {p.name for p in Path(lake.uri).glob("*.parquet")} - set(live(lake))
    assert len(others) == 15, "files of older versions; what lost is gone"


def test_a_deleted_tensor_does_not_come_back(lake, model):
    del model["wide"]
    beside(lake, lambda o: o.delete("wide"))
    check(lake, model)


def test_an_append_beside_it_survives_and_is_not_told(lake, model):
    more = np.full((1, 8, 16), 9.0)
    done = beside(lake, lambda o: o.write("dense", more, mode="append"))
    model["dense"] = np.concatenate([model["dense"], more])
    check(lake, model)
    assert done.files_before == 15
    assert len(live(lake)) == 2


def test_an_append_that_began_before_survives(lake, model):
    def slabs():
        yield np.full((1, 8, 16), 3.0)
        tl.open(lake.uri).optimize()
        yield np.full((1, 8, 16), 4.0)

    lake.write("dense", slabs(), mode="append")
    more = np.concatenate([np.full((1, 8, 16), 3.0), np.full((1, 8, 16), 4.0)])
    model["dense"] = np.concatenate([model["dense"], more])
    check(lake, model)


def test_it_ends_though_all_that_it_reads_is_overwritten(lake, model):
    x = np.full((2, 3), 5.0)

    def overwrite(other):
        for name in ("hits", "wide"):
            other.write(name, x, mode="overwrite", layout="ftsf")
            other.write(name, x, mode="append")

    beside(lake, overwrite, times=10**6)
    model |= dict.fromkeys(("hits", "wide"), np.concatenate([x, x]))
    check(lake, model)
    lake.optimize()
    assert len(live(lake)) == 1
    check(lake, model)


def overwrite_dense(lake, model):
    model["dense"] = np.full((2, 8, 16), 4.0)
    lake.write("dense", model["dense"], mode="overwrite")


def assign_dense(lake, model):
    model["dense"] = model["dense"].copy()
    model["dense"][1, 2:5] = 6.0
    lake["dense"][1, 2:5] = 6.0


def assign_sparse(lake, model):
    model["hits"] = model["hits"].copy()
    model["hits"][0] = 0
    lake["hits"][0] = 0


def delete_dense(lake, model):
    del model["dense"]
    lake.delete("dense")


def convert_dense(lake, model):
    lake.convert("dense", layout="csr")


@pytest.mark.parametrize(
    "change", [overwrite_dense, assign_dense, assign_sparse, delete_dense, convert_dense]
)
def test_a_change_whose_files_are_moved_is_computed_anew(lake, model, monkeypatch, change):
    commit, compactions = put.commit, []

    def after_a_compaction(storage, changes):
        if not compactions:
            compactions.append(tl.open(lake.uri).optimize())
        return commit(storage, changes)

    monkeypatch.setattr(put, "commit", after_a_compaction)
    change(lake, model)
    assert compactions[0].files_after == 1
    check(lake, model)


def append_many(path, name, count):
    lake = tl.open(path)
    for i in range(count):
        lake.write(name, np.full((1, 4), i + 1), mode="append")


def overwrite_many(path, count):
    lake = tl.open(path)
    done = 0
    while done < count:
        x = np.full((done % 3 + 1, 5), done + 1)
        lake.write("turns", x, mode="overwrite")
        if done % 2:
            lake.write("turns", x, mode="append")
        done += 1


def optimize_until(path, stop, queue):
    lake = tl.open(path)
    runs = merged = 0
    while not stop.is_set() or runs == 0:
        try:
            merged += lake.optimize().files_before
        except tl.ConcurrentWriteError:
            continue
        runs += 1
    queue.put((runs, merged))


def test_writers_and_compaction_beside_each_other(place):
    path = place
    tl.open(path).write("turns", np.zeros(3))
    context = multiprocessing.get_context("spawn")
    stop, queue = context.Event(), context.Queue()
    writers = [context.Process(target=append_many, args=(path, f"grows/{k}", 25)) for k in range(2)]
    writers.append(context.Process(target=overwrite_many, args=(path, 12)))
    compaction = context.Process(target=optimize_until, args=(path, stop, queue))
    for process in (*writers, compaction):
        process.start()
    for process in writers:
        process.join(300)
        assert process.exitcode == 0
    stop.set()
    runs, merged = queue.get(timeout=300)
    compaction.join(300)
    assert compaction.exitcode == 0
    assert runs >= 1
    assert merged >= 2
    last = np.full((3, 5), 12)
    want = {f"grows/{k}": np.repeat(np.arange(25)[:, None] + 1, 4, axis=1) for k in range(2)}
    want["turns"] = np.concatenate([last, last])
    lake = tl.open(path)
    for _ in range(2):
        assert list(lake) == sorted(want)
        for name, x in want.items():
            got = lake[name][...]
            np.testing.assert_array_equal(got if isinstance(got, np.ndarray) else got.todense(), x)
        lake.optimize()


MEMORY = """
    import sys, pyarrow as pa, tensorlake_spark as tl

    done = tl.open(sys.argv[1]).optimize(target_bytes=1 << 30)
    print(done.bytes_before >> 20, pa.default_memory_pool().max_memory() >> 20)
"""


def test_memory_does_not_grow_with_the_files(tmp_path):
    """All becomes one file, so that all that could be held at once is there at once."""
    rng = np.random.default_rng(0)
    found = {}
    for name, count in (("small", 4), ("large", 24)):
        lake = tl.open(tmp_path / name)
        for _ in range(count):
            x = rng.integers(0, 256, (1, 8, 1 << 20), np.uint8)
            lake.write("x", x, mode="append", codec="raw", block_shape=(1, 1, 1 << 20))
        run = [sys.executable, "-c", textwrap.dedent(MEMORY), lake.uri]
        done = subprocess.run(run, capture_output=True, text=True, timeout=600, check=True)
        found[name] = [int(x) for x in done.stdout.split()]
    assert (found["small"][0], found["large"][0]) == (32, 192)
    assert found["large"][1] <= found["small"][1] + 8, found
    assert found["large"][1] < 64, found
