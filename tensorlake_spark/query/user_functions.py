"""Functions that users give to queries: NumPy in and out, whole batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sqlglot.tokens import Tokenizer

from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.query.functions.registry import (
    AGGREGATES,
    FUNCTIONS,
    SCALARS,
    TensorFunction,
    find,
)
from tensorlake_spark.query.functions.row_values import Constant, RowError, Values, gathered

KINDS = ("number", "int", "bool", "text", "array")
"""What a function may return for a row."""

MOST_ARGUMENTS = 100


def register_function(name: str, f: Callable[..., Any], *, returns: Any = "number") -> None:
    """Add a function of your own to the queries of this process.

    Parameters
    ----------
    name : str
        Its name in queries; case does not matter. It replaces a function that you registered under this name before.
        The package's own functions cannot be replaced.
    f : callable
        The function. It is called with a batch of rows. Each argument is an array with the rows along its first axis;
        if shapes differ or values are missing, a list with an array or None for each row; and a plain value if it is
        the same for all rows. It returns an array or a list with one value for each row. Several threads may call it.
    returns : str or dtype
        The type of the value of a row: ``"number"``, ``"int"``, ``"bool"``, ``"text"``, ``"array"``, or a dtype of
        NumPy, to which numbers are converted.

    Raises
    ------
    InvalidOptionError
        If the name is not valid, or belongs to the package or to SQL; if `f` is not callable, or `returns` is unknown.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> tl.register_function("spread", lambda x: x.max(axis=1) - x.min(axis=1), returns="float64")
    >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": tl.types.Tensor("float64", (2,))})
    >>> ds.extend({"x": np.array([[1.0, 4.0], [2.0, 2.0]])})
    >>> ds.query("SELECT spread(x) AS s FROM dataset")["s"].tolist()
    [3.0, 0.0]
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name):
        raise InvalidOptionError(
            f"name={name!r:.80} is not a name for a function; take letters, digits and _, at most 63"
        )
    taken = find(name)
    if taken is not None and not taken.users:
        raise InvalidOptionError(f"name={name!r} is a function of this package; take another name")
    if name.casefold() in SCALARS | AGGREGATES or name.upper() in Tokenizer.KEYWORDS:
        raise InvalidOptionError(f"name={name!r} is a function or a word of SQL; take another name")
    if not callable(f):
        raise InvalidOptionError(f"f={f!r:.80} cannot be called; give a function")
    result, dtype = _returned(returns)

    def checked(arguments: Sequence[Values], rows: int) -> Values:
        return _called(name, f, dtype, result, arguments, rows)

    made = TensorFunction(name.casefold(), checked, result, (0, MOST_ARGUMENTS), users=True)
    FUNCTIONS.add(replace(made, dtype=dtype, about="a function of the user", function=f))


def unregister_function(name: str) -> None:
    """Forget a function that a user registered.

    Raises
    ------
    InvalidOptionError
        If there is none of this name.

    Examples
    --------
    >>> register_function("nothing", lambda x: x)
    >>> unregister_function("nothing")
    >>> find("nothing") is None
    True
    """
    known = find(name) if isinstance(name, str) else None
    if known is None or not known.users:
        users = [one.name for one in FUNCTIONS if one.users]
        near = did_you_mean(str(name), users)
        raise InvalidOptionError(f"name={name!r:.80} is not a registered function{near}")
    FUNCTIONS.remove(name)


def _returned(returns: Any) -> tuple[str, Any]:
    if isinstance(returns, str) and returns in KINDS:
        return returns, {"int": np.dtype(np.int64), "bool": np.dtype(bool)}.get(returns)
    try:
        dtype = np.dtype(returns)
    except (TypeError, ValueError):
        dtype = None
    kinds = {"b": "bool", "i": "int", "u": "int", "f": "number", "c": "number", "U": "text"}
    if returns is None or dtype is None or dtype.kind not in kinds:
        raise InvalidOptionError(
            f"returns={returns!r:.80} is not one of {', '.join(KINDS)}, and no dtype of numbers"
        )
    return kinds[dtype.kind], None if dtype.kind == "U" else dtype


def _called(
    name: str,
    f: Callable[..., Any],
    dtype: Any,
    result: str,
    arguments: Sequence[Values],
    rows: int,
) -> Values:
    given = [one.value if isinstance(one, Constant) else one for one in arguments]
    try:
        found = f(*given)
    except Exception as error:
        raise RowError(
            None, f"the function {name!r} raised {type(error).__name__}: {error!s:.300}"
        ) from error
    single = isinstance(found, (bool, int, float, complex, str, np.generic))
    if single and all(isinstance(one, Constant) for one in arguments):
        found = [found] * rows
    if isinstance(found, np.ndarray):
        found = found if found.dtype != object else list(found)
    elif isinstance(found, (tuple, list)):
        found = list(found)
    elif hasattr(found, "__array__"):
        found = np.asarray(found)
    else:
        raise RowError(
            None, f"the function {name!r} returned {type(found).__name__}, not one value a row"
        )
    length = len(found) if isinstance(found, list) or found.ndim else "no"
    if length != rows:
        raise RowError(None, f"the function {name!r} returned {length} values for {rows} rows")
    return _converted(name, found, dtype, result)


def _converted(name: str, found: Any, dtype: Any, result: str) -> Values:
    values = found if isinstance(found, np.ndarray) else gathered(found)
    items = (
        [values] if isinstance(values, np.ndarray) else [one for one in values if one is not None]
    )
    for item in items:
        kind = np.asarray(item).dtype.kind
        if (kind in "USO") != (result == "text") and len(values):
            what = "text" if kind in "US" else f"values of {np.asarray(item).dtype}"
            raise RowError(
                None,
                f"the function {name!r} returned {what}, but it was registered to return {result}",
            )
        axes = np.ndim(item) - isinstance(values, np.ndarray)
        if axes and result != "array" and dtype is None:
            raise RowError(
                None,
                f"the function {name!r} returned arrays for a row; register it with returns='array'",
            )
    if dtype is None:
        return values
    try:
        if isinstance(values, np.ndarray):
            return values.astype(dtype, copy=False)
        return [None if one is None else np.asarray(one).astype(dtype)[()] for one in values]
    except (TypeError, ValueError) as error:
        raise RowError(
            None, f"the function {name!r} returned what is no {dtype}: {error}"
        ) from error
