"""What the log of a dataset says of many versions at once."""

import datetime as dt

import numpy as np
import pytest
from whole_datasets import replace_parts, samples_of

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart.inner_tables import inner_tables
from tensorlake_spark.datasets.maintenance import kept_versions as kept
from tensorlake_spark.datasets.maintenance.kept_versions import (
    inner_files,
    kept_versions,
    pins_of,
    sids_of,
)
from tensorlake_spark.delta.files.table_folder import Naming
from tensorlake_spark.delta.log.snapshot import Snapshot


def test_pins_are_those_that_each_version_says_itself(made):
    replace_parts(made.ds, [4], {"image": [made.jpegs[0]]})
    made.ds.tag("here")
    storage, newest = made.ds._storage, made.ds.version
    folders = [*inner_files(storage)]
    assert sorted(folders) == ["_columns/image", "_tensors"]
    found = pins_of(storage, set(range(newest + 1)), folders)
    for version in range(newest + 1):
        said = inner_tables(Snapshot.open(storage, version, kind=None))
        assert found[version] == said
    assert pins_of(storage, {2, newest}, folders) == {v: found[v] for v in (2, newest)}


def test_pins_are_of_the_columns_that_a_version_has(made):
    storage, first = made.ds._storage, made.ds.version
    kind = tl.types.Tensor("int64", apart=True)
    made.ds.add_column("late", kind, [np.zeros(2, "i8")] * len(made.ds))
    added = made.ds.version
    made.ds.drop_column("image")
    versions = set(range(made.ds.version + 1))
    found = pins_of(storage, versions, [*inner_files(storage)])
    columns = {
        v: sorted(f.partition("~")[0] for f in found[v] if f.startswith("_columns"))
        for v in versions
    }
    assert columns[first] == ["_columns/image"]
    assert columns[added] == ["_columns/image", "_columns/late"]
    assert columns[made.ds.version] == ["_columns/late"]
    made.ds.vacuum(0)
    assert [value.tolist() for value in tl.dataset(made.path)["late"]] == [[0, 0]] * 20


def test_versions_that_the_log_has_lost_are_left_out(made):
    storage = made.ds._storage
    log = made.path / "_delta_log"
    made.ds.stored.snapshot.table.create_checkpoint()
    for version in range(made.ds.version - 1):
        (log / f"{version:020}.json").unlink()
    found = pins_of(storage, set(range(made.ds.version + 1)), ["_tensors"])
    assert made.ds.version in found
    assert 0 not in found


def test_versions_in_use_since_a_time(made):
    newest = made.ds.stored.snapshot
    now = dt.datetime.now(dt.timezone.utc)
    assert kept_versions(newest, now) == {newest.version}
    assert kept_versions(newest, now - dt.timedelta(days=1)) == set(range(newest.version + 1))
    made.ds.tag("old", 2)
    newest = made.ds.stored.snapshot
    now = dt.datetime.now(dt.timezone.utc)
    assert kept_versions(newest, now) == {2, newest.version}


def test_a_version_is_in_use_until_the_next_one_is_made(made, monkeypatch):
    """However long ago it was made itself: whoever opened it then may read it."""
    newest = made.ds.stored.snapshot
    made_at = {version: 1000 * version for version in range(newest.version + 1)}
    monkeypatch.setattr(kept, "commit_times", lambda _: made_at)
    for since, first in ((0, 0), (1.5, 1), (2, 1), (2.001, 2), (99, newest.version)):
        until = dt.datetime.fromtimestamp(since, dt.timezone.utc)
        assert kept_versions(newest, until) == set(range(first, newest.version + 1)), since


def test_samples_of_versions(made):
    made.ds.extend(samples_of(made.jpegs, [20]))
    storage, version = made.ds._storage, made.ds.version
    np.testing.assert_array_equal(sids_of(storage, {version}), made.ds.sids)
    first = next(v for v in range(version) if len(sids_of(storage, {v})))
    assert len(sids_of(storage, {first})) == 5


@pytest.mark.parametrize("seed", range(20))
def test_samples_are_of_files_that_one_of_some_versions_has(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        ends = sorted(rng.choice(30, 2 * rng.integers(0, 4), replace=False).tolist())
        spans = [list(span) for span in zip(ends[::2], ends[1::2], strict=True)]
        if spans and rng.random() < 0.5:
            spans[-1][1] = None
        naming = Naming(spans)
        versions = sorted(rng.choice(30, rng.integers(0, 6), replace=False).tolist())
        assert kept._is_in(naming, versions) == bool(naming.versions(29) & {*versions})
