"""Rows in Morton order: slices on inner axes read less, and nothing else changes."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tensorlake_spark as tl
from tensorlake_spark.delta.files.compacting import compaction as compact
from tensorlake_spark.delta.files.compacting.rewrite import live_batches
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.tensor.spec import STORED_AXES
from tensorlake_spark.upkeep import zorder as arrange

BOX = np.s_[:, 64:128, 64:128]
SMALL = 4 << 20  # of files, so that there are several


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 256, (128, 384, 384), np.uint8)


@pytest.fixture
def tiles(lake, x):
    lake.write("tiles", x, block_shape=(2, 32, 32), axes=("t", "y", "x"), codec="raw")
    return lake


def rows_of(lake, name):
    """What is stored in every data row but for its place, sorted."""
    snapshot = Snapshot.open(Storage(lake.uri))
    batches = [b for path in snapshot.files.path for b in live_batches(snapshot, path)]
    table = pa.Table.from_batches(batches)
    table = table.filter(pa.compute.equal(table["id"], name))
    table = table.filter(pa.compute.greater(table["nnz"], 0))
    seqs = table["seq"].to_pylist()
    assert len(set(seqs)) == len(seqs)
    return sorted(map(repr, table.drop(["seq"]).to_pylist())), sorted(seqs)


def test_a_box_on_inner_axes_reads_a_third_or_less(tiles, x):
    before = tiles["tiles"].explain(BOX).n_bytes
    rows = rows_of(tiles, "tiles")
    done = tiles.optimize("tiles", zorder=("y", "x"), target_bytes=SMALL)
    assert done.files_before == 1
    assert done.files_after > 1
    after = tiles["tiles"].explain(BOX).n_bytes
    assert after <= before / 3
    assert rows_of(tiles, "tiles") == rows, "payloads, checksums and the set of places"
    assert np.array_equal(tiles["tiles"][BOX], x[BOX])
    assert np.array_equal(tiles["tiles"][...], x)
    again = tiles.optimize("tiles", zorder=("y", "x"), target_bytes=SMALL)
    assert (again.files_before, again.version) == (0, done.version)


@pytest.mark.local_disk
def test_the_log_says_that_no_data_changed_and_no_tensor_did(tiles):
    ref = tiles["tiles"]
    version = tiles.optimize(zorder=["y", "x"]).version
    log = Path(tiles.uri, "_delta_log", f"{version:020}.json").read_text().splitlines()
    actions = [json.loads(line) for line in log]
    moves = [a.get("add") or a["remove"] for a in actions if "add" in a or "remove" in a]
    assert moves
    assert not any(action["dataChange"] for action in moves)
    assert not any("txn" in action for action in actions)
    ref[0, 0] = 7  # from before: computed anew, for the tensor is what it was
    assert (tiles["tiles"][0, 0] == 7).all()


def test_only_new_rows_are_arranged_later(tiles, x):
    tiles.optimize(zorder=("y", "x"), target_bytes=SMALL)
    old = set(Snapshot.open(Storage(tiles.uri)).files.path)
    tiles.write("tiles", x[:8], mode="append")
    done = tiles.optimize(zorder=("y", "x"), target_bytes=SMALL)
    assert 0 < done.files_before <= 3, "the append, and what was small"
    assert len(old & set(Snapshot.open(Storage(tiles.uri)).files.path)) >= len(old) - 2
    assert np.array_equal(tiles["tiles"][...], np.concatenate([x, x[:8]]))
    tiles.optimize()
    for files in (1, 0):  # one file of two runs is brought into one order, and stays so
        assert tiles.optimize(zorder=("y", "x")).files_before == files
        tiles.optimize()


def test_sparse_blocks_and_neighbours_in_the_same_file(lake):
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((20, 60, 60)) < 0.02, rng.integers(1, 9, (20, 60, 60)), 0)
    lake.write("hits", tl.SparseTensor.from_dense(dense), layout="bsgs", block_shape=(1, 10, 10))
    lake.write("small", np.ones(3))
    lake.optimize()
    lake.optimize("hits", zorder=(1, -1))
    assert np.array_equal(lake["hits"][...].todense(), dense)
    assert np.array_equal(lake["hits"][:, 11, 5:20].todense(), dense[:, 11, 5:20])
    assert lake["small"][...].tolist() == [1, 1, 1]
    assert sorted(lake) == ["hits", "small"]


def test_a_dry_run_and_a_bound(tiles):
    plan = tiles.optimize(zorder=("y",), target_bytes=SMALL, dry_run=True)
    assert plan.files_before == 1
    assert plan.version == tiles.version
    assert tiles.optimize(zorder=("y", "x"), max_bytes=1000).files_before == 0
    assert tiles.version == plan.version


@pytest.mark.parametrize("names", [("depth",), (3,), (), ("y", 1), ("y", "y")])
def test_axes_that_are_not_there(tiles, names):
    with pytest.raises(tl.InvalidOptionError, match="ax"):
        tiles.optimize("tiles", zorder=names)


def test_axes_whose_corners_are_not_stored_order_nothing(lake):
    lake.write("deep", np.ones((1,) * STORED_AXES + (2,)), block_shape=(1,) * (STORED_AXES + 1))
    with pytest.raises(tl.InvalidOptionError, match=f"past the first {STORED_AXES}"):
        lake.optimize("deep", zorder=[STORED_AXES])
    report = lake.optimize("deep", zorder=[STORED_AXES - 1])
    assert (report.files_before, report.files_after, report.rows) == (0, 0, 0)
    assert (report.bytes_before, report.bytes_after, report.version) == (0, 0, lake.version)


def test_tensors_that_have_no_such_axes_stay(tiles):
    tiles.write("flat", np.ones(4))
    version = tiles.optimize(zorder=("y", "x")).version
    with pytest.raises(tl.InvalidOptionError, match="'flat' has no axis 'y'; it has 1 axes"):
        tiles.optimize("flat", zorder=("y",))
    assert tiles.version == version


@pytest.mark.parametrize("names", [("depth",), (), ("", ""), ("y", "y"), ("0", "9")])
def test_axes_that_no_tensor_has(tiles, names):
    tiles.write("flat", np.ones(4))
    version = tiles.version
    with pytest.raises(
        tl.InvalidOptionError, match=r"'flat' has no axis|zorder .* should name axes"
    ):
        tiles.optimize(zorder=names)
    assert tiles.version == version


def test_the_order_of_duplicates_means_something(lake):
    one = tl.SparseTensor([[0], [0]], [1.0], (4, 4))
    lake.write("sums", one, layout="bsgs", duplicates="sum")
    lake.write("sums", one, mode="append", axis=None)
    remedy = re.escape("lake.write('sums', lake['sums'], mode='overwrite')")
    with pytest.raises(tl.InvalidOptionError, match=f"combines duplicates by 'sum'.*{remedy}"):
        lake.optimize("sums", zorder=(0, 1))
    assert lake.optimize(zorder=(0, 1)).files_before == 0


def test_duplicates_that_were_combined_have_no_order(lake):
    """The remedy that the message names; a convert keeps the rule, and so the order."""
    one = tl.SparseTensor.from_dense(np.arange(1.0, 65).reshape(8, 8))
    given = {"layout": "bsgs", "block_shape": (2, 2), "axes": ("y", "x"), "attrs": {"unit": "K"}}
    lake.write("sums", one, duplicates="sum", **given)
    lake.write("sums", one, mode="append", axis=None)
    lake.convert("sums", layout="bsgs", block_shape=(2, 2))
    with pytest.raises(tl.InvalidOptionError, match="to combine them now and lose the rule"):
        lake.optimize("sums", zorder=("x", "y"))
    lake.write("sums", lake["sums"], mode="overwrite", **given)
    assert lake.optimize("sums", zorder=("x", "y")).files_before == 1
    np.testing.assert_array_equal(lake["sums"][...].todense(), 2 * one.todense())
    assert (lake["sums"].axes, lake["sums"].attrs) == (("y", "x"), {"unit": "K"})


@pytest.mark.parametrize(
    "number",
    [{"target_bytes": -1}, {"target_bytes": 2 << 30}, {"min_files": -3}, {"max_bytes": -5}],
)
def test_numbers_that_make_no_sense(lake, number):
    lake.write("x", np.ones((8, 8)), block_shape=(2, 2))
    (name,) = number
    with pytest.raises(tl.InvalidOptionError, match=f"{name} is"):
        lake.optimize("x", zorder=(1, 0), **number)
    assert lake.version == 1


def test_a_table_that_wants_large_files_gets_such_as_can_be_sorted(lake, monkeypatch):
    """As a compaction: rows that are brought together stay below Arrow's 2 GiB."""
    x = np.arange(1, 257).reshape(16, 16)
    lake.write("x", x, block_shape=(2, 2), codec="raw")
    DeltaTable(lake.uri).alter.set_table_properties({"delta.targetFileSize": "8gb"})
    monkeypatch.setattr(compact, "MOST_BYTES", 4000)
    assert lake.optimize("x", zorder=(1, 0)).files_after > 3
    assert np.array_equal(lake["x"][...], x)


def test_rows_that_share_a_place_are_told(lake):
    """Writers of this package give each its own; how reads take them is the same."""
    x = np.arange(1, 257).reshape(16, 16)
    lake.write("x", x, block_shape=(4, 4))
    rows = DeltaTable(lake.uri).to_pyarrow_table()
    at = rows.schema.get_field_index("seq")
    halved = [
        n // 2 if nnz else n for n, nnz in zip(*(rows[c].to_pylist() for c in ("seq", "nnz")))
    ]
    write_deltalake(
        lake.uri, rows.set_column(at, rows.schema.field(at), [halved]), mode="overwrite"
    )
    assert np.array_equal(lake["x"][...], x)
    version = lake.version
    with pytest.raises(tl.InvalidOptionError, match=r"'x' share a place.*lake\.convert\(\)"):
        lake.optimize("x", zorder=(1, 0))
    assert lake.version == version
    lake.convert("x", block_shape=(4, 4))
    assert lake.optimize("x", zorder=(1, 0)).files_before == 1
    assert np.array_equal(lake["x"][...], x)


def test_an_append_beside_it_lands_and_one_that_moves_its_files_makes_it_anew(
    tiles, x, monkeypatch
):
    commit, done = arrange.commit, []

    def beside(storage, change):
        if not done:
            other = tl.open(tiles.uri)
            other.write("tiles", x[:2], mode="append")
            other["tiles"][0, 3] = 9
            done.append(1)
        return commit(storage, change)

    monkeypatch.setattr(arrange, "commit", beside)
    tiles.optimize("tiles", zorder=("y", "x"))
    want = np.concatenate([x, x[:2]])
    want[0, 3] = 9
    assert np.array_equal(tiles["tiles"][...], want)
    assert tiles.vacuum(0) == [] or np.array_equal(tiles["tiles"][...], want)


def test_an_order_that_is_no_list_of_axes_is_named(tmp_path):
    lake = tl.open(tmp_path)
    lake.write("x", np.zeros((4, 4)))
    for ids in (None, "x"):
        with pytest.raises(
            tl.InvalidOptionError, match=r"zorder=True is no list of axes; name them"
        ):
            lake.optimize(ids, zorder=True)
