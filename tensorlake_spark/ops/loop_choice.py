"""Whether a compiled loop of this room runs, or NumPy and SciPy do the work."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.kernel_switch import compiled

_COMPILED = np.typecodes["AllInteger"] + "fdFD"
_SHORT = 16 << 10  # bytes below which NumPy is as fast as a call of a compiled loop


def loops_for(module: str, loop: str, dtype: np.dtype[Any], nbytes: int) -> Any:
    """Return a module of compiled loops if one of them runs, None if NumPy and SciPy do the work.

    Parameters
    ----------
    module : str
        Its full name.
    loop : str
        As `warm` of the module takes it.
    dtype : dtype
        Of the values.
    nbytes : int
        Bytes of the elements.
    """
    if nbytes < _SHORT or dtype.char not in _COMPILED:
        return None
    return compiled(module, loop, dtype.char, nbytes=nbytes)
