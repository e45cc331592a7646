"""The history of a lake and of its tensors."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.log.actions import commit_name


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(1, 50, (8, 6, 4)).astype("f4")


def age_log(lake, start=1.6e9):
    """Make the commits that there are a hundred seconds apart, and years old."""
    for version in range(lake.version + 1):
        name = f"{lake.uri}/_delta_log/{version:020}.json"
        os.utime(name, (start + 100 * version,) * 2)
    return start


def test_history_of_a_tensor_through_all_changes(lake, x):
    lake.write("other", x)
    ref = lake.write("x", x, axes=("a", "b", "c"))
    before = ref.version
    lake.write("x", x, mode="append")
    lake.write("other", x, mode="append")
    lake["x"][0] = 7
    lake["x"].update_attrs({"by": "me"})
    lake.convert("x", layout="bsgs")
    lake.optimize()
    lake.delete("x")
    lake.restore("x", before)
    table = lake.history("x")
    assert [*table["operation"]] == [
        "restore", "delete", "convert", "describe", "assign", "append", "write",
    ]  # fmt: skip
    assert all(ids == ("x",) for ids in table["tensors"])
    assert not table["foreign"].any()
    whole = lake.history()
    assert [*whole["version"]] == [*range(lake.version, -1, -1)]
    assert whole["operation"].iloc[-1] == "CREATE TABLE"
    assert {"other"} == set(lake.history("other")["tensors"].explode())
    assert whole["operation"].isin(["optimize"]).any()
    assert not whole.loc[whole["operation"] == "optimize", "data_change"].any()


def test_history_has_the_types_of_a_table(lake, x):
    lake.write("x", x)
    table = lake.history()
    assert str(table["timestamp"].dtype) == "datetime64[ms, UTC]"
    assert table["version"].dtype == "int64"
    now = pd.Timestamp.now("UTC")
    assert (now - table["timestamp"]).max().total_seconds() < 3600
    assert [*table["files_added"]] == [1, 0]
    empty = lake.history(limit=0)
    assert [*empty.columns] == [*table.columns]
    assert (empty.dtypes == table.dtypes).all()


def test_history_up_to_a_limit_or_a_version(lake, x):
    lake.write("x", x)
    for _ in range(4):
        lake.write("y", x, mode="append")
        lake.write("x", x, mode="append")
    assert [*lake.history(limit=2)["version"]] == [9, 8]
    assert [*lake.history("y", limit=2)["version"]] == [8, 6]
    assert len(lake.history(limit=2**70)) == len(lake.history()), "more than islice takes"
    assert [*tl.open(lake.uri, version=6).history("y")["version"]] == [6, 4, 2]
    with pytest.raises(tl.InvalidOptionError, match="limit is -1"):
        lake.history(limit=-1)


def test_history_of_what_never_was(lake, x):
    with pytest.raises(tl.TableNotFoundError):
        lake.history()
    lake.write("photos", x)
    with pytest.raises(tl.TensorNotFoundError, match="did you mean 'photos'"):
        lake.history("fotos")


@pytest.mark.local_disk
def test_history_reads_commits_as_others_spell_them(lake, x):
    """Keys and values of JSON may stand apart, and an action may be null."""
    lake.write("x", x)
    lake["x"][0] = 7
    wanted = lake.history()
    for name in os.listdir(f"{lake.uri}/_delta_log"):
        if name.endswith(".json"):
            path = f"{lake.uri}/_delta_log/{name}"
            with open(path) as file:
                actions = [{"cdc": None, **json.loads(line)} for line in file]
            times = os.stat(path)
            with open(path, "w") as file:
                file.write("\n\n".join(json.dumps(a, separators=(" ,\t", " : ")) for a in actions))
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    pd.testing.assert_frame_equal(tl.open(lake.uri).history(), wanted)


@pytest.mark.local_disk
def test_history_shows_what_the_log_still_has(lake, x):
    lake.write("x", x[:1])
    for _ in range(10):
        lake.write("x", x[:1], mode="append")
    age_log(lake)
    for _ in range(12):
        lake.write("x", x[:1], mode="append")
    versions = [*lake.history()["version"]]
    assert versions[0] == lake.version
    assert 0 not in versions
    lake.delete("x")
    assert lake.history("x")["operation"].iloc[0] == "delete"


@pytest.mark.parametrize("limit", ["x", 1.5, -1])
def test_a_limit_that_is_no_number_of_versions_is_named(tmp_path, limit):
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.zeros(3))
    ds = tl.dataset(tmp_path / "ds", {"n": "int32"})
    for history in (lake.history, ds.history):
        with pytest.raises(
            tl.InvalidOptionError, match=f"limit is {limit!r}; it is a whole number"
        ):
            history(limit=limit)
        assert len(history(limit=np.int64(1))) == 1


@pytest.mark.local_disk
@pytest.mark.parametrize(
    "info", ["a text", {"operationParameters": ["a"]}, {"operationParameters": "a"}]
)
def test_what_another_writer_says_of_its_commit_may_be_anything(lake, x, info):
    lake.write("x", x)
    lake.write("x", x, mode="append")
    path = Path(lake.uri, commit_name(2))
    others = [line for line in path.read_text().splitlines() if "commitInfo" not in line]
    path.write_text("\n".join([json.dumps({"commitInfo": info}), *others]))
    table = tl.open(lake.uri).history()
    assert [*table["version"]] == [2, 1, 0]
    assert table["parameters"][0] == {}
    assert table["foreign"][0]
