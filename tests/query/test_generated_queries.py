"""Generated queries on scalars and tensors give the rows of SQLite, which has the tensors' numbers from NumPy."""

from examples import times
from hypothesis import given
from queried_rows import compared, other
from query_texts import queries

import tensorlake_spark as tl


@times(2)
@given(asked=queries())
def test_generated_queries_give_the_rows_of_sqlite(queried, oracle, asked):
    view = tl.query(asked.ours, dataset=queried, other=other())
    found, expected = compared(asked, (row.values() for row in view), oracle)
    assert found == expected
