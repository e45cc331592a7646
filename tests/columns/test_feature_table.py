"""Tables of features: the door, other writers, what is not there."""

import numpy as np
import pyarrow as pa
import pytest
from feature_examples import ALL, files_of

import tensorlake_spark as tl


def test_tables_without_rows_are_kept(lake):
    table = ALL.slice(0, 0)
    features = lake.features("empty").write(table)
    assert features.read().equals(table.combine_chunks())
    assert features.append(ALL).read().equals(ALL)


def test_rows_are_appended_to_all_features(ctr):
    names = ALL.column_names[::-1]
    ctr.append(ALL.select(names)).append(ALL.slice(2))
    assert ctr.read().equals(pa.concat_tables([ALL, ALL, ALL.slice(2)]).combine_chunks())


def test_deprecated_features_are_hidden_and_can_be_read_by_name(ctr, lake):
    before = files_of(lake)
    ctr.deprecate(["age", "half"])
    assert "age" not in ctr.names
    assert ctr.deprecated == ["age", "half"]
    assert ctr.schema.names == ctr.read().column_names == ctr.names
    with pytest.warns(
        FutureWarning, match="feature 'age' of 'ctr' is deprecated and will be dropped"
    ):
        assert ctr.read(["age"]).equals(ALL.select(["age"]))
    assert before.items() <= files_of(lake).items()
    ctr.append(ALL.drop_columns(["age"]))
    ctr.deprecate(["age"], hidden=False)
    assert ctr.read(["age"])["age"].to_pylist() == [31, None, 54, None, None, None]
    assert ctr.names == [n for n in ALL.column_names if n != "half"]


def test_a_table_is_overwritten_whole(ctr, lake):
    table = pa.table({"one": [1.0]})
    assert ctr.write(table, mode="overwrite").read().equals(table)
    assert [*lake] == ["ctr/float64"]


def test_a_batch_is_written_once(lake):
    features = lake.features("b")
    for _ in range(2):
        features.write(pa.table({"a": [1]}), mode="overwrite", transaction=("app", 1))
        features.append(pa.table({"a": [2]}), transaction=("app", 2))
    assert features.read()["a"].to_pylist() == [1, 2]


def test_appends_of_two_writers_both_land(lake):
    one = lake.features("w").write(pa.table({"a": [1]}))
    other = tl.open(lake.uri).features("w")
    one.append(pa.table({"a": [2]}))
    other.append(pa.table({"a": [3]}))
    assert lake.features("w").read()["a"].to_pylist() == [1, 2, 3]
    assert one.read()["a"].to_pylist() == [1, 2]  # it stays at its version


def test_optimize_keeps_what_is_read(ctr, lake):
    for _ in range(3):
        ctr.append(ALL)
    lake.optimize()
    assert lake.features("ctr").read().equals(pa.concat_tables([ALL] * 4).combine_chunks())
    assert lake.check().ok


def test_tables_that_are_not_there(ctr, lake):
    missing = lake.features("ctl")
    assert repr(missing) == "FeatureTable('ctl', not written yet)"
    for ask in (
        missing.read,
        lambda: missing.names,
        lambda: len(missing),
        lambda: missing.append(ALL),
    ):
        with pytest.raises(
            tl.TensorNotFoundError, match=r"no features 'ctl' .* did you mean 'ctr'.*\.write"
        ):
            ask()
    with pytest.raises(tl.TensorExistsError, match="mode='overwrite'"):
        ctr.write(ALL)
    with pytest.raises(tl.InvalidOptionError, match="mode='append' is not a mode"):
        ctr.write(ALL, mode="append")
    for name in ("", "a//b", 3, "x" * 505):
        with pytest.raises(tl.InvalidTensorError):
            lake.features(name)


@pytest.mark.parametrize(
    ("codec", "said"),
    [
        ("zstt", "unknown codec 'zstt'; did you mean 'zstd'"),
        (3, "unknown codec 3"),
        ("int8+zstd", "its step int8 quantises"),
        ("pco", "no form for dtype bool, which feature 'ok' has"),
        ("transpose+pco", "no form for dtype bool, which feature 'ok' has"),
    ],
)
def test_codecs_that_features_cannot_have(ctr, lake, codec, said):
    before = files_of(lake)
    table = pa.table({"new": [1, 2, 3], "ok": [True, False, None]})
    for change in (lake.features("n").write, ctr.add):
        with pytest.raises(tl.InvalidOptionError, match=said):
            change(table, codec=codec)
    with pytest.raises(tl.InvalidOptionError, match=said):
        lake.features("n").write_parts([table], codec=codec)
    assert files_of(lake) == before


def test_parts_that_name_another_codec_are_appended_with_a_warning(lake, caplog):
    features = lake.features("n").write(pa.table({"a": [1, 2]}), codec="zstd")
    with caplog.at_level("WARNING"):
        features.write_parts([pa.table({"a": [3]})], codec="zstd")
        assert not caplog.records
        features.write_parts([pa.table({"a": [4]})], codec="shuffle+zstd")
    assert "'n' of dtype int64 have codec zstd, and an append keeps it" in caplog.text
    assert features.read()["a"].to_pylist() == [1, 2, 3, 4]


def test_tensors_that_were_changed_alone(ctr, lake):
    lake.write("ctr/float32", np.zeros((2, 1), np.float32), mode="append")
    with pytest.raises(
        tl.CorruptDataError, match="belongs to a table of features and was changed alone"
    ):
        lake.features("ctr")
    lake.restore("ctr/float32", 1)
    assert lake.features("ctr").read().equals(ALL)
    lake["ctr/int64"].update_attrs({"tensorlake.features": {"places": 3}})
    with pytest.raises(
        tl.CorruptDataError, match=r"its attribute 'tensorlake.features' is not readable"
    ):
        lake.features("ctr")


def test_parts_that_are_no_iterator_of_tables(lake):
    with pytest.raises(tl.InvalidTensorError, match=r"^tables=3 is not an iterator of tables; one"):
        lake.features("n").write_parts(3)
    assert not lake.features("n").exists
