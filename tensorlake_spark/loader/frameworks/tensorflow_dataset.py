"""A loader as a ``tf.data.Dataset``."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.frameworks.batch_values import Batches, framework, is_numeric, plain
from tensorlake_spark.tensor.sparse import SparseTensor

Array = np.ndarray[Any, Any]


def tensorflow_dataset(batches: Batches) -> Any:
    """Return a ``tf.data.Dataset`` of the batches of a loader: each pass is an epoch.

    The first batch is made once more, to see dtypes and ranks; these must be the same in all batches. Lists of arrays
    become ragged tensors, texts tensors of strings, and a `SparseTensor` a ``tf.sparse.SparseTensor``. Arrays of three
    axes or more whose last axis has one length in the first batch, such as images, keep that axis even.

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
            yield {
                name: _tensor(tf, name, spec, batch.get(name)) for name, spec in signature.items()
            }

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
            lasts = {one.shape[-1:] for one in value}
            # Lengths of the last axis of images, one for each pixel, would be larger than the images.
            even = lasts.pop() if ndim > 2 and len(lasts) == 1 else ()
            ragged = ndim - len(even)
            return tf.RaggedTensorSpec((None,) * (ragged + 1) + even, tf.as_dtype(dtype), ragged)
    raise InvalidOptionError(
        f"column {name!r} has values that TensorFlow cannot take, such as nulls or arrays of different ranks: leave it "
        "out by columns=, or make arrays of it by transform="
    )


def _tensor(tf: Any, name: str, spec: Any, value: Any) -> Any:
    """Return a column of a batch as what the column was in the first batch."""
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.sparse.SparseTensor(value.coords.T, value.values, value.shape)
    if not isinstance(spec, tf.RaggedTensorSpec) and spec.dtype == tf.string:
        return tf.constant(list(value), tf.string)
    ragged = isinstance(spec, tf.RaggedTensorSpec)
    rank = spec.shape.rank - ragged
    if ragged and isinstance(value, list | np.ndarray):
        even = tuple(spec.shape[spec.ragged_rank + 1 :])
        rows = [plain(one) for one in value if is_numeric(one) and one.ndim == rank]
        if len(rows) == len(value) and all(one.shape[spec.ragged_rank :] == even for one in rows):
            return _stacked(tf, rows, spec)
    elif is_numeric(value) and value.ndim == rank:
        return tf.convert_to_tensor(plain(value))
    raise InvalidOptionError(
        f"column {name!r} is {spec} in the first batch, and not in a later one: make arrays of one shape of it by "
        "collate='pad' or transform=, or leave it out by columns="
    )


def _stacked(tf: Any, rows: list[Array], spec: Any) -> Any:
    """Return arrays one after the other, as ragged as a column is; tf.ragged.stack keeps all but two axes even."""
    depth = spec.ragged_rank
    if not depth:
        return tf.constant(rows, spec.dtype)
    counts = [[prod(one.shape[:axis]) for one in rows] for axis in range(depth + 1)]
    flat = [one.reshape(count, *one.shape[depth:]) for one, count in zip(rows, counts[depth])]
    lengths = [np.repeat([one.shape[axis] for one in rows], counts[axis]) for axis in range(depth)]
    return tf.RaggedTensor.from_nested_row_lengths(np.concatenate(flat), lengths, validate=False)
