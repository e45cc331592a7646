"""Fewer files, the same samples."""

import numpy as np
import pytest
from deltalake import DeltaTable
from marked_samples import mark
from whole_datasets import contents, samples_of

import tensorlake_spark as tl
from tensorlake_spark.datasets.maintenance import sample_compaction


def count(path):
    return len(DeltaTable(path).file_uris())


def test_many_small_appends_become_few_files(made):
    ds, path = made.ds, made.path
    version = ds.version
    inside = [path, path / "_columns/image", path / "_tensors"]
    assert [count(p) > 3 for p in inside] == [True] * 3
    sids = ds.sids.tolist()
    ds.optimize()
    assert [count(p) for p in inside] == [1, 1, 1]
    assert ds.sids.tolist() == sids
    assert contents(ds) == made.at_first
    assert contents(tl.dataset(path)) == made.at_first
    assert contents(tl.dataset(path, version=version)) == made.at_first
    after = ds.version
    ds.optimize()
    assert ds.version == after
    assert not ds.history(2)["data_change"].all()


def test_files_of_the_size_that_is_asked_for(made):
    made.ds.extend(samples_of(made.jpegs, range(20, 30)))
    sizes = made.ds.stored.file_sizes
    made.ds.optimize(file_bytes=sum(sizes[:2]) + 100)
    assert 1 < count(made.path) < len(sizes)
    assert contents(made.ds)[:20] == made.at_first


def test_samples_that_plain_delta_has_moved(made):
    """Files of others have names and an order of their own."""
    DeltaTable(made.path).update(updates={"label": "label + 100"}, predicate="label % 3 = 0")
    made.ds.refresh()
    before = contents(made.ds)
    assert [one[1] for one in before] == [n + 100 if n % 3 == 0 else n for n in range(20)]
    made.ds.optimize()
    assert contents(made.ds) == before


def test_an_empty_dataset(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"x": "int32"})
    ds.optimize()
    ds.optimize(order=[])
    assert len(ds) == 0


@pytest.mark.parametrize(
    ("sizes", "runs"),
    [
        ([80, 5], []), ([5, 80, 5], []), ([5, 5, 80, 5, 5], [(0, 1), (3, 4)]), ([60, 5, 5], [(0, 1, 2)]),
        ([60, 60, 5], [(1, 2)]), ([5, 60, 60], [(0, 1)]),
    ],
)  # fmt: skip
def test_large_files_stay_and_small_ones_do_not_cross_them(tmp_path, sizes, runs):
    """Sizes are in percent of the target."""
    ds = tl.dataset(tmp_path, {"x": tl.types.Tensor("uint8")})
    for size in sizes:
        ds.append({"x": np.random.default_rng(size).integers(0, 256, size << 12, np.uint8)})
    found = sample_compaction.plan(ds.stored, 100 << 12, None)
    assert [one.files for one in found] == runs


@pytest.mark.parametrize("can_remove", [True, False])
def test_files_with_marks_stay_where_nobody_could_remove_these(tmp_path, monkeypatch, can_remove):
    """Such as in a store other than S3."""
    ds = tl.dataset(tmp_path, {"n": "int32"})
    ds.extend({"n": range(5)})
    mark(ds._storage, 2)
    for first in (5, 10):
        ds.refresh()
        ds.extend({"n": range(first, first + 5)})
    monkeypatch.setattr(sample_compaction, "can_remove_marked", lambda storage: can_remove)
    found = sample_compaction.plan(ds.stored, 1 << 20, None)
    assert [one.files for one in found] == [(0, 1, 2) if can_remove else (1, 2)]
