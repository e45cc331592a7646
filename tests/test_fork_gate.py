"""Forks beside threads of loaders: nobody is at work meanwhile, and a child never waits for a thread that is gone."""

import os
import subprocess
import sys
import threading

import pytest

from tensorlake_spark.errors import LoaderClosedError
from tensorlake_spark.fork_gate import ForkGate, check_process


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


POOL = """
import os, threading
from tensorlake_spark.fork_gate import FORK_GATE
from concurrent.futures import ThreadPoolExecutor

FORK_GATE.patience = 10.0
inside = threading.Event()

def work():
    with FORK_GATE:
        inside.set()
        while not FORK_GATE._forks:
            pass
        ThreadPoolExecutor(1).submit(int).result()

threading.Thread(target=work).start()
inside.wait()
child = os.fork()
if not child:
    os._exit(0 if FORK_GATE.is_safe else 1)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_who_is_inside_may_use_a_pool_while_a_fork_waits():
    subprocess.run([sys.executable, "-c", POOL], timeout=300, check=True)
