"""The option ``cache`` of a loader: a folder, and how much may be in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tensorlake_spark.errors import InvalidOptionError, check_text
from tensorlake_spark.loader.byte_size import byte_size

DEFAULT_BYTES = 32 * 10**9
"""What a cache holds if nobody says how much."""


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
    return _folder(folder, value), byte_size(size, "the size in cache")


def _folder(text: Any, value: Any) -> Path:
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidOptionError(
            f"cache={value!r:.200} names no folder; give one like '/mnt/ssd/cache:50GB'"
        )
    check_text(text, "cache")
    return Path(text).expanduser()
