"""What a SELECT may not say is refused with its place, by Spark's door as elsewhere; and what Spark refuses."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.spark import query
from tensorlake_spark.spark.queries.select_checks import refused


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    schema = {"x": tl.types.Tensor("float32", (2,)), "label": "int32", "w": "float64"}
    made = tl.dataset(str(tmp_path_factory.mktemp("checks") / "ds"), schema)
    made.extend({"x": np.ones((4, 2), "f4"), "label": [0, 1, 0, 1], "w": [1.0, 2, 3, 4]})
    return made


SAME = [
    "SELECT max(x) AS m FROM dataset",
    "SELECT sum(DISTINCT x) AS m FROM dataset",
    "SELECT label FROM dataset GROUP BY label HAVING avg(x) > 1",
    "SELECT array_agg(x) FILTER (WHERE label > 0) AS y FROM dataset",
    "SELECT label FROM dataset ORDER BY 2",
    "SELECT label FROM dataset GROUP BY 5",
    "SELECT label FROM dataset LIMIT 'x'",
    "SELECT label FROM dataset LIMIT 3 OFFSET :half",
    "SELECT label FROM dataset UNION SELECT label, w FROM dataset",
    "SELECT label FROM dataset VERSION 'gold'",
    "SELECT DISTINCT label FROM dataset ORDER BY w",
    "SELECT DISTINCT label + 1 AS l FROM dataset ORDER BY l, -(w + label) DESC",
    "SELECT DISTINCT label FROM dataset AS d ORDER BY d.w",
    "SELECT DISTINCT label FROM dataset ORDER BY sid",
    "SELECT DISTINCT label FROM dataset ORDER BY array_max(x)",
    "SELECT DISTINCT count(*) AS n FROM dataset GROUP BY label ORDER BY label",
]


REFUSED = [
    ("label, x FROM dataset ORDER BY 2", "^x is an array a row, and ORDER BY.*column 39"),
    ("label, x AS y FROM dataset GROUP BY label ORDER BY 2", "^y is an array a row, and ORDER BY"),
    ("array_max(any_value(x)) AS m FROM dataset GROUP BY label", r"^ANY_VALUE\(x\): it cannot.*line 1, column 18"),
    ("array_max(x + row_number() OVER ()) AS m FROM dataset", r"^ROW_NUMBER\(\) OVER \(\): it cannot stand inside"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "said"), REFUSED)
def test_what_cannot_be_computed_of_tensors_is_refused_at_once(spark, ds, sql, said):
    with pytest.raises(InvalidQueryError, match=said):
        query(spark, f"SELECT {sql}", dataset=ds)


@pytest.mark.parametrize("sql", SAME)
def test_mistakes_are_said_in_the_same_words(spark, ds, sql):
    said = []
    for run in (tl.query, partial(query, spark)):
        with pytest.raises(InvalidQueryError) as error:
            run(sql, dataset=ds, parameters={"half": 0.5})
        said.append(str(error.value))
    assert said[0] == said[1]
    assert "line 1, column" in said[0]


def test_an_order_of_distinct_by_what_it_does_not_select_has_its_place(ds):
    with pytest.raises(
        InvalidQueryError, match=r"'w', and SELECT DISTINCT does not select it; .*line 1, column 45"
    ):
        ds.query("SELECT DISTINCT label FROM dataset ORDER BY w")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT label FROM dataset ORDER BY x", r"x is an array a row, and ORDER BY.*column 36"),
        ("SELECT count(*) AS n FROM dataset GROUP BY x[:1]", r"an array a row, and GROUP BY.*reduce it"),
        ("SELECT count(*) AS n FROM dataset GROUP BY w IN (SELECT 1) HAVING w IN (SELECT 1)",
         r"HAVING cannot repeat a sub-query of GROUP BY; select it too.*column 67"),
        ("SELECT label, w FROM dataset GROUP BY label", "Spark refuses the query: The non-aggregating expression"),
        ("SELECT upper(x) AS u FROM dataset", "data type mismatch.*line 1, column 8"),
        ("SELECT (SELECT label, w FROM dataset) AS s", "must return only one column"),
    ],
)  # fmt: skip
def test_what_spark_cannot_do_is_our_error(spark, ds, sql, said):
    with pytest.raises(InvalidQueryError, match=r"(?s)" + said):
        query(spark, sql, dataset=ds)


def test_the_error_of_spark_is_the_cause(spark, ds):
    with pytest.raises(InvalidQueryError) as error:
        query(spark, "SELECT count(count(*)) AS n FROM dataset", dataset=ds)
    assert isinstance(error.value.__cause__, AnalysisException)
    assert "SQLSTATE" not in str(error.value)


def test_a_word_that_stands_once_is_marked():
    error = AnalysisException(
        "[X.Y] Cannot resolve `top` here. SQLSTATE: 42000; line 1 pos 3;\n'Project"
    )
    assert str(refused("SELECT top FROM t", error)).splitlines()[0] == (
        "Spark refuses the query: Cannot resolve 'top' here (line 1, column 8)"
    )
    assert "column" not in str(refused("SELECT top FROM t ORDER BY top", error))


ROWS = [
    ("SELECT DISTINCT label AS l FROM dataset ORDER BY label DESC", 2),
    ("SELECT DISTINCT dataset.label FROM dataset ORDER BY dataset.label", 2),
    ("SELECT DISTINCT label FROM dataset ORDER BY abs(label - 1) + label * 2, (SELECT max(w) FROM dataset)", 2),
    ("SELECT DISTINCT label + 1 AS l, 1 AS one FROM dataset ORDER BY label + 1, 2 LIMIT 1", 1),
    ("SELECT DISTINCT x, label FROM dataset ORDER BY array_max(x) + label", 2),
    ("SELECT DISTINCT array_sum(x * label) AS s FROM dataset ORDER BY array_sum(x * label) DESC", 2),
    ("SELECT w IN (SELECT k FROM t) AS i, count(*) AS n FROM dataset GROUP BY w IN (SELECT k FROM t) "
     "HAVING w IN (SELECT k FROM t) IS NOT NULL ORDER BY w IN (SELECT k FROM t)", 2),
    ("SELECT w FROM dataset WHERE w < 2 UNION ALL SELECT w FROM dataset WHERE w > 2 ORDER BY w % 4 LIMIT 2", 2),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "count"), ROWS)
def test_orders_and_keys_that_spark_knows_by_name_alone(spark, ds, sql, count):
    sources = {"dataset": ds, "t": pa.table({"k": [1.0, 2.0]})}
    found = [row.asDict() for row in query(spark, sql, **sources).collect()]
    here = tl.query(sql, **sources)
    numbers = [name for name in here.names if name != "x"]
    assert [[row[n] for n in numbers] for row in found] == [
        [row[n] for n in numbers] for row in here
    ]
    assert len(found) == count
