"""Names in queries."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.query.planning.names import columns_name, identifiers

T = pa.table({"id": [1, 2], "Value": [10, 20]})
U = pa.table({"id": [2, 3], "value": [7, 8]})


def rows(sql):
    return tl.query(sql, t=T, u=U).to_arrow().to_pylist()


def test_parts_of_names():
    (column,) = parse("SELECT a.b.c.d.e FROM a").selects
    assert [one.name for one in identifiers(column)] == [*"abcde"]
    assert columns_name(column) == "a.b.c.d.e"


def test_names_have_no_case():
    assert rows("SELECT VALUE FROM T WHERE T.ID = 2") == [{"Value": 20}]


def test_using_makes_one_column_of_two():
    assert rows("SELECT * FROM t JOIN u USING (id)") == [{"id": 2, "Value": 20, "value_1": 7}]
    found = rows("SELECT id, t.value AS a, u.value AS b FROM t FULL JOIN u USING (id) ORDER BY id")
    assert [row["id"] for row in found] == [1, 2, 3]
    assert [row["id"] for row in rows("SELECT id FROM t RIGHT JOIN u USING (id) ORDER BY 1")] == [
        2,
        3,
    ]


def test_aliases_are_known_to_order_and_group():
    assert rows("SELECT -id AS Value FROM t ORDER BY value") == [{"Value": -2}, {"Value": -1}]
    assert rows("SELECT id % 2 AS odd, count(*) AS n FROM t GROUP BY odd ORDER BY odd") == [
        {"odd": 0, "n": 1},
        {"odd": 1, "n": 1},
    ]


def test_an_inner_name_comes_before_an_outer_one():
    sql = "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE id = 3 AND t.id = 1)"
    assert rows(sql) == [{"id": 1}]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT valu FROM t", "did you mean 'Value'"),
        ("SELECT t.nothing FROM t", "there is no column 't.nothing'"),
        ("SELECT id FROM t, u WHERE t.id = u.id", "t.id, u.id"),
        ("SELECT a", "no table in FROM"),
        ("SELECT * FROM t JOIN u USING (other)", "USING names 'other'"),
    ],
)
def test_mistakes_have_a_place(sql, said):
    with pytest.raises(tl.InvalidQueryError, match=said) as caught:
        rows(sql)
    assert "line 1, column" in str(caught.value)
    assert "^" in str(caught.value)


def test_names_of_classes_in_arrange_by_and_in_windows(shapes):
    found = shapes.ds.query("SELECT labels FROM dataset ARRANGE BY labels = 'dog'")["labels"]
    is_dog = shapes.labels == 1
    first = is_dog[0]
    assert found.tolist() == [*shapes.labels[is_dog == first], *shapes.labels[is_dog != first]]
    sql = (
        "SELECT labels, count(*) OVER w AS n FROM dataset WINDOW w AS (PARTITION BY labels = 'dog')"
    )
    counts = shapes.ds.query(sql)["n"]
    assert sorted(counts) == sorted(np.where(is_dog, is_dog.sum(), (~is_dog).sum()))


def test_a_star_of_a_group_is_refused_with_its_columns(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"training/a": "int32", "training/b": "int32"})
    with pytest.raises(
        tl.InvalidQueryError, match=r"group of columns, not a table; write training\.a, training\.b"
    ):
        ds.query("SELECT training.* FROM dataset")
