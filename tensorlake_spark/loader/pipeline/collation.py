"""Samples put together to a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorlake_spark.datasets.samples.padding import Blank, padded
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError, InvalidTensorError
from tensorlake_spark.loader.columns.values import Values
from tensorlake_spark.tensor.sparse import SparseTensor, check_unmasked

Batch = dict[str, Any]
Collate = str | Callable[[list[dict[str, Any]]], Any] | None

KNOWN = ("pad", "stack", "list", "dense")
"""Names of ways to put ragged samples together."""


class UnlikeSample(InvalidSampleError):
    """A sample does not fit into one batch with the others.

    Parameters
    ----------
    number : int
        Its place in the batch, from 0.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> error = UnlikeSample(3, "it is null")
    >>> error.number, str(error)
    (3, 'sample 3 of the batch: it is null')
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"sample {number} of the batch: {reason}")
        self.number = number
        self.reason = reason

    def __reduce__(self) -> tuple[type[UnlikeSample], tuple[int, str]]:
        return UnlikeSample, (self.number, self.reason)


def check_collate(collate: Any) -> Collate:
    """Return what says how samples are put together; raises InvalidOptionError if it is nothing of that."""
    if collate is None or callable(collate) or (isinstance(collate, str) and collate in KNOWN):
        return collate  # type: ignore[no-any-return]
    raise InvalidOptionError(
        f"collate={collate!r:.80} is not one of {', '.join(KNOWN)}, nor a function of a list of samples"
    )


def collated(
    columns: Mapping[str, Values],
    collate: str | None,
    blanks: Mapping[str, Blank] | None = None,
) -> Batch:
    """Return columns as a batch.

    Parameters
    ----------
    columns : mapping of str to ndarray or list
        An ndarray has the samples along its first axis and stays what it is.
    collate : {"pad", "stack", "list", "dense"} or None
        What becomes of lists of arrays: ``"pad"`` fills each up with zeros to the longest, ``"stack"`` wants all of
        one shape, otherwise they stay lists. A SparseTensor becomes an ndarray with ``"dense"``, and with ``"list"`` a
        list of its slices.
    blanks : mapping of str to (dtype, tuple of int), optional
        What an array of no values is in columns that have arrays; see `padding.blank_of`. Where all samples of another
        column are null they stay a list, as they do beside numbers and texts.

    Raises
    ------
    UnlikeSample
        If samples of a column do not make one array.

    Examples
    --------
    >>> collated({"x": [np.array([1, 2]), np.array([3])]}, "pad")["x"].tolist()
    [[1, 2], [3, 0]]
    """
    known = blanks or {}
    return {
        name: _collated(name, values, collate, known.get(name)) for name, values in columns.items()
    }


def _collated(name: str, values: Values, collate: str | None, blank: Blank | None) -> Values:
    if isinstance(values, SparseTensor):
        if collate == "dense":
            return values.todense()  # type: ignore[no-any-return]
        return [values[k] for k in range(len(values))] if collate == "list" else values
    if isinstance(values, np.ndarray) or collate in (None, "list", "dense") or not values:
        return values
    if not all(isinstance(value, np.ndarray) or value is None for value in values):
        return values
    if blank is None and all(value is None for value in values):
        return values
    if collate == "pad":
        try:
            return padded(values, 0, blank)
        except InvalidSampleError as error:
            kinds = [None if value is None else (value.ndim, value.dtype) for value in values]
            first = next((kind for kind in kinds if kind is not None), None)
            number = next((n for n, kind in enumerate(kinds) if kind not in (None, first)), 0)
            raise UnlikeSample(number, f'column {name!r} with collate="pad": {error}') from error
    return stacked(name, values)


def stacked(name: str, values: list[Any]) -> np.ndarray[Any, Any]:
    """Return arrays of one shape and dtype as one array.

    Raises
    ------
    UnlikeSample
        If one is None, or has another shape or dtype than the first.
    """
    first = values[0]
    for number, value in enumerate(values):
        if value is None or first is None:
            raise UnlikeSample(
                number if value is None else 0,
                f"column {name!r} is null, so that the batch is no array; fill it by a transform, or leave the sample "
                'out by where="... IS NOT NULL"',
            )
        if value.shape != first.shape or value.dtype != first.dtype:
            raise UnlikeSample(
                number,
                f"column {name!r} is {value.dtype} of shape {value.shape}, and {first.dtype} of shape {first.shape} in "
                'the first sample of the batch; give collate="pad", or a transform that makes them alike',
            )
    return np.stack(values)


def columns_of(samples: list[dict[str, Any]]) -> dict[str, Values]:
    """Return samples as columns: what is a number or an array of one shape becomes an ndarray.

    Raises
    ------
    UnlikeSample
        If a sample has no names, or others than the first, or an array with masked elements: a batch has no mask.
    """
    names = list(samples[0])
    if not names:
        raise UnlikeSample(
            0, "the transform gave a dict without a name; give at least one, such as {'x': ...}"
        )
    for number, sample in enumerate(samples):
        if sample.keys() != samples[0].keys():
            raise UnlikeSample(
                number,
                f"the transform gave it the names {list(sample)}, and {names} to the first sample of the batch; give "
                "all the same",
            )
        for name, value in sample.items():
            _check_mask(name, value, number)
    out: dict[str, Values] = {}
    for name in names:
        values = [sample[name] for sample in samples]
        if all(isinstance(value, (bool, int, float, np.generic)) for value in values):
            out[name] = np.array(values)
        elif all(isinstance(value, np.ndarray) for value in values):
            shapes = {(value.shape, value.dtype) for value in values}
            out[name] = np.stack(values) if len(shapes) == 1 else values
        elif all(isinstance(value, SparseTensor) for value in values):
            alike = len({(value.shape, value.dtype) for value in values}) == 1
            out[name] = np.stack(values) if alike else values
        else:
            out[name] = values
    return out


def _check_mask(name: str, value: Any, number: int) -> None:
    """Raise UnlikeSample for masked elements: NumPy stacks what lies under the mask, and loses the mask."""
    if isinstance(value, np.ma.MaskedArray):
        try:
            check_unmasked(value)
        except InvalidTensorError as error:
            raise UnlikeSample(
                number, f"the transform gave it {name!r}, of which {error}"
            ) from error
