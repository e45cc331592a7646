"""A version that goes to another process: it is read there without its log."""

import pickle
import shutil

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.samples.known_snapshot import known_snapshot
from tensorlake_spark.delta.samples.stored_samples import StoredSamples


@pytest.fixture
def ds(tmp_path):
    made = tl.dataset(tmp_path / "ds", {"x": "int64", "y": "float64", "g": {"x": "int64"}})
    for start in (0, 10):
        values = np.arange(start, start + 10)
        made.extend({"x": values, "y": values / 2, "g/x": -values})
    made.delete([3])
    return made


def test_it_is_read_without_its_log(ds):
    before = ds.stored.snapshot
    sent = pickle.dumps(known_snapshot(before, ["x"]))
    expected = ds.stored.rows(None, np.arange(19))
    shutil.rmtree(f"{ds.uri}/_delta_log")
    found = pickle.loads(pickle.dumps(pickle.loads(sent)))
    assert (found.version, found.kind, found.table_id) == (
        before.version,
        before.kind,
        before.table_id,
    )
    assert found.schema.equals(before.schema, check_metadata=True)
    assert dict(found.configuration) == dict(before.configuration)
    assert dict(found.deletions) == dict(before.deletions) == {}
    stored = StoredSamples(found)
    assert stored.rows(None, np.arange(19)).equals(expected)
    assert stored.sids.tolist() == [n for n in range(20) if n != 3]


def test_it_has_the_bounds_of_columns_that_are_asked_for(ds):
    names = known_snapshot(ds.stored.snapshot, ["g.x"]).file_actions.column_names
    assert {"min.sid", "max.sid", "min.g.x", "max.g.x"} <= {*names}
    assert not {"min.x", "min.y", "null_count.x"} & {*names}
    assert "max.g.x" in known_snapshot(ds.stored.snapshot, ["g"]).file_actions.column_names
