"""A state goes through JSON, goes on with any number of ranks, and says what is wrong with one that does not fit."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import FormatError, InvalidOptionError
from tensorlake_spark.loader.order.counter_random import key_of
from tensorlake_spark.loader.order.epoch_order import EpochOrder
from tensorlake_spark.loader.order.loader_state import LoaderState

STATE = LoaderState(2, 640, 7, 16, 4096, 64, "block", 3, source="a1b2", selection="c3d4")

STATES = st.builds(
    LoaderState,
    epoch=st.integers(0, 10**6),
    samples=st.integers(0, 10**12),
    seed=st.integers(-(2**63), 2**64),
    splits=st.integers(1, 64),
    buffer=st.integers(1, 2**30),
    batch=st.integers(1, 10**6),
    shuffle=st.sampled_from([None, "global", "block"]),
    version=st.integers(0, 10**9),
    source=st.text("0123456789abcdef", max_size=64),
    selection=st.text("0123456789abcdef", max_size=64),
)


@given(STATES)
def test_a_state_goes_through_json(state):
    kept = state.to_dict()
    assert all(value is None or isinstance(value, int | str) for value in kept.values())
    assert LoaderState.from_dict(json.loads(json.dumps(kept))) == state


def test_a_state_is_short():
    assert len(json.dumps(STATE.to_dict())) < 250


def test_golden_state():
    """What a checkpoint of today has in it, any later version reads."""
    kept = json.loads(
        '{"format": 1, "epoch": 2, "samples": 640, "seed": 7, "splits": 16, "buffer": 4096, "batch": 64,'
        ' "shuffle": "block", "version": 3, "source": "a1b2", "selection": "c3d4"}'
    )
    assert LoaderState.from_dict(kept) == STATE
    assert STATE.to_dict() == kept


def order_of(state, count, starts):
    key = key_of(state.seed, state.epoch, state.selection)
    return EpochOrder(
        count, state.batch, state.shuffle, key,
        starts=starts, buffer=state.buffer, splits=state.splits, begin=state.samples,
    )  # fmt: skip


@given(
    st.sampled_from([None, "global", "block"]),
    st.lists(st.integers(1, 8), min_size=1, max_size=8),
    st.data(),
)
def test_any_number_of_ranks_and_any_batch_go_on_where_it_was(shuffle, worlds, data):
    """A job that is killed and begun anew on other machines delivers every sample of the epoch, in one sequence."""
    count, starts = 200, np.append(np.arange(0, 200, 15), 200)
    state = LoaderState(seed=5, splits=4, buffer=40, shuffle=shuffle)
    sequence = order_of(state, count, starts).sequence(0, count)
    delivered = []
    for turn, world_size in enumerate([*worlds, 1]):
        state = replace(state, batch=world_size * data.draw(st.integers(1, 10)))
        order = order_of(state, count, starts)
        left = order.n_batches
        some = left if turn == len(worlds) else data.draw(st.integers(0, left))
        for k in range(some):
            shares = [
                order_of(state, count, starts).share(k, rank, world_size)
                for rank in range(world_size)
            ]
            start, stop = order.span(k)
            together = np.concatenate(shares)[: stop - start]
            assert sorted(together.tolist()) == sorted(sequence[start:stop].tolist())
            delivered += together.tolist()
        if some:
            start, stop = order.span(some - 1)
            state = LoaderState.from_dict(state.after(stop - state.samples).to_dict())
    assert state.samples == count
    assert sorted(delivered) == list(range(count))


def test_the_next_epoch_begins_at_its_first_sample():
    assert STATE.next_epoch() == replace(STATE, epoch=3, samples=0)
    assert STATE.after(64).samples == 704


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 2}, "the state has format 2, and this package reads 1"),
        ({"rank": 3}, "has rank, which is unknown here"),
    ],
)
def test_a_state_of_another_format(change, said):
    with pytest.raises(FormatError, match=said):
        LoaderState.from_dict(STATE.to_dict() | change)


def test_a_state_that_lacks_something():
    kept = STATE.to_dict()
    del kept["seed"], kept["epoch"]
    with pytest.raises(FormatError, match="lacks epoch, seed"):
        LoaderState.from_dict(kept)


@pytest.mark.parametrize("kept", [{}, {"epoch": 3}, [], None, "state"])
def test_what_is_no_state(kept):
    with pytest.raises(
        FormatError, match=r"not the state of a loader: it comes from state_dict\(\)"
    ):
        LoaderState.from_dict(kept)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epoch": -1}, "epoch=-1 of a state is too small"),
        ({"samples": 1.5}, r"samples=1\.5 of a state is not an integer"),
        ({"samples": True}, "samples=True of a state is not an integer"),
        ({"seed": "7"}, "seed='7' of a state is not an integer"),
        ({"splits": 0}, "splits=0 of a state is too small"),
        ({"splits": 10**12}, "splits=1000000000000 of a state is more than 1024"),
        ({"buffer": 1 << 31}, "buffer=2147483648 of a state is more than 1073741824"),
        ({"buffer": 0}, "buffer=0 of a state is too small"),
        ({"batch": 0}, "batch=0 of a state is too small"),
        ({"version": None}, "version=None of a state is not an integer"),
        ({"shuffle": "blok"}, "shuffle='blok' of a state"),
        ({"source": 5}, "source of a state is a text"),
        ({"selection": "x" * 65}, "selection of a state is a text of up to 64"),
    ],
)
def test_values_out_of_range(change, said):
    with pytest.raises(InvalidOptionError, match=said):
        LoaderState.from_dict(STATE.to_dict() | change)


def test_a_loader_with_another_batch_goes_on():
    STATE.check(replace(STATE, batch=7, samples=0, epoch=0, splits=1, buffer=9, seed=1), count=640)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "ffff"}, "source='a1b2', and this loader 'ffff': this is another dataset"),
        ({"version": 4}, "version=3, and this loader 4: open it with version=3"),
        ({"selection": ""}, "selection='c3d4', and this loader ''"),
        ({"shuffle": "global"}, "shuffle='block', and this loader 'global': take shuffle='block'"),
    ],
)
def test_a_loader_with_another_sequence_does_not(change, said):
    with pytest.raises(InvalidOptionError, match=said):
        STATE.check(replace(STATE, **change), count=1000)


def test_a_place_past_the_end():
    with pytest.raises(
        InvalidOptionError, match="at sample 640, and an epoch of this loader has 639"
    ):
        STATE.check(STATE, count=639)
