"""A process that uses a cache of ranges; tests start several, and kill some.

``python cache_user.py FOLDER MOST LOG ACTION``: ``read`` reads twenty ranges and writes a line to LOG for each that it
fetches; ``hang`` begins to fetch one and never ends; ``tear`` is killed in the middle of writing one.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from tensorlake_spark.loader.caching import range_cache
from tensorlake_spark.loader.caching.range_cache import RangeCache

SIZE = 20_000


def key(number: int) -> tuple[str, str, int, int]:
    return "s3://bucket/table", "part-0.parquet", number, SIZE


def content(number: int) -> bytes:
    return bytes([number % 251]) * SIZE


def main(folder: str, most: str, log: str, action: str) -> None:
    cache = RangeCache(folder, int(most))

    def fetch(number: int) -> bytes:
        with open(log, "a") as file:
            file.write(f"{number}\n")
        if action == "hang":
            print("fetching", flush=True)
            time.sleep(600)
        time.sleep(0.002)
        return content(number)

    if action == "tear":
        range_cache.os = _Torn()  # type: ignore[attr-defined]
    for number in range(20):
        data = cache.get(key(number), lambda number=number: fetch(number))  # type: ignore[misc]
        if bytes(data) != content(number):
            sys.exit(f"range {number} is wrong")
    print(cache.hits, cache.misses, cache.wrong, flush=True)


class _Torn:
    """The module ``os``, whose third write kills this process."""

    writes = 0

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def write(self, file: int, data: memoryview) -> int:
        self.writes += 1
        if self.writes == 6:
            os.write(file, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return os.write(file, data)


if __name__ == "__main__":
    main(*sys.argv[1:])
