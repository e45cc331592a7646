"""Which tensors a run of optimize takes up, and which numbers it refuses; the work itself: test_compaction.py."""

import logging

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.upkeep.optimize import optimize, row_group_bytes


@pytest.fixture
def lake(lake):
    x = np.arange(1.0, 257).reshape(16, 16)
    lake.write("tiles", x, block_shape=(2, 2), axes=("y", "x"))
    lake.write("flat", np.arange(8.0), axes=("t",))
    one = tl.SparseTensor([[0, 1], [3, 2]], [1.0, 2.0], (8, 8))
    lake.write("sums", one, layout="bsgs", axes=("y", "x"), duplicates="sum")
    return lake


def test_without_ids_tensors_that_cannot_be_ordered_stay(lake, caplog):
    with caplog.at_level(logging.INFO, "tensorlake_spark"):
        report = optimize(Storage(lake.uri), zorder=("x", "y"))
    assert (report.files_before, report.version) == (1, lake.version)
    assert "tensor 'flat' has no axis 'x'; its axes are t; it stays as it is" in caplog.text
    assert "tensor 'sums' combines duplicates; it stays as it is" in caplog.text


def test_axes_that_no_tensor_has_are_an_error(lake):
    version = lake.version
    with pytest.raises(tl.InvalidOptionError, match="has no axis 'depth'"):
        optimize(Storage(lake.uri), zorder=("depth",))
    assert lake.version == version


def test_all_names_are_looked_at_before_the_first_is_written(lake):
    version = lake.version
    with pytest.raises(tl.TensorNotFoundError, match="no tensor 'nobody'"):
        optimize(Storage(lake.uri), ["tiles", "nobody"], zorder=("x", "y"))
    with pytest.raises(tl.InvalidTensorError, match="5 is not an id of a tensor"):
        lake.optimize(5)
    with pytest.raises(tl.InvalidOptionError, match="'flat' has no axis 'x'"):
        optimize(Storage(lake.uri), ["tiles", "flat"], zorder=("x", "y"))
    assert lake.version == version


def test_max_bytes_is_for_all_tensors_together(lake):
    storage = Storage(lake.uri)
    lake.write("more", lake["tiles"][...], block_shape=(2, 2), axes=("y", "x"))
    one = optimize(storage, "tiles", zorder=("x", "y"), dry_run=True).bytes_before
    both = optimize(storage, zorder=("x", "y"), dry_run=True)
    assert (both.files_before, both.bytes_before > one) == (2, True)
    assert optimize(storage, zorder=("x", "y"), max_bytes=one + 10, dry_run=True).files_before == 1


@pytest.mark.parametrize("number", [{"min_files": 1}, {"target_bytes": 0}, {"max_bytes": 0}])
def test_numbers_that_make_no_sense(lake, number):
    (name,) = number
    with pytest.raises(tl.InvalidOptionError, match=f"{name} is"):
        optimize(Storage(lake.uri), **number)


def test_a_row_group_is_as_large_as_its_layout_wants_it():
    assert row_group_bytes("ftsf") >= 1 << 20
    assert row_group_bytes("of a later release") >= 1 << 20
