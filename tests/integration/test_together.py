"""Ingestion, optimisation, purges and readers at once on one table: no row lost, no wrong slice, no reader error."""

import pytest
from together import together


def test_all_at_once(spark, tmp_path):
    assert min(together(spark, tmp_path, 15).values()) >= 1


@pytest.mark.soak
def test_all_at_once_for_three_minutes(spark, tmp_path):
    assert min(together(spark, tmp_path, 180).values()) >= 10
