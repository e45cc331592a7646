"""Loaders of what people have: a dataset, and what is chosen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.datasets.samples.sample_reading import read_column, values_of
from tensorlake_spark.datasets.types.class_label import ClassLabel
from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.loader.columns.picture_reading import is_picture
from tensorlake_spark.loader.epoch_samples import Selection
from tensorlake_spark.loader.loader import Loader
from tensorlake_spark.loader.loader_options import LoaderOptions, checked_options
from tensorlake_spark.loader.sources.dataset_samples import DatasetSamples
from tensorlake_spark.loader.transforms.image_transform import ImageTransform
from tensorlake_spark.loader.weighing import drawing_weights

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
    if not len(dataset):  # it may have no columns either
        raise InvalidOptionError(
            f"the dataset at {dataset.uri} has no samples; a loader needs at least one: extend it first"
        )
    if not names:
        raise InvalidOptionError("columns=[] is empty; a loader delivers at least one column")
    if where is not None:
        found = dataset.positions_where(where)
        positions = found if positions is None else positions[np.isin(positions, found)]
        if not len(positions):
            raise InvalidOptionError(
                f"no sample of the dataset at {dataset.uri} fits where={where!r:.200}; a loader needs at least one"
            )
    if balance is None and _is_label(dataset, weights):
        raise InvalidOptionError(
            f"weights={weights!r} is a column of labels, whose numbers do not say how likely a sample is; "
            f"balance={weights!r} draws each label as often as the others"
        )
    drawn = drawing_weights(
        weights,
        balance,
        samples,
        replacement,
        lambda name: _column(dataset, name, positions),
        len(dataset),
        positions,
    )
    selection = Selection(positions, drawn, samples, replacement)
    images, checked = _image_transforms(checked, names, dataset)
    source = DatasetSamples(dataset.parts, names, images, checked.memory, checked.cache)
    return Loader(source, selection, checked)


def _image_transforms(
    options: LoaderOptions, names: Sequence[str], dataset: Dataset
) -> tuple[dict[str, ImageTransform], LoaderOptions]:
    """Return transforms that say what is decoded of images, and options with what is left for their values.

    Raises
    ------
    InvalidOptionError
        If a transform is for a column that is not delivered, or one of images for another kind of column.
    """
    given = options.transform
    if not isinstance(given, Mapping):
        return {}, options
    for name, one in given.items():
        if name not in names:
            raise InvalidOptionError(
                f"transform names column {name!r:.80}, which is not delivered{did_you_mean(str(name), names)}; columns "
                f"are {', '.join(names)}"
            )
        if not (callable(one) or isinstance(one, ImageTransform)):
            raise InvalidOptionError(f"transform={one!r:.80} of column {name!r} is not a function")
    images = {
        name: one
        for name, one in given.items()
        if isinstance(one, ImageTransform) and is_picture(dataset.parts, name)
    }
    for name, one in given.items():
        if isinstance(one, ImageTransform) and name not in images:
            raise InvalidOptionError(
                f"transform={one!r:.80} is for images, and column {name!r} is {dataset.schema[name]}; give "
                "a function of its values"
            )
    rest = {name: one for name, one in given.items() if name not in images}
    return images, replace(options, transform=rest or None)


def _is_label(dataset: Dataset, weights: Any) -> bool:
    return isinstance(weights, str) and isinstance(dataset.type_of(weights), ClassLabel)


def _column(dataset: Dataset, name: str, positions: Array | None) -> Any:
    dataset.type_of(name)
    chosen = np.arange(len(dataset)) if positions is None else positions
    parts = dataset.parts
    return values_of(parts, name, read_column(parts, name, chosen), chosen)
