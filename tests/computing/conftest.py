"""Lakes that the examples of a page share: each example writes tensors of its own."""

import pytest

import tensorlake_spark as tl


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tl.open(str(tmp_path_factory.mktemp("shared") / "lake"))
