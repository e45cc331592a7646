"""What a function of tensors is, and how modules define theirs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorlake_spark.query.functions.row_values import (
    Constant,
    RowError,
    Values,
    by_rows,
    by_shapes,
)

Result = str | Callable[..., Any]


@dataclass(frozen=True)
class TensorFunction:
    """A function of a query.

    Attributes
    ----------
    name : str
        In lower case.
    evaluate : callable
        Takes a list of `Values` and the number of rows, and returns `Values`. It raises `RowError`.
    result : str
        ``"number"``, ``"bool"``, ``"int"``, ``"text"`` or ``"array"``: what it gives for a row.
    arity : tuple of int
        The least and the most arguments.
    spellings : tuple of str
        Its other names, in lower case.
    reads : str
        ``"shape"``, if it needs no elements of its first argument, else ``"values"``.
    users : bool
        Whether a user registered it.
    """

    name: str
    evaluate: Callable[[Sequence[Values], int], Values]
    result: Result = "array"
    arity: tuple[int, int] = (1, 1)
    spellings: tuple[str, ...] = ()
    reads: str = "values"
    users: bool = False
    about: str = ""
    dtype: Any = field(default=None, compare=False)
    function: Callable[..., Any] | None = field(default=None, compare=False)

    def __call__(self, arguments: Sequence[Values], rows: int) -> Values:
        """Return its values, once the number of arguments is known to be right.

        Raises
        ------
        RowError
            If a value cannot be computed, or the number of arguments is wrong.
        """
        least, most = self.arity
        if not least <= len(arguments) <= most:
            takes = str(least) if least == most else f"{least} to {most}"
            raise RowError(None, f"{self.name} takes {takes} arguments, not {len(arguments)}")
        return self.evaluate(arguments, rows)


class Registry:
    """Functions by their names, without regard to case.

    Examples
    --------
    >>> known = Registry()
    >>> _ = known.add(TensorFunction("twice", lambda arguments, rows: arguments[0] * 2, spellings=("double",)))
    >>> known["DOUBLE"].name, "nothing" in known
    ('twice', False)
    """

    def __init__(self) -> None:
        self._functions: dict[str, TensorFunction] = {}
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()

    def add(self, function: TensorFunction) -> TensorFunction:
        """Add a function, or put it in the place of one of the same name."""
        with self._lock:
            self._functions[function.name] = function
            for name in (function.name, *function.spellings):
                self._names[name] = function.name
        return function

    def remove(self, name: str) -> None:
        """Forget a function and its spellings.

        Raises
        ------
        KeyError
            If there is none.
        """
        with self._lock:
            gone = self._functions.pop(self._names[name.casefold()])
            self._names = {s: n for s, n in self._names.items() if n != gone.name}

    def get(self, name: str) -> TensorFunction | None:
        """Return the function of a name or spelling, or None."""
        found = self._names.get(name.casefold())
        return None if found is None else self._functions.get(found)

    def names(self) -> list[str]:
        """Return all names and spellings, sorted."""
        return sorted(self._names)

    def __getitem__(self, name: str) -> TensorFunction:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[TensorFunction]:
        return iter(list(self._functions.values()))

    def __len__(self) -> int:
        return len(self._functions)


FUNCTIONS = Registry()
"""What every query can call, once `registry` is imported; `user_functions` adds to it."""


def rowwise(
    name: str,
    one: Callable[..., Any],
    result: Result = "array",
    arity: tuple[int, int] = (1, 1),
    spellings: tuple[str, ...] = (),
    stacked: Callable[..., Any] | None = None,
    reads: str = "values",
    about: str = "",
    large: bool = False,
) -> TensorFunction:
    """Add a function that is defined by what it does with one row.

    Parameters
    ----------
    name, result, arity, spellings, reads
        See `TensorFunction`.
    one : callable
        Takes the arguments of one row, and returns its value. It raises ValueError, TypeError or IndexError.
    stacked : callable, optional
        The same for all rows at once: it takes arrays with the rows along the first axis, or `Constant`, and may
        return None, if it is not made for these.
    about : str
        One line for users.
    large : bool
        Whether `stacked` is asked for large arrays too, where all rows lie in one array: it takes no memory beside it.
    """

    def evaluate(arguments: Sequence[Values], rows: int) -> Values:
        if stacked is not None and not all(isinstance(values, Constant) for values in arguments):
            found = by_shapes(stacked, arguments, rows, large)
            if found is not None:
                return found
        return by_rows(one, arguments, rows)

    made = TensorFunction(name, evaluate, result, arity, spellings, reads, False, about)
    return FUNCTIONS.add(made)
