"""CSR keeps the laws."""

from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.laws import LayoutLaws


class TestCsr(LayoutLaws):
    layout = layout_of("csr")
