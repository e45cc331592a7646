"""The functions of tensors by name, as queries call them."""

from __future__ import annotations

# Each of these modules adds its functions when it is imported.
from tensorlake_spark.query.functions import boxes, distances, pixels, summaries  # noqa: F401
from tensorlake_spark.query.functions.definitions import FUNCTIONS, Registry, TensorFunction

__all__ = ["FUNCTIONS", "Registry", "TensorFunction", "find"]


def find(name: str) -> TensorFunction | None:
    """Return the function of a name or spelling, or None.

    Examples
    --------
    >>> find("IOU").arity
    (2, 4)
    """
    return FUNCTIONS.get(name)
