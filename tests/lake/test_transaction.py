"""Transactions: changes of many tensors in one commit, all of them or none."""

import logging
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable, Field
from stored import drop_statistics

import tensorlake_spark as tl
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.writing import overlay, uncommitted


@pytest.fixture
def lake(tmp_path):
    return tl.open(tmp_path / "lake")


def parquet(lake):
    return {path.name for path in Path(lake.uri).glob("*.parquet")}


def live(lake):
    return set(Snapshot.open(Storage(lake.uri)).files.path)


def test_many_tensors_are_one_commit_and_share_a_file(lake):
    with lake.transaction() as tx:
        for i in range(50):
            tx.write(f"small/{i}", np.full((3, i), i))
        assert list(lake) == []
        assert len(tx) == len(list(tx)) == 50
    assert (lake.version, tx.version) == (1, 1)
    assert len(live(lake)) == 1
    assert parquet(lake) == live(lake)
    for i in range(50):
        assert (lake[f"small/{i}"][:] == np.full((3, i), i)).all()
    assert lake.history()["operation"].tolist()[0] == "transaction"
    assert lake.check().ok


def test_an_exception_leaves_nothing(lake):
    lake.write("x", np.arange(3))
    before = live(lake)
    with pytest.raises(ZeroDivisionError), lake.transaction() as tx:
        tx.write("y", np.random.default_rng(0).random(3 << 20))
        tx.delete("x")
        1 / 0
    assert lake.version == 1
    assert list(lake) == ["x"]
    assert parquet(lake) == live(lake) == before


def test_an_exception_leaves_no_table_where_none_was(lake):
    with pytest.raises(KeyError), lake.transaction() as tx:
        tx.write("x", np.arange(3))
        tx["y"]
    assert lake.version is None


def test_an_empty_block_commits_nothing(lake):
    with lake.transaction() as tx:
        assert list(tx) == []
    assert lake.version is None
    assert tx.version is None
    lake.write("x", np.arange(3))
    with lake.transaction() as tx:
        tx["x"][:0] = 1
        tx.write("y", np.arange(3))
        tx.delete("y")
        assert "y" not in tx
    assert lake.version == 1
    assert parquet(lake) == live(lake)


def test_the_block_reads_its_own_writes(lake):
    lake.write("a", np.zeros((4, 4)), layout="ftsf", attrs={"unit": "m"})
    lake.write("b", np.arange(5))
    with lake.transaction() as tx:
        ref = tx["a"]
        ref[1:3, 2] = 5
        tx.write("a", np.ones((2, 4)), mode="append")
        tx["a"][5] = 7
        ref.update_attrs({"scale": 2})
        assert ref.shape == (6, 4)
        tx.delete("b")
        tx.write("c", np.eye(20), layout="csr")
        tx["c"][0, 1] = 3
        assert "b" not in tx
        assert list(tx) == ["a", "c"]
        assert ref[:, 2].tolist() == [0, 5, 5, 0, 1, 7]
        assert tx["c"][0].todense().tolist()[:3] == [1, 3, 0]
        assert lake["b"].shape == (5,)
        assert (lake["a"][...] == 0).all()
    assert lake.version == 3
    assert lake["a"][:, 2].tolist() == [0, 5, 5, 0, 1, 7]
    assert dict(lake["a"].attrs) == {"unit": "m", "scale": 2}
    assert lake["c"][0].todense().tolist()[:3] == [1, 3, 0]
    assert "b" not in lake
    assert lake.check().ok
    assert lake.history()["tensors"][0] == ("a", "b", "c")


def test_one_tensor_again_and_again(lake):
    with lake.transaction() as tx:
        tx.write("x", np.arange(3))
        with pytest.raises(tl.TensorExistsError, match="tensor 'x' exists"):
            tx.write("x", np.arange(4))
        tx.write("x", np.arange(4), mode="overwrite")
        tx.delete("x")
        with pytest.raises(tl.TensorNotFoundError, match="no tensor 'x' in this transaction"):
            tx.delete("x")
        tx.write("x", np.arange(6.0), attrs={"n": (1, 2)})
        assert tx["x"].attrs["n"] == [1, 2]
        tx.convert("x", layout="coo")
    assert lake["x"].layout == "coo"
    assert lake["x"][...].todense().tolist() == [0, 1, 2, 3, 4, 5]
    assert lake.version == 1
    with lake.transaction() as tx:
        tx.delete("x")
        tx.write("x", np.arange(2))
    assert lake["x"][:].tolist() == [0, 1]


def test_what_fails_in_the_block_and_is_caught_changes_nothing(lake):
    with lake.transaction() as tx:
        tx.write("x", np.arange(3))
        with pytest.raises(tl.InvalidTensorError, match="not JSON"):
            tx.write("x", np.zeros(9), mode="overwrite", attrs={"a": object()})
        with pytest.raises(tl.InvalidTensorError, match="cannot be assigned"):
            tx["x"][:] = np.zeros((4, 4), int)
        assert tx["x"][:].tolist() == [0, 1, 2]
    assert lake["x"][:].tolist() == [0, 1, 2]


def test_what_the_caller_does_with_his_array_later_does_not_matter(lake):
    x, attrs = np.arange(8), {"a": [1]}
    with lake.transaction() as tx:
        tx.write("x", x, attrs=attrs)
        x[:] = 0
        attrs["a"].append(2)
    assert lake["x"][:].tolist() == [*range(8)]
    assert lake["x"].attrs["a"] == [1]


def test_large_tensors_go_to_files_at_once_and_are_replaced_there(lake):
    x = np.random.default_rng(1).random((3, 1 << 20))
    with lake.transaction() as tx:
        tx.write("x", x)
        (first,) = parquet(lake)
        tx["x"][1, :5] = 2
        x[1, :5] = 2
        assert first not in parquet(lake), "what is replaced needs no room"
        tx.write("y", x[:1])
        tx.write("x", x[:1], mode="append")
        tx["x"][3] = 0
        x = np.concatenate([x, x[:1] * 0])
        assert np.array_equal(tx["x"][...], x)
    assert np.array_equal(lake["x"][...], x)
    assert parquet(lake) == live(lake)
    assert lake.check().ok


def test_rows_that_wait_are_bounded(lake, monkeypatch):
    monkeypatch.setattr(uncommitted, "WAITING_BYTES", 20_000)
    monkeypatch.setattr(overlay, "SMALL_BYTES", 10_000)
    model = {f"t/{i}": np.random.default_rng(i).random(100 + i) for i in range(40)}
    lake.write("t/old", np.arange(9))
    with lake.transaction() as tx:
        for name in sorted(model, reverse=True):
            tx.write(name, model[name])
        assert 3 < len(parquet(lake)) < 12
        for name in list(model)[::3]:
            model[name] = model[name] * 2
            tx[name][:] = model[name]
        for name in list(model)[1::3]:
            tx.delete(name)
            del model[name]
        tx.write("t/1", np.zeros(3))
        for name in model:
            assert np.array_equal(tx[name][:], model[name]), name
    assert sorted(lake) == sorted([*model, "t/1", "t/old"])
    for name in model:
        assert np.array_equal(lake[name][:], model[name]), name
    assert len(live(lake)) < 14
    assert lake.version == 2
    assert lake.check().ok


def test_small_tensors_of_one_file_are_assigned_to_without_writing_it_again_and_again(lake):
    with lake.transaction() as tx:
        for i in range(30):
            tx.write(f"s/{i:02}", np.arange(10) + i)
    with lake.transaction() as tx:
        for i in range(0, 30, 2):
            tx[f"s/{i:02}"][0] = -1
        assert len(parquet(lake)) == 1, "the rows wait"
    assert len(live(lake)) == 2
    for i in range(30):
        assert lake[f"s/{i:02}"][0] == (i if i % 2 else -1)
    assert lake.check().ok


def test_a_touched_tensor_that_another_writer_changed_is_an_error(lake):
    lake.write("x", np.arange(3))
    lake.write("y", np.arange(3))
    block = lake.transaction()
    expected = r"changed tensor 'y' in version 3.*run the block again"
    with pytest.raises(tl.ConcurrentWriteError, match=expected), block as tx:
        tx.write("z", np.arange(2))
        tx["y"][0] = 9
        lake["y"][1] = 8
    assert list(lake) == ["x", "y"]
    assert lake["y"][:].tolist() == [0, 8, 2]
    assert live(lake) <= parquet(lake)
    with lake.transaction() as tx:
        tx.write("z", np.arange(2))
        lake.write("other", np.arange(5))
        tx.write("x", np.zeros(1), mode="overwrite")
    assert lake.version == 5
    assert sorted(lake) == ["other", "x", "y", "z"]


def test_a_new_tensor_that_another_writer_wrote_first_is_an_error(lake):
    with pytest.raises(tl.ConcurrentWriteError, match="tensor 'x'"), lake.transaction() as tx:
        tx.write("x", np.arange(3))
        tl.open(lake.uri).write("x", np.arange(4))
    assert lake["x"].shape == (4,)


def test_a_compaction_beside_the_block_does_not_lose_it(lake):
    for i in range(6):
        lake.write(f"s/{i}", np.arange(10) + i)
    with lake.transaction() as tx:
        tx["s/0"][0] = -1
        tx.write("s/1", np.arange(2), mode="append")
        tx.delete("s/2")
        tx.write("s/3", np.zeros(3), mode="overwrite")
        tx.update_attrs("s/4", {"a": 1})
        assert lake.optimize().files_after == 1
    assert lake["s/0"][:3].tolist() == [-1, 1, 2]
    assert lake["s/1"].shape == (12,)
    assert "s/2" not in lake
    assert lake["s/3"].shape == (3,)
    assert lake["s/4"].attrs["a"] == 1
    assert lake["s/5"][:].tolist() == [*range(5, 15)]
    assert lake.check().ok


def test_a_compaction_of_rows_of_a_large_tensor_that_were_replaced_is_an_error_that_says_so(lake):
    x = np.random.default_rng(1).random((3, 1 << 19))
    lake.write("x", x)
    lake.write("x", x, mode="append")
    with (
        pytest.raises(tl.ConcurrentWriteError, match="run the block again"),
        lake.transaction() as tx,
    ):
        tx["x"][0, 0] = 1
        lake.optimize()
    assert np.array_equal(lake["x"][...], np.concatenate([x, x]))
    assert parquet(lake) >= live(lake)


def test_a_repeated_batch_changes_nothing_and_says_so(lake, caplog):
    def block():
        with lake.transaction(transaction=("nightly", 7)) as tx:
            ref = tx.write("x", np.arange(3))
            ref[0] = 5
            tx.update_attrs("x", {"a": 1})
            tx.write("y", np.arange(2))
            tx.delete("y")
        return tx

    lake.write("y", np.zeros(1))
    lake.delete("y")
    assert not block().is_repeated
    lake.write("y", np.zeros(2))
    version = lake.version
    with caplog.at_level(logging.INFO, "tensorlake_spark"):
        tx = block()
    assert tx.is_repeated
    assert "('nightly', 7) is committed already" in caplog.text
    assert lake.version == tx.version == version
    assert lake["x"][:].tolist() == [5, 1, 2]
    assert lake["y"].shape == (2,)


def test_a_batch_that_another_process_committed_during_the_block_is_not_committed_twice(lake):
    lake.write("x", np.arange(3))
    with lake.transaction(transaction=("nightly", 1)) as tx:
        tx.write("x", np.arange(2), mode="append")
        lake.write("x", np.arange(2), mode="append", transaction=("nightly", 1))
    assert tx.is_repeated
    assert lake["x"].shape == (5,)


def test_use_outside_of_the_block_is_an_error(lake):
    tx = lake.transaction()
    with pytest.raises(tl.InvalidOptionError, match="has not begun; use it in a with statement"):
        tx.write("x", np.arange(3))
    assert "has not begun" in repr(tx)
    with tx:
        ref = tx.write("x", np.arange(3))
        assert "changed=1" in repr(tx)
        with pytest.raises(tl.InvalidOptionError, match="one with statement"), tx:
            pass
    for use in (
        lambda: tx.write("y", np.arange(3)),
        lambda: tx.delete("x"),
        lambda: tx["x"],
        lambda: list(tx),
        lambda: ref[0],
        lambda: ref.update_attrs({}),
    ):
        with pytest.raises(tl.InvalidOptionError, match="has ended"):
            use()
    assert "has ended" in repr(tx)
    with pytest.raises(tl.InvalidOptionError, match="one with statement"), tx:
        pass
    assert lake["x"].shape == (3,)


def test_blocks_within_blocks_are_transactions_of_their_own(lake):
    with lake.transaction() as outer:
        outer.write("a", np.arange(2))
        with lake.transaction() as inner:
            inner.write("b", np.arange(3))
        assert "b" not in outer
        assert list(lake) == ["b"]
    assert sorted(lake) == ["a", "b"]


def test_what_is_refused(lake):
    lake.write("x", np.arange(3))
    with pytest.raises(tl.InvalidOptionError, match="for reading only"):
        tl.open(lake.uri, version=1).transaction()
    with pytest.raises(tl.InvalidOptionError, match="not a pair"):
        lake.transaction(transaction="nightly")
    with lake.transaction() as tx:
        with pytest.raises(tl.InvalidOptionError, match="batch of a block is given to"):
            tx.write("y", np.arange(3), transaction=("a", 1))
        with pytest.raises(tl.InvalidOptionError, match="mapping"):
            tx.update_attrs("x", [1])
        with pytest.raises(tl.TensorNotFoundError, match="no tensor 'xx'"):
            tx["xx"]
        with pytest.raises(tl.InvalidTensorError):
            tx.write("a/../b", np.arange(3))
    assert lake.version == 1


def test_columns_of_users_are_kept(lake):
    lake.write("x", np.arange(6), block_shape=(2,))
    table = DeltaTable(lake.uri)
    table.alter.add_columns([Field("who", "string")])
    table.update(updates={"who": "'me'"}, predicate="nnz > 0")
    with lake.transaction() as tx:
        tx["x"][0] = 9
        tx.write("y", np.arange(2))
    rows = DeltaTable(lake.uri).to_pandas()
    data = rows[rows["nnz"] > 0]
    assert data[data["id"] == "x"]["who"].tolist() == ["me"] * 3
    assert data[data["id"] == "y"]["who"].isna().all()
    assert lake["x"][:].tolist() == [9, 1, 2, 3, 4, 5]


@pytest.mark.local_disk
def test_rows_of_a_deleted_tensor_do_not_come_back_from_a_file_without_bounds(lake, monkeypatch):
    """The file is written anew for another tensor; that it may hold the deleted one only its rows say."""
    with lake.transaction() as t:
        for name in "abc":
            t.write(name, np.arange(4))
    drop_statistics(lake.uri)
    monkeypatch.setattr(overlay, "SMALL_BYTES", 0)  # or the rows would be taken into memory
    fresh = tl.open(lake.uri)
    with fresh.transaction() as t:
        t.delete("b")
        t["a"][3] = 77
        assert t["a"][:].tolist() == [0, 1, 2, 77]  # no row of the file that was written anew
    assert {*DeltaTable(lake.uri).to_pyarrow_table()["id"].to_pylist()} == {"a", "c"}
    assert fresh["a"][:].tolist() == [0, 1, 2, 77]


def test_rows_that_others_deleted_stay_hidden_beside_those_of_a_deleted_tensor(lake, monkeypatch):
    with lake.transaction() as t:
        for name in "ab":
            t.write(name, np.arange(4))
    base = lake._snapshot()
    (path,) = base.files.path
    changes = uncommitted.Uncommitted(base.storage, base)
    assert changes.kept(path) is None
    changes.dropped.add("b")
    assert changes.kept(path).tolist() == [True, False, True, False]
    monkeypatch.setattr(Snapshot, "kept", lambda *_: np.array([False, True, True, True]))
    assert changes.kept(path).tolist() == [False, False, True, False]
