"""Batches and shares are slices of one sequence, whoever asks for them and wherever the epoch goes on."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError, InvalidOptionError
from tensorlake_spark.loader.order.epoch_order import SPLITS, EpochOrder, chosen_blocks
from tensorlake_spark.loader.order.sampling import Draw

KEYS = st.integers(0, 2**64 - 1)
SHUFFLES = st.sampled_from([None, "global", "block"])


def even(count, size):
    return np.append(np.arange(0, count, size), count)


@st.composite
def orders(draw, **fixed):
    """What an order is made of: any kind, any count, with and without a selection."""
    count = draw(st.integers(0, 200))
    given = {
        "batch": draw(st.integers(1, 50)),
        "shuffle": draw(SHUFFLES),
        "key": draw(KEYS),
        "buffer": draw(st.integers(1, 80)),
        "splits": draw(st.sampled_from([None, 1, 2, 3, 8])),
        "drop_last": draw(st.booleans()),
    }
    if draw(st.booleans()):
        chosen = draw(st.lists(st.integers(0, 99), max_size=80))
        count = len(chosen)
        given |= {
            "positions": np.array(chosen, np.int64),
            "starts": even(100, draw(st.integers(1, 40))),
        }
    elif draw(st.booleans()):
        given["starts"] = even(count, draw(st.integers(1, 40)))
    return {"count": count, **given, **fixed}


def batches(order):
    return [order.batch(k) for k in range(order.n_batches)]


def everything(given):
    positions = given.get("positions")
    return list(range(given["count"])) if positions is None else sorted(positions.tolist())


def joined(parts):
    return np.concatenate([np.empty(0, np.int64), *parts])


@given(orders(drop_last=False))
def test_all_batches_together_are_all_samples(given):
    order = EpochOrder(**given)
    found = batches(order)
    assert len(order) == len(found) == -(-given["count"] // given["batch"])
    assert sorted(joined(found).tolist()) == everything(given)
    assert all(len(batch) == given["batch"] for batch in found[:-1])


@given(orders(drop_last=True))
def test_without_the_last_all_batches_are_full(given):
    whole, order = EpochOrder(**given | {"drop_last": False}), EpochOrder(**given)
    assert order.n_batches == given["count"] // given["batch"]
    for k, batch in enumerate(batches(order)):
        assert batch.tolist() == whole.batch(k).tolist()
        assert len(batch) == given["batch"]


@given(orders())
def test_a_batch_is_a_slice_of_the_sequence(given):
    order = EpochOrder(**given)
    sequence = order.sequence(0, order.count)
    assert sorted(sequence.tolist()) == everything(given)
    for k, batch in enumerate(batches(order)):
        start, stop = order.span(k)
        assert sorted(batch.tolist()) == sorted(sequence[start:stop].tolist())


@given(orders(), st.data())
def test_a_batch_does_not_depend_on_what_was_asked_for_before(given, data):
    order = EpochOrder(**given)
    if order.n_batches:
        k = data.draw(st.integers(0, order.n_batches - 1))
        assert EpochOrder(**given).batch(k).tolist() == batches(order)[k].tolist()


@given(orders(), st.sampled_from([1, 2, 3, 4, 8]), st.integers(1, 6))
def test_shares_are_equal_and_make_the_batch_and_what_fills_it(given, world_size, each):
    order = EpochOrder(**given | {"batch": world_size * each})
    for k, batch in enumerate(batches(order)):
        shares = [order.share(k, rank, world_size) for rank in range(world_size)]
        assert len({len(share) for share in shares}) == 1
        together = joined(shares)
        assert together[: len(batch)].tolist() == batch.tolist()
        filled = together[len(batch) :]
        assert len(filled) < world_size
        assert len(batch) == order.batch_size or k == order.n_batches - 1
        assert (
            filled.tolist()
            == np.resize(order.sequence(0, min(order.count, len(filled))), len(filled)).tolist()
        )


@given(orders(), st.sampled_from([1, 2, 4]), st.integers(1, 6))
def test_what_stands_in_is_a_later_sample_of_the_same_split(given, world_size, each):
    """While there is one: at the end of the epoch it goes on at its beginning."""
    order = EpochOrder(**given | {"batch": world_size * each})
    for k in range(order.n_batches):
        start, stop = order.span(k)
        own = np.arange(start, stop)
        own = own[np.argsort(own % order.splits, kind="stable")]
        places = np.concatenate([order.later(k, r, world_size, 3) for r in range(world_size)], 1)
        for place, later in zip(own.tolist(), places.T.tolist()):
            behind = range(place + order.batch_size, order.count)
            same = [one for one in behind if one % order.splits == place % order.splits]
            assert later[0] == same[0] if same else later[0] != place or order.count == 1
        for rank in range(world_size):
            mine = order.later(k, rank, world_size, 3)
            sequence = order.sequence(0, order.count)
            found = [order.standing_in(k, rank, world_size, 0, step) for step in (1, 2, 3)]
            assert found == sequence[mine[:, 0]].tolist()


def test_where_a_split_has_no_more_the_rest_of_the_epoch_stands_in():
    order = EpochOrder(14, 4, "block", splits=3)  # splits of 5, 5 and 4 places
    assert order.later(1, 0, 1, 4).T.tolist() == [[12, 10, 11, 12], [10, 8, 9, 10], [13, 11, 12, 13], [11, 9, 10, 11]]  # fmt: skip


@given(orders(batch=24))
def test_a_batch_has_the_same_samples_on_any_number_of_ranks(given):
    order = EpochOrder(**given)
    for k, batch in enumerate(batches(order)):
        for world_size in (1, 2, 4, 8):
            shares = [EpochOrder(**given).share(k, rank, world_size) for rank in range(world_size)]
            assert joined(shares)[: len(batch)].tolist() == batch.tolist()


@given(orders(splits=4), st.data())
def test_the_epoch_goes_on_with_another_batch_where_it_was(given, data):
    """Stopped after some batches, gone on with others, stopped and gone on again: each sample comes once."""
    order = EpochOrder(**given | {"drop_last": False})
    done = data.draw(st.integers(0, order.n_batches))
    begin = order.span(done - 1)[1] if done else 0
    delivered = [order.batch(k) for k in range(done)]
    while begin < order.count:
        batch = data.draw(st.integers(1, 60))
        order = EpochOrder(**given | {"drop_last": False, "batch": batch, "begin": begin})
        some = data.draw(st.integers(1, order.n_batches))
        delivered += [order.batch(k) for k in range(some)]
        begin = order.span(some - 1)[1]
    assert sorted(joined(delivered).tolist()) == everything(given)


@given(orders(), st.data())
def test_with_the_same_batch_it_goes_on_with_the_same_batches(given, data):
    order = EpochOrder(**given)
    done = data.draw(st.integers(0, given["count"] // given["batch"]))
    rest = EpochOrder(**given | {"begin": done * given["batch"]})
    assert [batch.tolist() for batch in batches(rest)] == [
        batch.tolist() for batch in batches(order)[done:]
    ]


@given(KEYS, st.integers(1, 50), st.integers(1, 50))
def test_the_sequence_does_not_depend_on_the_batch(key, batch, other):
    first, second = (
        EpochOrder(500, n, "block", key, starts=even(500, 20), buffer=80, splits=8)
        for n in (batch, other)
    )
    assert first.sequence(0, 500).tolist() == second.sequence(0, 500).tolist()


def test_one_rank_reads_few_blocks_at_a_time():
    """Of four ranks each reads the blocks of its four runs: a quarter of those that one rank reads."""
    order = EpochOrder(100_000, 64, "block", 3, starts=even(100_000, 100), buffer=16_000)
    assert order.splits == 16
    alone = {int(p) // 100 for k in range(500, 550) for p in order.batch(k)}
    for rank in range(4):
        mine = {int(p) // 100 for k in range(500, 550) for p in order.share(k, rank, 4)}
        assert len(mine) <= len(alone) * 0.3
        assert len(mine) <= 4 * (2 * 1000 / 100 + 4)


def test_in_order():
    assert [b.tolist() for b in batches(EpochOrder(5, 2, None))] == [[0, 1], [2, 3], [4]]
    chosen = EpochOrder(3, 2, None, positions=np.array([9, 2, 5]))
    assert [b.tolist() for b in batches(chosen)] == [[9, 2], [5]]


@pytest.mark.parametrize("shuffle", ["global", "block"])
def test_another_key_is_another_order(shuffle):
    first, second = (
        EpochOrder(1000, 10, shuffle, key, starts=even(1000, 10), buffer=100) for key in (1, 2)
    )
    assert first.sequence(0, 1000).tolist() != second.sequence(0, 1000).tolist()


def test_blocks_of_a_selection_stay_together():
    """Every hundredth sample is chosen, and three blocks of a thousand have none."""
    positions = np.setdiff1d(np.arange(0, 20_000, 10), np.arange(5000, 8000))
    order = EpochOrder(
        len(positions),
        10,
        "block",
        1,
        positions=positions,
        starts=even(20_000, 1000),
        buffer=1,
        splits=1,
    )
    block = order.sequence(0, order.count) // 1000
    assert np.count_nonzero(np.diff(block)) == 17 - 1


def test_positions_that_are_not_sorted_are_the_same_selection_of_blocks():
    positions = np.array([5, 1, 9, 1])
    first = EpochOrder(4, 2, "block", 1, positions=positions, starts=even(10, 2))
    second = EpochOrder(4, 2, "block", 1, positions=np.sort(positions), starts=even(10, 2))
    assert first.sequence(0, 4).tolist() == second.sequence(0, 4).tolist()
    assert positions.tolist() == [5, 1, 9, 1]


@pytest.mark.parametrize("shuffle", [None, "global", "block"])
def test_what_was_drawn_by_weight_is_delivered_so_many_times(shuffle):
    drawn = Draw(np.arange(50), count=300, key=4).places()
    order = EpochOrder(300, 32, shuffle, 9, positions=drawn, starts=even(50, 7), buffer=20)
    assert np.sort(joined(batches(order))).tolist() == drawn.tolist()


def test_chosen_blocks():
    assert chosen_blocks(np.array([0, 1, 5]), np.array([0, 1, 2, 5, 6])).tolist() == [0, 1, 2, 2, 3]
    assert chosen_blocks(np.empty(0, np.int64), np.array([0, 3])).tolist() == [0, 0]


@given(st.lists(st.integers(0, 99), max_size=50).map(sorted), st.integers(1, 40))
def test_chosen_blocks_are_where_the_block_changes(positions, size):
    starts = even(100, size)
    found = chosen_blocks(np.array(positions, np.int64), starts)
    for block, (low, high) in enumerate(itertools.pairwise(found)):
        assert [p for p in positions if p // size == block] == positions[low:high]


@given(KEYS, st.integers(1, 50))
def test_runs_are_as_many_whatever_a_batch_is(key, batch):
    order = EpochOrder(500, batch, "block", key, starts=even(500, 20), buffer=80)
    other = EpochOrder(500, 64, "block", key, starts=even(500, 20), buffer=80, splits=SPLITS)
    assert order.sequence(0, 500).tolist() == other.sequence(0, 500).tolist()


@given(orders(), st.sampled_from([1, 2, 4]), st.integers(1, 6))
def test_a_position_and_its_repeat_name_a_sample_whatever_batch_it_is_in(given, world_size, each):
    if "positions" in given:
        given = given | {"positions": np.sort(given["positions"])}
    order = EpochOrder(**given | {"batch": world_size * each, "drop_last": False})
    found = []
    for k in range(order.n_batches):
        shares = [(order.share(k, r, world_size), order.repeats(k, r, world_size)) for r in range(world_size)]  # fmt: skip
        pairs = [pair for share in shares for pair in zip(*map(np.ndarray.tolist, share), strict=True)]  # fmt: skip
        start, stop = order.span(k)
        found += pairs[: stop - start]
    wanted, seen = [], {}
    for position in everything(given):
        seen[position] = seen.get(position, -1) + 1
        wanted.append((position, seen[position]))
    assert sorted(found) == wanted


def test_golden_values():
    order = EpochOrder(10**6, 8, "block", 1, starts=even(10**6, 100), splits=8)
    assert order.batch(5000).tolist() == [
        502987,
        830972,
        134529,
        802894,
        910930,
        389599,
        61095,
        513535,
    ]
    assert EpochOrder(10**6, 8, "global", 1).batch(5000).tolist() == [
        390386,
        877184,
        527921,
        55814,
        160545,
        826595,
        624932,
        963592,
    ]


def test_an_empty_epoch():
    for shuffle in (None, "global", "block"):
        assert EpochOrder(0, 4, shuffle).n_batches == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch": 0}, "batch=0 of an epoch"),
        ({"shuffle": "blocks"}, "shuffle='blocks' is not one of"),
        ({"begin": 11}, "begin=11 is not in an epoch of 10"),
        ({"begin": -1}, "begin=-1"),
        ({"positions": np.arange(9)}, r"shape \(9,\), and count=10"),
        (
            {"starts": np.array([0, 4, 9]), "shuffle": "block"},
            "the blocks hold 9 samples, and the epoch has 10",
        ),
        ({"buffer": 0, "shuffle": "block"}, "buffer=0"),
        ({"splits": -2, "shuffle": "block"}, "splits=-2"),
        (
            {"positions": np.arange(3, 13), "starts": np.array([0, 10]), "shuffle": "block"},
            "positions 3 to 12 are not in the blocks, 0 to 9",
        ),
    ],
)
def test_options_that_do_not_fit(change, said):
    with pytest.raises(InvalidOptionError, match=said):
        EpochOrder(**{"count": 10, "batch": 4, "shuffle": None} | change)


@pytest.mark.parametrize("k", [-1, 3])
def test_a_batch_that_is_not_there(k):
    order = EpochOrder(10, 4, None)
    with pytest.raises(InvalidKeyError, match=f"batch {k} of 3"):
        order.batch(k)
    with pytest.raises(InvalidKeyError, match=f"batch {k} of 3"):
        order.share(k, 0, 1)


@pytest.mark.parametrize(("rank", "world_size"), [(2, 2), (-1, 2), (0, 0), (0, -1)])
def test_ranks_out_of_range(rank, world_size):
    with pytest.raises(InvalidOptionError, match=f"rank={rank} of world_size={world_size}"):
        EpochOrder(10, 4, None).share(0, rank, world_size)


def test_a_batch_that_does_not_divide():
    with pytest.raises(InvalidOptionError, match="a batch of 4 does not divide by world_size=3"):
        EpochOrder(10, 4, None).share(0, 0, 3)


def test_fewer_samples_than_ranks():
    order = EpochOrder(3, 8, "global", 5)
    shares = [order.share(0, rank, 8).tolist() for rank in range(8)]
    assert [len(share) for share in shares] == [1] * 8
    assert {share[0] for share in shares} == {0, 1, 2}
