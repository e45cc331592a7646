"""Sizes of rows: what Arrow says of slices is the oracle, but for the bits that tell nulls."""

import numpy as np
import pyarrow as pa
import pytest
from stored_rows import rows

from tensorlake_spark.rows.row_sizes import row_ends


def test_rows_of_every_kind_have_about_the_bytes_that_arrow_says():
    table = rows(0, 300)
    ends = row_ends(table)
    for start, stop in [(0, 300), (0, 1), (17, 18), (40, 200), (299, 300)]:
        said = table.slice(start, stop - start).nbytes
        found = ends[stop] - ends[start]
        assert abs(found - said) <= 16 * len(table.columns) + (stop - start)


COLUMNS = {
    "fixed": pa.array([1, None, 3], pa.int16()),
    "text": pa.array(["ab", "", "xyz"]),
    "wide": pa.array([b"ab", b"", b"xyz"], pa.large_binary()),
    "list": pa.array([[1, 2], None, [3]], pa.list_(pa.int32())),
    "struct": pa.array([{"d": b"ab"}, {"d": b""}, {"d": b"xyz"}]),
}
ENDS = {
    "fixed": [0, 3, 6, 9],  # with the bits
    "text": [0, 6, 10, 17],
    "wide": [0, 10, 18, 29],
    "list": [0, 12, 16, 24],
    "struct": [0, 6, 10, 17],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_slice_counts_from_its_first_row(name):
    table = pa.table({name: COLUMNS[name]})
    wanted = np.array(ENDS[name])
    assert row_ends(table).tolist() == wanted.tolist()
    if name != "fixed":
        assert row_ends(table.slice(1)).tolist() == (wanted[1:] - wanted[1]).tolist()
    both = pa.concat_tables([table, table.slice(2)])
    assert row_ends(both)[-1] - row_ends(both)[-2] == row_ends(table.slice(2))[-1]


def test_no_rows():
    assert row_ends(rows(0, 3).slice(0, 0)).tolist() == [0]
    assert row_ends(pa.table({"a": pa.array([], pa.binary())})).tolist() == [0]
