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
    planned = PlannedOrder()
    for number in range(order.n_batches):
        for rank in range(world_size):
            plan = plan_of(order, None, number, rank, world_size, 3)
            planned.add(pickle.loads(pickle.dumps(plan)))
            expected = order.share(number, rank, world_size)
            np.testing.assert_array_equal(planned.share(number, rank, world_size), expected)
            asked = [
                (number, rank, world_size, p, s) for p in range(len(expected)) for s in (1, 2, 3)
            ]
            assert [planned.standing_in(*o) for o in asked] == [
                order.standing_in(*o) for o in asked
            ]
            planned.drop(number)


def test_positions_are_those_of_samples():
    order = EpochOrder(6, 3, "block", key=1, starts=np.array([0, 2, 4, 6]))
    lying = np.array([5, 4, 3, 2, 1, 0])
    plan = plan_of(order, lying, 1, 0, 1, 1)
    np.testing.assert_array_equal(plan.positions, lying[order.share(1, 0, 1)])
    later = [order.standing_in(1, 0, 1, place, 1) for place in range(3)]
    np.testing.assert_array_equal(plan.later, lying[[later]])


def test_no_sample_stands_in_where_none_is_skipped():
    assert plan_of(EpochOrder(10, 2, "global"), None, 0, 0, 1, 0).later.shape == (0, 2)
