"""An apart column is written again without its samples: what is in it is a dict of sids in the end."""

import os

import numpy as np
import pytest
from deltalake import DeltaTable

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart.apart_writer import ApartWriter
from tensorlake_spark.datasets.apart.inner_tables import inner_tables
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.samples.appending import commit_files
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

COLUMNS = {"label": "int32", "x": tl.types.Tensor("int64", apart=True)}


def update(ds, values):
    """Give samples other values of x: what a change of a dataset does."""
    storage = Storage(ds.uri)
    snapshot = Snapshot.open(storage, kind=SAMPLES)
    parts = PartsWriter(storage, snapshot, ds.schema, replaces=True)
    columns = parts.opened({"x": list(values.values())}, 0)
    assert parts.take(columns, list(values), 0) == {}
    after = commit_files(storage, [], "update", parts.finish())
    ds.refresh()
    return after


@pytest.fixture
def ds(tmp_path):
    found = tl.dataset(tmp_path / "ds", COLUMNS)
    for start in (0, 10, 20):
        found.extend(
            {"label": np.arange(10), "x": [np.full(3, n) for n in range(start, start + 10)]}
        )
    found.append({"label": 5})  # without an x
    return found


def content(ds):
    return {
        int(sid): None if x is None else x.tolist() for sid, x in zip(ds.sids, ds["x"], strict=True)
    }


def test_updated_samples_have_their_new_values_and_others_their_old_ones(ds):
    wanted = content(ds)
    values = {25: np.arange(5), 3: None, 30: np.zeros(0, "i8"), 4: np.full(1, 7)}
    update(ds, values)
    wanted |= {sid: None if v is None else v.tolist() for sid, v in values.items()}
    assert content(ds) == wanted == content(tl.dataset(ds.uri))
    update(ds, {3: np.full(2, 1), 30: np.full(2, 2)})
    assert content(ds) == wanted | {3: [1, 1], 30: [2, 2]}


def test_an_update_writes_only_the_files_that_have_the_samples(ds):
    inner = f"{ds.uri}/_columns/x"
    before, rows = set(DeltaTable(inner).file_uris()), set(DeltaTable(ds.uri).file_uris())
    update(ds, {12: np.zeros(2, "i8")})
    after = set(DeltaTable(inner).file_uris())
    assert len(before - after) == 1
    assert len(after - before) == 2
    assert set(DeltaTable(ds.uri).file_uris()) == rows


def test_an_old_version_keeps_its_values(ds):
    version, wanted = ds.version, content(ds)
    update(ds, dict.fromkeys(range(30), np.zeros(1, "i8")))
    assert content(tl.dataset(ds.uri, version=version)) == wanted
    assert content(ds)[7] == [0]


def test_batches_out_of_order_are_found(ds):
    storage = Storage(ds.uri)
    parts = PartsWriter(storage, Snapshot.open(storage, kind=SAMPLES), ds.schema, replaces=True)
    for sids in ([29, 8, 17], [2, 28]):
        parts.take({"x": [np.full(1, -sid) for sid in sids]}, sids, 0)
    commit_files(storage, [], "update", parts.finish())
    ds.refresh()
    found = content(ds)
    assert [found[sid] for sid in (29, 8, 17, 2, 28)] == [[-29], [-8], [-17], [-2], [-28]]
    assert found[9] == [9] * 3


def test_a_sample_that_is_given_twice_is_an_error(ds):
    wanted = content(ds)
    with pytest.raises(tl.InvalidSampleError, match="sample 4 is given twice"):
        storage = Storage(ds.uri)
        parts = PartsWriter(storage, Snapshot.open(storage, kind=SAMPLES), ds.schema, replaces=True)
        parts.take({"x": [np.zeros(1, "i8")] * 2}, [4, 4], 0)
        parts.finish()
    assert content(tl.dataset(ds.uri)) == wanted


def test_a_label_of_one_in_a_hundred_costs_two_percent_of_the_bytes(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"label": "int32", "image": tl.types.Image("raw", apart=True)}
    ds = tl.dataset(tmp_path / "ds", columns)
    ds.extend(
        {
            "label": np.arange(400),
            "image": list(rng.integers(0, 256, (400, 64, 64, 3)).astype("u1")),
        }
    )
    rows = sum(os.path.getsize(path) for path in DeltaTable(ds.uri).file_uris())
    all_bytes = rows + sum(
        os.path.getsize(path) for path in DeltaTable(f"{ds.uri}/_columns/image").file_uris()
    )
    assert all_bytes > 400 * 64 * 64 * 3
    assert rows <= 0.02 * all_bytes  # what a new label writes anew at most: all rows of the samples


def test_nothing_written_is_no_commit(tmp_path):
    storage = Storage(str(tmp_path / "ds"))
    writer = ApartWriter(storage, "x", COLUMNS["x"])
    assert writer.finish() == []
    assert not os.path.exists(storage.uri)


def test_what_is_aborted_leaves_no_files(tmp_path):
    storage = Storage(str(tmp_path / "ds"))
    writer = ApartWriter(storage, "x", COLUMNS["x"])
    writer.take(COLUMNS["x"].encode([np.arange(9)] * 2, "x"), range(2))
    writer.abort()
    assert not [name for _, _, names in os.walk(tmp_path) for name in names]


def test_a_version_of_the_samples_names_the_version_of_the_column(ds):
    first = inner_tables(Snapshot.open(Storage(ds.uri), kind=SAMPLES))["_columns/x"]
    after = update(ds, {1: np.zeros(1, "i8")})
    assert inner_tables(after) == {"_columns/x": first + 1}


def test_a_column_of_a_group_may_have_the_name_of_the_numbers(tmp_path):
    kind = tl.types.Scalar("int32", apart=True)
    ds = tl.dataset(str(tmp_path), {"one/sid": kind, "other/Sid": kind})
    ds.extend({"one/sid": [7, 8], "other/Sid": [1, None]})
    ds["one/sid"][1] = 9
    ds = tl.dataset(str(tmp_path))
    assert [*ds] == [{"one/sid": 7, "other/Sid": 1}, {"one/sid": 9, "other/Sid": None}]
    assert ds.positions_where("one.sid = 9").tolist() == [1]
    assert ds.check(deep=True).ok
