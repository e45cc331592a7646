"""Generated queries give the same rows by Spark as by SQLite, and so as by this process."""

from hypothesis import HealthCheck, Phase, given, settings
from queried_rows import compared, other
from query_texts import queries

from tensorlake_spark.spark import query


# A query takes Spark a good part of a second, so there are few, the same ones each time, and none is made smaller.
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(asked=queries())
def test_generated_queries_give_the_rows_of_sqlite(spark, queried, oracle, asked):
    frame = query(spark, asked.ours, dataset=queried, other=other())
    found, expected = compared(asked, frame.collect(), oracle)
    assert found == expected
