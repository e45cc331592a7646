"""Epochs of real datasets that are cut and gone on with, by other ranks, other batches, and after a kill."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError

COUNT = 230
SCHEMA = {"x": tl.types.Tensor("float32", (3,)), "label": "int64"}

OPTIONS = {
    "in order": {},
    "global": {"shuffle": "global"},
    "block": {"shuffle": True},
    "small buffer": {"shuffle": 2000},
    "where": {"shuffle": True, "where": "label % 3 <> 1"},
    "drawn": {"shuffle": True, "weights": np.arange(COUNT), "samples": 300},
    "drawn once": {
        "shuffle": "global",
        "weights": np.arange(COUNT),
        "samples": 100,
        "replacement": False,
    },
}

CHILD = """
import json, sys
import tensorlake_spark as tl
uri, state, rank, world = sys.argv[1:]
ranks = {"rank": int(rank), "world_size": int(world)}
loader = tl.dataset(uri, create=False).loader(12 // int(world), shuffle=True, seed=3, workers=1, **ranks)
if state != "-":
    loader.load_state_dict(json.loads(state))
for batch in loader:
    print(json.dumps([batch["label"].tolist(), loader.state_dict()]), flush=True)
    if len(sys.stdin.readline()) == 0:
        break
"""


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    """A dataset of several files, so that it has several blocks."""
    folder = str(tmp_path_factory.mktemp("samples") / "ds")
    for part in np.array_split(np.arange(COUNT), 7):
        tl.dataset(folder, SCHEMA).extend({"x": np.zeros((len(part), 3), "f4"), "label": part})
    return folder


def loader_of(uri, batch, name, **more):
    return tl.dataset(uri).loader(batch, seed=3, workers=1, **OPTIONS[name], **more)


def labels(batches):
    return [batch["label"].tolist() for batch in batches]


def flat(batches):
    return sorted(itertools.chain.from_iterable(batches))


@pytest.mark.parametrize("name", OPTIONS)
def test_a_cut_epoch_goes_on_with_its_very_batches(uri, name):
    whole = labels(loader_of(uri, 16, name))
    loader = loader_of(uri, 16, name)
    first = labels(itertools.islice(loader, 4))
    again = loader_of(uri, 16, name)
    again.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert len(again) == len(whole) - 4
    assert first + labels(again) == whole
    later = loader_of(uri, 16, name)
    later.set_epoch(1)
    assert labels(again) == labels(later), "then comes the next epoch"


@pytest.mark.parametrize("name", OPTIONS)
def test_other_ranks_and_other_batches_deliver_the_rest(uri, name):
    """One rank, then four with as large a step, then two with another, then one: together one epoch."""
    whole = flat(labels(loader_of(uri, 16, name)))
    delivered, state = [], None
    for world_size, batch, steps in [(1, 16, 2), (4, 4, 2), (2, 5, 1), (1, 7, None)]:
        states = []
        for rank in range(world_size):
            loader = loader_of(uri, batch, name, rank=rank, world_size=world_size)
            if state is not None:
                loader.load_state_dict(state)
            delivered += labels(itertools.islice(loader, steps))
            states.append(loader.state_dict())
        assert all(found == states[0] for found in states)
        state = states[0]
    assert flat(delivered) == whole


@pytest.mark.parametrize("name", OPTIONS)
def test_a_step_has_the_same_samples_on_any_number_of_ranks(uri, name):
    whole = labels(loader_of(uri, 20, name, drop_last=True))
    for world_size in (2, 4):
        ranks = [
            labels(
                loader_of(
                    uri, 20 // world_size, name, rank=rank, world_size=world_size, drop_last=True
                )
            )
            for rank in range(world_size)
        ]
        assert [list(itertools.chain(*step)) for step in zip(*ranks, strict=True)] == whole


def test_ranks_end_together(uri):
    ranks = [loader_of(uri, 9, "block", rank=rank, world_size=4) for rank in range(4)]
    sizes = [[len(batch) for batch in labels(rank)] for rank in ranks]
    assert sizes == [[9, 9, 9, 9, 9, 9, 4]] * 4


def started(uri, state, world):
    """Start the ranks of a run, which wait after each batch until they are told to go on."""
    return [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, uri, state, str(rank), str(world)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]


@pytest.mark.local_disk
@pytest.mark.parametrize("worlds", [(1, 1, 1), (1, 2, 4, 3)], ids=["one rank", "other ranks"])
def test_killed_processes_lose_no_batch_and_repeat_none(uri, worlds):
    """All are killed after some batches; whoever goes on takes the last state that one of them printed."""
    whole = labels(tl.dataset(uri).loader(12, shuffle=True, seed=3, workers=1))
    delivered, state = [], "-"
    for place, world in enumerate(worlds):
        ranks = started(uri, state, world)
        is_last = place == len(worlds) - 1
        while True:
            said = [json.loads(rank.stdout.readline()) for rank in ranks]
            delivered.append(list(itertools.chain.from_iterable(batch for batch, _ in said)))
            state = json.dumps(said[-1][1])
            if len(delivered) == len(whole) or (not is_last and len(delivered) == 4 * (place + 1)):
                break
            for rank in ranks:
                rank.stdin.write("\n")
                rank.stdin.flush()
        for rank in ranks:
            with rank:
                rank.kill()
    assert delivered[:-1] == whole[:-1]
    last = [n for n in delivered[-1] if n in whole[-1]]
    assert last == whole[-1], "what fills the last batch up comes after it"
    assert len(delivered[-1]) == len(whole[-1]) + -len(whole[-1]) % worlds[-1]


def test_a_state_of_another_selection_or_shuffle_is_refused(uri):
    state = loader_of(uri, 16, "where").state_dict()
    for name, said in [("block", "selection"), ("drawn", "selection"), ("global", "selection")]:
        with pytest.raises(InvalidOptionError, match=f"the state has {said}="):
            loader_of(uri, 16, name).load_state_dict(state)
    with pytest.raises(
        InvalidOptionError, match=r"the state has shuffle='block', and this loader 'global'"
    ):
        loader_of(uri, 16, "global").load_state_dict(loader_of(uri, 16, "block").state_dict())


def test_a_state_of_another_version_is_refused(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), SCHEMA)
    ds.extend({"x": np.zeros((5, 3), "f4"), "label": np.arange(5)})
    state = ds.loader(2).state_dict()
    ds.extend({"x": np.zeros((5, 3), "f4"), "label": np.arange(5)})
    with pytest.raises(
        InvalidOptionError, match=r"the state has version=1, .* open it with version=1"
    ):
        ds.loader(2).load_state_dict(state)
    old = tl.dataset(ds.uri, version=state["version"]).loader(2)
    old.load_state_dict(state)
    assert flat(labels(old)) == [0, 1, 2, 3, 4]


def test_a_state_of_a_version_that_was_vacuumed_away(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), SCHEMA)
    ds.extend({"x": np.zeros((5, 3), "f4"), "label": np.arange(5)})
    state = ds.loader(2).state_dict()
    ds.update([1], {"label": [7]})
    ds.vacuum(0)
    with pytest.raises(InvalidOptionError, match=r"the state has version=1"):
        ds.loader(2).load_state_dict(state)
    old = tl.dataset(ds.uri, version=state["version"]).loader(2)
    old.load_state_dict(state)
    with pytest.raises(
        tl.MissingDataError, match=r"is gone; a vacuum deleted it.* open a newer version"
    ) as caught:
        list(old)
    assert "\n" not in str(caught.value)
    with pytest.raises(tl.MissingDataError, match=r"is gone; a vacuum deleted it"):
        tl.dataset(ds.uri, version=state["version"]).loader(2, where="label > 1")
