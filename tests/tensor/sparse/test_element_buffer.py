"""ElementBuffer: a dict of places is the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import BuilderClosedError
from tensorlake_spark.tensor.sparse.element_buffer import ElementBuffer

PLACES = st.integers(0, 59)
STEPS = st.one_of(
    st.tuples(st.just("put"), PLACES, st.integers(-2, 2)),
    st.tuples(st.just("extend"), st.lists(st.tuples(PLACES, st.integers(-1, 1)), max_size=90)),
    st.tuples(st.just("get"), PLACES),
    st.tuples(st.just("count")),
    st.tuples(st.just("reserve"), st.integers(0, 300)),
    st.tuples(st.just("coords")),
)


@given(st.lists(STEPS, max_size=30), st.booleans())
def test_the_last_put_counts_and_zeros_remove(steps, begun):
    start = np.array([3, 8, 59] if begun else [], np.int64)
    buffer, model = (
        ElementBuffer(start, np.ones(len(start), int), (3, 4, 5)),
        dict.fromkeys(start.tolist(), 1),
    )
    for name, *what in steps:
        if name == "put":
            buffer.put(*what)
            model[what[0]] = what[1]
        elif name == "extend":
            pairs = np.array(what[0], np.int64).reshape(-1, 2)
            buffer.extend(pairs[:, 0], pairs[:, 1])
            model.update(what[0])
        elif name == "get":
            assert buffer.get(what[0]) == model.get(what[0], 0)
        elif name == "count":
            assert buffer.elements().nnz == sum(map(bool, model.values()))
        elif name == "reserve":
            buffer.reserve(what[0])
            assert buffer.capacity >= what[0]
        else:
            buffer.elements().coords  # from here on coordinates are kept
    found = buffer.elements()
    want = sorted((place, value) for place, value in model.items() if value)
    assert found.places.tolist() == [place for place, _ in want]
    assert found.values.tolist() == [value for _, value in want]
    assert found.coords.tolist() == [
        *map(list, np.array(np.unravel_index(found.places, (3, 4, 5))).tolist())
    ]


def test_more_puts_than_are_looked_through():
    buffer = ElementBuffer(np.arange(9000), np.ones(9000), (9000,))
    for place in range(5000):
        buffer.put(place, place % 3)
    assert [buffer.get(place) for place in (0, 1, 2, 6000)] == [0, 1, 2, 1]


def test_a_value_that_is_refused_changes_nothing():
    buffer = ElementBuffer(np.empty(0, np.int64), np.empty(0, np.int8), (9,))
    with pytest.raises(OverflowError):
        buffer.put(3, 300)
    assert buffer.elements().nnz == 0


def test_a_buffer_that_is_closed():
    buffer = ElementBuffer(np.arange(2), np.ones(2), (9,))
    buffer.close()
    for use in (
        lambda: buffer.put(0, 1),
        buffer.elements,
        lambda: buffer.get(0),
        lambda: buffer.reserve(9),
    ):
        with pytest.raises(BuilderClosedError):
            use()
