"""Which blocks go straight into a state, and where their lines lie there."""

import warnings

import numpy as np
import pytest

from tensorlake_spark import kernel_switch
from tensorlake_spark.computing.operations import accumulation
from tensorlake_spark.computing.operations.accumulation import accumulate, has_loop, is_known
from tensorlake_spark.computing.operations.block_reductions import KERNELS


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setenv(kernel_switch.SWITCH, "fast")
    monkeypatch.setattr(kernel_switch, "installed", lambda: True)
    monkeypatch.setattr(kernel_switch, "_off", False)
    monkeypatch.setattr(kernel_switch, "_ready", set())


def places(*slices):
    return tuple(slice(a, b) for a, b in slices)


def test_a_block_goes_to_its_place_in_a_larger_answer(fast):
    block = np.arange(3 * 2 * 100.0).reshape(3, 2, 100)
    state = (np.full((5, 300), 1.0),)
    assert accumulate("add", block, (0,), state, places((2, 4), (150, 250)))
    wanted = np.full((5, 300), 1.0)
    wanted[2:4, 150:250] += block.sum(axis=0)
    np.testing.assert_array_equal(state[0], wanted)


def test_axes_of_one_element_do_not_end_a_line():
    block = np.zeros((4, 8, 1, 40), np.uint8)
    found = accumulation._lines(block, (0,), (8, 5, 40), places((0, 8), (2, 3), (0, 40)))
    assert found is None  # lines of 40 elements are short
    found = accumulation._lines(block, (0,), (8, 1, 40), places((0, 8), (0, 1), (0, 40)))
    assert found.length == 320
    assert found.steps.tolist() == [0, 320, 640, 960]
    found = accumulation._lines(
        np.zeros((4, 1, 80), np.uint8), (0,), (9, 80), places((3, 4), (0, 80))
    )
    assert found.length == 80
    assert found.places.tolist() == [240]


def test_short_lines_change_nothing(fast):
    state = (np.zeros(7),)
    assert not accumulate("add", np.ones((3, 7)), (0,), state, places((0, 7)))
    assert not state[0].any()


def test_what_has_no_loop(fast, monkeypatch):
    sums = (np.zeros(0),)
    plain = np.ones((4, 100))
    assert has_loop("add", plain, (0,), sums)
    for block in (plain[:, ::2], plain.astype("f2"), plain.astype(">f8"), plain[:0], plain + 0j):
        assert not has_loop("add", block, (0,), sums)
    assert not has_loop("", plain, (0,), sums)
    assert not has_loop("add", plain, (), sums)
    assert not has_loop("add", plain, (1,), sums)  # NumPy adds floats in pairs
    assert has_loop("add", plain.astype("i2"), (1,), sums)
    assert has_loop("best", plain.astype("i8"), (1,), (np.zeros(0, "i8"), np.zeros(0, "u1")))
    assert not has_loop(
        "best", plain, (1,), (np.zeros(0), np.zeros(0, "u1"))
    )  # NaN is the best of all
    monkeypatch.setenv(kernel_switch.SWITCH, "numpy")
    assert not has_loop("add", plain, (0,), sums)


def test_known_dtypes():
    assert all(is_known(np.dtype(name)) for name in ("?", "i1", "u8", "f4", "f8"))
    assert not any(is_known(np.dtype(name)) for name in ("f2", "c16", "M8[s]", ">i4", "U3"))


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("ddof", [0, 1.5, 3])
def test_compiled_variances_are_those_of_numpy(fast, monkeypatch, name, ddof):
    block = np.random.default_rng(0).integers(0, 256, (3, 2, 50), np.uint8)
    kernel = KERNELS[name](block.dtype, 3, ddof=ddof)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three elements, and three are taken from them
        found = kernel.finish(kernel.start(block, (0,)), 3)
        monkeypatch.setenv(kernel_switch.SWITCH, "numpy")
        np.testing.assert_array_equal(found, kernel.finish(kernel.start(block, (0,)), 3))
        np.testing.assert_allclose(found, getattr(np, name)(block, axis=0, ddof=ddof))
