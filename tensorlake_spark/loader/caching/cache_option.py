"""The option ``cache`` of a loader: a folder, and how much may be in it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from tensorlake_spark.errors import InvalidOptionError

DEFAULT_BYTES = 32 * 10**9
"""What a cache holds if nobody says how much."""

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    _UNITS |= {f"{_letter}B": 1000**_power, f"{_letter}IB": 1024**_power, _letter: 1000**_power}

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_cache(value: Any) -> tuple[Path, int]:
    """Return folder and bytes of the option ``cache``.

    Parameters
    ----------
    value : str or path
        ``"folder"`` or ``"folder:size"``, where a size is a number with KB, MB, GB or TB, each 1,000 times the
        one before, or with KiB, MiB, GiB or TiB.

    Raises
    ------
    InvalidOptionError
        If it is neither, or the folder is a URL.

    Examples
    --------
    >>> parse_cache("/mnt/ssd/cache:50GB")
    (PosixPath('/mnt/ssd/cache'), 50000000000)
    >>> parse_cache("/mnt/ssd/cache")[1]
    32000000000
    """
    if isinstance(value, os.PathLike):
        return _folder(os.fspath(value), value), DEFAULT_BYTES
    if not isinstance(value, str):
        raise InvalidOptionError(
            f"cache={value!r:.80} is not a folder; give one like '/mnt/ssd/cache:50GB'"
        )
    if "://" in value:
        raise InvalidOptionError(
            f"cache={value!r:.200} is a URL; a cache is a folder on a local disk"
        )
    folder, colon, size = value.rpartition(":")
    if not colon:
        return _folder(value, value), DEFAULT_BYTES
    found = _SIZE.fullmatch(size)
    unit = None if found is None else _UNITS.get(found[2].upper())
    if found is None or unit is None:
        raise InvalidOptionError(
            f"cache={value!r:.200} ends with {size!r:.40}, which is no size; give one like '50GB' or '512MiB' after the "
            "colon, or a folder without a colon"
        )
    most = int(float(found[1]) * unit)
    if most < 1:
        raise InvalidOptionError(
            f"cache={value!r:.200} has the size 0; give more, or leave cache out"
        )
    return _folder(folder, value), most


def _folder(text: Any, value: Any) -> Path:
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidOptionError(
            f"cache={value!r:.200} names no folder; give one like '/mnt/ssd/cache:50GB'"
        )
    return Path(text).expanduser()
