"""CSR, compressed sparse rows (Delta Tensor, section IV-D): one row is a run of matrix rows.

The axes named by ``row_axes`` are the rows of a matrix, the others its columns; the index of a run has
the number of elements in the matrix rows of its box (the differences of the row pointers), and the
column ids.
"""

from __future__ import annotations

from tensorlake_spark.layouts.sparse.compressed_axes import CompressedLayout


class Csr(CompressedLayout):
    """Row pointers and column ids."""

    name = "csr"
    rows_are_major = True
