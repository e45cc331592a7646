"""CSC, compressed sparse columns (Delta Tensor, section IV-D): one row is a run of matrix columns.

As CSR with the sides exchanged: pointers over the columns of the matrix, and row ids. What it prunes
best is a slice on the axes that are not among ``row_axes``.
"""

from __future__ import annotations

from tensorlake_spark.layouts.sparse.compressed_axes import CompressedLayout


class Csc(CompressedLayout):
    """Column pointers and row ids."""

    name = "csc"
    rows_are_major = False
