"""Arguments of the public functions: an argument of a wrong kind is an error that says what the function takes."""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Kind:
    """A kind of argument: what it is called, and which values are of it."""

    name: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Kind) -> Kind:
        """Return the kind of what is one or the other."""
        return Kind(
            f"{self.name} or {other.name}", lambda value: self.holds(value) or other.holds(value)
        )


def _is_session(value: Any) -> bool:
    # A session of Spark Connect is of another class.
    return hasattr(value, "createDataFrame") and hasattr(value, "sql")


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        return False
    return -(2**63) <= int(value) < 2**63  # Spark has no longer ones


def _is_list(value: Any, holds: Callable[[Any], bool]) -> bool:
    is_list = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes))
    # An array without axes is no list.
    return is_list and getattr(value, "ndim", 1) > 0 and all(map(holds, value))


_KEYS = (str, int, np.integer, slice, type(...), type(None), tuple, list, np.ndarray)

ANY_KEY = Kind("a NumPy key or its text", lambda value: isinstance(value, _KEYS))
COLUMN = Kind("a Column or the name of one", lambda value: isinstance(value, (Column, str)))
EXPRESSION = Kind("a Column", lambda value: isinstance(value, Column))
FLAG = Kind("True or False", lambda value: isinstance(value, (bool, np.bool_)))
FRAME = Kind("a DataFrame of Spark", lambda value: isinstance(value, DataFrame))
INTEGER = Kind("an integer of 64 bits", _is_integer)
INTEGERS = Kind("a sequence of integers of 64 bits", lambda value: _is_list(value, _is_integer))
MAPPING = Kind("a mapping", lambda value: isinstance(value, Mapping))
NAMES = Kind(
    "a sequence of names", lambda value: _is_list(value, lambda name: isinstance(name, str))
)
NOTHING = Kind("None", lambda value: value is None)
NUMBER = Kind("a number of 64 bits", lambda v: isinstance(v, (bool, float)) or _is_integer(v))
PATH = Kind("a path or the name of a table", lambda value: isinstance(value, (str, os.PathLike)))
SESSION = Kind("a SparkSession", _is_session)
TEXT = Kind("a text", lambda value: isinstance(value, str))
TIME = Kind("a time or its text", lambda value: isinstance(value, (str, dt.datetime)))


def check_argument(function: str, parameter: str, value: Any, kind: Kind) -> None:
    """Raise InvalidOptionError if the argument of a function is not of a kind."""
    if not kind.holds(value):
        raise InvalidOptionError(
            f"{function}({parameter}={value!r:.80}): {parameter} is of type {type(value).__name__}; {function} takes "
            f"{kind.name} there"
        )


def takes(**kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator by which a function refuses arguments that are not of these kinds.

    Parameters
    ----------
    **kinds : Kind
        For a parameter its kind; of ``*index`` that of each. What is not named here is not looked at.

    Raises
    ------
    InvalidOptionError
        Raised by the function; names the function, the parameter, what it got and what it takes.

    Examples
    --------
    >>> @takes(n=INTEGER)
    ... def double(n):
    ...     return 2 * n
    >>> double("a")
    Traceback (most recent call last):
    tensorlake_spark.errors.InvalidOptionError: double(n='a'): n is of type str; double takes an integer of 64 bits \
there
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        name = function.__name__
        many = inspect.Parameter.VAR_POSITIONAL

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given = signature.bind(*args, **kwargs).arguments
            for parameter, kind in kinds.items():
                if parameter not in given:
                    continue
                value = given[parameter]
                values = value if signature.parameters[parameter].kind is many else (value,)
                for one in values:
                    check_argument(name, parameter, one, kind)
            return function(*args, **kwargs)

        return checked

    return decorate


_TENSOR = "a tensor is a struct<dtype, shape, data>, as tensor_decode and tensor_from_array give it"

# What the first parameter of a function of SQL is, by its name.
_FIRST = {"x": _TENSOR, "tensors": _TENSOR, "rows": "rows are struct(*) of a table of tensors"}


def refused_arguments(
    name: str,
    function: Callable[..., Any],
    error: Exception,
    columns: Sequence[pa.Array],
    named: Mapping[str, pa.Array] | None = None,
) -> InvalidTensorError:
    """Return the error of a function of SQL that could not be called with columns of these types.

    SQL does not look at the types of arguments before it calls: any column may be one.

    Parameters
    ----------
    name : str
        The function's name in SQL.
    function : callable
        What was called. Its parameters are named in the message.
    error : Exception
        What the call raised. Python's words on its own types are left out, as the caller wrote SQL.
    columns : sequence of pyarrow.Array
        The arguments that were given by position.
    named : mapping of str to pyarrow.Array, optional
        Those that were given by name.

    Examples
    --------
    >>> def area(x, unit=None): ...
    >>> refused_arguments("box_area", area, TypeError("'tuple' object"), [pa.array([1], pa.int32())])
    InvalidTensorError('box_area takes (x, unit=None), not (int32); a tensor is a struct<dtype, shape, data>, as \
tensor_decode and tensor_from_array give it')
    """
    parameters = [
        p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()
    ]
    expected = inspect.Signature(parameters)
    given = [str(column.type) for column in columns]
    given += [f"{key} => {column.type}" for key, column in (named or {}).items()]
    says = "" if isinstance(error, (TypeError, AttributeError, KeyError)) else f": {error}"
    first = _FIRST.get(parameters[0].name)
    hint = "" if first is None else f"; {first}"
    return InvalidTensorError(f"{name} takes {expected}, not ({', '.join(given)}){says}{hint}")
