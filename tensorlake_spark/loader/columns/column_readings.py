"""Which way of reading is for which column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tensorlake_spark.datasets.types.schema import SID
from tensorlake_spark.datasets.types.tensors import Tensor
from tensorlake_spark.loader.columns.column_reading import Reading
from tensorlake_spark.loader.columns.picture_reading import PictureReading, is_picture
from tensorlake_spark.loader.columns.plain_reading import PlainReading
from tensorlake_spark.loader.columns.scalar_reading import ScalarReading, whole_dtype
from tensorlake_spark.loader.columns.stack_reading import StackReading
from tensorlake_spark.loader.columns.stored_column import RowsOf
from tensorlake_spark.loader.transforms.image_transform import ImageTransform

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts


def readings_of(
    parts: StoredParts,
    names: Sequence[str],
    rows: RowsOf,
    transforms: Mapping[str, ImageTransform],
) -> list[Reading]:
    """Return how columns are read.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    names : sequence of str
        Columns, and ``sid``.
    rows : callable
        Returns the `ScatteredRows` of a table.
    transforms : mapping of str to ImageTransform
        Of columns of images.
    """
    out: list[Reading] = []
    plain: list[str] = []
    for name in names:
        kind = None if name == SID else parts.schema[name]
        if is_picture(parts, name):
            out.append(PictureReading(parts, name, rows, transforms.get(name)))
        elif type(kind) is Tensor and kind.stacks:
            out.append(StackReading(parts, name, rows))
        elif whole_dtype(kind) is not None:
            out.append(ScalarReading(parts, name, rows))
        else:
            plain.append(name)
    return [*out, PlainReading(parts, tuple(plain))] if plain else out
