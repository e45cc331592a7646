"""Sizes as people write them: ``512MB``."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    _UNITS |= {f"{_letter}B": 1000**_power, f"{_letter}IB": 1024**_power, _letter: 1000**_power}

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def byte_size(given: Any, what: str) -> int:
    """Return a size in bytes.

    Parameters
    ----------
    given : int or str
        Bytes, or a number with KB, MB, GB or TB, each 1,000 times the one before, or KiB, MiB, GiB or TiB.
    what : str
        The option, for messages.

    Raises
    ------
    InvalidOptionError
        If it is no size above 0, or one of more than 2**63 - 1 bytes.

    Examples
    --------
    >>> byte_size("1.5KB", "memory"), byte_size("1 MiB", "memory"), byte_size(64, "memory")
    (1500, 1048576, 64)
    """
    size = 0
    if isinstance(given, str):
        found = _SIZE.fullmatch(given)
        if found and found[2].upper() in _UNITS:
            size = int(min(float(found[1]) * _UNITS[found[2].upper()], 2.0**63))
    elif hasattr(given, "__index__") and not isinstance(given, bool | np.bool_):
        try:
            size = operator.index(given)
        except TypeError:  # an array of several
            size = 0
    if not 1 <= size < 1 << 63:
        raise InvalidOptionError(
            f"{what}={given!r:.80} is not a size; give bytes, or a text such as '512MB'"
        )
    return size
