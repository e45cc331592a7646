"""Which body runs: by the environment, by what is installed, and after a failure."""

import logging
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark import kernel_switch as switch
from tensorlake_spark.layouts.kernels import dense
from tensorlake_spark.threads import kernel_thread

DENSE = dense.__name__


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Leave no choice behind."""
    monkeypatch.setattr(switch, "_off", False)
    monkeypatch.setattr(switch, "_ready", set())
    monkeypatch.setattr(switch, "_asked", set())
    monkeypatch.setattr(switch, "_seen", 0)
    monkeypatch.setattr(switch, "installed", lambda: True)


def test_an_unknown_choice_is_named(monkeypatch):
    monkeypatch.setenv(switch.SWITCH, "fsat")
    with pytest.raises(
        tl.InvalidOptionError, match=r"TENSORLAKE_KERNELS='fsat' is not one of .*'fast'"
    ):
        switch.compiled(DENSE, "rows", 4, False, nbytes=1)


def test_numpy_is_numpy(monkeypatch):
    monkeypatch.setenv(switch.SWITCH, "numpy")
    assert switch.compiled(DENSE, "rows", 4, False, nbytes=1 << 40) is None


def test_fast_loads_at_once_or_says_what_is_missing(monkeypatch):
    monkeypatch.setenv(switch.SWITCH, "fast")
    monkeypatch.setattr(dense, "warm", lambda *key: None)
    assert switch.compiled(DENSE, "rows", 4, False, nbytes=1) is dense
    assert switch.compiled(DENSE, "rows", 4, False, nbytes=1) is dense
    monkeypatch.setattr(switch, "installed", lambda: False)
    with pytest.raises(tl.MissingDependencyError, match=r"pip install 'tensorlake-spark\[fast\]'"):
        switch.compiled(DENSE, "rows", 8, False, nbytes=1)


def test_auto_loads_beside_the_work_once_there_is_enough(monkeypatch):
    monkeypatch.setenv(switch.SWITCH, "auto")
    monkeypatch.setattr(dense, "warm", lambda *key: None)
    assert switch.compiled(DENSE, "rows", 4, False, nbytes=switch.ENOUGH - 1) is None
    assert not switch._asked
    assert switch.compiled(DENSE, "rows", 4, False, nbytes=1) is None
    kernel_thread().submit(int).result()  # after the one that loads
    assert switch.compiled(DENSE, "rows", 4, False, nbytes=1) is dense
    assert switch.compiled(DENSE, "lines", 4, False, nbytes=1) is None, "each loop for itself"


def test_without_a_compiler_auto_is_numpy(monkeypatch):
    monkeypatch.setenv(switch.SWITCH, "auto")
    monkeypatch.setattr(switch, "installed", lambda: False)
    assert switch.compiled(DENSE, "rows", 4, False, nbytes=switch.ENOUGH) is None
    kernel_thread().submit(int).result()
    assert switch.compiled(DENSE, "rows", 4, False, nbytes=switch.ENOUGH) is None


def test_a_failure_is_a_warning_and_numpy_goes_on(monkeypatch, caplog):
    monkeypatch.setenv(switch.SWITCH, "fast")

    def broken(*key):
        raise EOFError("Ran out of input")

    monkeypatch.setattr(dense, "warm", broken)
    with caplog.at_level(logging.WARNING, "tensorlake_spark"):
        assert switch.compiled(DENSE, "rows", 4, False, nbytes=1) is None
        assert switch.compiled(DENSE, "rows", 4, False, nbytes=1) is None
    assert [r.getMessage() for r in caplog.records] == [
        "the compiled kernels are left out, and NumPy does their work: Ran out of input"
    ]


FORK = """
    import os, sys, threading, types
    from tensorlake_spark import kernel_switch as switch
    from tensorlake_spark.fork_gate import FORK_GATE
    from tensorlake_spark.threads import kernel_thread

    begun, done = threading.Event(), threading.Event()

    def warm(key):
        if key == "slow":
            begun.set()
            assert done.wait(60)

    sys.modules["loops"] = module = types.ModuleType("loops")
    module.warm = warm
    switch.installed = lambda: True

    def ask(key):
        return switch.compiled("loops", key, nbytes=switch.ENOUGH)

    def finish():  # once somebody wants to fork
        while not FORK_GATE._forks:
            done.wait(0.001)
        done.set()

    assert ask("slow") is None
    assert begun.wait(60)
    assert ask("later") is None  # waits for the thread
    threading.Thread(target=finish).start()
    switch._lock.acquire()  # as another thread might have it
    child = os.fork()
    if not child:
        is_loaded = ask("slow") is module
        ask("new")
        ask("later")
        kernel_thread().submit(int).result(60)
        os._exit(0 if is_loaded and ask("new") is ask("later") is module and FORK_GATE.is_safe else 1)
    switch._lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    kernel_thread().submit(int).result(60)
    assert ask("slow") is ask("later") is module
"""

NEVER = """
    import os, sys, threading, types
    from tensorlake_spark import kernel_switch as switch
    from tensorlake_spark.fork_gate import FORK_GATE

    FORK_GATE.patience = 0.1
    begun = threading.Event()

    def warm(key):
        begun.set()
        threading.Event().wait()

    sys.modules["loops"] = module = types.ModuleType("loops")
    module.warm = warm
    switch.installed = lambda: True
    assert switch.compiled("loops", "slow", nbytes=switch.ENOUGH) is None
    assert begun.wait(60)
    child = os.fork()
    if not child:
        found = switch.compiled("loops", "new", nbytes=switch.ENOUGH)
        os._exit(0 if found is None and not switch._asked and not FORK_GATE.is_safe else 1)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("script", [FORK, NEVER])
def test_a_fork_while_a_loop_is_loaded(script):
    """It waits for the thread; if that takes too long, the child goes on with NumPy and loads nothing."""
    environment = {**os.environ, switch.SWITCH: "auto"}
    given = [sys.executable, "-c", textwrap.dedent(script)]
    subprocess.run(given, timeout=300, check=True, env=environment)


READ = """
    import numpy as np, sys, tensorlake_spark as tl

    lake = tl.open(sys.argv[1])
    x = np.add.outer(np.arange(40), np.arange(300)).astype("f4") ** 0.5
    lake.write("x", x, mode="overwrite", layout="ftsf", codec="shuffle+zstd")
    assert (lake["x"][3:] == x[3:]).all()
    print(tl.environment.versions()["kernels"])
"""


@pytest.mark.local_disk
def test_a_broken_cache_is_a_warning_in_a_real_process(tmp_path):
    environment = {
        **os.environ,
        "NUMBA_DISABLE_JIT": "0",
        switch.SWITCH: "fast",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }

    def run(place):
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(READ), tmp_path / place],
            capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip

    first = run("a")
    assert (first.returncode, first.stderr) == (0, "")
    assert "(fast)" in first.stdout
    cached = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert cached, "a later process loads what this one compiled"
    for path in cached:
        path.write_bytes(b"nothing of numba's")
    second = run("b")
    assert second.returncode == 0, second.stderr
    assert "(fast)" in second.stdout
    assert second.stderr.count("is damaged, so loops are compiled again") == 1
    assert (tl.open(tmp_path / "a")["x"][...] == tl.open(tmp_path / "b")["x"][...]).all()
    np.testing.assert_array_equal(tl.open(tmp_path / "a")["x"][0, :2], np.float32([0, 1]))
