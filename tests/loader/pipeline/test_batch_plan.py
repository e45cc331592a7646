"""Plans of batches: what a process needs to know of the order of an epoch."""

import pickle

import numpy as np
import pytest

from tensorlake_spark.loader.order.epoch_order import EpochOrder
from tensorlake_spark.loader.pipeline.batch_plan import PlannedOrder, plan_of


@pytest.mark.parametrize("shuffle", [None, "global", "block"])
@pytest.mark.parametrize("world_size", [1, 2])
def test_a_planned_order_is_the_order(shuffle, world_size):
    order = EpochOrder(50, 8, shuffle, key=3, starts=np.arange(0, 51, 5))
    planned = PlannedOrder(order.count, order.batch_size)
    for number in range(order.n_batches):
        for rank in range(world_size):
            plan = plan_of(order, None, number, rank, world_size, 3)
            planned.add(pickle.loads(pickle.dumps(plan)))
            expected = order.share(number, rank, world_size)
            np.testing.assert_array_equal(planned.share(number, rank, world_size), expected)
            assert planned.span(number) == order.span(number)
            first = order.span(number)[0] + rank * len(expected)
            for place in range(len(expected)):
                for step in range(1, 4):
                    later = (first + place + step * 8) % 50
                    assert planned.sequence(later, later + 1) == order.sequence(later, later + 1)
            planned.drop(number)


def test_positions_are_those_of_samples():
    order = EpochOrder(6, 3, "block", key=1, starts=np.array([0, 2, 4, 6]))
    lying = np.array([5, 4, 3, 2, 1, 0])
    plan = plan_of(order, lying, 1, 0, 1, 1)
    np.testing.assert_array_equal(plan.positions, lying[order.share(1, 0, 1)])
    np.testing.assert_array_equal(plan.later, lying[order.sequence(0, 3)])


def test_what_was_not_planned():
    order = EpochOrder(10, 2, None)
    planned = PlannedOrder(10, 2)
    planned.add(plan_of(order, None, 0, 0, 1, 0))
    with pytest.raises(LookupError, match="place 4"):
        planned.sequence(4, 5)
