"""YOLO: images, and beside each a text file with a line for each object in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from tensorlake_spark.datasets.sources.annotated.yolo_layout import Entry, layout_of, lines_of
from tensorlake_spark.datasets.sources.folder import Folder
from tensorlake_spark.datasets.sources.image_bytes import (
    column_format,
    image_value,
    suffix_format,
)
from tensorlake_spark.datasets.sources.sample_source import (
    Maker,
    Piece,
    Sample,
    SampleSource,
    check_options,
    file_pieces,
    flag_option,
)
from tensorlake_spark.datasets.types import BoundingBox, ClassLabel, Image, Polygon, Text
from tensorlake_spark.datasets.types import Sequence as SequenceOf
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError

_SLACK = 1e-5  # by which a corner may lie outside, as in columns of boxes
_LOOK = 64  # files of labels that tell whether there are polygons


@dataclass(frozen=True)
class Yolo(SampleSource):
    """Images with boxes (centre, width, height, as shares of the image) and classes, or polygons and classes.

    An image without a file of labels, or with an empty one, has no objects. Options: ``split``, ``image_format``,
    ``file_names`` (a column ``file``).
    """

    kind: ClassVar[str] = "yolo"

    classes: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    split: str | None = None
    image_format: str = "jpeg"
    convert: bool = False

    @classmethod
    def found(cls, folder: Folder) -> str:
        layout = layout_of(folder)
        return f"{len(layout.images)} images with labels of {len(layout.classes)} classes"

    @classmethod
    def of(cls, folder: Folder, **options: Any) -> Yolo:
        check_options(cls.kind, options, ("split", "image_format", "file_names"))
        whole = Folder(folder.uri, folder.options)
        layout = layout_of(folder)
        splits, split = (
            list(dict.fromkeys(one for one, _, _ in layout.images)),
            options.get("split"),
        )
        if split is not None and split not in splits:
            raise InvalidOptionError(
                f"{folder.uri} has no split {split!r}; it has {', '.join(splits)}"
            )
        used = tuple(image for image in layout.images if split in (None, image[0]))
        wanted = options.get("image_format")
        formats = (suffix_format(image) or "" for _, image, _ in used)
        image_format = column_format(formats, wanted, folder.uri)
        schema: dict[str, Any] = {
            "image": Image(image_format),
            "boxes": BoundingBox("cxcywh", normalized=True),
            "label": SequenceOf(ClassLabel(layout.classes)),
        }
        labels = [label for _, _, label in used if label is not None]
        if any(_has_polygons(whole, name) for name in labels[:_LOOK]):
            schema["polygons"] = Polygon()
        if split is None and len(splits) > 1:
            schema["split"] = ClassLabel(tuple(splits))
        if flag_option("file_names", options.get("file_names")):
            schema["file"] = Text()
        source = cls(
            whole, schema, layout.classes, folder.named, split, image_format, wanted is not None
        )
        source.__dict__["entries"] = used
        return source

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The images of the split."""
        layout = layout_of(Folder(self.folder.uri, self.folder.options, self.named))
        return tuple(image for image in layout.images if self.split in (None, image[0]))

    @cached_property
    def image_kind(self) -> Image:
        """The type of the images."""
        return Image(self.image_format)

    def pieces(self) -> list[Piece]:
        groups = [(one, tuple(name for name in one[1:] if name)) for one in self.entries]
        return file_pieces(self.folder, groups, self.split or "images")

    def makers(self, piece: Piece) -> Iterator[Maker]:
        for split, image, label in piece.items:
            yield partial(self._sample, split, image, label)

    def _sample(self, split: str, image: str, label: str | None) -> Sample:
        data = self.folder.read(image)
        where = self.folder.at(image)
        sample: Sample = {"image": image_value(data, self.image_kind, where, self.convert)}
        numbers: list[int] = []
        shapes: list[np.ndarray] = []
        if label is not None:
            for number, line in enumerate(lines_of(self.folder, label), 1):
                if line.strip():
                    at = f"{self.folder.at(label)}, line {number}"
                    which, shape = parse_line(line, len(self.classes), at)
                    numbers.append(which)
                    shapes.append(shape)
                    if shape.ndim == 2 and "polygons" not in self.schema:
                        raise InvalidSampleError(
                            f"{at}: a polygon, and the first files have boxes alone"
                        )
        sample["label"] = numbers
        boxes = [box_around(shape) if shape.ndim == 2 else shape for shape in shapes]
        sample["boxes"] = np.asarray(boxes, np.float32).reshape(-1, 4)
        if "polygons" in self.schema:
            sample["polygons"] = [
                (shape if shape.ndim == 2 else corners_of(shape)).astype(np.float32)
                for shape in shapes
            ]
        if "split" in self.schema:
            sample["split"] = split
        if "file" in self.schema:
            sample["file"] = image
        return sample


def parse_line(line: str, classes: int, where: str) -> tuple[int, np.ndarray]:
    """Return the class of a line, and a box of shape (4,) or a polygon of shape (points, 2).

    Raises
    ------
    InvalidSampleError
        If it is neither, or a number is out of its range.

    Examples
    --------
    >>> parse_line("1 0.5 0.5 0.25 1", 2, "x")
    (1, array([0.5 , 0.5 , 0.25, 1.  ]))
    """
    words = line.split()
    try:
        number, values = float(words[0]), np.array([float(word) for word in words[1:]])
    except ValueError as error:
        raise InvalidSampleError(
            f"{where}: {line!r:.100} has words that are not numbers"
        ) from error
    if len(values) != 4 and (len(values) < 6 or len(values) % 2):
        raise InvalidSampleError(
            f"{where}: {len(values)} numbers after the class; a box has 4, a polygon x and y of three points at least"
        )
    if not (number.is_integer() and 0 <= number < classes):
        raise InvalidSampleError(f"{where}: class {words[0]:.40}, and there are {classes} classes")
    if not all(math.isfinite(one) and 0 <= one <= 1 for one in values):
        raise InvalidSampleError(
            f"{where}: {line!r:.100} has coordinates outside of 0 to 1; they are shares of width and height"
        )
    if len(values) != 4:
        return int(number), values.reshape(-1, 2)
    corners = np.concatenate([values[:2] - values[2:] / 2, values[:2] + values[2:] / 2])
    if (corners < -_SLACK).any() or (corners > 1 + _SLACK).any():
        raise InvalidSampleError(
            f"{where}: {line!r:.100} is a box that leaves the image, with corners at {corners.round(4).tolist()}; clip "
            "it to 0 ... 1"
        )
    return int(number), values


def box_around(points: np.ndarray) -> np.ndarray:
    """Return the box around a polygon, as centre, width and height.

    Examples
    --------
    >>> box_around(np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]))
    array([0.5 , 0.25, 1.  , 0.5 ])
    """
    low, high = points.min(axis=0), points.max(axis=0)
    return np.concatenate([(low + high) / 2, high - low])


def corners_of(box: np.ndarray) -> np.ndarray:
    """Return a box as a polygon.

    Examples
    --------
    >>> corners_of(np.array([0.5, 0.5, 1.0, 1.0])).tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """
    half = box[2:] / 2
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    return box[:2] + signs * half


def _has_polygons(folder: Folder, name: str) -> bool:
    return any(len(line.split()) > 5 for line in lines_of(folder, name))
