"""Which body of a kernel runs: compiled by numba, which the extra ``fast`` brings, or NumPy's."""

from __future__ import annotations

import logging
import os
import sys
import threading
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from tensorlake_spark.errors import InvalidOptionError, MissingDependencyError, did_you_mean
from tensorlake_spark.fork_gate import FORK_GATE
from tensorlake_spark.threads import kernel_thread

logger = logging.getLogger("tensorlake_spark")

SWITCH = "TENSORLAKE_KERNELS"
"""Environment variable with one of `CHOICES`."""

CHOICES = ("auto", "fast", "numpy")
ENOUGH = 512 << 20
"""With ``auto``, so many bytes go through NumPy before the compiled body is loaded.

NumPy works on them for about half a second, and that is what loading takes. So a process of any length pays at most
twice what the better choice would have cost it, and a short one does not pay at all.
"""

Key = tuple[Any, ...]  # a module, and what its function `warm` takes: a loop and types

_lock = threading.Lock()
_seen = 0
_ready: set[Key] = set()
_asked: set[Key] = set()
_off = False


def choice() -> str:
    """Return what the environment asks for.

    Raises
    ------
    InvalidOptionError
        If it is not one of `CHOICES`.
    """
    said = os.environ.get(SWITCH, "auto")
    if said not in CHOICES:
        raise InvalidOptionError(
            f"{SWITCH}={said!r} is not one of {', '.join(CHOICES)}{did_you_mean(said, CHOICES)}"
        )
    return said


@lru_cache(maxsize=1)
def installed() -> bool:
    """Return whether there is a compiler: the package numba, which the extra ``fast`` brings."""
    return find_spec("numba") is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def compiled(module: str, *key: Any, nbytes: int) -> ModuleType | None:
    """Return a module if the compiled loop of it runs, None if NumPy does the work.

    Parameters
    ----------
    module : str
        The full name of a module with loops. It has a function ``warm(*key)``, which compiles one of them, or takes it
        from numba's cache.
    *key
        The name of the loop, and the types that it is for.
    nbytes : int
        Bytes that it is to go through.

    Raises
    ------
    InvalidOptionError
        If the environment asks for what is not there.
    MissingDependencyError
        If it asks for the compiled body without numba.
    """
    said = choice()
    if said == "numpy" or _off:
        return None
    wanted = module, *key
    if wanted in _ready:
        return sys.modules[module]
    if said == "fast":
        if not installed():
            raise MissingDependencyError(
                f"{SWITCH}=fast needs the package numba: pip install 'tensorlake-spark[fast]'"
            )
        return _load(wanted)
    if (
        installed() and FORK_GATE.is_safe
    ):  # else a thread of the parent may have locks that loading needs
        _load_later(wanted, nbytes)
    return None


def _load_later(key: Key, nbytes: int) -> None:
    """Have a loop loaded beside the work, once there is enough of that; what comes until then goes through NumPy."""
    global _seen
    with _lock:
        _seen += nbytes
        if _seen < ENOUGH or key in _asked:
            return
        _asked.add(key)
    kernel_thread().submit(_load_behind_gate, key)


def _load_behind_gate(key: Key) -> None:
    """Load a loop in a thread; a fork waits for it, for a child would wait for ever for the locks that it has."""
    with FORK_GATE:
        _load(key)


def _begin_anew() -> None:
    """Forget what the thread that loads was asked for; for the child of a fork, which has no such thread."""
    global _lock
    _lock = threading.Lock()
    _asked.intersection_update(_ready)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _load(key: Key) -> ModuleType | None:
    """Return a module after one of its loops is compiled, or comes from numba's cache."""
    try:
        module = import_module(key[0])
        module.warm(*key[1:])
    except Exception as error:  # whatever numba raises: the other body gives the same
        fail(error)
        return None
    _ready.add(key)
    return module


def fail(error: Exception) -> None:
    """Use NumPy from here on, and say why."""
    global _off
    _off = True
    _ready.clear()
    logger.warning("the compiled kernels are left out, and NumPy does their work: %s", error)
