"""What frameworks take: loaders of any kind, and the values of their batches one by one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from tensorlake_spark.errors import MissingDependencyError

Array = np.ndarray[Any, Any]
State = dict[str, int | str | None]


class Batches(Protocol):
    """A loader, as far as a framework has to do with it: iterable, each time an epoch."""

    def __iter__(self) -> Iterator[Any]:
        """Yield batches: mostly dicts of arrays and lists."""

    def __len__(self) -> int:
        """How many batches the next iteration has."""

    def share(self, worker: int, workers: int) -> Batches:
        """Return a loader at the same place, of each `workers`-th batch from number `worker` on."""

    def state_dict(self) -> State:
        """Return where it is; ``epoch`` and ``samples`` are in it."""

    def state_after(self, batches: int) -> State:
        """Return where it is when so many batches of the next iteration were delivered."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch with the next iteration."""


def framework(name: str, extra: str | None = None) -> Any:
    """Return a package that is imported when it is used.

    Raises
    ------
    MissingDependencyError
        It is not installed; the message says how it is.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        wanted = f"tensorlake-spark[{extra}]" if extra else name.split(".")[0]
        raise MissingDependencyError(
            f"this needs {name.split('.')[0]}, which is not installed: pip install '{wanted}'"
        ) from error


def each_value(batch: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a batch with each of its values converted; dicts, lists and tuples stay what they are.

    Examples
    --------
    >>> each_value({"x": np.arange(2), "names": ["a", "b"]}, lambda v: v + 1 if isinstance(v, np.ndarray) else v)
    {'x': array([1, 2]), 'names': ['a', 'b']}
    """
    if isinstance(batch, dict):
        return {name: each_value(value, convert) for name, value in batch.items()}
    if type(batch) in (list, tuple):
        return type(batch)(each_value(value, convert) for value in batch)
    return convert(batch)


def is_numeric(value: Any) -> bool:
    """Return whether a value is an array of numbers or truth values: not of texts, times, objects or fields.

    Examples
    --------
    >>> is_numeric(np.zeros(2, "f4")), is_numeric(np.array(["a"])), is_numeric([1.0])
    (True, False, False)
    """
    if not isinstance(value, np.ndarray):
        return False
    return value.dtype.kind in "biufc" or is_foreign(value.dtype)


def is_foreign(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is one of ml_dtypes, such as bfloat16: some of them are of kind V, as structured ones are.

    Examples
    --------
    >>> is_foreign(np.dtype("f4")), is_foreign(np.dtype([("x", "f4")]))
    (False, False)
    """
    return dtype.num >= 256  # where NumPy begins to count those that others register


def plain(array: Array) -> Array:
    """Return an array in the byte order of this machine whose elements lie evenly; itself where it is so already.

    Examples
    --------
    >>> plain(np.arange(3, dtype=">i4")).dtype.isnative, plain(np.arange(3)[::-1]).strides
    (True, (8,))
    """
    if not array.dtype.isnative:
        return np.asarray(array.astype(array.dtype.newbyteorder("=")))
    if any(step < 0 or step % array.itemsize for step in array.strides):
        return np.asarray(array.copy())
    return array
