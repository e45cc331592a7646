"""Epochs of random datasets with random options, beside what the pages promise, worked out in plain Python."""

import collections
import json
import random

import numpy as np
import pytest

import tensorlake_spark as tl


def labels(batches):
    return [batch["n"].tolist() for batch in batches]


def flat(batches):
    return [n for batch in batches for n in batch]


def dataset(rng, place):
    """Samples in files of all sizes; some are deleted, moved to other files, or changed."""
    schema = {"x": tl.types.Tensor("int32", (None,)), "n": "int64", "label": "string"}
    ds, count = tl.dataset(place, schema), 0
    for _ in range(rng.randint(2, 6)):
        rows = range(count, count + rng.choice([1, 2, 5, 17, 60]))
        x = [np.full(rng.randint(0, 300), n, "i4") for n in rows]
        ds.extend({"x": x, "n": [*rows], "label": rng.choices("aabc", k=len(rows))})
        count = rows.stop
    live = [n for n in range(count) if rng.random() < 0.8] or [0]
    if gone := sorted({*range(count)} - {*live}):
        ds.delete(gone)
    if rng.random() < 0.4:
        ds.optimize()
    if rng.random() < 0.4:
        changed = live[:: rng.randint(2, 4)]
        ds.update(changed, {"label": ["c"] * len(changed)})
    return tl.dataset(place), live


def options(rng, live):
    """Return options, the samples that they choose, and how many an epoch has."""
    found = {"seed": rng.randint(0, 9), "shuffle": rng.choice([False, True, "global", 500, 5000])}
    if rng.random() < 0.5:
        found["splits"] = rng.choice([1, 2, 3, 7, 50])
    if rng.random() < 0.3 and any(n % 3 for n in live):
        found["where"] = "n % 3 > 0"
        live = [n for n in live if n % 3]
    kind = rng.choice(["all", "all", "weights", "balance"])
    if kind == "all":
        return found, live, len(live)
    found["replacement"] = again = rng.random() < 0.5
    count = rng.randint(1, len(live) * (2 if again else 1))
    given = "n" if kind == "weights" else "label"
    if kind == "weights":
        live = [n for n in live if n > 0]
        count = min(count, 2 * len(live) if again else len(live))
        if not live:
            found.pop("replacement")
            return found, [0], 1
    return {**found, kind: given, "samples": count}, live, count


@pytest.mark.parametrize("seed", range(12))
def test_an_epoch_is_what_the_pages_say(tmp_path, seed):
    rng = random.Random(seed)
    ds, live = dataset(rng, tmp_path / "ds")
    given, chosen, count = options(rng, live)
    step = rng.choice([4, 8, 12, 60, 400])

    def loader(world=1, rank=0, size=step, workers=1):
        ranks = {"rank": rank, "world_size": world, "workers": workers}
        return ds.loader(size // world, ["n", "x"], **ranks, **given)

    one = loader()
    steps = -(-count // step)
    assert len(one) == steps
    first = labels(one)
    second = labels(one)
    for epoch in (first, second):
        assert list(map(len, epoch)) == [step] * (steps - 1) + [count - step * (steps - 1)]
        if "samples" not in given:
            assert sorted(flat(epoch)) == chosen
        assert {*flat(epoch)} <= {*chosen}
        if not given.get("replacement"):
            assert len({*flat(epoch)}) == count
    if given["shuffle"] is False and "samples" not in given:
        assert flat(first) == chosen
    for batch in loader(workers=3):
        assert batch["n"].tolist() == first.pop(0)
        assert all((x == n).all() for x, n in zip(batch["x"], batch["n"], strict=True))

    first = labels(loader())
    stop = rng.randint(0, steps - 1)
    cut = loader()
    with cut:
        batches = iter(cut)
        done = [next(batches)["n"].tolist() for _ in range(stop)]
        state = json.loads(json.dumps(cut.state_dict()))
    assert done == first[:stop]
    for world in (1, 2, 4):
        ranks = [loader(world, rank) for rank in range(world)]
        for rank in ranks:
            rank.load_state_dict(state)
        assert {len(rank) for rank in ranks} == {steps - stop}
        parts = [labels(rank) for rank in ranks]
        for number, whole in enumerate(first[stop:]):
            shares = [part[number] for part in parts]
            assert len({*map(len, shares)}) == 1
            more = collections.Counter(flat(shares))
            more.subtract(whole)
            assert min(more.values()) >= 0
            assert sum(more.values()) == -len(whole) % world
            if len(whole) % world == 0:
                assert flat(shares) == whole
        if world == 1:
            assert labels(ranks[0]) == second, "then comes the next epoch"
    other = loader(size=rng.choice([3, 5, 7]))
    other.load_state_dict(state)
    assert sorted(flat(done) + flat(labels(other))) == sorted(flat(first))
