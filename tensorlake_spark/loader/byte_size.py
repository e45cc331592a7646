"""Sizes as people write them: ``512MB``."""

from __future__ import annotations

import re
from typing import Any

from tensorlake_spark.errors import InvalidOptionError

_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", re.IGNORECASE)


def byte_size(given: Any, what: str) -> int:
    """Return a size in bytes.

    Parameters
    ----------
    given : int or str
        Bytes, or a number with ``KB``, ``MB``, ``GB`` or ``TB``; each is 1,024 times the one before.
    what : str
        The option, for messages.

    Raises
    ------
    InvalidOptionError
        If it is no size above 0.

    Examples
    --------
    >>> byte_size("1.5KB", "memory"), byte_size(64, "memory")
    (1536, 64)
    """
    if isinstance(given, str) and (found := _SIZE.fullmatch(given)):
        unit = found[2].upper().replace("I", "")
        size = int(float(found[1]) * _UNITS[unit if unit.endswith("B") or not unit else unit + "B"])
    elif isinstance(given, int) and not isinstance(given, bool):
        size = given
    else:
        size = 0
    if size < 1:
        raise InvalidOptionError(
            f"{what}={given!r:.80} is no size; give bytes, or a text such as '512MB'"
        )
    return size
