"""A result becomes a tensor by one commit."""

import numpy as np
import pytest

from tensorlake_spark.computing.writing_results import write_result
from tensorlake_spark.errors import TensorExistsError
from tensorlake_spark.writing.source import source_of


def test_a_result_is_in_the_next_version(lake):
    ref = lake.write("x", np.ones(3))
    after = write_result(ref._snapshot, "y", source_of(np.zeros(2)), "auto")
    assert after.version == ref.version + 1
    assert lake["y"].shape == (2,)
    with pytest.raises(TensorExistsError):
        write_result(ref._snapshot, "y", source_of(np.zeros(2)), "auto")
