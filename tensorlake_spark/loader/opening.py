"""Loaders of what people have: a dataset, and what is chosen of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.datasets.samples.sample_reading import read_column, values_of
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.loader import Loader
from tensorlake_spark.loader.loader_options import checked_options, whole
from tensorlake_spark.loader.order.sampling import balanced, checked_weights
from tensorlake_spark.loader.selection import Selection
from tensorlake_spark.loader.sources.dataset_samples import DatasetSamples

if TYPE_CHECKING:
    from tensorlake_spark.datasets.dataset import Dataset

Array = np.ndarray[Any, Any]


def loader_of_dataset(
    dataset: Dataset,
    batch_size: int,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    positions: Array | None = None,
    weights: Any = None,
    balance: str | None = None,
    samples: int | None = None,
    replacement: bool = True,
    **options: Any,
) -> Loader:
    """Return a loader of a dataset; see `Dataset.loader`.

    Parameters
    ----------
    dataset : Dataset
        The version that it shows is read.
    batch_size, columns, where, weights, balance, samples, replacement, **options
        As `Dataset.loader` takes them.
    positions : int64 ndarray, optional
        The samples to choose from, in their order without a shuffle.
    """
    checked = checked_options(batch_size, **options)
    names = dataset.column_names(columns)
    if not names:
        raise InvalidOptionError("columns=[] names none; a loader delivers at least one column")
    if not len(dataset):
        raise InvalidOptionError(
            f"the dataset at {dataset.uri} has no samples; a loader needs at least one: extend it first"
        )
    if where is not None:
        found = dataset.positions_where(where)
        positions = found if positions is None else positions[np.isin(positions, found)]
        if not len(positions):
            raise InvalidOptionError(
                f"no sample of the dataset at {dataset.uri} fits where={where!r:.200}; a loader needs at least one"
            )
    drawn = _weights(dataset, positions, weights, balance)
    if samples is not None:
        whole("samples", samples, 1)
        if drawn is None:
            raise InvalidOptionError(
                f"samples={samples} is how many are drawn by weights; give weights or balance too"
            )
    selection = Selection(positions, drawn, samples, replacement)
    return Loader(DatasetSamples(dataset, names), selection, checked)


def _weights(
    dataset: Dataset, positions: Array | None, weights: Any, balance: str | None
) -> Array | None:
    if weights is not None and balance is not None:
        raise InvalidOptionError("weights and balance both say how likely a sample is; give one")
    if balance is not None:
        return balanced(_column(dataset, balance, positions))
    if weights is None:
        return None
    if isinstance(weights, str):
        weights = _column(dataset, weights, positions)
    count = len(dataset) if positions is None else len(positions)
    if np.shape(weights) == (len(dataset),) and positions is not None and count != len(dataset):
        weights = np.asarray(weights)[positions]
    return checked_weights(weights, count)


def _column(dataset: Dataset, name: str, positions: Array | None) -> Array:
    dataset.type_of(name)
    chosen = np.arange(len(dataset)) if positions is None else positions
    parts = dataset.parts
    array = read_column(parts, name, chosen)
    found = values_of(parts, name, array, chosen)
    if not isinstance(found, np.ndarray) or found.ndim != 1:
        raise InvalidOptionError(
            f"column {name!r} is not one number a sample, without nulls; choose another, or give an array"
        )
    return found
