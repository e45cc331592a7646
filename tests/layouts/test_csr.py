"""CSR keeps the laws."""

import numpy as np

from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.sparse.element_runs import RUN
from tensorlake_spark.layouts.testing.laws import SparseLaws


class TestCsr(SparseLaws):
    layout = layout_of("csr")


def test_a_group_of_very_many_elements_is_divided():
    """Else a row of the table would have no bound."""
    spans = layout_of("csr")._cut(np.zeros((1, 20 * RUN), np.int8))
    assert [stop - start for start, stop in spans] == [8 * RUN, 8 * RUN, 4 * RUN]
