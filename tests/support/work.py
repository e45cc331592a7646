"""How much a call does, in numbers that are the same on every machine: no clock is looked at."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any


def calls(call: Callable[[], object]) -> int:
    """Return how many functions, of Python and of C, this thread calls while `call` runs.

    What a C function does inside is one call, so this counts loops of Python, not work of NumPy.
    """
    count = 0

    def note(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # what it calls belongs to garbage of others
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the most bytes that Python and NumPy held at once for `call`, beside what they held before."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
