"""Tables beside datasets."""

import pyarrow as pa
import pytest

import tensorlake_spark as tl

TABLE = pa.table(
    {
        "id": [1, 2, 3],
        "at": [{"x": 1, "y": {"z": 5}}, None, {"x": 3, "y": {"z": 6}}],
        "Tags": [[1, 2], [], None],
    }
)


def test_fields_of_structs_are_columns():
    view = tl.query("SELECT id, at.x, t.at.y.z AS z FROM t WHERE at.y.z > 5", t=TABLE)
    assert view.to_arrow().to_pylist() == [{"id": 3, "x": 3, "z": 6}]


def test_names_have_no_case_and_lists_are_arrays():
    view = tl.query(
        "SELECT tags[0] AS first, shape(tags)[0] AS n FROM t WHERE id < 3 AND shape(TAGS)[0] > 0",
        t=TABLE,
    )
    assert view[0] == {"first": 1, "n": 2}
    assert tl.query("SELECT * FROM t", t=TABLE).names == ["id", "at", "Tags"]


def test_a_table_in_memory_has_no_versions():
    with pytest.raises(tl.InvalidQueryError, match="no versions"):
        tl.query("SELECT * FROM t VERSION 3", t=TABLE)
