"""Columns of images and masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import field_of
from tensorlake_spark.datasets.types.media.images import Picture
from tensorlake_spark.datasets.types.media.masks import Mask
from tensorlake_spark.datasets.types.schema import SID
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.loader.columns.plain_reading import PlainReading
from tensorlake_spark.loader.columns.stored_column import RowsOf, StoredColumn, field_numbers
from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.loader.decoding.bad_image import BadImage
from tensorlake_spark.loader.decoding.image_batches import ImageFacts, decode_images
from tensorlake_spark.loader.decoding.image_shaping import shaped
from tensorlake_spark.loader.decoding.region import Region
from tensorlake_spark.loader.transforms.image_transform import (
    ImageTransform,
    applied,
    region_of,
    regions_of,
)
from tensorlake_spark.rows.binary_views import payloads
from tensorlake_spark.tensor.spec import dtype_of

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts

_SIZES = ("height", "width", "channels")


class ReadPictures(NamedTuple):
    """The files of some images, and what is known of them."""

    files: list[Any]
    facts: ImageFacts


class PictureReading:
    """Images and masks: decoded straight into the batch.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    name : str
        The column.
    rows : callable
        Returns the `ScatteredRows` of a table.
    transform : ImageTransform, optional
        What is done to each.
    """

    def __init__(
        self, parts: StoredParts, name: str, rows: RowsOf, transform: ImageTransform | None
    ) -> None:
        kind = parts.schema[name]
        assert isinstance(kind, Picture)  # nosec B101 # for mypy
        self.names: tuple[str, ...] = (name,)
        self._kind, self._transform = kind, transform
        self._dtype = getattr(kind, "dtype", "bool")  # yes and no have none
        self._column = StoredColumn(parts, name, rows)
        self._plain = PlainReading(parts, (name,))
        self.n_random = 0 if transform is None else transform.n_random
        self._size = _only_size(parts, name)
        self._stacks = transform is not None or self._size is not None

    def read(self, positions: Array) -> ReadPictures | pa.Table:
        files = self._column.payloads(positions)
        numbers = self._sizes(positions)
        crcs = self._column.numbers("crc", positions, -1)
        if files is None or crcs is None or any(found is None for found in numbers):
            array = self._column.array(positions)
            files = payloads(field_of(array, "data"), range(len(array)))
            numbers = [field_numbers(array, name) for name in _SIZES]
            crcs = field_numbers(array, "crc", -1)
        heights, widths, channels = (np.asarray(found) for found in numbers)
        facts = ImageFacts(
            self._kind.file_format(), heights, widths, channels, crcs, self._dtype,
            isinstance(self._kind, Mask),
        )  # fmt: skip
        if facts.format == "raw" and any(f is None and h for f, h in zip(files, heights.tolist())):
            return self._plain.read(positions)  # some are tiles, which lie elsewhere
        return ReadPictures(files, facts)

    def _sizes(self, positions: Array) -> list[Array | None]:
        """Return heights, widths and channels; of a null anything."""
        if (
            self._size is not None and self._kind.file_format() != "raw"
        ):  # there a null may have tiles
            return [np.full(len(positions), number) for number in self._size]
        return [self._column.numbers(name, positions) for name in _SIZES]

    def nbytes(self, read: ReadPictures | pa.Table) -> int:
        if not isinstance(read, ReadPictures):
            return self._plain.nbytes(read)
        facts = read.facts
        pixels = facts.heights * facts.widths * np.maximum(1, facts.channels)
        return int(pixels.sum()) * dtype_of(self._dtype).itemsize

    def values(
        self,
        read: ReadPictures | pa.Table,
        positions: Array,
        draws: Array | None,
        buffers: BatchBuffers,
    ) -> dict[str, Values]:
        transform, regions = self._transform, None
        random = np.empty((len(positions), 0)) if draws is None else draws
        if not isinstance(read, ReadPictures):
            found = self._plain.values(read, positions, draws, buffers)[self.names[0]]
            if transform is not None:
                found = _applied(transform, _cut(transform, found, random), random)
            return {self.names[0]: found}
        files, facts = read
        if transform is not None:
            regions = _regions(transform, files, facts, random)
        try:
            found = decode_images(files, facts, regions, self._target(facts, regions, buffers))
        except BadImage as error:
            if len(positions) > 1:  # which one it is turns out when they are read one by one
                raise
            said = f"its image in column {self.names[0]!r} cannot be decoded: {error.reason}"
            raise CorruptDataError(said) from error
        if transform is not None:
            found = _applied(transform, found, random)
        elif isinstance(found, np.ndarray) and not self._stacks:
            found = list(found)
        return {self.names[0]: found}

    def _target(self, facts: ImageFacts, regions: Any, buffers: BatchBuffers) -> Array | None:
        """Return memory for a batch of images of one size, which the first one has; None if they have several."""
        height, width = int(facts.heights[0]), int(facts.widths[0])
        if regions is not None:
            if None in regions:  # an image is not there
                return None
            height, width = regions[0].shape(height, width)
        elif (facts.heights != height).any() or (facts.widths != width).any():
            return None
        channels = int(facts.channels[0])
        shape = (len(facts.heights), height, width, *((channels,) if channels > 1 else ()))
        return buffers.array(shape, dtype_of(facts.dtype))


def is_picture(parts: StoredParts, name: str) -> bool:
    """Whether a column has images or masks."""
    kind = None if name == SID else parts.schema[name]
    return isinstance(kind, Picture)


def _regions(
    transform: ImageTransform, files: list[Any], facts: ImageFacts, random: Array
) -> list[Region | None]:
    """Return what a transform wants of each image, None where there is none."""
    if all(file is not None for file in files):  # a buffer of Arrow cannot be compared with None
        return [*regions_of(transform, facts.heights, facts.widths, random)]
    here = np.array([place for place, file in enumerate(files) if file is not None], np.int64)
    out: list[Region | None] = [None] * len(files)
    if not len(here):
        return out
    found = regions_of(transform, facts.heights[here], facts.widths[here], random[here])
    for place, region in zip(here.tolist(), found, strict=True):
        out[place] = region
    return out


def _cut(transform: ImageTransform, found: Values, random: Array) -> Values:
    """Return what a transform wants of images that are in memory."""
    images: list[Any] = []
    for image, row in zip(found, random, strict=True):
        if image is not None:
            image = np.array(shaped(image, region_of(transform, image, row)))
        images.append(image)
    shapes = {None if image is None else image.shape for image in images}
    return np.stack(images) if len(shapes) == 1 and None not in shapes else images


def _applied(transform: ImageTransform, found: Values, random: Array) -> Values:
    """Return images after what a transform does with their pixels."""
    images: list[Any] = []
    is_same = True
    for image, row in zip(found, random, strict=True):
        made = None if image is None else applied(transform, image, row)
        is_same &= made is image
        images.append(made)
    if is_same:
        return found
    kinds = {None if image is None else (image.shape, image.dtype) for image in images}
    return np.stack(images) if len(kinds) == 1 and None not in kinds else images


def _only_size(parts: StoredParts, name: str) -> list[int] | None:
    """Return the height, width and channels that all images have by the log, None where it says no such thing."""
    table = parts.table_of(name) if parts.is_apart(name) else parts.stored
    if table is None:
        return None
    path = ".".join(parts.path_of(name))
    found = [table.only_value(f"{path}.{field}") for field in _SIZES]
    return None if None in found else found
