"""What restore brings back of apart columns and tiles."""

import numpy as np
import pytest
from deltalake import DeltaTable
from races import before_commit
from whole_datasets import contents, replace_parts, samples_of

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart import pinning
from tensorlake_spark.datasets.maintenance import sample_versions


def test_restore_brings_back_parts_that_were_replaced(made):
    ds, version = made.ds, made.ds.version
    new = samples_of(made.jpegs, [3, 4, 6], seed=99)
    given = [made.jpegs[0], None, made.jpegs[2]]
    replace_parts(ds, [3, 4, 6], {"image": given})
    replace_parts(ds, [6], {"scan": [new["scan"][2]]})
    np.testing.assert_array_equal(ds["scan"][6], new["scan"][2])
    assert ds["image"].encoded(3) == made.jpegs[0]
    ds.optimize()
    ds.extend(samples_of(made.jpegs, range(20, 22)))
    changed = contents(ds)
    assert changed[:20] != made.at_first
    before = ds.version
    ds.restore(version)
    assert contents(ds) == made.at_first
    ds.restore(before)
    assert contents(ds) == changed
    # Later writers find nothing that they would have to undo.
    ds.extend(samples_of(made.jpegs, range(30, 33)))
    assert contents(ds)[:22] == changed


@pytest.mark.parametrize("column", ["image", "scan"])
def test_parts_of_a_restore_that_was_killed_are_undone_by_the_next_writer(
    made, monkeypatch, column
):
    ds, version = made.ds, made.ds.version
    new = {"image": made.jpegs[0], "scan": samples_of(made.jpegs, [6], seed=99)["scan"][0]}
    replace_parts(ds, [6], {column: [new[column]]})
    changed = contents(ds)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pinning, "PATIENCE", 0.1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sample_versions, "commit", killed)
        ds.restore(version)
    for number in (20, 21):
        after = tl.dataset(made.path)
        assert contents(after)[:20] == changed
        after.extend(samples_of(made.jpegs, [number]))
    assert contents(tl.dataset(made.path))[:20] == changed


def test_what_is_gone_of_a_part_is_told_before_anything_is_written(made):
    ds, version = made.ds, made.ds.version
    replace_parts(ds, [4], {"image": [made.jpegs[0]]})
    after = ds.version
    kept = set(DeltaTable(made.path / "_columns/image").file_uris())
    for file in (made.path / "_columns/image").glob("*.parquet"):
        if str(file) not in kept:
            file.unlink()
    with pytest.raises(tl.MissingDataError, match="_columns/image"):
        ds.restore(version)
    assert tl.dataset(made.path).version == after


def test_restore_brings_back_what_a_purge_has_taken_away(made):
    """Its files are there until the retention is over; the samples came back without them."""
    before = made.ds.version
    assert not made.ds.purge([3, 6]).verified
    made.ds.restore(before)
    assert contents(tl.dataset(made.path)) == made.at_first
    made.ds.vacuum(0)
    assert contents(tl.dataset(made.path)) == made.at_first
    assert tl.dataset(made.path).check(deep=True).ok


def test_two_restores_of_the_same_tiles_at_once(made, monkeypatch):
    """Who loses the race of the commit never saw the transaction that lost it."""
    made.ds.tag("kept")
    made.ds.update([3], {"scan": np.ones((60, 50), np.uint8)})
    before_commit(monkeypatch, lambda: tl.dataset(made.path).restore("kept"))
    with pytest.raises(tl.ConcurrentWriteError, match="nothing was restored, run it again"):
        made.ds.restore("kept")
    assert contents(tl.dataset(made.path)) == made.at_first


def test_restore_over_updates_deletes_and_changes_of_columns(made):
    ds, version = made.ds, made.ds.version
    scan = np.ones((70, 40), np.uint8)
    ds.update([4, 6], {"image": [made.jpegs[1], None], "scan": [scan, np.zeros((3, 3), np.uint8)]})
    ds.delete([0, 5])
    ds.rename_column("image", "photo")
    ds.drop_column("training/name")
    np.testing.assert_array_equal(ds["scan"][3], scan)
    between, photos = ds.version, [ds["photo"].encoded(n) for n in range(len(ds))]
    ds.restore(version)
    assert contents(ds) == made.at_first
    ds.restore(between)
    assert [ds["photo"].encoded(n) for n in range(len(ds))] == photos
    np.testing.assert_array_equal(ds["scan"][3], scan)
    ds.restore(version)
    ds.update([7], {"image": [made.jpegs[2]]})
    ds.vacuum(0)
    assert ds.check(deep=True).ok
    assert contents(ds)[8:] == made.at_first[8:]


def test_tiles_that_a_vacuum_took_away_do_not_come_back_without_their_sample(made):
    """The version that is restored had them still, of a sample that was deleted before it."""
    ds = made.ds
    ds.delete([3])
    ds.tag("kept")
    ds.delete([4])
    ds.vacuum(0)
    tiles = tl.open(f"{ds.uri}/_tensors")
    assert "scan/3" not in tiles
    ds.restore("kept")
    now = tl.open(f"{ds.uri}/_tensors")
    assert ("scan/3" in now, now.version) == (False, tiles.version)
    assert ds.check(deep=True).ok


def findings(ds):
    ds.refresh()
    return [(one.kind, one.place) for one in ds.check().findings if not one.is_notice]


def test_parts_that_were_replaced_are_told_until_they_are_restored(made):
    ds = made.ds
    at = ds.version
    ds.update([4], {"image": made.jpegs[0]})
    DeltaTable(ds.uri).restore(at)
    assert findings(ds) == [("pin", "_columns/image")]
    assert contents(ds) != made.at_first
    (found,) = (one for one in ds.check().findings if one.kind == "pin")
    assert f"ds.restore({at}) brings these back too" in found.text
    ds.update([7], {"label": 7})
    assert findings(ds) == [("pin", "_columns/image")]
    ds.restore(at)
    assert not findings(ds)
    assert contents(ds) == made.at_first


def test_a_restore_over_samples_that_were_only_added_or_deleted_is_whole(made):
    ds = made.ds
    at = ds.version
    ds.extend({"label": [1], "image": [made.jpegs[0]]})
    ds.delete([3])
    DeltaTable(ds.uri).restore(at)
    assert not findings(ds)
    assert contents(ds) == made.at_first
