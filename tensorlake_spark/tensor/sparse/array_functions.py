"""NumPy's functions of a sparse tensor: ``np.sum(x)`` is ``x.sum()``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorlake_spark.errors import UnsupportedFunctionError
from tensorlake_spark.ops import einsum, products
from tensorlake_spark.ops.elements import Elements

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
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
        compute = FUNCTIONS.get(func)
        if compute is None:
            name = f"{func.__module__}.{func.__name__}".replace("numpy", "np", 1)
            raise UnsupportedFunctionError(
                f"{name} of a sparse tensor is not there; {name}(x.todense()) takes "
                f"{self.size * self.dtype.itemsize} bytes"
            )
        return self._wrapped(compute(*args, **kwargs))
