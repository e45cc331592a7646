"""What is wrong with the options of a loader is said in one line."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.loader import RandomFlip
from tensorlake_spark.loader.loader_options import BUFFER_BYTES, checked_options


@pytest.mark.parametrize(
    ("given", "mode", "buffer"),
    [(False, None, BUFFER_BYTES), (True, "block", BUFFER_BYTES), ("block", "block", BUFFER_BYTES), ("global", "global", BUFFER_BYTES), ("1MB", "block", 10**6), (5000, "block", 5000)],
)  # fmt: skip
def test_ways_to_shuffle(given, mode, buffer):
    found = checked_options(4, shuffle=given)
    assert (found.shuffle, found.buffer) == (mode, buffer)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"batch_size": 0}, "batch_size=0 is not a whole number of at least 1"),
        ({"batch_size": 2.5}, "batch_size=2.5 is not a whole number"),
        ({"batch_size": True}, "batch_size=True is not a whole number"),
        ({"rank": 2, "world_size": 2}, "rank=2 is not below world_size=2; ranks are counted from 0 to 1"),
        ({"rank": -1}, "rank=-1 is not a whole number of at least 0"),
        ({"world_size": 0}, "world_size=0 is not a whole number of at least 1"),
        ({"splits": 0}, "splits=0 is not a whole number of at least 1"),
        ({"splits": 5000}, "splits=5000 streams are too many to be read side by side; give at most 1024"),
        ({"shuffle": "blocks"}, "did you mean 'block'"),
        ({"shuffle": 1}, "shuffle=1 is not True, False, 'block', 'global' or a size in bytes"),
        ({"shuffle": np.zeros(3)}, "is not True, False, 'block', 'global' or a size in bytes"),
        ({"shuffle": 10**400}, "is not True, False, 'block', 'global' or a size in bytes"),
        ({"shuffle": "9" * 400}, "is not True, False, 'block', 'global' or a size in bytes"),
        ({"workers": np.zeros(3)}, "is not a number of threads"),
        ({"workers": 10**6}, "workers=1000000 threads are more than a loader starts; give at most 1024"),
        ({"on_error": np.zeros(3)}, "is neither 'raise' nor 'skip'"),
        ({"collate": np.zeros(3)}, "is not one of pad, stack, list"),
        ({"workers": 0}, "workers=0 is not a number of threads"),
        ({"workers": "threads"}, "workers='threads' is not a number of threads"),
        ({"memory": "much"}, "memory='much' is not a size"),
        ({"prefetch": 0}, "prefetch=0 is not a whole number of at least 1"),
        ({"on_error": "ignore"}, "on_error='ignore' is neither 'raise' nor 'skip'"),
        ({"collate": "padded"}, "collate='padded' is not one of pad, stack, list"),
        ({"transform": 5}, "transform=5 is neither a function of a sample"),
        ({"transform": RandomFlip}, "transform=RandomFlip is a class of transforms of images; call it: RandomFlip(...)"),
        ({"transform": {"x": RandomFlip}}, "transform=RandomFlip is a class"),
        ({"drop_last": 1}, "drop_last=1 is not True or False"),
        ({"seed": None}, "seed=None is not a whole number"),
    ],
)  # fmt: skip
def test_what_is_wrong(options, says):
    with pytest.raises(tl.InvalidOptionError) as error:
        checked_options(**{"batch_size": 8, **options})
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("world", [2**21, 2**62, 2**70])
def test_more_processes_than_there_can_be(world):
    with pytest.raises(tl.InvalidOptionError, match=f"world_size={world} .* at most 1048576"):
        checked_options(1, world_size=world)
