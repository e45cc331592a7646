"""NumPy's functions of a sparse tensor: ``np.sum(x)`` is ``x.sum()``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Any

import numpy as np

from tensorlake_spark.errors import UnsupportedFunctionError
from tensorlake_spark.ops import comparing, valuewise
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.products import einsum
from tensorlake_spark.ops.products import numpy_products as products
from tensorlake_spark.ops.reducing import index_reductions, moments, reductions
from tensorlake_spark.ops.shapes import diagonals, joining, shaping

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    **comparing.FUNCTIONS,
    **diagonals.FUNCTIONS,
    **index_reductions.FUNCTIONS,
    **joining.FUNCTIONS,
    **reductions.FUNCTIONS,
    **shaping.FUNCTIONS,
    **moments.FUNCTIONS,
    **valuewise.FUNCTIONS,
    **products.FUNCTIONS,
    **einsum.FUNCTIONS,
}
"""What computes a function of NumPy: each family of ``ops`` has a table, and this is all of them."""


class ArrayFunctions(Elements):
    """NumPy's protocol for functions that are not ufuncs."""

    __slots__ = ()

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        if any(not issubclass(t, (Elements, np.ndarray)) for t in types):
            return NotImplemented  # a stored tensor knows better how it is read
        compute = FUNCTIONS.get(func)
        if compute is None:
            name = f"{func.__module__}.{func.__name__}".replace("numpy", "np", 1)
            raise UnsupportedFunctionError(
                f"{name} of a sparse tensor is not there; {name}(x.todense()) takes "
                f"{self.size * self.dtype.itemsize} bytes"
            )
        unknown = [name for name in kwargs if not _takes(compute, name)]
        if unknown:
            raise UnsupportedFunctionError(
                f"np.{func.__name__} of a sparse tensor takes no {unknown[0]}=; np.{func.__name__}(x.todense(), ...) "
                f"does, and takes {self.size * self.dtype.itemsize} bytes"
            )
        return self._wrapped(compute(*args, **kwargs))


@cache
def _takes(function: Callable[..., Any], name: str) -> bool:
    """Return whether a function has an argument of a name."""
    known = signature(function).parameters.values()
    return any(p.name == name or p.kind is Parameter.VAR_KEYWORD for p in known)
