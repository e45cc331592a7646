"""For which blocks there is a loop."""

import pytest

from tensorlake_spark.layouts.kernels.steps import Steps


@pytest.mark.parametrize(
    ("steps", "shape", "itemsize", "takes"),
    [
        (Steps(0, False, False, False, False), (4, 4), 4, False),
        (Steps(0, False, False, False, True), (4, 4), 1, False),
        (Steps(0, False, False, False, True), (4, 4), 2, True),
        (Steps(0, False, False, True, False), (4,), 1, True),
        (Steps(-2, False, False, False, False), (2, 2, 2, 4, 4), 1, True),
        (Steps(0, True, True, True, True), (2, 3, 4), 4, True),
        (Steps(0, True, True, True, True), (1, 2, 1, 3, 4), 4, True),
        (Steps(0, True, True, True, True), (2, 2, 3, 4), 4, False),
    ],
)
def test_a_loop_is_there_where_there_is_something_to_do(steps, shape, itemsize, takes):
    assert steps.takes(shape, itemsize) == takes


def test_each_kind_of_steps_has_its_loop():
    assert Steps(0, True, False, False, False).loop == "lorenzo"
    assert [Steps(axis, False, False, True, True).loop for axis in (0, -1, -2)] == [
        "plain",
        "lines",
        "rows",
    ]
