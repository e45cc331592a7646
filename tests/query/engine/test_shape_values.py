"""Shapes and dtypes without elements."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.engine.shape_values import shape_fields, stand_ins

N = 40


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    rng = np.random.default_rng(3)
    values = {
        "t": [None if i % 7 == 2 else rng.normal(size=(i % 5, 3)).astype("f4") for i in range(N)],
        "g/e": list(rng.normal(size=(N, 6)).astype("f4")),
        "q": list(rng.normal(size=(N, 6)).astype("f4")),
        "image": [
            rng.integers(0, 256, (5 + i % 3, 8) if i % 2 else (6, 7, 3)).astype("u1")
            for i in range(N)
        ],
        "raw": [rng.normal(size=(4, 5 + i % 2, 2)).astype("f4") for i in range(N)],
        "apart": [
            None if i % 9 == 2 else rng.normal(size=(i % 6, 2)).astype("f4") for i in range(N)
        ],
        "far": [rng.normal(size=(4 + i % 2, 5)).astype("f4") for i in range(N)],
    }
    schema = {
        "t": types.Tensor("float32", (None, 3)),
        "g/e": types.Embedding(6),
        "q": types.Embedding(6, quantize="int8"),
        "image": types.Image("png"),
        "raw": types.Image("raw", dtype="float32"),
        "apart": types.Tensor("float32", (None, 2), apart=True),
        "far": types.Image("raw", dtype="float32", apart=True),
    }
    ds = tl.dataset(str(tmp_path_factory.mktemp("s") / "ds"), schema)
    for part in np.array_split(np.arange(N), 2):
        ds.extend({name: [v[i] for i in part] for name, v in values.items()})
    return ds, values


@pytest.mark.parametrize("name", ["t", "g/e", "q", "image", "raw", "apart", "far"])
def test_shapes_and_dtypes_are_those_of_the_values(made, name):
    ds, values = made
    quoted = '"' + name + '"'
    view = ds.query(
        f"SELECT shape({quoted}) AS s, dtype({quoted}) AS d, shape({quoted}, 0) AS n FROM dataset"
    )
    for row, value in zip(view, values[name], strict=True):
        if value is None:
            assert row["s"] is None
            assert row["d"] is None
        else:
            assert row["s"].tolist() == list(value.shape)
            assert str(row["d"]) == str(value.dtype)
            assert int(row["n"]) == value.shape[0]


@pytest.mark.parametrize("name", ["t", "g/e", "image", "raw", "apart", "far"])
def test_elements_are_not_read(made, name, monkeypatch):
    ds, values = made
    assert shape_fields(ds.parts, name)
    found, nbytes = stand_ins(ds.parts, name, np.array([7, 3, 2]))
    for value, place in zip(found, [7, 3, 2], strict=True):
        wanted = values[name][place]
        assert (value is None) == (wanted is None)
        assert value is None or (value.shape, value.dtype) == (wanted.shape, wanted.dtype)
    assert nbytes > 0
    monkeypatch.setattr("tensorlake_spark.query.engine.leaf_values.read_column", None)
    monkeypatch.setattr("tensorlake_spark.query.engine.read_report.read_column", None)
    quoted = '"' + name + '"'
    view = ds.query(
        f"SELECT shape({quoted}) AS s FROM dataset WHERE shape({quoted}, 0) > 3 ORDER BY sid DESC"
    )
    rows = [
        i for i in range(N)[::-1] if values[name][i] is not None and values[name][i].shape[0] > 3
    ]
    assert view.sids.tolist() == rows
    assert [s.tolist() for s in view["s"]] == [list(values[name][i].shape) for i in rows]
    report = view.explain()
    assert {one.rows for one in report.selected} == {len(rows)}


def test_what_is_stored_in_another_way_is_looked_at(made):
    ds, _ = made
    assert stand_ins(ds.parts, "q", np.arange(3)) is None


def test_an_apart_column_without_any_value(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"x": types.Tensor("int8", apart=True), "n": "int8"})
    ds.extend({"n": [1, 2]})
    assert stand_ins(ds.parts, "x", np.arange(2)) is None
    assert [row["s"] for row in ds.query("SELECT shape(x) AS s FROM dataset")] == [None, None]


def test_shapes_and_elements_of_one_column_are_both_right(made):
    ds, values = made
    view = ds.query('SELECT shape("g/e") AS s, array_sum("g/e") AS n FROM dataset')
    assert np.allclose(view["n"], np.array(values["g/e"]).sum(1), atol=1e-5)
    (read,) = view.explain().selected
    assert read.bytes > N * 24
