"""Batches with a number, by Python: names that may not be, and numbers that other tensors have taken."""

import logging
from pathlib import Path

import numpy as np
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

import tensorlake_spark as tl
from tensorlake_spark.delta.log import history
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.writing.app_transaction import check_transaction, is_repeated


@pytest.mark.parametrize(
    ("transaction", "says"),
    [
        (("tensor/x", 3), "'tensor/x' of who writes the batches .* counts the changes of a tensor"),
        (("tag/v1", 3), "'tag/v1' .* names a version; choose another name"),
        (("", 3), "is empty"),
        (("  ", 3), "is empty"),
        (("nightly", -1), "number -1 of a batch of 'nightly' is not from 0"),
        (("nightly", 2**63), "is not from 0"),
        (("nightly", "7"), "not a pair"),
        (
            ("night\ud800ly", 7),
            r"the name 'night\\ud800ly' has half of a character, .* at character 6",
        ),
        ("nightly", "not a pair"),
    ],
)
def test_names_and_numbers_that_may_not_be(lake, transaction, says):
    lake.write("x", np.zeros(3))
    with pytest.raises(tl.InvalidOptionError, match=says):
        lake.write("x", np.ones(3), mode="append", transaction=transaction)
    assert lake["x"].shape == (3,)


def test_the_first_and_the_last_number():
    for number in (0, 2**63 - 1):
        check_transaction(("tensors", number))


def test_a_number_of_another_tensor_is_told(lake):
    lake.write("photos", np.zeros(3), transaction=("nightly", 1))
    says = (
        "batch 1 of 'nightly' counts as done in .* no tensor 'labels'.*a name of its own.*greater"
    )
    for mode in ("error", "append", "overwrite"):
        with pytest.raises(tl.InvalidOptionError, match=says):
            lake.write("labels", np.ones(3), mode=mode, transaction=("nightly", 1))
    lake.delete("photos")
    with pytest.raises(tl.InvalidOptionError, match=r"no tensor 'photos'.* deleted since"):
        lake.write("photos", np.ones(3), transaction=("nightly", 1))
    assert lake.write("labels", np.ones(3), transaction=("nightly", 2)).shape == (3,)


SAYS = (
    r"batch 1 of 'nightly' counts as done in .*, because 'photos' was written under that name; nothing is written "
    r"of 'labels'; give every tensor a name of its own \(txnAppId\), or this batch a greater number \(txnVersion\)"
)


@pytest.fixture
def both(lake):
    """Two tensors, and a batch that wrote one of them."""
    lake.write("labels", np.zeros(3))
    lake.write("photos", np.zeros(3), transaction=("nightly", 1))
    return lake


@pytest.mark.both_stores
def test_a_number_of_another_tensor_is_told_where_both_are_there(both):
    version = both.version
    for mode in ("error", "append", "overwrite"):
        with pytest.raises(tl.InvalidOptionError, match=SAYS):
            both.write("labels", np.ones(3), mode=mode, transaction=("nightly", 1))
    assert both.version == version
    both.write("labels", np.ones(3), mode="append", transaction=("nightly", 2))
    with pytest.raises(tl.InvalidOptionError, match=r"because 'labels' was written.*of 'photos'"):
        both.write("photos", np.ones(3), mode="append", transaction=("nightly", 2))


def test_a_repeat_of_an_earlier_batch_is_one(both, caplog):
    for tensor, number in (
        ("labels", 2),
        ("photos", 4),
        ("photos", 4),
        ("labels", 2),
        ("photos", 1),
    ):
        both.write(tensor, np.ones(3), mode="append", transaction=("nightly", number))
    assert [both[name].shape for name in ("labels", "photos")] == [(6,), (6,)]
    assert caplog.text == ""
    with pytest.raises(tl.InvalidOptionError, match=r"batch 3 .* because 'photos' was written"):
        both.write("labels", np.ones(3), mode="append", transaction=("nightly", 3))


def test_a_group_is_what_is_in_it(both):
    both.write("g/a", np.zeros(3), transaction=("group", 1))
    both.write("h/a", np.zeros(3))
    found = Snapshot.open(Storage(both.uri))
    assert is_repeated(found, ("group", 1), "g", is_group=True)
    with pytest.raises(
        tl.InvalidOptionError, match=r"'g/a' was written .* nothing .* of 'h/\.\.\.';"
    ):
        is_repeated(found, ("group", 1), "h", is_group=True)


@pytest.mark.local_disk
def test_what_the_log_does_not_say_counts_as_done(both, monkeypatch):
    storage = Storage(both.uri)
    rows = Snapshot.open(storage).table.to_pyarrow_table()
    props = CommitProperties(app_transactions=[Transaction("theirs", 1)])
    write_deltalake(both.uri, rows.slice(0, 0), mode="append", commit_properties=props)
    assert is_repeated(Snapshot.open(storage), ("theirs", 1), "labels"), (
        "its writer counts no tensors"
    )
    with pytest.raises(tl.InvalidOptionError, match=SAYS):
        is_repeated(Snapshot.open(storage), ("nightly", 1), "labels")
    (read,) = [v for v, *_ in history._read(Snapshot.open(storage)) if v == 2]
    Snapshot.open(storage).table.create_checkpoint()
    for version in range(read + 1):
        Path(both.uri, "_delta_log", f"{version:020}.json").unlink()
    assert is_repeated(Snapshot.open(storage), ("nightly", 1), "labels"), "the commit is gone"


def test_in_a_block_that_is_repeated_it_is_a_warning(both, caplog):
    """A block may delete what it wrote, so that its commit does not name it."""
    with both.transaction(transaction=("nightly", 1)) as tx:
        tx.write("photos", np.ones(3), mode="append")
        assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []
        tx.write("labels", np.ones(3), mode="append")
    (said,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "nothing is written of 'labels'; give every tensor a name of its own" in said
    assert both["labels"].shape == (3,)
