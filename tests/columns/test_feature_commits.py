"""Tables of features go back to a version: all tensors, one commit."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.columns import feature_commits
from tensorlake_spark.writing import overlay

FIRST = pa.table({"age": [31, None, 54], "score": [0.5, 0.25, None]})


@pytest.fixture
def features(lake):
    return lake.features("ctr").write(FIRST)


def tensors(lake):
    return sorted(lake)


def test_a_table_is_what_it_was_by_one_commit_that_writes_no_values(lake, features):
    before = lake.version
    features.add(pa.table({"seen": [True, None, False], "clicks": pa.array([1, 2, 3], "int16")}))
    features.append(
        pa.table(
            {name: pa.nulls(2, kind) for name, kind in zip(features.names, features.schema.types)}
        )
    )
    features.deprecate(["age"])
    after = lake.version
    back = features.restore(before)
    assert back is features
    assert back.version == after + 1 == lake.version
    assert back.read().equals(FIRST)
    assert back.deprecated == []
    assert tensors(lake) == tensors(tl.open(lake.uri, version=before))
    commit = lake.history(limit=1).iloc[0]
    assert commit["operation"] == "restore"
    assert {"ctr/bool", "ctr/bool/null", "ctr/float64", "ctr/int16"} < {*commit["tensors"]}
    assert lake.check().ok
    features.append(FIRST)
    assert features.read().equals(pa.concat_tables([FIRST, FIRST]))


def test_a_table_that_was_deleted_comes_back_and_others_stay(lake, features):
    lake.write("ctr/photos", np.arange(6))
    lake.features("other").write(FIRST)
    lake.tag("before")
    features.drop(["age", "score"])
    assert not features.exists
    assert features.restore("before").read().equals(FIRST)
    assert lake.features("other").read().equals(FIRST)
    assert lake["ctr/photos"][...].tolist() == [*range(6)]


def test_any_version_of_a_history_comes_back(lake):
    """Whatever files its tensors share with others."""
    draw = random.Random(7)
    features = lake.features("ctr")
    known = {}
    lake.write("a", np.arange(50))
    for step in range(30):
        rows = 5 if not features.exists else len(features)
        new = f"f{step}"
        kind = draw.choice(["int8", "float32", "bool", "int64", "float64"])
        nulls = draw.choice([(1, 0), (1, 0, None)])
        column = pa.array([draw.choice(nulls) for _ in range(rows)]).cast(kind)
        action = draw.choice(["add", "add", "drop", "append", "optimize", "restore", "reorder"])
        if not features.exists:
            features.write(pa.table({new: column}))
        elif action == "add":
            features.add(pa.table({new: column}))
        elif action == "drop":
            features.drop([draw.choice(features.names)])
        elif action == "append":
            features.append(features.read())
        elif action == "optimize":
            lake.optimize()
            features = lake.features("ctr")
        elif action == "restore" and known:
            version = draw.choice([*known])
            features.restore(version)
            assert features.read().equals(known[version]), step
        elif action == "reorder":
            features.reorder(draw.sample(features.names, len(features.names)))
        if features.exists:
            known[lake.version] = features.read()
        if features.exists and len(features) > 100:
            features.drop(features.names)
    for version, table in known.items():
        assert features.restore(version).read().equals(table), version
    assert lake["a"][...].tolist() == [*range(50)]
    assert lake.check().ok


def test_there_was_no_such_table(lake, features):
    with pytest.raises(tl.TensorNotFoundError, match="there are no features 'ctr' in version 0"):
        features.restore(0)
    with pytest.raises(tl.InvalidOptionError, match=r"version 99 of .* does not exist"):
        features.restore(99)
    with pytest.raises(tl.TensorNotFoundError, match=r"no features 'ctx'.*did you mean 'ctr'"):
        lake.features("ctx").restore(1)


def test_a_read_only_table_is_not_restored(lake, features):
    with pytest.raises(tl.InvalidOptionError, match="for reading only"):
        tl.open(lake.uri, version=1).features("ctr").restore(1)


def test_a_tensor_that_is_not_one_of_features_is_not_replaced(lake, features):
    features.drop(["score"])
    lake.write("ctr/float64", np.zeros(3))
    with pytest.raises(tl.TensorExistsError, match=r"'ctr/float64' exists .* delete the tensor"):
        features.restore(1)
    assert lake["ctr/float64"].shape == (3,)
    lake.delete("ctr/float64")
    assert features.restore(1).read().equals(FIRST)


def test_tensors_that_do_not_fit_each_other_are_brought_together(lake, features):
    before = lake.version
    features.append(FIRST)
    lake.restore("ctr/int64", before)
    with pytest.raises(tl.CorruptDataError, match=r"lake\.restore\(ids, version\)"):
        lake.features("ctr")
    assert features.restore(before).read().equals(FIRST)


def test_a_new_dtype_of_another_writer_meanwhile_is_not_overlooked(lake, features, monkeypatch):
    before = lake.version
    features.append(FIRST)
    real = feature_commits.restore.restore

    def late(*given):
        tl.open(lake.uri).features("ctr").add(pa.table({"new": pa.array(range(6), "int8")}))
        return real(*given)

    monkeypatch.setattr(feature_commits.restore, "restore", late)
    with pytest.raises(
        tl.ConcurrentWriteError,
        match=r"than this restore of features 'ctr' .*nothing was committed",
    ):
        features.restore(before)
    monkeypatch.undo()
    found = lake.features("ctr")
    assert found.names == ["age", "score", "new"]
    assert len(found) == 6


def test_files_that_a_vacuum_deleted_are_told(lake, features):
    before = lake.version
    features.write(FIRST.slice(0, 1), mode="overwrite")
    lake.vacuum(0)
    with pytest.raises(tl.MissingDataError, match="and 1 more cannot be restored from version 1"):
        features.restore(before)
    assert len(features) == 1


def test_features_of_a_new_dtype_do_not_land_beside_rows_of_another_writer(lake, monkeypatch):
    """No tensor is changed by both, and the new one would be shorter than the others."""
    features = lake.features("f").write(pa.table({"a": [1, 2]}))
    commit, tries = feature_commits.commit_all, []

    def late(*given):
        tries.append(given)
        if len(tries) == 1:
            tl.open(lake.uri).features("f").append(pa.table({"a": [3]}))
        return commit(*given)

    monkeypatch.setattr(feature_commits, "commit_all", late)
    with pytest.raises(tl.InvalidTensorError, match="2 rows of new features do not fit"):
        features.add(pa.table({"b": [0.5, 0.25]}))
    assert lake.features("f").read().to_pydict() == {"a": [1, 2, 3]}


@pytest.mark.local_disk
def test_a_change_that_fails_leaves_no_files(lake, monkeypatch):
    features = lake.features("f").write(pa.table({"a": [1, 2]}))
    before = {*Path(lake.uri).glob("*.parquet")}
    monkeypatch.setattr(overlay, "SMALL_BYTES", 0)

    def tables():
        yield pa.table({"a": [3]})
        assert {*Path(lake.uri).glob("*.parquet")} > before
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        features.write_parts(tables())
    assert {*Path(lake.uri).glob("*.parquet")} == before
