"""Epochs of a dataset on S3 that are cut by a kill, gone on with by others, and processes that were forked."""

import itertools
import json
import os
import select
import signal
import subprocess
import sys

import numpy as np
import pytest

import tensorlake_spark as tl

COUNT = 230
SCHEMA = {"x": tl.types.Tensor("float32", (3,)), "label": "int64"}

CHILD = """
import json, sys
import tensorlake_spark as tl
uri, state, batch, rank, world_size = sys.argv[1:]
loader = tl.dataset(uri, create=False).loader(
    int(batch), shuffle=1000, seed=3, rank=int(rank), world_size=int(world_size), prefetch=4
)
if state != "-":
    loader.load_state_dict(json.loads(state))
for batch in loader:
    print(json.dumps([batch["label"].tolist(), loader.state_dict()]), flush=True)
    if len(sys.stdin.readline()) == 0:
        break
"""


@pytest.fixture(scope="module")
def uri(s3, s3_variables):
    """A dataset of several files; processes find the server by the environment."""
    found = tl.dataset("s3://bucket/loader-resumed", SCHEMA)
    for part in np.array_split(np.arange(COUNT), 7):
        found.extend({"x": np.zeros((len(part), 3), "f4"), "label": part})
    return found.uri


def labels(batches):
    return [batch["label"].tolist() for batch in batches]


def delivered_then_killed(uri, state, batches, batch=10, rank=0, world_size=1):
    """Return the batches that a process delivered before it was killed, and the last state that it printed."""
    found = []
    command = [sys.executable, "-c", CHILD, uri, state, *map(str, (batch, rank, world_size))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        for number in range(batches):
            labels, state = json.loads(process.stdout.readline())
            found.append(labels)
            if number < batches - 1:
                process.stdin.write("\n")
                process.stdin.flush()
        process.kill()  # while its threads read what comes next
    assert process.returncode == -signal.SIGKILL
    return found, json.dumps(state)


def test_a_killed_process_loses_no_batch_and_repeats_none(uri):
    whole = labels(tl.dataset(uri).loader(10, shuffle=1000, seed=3))
    delivered, state = [], "-"
    for batches in (5, 9, 9):
        found, state = delivered_then_killed(uri, state, batches)
        delivered += found
    assert delivered == whole


def test_other_ranks_go_on_after_a_kill(uri):
    """One process is killed, two go on with another batch and are killed too, and one delivers the rest."""
    delivered, state = delivered_then_killed(uri, "-", 3)
    both = [delivered_then_killed(uri, state, 2, 17, rank, 2) for rank in range(2)]
    states = {found for _, found in both}
    assert len(states) == 1
    delivered += [batch for found, _ in both for batch in found]
    last = tl.dataset(uri).loader(50, shuffle=1000, seed=3)
    last.load_state_dict(json.loads(states.pop()))
    delivered += labels(last)
    assert sorted(itertools.chain.from_iterable(delivered)) == list(range(COUNT))


def forked(work):
    """Return what a forked child says; it fails if the child does not end."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(here)
            os.write(there, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(there)
    said = b""
    with os.fdopen(here, "rb", 0) as answers:
        while select.select([answers], [], [], 120)[0] and (some := answers.read(1 << 16)):
            said += some
    if not said:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return json.loads(said)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_is_told_and_does_not_wait(uri):
    """It is forked while threads of its parent ask the store, and hold locks that the child would wait for."""
    loader = tl.dataset(uri).loader(10, shuffle=1000, seed=3)
    busy = iter(tl.dataset(uri).loader(1, shuffle="global", prefetch=50))

    def said(call):
        try:
            call()
        except tl.InvalidOptionError as error:
            return str(error)
        return "nothing"

    for call in (lambda: loader.share(0, 2), lambda: next(iter(loader))):
        next(busy)
        answer = forked(lambda call=call: said(call))
        assert 'multiprocessing_context="spawn"' in answer
    busy.close()
    assert len(labels(loader)) == 23, "the parent goes on"


@pytest.mark.torch
def test_workers_of_a_data_loader_deliver_each_batch_once(uri):
    from torch.utils.data import DataLoader

    whole = labels(tl.dataset(uri).loader(10, shuffle=1000, seed=3))
    samples = tl.dataset(uri).loader(10, shuffle=1000, seed=3).torch()
    options = {"batch_size": None, "num_workers": 2, "timeout": 120}
    loaded = DataLoader(samples, multiprocessing_context="spawn", **options)
    assert labels(loaded) == whole
    assert sorted(itertools.chain.from_iterable(labels(loaded))) == list(range(COUNT))
    with pytest.raises(tl.InvalidOptionError, match="multiprocessing_context"):
        next(iter(DataLoader(samples, multiprocessing_context="fork", **options)))
