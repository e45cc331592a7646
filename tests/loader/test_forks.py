"""Processes that are forked while a loader is read, and read themselves."""

import os
import subprocess
import sys

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

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
from tensorlake_spark.fork_gate import FORK_GATE
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


ASKING = """
import os, sys
import tensorlake_spark as tl
ds = tl.dataset(sys.argv[1], {"x": "int64"})
ds.extend({"x": [1, 2]})
ds.tag("used")  # by deltalake
ds = tl.dataset(sys.argv[1])
child = os.fork()
if not child:
    try:
        next(iter(ds.loader(8, workers="processes")))
    except tl.InvalidOptionError as error:
        os._exit(7 if "this process was forked" in str(error) and "spawn" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@needs_fork
def test_who_would_start_processes_in_a_forked_one_is_told(tmp_path):
    given = [sys.executable, "-c", ASKING, str(tmp_path / "ds")]
    subprocess.run(given, timeout=300, check=True)


IN_A_WORKER = """
import multiprocessing, sys
import tensorlake_spark as tl
ds = tl.dataset(sys.argv[1], {"x": "int64"})
ds.extend({"x": [1, 2]})
ds.tag("used")  # by deltalake
ds = tl.dataset(sys.argv[1])
loader = ds.loader(8, workers="processes")
def work(out):
    try:
        next(iter(loader))
    except tl.InvalidOptionError as error:
        out.send(str(error))
here, there = multiprocessing.Pipe()
process = multiprocessing.get_context("fork").Process(target=work, args=(there,), daemon=True)
process.start()
assert here.poll(60) and "leave the processes to the DataLoader" in here.recv()
process.join()
"""


@needs_fork
def test_a_forked_worker_of_a_dataloader_is_told_to_leave_processes_out(tmp_path):
    given = [sys.executable, "-c", IN_A_WORKER, str(tmp_path / "ds")]
    subprocess.run(given, timeout=300, check=True)
