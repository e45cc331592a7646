"""A loader: its epochs, its ranks, its state; NumPy and the dataset itself are the oracle."""

import copy
import os
import pickle
import signal
import subprocess
import sys
from itertools import chain

import numpy as np
import pytest

import tensorlake_spark as tl

SHUFFLES = [False, True, "global", "8KB"]


def joined(parts):
    return list(chain.from_iterable(parts))


def sids(loader):
    return [batch["sid"].tolist() for batch in loader]


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_an_epoch_has_each_sample_once(digits, shuffle):
    loader = digits.loader(64, ["sid"], shuffle=shuffle)
    found = sids(loader)
    assert len(loader) == len(found) == 5
    assert [len(batch) for batch in found] == [64, 64, 64, 64, 44]
    assert sorted(joined(found)) == digits.sids.tolist()
    assert (joined(found) == digits.sids.tolist()) == (shuffle is False)


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("world", [2, 4])
def test_a_step_has_the_same_samples_on_any_number_of_ranks(digits, shuffle, world):
    alone = sids(digits.loader(32, ["sid"], shuffle=shuffle, seed=5))
    ranks = [
        sids(digits.loader(32 // world, ["sid"], shuffle=shuffle, seed=5, rank=rank, world_size=world))
        for rank in range(world)
    ]  # fmt: skip
    assert len({len(rank) for rank in ranks}) == 1
    for step, (batch, *parts) in enumerate(zip(alone, *ranks, strict=True)):
        assert len({len(part) for part in parts}) == 1
        assert joined(parts)[: len(batch)] == batch, step


def test_what_does_not_divide_is_filled_up_from_the_front(digits):
    ranks = [sids(digits.loader(9, ["sid"], rank=rank, world_size=7)) for rank in range(7)]
    assert {len(rank) for rank in ranks} == {5}
    last = joined(rank[-1] for rank in ranks)
    assert last == [*digits.sids[252:].tolist(), 0]


def test_drop_last(digits):
    loader = digits.loader(64, ["sid"], drop_last=True)
    assert len(loader) == len(sids(loader)) == 4


def test_epochs_have_other_orders_and_come_again_by_number(digits):
    loader = digits.loader(50, ["sid"], shuffle=True, seed=1)
    first, second = sids(loader), sids(loader)
    assert first != second
    assert loader.epoch == 2
    loader.set_epoch(1)
    assert sids(loader) == second
    assert sids(digits.loader(50, ["sid"], shuffle=True, seed=1)) == first
    assert sids(digits.loader(50, ["sid"], shuffle=True, seed=2)) != first


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_threads_make_no_difference(digits, workers):
    options = {"columns": ["sid", "x"], "shuffle": True, "seed": 2}
    loader = digits.loader(32, workers=workers, prefetch=workers, **options)
    for epoch in range(2):
        order = digits.loader(32, **options)._order(loader._next())
        found = list(loader)
        assert [batch["sid"].tolist() for batch in found] == [
            order.batch(k).tolist() for k in range(10)
        ], epoch
        for batch in found:
            np.testing.assert_array_equal(batch["x"], digits["x"][batch["sid"].tolist()])


def test_values_are_those_of_the_dataset(digits):
    for batch in digits.loader(32, shuffle=True, columns=["sid", *digits.schema]):
        positions = batch["sid"].tolist()
        np.testing.assert_array_equal(batch["x"], digits["x"][positions])
        np.testing.assert_array_equal(batch["label"], digits["label"][positions])
        assert batch["label"].dtype == digits["label"][:].dtype
        assert batch["name"] == digits["name"][positions]
        for name in ("boxes", "image"):
            for mine, theirs in zip(batch[name], digits[name][positions], strict=True):
                np.testing.assert_array_equal(mine, theirs)
        assert list(batch) == ["sid", *digits.schema]


# ---------------------------------------------------------------------- state


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("stop", [0, 1, 4])
def test_it_goes_on_after_what_was_delivered(digits, shuffle, stop):
    loader = digits.loader(50, ["sid"], shuffle=shuffle, seed=3)
    sids(loader)  # so that it is the second epoch
    whole = sids(loader)
    loader.set_epoch(1)
    batches = iter(loader)
    seen = [next(batches)["sid"].tolist() for _ in range(stop)]
    state = loader.state_dict()
    batches.close()
    other = digits.loader(50, ["sid"], shuffle=shuffle, seed=3)
    other.load_state_dict(state)
    assert len(other) == 6 - stop
    assert seen + sids(other) == whole
    assert other.epoch == 2


@pytest.mark.parametrize("world", [1, 3])
def test_another_number_of_ranks_goes_on_from_the_state_of_one(digits, world):
    state, seen = None, []
    for rank in range(2):
        loader = digits.loader(15, ["sid"], shuffle=True, rank=rank, world_size=2)
        batches = iter(loader)
        seen += joined(next(batches)["sid"].tolist() for _ in range(4))
        state = loader.state_dict()
        batches.close()
    rest = []
    for rank in range(world):
        loader = digits.loader(12, ["sid"], shuffle=True, rank=rank, world_size=world)
        loader.load_state_dict(state)
        rest += joined(sids(loader))
    assert len(rest) == 180
    assert sorted(seen + rest) == digits.sids.tolist()


def test_a_state_is_a_few_integers(digits):
    state = digits.loader(10, shuffle=True, seed=4).state_dict()
    assert state["seed"] == 4
    assert len(pickle.dumps(state)) < 400
    assert all(value is None or type(value) in (int, str) for value in state.values())


def test_state_after(digits):
    loader = digits.loader(50, ["sid"], shuffle=True)
    batches = iter(loader)
    for number in range(1, 6):
        next(batches)
        assert digits.loader(50, ["sid"], shuffle=True).state_after(number) == loader.state_dict()
    assert digits.loader(50, ["sid"], shuffle=True).state_after(6)["epoch"] == 1
    batches.close()
    with pytest.raises(tl.InvalidOptionError, match=r"batches=7 is not from 0 to 6"):
        digits.loader(50).state_after(7)
    for wrong in (-1, 1.5, "2", True, None):
        with pytest.raises(tl.InvalidOptionError, match=f"batches={wrong!r} is not a whole number"):
            digits.loader(50).state_after(wrong)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"shuffle": "global"}, "shuffle"), ({"where": "label > 3", "shuffle": True}, "selection")],
)
def test_a_state_of_other_samples_is_refused(digits, options, says):
    state = digits.loader(10, shuffle=True).state_dict()
    with pytest.raises(tl.InvalidOptionError, match=says):
        digits.loader(10, **options).load_state_dict(state)


def test_a_version_that_is_written_over_is_read_on(tmp_path):
    ds = tl.dataset(str(tmp_path), {"x": "int64"})
    ds.extend({"x": np.arange(40)})
    loader = ds.loader(8, ["x"])
    batches = iter(loader)
    first = next(batches)["x"].tolist()
    tl.dataset(str(tmp_path)).delete("x < 30")
    ds.refresh()
    assert first + joined(batch["x"].tolist() for batch in batches) == list(range(40))
    assert len(ds) == 10
    with pytest.raises(tl.InvalidOptionError, match="version"):
        ds.loader(8, ["x"]).load_state_dict(loader.state_dict())


def test_an_iteration_that_was_left_early_was_an_epoch_too(digits):
    """Or a loop that takes some steps of each epoch would train with the same samples for ever."""
    loader = digits.loader(50, ["sid"], shuffle=True, seed=1)
    epochs = [sids(loader) for _ in range(3)]
    loader.set_epoch(0)
    for epoch in range(3):
        assert next(iter(loader))["sid"].tolist() == epochs[epoch][0]
        assert (loader.epoch, loader.state_dict()["samples"], len(loader)) == (epoch, 50, 6)


def test_two_iterations_at_once_are_two_epochs_and_the_later_says_where_the_loader_is(
    digits, loader_threads
):
    loader = digits.loader(50, ["sid"], shuffle=True, seed=1)
    wanted = sids(loader), sids(loader)
    loader.set_epoch(0)
    first = iter(loader)
    found = [next(first)["sid"].tolist()], []
    second = iter(loader)
    for _ in range(3):
        found[1].append(next(second)["sid"].tolist())
        found[0].append(next(first)["sid"].tolist())
    assert (loader.epoch, loader.state_dict()["samples"]) == (1, 150)
    assert (found[0] + sids(first), found[1] + sids(second)) == wanted
    assert loader.epoch == 2
    both = iter(loader), iter(loader)
    for one in both:
        next(one)
    loader.close()
    assert not loader_threads()
    for one in both:
        with pytest.raises(tl.LoaderClosedError):
            next(one)


def test_what_is_set_while_an_iteration_runs_is_where_the_next_begins(digits):
    loader = digits.loader(50, ["sid"], shuffle=True)
    state = digits.loader(50, ["sid"], shuffle=True).state_after(4)
    for number, _ in enumerate(loader):
        if number == 2:
            loader.set_epoch(5)
    assert (loader.epoch, len(loader)) == (5, 6)
    for number, _ in enumerate(loader):
        if number == 2:
            loader.load_state_dict(state)
    assert loader.state_dict() == state
    assert len(sids(loader)) == 2


def test_a_state_that_was_not_gone_on_with_is_kept(digits):
    failing = {"on": True}

    def transform(sample):
        if failing["on"]:
            raise ValueError("now")
        return sample

    loader = digits.loader(50, ["sid"], shuffle=True, transform=transform)
    state = loader.state_after(4)
    loader.load_state_dict(state)
    with pytest.raises(tl.InvalidSampleError):
        next(iter(loader))
    assert loader.state_dict() == state
    failing["on"] = False
    assert len(sids(loader)) == 2


def test_an_epoch_that_is_set_has_the_order_of_the_state_that_was_loaded(digits):
    """Its seed and its splits: an epoch after another one does not change them."""
    loader = digits.loader(50, ["sid"], shuffle="8KB", seed=1)
    other = digits.loader(50, ["sid"], shuffle="8KB", seed=2, splits=3)
    loader.load_state_dict(other.state_dict())
    assert (sids(loader), sids(loader)) == (sids(other), sids(other))
    loader.set_epoch(1)
    other.set_epoch(1)
    assert sids(loader) == sids(other)


# ---------------------------------------------------------------------- shares, copies, ends


def test_shares_are_every_so_manieth_batch(digits):
    loader = digits.loader(32, ["sid"], shuffle=True)
    whole = sids(loader)
    loader.set_epoch(0)
    parts = [sids(loader.share(worker, 3)) for worker in range(3)]
    assert [parts[number % 3][number // 3] for number in range(len(whole))] == whole


def test_a_copy_is_at_the_same_place(digits):
    loader = digits.loader(32, ["sid"], shuffle=True)
    batches = iter(loader)
    next(batches)
    loader.load_state_dict(loader.state_dict())
    batches.close()
    wanted = sids(copy.copy(loader))
    assert sids(pickle.loads(pickle.dumps(loader))) == wanted
    assert len(wanted) == 9


def test_closing_ends_the_threads(digits, loader_threads):
    with digits.loader(4, shuffle=True) as loader:
        batches = iter(loader)
        next(batches)
        assert loader_threads()
    assert not loader_threads()
    with pytest.raises(tl.LoaderClosedError, match="iterate over it anew"):
        next(batches)
    abandoned = iter(digits.loader(4))
    next(abandoned)
    del abandoned
    assert not loader_threads()


INTERRUPTED = """
import os, signal, sys, threading
import tensorlake_spark as tl

def endless(sample):
    if sample["label"] > 1:
        os.write(1, b"at work\\n")  # in one piece: several threads are here
        threading.Event().wait()
    return sample

signal.signal(signal.SIGINT, signal.default_int_handler)
loader = tl.dataset(sys.argv[1], create=False).loader(8, ["label"], transform=endless)
try:
    for batch in loader:
        pass
except KeyboardInterrupt:
    print("interrupted", not loader._running, flush=True)
    raise
"""


def test_ctrl_c_ends_a_loop_whose_threads_do_not_end(digits, tmp_path):
    """They are not waited for at the end of the process either, and no file is left."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, digits.uri],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with process:
        assert process.stdout.readline() == "at work\n"
        process.send_signal(signal.SIGINT)
        said, error = process.communicate(timeout=120)
    assert "interrupted True" in said
    assert "KeyboardInterrupt" in error
    assert process.returncode == -signal.SIGINT
    assert list(tmp_path.iterdir()) == []


def test_rates_stay_when_the_loop_has_ended(digits):
    """However it ends: at the last batch, early, or by an error."""
    loader = digits.loader(64, ["label"])
    seen = [0.0]
    for read in (list, lambda loader: next(iter(loader))):
        read(loader)
        found = loader.stats()
        assert found["seconds"] > seen[-1]
        seen.append(found["seconds"])
        for rate in ("seconds", "samples_per_second", "mb_per_second"):
            assert loader.stats()[rate] == found[rate]
    failing = digits.loader(64, ["label"], transform=lambda sample: 1 / 0)
    with pytest.raises(tl.InvalidSampleError):
        list(failing)
    assert failing.stats()["seconds"] == failing.stats()["seconds"]


def test_a_loop_does_not_wait_for_more_than_its_time(digits):
    loader = digits.loader(4, shuffle=True)
    for _ in loader:
        found = loader.stats()
        assert 0 < found["wait_seconds"] <= found["seconds"]


def test_counts(digits):
    loader = digits.loader(64)
    bytes_ = sum(batch["x"].nbytes + batch["label"].nbytes for batch in loader)
    found = loader.stats()
    assert (found["batches"], found["samples"], found["skipped"]) == (5, 300, 0)
    assert found["bytes"] > bytes_
    assert 0 < found["peak_bytes"] <= 512e6
    assert found["samples_per_second"] > 0
    assert "300 samples" not in repr(loader)
    assert "5 batches of 64, rank 0 of 1" in repr(loader)
