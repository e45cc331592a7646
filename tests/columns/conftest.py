"""A table of features in the lake of a test."""

import pytest
from feature_examples import ALL


@pytest.fixture
def ctr(lake):
    """3 rows of all types."""
    return lake.features("ctr").write(ALL)
