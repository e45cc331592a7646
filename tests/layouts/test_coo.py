"""COO keeps the laws."""

from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.testing.laws import SparseLaws


class TestCoo(SparseLaws):
    layout = layout_of("coo")
