"""The tensors of a version, from their metadata rows; with the catalog file: test_catalog_file.py."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from other_writer import write_by_another
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.delta.files import catalog, footer
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage


def newest(lake):
    forget()
    return Snapshot.open(Storage(lake.uri))


def test_the_row_with_the_greatest_place_holds(lake):
    lake.write("x", np.arange(3), attrs={"n": 0})
    for n in range(1, 4):
        lake.write("x", np.arange(1), mode="append", attrs={"n": n})
    meta = catalog.get(newest(lake), "x")
    assert (meta.spec.shape, meta.spec.attrs) == ((6,), {"n": 3})
    assert len(footer._cache) == 1, "one file is opened, the newest"
    assert [m.spec.shape for m in catalog.metas(newest(lake))] == [(6,)]


def test_all_tensors_by_id(lake):
    for name in ("g/b", "a", "g/a"):
        lake.write(name, np.zeros(2))
    lake.delete("a")
    found = newest(lake)
    assert catalog.ids(found) == ["g/a", "g/b"] == [m.spec.id for m in catalog.metas(found)]
    assert catalog.find(found, "a") is None
    assert catalog.ids(Snapshot.open(found.storage, 3)) == ["a", "g/a", "g/b"]


def test_a_listing_of_single_tensors_opens_no_file(lake):
    for name in ("a", "b"):
        lake.write(name, np.zeros(2))
    assert catalog.ids(newest(lake)) == ["a", "b"]
    assert len(footer._cache) == 0


def test_a_tensor_that_is_not_there_is_told_with_near_names(lake):
    lake.write("photos", np.zeros(2))
    with pytest.raises(
        tl.TensorNotFoundError, match=r"no tensor 'photo' in version 1 of .*'photos'"
    ):
        catalog.get(newest(lake), "photo")
    with pytest.raises(tl.TensorNotFoundError, match=r"no tensor 'zzz' .*; it has 'photos'$"):
        catalog.get(newest(lake), "zzz")
    with pytest.raises(tl.TensorNotFoundError, match=r"no tensor 5 "):
        catalog.get(newest(lake), 5)
    lake.delete("photos")
    with pytest.raises(tl.TensorNotFoundError, match=r"; it has no tensor$"):
        catalog.get(newest(lake), "photos")


def test_a_table_without_tensors(lake):
    lake.write("x", np.zeros(2))
    lake.delete("x")
    assert catalog.ids(newest(lake)) == []
    assert list(catalog.metas(newest(lake))) == []


@pytest.mark.local_disk
def test_files_whose_columns_are_of_several_types(lake):
    """As DuckDB and pandas write them: the catalog ended with an error of Arrow."""
    for name in ("a", "b"):
        lake.write(name, np.arange(3))

    def write(rows, path):
        columns = {field.name: rows[field.name] for field in rows.schema}  # all take nulls
        columns["shape"] = columns["shape"].cast(pa.large_list(pa.int64()))
        pq.write_table(pa.table(columns), path)

    write_by_another(lake.uri, write)
    assert lake.catalog()["id"].tolist() == ["a", "b"] == [*lake]
    assert lake.catalog()["shape"].tolist() == [(3,), (3,)]
    assert lake.check().ok
