"""Runs of CSR and CSC as bytes: what is decoded is what was encoded, and what is torn is told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.indexing import Box
from tensorlake_spark.layouts.layout_registry import layout_of
from tensorlake_spark.layouts.sparse.compressed_axes import SPARSE_LINES
from tensorlake_spark.tensor.spec import TensorSpec


def run_of(name, shape, row_axes, places):
    """Return a layout, a tensor, and the coordinates of some elements in its storage order."""
    layout = layout_of(name)
    params = layout.choose_params(len(shape), None, row_axes)
    spec = TensorSpec("x", shape, np.dtype("f4"), name, (), params=params)
    coords = np.array(np.unravel_index(places, shape), np.int64).reshape(len(shape), -1)
    order = layout.storage_order(spec)
    return layout, spec, coords[:, np.lexsort(coords[list(order)][::-1])]


@given(st.sampled_from(["csr", "csc"]), st.data())
def test_elements_are_found_again(name, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=4)))
    size = int(np.prod(shape))
    count = data.draw(st.integers(1, min(size, 40)))
    places = np.random.default_rng(size).permutation(size)[:count]
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1)))
    layout, spec, coords = run_of(name, shape, sorted(axes), places)
    index = layout.encode_run(coords, shape, spec)
    everything = Box((0,) * len(shape), shape)
    kept, found = layout.decode_run(index, count, shape, layout.row_params(spec), everything)
    assert kept is None
    np.testing.assert_array_equal(found, coords)
    lo = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    hi = tuple(data.draw(st.integers(a + 1, n)) for a, n in zip(lo, shape, strict=True))
    kept, found = layout.decode_run(index, count, shape, layout.row_params(spec), Box(lo, hi))
    taken = np.arange(count) if kept is None else kept
    np.testing.assert_array_equal(found, coords[:, taken])
    inside = ((coords >= np.array([lo]).T) & (coords < np.array([hi]).T)).all(axis=0)
    assert {*np.flatnonzero(inside).tolist()} <= {*taken.tolist()}


def test_by_default_the_first_half_of_the_axes_are_rows():
    for ndim, want in ((1, [0]), (2, [0]), (3, [0, 1]), (4, [0, 1])):
        assert layout_of("csr").choose_params(ndim, None, None) == {"row_axes": want}
    assert layout_of("csr").sides_of((0, 2), 3) == ((0, 2), (1,))
    assert layout_of("csc").sides_of((0, 2), 3) == ((1,), (0, 2))


def test_lines_are_named_where_most_are_empty():
    """Pointers to a million empty lines would be larger than the elements."""
    shape = (10**6, 4)
    layout, spec, coords = run_of("csr", shape, [0], np.array([0, 7, 3_999_999]))
    assert shape[0] > SPARSE_LINES * 3
    index = layout.encode_run(coords, shape, spec)
    assert len(index) < 200
    box = Box((0, 0), shape)
    np.testing.assert_array_equal(
        layout.decode_run(index, 3, shape, layout.row_params(spec), box)[1], coords
    )


@pytest.mark.parametrize(
    "params", [None, "{}", '{"row_axes":0}', '{"row_axes":[0,0]}', '{"row_axes":[2]}']
)
def test_row_axes_that_are_none(params):
    layout, spec, coords = run_of("csr", (4, 5), [0], np.arange(6))
    index = layout.encode_run(coords, (4, 5), spec)
    with pytest.raises(tl.CorruptDataError, match="row axes"):
        layout.decode_run(index, 6, (4, 5), params, Box((0, 0), (4, 5)))


@pytest.mark.parametrize("count", [5, 7, 600])
def test_pointers_that_do_not_add_up(count):
    layout, spec, coords = run_of("csr", (4, 5), [0], np.arange(6))
    index = layout.encode_run(coords, (4, 5), spec)
    with pytest.raises(tl.CorruptDataError):
        layout.decode_run(index, count, (4, 5), layout.row_params(spec), Box((0, 0), (4, 5)))
