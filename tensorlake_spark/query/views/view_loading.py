"""A view as batches for training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorlake_spark.errors import InvalidOptionError, did_you_mean, listed_columns
from tensorlake_spark.loader.columns.picture_reading import is_picture
from tensorlake_spark.loader.epoch_samples import Selection
from tensorlake_spark.loader.loader import Loader
from tensorlake_spark.loader.loader_options import LoaderOptions, checked_options
from tensorlake_spark.loader.transforms.image_transform import ImageTransform
from tensorlake_spark.loader.weighing import drawing_weights
from tensorlake_spark.query.views.view_samples import ViewSamples, named

if TYPE_CHECKING:
    from tensorlake_spark.query.view import View


def loader_of_view(
    view: View,
    batch_size: int,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    weights: Any = None,
    balance: str | None = None,
    samples: int | None = None,
    replacement: bool = True,
    **options: Any,
) -> Loader:
    """Return a loader of the rows of a view; see `View.loader`.

    Tensors of the view's dataset are read as a loader of the dataset reads them; what the query computes is computed
    for each batch.

    Parameters
    ----------
    view : View
        Whose rows are delivered, in its order where nothing shuffles.
    batch_size, columns, where, weights, balance, samples, replacement, **options
        As `Dataset.loader` takes them; names are those of the view's columns.
    """
    checked = checked_options(batch_size, **options)
    if where is not None:
        view = _narrowed(view, where)
    if not len(view):
        raise InvalidOptionError(f"{named(view)} has no rows; a loader needs one")
    names = _checked(view, columns)
    drawn = drawing_weights(
        weights, balance, samples, replacement, lambda name: view[name], len(view)
    )
    stored = view.dataset_columns(names) if view.sids is not None else {}
    images, checked = image_transforms(checked, names, stored, view)
    if checked.cache is not None and not stored:
        raise InvalidOptionError(
            "cache= keeps what is read of a dataset, and the query computes all columns of this view; materialize the "
            "view and load that, or leave cache out"
        )
    source = ViewSamples(view, names, stored, images, checked.memory, checked.cache)
    return Loader(source, Selection(None, drawn, samples, replacement), checked)


def _narrowed(view: View, where: Any) -> View:
    """Return the rows of a view for which a condition is true, in their order."""
    if not isinstance(where, str):
        raise InvalidOptionError(
            f"where={where!r:.80} is {type(where).__name__}; it is a text of SQL, such as \"label = 'cat'\""
        )
    # On a line of its own, so that a comment in it ends before the bracket does.
    found = view.query(f"SELECT * FROM dataset WHERE ({where}\n)")  # nosec B608 # the caller's
    if not len(found):
        raise InvalidOptionError(
            f"no row of {named(view)} fits where={where!r:.200}; a loader needs at least one"
        )
    return found


def _checked(view: View, columns: Any) -> list[str]:
    if columns is None:
        return view.names
    names = listed_columns(columns)
    if not names:
        raise InvalidOptionError("columns=[] is empty; a loader delivers at least one column")
    view.dataset_columns(names)  # raises for a name that is not there
    return names


def image_transforms(
    options: LoaderOptions, names: Sequence[str], stored: Mapping[str, str], view: View
) -> tuple[dict[str, ImageTransform], LoaderOptions]:
    """Return transforms of images of the dataset by their names there, and options with what is left."""
    given = options.transform
    if not isinstance(given, Mapping):
        return {}, options
    for name in given:
        if name not in names:
            raise InvalidOptionError(
                f"transform names column {name!r:.80}, which is not delivered{did_you_mean(str(name), names)}"
            )
    parts = None if view.dataset is None else view.dataset.parts
    images = {
        stored[name]: one
        for name, one in given.items()
        if isinstance(one, ImageTransform)
        and name in stored
        and parts is not None
        and is_picture(parts, stored[name])
    }
    rest = {name: one for name, one in given.items() if stored.get(name) not in images}
    for name, one in rest.items():
        if not callable(one):
            raise InvalidOptionError(
                f"transform={one!r:.80} is for stored images that are files, and column {name!r} of the view is "
                "computed, or something else; give a function of its values"
            )
    return images, replace(options, transform=rest or None)
