"""What is computed on: a selection at a version."""

import numpy as np

from tensorlake_spark.tensor.sparse import SparseTensor


def test_what_is_known_of_a_selection(lake):
    stored = lake.write("x", np.ones((4, 6)), block_shape=(2, 3))._stored
    assert stored.is_whole
    assert not stored.part(slice(1, None)).is_whole
    assert stored.part(0).shape == (6,)
    assert stored.box((1, 2), (3, 4)).read().tolist() == [[1, 1], [1, 1]]
    assert not stored.is_sparse
    assert stored.plan().n_rows == 4
    assert stored.plain.box.shape == (4, 6)


def test_elements_that_appends_repeat_are_not_counted(lake):
    x = SparseTensor([[1]], [2], (4,))
    lake.write("x", x, layout="coo", duplicates="last")
    stored = lake.write("x", x, mode="append", axis=None)._stored
    assert stored.has_duplicates
    assert stored.known_nnz is None
