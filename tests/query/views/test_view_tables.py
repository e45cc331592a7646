"""A view as a table of Arrow, as a DataFrame, and as HTML."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types


@pytest.fixture
def view(shapes):
    return shapes.ds.query(
        "SELECT images[:8, :8] AS crop, labels, note FROM dataset WHERE sid >= 6 ORDER BY sid DESC"
    )


def test_a_table_has_tensors_as_their_types_store_them(shapes, view):
    table = view.to_arrow()
    assert table.column_names == view.names
    crops = types.Tensor("uint8", (8, 8, 3)).stack(table["crop"].combine_chunks())
    assert np.array_equal(crops[0], shapes.images[59][:8, :8])
    assert view.to_arrow(["note", "labels"]).column_names == ["note", "labels"]
    with pytest.raises(tl.UnknownLabelError, match="did you mean 'crop'"):
        view.to_arrow(["crops"])


def test_a_frame_has_values(shapes, view):
    frame = view.to_pandas(["note", "labels", "crop"])
    assert frame.index.tolist() == view.sids.tolist()
    assert frame["note"].isna().sum() == sum(i % 7 == 0 for i in range(6, 60))
    assert frame["labels"].dtype == np.int32
    assert frame["crop"].iloc[0].shape == (8, 8, 3)


def test_columns_with_nulls_keep_their_kind():
    given = pa.table({"n": [1, None], "f": [None, 0.5], "b": [True, None], "s": ["a", None]})
    frame = tl.query("SELECT * FROM t", t=given).to_pandas()
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "float64", "boolean", "object"]
    numbers = tl.query("SELECT a FROM t", t=pd.DataFrame({"a": pd.array([1, None], "Int64")}))
    assert numbers.to_pandas()["a"].dtype == "Int64"


def test_html_shows_the_first_rows(view):
    shown = view._repr_html_()
    assert shown.count("<tr>") == 11
    assert "uint8 of shape (8, 8, 3)" in shown
    assert "54 rows" in shown


@pytest.fixture
def sparse(tmp_path):
    """Ninety nulls, and then two arrays."""
    found = tl.dataset(tmp_path / "sparse", {"x": types.Tensor("float32", (None,)), "n": "int32"})
    found.extend({"x": [None] * 90 + [[1.0], [2.0, 3.0]], "n": range(92)})
    return found


def test_the_type_of_a_column_that_begins_with_nulls_is_that_of_its_first_value(sparse):
    view = sparse.query("SELECT x * 2 AS y, array_max(x) AS most FROM dataset")
    assert view.types["y"].fixed() == ("float32", (None,))
    table = view.to_arrow(["most"])
    assert table["most"].to_pylist() == [None] * 90 + [1.0, 3.0]


@pytest.mark.parametrize(("where", "count"), [("n < 90", 90), ("n > 100", 0)])
def test_a_column_without_values_is_one_of_nulls(sparse, where, count):
    table = sparse.query(f"SELECT x * 2 AS y, n FROM dataset WHERE {where}").to_arrow()
    assert table.schema.field("y").type == pa.null()
    assert len(table) == table["y"].null_count == count


def test_rows_that_cannot_be_read_are_told_in_the_table(shapes, monkeypatch):
    view = shapes.ds.query("SELECT images, note FROM dataset")
    assert "<i>" not in view._repr_html_()

    def damaged(*_, **__):
        raise tl.CorruptDataError("<image> 3 is damaged")

    monkeypatch.setattr("tensorlake_spark.query.view.View.__getitem__", damaged)
    shown = view._repr_html_()
    assert "SELECT images" in shown
    assert "<td colspan=2><i>&lt;image&gt; 3 is damaged</i></td>" in shown
    assert "60 rows" in shown
