"""Rows that others encode, in parts and in any order, become the table that one process writes."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from feature_examples import ALL, files_of

import tensorlake_spark as tl
from tensorlake_spark.columns.feature_encoding import (
    add_elsewhere,
    append_elsewhere,
    write_elsewhere,
)
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, TensorExistsError


class Elsewhere:
    """Rows of a table that are encoded in parts of some rows, the last ones first, by what was sent as bytes."""

    def __init__(self, table, step=4096):
        self.table, self.step, self.prepared = table.combine_chunks(), step, 0

    def prepare(self, types):
        self.prepared += 1
        if types is not None:
            have = {*self.table.column_names}
            columns = [
                self.table[f.name].cast(f.type) if f.name in have else pa.chunked_array([pa.nulls(self.rows, f.type)])
                for f in types
            ]  # fmt: skip
            self.table = pa.Table.from_arrays(columns, schema=types)

    @property
    def schema(self):
        return self.table.schema

    @property
    def rows(self):
        return self.table.num_rows

    @property
    def with_nulls(self):
        return frozenset(n for n in self.table.column_names if self.table[n].null_count)

    def sample(self, names):
        return self.table.select(names).slice(0, 4096).combine_chunks()

    def encode(self, encoding):
        assert not any(t.spec.labels or t.spec.attrs for t in encoding.tensors)
        encoding = pickle.loads(pickle.dumps(encoding))
        for start in reversed(range(0, self.rows, self.step)):
            yield encoding.encode(self.table.slice(start, self.step).combine_chunks(), start, "m-")


def change(features, make):
    return features._change("write", None, make, None)


def many(rows, start=0):
    rng = np.random.default_rng(rows)
    ids = np.arange(start, start + rows)
    return pa.table(
        {
            **{f"f{k}": rng.normal(size=rows).astype("f4") for k in range(20)},
            **{f"i{k}": ids * k for k in range(3)},
            "b": pa.array([None if k % 5000 == 17 else bool(k % 2) for k in ids.tolist()]),
            "at": pa.array(ids, pa.timestamp("us", tz="UTC")),
        }
    )


@pytest.fixture
def lake(tmp_path):
    return tl.open(tmp_path / "lake")


@pytest.mark.parametrize("step", [4096, 8192])
def test_parts_in_any_order_are_the_whole(lake, step):
    table = many(9001)
    one = change(
        lake.features("one"), lambda now: write_elsewhere(now, Elsewhere(table, step), "auto")
    )
    assert one.version == 1
    assert one.read().equals(table)
    lake.features("two").write(table)
    for name in ("float32", "int64", "bool", "bool/null"):
        a, b = lake[f"one/{name}"]._meta, lake[f"two/{name}"]._meta
        assert (a.spec.codec, a.spec.attrs, a.spec.labels) == (b.spec.codec, b.spec.attrs, b.spec.labels)  # fmt: skip
        assert (a.totals, a.spec.segments) == (b.totals, b.spec.segments)
    assert lake.check().ok


def test_every_type_and_null(lake):
    features = change(
        lake.features("ctr"), lambda now: write_elsewhere(now, Elsewhere(ALL), "smallest")
    )
    assert features.read().equals(ALL)
    change(features, lambda now: append_elsewhere(now, Elsewhere(ALL)))
    assert features.read().equals(pa.concat_tables([ALL, ALL]).combine_chunks())


@pytest.mark.parametrize("before", [1, 4096, 5000])
def test_an_append_goes_on_where_the_table_ended(lake, before):
    first, more = many(before), many(9000, before)
    features = lake.features("ctr").write(first)
    features.add(pa.table({f"g{k}": np.zeros(before, "f4") for k in range(20)}))
    more = more.append_column("late", pa.nulls(9000, pa.float32()))
    features.add(pa.table({"late": np.ones(before, "f4")}))
    zeros = {f"g{k}": np.zeros(9000, "f4") for k in range(20)}
    for name, values in zeros.items():
        more = more.append_column(name, pa.array(values))
    files = files_of(lake)
    change(features, lambda now: append_elsewhere(now, Elsewhere(more)))
    assert {n: files_of(lake)[n] for n in files} == files
    assert features.read(rows=slice(before, None)).equals(more.select(features.names))
    assert features.read(first.column_names, slice(0, before)).equals(first)
    assert features.read(["late"])["late"].null_count == 9000
    assert lake.check().ok


@pytest.mark.parametrize("step", [4096, 8192])
@pytest.mark.parametrize("pieces", [(9001,), (100, 4050), (1, 4096, 4904), (5000, 1, 1, 3999)])
def test_features_that_are_added_go_on_beside_the_others(lake, pieces, step):
    """Rows that were appended begin blocks anew, so blocks end elsewhere than parts."""
    rows = sum(pieces)
    table = many(rows)
    one, two = lake.features("one"), lake.features("two")
    for features in (one, two):
        features.write(table.slice(0, pieces[0]))
        for k in range(1, len(pieces)):
            features.append(table.slice(sum(pieces[:k]), pieces[k]))
    new = many(rows, 7).drop_columns(["b"]).append_column("late", table["b"])
    new = new.rename_columns([f"new {name}" for name in new.column_names])
    new = new.append_column("half", pa.array(np.arange(rows) % 9, pa.float16()))
    new = new.append_column("few", pa.array([None, *range(1, rows)], pa.float32()))
    files = files_of(lake)
    change(one, lambda now: add_elsewhere(now, Elsewhere(new, step), "auto"))
    two.add(new)
    assert {n: files_of(lake)[n] for n in files} == files
    assert one.schema == two.schema
    assert one.read().equals(two.read())
    assert one.read(new.column_names).equals(new)
    assert one.read([*table.column_names]).equals(table)
    for name in ("float32", "float32/null", "int64", "bool", "bool/null", "float16"):
        a, b = lake[f"one/{name}"]._meta.spec, lake[f"two/{name}"]._meta.spec
        assert (a.shape, a.codec, a.attrs, a.labels) == (b.shape, b.codec, b.attrs, b.labels)
    one.append(one.read(rows=slice(0, 10)))
    assert one.read(rows=slice(rows, None)).equals(one.read(rows=slice(0, 10)))
    one.drop(["f19", "new f3"])
    assert one.read(["new f4"])["new f4"].to_pylist()[:rows] == new["new f4"].to_pylist()
    assert lake.check().ok


def test_features_of_no_rows_are_added(lake):
    features = lake.features("ctr").write(pa.table({"a": pa.array([], pa.int64())}))
    new = pa.table({"b": pa.array([], pa.int64()), "c": pa.array([], pa.float32())})
    change(features, lambda now: add_elsewhere(now, Elsewhere(new), "auto"))
    assert features.names == ["a", "b", "c"]
    features.append(pa.table({"a": [1], "b": [2], "c": pa.array([0.5], pa.float32())}))
    assert features.read().to_pylist() == [{"a": 1, "b": 2, "c": 0.5}]


@pytest.mark.parametrize(
    ("table", "error", "message", "prepared"),
    [
        (pa.table({"a": [1]}), InvalidTensorError, "feature 'a' is in 'ctr' already; drop", 0),
        (pa.table({"c": [0.5]}), TensorExistsError, "is not one of features", 0),
        (pa.table({"c": [1, 2]}), InvalidTensorError, "2 rows of new features do not fit", 1),
    ],
)
def test_features_that_cannot_be_added_are_said_before_they_are_encoded(
    lake, table, error, message, prepared
):
    features = lake.features("ctr").write(pa.table({"a": [1], "b": [2]}))
    lake.write("ctr/float64", np.zeros((1, 1)))
    rows = Elsewhere(table)
    with pytest.raises(error, match=message):
        change(features, lambda now: add_elsewhere(now, rows, "auto"))
    assert rows.prepared == prepared
    assert lake.features("ctr").names == ["a", "b"]


def test_write_takes_the_place_of_what_was_there(lake):
    features = lake.features("ctr").write(many(100))
    change(features, lambda now: write_elsewhere(now, Elsewhere(pa.table({"a": [1, 2]})), "auto"))
    assert features.read().to_pydict() == {"a": [1, 2]}
    assert [*lake] == ["ctr/int64"]
    lake.write("other/int64", np.zeros(3))
    with pytest.raises(TensorExistsError, match="is not one of features"):
        change(
            lake.features("other"),
            lambda now: write_elsewhere(now, Elsewhere(pa.table({"a": [1]})), "auto"),
        )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"a": [1], "c": [2]}), "column 'c' is not a feature of 'ctr'"),
        (pa.table({"a": [1]}), "no column for feature 'b'"),
    ],
)
def test_columns_that_do_not_fit_are_said_before_rows_are_prepared(lake, table, message):
    features = lake.features("ctr").write(pa.table({"a": [1], "b": [2]}))
    rows = Elsewhere(table)
    with pytest.raises(InvalidTensorError, match=message):
        change(features, lambda now: append_elsewhere(now, rows))
    assert not rows.prepared


def test_a_codec_is_checked_before_rows_are_encoded(lake):
    with pytest.raises(InvalidOptionError, match="zsdt"):
        change(lake.features("ctr"), lambda now: write_elsewhere(now, Elsewhere(ALL), "zsdt"))
    assert not lake.features("ctr").exists


def test_a_failure_leaves_no_file(lake):
    features = lake.features("ctr").write(many(10))
    before = files_of(lake)

    class Broken(Elsewhere):
        def encode(self, encoding):
            yield from super().encode(encoding)
            raise OSError("the executor is lost")

    with pytest.raises(OSError, match="lost"):
        change(features, lambda now: append_elsewhere(now, Broken(many(10))))
    assert features.read().num_rows == len(tl.open(lake.uri).features("ctr")) == 10
    # What was encoded before is for whoever encoded it to delete: the names begin with its mark.
    assert all(name.startswith("part-m-") for name in files_of(lake).keys() - before.keys())
