"""A loader as a ``tf.data.Dataset``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.frameworks.batch_values import Batches, framework, is_numeric, plain
from tensorlake_spark.tensor.sparse import SparseTensor


def tensorflow_dataset(batches: Batches) -> Any:
    """Return a ``tf.data.Dataset`` of the batches of a loader: each pass is an epoch.

    The first batch is made once more, to see dtypes and ranks; these must be the same in all batches. Lists of arrays
    become ragged tensors, texts tensors of strings, and a `SparseTensor` a ``tf.sparse.SparseTensor``.

    Raises
    ------
    MissingDependencyError
        TensorFlow is not installed.
    InvalidOptionError
        There is no batch, a batch is no dict, or a value is none that TensorFlow has.
    """
    tf = framework("tensorflow")
    first = next(iter(batches.share(0, 1)), None)
    if not isinstance(first, dict):
        what = "no batch" if first is None else f"a batch that is of type {type(first).__name__}"
        raise InvalidOptionError(f"the loader has {what}; TensorFlow needs dicts of arrays")
    signature = {name: _spec(tf, name, value) for name, value in first.items()}

    def generate() -> Iterator[dict[str, Any]]:
        for batch in batches:
            yield {name: _tensor(tf, spec, batch[name]) for name, spec in signature.items()}

    return tf.data.Dataset.from_generator(generate, output_signature=signature)


def _spec(tf: Any, name: str, value: Any) -> Any:
    """Return what a column is: dtype and rank, and that lengths may be different in other batches."""
    if is_numeric(value):
        return tf.TensorSpec((None,) * value.ndim, tf.as_dtype(value.dtype))
    if isinstance(value, SparseTensor):
        return tf.SparseTensorSpec((None,) * value.ndim, tf.as_dtype(value.dtype))
    if isinstance(value, np.ndarray) and value.dtype.kind in "USO":
        value = value.tolist()
    if isinstance(value, list) and value:
        if all(isinstance(one, str | bytes) for one in value):
            return tf.TensorSpec((None,), tf.string)
        kinds = {(one.dtype, one.ndim) if is_numeric(one) else None for one in value}
        if len(kinds) == 1 and (kind := kinds.pop()) is not None:
            dtype, ndim = kind
            return tf.RaggedTensorSpec((None,) * (ndim + 1), tf.as_dtype(dtype), ragged_rank=ndim)
    raise InvalidOptionError(
        f"column {name!r} has values that TensorFlow cannot take, such as nulls or arrays of different ranks: leave it "
        "out by columns=, or make arrays of it by transform="
    )


def _tensor(tf: Any, spec: Any, value: Any) -> Any:
    if isinstance(spec, tf.RaggedTensorSpec):
        rows = [plain(one) for one in value]
        return tf.ragged.stack(rows) if spec.ragged_rank else tf.constant(rows, spec.dtype)
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.sparse.SparseTensor(value.coords.T, value.values, value.shape)
    if spec.dtype == tf.string:
        return tf.constant(list(value), tf.string)
    return tf.convert_to_tensor(plain(value))
