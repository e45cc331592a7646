"""Footers as arrays."""

import gc
from collections import OrderedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from other_writer import write_by_another
from stored import only_file, write

import tensorlake_spark as tl
from tensorlake_spark.delta.files import footer as footer_page
from tensorlake_spark.delta.files.footer import Footer, footer_at, footer_of
from tensorlake_spark.delta.store.ranges import Part
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.row import SCHEMA

pytestmark = pytest.mark.local_disk


def test_footers_answer_for_row_groups(lake):
    write(lake)
    footer = footer_of(Storage(lake.uri), only_file(lake).name)
    assert isinstance(footer, Footer)
    assert footer.may_hold("x", data=True).sum() == len(footer.rows) - 1
    assert footer.may_hold("x", data=False).sum() == 1
    # The last answer is kept.
    assert (footer.may_hold("x", data=True) != footer.may_hold("x", data=False)).all()
    assert footer.may_hold("x", data=True)[0]
    assert not footer.may_hold("y", data=True).any()
    assert "values" in footer.columns
    assert set(SCHEMA.names) >= {"id", "seq"}


def test_bounds_are_those_of_the_statistics(lake):
    lake.write("a", np.arange(12.0).reshape(4, 3), block_shape=(1, 3))
    lake.write("b", np.arange(-9, 9), block_shape=(4,))
    snapshot = lake._snapshot()
    for place in range(len(snapshot.files.path)):
        footer = footer_at(snapshot, place)
        for name in ("id", "seq", "nnz", "lo.d0", "lo.d1", "hi.d0", "hi.d1", "hi.d7"):
            least, most = footer.bounds(name)
            for g in range(footer.metadata.num_row_groups):
                group = footer.metadata.row_group(g)
                chunks = [group.column(k) for k in range(group.num_columns)]
                (found,) = [c.statistics for c in chunks if c.path_in_schema == name]
                known = found is not None and found.has_min_max
                assert (least[g], most[g]) == ((found.min, found.max) if known else (None, None))
                assert {type(least[g]), type(most[g])} <= {int, str, type(None)}


@pytest.fixture
def cache(monkeypatch):
    """An empty cache of footers: of two large ones, and four in all."""
    monkeypatch.setattr(footer_page, "_cache", OrderedDict())
    monkeypatch.setattr(footer_page, "_large", OrderedDict())
    monkeypatch.setattr(footer_page, "_KEEP", 2)
    monkeypatch.setattr(footer_page, "_KEEP_ALL", 4)
    return footer_page._cache


def test_so_many_footers_are_kept(lake, cache):
    for name in "abcdef":
        lake.write(name, np.arange(3))
    storage, names = Storage(lake.uri), lake._snapshot().files.path
    found = [footer_of(storage, name) for name in names]
    assert [name for _, name in cache] == [*names[2:]]
    assert footer_of(storage, names[2]) is found[2]
    assert footer_of(storage, names[0]) is not found[0]
    assert [name for _, name in cache] == [names[4], names[5], names[2], names[0]]


@pytest.mark.parametrize("few", ["_FEW", "_FEW_ROWS"])
def test_fewer_footers_of_many_row_groups_or_rows_are_kept(lake, cache, monkeypatch, few):
    monkeypatch.setattr(footer_page, few, 1)  # each file has one of data, and one of metadata
    for name in "abcd":
        lake.write(name, np.arange(3))
    storage, names = Storage(lake.uri), lake._snapshot().files.path
    for name in (names[0], names[1], names[0], names[2]):
        footer_of(storage, name)
    assert [name for _, name in cache] == [names[0], names[2]]
    monkeypatch.setattr(footer_page, few, 4)
    footer_of(storage, names[3])
    footer_of(storage, names[1])
    assert [name for _, name in cache] == [names[0], names[2], names[3], names[1]]
    footer_of(storage, names[0])
    assert {*footer_page._large} <= {*cache}


def test_a_footer_that_nobody_keeps_is_gone_at_once(lake, monkeypatch):
    lake.write("x", np.arange(60).reshape(20, 3), block_shape=(1, 3))
    storage, (name,) = Storage(lake.uri), lake._snapshot().files.path
    monkeypatch.setattr(footer_page, "_cache", OrderedDict())
    footer = footer_of(storage, name)
    assert "id" in footer.columns
    gc.collect()
    gc.disable()
    try:
        footer_page._cache.clear()
        del footer
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_small_columns_of_so_many_rows_are_kept(lake, monkeypatch):
    write(lake)
    name, storage = only_file(lake).name, Storage(lake.uri)
    footer = Footer(footer_of(storage, name).metadata)

    def opened(metadata):
        return storage.open_parquet(name, metadata)

    def read(*groups):
        return footer.small(opened, groups, ("seq",)).column("seq").to_pylist()

    monkeypatch.setattr(footer_page, "_SMALL_ROWS", 1)
    first, second = read(0), read(1)
    assert [*footer._small] == [(0, ("seq",))]
    assert read(0, 1) == first + second
    assert read(1, 0) == second + first


def test_small_columns_come_in_the_order_that_is_asked_for(lake):
    write(lake)
    write_by_another(lake.uri, lambda rows, path: pq.write_table(rows, path, row_group_size=2))
    name, storage = lake._snapshot().files.path[0], Storage(lake.uri)
    footer = Footer(footer_of(storage, name).metadata)
    assert len(footer.rows) == 5
    table = pq.ParquetFile(f"{lake.uri}/{name}")
    each = [table.read_row_group(g, ["seq"]).column(0).to_pylist() for g in range(len(footer.rows))]

    def opened(metadata):
        return storage.open_parquet(name, metadata)

    # Read together or one by one, whole, in part and in any order.
    for groups in ([1, 2, 3], [2, 3], [4], [3, 4], [1, 3], [3, 2, 1], [0, 1, 2, 3, 4], [2]):
        found = footer.small(opened, groups, ("seq",))
        assert found.column("seq").to_pylist() == [n for g in groups for n in each[g]]


def test_metadata_rows_are_kept_where_they_are_few(lake, monkeypatch):
    write(lake)
    tail = Part(pa.py_buffer(only_file(lake).read_bytes()), 0)
    footer = Footer(footer_of(Storage(lake.uri), only_file(lake).name).metadata)
    footer.keep_metas(tail)
    assert footer._metas is not None
    monkeypatch.setattr(footer_page, "_METAS", footer._metas.data.size - 1)
    footer = Footer(footer.metadata)
    footer.keep_metas(tail)
    assert footer._metas is None


def test_columns_that_end_behind_the_file_are_not_taken_for_equal(lake):
    write(lake)
    footer = footer_of(Storage(lake.uri), only_file(lake).name)
    whole = only_file(lake).read_bytes()
    stop = footer.span(0, ("index", "values"))[1]
    assert len(footer.raw(pa.py_buffer(whole[:stop]), [0], ("index", "values"))) == 1
    with pytest.raises(tl.CorruptDataError, match="ends after"):
        footer.raw(pa.py_buffer(whole[: stop - 1]), [0], ("index", "values"))


def test_row_groups_without_rows_hold_nothing(lake):
    """Others write them. A file that has them was taken for a damaged one."""
    x = write(lake)

    write_by_another(lake.uri, lambda rows, path: pq.write_table(rows[:0], path), is_beside=True)
    np.testing.assert_array_equal(lake["x"][:], x)
    lake["x"][3] = 7
    assert lake.check().ok
    assert lake["x"][3, 0] == 7
