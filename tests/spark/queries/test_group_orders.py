"""ORDER BY beside HAVING may compute what a SELECT does not give, as it may elsewhere."""

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
