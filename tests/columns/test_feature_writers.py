"""Two writers of a table of features at a time, whose changes are of different dtypes."""

import pyarrow as pa
import pytest
from races import before_call

import tensorlake_spark as tl
from tensorlake_spark.columns import feature_commits
from tensorlake_spark.errors import ConcurrentWriteError, InvalidTensorError

BASE = pa.table({"a": pa.array([1, 2], "int64")})
MORE = pa.table({"a": pa.array([3], "int64")})
FLOATS = pa.table({"n": pa.array([0.5, 1.5], "float64")})
BYTES = pa.table({"n": pa.array([7, 8], "int8")})


@pytest.fixture
def before_commit(monkeypatch):
    """Have another writer commit a change just before the next change of this one is committed."""

    return lambda other: before_call(monkeypatch, feature_commits, "commit_all", other)


def test_features_of_a_new_dtype_do_not_fit_rows_that_were_appended_meanwhile(lake, before_commit):
    """Both landed, for they change different tensors; then no read was possible any more."""
    one = lake.features("t").write(BASE)
    other = tl.open(lake.uri).features("t")
    before_commit(lambda: other.append(MORE))
    with pytest.raises(
        InvalidTensorError, match="2 rows of new features do not fit 't', which has 3"
    ):
        one.add(FLOATS)
    assert lake.features("t").read().equals(pa.concat_tables([BASE, MORE]).combine_chunks())


def test_rows_do_not_fit_a_dtype_that_was_added_meanwhile(lake, before_commit):
    one = lake.features("t").write(BASE)
    other = tl.open(lake.uri).features("t")
    before_commit(lambda: other.add(FLOATS))
    with pytest.raises(InvalidTensorError, match="no column for feature 'n'"):
        one.append(MORE)
    assert lake.features("t").read().to_pydict() == {"a": [1, 2], "n": [0.5, 1.5]}


def test_a_name_is_added_once(lake, before_commit):
    one = lake.features("t").write(BASE)
    other = tl.open(lake.uri).features("t")
    before_commit(lambda: other.add(FLOATS))
    with pytest.raises(InvalidTensorError, match="feature 'n' is in 't' already"):
        one.add(BYTES)
    assert lake.features("t").read(["n"]).equals(FLOATS)


def test_features_of_two_writers_both_land_in_the_order_of_their_commits(lake, before_commit):
    one = lake.features("t").write(BASE)
    other = tl.open(lake.uri).features("t")
    before_commit(lambda: other.add(FLOATS))
    assert one.add(BYTES.rename_columns(["m"])).names == ["a", "n", "m"]
    before_commit(lambda: tl.open(lake.uri).features("t").drop(["n"]))
    assert one.deprecate(["m"]).names == ["a"]


def test_one_of_two_writers_makes_a_table(lake, before_commit):
    before_commit(lambda: tl.open(lake.uri).features("t").write(FLOATS))
    says = r"faster than this write of features 't' of .*; nothing was committed, look at lake\.f.*call write again"
    with pytest.raises(ConcurrentWriteError, match=says):
        lake.features("t").write(BYTES)
    assert lake.features("t").read().equals(FLOATS)


def test_a_change_that_loses_every_time_says_how_often(lake, before_commit, monkeypatch):
    one = lake.features("t").write(BASE)
    monkeypatch.setattr(feature_commits, "ATTEMPTS", 1)
    before_commit(lambda: tl.open(lake.uri).features("t").append(MORE))
    with pytest.raises(
        ConcurrentWriteError, match=r"this drop of features 't' .*, 1 times in a row"
    ):
        one.drop(["a"])
    assert lake.features("t").names == ["a"]
