"""Names as DuckDB reads them."""

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from tensorlake_spark.query.sources.duckdb_tables import as_arrow, duckdb_type, quoted

TYPES = [
    pa.bool_(), pa.int8(), pa.int64(), pa.uint32(), pa.float32(), pa.float64(), pa.string(), pa.binary(),
    pa.date32(), pa.decimal128(9, 2), pa.timestamp("us"), pa.timestamp("us", "UTC"),
]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_null_of_each_type_has_that_type(kind):
    with duckdb.connect() as con:
        found = (
            con.sql(f"SELECT NULL::{duckdb_type(kind)} AS x")
            .to_arrow_table()
            .schema.field("x")
            .type
        )
    assert found == kind or (pa.types.is_timestamp(kind) and pa.types.is_timestamp(found))


def test_names_with_quotes():
    name = 'a"b/c.d'
    with duckdb.connect() as con:
        assert con.sql(f"SELECT 1 AS {quoted(name)}").columns == [name]


def test_frames_lose_their_index():
    assert as_arrow(pd.DataFrame({"a": [1]}, index=[7]), "t").column_names == ["a"]
