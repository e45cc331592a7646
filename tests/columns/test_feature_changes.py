"""Rows and features that come and go."""

import numpy as np
import pyarrow as pa
import pytest
from feature_examples import ALL, files_of, wide

import tensorlake_spark as tl


def test_one_commit_for_all_dtypes(ctr, lake):
    assert ctr.version == lake.version == 1
    ctr.append(ALL)
    ctr.add(pa.table({"new": [1] * 6, "other": [0.5] * 6}))
    assert ctr.version == lake.version == 3


def test_blocks_are_full_in_rows_and_sixteen_features_wide(lake):
    lake.features("w").write(wide(40, rows=5000))
    ref = lake["w/float32"]
    assert ref.block_shape == (4096, 16)
    assert ref.axes == ("row", "feature")
    assert ref.sel(feature="f17").shape == (5000,)


def test_the_first_null_may_come_later(lake):
    features = lake.features("n").write(pa.table({"a": [1, 2], "b": [3, 4]}))
    assert [*lake] == ["n/int64"]
    features.append(pa.table({"a": [None, 5], "b": pa.array([6, None], pa.int64())}))
    assert [*lake] == ["n/int64", "n/int64/null"]
    features.append(pa.table({"a": [7], "b": [8]}))
    features.add(pa.table({"c": [None, 1, None, 2, 3]}))
    assert features.read().to_pydict() == {
        "a": [1, 2, None, 5, 7], "b": [3, 4, 6, None, 8], "c": [None, 1, None, 2, 3],
    }  # fmt: skip


def test_features_are_added_without_writing_the_others_anew(lake):
    table = wide(300, rows=2000)
    features = lake.features("w").write(table)
    before = files_of(lake)
    new = wide(100, rows=2000, start=300)
    features.add(new)
    after = files_of(lake)
    assert {name: after[name] for name in before} == before  # not a byte, and none is gone
    live = set(lake["w/float32"]._snapshot.files.path)
    assert before.keys() <= live
    written = sum(len(after[name]) for name in after.keys() - before.keys())
    assert written <= 1.1 * new.nbytes
    assert features.read(["f399", "f0", "f299", "f300"]).equals(
        pa.table(
            {
                n: (table if n in table.column_names else new)[n]
                for n in ("f399", "f0", "f299", "f300")
            }
        )
    )


def test_added_features_come_last_whatever_their_dtype(ctr):
    ctr.add(pa.table({"z": pa.array([1, 2, 3], pa.int8()), "y": [4, 5, 6]}))
    ctr.add(pa.table({"x": pa.array([0.5, None, 1.5], pa.float32())}))
    assert ctr.names == [*ALL.column_names, "z", "y", "x"]
    assert ctr.read(["x", "age"]).to_pydict() == {"x": [0.5, None, 1.5], "age": [31, None, 54]}


@pytest.mark.parametrize("hidden", ["no", 0, None])
def test_deprecate_takes_true_or_false(ctr, hidden):
    with pytest.raises(tl.InvalidOptionError, match=r"hidden=.* is not True or False"):
        ctr.deprecate(["seen"], hidden=hidden)
    assert ctr.deprecated == []


def test_dropped_features_are_gone(ctr, lake):
    ctr.deprecate(["seen"])
    ctr.drop(["age", "seen", "clicked"])
    kept = [n for n in ALL.column_names if n not in ("age", "seen", "clicked")]
    assert ctr.names == kept
    assert ctr.read().equals(ALL.select(kept))
    assert "ctr/bool" not in lake
    assert ctr.deprecated == []
    ctr.append(ALL.select(kept))
    ctr.add(pa.table({"age": [1] * 6}))
    assert ctr.names == [*kept, "age"]
    ctr.drop(ctr.names)
    assert [*lake] == []


def test_rows_that_do_not_fit(ctr):
    with pytest.raises(
        tl.InvalidTensorError, match=r"the table has no column for feature 'age' of 'ctr' .10 are"
    ):
        ctr.append(pa.table({"score": pa.array([1], pa.float32())}))
    with pytest.raises(
        tl.InvalidTensorError, match=r"column 'agee' is not a feature .* did you mean 'age'.*\.add"
    ):
        ctr.append(ALL.append_column("agee", pa.array([1, 2, 3])))
    column = ALL["age"].cast(pa.int32())
    other = ALL.set_column(0, "age", column)
    with pytest.raises(
        tl.InvalidTensorError,
        match="'age' has the type int32, and the feature of 'ctr' has int64; cast",
    ):
        ctr.append(other)
    assert ctr.append(other.cast(ctr.schema)).read(["age"])["age"].length() == 6


def test_features_that_do_not_fit(ctr):
    with pytest.raises(
        tl.InvalidTensorError, match="2 rows of new features do not fit 'ctr', which has 3"
    ):
        ctr.add(pa.table({"new": [1, 2]}))
    with pytest.raises(
        tl.InvalidTensorError, match="feature 'age' is in 'ctr' already, as are 1 others"
    ):
        ctr.add(ALL.select(["score", "age"]))
    ctr.deprecate(["age"])
    with pytest.raises(
        tl.InvalidTensorError,
        match=r"feature 'age' is in 'ctr' already \(it is deprecated\); drop it first",
    ):
        ctr.add(ALL.select(["age"]))
    assert ctr.version == 2


def test_a_tensor_of_that_name_is_not_taken_over(lake):
    lake.write("t/int64", np.zeros(3, np.int64))
    with pytest.raises(
        tl.TensorExistsError, match=r"tensor 't/int64' exists .* is not one of features"
    ):
        lake.features("t").write(pa.table({"a": [1]}))
    assert lake["t/int64"].shape == (3,)


def test_features_that_are_added_leave_a_tensor_of_that_name_alone(lake):
    features = lake.features("t").write(pa.table({"a": [0.5, 1.5]}))
    lake.write("t/int64", np.zeros((2, 1), np.int64), axes=("row", "feature"))
    with pytest.raises(
        tl.TensorExistsError, match=r"tensor 't/int64' exists .* is not one of features"
    ):
        features.add(pa.table({"b": [1, 2]}))
    assert lake["t/int64"].shape == (2, 1)
    assert lake.features("t").names == ["a"]


def test_each_feature_of_a_block_lies_in_one_piece(lake):
    steps = np.cumsum(np.random.default_rng(0).integers(-2, 3, (6000, 20)), axis=0)
    table = pa.table({f"f{k}": column for k, column in enumerate(steps.T)})
    for codec, first in (("auto", "transpose+"), ("smallest", "transpose+"), ("zstd", "zstd")):
        features = lake.features(codec).write(table, codec=codec)
        assert lake[f"{codec}/int64"].codec.startswith(first)
        assert features.read().equals(table)
        assert features.read(["f19", "f3"], slice(4000, 5000)).equals(
            table.select(["f19", "f3"])[4000:5000]
        )
    sizes = {codec: lake[f"{codec}/int64"].stored_bytes for codec in ("auto", "smallest", "zstd")}
    assert sizes["smallest"] <= sizes["auto"] < sizes["zstd"] / 3
