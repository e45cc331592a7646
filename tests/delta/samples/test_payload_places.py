"""Payloads that are read from where they lie straight into memory."""

import os

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.samples.payload_places import PayloadPlaces
from tensorlake_spark.delta.samples.scattered_rows import ScatteredRows
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import CorruptDataError

VALUES = np.random.default_rng(0).integers(0, 256, (300, 5_000), np.uint8)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    ds = tl.dataset(
        str(tmp_path_factory.mktemp("places")), {"x": tl.types.Tensor("uint8", (5_000,))}
    )
    for start in (0, 200):
        ds.extend({"x": VALUES[start : start + 200]})
    return ds


def places_of(ds, positions):
    stored = ds.parts.stored
    rows = ScatteredRows(stored, 1 << 20)
    return rows.places(stored.leaf(("x", "data")), np.array(positions, np.int64))


@pytest.mark.parametrize(
    "positions",
    [[0], [*range(300)], [*range(299, -1, -1)], [250, 3, 4, 5, 199, 200, 3], [7, 7, 7], []],
    ids=["one", "all", "backwards", "runs of two files", "one again and again", "none"],
)
def test_payloads_come_in_the_order_that_was_asked_for(dataset, positions):
    places = places_of(dataset, positions)
    rows = np.zeros((len(positions), 5_000), np.uint8)
    places.copy_to(rows)
    assert len(places) == len(positions)
    assert np.array_equal(rows, VALUES[positions])


def test_runs_that_lie_behind_one_another_are_one_request(dataset, monkeypatch):
    calls = []
    inner = os.preadv

    def preadv(file, parts, start):
        calls.append(len(parts))
        return inner(file, parts, start)

    places = places_of(dataset, range(10, 20))
    monkeypatch.setattr(os, "preadv", preadv)
    places.copy_to(np.zeros((10, 5_000), np.uint8))
    assert calls == [19]  # ten payloads, and what lies between


def test_a_system_that_gives_less_than_it_was_asked_for_is_asked_again(dataset, monkeypatch):
    inner = os.preadv
    monkeypatch.setattr(
        os, "preadv", lambda file, parts, start: inner(file, [parts[0][:999]], start)
    )
    rows = np.zeros((5, 5_000), np.uint8)
    places_of(dataset, [0, 1, 2, 250, 9]).copy_to(rows)
    assert np.array_equal(rows, VALUES[[0, 1, 2, 250, 9]])


def test_a_file_that_was_cut_short_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"12345")
    storage = Storage(str(tmp_path))
    places = PayloadPlaces(storage, {4: "a.parquet"}, np.array([4, 4]), [0, 3], [3, 3])
    with pytest.raises(
        CorruptDataError, match=r"a\.parquet ends within a sample: 2 of its 3 bytes"
    ):
        places.copy_to(np.zeros((2, 3), np.uint8))


def test_another_store_than_the_disk_is_read_by_its_streams(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"one.two")
    monkeypatch.setattr("tensorlake_spark.delta.samples.payload_places._IS_POSIX", False)
    rows = np.zeros((2, 3), np.uint8)
    places = PayloadPlaces(
        Storage(str(tmp_path)), {0: "a.parquet"}, np.zeros(2, int), [4, 0], [3, 3]
    )
    places.copy_to(rows)
    assert rows.tobytes() == b"twoone"
    short = PayloadPlaces(Storage(str(tmp_path)), {0: "a.parquet"}, np.zeros(1, int), [5], [3])
    with pytest.raises(CorruptDataError, match="2 of its 3 bytes"):
        short.copy_to(np.zeros((1, 3), np.uint8))


def test_a_null_among_them_has_no_place(tmp_path):
    ds = tl.dataset(str(tmp_path), {"x": tl.types.Tensor("uint8", (4,)), "k": "int32"})
    ds.extend([{"x": [1, 2, 3, 4], "k": 0}, {"k": 1}])
    assert len(places_of(ds, [0])) == 1
    assert places_of(ds, [0, 1]) is None
