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
