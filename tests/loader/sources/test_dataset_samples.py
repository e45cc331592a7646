"""Datasets in an object store through a loader: what is asked for, when, and what becomes of mistakes."""

import re
from contextlib import contextmanager

import numpy as np
import pytest
from small_datasets import picture

import tensorlake_spark as tl
from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.loader.sources.dataset_samples import DatasetSamples
from tensorlake_spark.loader.sources.remote_ranges import RemoteRanges

FILES, EACH = 6, 50
COUNT = FILES * EACH
COLUMNS = {
    "image": tl.types.Image("png"),
    "x": tl.types.Tensor("float32", (8, 8)),
    "label": "int32",
    "name": "string",
}


def columns(first):
    numbers = range(first, first + EACH)
    return {
        "image": [picture(number) for number in numbers],
        "x": np.ones((1, 8, 8), "f4") * np.arange(first, first + EACH, dtype="f4")[:, None, None],
        "label": [number % 7 for number in numbers],
        "name": [f"sample {number}" for number in numbers],
    }


@pytest.fixture(scope="module")
def url(s3):
    """A dataset of six files, and the same on the disk's side in ``expected``."""
    found = tl.dataset("s3://bucket/remote-samples", COLUMNS, storage_options=s3.options)
    for first in range(0, COUNT, EACH):
        found.extend(columns(first))
    return found.uri


@pytest.fixture
def ds(url, s3, road):
    return tl.dataset(url, storage_options={**s3.options, "AWS_ENDPOINT_URL": road.endpoint})


def data_requests(road):
    """Return the requests for data files since the last call."""
    return [one for one in road.requests() if re.search(r"^GET .*\.parquet", one)]


def assert_right(batches):
    """Hold batches against what was written, and return the order."""
    order = []
    for batch in batches:
        numbers = batch["x"][:, 0, 0].astype(int)
        order += numbers.tolist()
        np.testing.assert_array_equal(batch["label"], numbers % 7)
        assert list(batch["name"]) == [f"sample {number}" for number in numbers]
        assert [one.shape[:2] for one in batch["image"]] == [
            (3 + n % 12 % 5, 4 + n % 12 % 3) for n in numbers
        ]
    assert sorted(order) == list(range(COUNT))
    return order


@pytest.mark.parametrize("shuffle", [False, True, "global"])
def test_each_row_group_is_asked_for_once(ds, road, shuffle):
    with ds.loader(8, shuffle=shuffle, workers=2) as loader:
        road.requests()
        first = assert_right(loader)
        asked = data_requests(road)
        assert len(asked) <= 2 * FILES  # a footer, and a row group with all its columns
        second = assert_right(loader)
        assert not data_requests(road)
        assert loader.stats()["misses"] == FILES
        assert loader.stats()["hits"] > 0
    assert (first == second) == (shuffle is False)


def test_the_first_batch_needs_few_files(ds, road):
    with ds.loader(8, prefetch=1, workers=1) as loader:
        road.requests()
        next(iter(loader))
        assert len(data_requests(road)) <= 2 * 2  # of the batch after it, too


def test_a_cache_serves_the_next_process(ds, road, tmp_path):
    cache = f"{tmp_path / 'cache'}:50MB"
    with ds.loader(8, cache=cache) as loader:
        assert_right(loader)
    road.requests()
    with ds.loader(8, shuffle=True, cache=cache) as loader:
        assert_right(loader)
        assert not data_requests(road)
        assert loader.stats()["misses"] == 0
        assert loader.stats()["hit_rate"] == 1


def test_later_epochs_read_a_cache_as_a_local_dataset(ds, road, tmp_path, monkeypatch):
    """Its files are mapped: nothing is fetched together, held, or copied."""
    with ds.loader(8, shuffle=True, cache=tmp_path / "cache") as loader:
        first = assert_right(loader)
        monkeypatch.setattr(RemoteRanges, "hold", None)
        road.requests()
        second = assert_right(loader)
        assert not data_requests(road)
        assert loader.stats()["hit_rate"] > 0.9
    assert first != second


def test_what_others_took_from_a_cache_is_fetched_again(ds, road, tmp_path):
    folder = tmp_path / "cache"
    with ds.loader(8, shuffle=True, cache=folder, memory="60KB") as loader:
        assert_right(loader)
        for one in (folder / "ranges").rglob("*"):
            if one.is_file():
                one.unlink()
        road.requests()
        assert_right(loader)
        assert data_requests(road)
        assert_right(loader)
        road.requests()
        assert_right(loader)
        assert not data_requests(road), "it is in the cache again"


def test_processes_read_a_store(ds):
    with ds.loader(25, shuffle=True, workers="processes") as loader:
        assert_right(loader)
        assert loader.stats()["misses"] > 0


def test_what_is_kept_is_a_part_of_the_memory(ds):
    with ds.loader(8, shuffle="global", memory="200KB") as loader:
        assert_right(loader)
        ranges = loader._source._ranges
        assert ranges.nbytes <= ranges.most <= 200_000 * 5 // 8


@pytest.mark.parametrize(("memory", "is_copied"), [("512MB", False), ("200KB", True)])
def test_what_stays_in_memory_is_not_copied(ds, memory, is_copied):
    """A copy of a payload lets go of its row group, which is forgotten where not all of them have room."""
    with ds.loader(8, shuffle="global", memory=memory) as loader:
        fetched = loader._source.fetch(np.array([1, COUNT - 1, 70]))
        assert (fetched.raw_nbytes > 0) == is_copied
        assert fetched.values({})["label"].tolist() == [n % 7 for n in (1, COUNT - 1, 70)]
        ranges = loader._source._ranges
        assert ranges.stays != is_copied
        assert_right(loader)
        assert ranges.nbytes <= ranges.most


def test_a_buffer_of_parts_of_row_groups_is_kept_together_with_their_rest(s3, road):
    """Blocks do not end where row groups do: those of a buffer are parts of up to twice as many bytes."""
    options = {**s3.options, "AWS_ENDPOINT_URL": road.endpoint}
    schema = {"x": tl.types.Tensor("uint8", (16384,))}
    ds = tl.dataset("s3://bucket/remote-parts", schema, storage_options=options)
    ds.extend({"x": np.random.default_rng(0).integers(0, 256, (1300, 16384), np.uint8)})
    with ds.loader(16, shuffle="11MB", memory="42MB") as loader:
        assert sum(len(batch["x"]) for batch in loader) == 1300
        stats, nbytes = loader.stats(), sum(ds.parts.stored.file_sizes)
        ranges = loader._source._ranges
    assert 21e6 < nbytes < 2 * 11e6
    assert ranges.asked <= nbytes // (2 << 20) + 4  # each row group, and the footer
    assert ranges.most + stats["peak_bytes"] <= 42e6


@pytest.mark.parametrize("collate", [None, "pad"])
def test_a_batch_from_all_over_the_table_is_read_part_after_part(ds, monkeypatch, collate):
    """All row groups of the table together are more than may be held, and each batch has samples of all."""
    held, largest = [], []
    hold = RemoteRanges.hold

    @contextmanager
    def seen(self, wanted):
        with hold(self, wanted) as found:
            held.append(self._held)
            largest.append(max(nbytes for *_, nbytes in wanted))
            yield found

    monkeypatch.setattr(RemoteRanges, "hold", seen)
    crop = {"image": tl.loader.RandomCrop(2, 2)}
    with ds.loader(30, shuffle="global", memory="200KB", transform=crop, collate=collate) as loader:
        found = list(loader)
        most = loader._source._ranges.most
    assert len(held) > 2 * len(found), "batches are cut"
    assert max(held) <= most
    assert max(largest) < most
    near = ds.loader(30, shuffle="global", transform=crop, collate=collate)
    for mine, theirs in zip(found, near, strict=True):
        assert list(mine) == list(theirs)
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name])


def test_a_batch_that_does_not_fit(ds):
    loader = ds.loader(64, columns=["x"], memory="10KB")
    with pytest.raises(InvalidOptionError, match="too few for one batch"):
        next(iter(loader))


def test_others_write_during_an_epoch(s3):
    ds = tl.dataset("s3://bucket/remote-written", COLUMNS, storage_options=s3.options)
    ds.extend(columns(0))
    with ds.loader(8, prefetch=1) as loader:
        batches = iter(loader)
        found = [next(batches)]
        ds.extend(columns(EACH))
        found += batches
    assert sum(len(batch["label"]) for batch in found) == EACH


def test_a_file_that_vanishes_is_named(s3):
    ds = tl.dataset("s3://bucket/remote-vanished", COLUMNS, storage_options=s3.options)
    ds.extend(columns(0))
    filesystem, base = ds.parts.stored.snapshot.storage.place
    (path,) = ds.parts.stored.files.paths
    with ds.loader(8) as loader:
        filesystem.delete_file(f"{base}/{path}")
        with pytest.raises(CorruptDataError, match=f"sample 0 of .*{path}"):
            next(iter(loader))


def test_apart_columns_and_links_of_a_table(s3, road):
    schema = {"image": tl.types.Image("png"), "far": tl.types.Tensor("float32", (8, 8))}
    options = {**s3.options, "AWS_ENDPOINT_URL": road.endpoint}
    ds = tl.dataset("s3://bucket/remote-apart", schema, storage_options=options)
    ds.extend({"image": columns(0)["image"], "far": columns(0)["x"]})
    ds.add_column("later", tl.types.Embedding(3))
    with ds.loader(10, shuffle=True) as loader:
        found = [batch["far"][:, 0, 0] for batch in loader]
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(EACH))


def test_a_source_for_a_worker_has_its_part_of_the_memory(ds):
    source = DatasetSamples(ds.parts, ("x",), {}, 8 << 20, None)
    part = source.for_worker(4)
    assert part._ranges.most == source._ranges.most // 4
    assert part.identity == source.identity
    assert source.reserved == 0.7
