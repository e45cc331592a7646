"""Generated queries on scalars and tensors give the rows of SQLite, which has the tensors' numbers from NumPy."""

import pytest
from examples import times
from hypothesis import given
from queried_rows import compared, dataset_at, other, sqlite
from query_texts import queries

import tensorlake_spark as tl


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return dataset_at(str(tmp_path_factory.mktemp("generated") / "ds"))


@pytest.fixture(scope="module")
def oracle():
    con = sqlite()
    yield con
    con.close()


@times(2)
@given(asked=queries())
def test_generated_queries_give_the_rows_of_sqlite(stored, oracle, asked):
    view = tl.query(asked.ours, dataset=stored, other=other())
    found, expected = compared(asked, (row.values() for row in view), oracle)
    assert found == expected
