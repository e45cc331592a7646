"""What processes are told of tiles: with it they read neither the log nor metadata rows of the lake of tiles."""

import pickle
import shutil

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.files import catalog, footer
from tensorlake_spark.loader.sources.dataset_samples import DatasetSamples
from tensorlake_spark.loader.sources.loader_source import Told
from tensorlake_spark.loader.sources.tile_facts import learn_tiles, tile_facts

COUNT = 8


def side(number):
    return 40 if number % 2 else 2


@pytest.fixture
def ds(tmp_path):
    """Samples in two files; every second one is kept as tiles, in both columns."""
    plain, apart = (tl.types.Tensor("int32", (None, 10), apart=apart) for apart in (False, True))
    schema = {"x": plain, "part/y": apart, "label": "int64"}
    made = tl.dataset(tmp_path / "ds", schema, tile_bytes=800)
    for numbers in np.split(np.arange(COUNT), 2):
        x = [np.full((side(n), 10), n, "i4") for n in numbers]
        made.extend({"x": x, "part/y": [-one for one in x], "label": numbers})
    return tl.dataset(made.uri)


def test_it_is_of_the_large_samples_of_the_columns(ds):
    positions = np.array([5, 0, 3, 3])
    found = tile_facts(ds.parts, ["x", "sid"], positions, Told())
    assert sorted(found.metas) == ["x/3", "x/5"]
    assert len(found.footers) == 2
    both = tile_facts(ds.parts, ["x", "part/y"], positions, Told())
    assert sorted(both.metas) == ["part/y/3", "part/y/5", "x/3", "x/5"]
    assert tile_facts(ds.parts, ["x"], np.array([0, 2]), Told()) is None
    assert tile_facts(ds.parts, ["label"], positions, Told()) is None


def test_footers_are_told_once(ds):
    told = Told()
    first = tile_facts(ds.parts, ["x"], np.array([1]), told)
    second = tile_facts(ds.parts, ["x"], np.array([1, 3, 5]), told)
    assert first.footers
    assert not {*first.footers} & {*second.footers}
    assert len(first.footers) + len(second.footers) == 2
    assert sorted(second.metas) == ["x/1", "x/3", "x/5"]


def test_who_was_told_reads_neither_log_nor_metadata_rows(ds, monkeypatch):
    there = pickle.loads(
        pickle.dumps(DatasetSamples(ds.parts, ds.schema, {}, 1 << 20).for_worker(2))
    )
    facts = tile_facts(ds.parts, [*ds.schema], np.arange(COUNT), Told())
    footer._cache.clear()  # as in another process
    catalog._cache.clear()
    learn_tiles(there.parts, [*ds.schema], pickle.loads(pickle.dumps(facts)))
    shutil.rmtree(f"{ds.uri}/_tensors/_delta_log")
    found = there.fetch(np.arange(COUNT)).values({})
    assert not catalog._cache
    for number in range(COUNT):
        np.testing.assert_array_equal(found["x"][number], np.full((side(number), 10), number))
        np.testing.assert_array_equal(found["part/y"][number], -found["x"][number])


def test_a_dataset_without_large_samples(tmp_path):
    ds = tl.dataset(tmp_path, {"x": tl.types.Tensor("int32", (None,))})
    ds.extend({"x": [np.arange(n, dtype="i4") for n in range(3)]})
    assert tile_facts(ds.parts, ["x"], np.arange(3), Told()) is None
    assert ds.parts.known(["x"]).lake_of(["x"]) is None
