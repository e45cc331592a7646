"""TensorView: read when it is needed, at its version, and written through to the lake."""

from pathlib import Path

import numpy as np
import pytest
from computed import LAYOUTS, array_of, arrays, dense, equal, keys, put
from examples import times
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidKeyError,
    InvalidTensorError,
    MissingDataError,
)


@given(st.data(), arrays(), st.sampled_from(LAYOUTS))
@times(0.6)
def test_a_view_of_a_view_reads_what_numpy_does(shared, data, array, layout):
    first = data.draw(keys(array.shape))
    second = data.draw(keys(array[first].shape))
    wanted = array[first][second]
    view = put(shared, array, layout).view[first]
    equal(view[second], wanted)
    part = view.view[second]
    assert (part.shape, part.ndim, part.size, part.dtype) == (
        wanted.shape,
        wanted.ndim,
        wanted.size,
        wanted.dtype,
    )
    equal(np.asarray(part), wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_assigned_reaches_the_lake_and_the_reference(lake, layout):
    array = array_of("i8", (6, 5), 1)
    ref = put(lake, array, layout)
    view = ref.view[1:, ::-2]
    view[0] = 7
    view.view[1:3, 1][...] = [8, 9]
    array[1:, ::-2][0] = 7
    array[1:, ::-2][1:3, 1] = [8, 9]
    assert np.array_equal(dense(ref[...]), array)
    assert np.array_equal(dense(lake[ref.id][...]), array)
    assert view.version == ref.version == lake.version


def test_a_view_stays_at_its_version(lake):
    ref = lake.write("x", np.arange(6))
    view = ref.view[2:]
    lake["x"][...] = 0
    assert view[...].tolist() == [2, 3, 4, 5]
    assert view.sum() == 14
    with pytest.raises(ConcurrentWriteError):
        view[0] = 1
    assert lake["x"][...].tolist() == [0] * 6


@pytest.mark.local_disk
@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "coo", "csr", "csf"])
def test_only_files_that_overlap_are_read(lake, layout):
    """The others are not even there."""
    array = array_of("i8", (8, 6), 1) + 1
    ref = put(lake, array[:2], layout)
    for first in (2, 4, 6):
        ref = lake.write(ref.id, array[first : first + 2], mode="append")
    view, part = ref.view[4:6], array[4:6]
    plan = view.explain()
    assert (plan.n_files, plan.total_files) == (1, 4)
    assert plan.n_bytes < ref.explain().n_bytes / 2
    assert "result     (2, 6)" in str(plan)
    for path in Path(lake.uri).glob("*.parquet"):
        if path.name not in {file.path for file in plan.files}:
            path.unlink()
    equal(view[...], part)
    for name in ("sum", "var", "argmax", "argmin", "min", "all", "count_nonzero"):
        equal(getattr(view, name)(axis=0), getattr(np, name)(part, axis=0))
    equal(view.norm(axis=1), np.linalg.norm(part, axis=1))
    first = np.where((part > 2).any(axis=0), np.argmax(part > 2, axis=0), -1)
    equal(view.first_index((">", 2), axis=0), first)
    equal(np.tensordot(view, np.arange(6), (1, 0)), part @ np.arange(6))
    equal(np.multiply(view, 3), part * 3)
    with pytest.raises(MissingDataError):
        ref.sum()


def test_what_is_known_without_reading(lake):
    x = tl.SparseTensor([[0, 2]], [3, 4], (9,))
    ref = lake.write("x", x, layout="coo")
    assert (ref.view.nnz, ref.view[...].nnz, ref.view[1:].nnz, ref.view[:0].nnz) == (2, 2, None, 0)
    assert repr(ref.view[1:]) == "TensorView('x', shape=(8,), dtype=int64, version=1)"
    assert len(ref.view[1:]) == 8
    with pytest.raises(TypeError, match="has no axis"):
        len(ref.view[1])


def test_keys_that_do_not_fit_are_refused(lake):
    view = lake.write("x", np.zeros((4, 5))).view[1:]
    with pytest.raises(InvalidKeyError, match="out of bounds"):
        view[3]
    with pytest.raises(InvalidKeyError, match="too many"):
        view.view[0, 0, 0]
    with pytest.raises(ValueError, match="without a copy"):
        view.__array__(copy=False)


def test_the_truth_of_a_view_is_numpys(lake):
    view = lake.write("x", np.array([1, 0])).view
    assert view[0]
    assert not view[1]
    with pytest.raises(InvalidTensorError, match=r"ambiguous.*2 elements"):
        bool(view)


@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "coo", "csf"])
def test_the_element_of_a_tensor_without_axes_may_be_picked_several_times(lake, layout):
    ref = lake.write("x", np.float32(7), layout=layout)
    view = ref.view[None].view[[0, 0, 0]]
    assert dense(view[...]).tolist() == [7, 7, 7]
    assert view.sum() == 21
    view[...] = [3, 4, 5]
    assert dense(lake["x"][...]).tolist() == 5


@pytest.mark.parametrize("quantize", ["float16", "int8", {"error": 0.5}])
def test_a_quantised_element_without_axes_may_be_picked_several_times(lake, quantize):
    ref = lake.write("x", np.float32(7), layout="ftsf", quantize=quantize)
    assert ref.view[None].view[[0, 0]][...].tolist() == [7, 7]


def test_indices_of_an_axis_longer_than_the_memory(lake):
    ref = lake.write(
        "x", tl.SparseTensor([[1, 0], [5, 2**60]], [3.0, 4.0], (2, 2**61)), layout="coo"
    )
    assert ref.view[:, [2**60, 5, 7]].sum(axis=0).todense().tolist() == [4, 3, 0]
