"""Generated queries give the same rows by Spark as by SQLite, and so as by this process."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from queried_rows import compared, dataset_at, other, sqlite
from query_texts import queries

from tensorlake_spark.spark import query


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return dataset_at(str(tmp_path_factory.mktemp("generated") / "ds"))


@pytest.fixture(scope="module")
def oracle():
    con = sqlite()
    yield con
    con.close()


# In Spark, IN of a query is false where it would be null, so those queries are left out.
ASKED = queries().filter(lambda asked: "IN (SELECT" not in asked.ours)


# A query takes Spark a good part of a second, so there are few, the same ones each time, and none is made smaller.
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(asked=ASKED)
def test_generated_queries_give_the_rows_of_sqlite(spark, stored, oracle, asked):
    frame = query(spark, asked.ours, dataset=stored, other=other())
    found, expected = compared(asked, frame.collect(), oracle)
    assert found == expected
