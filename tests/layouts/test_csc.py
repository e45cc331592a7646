"""CSC keeps the laws."""

from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.testing.laws import SparseLaws


class TestCsc(SparseLaws):
    layout = layout_of("csc")
