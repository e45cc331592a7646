"""Batches of a loader as arrays of JAX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorlake_spark.loader.frameworks.batch_values import (
    Batches,
    each_value,
    framework,
    is_numeric,
    plain,
)
from tensorlake_spark.tensor.sparse import SparseTensor


class JaxBatches:
    """Batches of a loader as arrays of JAX: an iterable whose every pass is an epoch.

    Arrays go to the device while the caller works on the batch before. Without JAX's option ``jax_enable_x64`` numbers
    of 64 bits become numbers of 32 bits, as everywhere in JAX. A `SparseTensor` becomes a ``BCOO`` array; batches have
    different numbers of elements, so a function that is compiled for each may want ``collate="dense"``. What JAX has no
    dtype for, such as texts, stays what it is.

    Parameters
    ----------
    batches : Loader
    device : jax.Device or jax.sharding.Sharding, optional
        Where arrays go; JAX's default device.

    Raises
    ------
    MissingDependencyError
        JAX is not installed.
    """

    def __init__(self, batches: Batches, device: Any = None) -> None:
        self._jax = framework("jax")
        self._batches = batches
        self._device = device

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            yield each_value(batch, self._array)

    def _array(self, value: Any) -> Any:
        if isinstance(value, SparseTensor):
            parts = self._array(value.values), self._array(value.coords.T)
            if not all(isinstance(part, self._jax.Array) for part in parts):
                return value
            sparse = framework("jax.experimental.sparse")
            return sparse.BCOO(parts, shape=value.shape, indices_sorted=True, unique_indices=True)
        if not is_numeric(value):
            return value
        try:
            return self._jax.device_put(plain(value), self._device)
        except TypeError:  # such as long doubles
            return value
