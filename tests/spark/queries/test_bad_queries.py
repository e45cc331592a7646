"""Mistakes are refused by Spark's door before Spark runs anything, in the same words."""

import re

import numpy as np
import pytest
from bad_queries import BAD_QUERIES

import tensorlake_spark as tl
from tensorlake_spark.query.user_functions import unregister_function
from tensorlake_spark.spark import query


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    made = tl.dataset(
        str(tmp_path_factory.mktemp("bad") / "ds"),
        {"x": tl.types.Tensor("float32", (None,)), "label": "int32", "w": "float64"},
    )
    made.extend({"x": [[n, n] for n in range(16)], "label": np.arange(16), "w": np.arange(16) / 4})
    return made


@pytest.mark.parametrize(("sql", "said"), BAD_QUERIES)
def test_mistakes_are_refused(spark, ds, sql, said):
    with pytest.raises(tl.InvalidQueryError) as caught:
        query(spark, sql, dataset=ds)
    assert re.search(said, str(caught.value), re.DOTALL), caught.value


def test_slices_and_numbers_are_as_numpy_has_them(spark, ds):
    sql = "SELECT shape(x[5:9]) AS s, array_sum(x / 0) AS far, w / 0 AS plain FROM dataset WHERE sid < 2 ORDER BY sid"
    first, second = query(spark, sql, dataset=ds).collect()
    assert np.isnan([first.far, first.plain]).all()
    assert np.isinf([second.far, second.plain]).all()


def test_remainders_by_zero_are_as_numpy_has_them(spark, ds):
    sql = (
        "SELECT label % 0 AS a, mod(label, sid - sid) AS b, label DIV 0 AS c, label % 5 AS d FROM dataset "
        "WHERE label % (label - 1) = 0"
    )
    found = query(spark, sql, dataset=ds).toPandas()
    assert found.to_numpy().tolist() == [[0, 0, 0, n] for n in (0, 1, 2)]


def test_remainders_of_floats_by_zero_are_nan(spark, ds):
    sql = (
        "SELECT w % 0 AS a, mod(w, sid - sid) AS b, CAST(w AS FLOAT) % :n AS c, sum(w) OVER () % 0 AS d, "
        "label % 0 AS e, NULLIF(w, w) % 0 AS f FROM dataset WHERE w % 0 > 1"
    )
    frame = query(spark, sql, dataset=ds, parameters={"n": 0})
    assert [kind for _, kind in frame.dtypes] == ["double"] * 4 + ["int", "double"]  # fmt: skip
    found = frame.collect()
    assert len(found) == 16  # NaN is above all numbers, as it is elsewhere
    assert np.isnan([row[:4] for row in found]).all()
    assert {row[4:] for row in found} == {(0, None)}
    here = tl.query(sql, dataset=ds, parameters={"n": 0}).to_pandas()
    assert np.isnan(here[[*"abcd"]].astype("f8").to_numpy()).all()
    assert (here["e"] == 0).all()


def test_functions_of_users_that_fail_are_named(spark, ds):
    tl.register_function("no_good", lambda x: 1 / 0)
    try:
        with pytest.raises(Exception, match="no_good"):
            query(spark, "SELECT no_good(x) AS n FROM dataset", dataset=ds).collect()
    finally:
        unregister_function("no_good")


def test_functions_of_users_that_give_another_number_of_values_are_named(spark, ds):
    tl.register_function("one_less", lambda x: x[:-1])
    try:
        with pytest.raises(Exception, match=r"'one_less' returned 15 values for 16 rows"):
            query(spark, "SELECT one_less(label) AS n FROM dataset", dataset=ds).collect()
    finally:
        unregister_function("one_less")


def test_wrong_ranks_name_the_sample(spark, ds):
    for sql in (
        "SELECT x[0, 0] > 1 AS n FROM dataset WHERE label > 8",
        "SELECT a.label FROM dataset AS a JOIN dataset AS b USING (label) WHERE a.x[0, 0] > b.x[0] AND label > 8",
        "SELECT array_max(x[0, 0]) AS n, count(*) AS c FROM dataset WHERE label > 8 GROUP BY array_max(x[0, 0])",
    ):
        with pytest.raises(Exception, match=r"x\[0, 0\]: .*\(sample with sid (9|1[0-5])\)"):
            query(spark, sql, dataset=ds).collect()
