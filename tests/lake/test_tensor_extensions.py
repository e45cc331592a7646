"""The door from a tensor to its loader."""

import inspect

import numpy as np

import tensorlake_spark as tl
from tensorlake_spark.datasets.dataset_extensions import DoorMethods as DatasetDoors
from tensorlake_spark.lake.tensor_extensions import DoorMethods


def test_it_takes_what_the_door_of_a_dataset_takes():
    ours, theirs = (inspect.signature(one.loader).parameters for one in (DoorMethods, DatasetDoors))
    assert set(theirs) - set(ours) == {"columns", "where", "balance"}
    assert set(ours) - set(theirs) == {"axis"}
    for name in set(ours) & set(theirs):
        assert ours[name].default == theirs[name].default


def test_it_opens_a_loader(lake):
    loader = lake.write("x", np.arange(12).reshape(3, 4)).loader(2, axis=1)
    assert len(loader) == 2
    assert [batch["x"].tolist() for batch in loader] == [
        [[0, 4, 8], [1, 5, 9]],
        [[2, 6, 10], [3, 7, 11]],
    ]
    assert isinstance(lake["x"], tl.TensorRef)
