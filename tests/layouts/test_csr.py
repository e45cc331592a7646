"""CSR keeps the laws."""

from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.testing.laws import SparseLaws


class TestCsr(SparseLaws):
    layout = layout_of("csr")
