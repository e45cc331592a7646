"""Footers as arrays."""

import numpy as np
import pytest
from stored import only_file, write

from tensorlake_spark.delta.files.footer import Footer, footer_at, footer_of
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.row import SCHEMA

pytestmark = pytest.mark.local_disk


def test_footers_answer_for_row_groups(lake):
    write(lake)
    footer = footer_of(Storage(lake.uri), only_file(lake).name)
    assert isinstance(footer, Footer)
    assert footer.may_hold("x", data=True).sum() == len(footer.rows) - 1
    assert footer.may_hold("x", data=False).sum() == 1
    assert not footer.may_hold("y", data=True).any()
    assert "values" in footer.columns
    assert set(SCHEMA.names) >= {"id", "seq"}


def test_bounds_are_those_of_the_statistics(lake):
    lake.write("a", np.arange(12.0).reshape(4, 3), block_shape=(1, 3))
    lake.write("b", np.arange(-9, 9), block_shape=(4,))
    snapshot = lake._snapshot()
    for place in range(len(snapshot.files.path)):
        footer = footer_at(snapshot, place)
        for name in ("id", "seq", "nnz", "lo.d0", "lo.d1", "hi.d0", "hi.d1", "hi.d7"):
            least, most = footer.bounds(name)
            for g in range(footer.metadata.num_row_groups):
                group = footer.metadata.row_group(g)
                chunks = [group.column(k) for k in range(group.num_columns)]
                (found,) = [c.statistics for c in chunks if c.path_in_schema == name]
                known = found is not None and found.has_min_max
                assert (least[g], most[g]) == ((found.min, found.max) if known else (None, None))
                assert {type(least[g]), type(most[g])} <= {int, str, type(None)}
