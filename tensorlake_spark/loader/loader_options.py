"""The options of a loader, checked."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, check_flag, did_you_mean
from tensorlake_spark.loader.byte_size import byte_size
from tensorlake_spark.loader.order.epoch_order import MOST_SPLITS
from tensorlake_spark.loader.pipeline.collation import Collate, check_collate

BUFFER_BYTES = 128 << 20
"""Stored bytes among which ``shuffle=True`` moves samples."""

_SHUFFLES = ("block", "global")
_MOST_WORKERS = 1024
_MOST_PROCESSES = 1 << 20  # a batch has a place for each of them


@dataclass(frozen=True)
class LoaderOptions:
    """What a loader does with its samples; `checked_options` makes one.

    Attributes
    ----------
    batch_size, rank, world_size, seed, drop_last
        As `Dataset.loader` takes them.
    shuffle : str or None
        ``"block"``, ``"global"`` or None.
    buffer : int
        Bytes among which ``"block"`` moves samples.
    splits : int, or None
        Streams of a block shuffle; None for as many as suit the batch.
    workers : int or str
        Threads that make batches, or ``"processes"``.
    transform : callable, or mapping of str to callable
        Of samples, or of single columns.
    collate : callable, str or None
        How samples are put together.
    memory : int
        Bytes of the batches that are made ahead.
    prefetch : int, or None
        Batches ahead; None for as many as the memory has room for.
    on_error : str
        ``"raise"`` or ``"skip"``.
    cache : str, or None
        A folder for pieces of remote files, and its size.
    """

    batch_size: int
    shuffle: str | None
    buffer: int
    seed: int
    rank: int
    world_size: int
    splits: int | None
    workers: int | str
    transform: Callable[[dict[str, Any]], dict[str, Any]] | Mapping[str, Any] | None
    collate: Collate
    drop_last: bool
    memory: int
    prefetch: int | None
    on_error: str
    cache: str | None

    @property
    def global_batch(self) -> int:
        """Samples of one step of all ranks."""
        return self.batch_size * self.world_size


def checked_options(
    batch_size: Any,
    shuffle: Any = False,
    seed: Any = 0,
    rank: Any = 0,
    world_size: Any = 1,
    splits: Any = None,
    workers: Any = "auto",
    transform: Any = None,
    collate: Any = None,
    drop_last: Any = False,
    memory: Any = "512MB",
    cache: Any = None,
    prefetch: Any = None,
    on_error: Any = "raise",
) -> LoaderOptions:
    """Return options of a loader.

    Raises
    ------
    InvalidOptionError
        If one is not what it should be; the message names it, its bound and what to give.

    Examples
    --------
    >>> options = checked_options(64, shuffle=True, rank=1, world_size=4, memory="1GB")
    >>> options.shuffle, options.global_batch, options.memory
    ('block', 256, 1000000000)
    """
    size = whole("batch_size", batch_size, 1)
    world = whole("world_size", world_size, 1)
    if world > _MOST_PROCESSES:
        raise InvalidOptionError(
            f"world_size={world} processes are more than a loader shares batches among; give at most {_MOST_PROCESSES}"
        )
    number = whole("rank", rank, 0)
    if number >= world:
        raise InvalidOptionError(
            f"rank={number} is not below world_size={world}; ranks are counted from 0 to {world - 1}"
        )
    mode, buffer = _shuffle(shuffle)
    if splits is not None:
        splits = whole("splits", splits, 1)
        if splits > MOST_SPLITS:
            raise InvalidOptionError(
                f"splits={splits} streams are too many to be read side by side; give at most {MOST_SPLITS}"
            )
    if not isinstance(on_error, str) or on_error not in ("raise", "skip"):
        raise InvalidOptionError(f"on_error={on_error!r:.80} is neither 'raise' nor 'skip'")
    _check_transform(transform)
    drop_last = check_flag("drop_last", drop_last)
    return LoaderOptions(
        size, mode, buffer, whole("seed", seed, 0), number, world, splits, _workers(workers), transform,
        check_collate(collate), drop_last, byte_size(memory, "memory"),
        None if prefetch is None else whole("prefetch", prefetch, 1), on_error, cache,
    )  # fmt: skip


def _check_transform(given: Any) -> None:
    """Raise InvalidOptionError if it is no transform, or one is a class that has yet to be called."""
    if not (given is None or callable(given) or isinstance(given, Mapping)):
        raise InvalidOptionError(
            f"transform={given!r:.80} is neither a function of a sample nor a mapping of columns to functions, such as "
            "{'image': RandomFlip()}"
        )
    for one in given.values() if isinstance(given, Mapping) else [given]:
        if isinstance(one, type) and hasattr(one, "region"):
            name = one.__name__
            raise InvalidOptionError(
                f"transform={name} is a class of transforms of images; call it: {name}(...)"
            )


def whole(name: str, given: Any, least: int) -> int:
    """Return a whole number; raises InvalidOptionError if it is none, or below a bound."""
    try:
        found = operator.index(given)
    except TypeError:
        found = least - 1
    if found < least or isinstance(given, bool):
        raise InvalidOptionError(
            f"{name}={given!r:.80} is not a whole number of at least {least}"
        ) from None
    return found


def _shuffle(given: Any) -> tuple[str | None, int]:
    if given is None or isinstance(given, bool | np.bool_):
        return ("block" if given else None), BUFFER_BYTES
    if isinstance(given, str) and given in _SHUFFLES:
        return given, BUFFER_BYTES
    try:
        size = byte_size(given, "shuffle")
        if size == 1:  # as others write True
            raise InvalidOptionError("one byte")
        return "block", size
    except InvalidOptionError:
        near = did_you_mean(given, _SHUFFLES) if isinstance(given, str) else ""
        raise InvalidOptionError(
            f"shuffle={given!r:.80} is not True, False, 'block', 'global' or a size in bytes{near}"
        ) from None


def _workers(given: Any) -> int | str:
    from tensorlake_spark.threads import THREADS

    if isinstance(given, str) and given in ("auto", "processes"):
        return THREADS if given == "auto" else given
    try:
        found = whole("workers", given, 1)
    except InvalidOptionError:
        raise InvalidOptionError(
            f"workers={given!r:.80} is not a number of threads, 'auto' or 'processes'"
        ) from None
    if found > _MOST_WORKERS:
        raise InvalidOptionError(
            f"workers={found} threads are more than a loader starts; give at most {_MOST_WORKERS}"
        )
    return found
