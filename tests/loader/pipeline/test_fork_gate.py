"""Forks beside threads of loaders: nobody is at work meanwhile, and a child never waits for a thread that is gone."""

import os
import subprocess
import sys
import threading

import pytest

from tensorlake_spark.errors import LoaderClosedError
from tensorlake_spark.loader.pipeline.fork_gate import ForkGate, check_process

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def started(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_fork_waits_for_who_is_inside_and_holds_up_who_comes():
    gate, done = ForkGate(10.0), []
    inside, leave = threading.Event(), threading.Event()

    def work():
        with gate:
            inside.set()
            assert leave.wait(10)
            done.append("left")

    def fork():
        gate.shut()
        done.append("forked")
        gate.open()

    def late():
        with gate:
            done.append("came late")

    worker = started(work)
    assert inside.wait(10)
    forking = started(fork)
    while not gate._forks:
        forking.join(0.001)
    coming = started(late)
    coming.join(0.05)
    assert done == []
    leave.set()
    for thread in (worker, forking, coming):
        thread.join(10)
    assert done == ["left", "forked", "came late"]
    assert gate.is_safe


def test_two_forks_at_once():
    gate, forked = ForkGate(10.0), []
    leave = threading.Event()

    def work():
        with gate:
            assert leave.wait(10)

    def fork():
        gate.shut()
        forked.append(gate._is_quiet)
        gate.open()

    threads = [started(work), started(fork), started(fork)]
    leave.set()
    for thread in threads:
        thread.join(10)
    assert forked == [True, True]
    with gate:
        pass


def test_a_child_is_told_that_a_thread_was_at_work():
    gate, leave = ForkGate(0.01), threading.Event()
    entered = threading.Event()

    def work():
        with gate:
            entered.set()
            leave.wait(10)

    thread = started(work)
    assert entered.wait(10)
    gate.shut()
    gate.begin_anew()  # as in a child
    assert not gate.is_safe
    with gate:  # it has no threads of its parent
        pass
    gate.shut()
    gate.begin_anew()
    assert not gate.is_safe, "nor is a child of it"
    leave.set()
    thread.join(10)


def test_who_forks_at_work_does_not_wait_for_itself():
    gate = ForkGate(10.0)
    with gate:
        gate.shut()
        gate.begin_anew()
    assert not gate.is_safe


def test_an_iteration_of_another_process():
    check_process(os.getpid())
    with pytest.raises(LoaderClosedError, match="iterate over the loader anew"):
        check_process(os.getpid() + 1)


# ------------------------------------------------------------------ real forks

READING = """
import os, sys, time
import numpy as np, tensorlake_spark as tl
ds = tl.dataset(sys.argv[1], create=False)
for turn in range(6):
    loader = ds.loader(8, shuffle=True, seed=turn)
    batches = iter(loader)
    for _ in range(turn % 3):
        next(batches)
    time.sleep(turn / 1000)
    child = os.fork()
    if not child:
        mine = np.concatenate([batch["label"] for batch in loader.share(1, 2)])
        count = sum(len(batch["x"]) for batch in ds.loader(8))
        os._exit(0 if len(mine) and count == len(ds) else 1)
    for _ in batches:
        pass
    assert os.waitpid(child, 0)[1] == 0
"""


@needs_fork
def test_a_fork_reads_while_its_parent_does(digits):
    """Also at the first batch, when threads of the parent import what they need."""
    given = [sys.executable, "-c", READING, digits.uri]
    subprocess.run(given, timeout=300, check=True)


GOING_ON = """
import os, sys
import tensorlake_spark as tl
loader = tl.dataset(sys.argv[1], create=False).loader(8, shuffle=True)
batches = iter(loader)
next(batches)
child = os.fork()
if not child:
    try:
        next(batches)
    except tl.LoaderClosedError as error:
        loader.close()
        whole = sum(len(batch["label"]) for batch in loader)
        os._exit(7 if "iterate over the loader anew" in str(error) and whole == 300 else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert sum(len(batch["label"]) for batch in batches) == 292
"""


@needs_fork
def test_a_child_cannot_go_on_with_the_iteration_of_its_parent(digits):
    subprocess.run([sys.executable, "-c", GOING_ON, digits.uri], timeout=300, check=True)


AT_WORK = """
import os, sys, threading
import tensorlake_spark as tl
from tensorlake_spark.loader.pipeline.fork_gate import FORK_GATE
FORK_GATE.patience = 0.1
at_work = threading.Event()

def for_ever(sample):
    at_work.set()
    threading.Event().wait()

ds = tl.dataset(sys.argv[1], create=False)
batches = iter(ds.loader(8, ["label"], transform=for_ever))
threading.Thread(target=lambda: next(batches), daemon=True).start()
assert at_work.wait(60)
child = os.fork()
if not child:
    try:
        next(iter(ds.loader(8)))
    except tl.InvalidOptionError as error:
        os._exit(7 if 'multiprocessing_context="spawn"' in str(error) else 1)
    os._exit(2)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
os._exit(0 if code == 7 else 1)
"""


@needs_fork
def test_a_child_that_might_wait_for_ever_is_told_to_be_spawned(digits):
    subprocess.run([sys.executable, "-c", AT_WORK, digits.uri], timeout=300, check=True)
