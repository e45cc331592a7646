"""Footers as arrays."""

import pytest
from stored import only_file, write

from tensorlake_spark.delta.files.footer import Footer, footer_of
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
