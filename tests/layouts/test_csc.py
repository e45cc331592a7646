"""CSC keeps the laws."""

from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.laws import LayoutLaws


class TestCsc(LayoutLaws):
    layout = layout_of("csc")
