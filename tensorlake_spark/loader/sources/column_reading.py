"""How the values of one column become arrays of a batch: pictures, arrays of one shape, and all the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.samples.sample_reading import parts_of, values_of
from tensorlake_spark.datasets.types.base import field_of
from tensorlake_spark.datasets.types.media.images import Image, Picture
from tensorlake_spark.datasets.types.schema import SID
from tensorlake_spark.datasets.types.tensors import ArrayType, Tensor
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.decoding.image_batches import ImageFacts, decode_images
from tensorlake_spark.loader.sources.batch_buffers import BatchBuffers
from tensorlake_spark.loader.sources.sample_source import Array, Values
from tensorlake_spark.loader.transforms.image_transform import ImageTransform, regions_of
from tensorlake_spark.rows.row import payloads
from tensorlake_spark.tensor.spec import dtype_of

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts

_MEDIA_TIMES = 16
"""Sound and other media take up to so many times their bytes when they are decoded."""


class ColumnReading(Protocol):
    """How one column is read.

    Attributes
    ----------
    name : str
        The column.
    leaves : list of tuple of str
        What is read of it: names of structs and fields.
    n_random : int
        Random numbers that a sample takes.
    """

    name: str
    leaves: list[tuple[str, ...]]
    n_random: int

    def nbytes(self, array: pa.Array) -> int:
        """Return the bytes that the values of a stored column will take."""

    def values(
        self,
        array: pa.Array,
        positions: Array,
        back: Array,
        draws: Array | None,
        buffers: BatchBuffers,
    ) -> Values:
        """Return the values of a stored column.

        Parameters
        ----------
        array : pyarrow.Array
            As it is stored, in the order of `positions`.
        positions : int64 ndarray
            Of the samples, sorted.
        back : int64 ndarray
            Value `i` of the result is number ``back[i]`` of `array`.
        draws : float64 ndarray, or None
            Random numbers of each sample of the result.
        buffers : BatchBuffers
            Memory for arrays.
        """


class PictureReading:
    """Images and masks that are files: decoded straight into the batch.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    name : str
        The column.
    transform : ImageTransform, optional
        What is done to each.
    """

    def __init__(self, parts: StoredParts, name: str, transform: ImageTransform | None) -> None:
        kind = parts.schema[name]
        if not isinstance(kind, Picture):
            raise TypeError(f"column {name!r} is {kind}")
        self.name, self._kind, self._transform = name, kind, transform
        fields = ("data", "height", "width", "channels", "crc")
        self.leaves = [(*parts_of(name), field) for field in fields]
        self.n_random = 0 if transform is None else transform.n_random
        self._stacks = transform is not None or _is_uniform(parts, name)

    def nbytes(self, array: pa.Array) -> int:
        pixels = _numbers(array, "height") * _numbers(array, "width")
        channels = np.maximum(1, _numbers(array, "channels"))
        size = np.dtype(getattr(self._kind, "dtype", "uint8")).itemsize
        return int((pixels * channels).sum()) * size

    def values(
        self,
        array: pa.Array,
        positions: Array,
        back: Array,
        draws: Array | None,
        buffers: BatchBuffers,
    ) -> Values:
        heights, widths, channels = (
            _numbers(array, name)[back] for name in ("height", "width", "channels")
        )
        facts = ImageFacts(
            self._kind.file_format(),
            heights,
            widths,
            channels,
            _numbers(array, "crc", -1)[back],
            getattr(self._kind, "dtype", "uint8"),
        )
        files = payloads(field_of(array, "data"), back.tolist())
        transform, regions = self._transform, None
        random = np.empty((len(back), 0)) if draws is None else draws
        if transform is not None:
            regions = regions_of(transform, heights, widths, random)
        out = self._target(facts, regions, buffers)
        found = decode_images(files, facts, regions, out)
        if transform is not None:
            return _applied(transform, found, random)
        if isinstance(found, np.ndarray) and not self._stacks:
            return list(found)
        return found

    def _target(self, facts: ImageFacts, regions: Any, buffers: BatchBuffers) -> Array | None:
        first = (
            (int(facts.heights[0]), int(facts.widths[0]))
            if regions is None
            else regions[0].shape(int(facts.heights[0]), int(facts.widths[0]))
        )
        if regions is None and not (
            (facts.heights == facts.heights[0]).all() and (facts.widths == facts.widths[0]).all()
        ):
            return None
        channels = int(facts.channels[0])
        shape = (len(facts.heights), *first, *((channels,) if channels > 1 else ()))
        return buffers.array(shape, dtype_of(facts.dtype))


class StackReading:
    """Arrays that all have one shape: each copied once, into its place in the batch.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    name : str
        The column.
    """

    def __init__(self, parts: StoredParts, name: str) -> None:
        kind = parts.schema[name]
        if not isinstance(kind, ArrayType):
            raise TypeError(f"column {name!r} is {kind}")
        dtype, shape = kind.fixed()
        self.name, self._parts = name, parts
        self._dtype, self._shape = dtype_of(dtype), tuple(shape or ())
        self.leaves = [(*parts_of(name), field) for field in ("data", "dtype", "shape")]
        self.n_random = 0

    @property
    def _nbytes(self) -> int:
        return int(np.prod(self._shape, dtype=np.int64)) * self._dtype.itemsize  # type: ignore[arg-type]

    def nbytes(self, array: pa.Array) -> int:
        return len(array) * self._nbytes

    def values(
        self,
        array: pa.Array,
        positions: Array,
        back: Array,
        draws: Array | None,
        buffers: BatchBuffers,
    ) -> Values:
        data = field_of(array, "data")
        if data.null_count:  # null, or tiles
            return _again(values_of(self._parts, self.name, array, positions), back)
        out = buffers.array((len(back), *self._shape), self._dtype)  # type: ignore[arg-type]
        rows = out.reshape(len(back), -1).view(np.uint8)
        for row, value in zip(rows, payloads(data, back.tolist()), strict=True):
            if len(value) != rows.shape[1]:
                raise CorruptDataError(
                    f"a sample of column {self.name!r} has {len(value)} bytes, and {self._dtype} of shape {self._shape} "
                    f"has {rows.shape[1]}; its table was changed by others"
                )
            row[:] = np.frombuffer(value, np.uint8)
        return out if self._dtype.isnative else out.astype(self._dtype.newbyteorder("="))


class PlainReading:
    """Values as the dataset itself decodes them.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    name : str
        The column, or ``sid``.
    """

    def __init__(self, parts: StoredParts, name: str) -> None:
        self.name, self._parts = name, parts
        self.leaves = [parts_of(name)]
        self.n_random = 0

    def nbytes(self, array: pa.Array) -> int:
        kind = None if self.name == SID else self._parts.schema[self.name]
        if isinstance(kind, Image):
            pixels = _numbers(array, "height") * _numbers(array, "width")
            channels = np.maximum(1, _numbers(array, "channels"))
            return int((pixels * channels).sum()) * np.dtype(kind.dtype).itemsize
        if isinstance(kind, ArrayType):
            shapes = field_of(array, "shape").to_pylist()
            count = sum(int(np.prod(shape or [0], dtype=object)) for shape in shapes)
            return int(count) * dtype_of(kind.fixed()[0]).itemsize
        return int(array.nbytes) * (1 if pa.types.is_primitive(array.type) else _MEDIA_TIMES)

    def values(
        self,
        array: pa.Array,
        positions: Array,
        back: Array,
        draws: Array | None,
        buffers: BatchBuffers,
    ) -> Values:
        if self.name == SID:
            return np.asarray(array)[back]
        return _again(values_of(self._parts, self.name, array, positions), back)


def reading_of(parts: StoredParts, name: str, transform: Any = None) -> ColumnReading:
    """Return how a column is read.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    name : str
        The column, or ``sid``.
    transform : ImageTransform, optional
        Of pictures.
    """
    if is_picture(parts, name):
        return PictureReading(parts, name, transform)
    kind = None if name == SID else parts.schema[name]
    if type(kind) is Tensor and kind.stacks:
        return StackReading(parts, name)
    return PlainReading(parts, name)


def is_picture(parts: StoredParts, name: str) -> bool:
    """Whether a column has images that are files, of which parts can be decoded."""
    kind = None if name == SID else parts.schema[name]
    return isinstance(kind, Picture) and kind.file_format() != "raw"


def _again(found: Any, back: Array) -> Values:
    """Return values in another order."""
    if isinstance(found, np.ndarray):
        return found[back]
    return [found[place] for place in back.tolist()]


def _applied(transform: ImageTransform, found: Values, random: Array) -> Values:
    """Return images after what a transform does with their pixels."""
    images: list[Any] = []
    is_same = True
    for image, row in zip(found, random, strict=True):
        made = None if image is None else transform.apply(image, row)
        is_same &= made is image
        images.append(made)
    if is_same:
        return found
    shapes = {None if image is None else image.shape for image in images}
    return np.stack(images) if len(shapes) == 1 and None not in shapes else images


def _numbers(array: pa.Array, name: str, null: int = 0) -> Array:
    found = field_of(array, name)
    if found.null_count:
        found = found.fill_null(null)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def _is_uniform(parts: StoredParts, name: str) -> bool:
    """Whether the log says that all images have one size."""
    table = parts.table_of(name) if parts.is_apart(name) else parts.stored
    if table is None:
        return False
    path = ".".join(parts.path_of(name))
    return all(table.only_value(f"{path}.{field}") for field in ("height", "width", "channels"))
