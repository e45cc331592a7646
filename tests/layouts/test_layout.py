"""What every layout has without a line of its own."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts.layout import grid_of
from tensorlake_spark.layouts.layout_registry import LAYOUTS
from tensorlake_spark.tensor.spec import TensorSpec

FTSF = LAYOUTS["ftsf"]


def spec(shape, block=()):
    return TensorSpec("x", shape, np.dtype("u1"), "ftsf", block)


def test_the_grid_of_a_tensor():
    assert grid_of(spec((5, 7), (2, 3))).n_cells == 9
    assert grid_of(spec((5, 7))).n_cells == 1, "without blocks it is one cell"
    assert grid_of(spec(())).n_cells == 1
    assert grid_of(spec((0, 7), (2, 3))).n_cells == 0


def test_a_layout_without_parameters_refuses_them():
    assert FTSF.choose_params(2, None, None) == {}
    for name, given in (("order", ((1, 0), None)), ("row_axes", (None, (0,)))):
        with pytest.raises(tl.InvalidOptionError, match=f"layout ftsf has no {name}"):
            FTSF.choose_params(2, *given)


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_said_of_a_layout_is_of_its_kind(name):
    layout = LAYOUTS[name]
    assert layout.row_group_bytes > 0
    dtype = np.dtype("i4")  # window has no floats
    block = layout.default_block((40, 50), dtype, 0.01)
    assert len(block) == (2 if layout.has_blocks else 0)
    assert all(side >= 1 for side in block)
    params = layout.choose_params(2, None, None)
    made = TensorSpec("x", (40, 50), dtype, name, block, params=params)
    assert layout.leading_axis(made) in (0, 1)
    assert layout.arrangement(made)
    with pytest.raises(tl.InvalidOptionError, match="nosuch"):
        layout.check_codec("nosuch")
