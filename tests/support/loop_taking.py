"""Compiled loops in tests: their law in a process of its own, and operations that take them for whatever is small."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from places import ROOT

from tensorlake_spark import kernel_switch
from tensorlake_spark.ops import loop_choice


def check_compiled(law: Path, chars: str) -> None:
    """Run the law of some loops with numba, for values of each of these dtypes."""
    done = subprocess.run(
        [sys.executable, law, chars], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split("\n")[:-1] == [f"{char}: through the compiled loops" for char in chars]


def take_loops(monkeypatch, module: ModuleType, names: tuple[str, ...]) -> set[str]:
    """Have operations take the loops of a module, as with numba; return the set of those that they took."""
    found: set[str] = set()
    monkeypatch.setenv(kernel_switch.SWITCH, "fast")
    monkeypatch.setattr(kernel_switch, "installed", lambda: True)
    monkeypatch.setattr(kernel_switch, "_off", False)
    monkeypatch.setattr(kernel_switch, "_ready", set())
    monkeypatch.setattr(loop_choice, "_SHORT", 0)
    for name in names:
        loop = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, loop=loop, name=name: (found.add(name), loop(*a))[1]
        )
    return found
