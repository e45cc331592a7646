"""Samples that are stored come back: NumPy and Arrow are the oracle."""

import datetime as dt

import numpy as np
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from marked_samples import mark
from stored import drop_statistics
from stored_rows import everything, put, rows, same

import tensorlake_spark as tl
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage


def test_all_samples_come_back_in_order(stored):
    assert len(stored) == 800
    assert stored.sids.tolist() == list(range(800))
    assert len(stored.files) > 2
    assert stored.files[0].metadata.num_row_groups > 5
    assert same(stored.rows(None, np.arange(800)), everything())


def test_any_rows_in_any_order(stored):
    chosen = np.random.default_rng(1).integers(0, 800, 300)
    assert same(stored.rows(None, chosen), everything().take(chosen))


def test_numbers_lead_to_positions(stored):
    assert stored.positions_of(np.array([799, -1, 800, 4])).tolist() == [799, -1, -1, 4]


@pytest.mark.parametrize("compact", [False, True])
def test_files_that_others_wrote_are_put_in_order(storage, compact):
    """A plain Delta writer knows nothing of the order; positions are those of the numbers all the same."""
    table = everything()
    shuffled = np.random.default_rng(3).permutation(800)
    write_deltalake(storage.uri, table.take(shuffled[:400]), mode="append")
    write_deltalake(storage.uri, table.take(shuffled[400:]), mode="append")
    if compact:
        DeltaTable(storage.uri).optimize.compact()
    stored = StoredSamples(Snapshot.open(storage, kind=SAMPLES))
    assert stored.sids.tolist() == list(range(800))
    assert same(stored.rows(None, np.arange(800)), table)
    leaf = stored.leaf(("image", "data"))
    wanted = table.column("image")[6].as_py()
    assert bytes(stored.value(6, leaf)) == wanted["data"]
    assert stored.select(pc.field("label") == 3, [("label",)]).tolist() == [
        n for n in range(800) if n % 10 == 3 and n % 11
    ]


def test_a_column_that_came_later_is_null(storage):
    put(storage, rows(0, 10))
    DeltaTable(storage.uri).alter.add_columns([Field("late", PrimitiveType("string"), True)])
    stored = StoredSamples(Snapshot.open(storage, kind=SAMPLES))
    assert stored.rows([("late",)], np.arange(10)).column("late").null_count == 10


def test_columns_are_found_by_what_their_names_begin_with(stored):
    assert [leaf.parts for leaf in stored.under([("g", "image"), ("image", "height")])] == [
        leaf.parts
        for leaf in stored.leaves
        if leaf.parts[:2] in {("g", "image"), ("image", "height")}
    ]
    assert stored.under([("image", "hei"), ("imag",)]) == []
    assert stored.under(None) == stored.leaves

    class Name(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.compared += 1
            return str.__eq__(self, other)

    found = stored.under([tuple(map(Name, leaf.parts)) for leaf in stored.leaves])
    assert found == stored.leaves
    assert Name.compared <= 4 * sum(len(leaf.parts) for leaf in found)


def test_an_expression_reads_only_files_and_row_groups_that_may_have_it(stored):
    where = (pc.field("sid") >= 690) & (pc.field("image", "height") < 700)
    near = dict(stored.near(where))
    assert len(near) < len(stored.files)
    wanted = [n for n in range(690, 700) if n % 7 != 3]
    assert stored.select(where, [("sid",), ("image", "height")]).tolist() == wanted
    groups = dict(stored.near(pc.field("sid") == 3))
    assert groups == {0: [0]}


def test_nulls_do_not_match_and_do_not_hide_a_file(stored):
    found = stored.select(pc.field("label").is_null(), [("label",)])
    assert found.tolist() == [n for n in range(800) if n % 11 == 0]


def test_bounds_of_others_are_cut_to_milliseconds(tmp_path):
    """A time that lies after such a bound is found all the same."""
    ds = tl.dataset(tmp_path / "ds", {"a": "int64", "at": "timestamp"})
    moment = dt.datetime(2026, 1, 1, 1, 2, 3, 999999, dt.timezone.utc)
    ds.extend({"a": [1, 5], "at": [moment, moment]})
    DeltaTable(tmp_path / "ds").update(updates={"a": "a + 1"}, predicate="a = 5")
    found = tl.dataset(tmp_path / "ds").to_arrow(
        where="at > TIMESTAMP '2026-01-01 01:02:03.999500'"
    )
    assert found["a"].to_pylist() == [1, 6]


def test_rows_of_a_file_have_positions_unless_they_are_deleted(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32"})
    for first in range(0, 30, 10):
        ds.extend({"n": np.arange(first, first + 10)})
    ds.delete([3, 4, 12, 29])
    found = ds.stored
    here = []
    for number, file in enumerate(found.files):
        rows = np.arange(int(file.starts[-1]))
        at = found.positions_at(number, rows)
        assert np.array_equal(np.sort(at[at >= 0]), found.positions_in(number))
        there = np.flatnonzero(at >= 0)
        files, back = found.locate(at[there])
        assert (files == number).all()
        assert np.array_equal(back, there)
        here.append(at[at >= 0])
    assert np.array_equal(np.sort(np.concatenate(here)), np.arange(26))


@pytest.mark.local_disk
@pytest.mark.parametrize("parts", [1, 3])
def test_files_of_which_the_log_says_nothing_are_read_all_the_same(tmp_path, parts):
    ds = tl.dataset(tmp_path / "ds", {"n": "int32"})
    for part in range(parts):
        ds.extend({"n": [*range(10 * part, 10 * part + 10)]})
    drop_statistics(ds.uri)
    fresh = tl.dataset(ds.uri)
    assert len(fresh) == 10 * parts
    assert fresh["n"][:].tolist() == fresh.sids.tolist() == [*range(10 * parts)]
    some = np.array([10 * parts - 1, 3, 10 * parts])
    assert fresh.stored.positions_of(some).tolist() == [10 * parts - 1, 3, -1]
    assert tl.dataset(ds.uri).stored.sids_of(some[:2]).tolist() == some[:2].tolist()


@pytest.mark.local_disk
def test_rows_that_are_marked_have_no_position(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"n": "int32"})
    for part in range(2):
        ds.extend({"n": [*range(5 * part, 5 * part + 5)]})
    mark(Storage(ds.uri), 2)
    stored = tl.dataset(ds.uri).stored
    assert stored.positions_at(0, np.arange(5)).tolist() == [0, 1, 2, 3, 4]
    assert stored.positions_at(1, np.arange(5)).tolist() == [5, 6, -1, 7, 8]
