"""The index of ids answers as a comparison with the bounds of every file does."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.delta.log.live_files import IdIndex

NAMES = st.one_of(st.none(), st.sampled_from(["", "a", "b", "b/c", "z", "ä", "\U0001f600"]))


def objects(values):
    out = np.empty(len(values), object)
    out[:] = values
    return out


def expected(tensor_id, bounds):
    return [
        place
        for place, (least, most) in enumerate(bounds)
        if (least is None or least <= tensor_id) and (most is None or most >= tensor_id)
    ]


BOUNDS = st.lists(st.tuples(NAMES, NAMES), max_size=6)


@given(
    first=BOUNDS, steps=st.lists(BOUNDS, max_size=4), ask=NAMES.filter(bool), asked=st.booleans()
)
def test_an_index_that_grows_answers_as_the_bounds_do(first, steps, ask, asked):
    index, bounds = IdIndex(), first
    versions = [(index, bounds)]
    for more in steps:
        if asked:
            index.places(ask, *map(objects, zip(*bounds, strict=True))) if bounds else None
        index = index.later(len(bounds), *(objects([b[k] for b in more]) for k in (0, 1)))
        bounds = bounds + more
        versions.append((index, bounds))
    for index, bounds in reversed(versions):  # a later version may have been asked before
        found = index.places(ask, *(objects([b[k] for b in bounds]) for k in (0, 1)))
        assert found.tolist() == expected(ask, bounds)


def test_two_versions_that_follow_the_same_one_do_not_share_it():
    none = objects([])
    index = IdIndex()
    assert index.places("a", objects(["a"]), objects(["a"])).tolist() == [0]
    one = index.later(1, objects(["a"]), objects(["a"]))
    other = index.later(1, objects(["b"]), objects(["b"]))
    assert one is index
    assert one.places("a", objects(["a", "a"]), objects(["a", "a"])).tolist() == [0, 1]
    assert other.places("a", objects(["a", "b"]), objects(["a", "b"])).tolist() == [0]
    assert other.places("b", objects(["a", "b"]), objects(["a", "b"])).tolist() == [1]
    assert IdIndex().places("a", none, none).tolist() == []
