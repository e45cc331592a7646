"""ORDER BY beside HAVING and QUALIFY may compute what a SELECT does not give; names behind it mean the same in both doors."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.spark import query


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    schema = {"x": tl.types.Tensor("float32", (2,)), "label": "int32", "w": "float64"}
    made = tl.dataset(str(tmp_path_factory.mktemp("orders") / "ds"), schema)
    w = [5.0, 1, 4, 2, 0, 9, 7]
    x = np.array([w, np.arange(7)], "f4").T
    made.extend({"x": x, "label": [0, 1, 2, 0, 1, 2, 3], "w": w})
    return made


ROWS = [
    ("label FROM ds GROUP BY label HAVING count(*) > 1 ORDER BY max(w)", [[1], [0], [2]]),
    ("label FROM ds GROUP BY label HAVING count(*) > 1 ORDER BY count(*), label DESC", [[2], [1], [0]]),
    ("label AS l, count(*) FROM ds GROUP BY label HAVING max(w) > 2 ORDER BY min(w) DESC, 1 LIMIT 2 OFFSET 1",
     [[2, 2], [0, 2]]),
    ("max(w) AS m FROM ds HAVING count(*) > 2 ORDER BY min(w)", [[9]]),
    ("label FROM ds GROUP BY label HAVING max(array_max(x)) > 3 ORDER BY -max(array_min(x))", [[3], [2], [0], [1]]),
    ("label, max(w) AS m FROM ds GROUP BY label HAVING min(w) < 5 ORDER BY min(w) - m * :n, label",
     [[2, 9], [0, 5], [1, 1]]),
    ("q.label FROM (SELECT label FROM ds GROUP BY label HAVING min(w) < 5 ORDER BY max(w) LIMIT 1) AS q", [[1]]),
    ("label FROM ds GROUP BY label HAVING max(w) > 3 ORDER BY max(w) DESC ARRANGE BY label", [[2], [3], [0]]),
    ("any_value(label) AS label, x FROM ds GROUP BY w > 4 HAVING min(w) >= 0 ORDER BY max(w) LIMIT 1", [[1]]),
    ("label FROM ds WHERE label IN (SELECT label FROM ds GROUP BY label HAVING max(w) > 3 ORDER BY max(w) LIMIT 1)",
     [[0], [0]]),
    ("label FROM ds ORDER BY row_number() OVER (ORDER BY w DESC) LIMIT 2", [[2], [3]]),
    # QUALIFY comes before DISTINCT and LIMIT, and names columns first
    ("label, w FROM ds QUALIFY row_number() OVER (ORDER BY w) > 2 ORDER BY w LIMIT 2", [[0, 2], [2, 4]]),
    ("label FROM ds QUALIFY row_number() OVER (ORDER BY w) > 5 ORDER BY -w LIMIT 1 OFFSET 1", [[3]]),
    ("DISTINCT label FROM ds QUALIFY row_number() OVER (ORDER BY w) > 3 ORDER BY label LIMIT 2", [[0], [2]]),
    ("DISTINCT label, x FROM ds QUALIFY max(w) OVER (PARTITION BY label) < 6 ORDER BY label, array_max(x) LIMIT 1", [[0]]),
    ("label, rank() OVER (ORDER BY sum(w)) AS r FROM ds GROUP BY label QUALIFY r > 2", [[2, 4]]),
    ("label AS w, w AS v FROM ds QUALIFY row_number() OVER (ORDER BY v) > 5 AND w > 8", [[2, 9]]),
    # in an aggregate a name is a column, elsewhere in ORDER BY an item, and in HAVING a key before that
    ("label, sum(w) AS w FROM ds GROUP BY label ORDER BY max(w), label", [[1, 1], [0, 7], [3, 7], [2, 13]]),
    ("label, -sum(w) AS w FROM ds GROUP BY label HAVING w < -5 AND max(w) > 5 ORDER BY w", [[2, -13], [3, -7]]),
    ("-label AS label FROM ds GROUP BY label HAVING label > 1 ORDER BY label", [[-3], [-2]]),
    ("label + 1 AS label FROM ds GROUP BY label + 1 HAVING label + 1 > 2 ORDER BY 1", [[3], [4]]),
    ("count(*) AS label FROM ds WHERE w IN (SELECT w FROM ds GROUP BY w HAVING w > 4) HAVING label > 2", [[3]]),
    # the name of a constant is not the number of an item
    ("2 AS l, label AS m FROM ds WHERE w > 4 ORDER BY l, m", [[2, 0], [2, 2], [2, 3]]),
    ("2 AS l, -label AS m, label AS k FROM ds WHERE w > 4 ORDER BY 1, 3", [[2, 0, 0], [2, -2, 2], [2, -3, 3]]),
    ("2 AS l, -label AS m, count(*) AS n FROM ds GROUP BY l, m HAVING n > 1 ORDER BY l, m", [[2, -2, 2], [2, -1, 2], [2, 0, 2]]),
    ("'x' AS l, NULL AS m, label FROM ds WHERE w > 4 ORDER BY l, m DESC, 3", [["x", None, 0], ["x", None, 2], ["x", None, 3]]),
    ("label % 2 AS label, w FROM ds ARRANGE BY label", ARRANGED := [[0, 5], [0, 4], [0, 2], [0, 9], [1, 1], [1, 0], [1, 7]]),
    ("label % 2, w FROM ds ARRANGE BY 1", ARRANGED),
    # in a join
    ("a.label, -b.w AS w FROM ds AS a JOIN ds AS b USING (w) WHERE w > 4 ORDER BY w", [[2, -9], [3, -7], [0, -5]]),
    ("a.label FROM ds AS a JOIN ds AS b ON a.w = b.w WHERE a.w > 4 ORDER BY label", [[0], [2], [3]]),
    ("b.* FROM ds AS a JOIN ds AS b ON a.w = b.w WHERE a.w > 6 ORDER BY w", [[3, 7], [2, 9]]),
    ("DISTINCT b.label FROM ds AS a JOIN ds AS b ON a.w = b.w ORDER BY label LIMIT 2", [[0], [1]]),
    ("w AS l, label AS l FROM ds WHERE w > 4 ORDER BY l", [[5, 0], [9, 2], [7, 3]]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "wanted"), ROWS)
def test_groups_are_put_in_order_by_what_is_not_selected(spark, ds, sql, wanted):
    frame = query(spark, f"SELECT {sql}", ds=ds, parameters={"n": 1})
    here = tl.query(f"SELECT {sql}", ds=ds, parameters={"n": 1})
    assert frame.columns == here.names
    names = [name for name in here.names if name != "x"]
    assert [[row[name] for name in names] for row in here] == wanted
    assert [[row[name] for name in names] for row in frame.collect()] == wanted


def test_a_tensor_in_such_an_order_is_refused_where_it_stands(spark, ds):
    with pytest.raises(
        InvalidQueryError, match=r"ABS\(x\) is an array a row, and ORDER BY.*column 74"
    ):
        query(
            spark,
            "SELECT label FROM ds GROUP BY label HAVING count(*) > 1 ORDER BY max(w), abs(x)",
            ds=ds,
        )


def test_a_name_of_two_items_in_an_order_is_refused_in_both_doors(spark, ds):
    sql = "SELECT a.label, b.label FROM ds AS a JOIN ds AS b ON a.w = b.w ORDER BY label"
    for asked in (lambda: tl.query(sql, ds=ds), lambda: query(spark, sql, ds=ds)):
        with pytest.raises(InvalidQueryError, match=r"'label' is in several tables.*column 73"):
            asked()
