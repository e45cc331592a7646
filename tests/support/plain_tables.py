"""What the pages about plain Delta tables have in common: the table of `spark/conftest.py`, and slices of it."""

import numpy as np
import pyarrow as pa

from tensorlake_spark.spark.source.schemas import tensors_of

SHAPE = (9, 7, 5)
SPARSE = ("bsgs", "coo", "csr", "csc", "csf")
KEYS = [
    ("", np.s_[:]),
    ("3:5", np.s_[3:5]),
    ("2, ..., 4", np.s_[2, ..., 4]),
    ("1:8:3, :, ::2", np.s_[1:8:3, :, ::2]),
    ("-2:, ::-2, None", np.s_[-2:, ::-2, None]),
    ("0, 0, 0", np.s_[0, 0, 0]),
    ("5:5", np.s_[5:5]),
]


def tensors(table):
    """The tensors of a column of Spark's, None where it is null."""
    column = table.combine_chunks().column(0)
    column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    known = iter(tensors_of(column.drop_null()))
    return [next(known) if valid else None for valid in column.is_valid().to_pylist()]
