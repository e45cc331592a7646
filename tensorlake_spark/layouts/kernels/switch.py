"""Which body of codecs and of sparse reads runs: compiled, or NumPy's."""

from __future__ import annotations

import logging
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from tensorlake_spark.errors import InvalidOptionError, MissingDependencyError, did_you_mean

logger = logging.getLogger("tensorlake_spark")

SWITCH = "TENSORLAKE_KERNELS"
"""Environment variable with one of `CHOICES`."""

CHOICES = ("auto", "fast", "numpy")
ENOUGH = 32 << 20
"""With ``auto``, so many bytes go through NumPy before the compiled body is loaded, which takes half a second."""

Key = tuple[str, int, bool]  # a loop, bytes of a word, whether it encodes

_ROOM = "tensorlake_spark.layouts.kernels"
_SPARSE = ("pick", "unravel")
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


def compiled(loop: str, itemsize: int, encodes: bool, nbytes: int) -> ModuleType | None:
    """Return the module, `dense` or `sparse`, that has a compiled loop; None if the work goes through NumPy.

    Parameters
    ----------
    loop : str
        Name of the loop.
    itemsize : int
        Bytes of a word.
    encodes : bool
        Whether a block is written.
    nbytes : int
        Bytes of the block.

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
    key = (loop, itemsize, encodes)
    if key in _ready:
        return sys.modules[_module(loop)]
    if said == "fast":
        if not installed():
            raise MissingDependencyError(
                f"{SWITCH}=fast needs the package numba: pip install 'tensorlake-spark[fast]'"
            )
        return _load(key)
    if installed():
        _load_later(key, nbytes)
    return None


def _module(loop: str) -> str:
    """Return the name of the module through which a loop is called."""
    return f"{_ROOM}.{'sparse' if loop in _SPARSE else 'dense'}"


def _load_later(key: Key, nbytes: int) -> None:
    """Have a loop loaded beside the work, once there is enough of that; what comes until then goes through NumPy."""
    global _seen
    with _lock:
        _seen += nbytes
        if _seen < ENOUGH or key in _asked:
            return
        _asked.add(key)
    _loader().submit(_load, key)


@lru_cache(maxsize=1)
def _loader() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="tensorlake-kernels")


def _load(key: Key) -> ModuleType | None:
    """Return the module of a loop after it is compiled, or comes from numba's cache."""
    try:
        found = import_module(_module(key[0]))
        found.warm(*key)
    except Exception as error:  # whatever numba raises: the other body gives the same
        fail(error)
        return None
    _ready.add(key)
    return found


def fail(error: Exception) -> None:
    """Use NumPy from here on, and say why."""
    global _off
    _off = True
    _ready.clear()
    logger.warning(
        "the compiled kernels are left out, and NumPy does their work: %s; if numba's cache is damaged, delete it "
        "(NUMBA_CACHE_DIR, or __pycache__ beside the package)",
        error,
    )
