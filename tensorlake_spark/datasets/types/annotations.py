"""What is marked in an image: boxes, polygons and keypoints."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import (
    Array,
    Place,
    Type,
    check_names,
    check_one_of,
    is_valid,
    shown,
)
from tensorlake_spark.datasets.types.nested import is_many
from tensorlake_spark.datasets.types.tensors import ArrayType, Shape, check_float, converted
from tensorlake_spark.errors import CorruptDataError, check_flag

FORMS = {
    "xyxy": "x1, y1, x2, y2",
    "xywh": "x, y, width, height",
    "cxcywh": "x and y of the centre, width, height",
}

_SLACK = 1e-5
"""By how much a normalized corner may lie outside: centres and sizes of six digits add up to that."""

_OUT = "its table was changed by others"


class Geometry(ArrayType):
    """What boxes and keypoints share: an array of some numbers for each object of a sample."""

    lenient: ClassVar[bool] = True

    def wrong(self, array: Array) -> tuple[Array, str, str]:
        """Return which rows are wrong, what was expected, and the remedy."""
        raise NotImplementedError

    def sample(self) -> str:
        """Return what a sample is, for messages."""
        raise NotImplementedError

    def _wrong_shape(self, number: int, shape: tuple[int, ...], place: Place) -> Exception:
        wanted = self.fixed()[1]
        remedy = f"a sample is {self.sample()}, also if it has one"
        return place.wrong(number, f"shape {wanted} (None: any length)", f"shape {shape}", remedy)

    def check_all(self, arrays: list[Array], parts: list[Any] | None, place: Place) -> None:
        if not arrays:
            return
        width = arrays[0].shape[-1]
        rows = np.concatenate([a.reshape(-1, width) for a in arrays])
        bad, expected, remedy = self.wrong(rows)
        if not bad.any():
            return
        row = int(np.argmax(bad))
        if parts is None:
            number = row // int(np.prod(arrays[0].shape[1:-1]))
        else:
            sizes = [p.size // width if isinstance(p, np.ndarray) else 0 for p in parts]
            number = int(np.searchsorted(np.cumsum(sizes), row, side="right"))
        raise place.wrong(number, expected, f"{rows[row].tolist()}", remedy)


@dataclass(frozen=True, repr=False)
class BoundingBox(Geometry):
    """Boxes in each sample: an array of shape (boxes, 4).

    A box with corners in the wrong order or a negative size is an error. With `normalized`, so is a box outside of the
    image.

    Parameters
    ----------
    form : str
        ``xyxy``: two corners; ``xywh``: the corner and the size (COCO); ``cxcywh``: the centre and the size (YOLO).
    normalized : bool
        Whether the numbers are parts of the image's size, 0 to 1, and not pixels.
    dtype : str
        Of the array; numbers of others are rounded to it.

    Examples
    --------
    >>> boxes = BoundingBox("xywh")
    >>> boxes.corners(boxes.decode(boxes.encode([[[10, 20, 5, 5]]], "boxes"))[0])
    array([[10., 20., 15., 25.]], dtype=float32)
    """

    form: str = "xyxy"
    normalized: bool = False
    dtype: str = "float32"
    kind: ClassVar[str] = "bounding_box"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self.form, [*FORMS], "form")
        object.__setattr__(self, "normalized", check_flag("normalized", self.normalized))
        object.__setattr__(self, "dtype", check_float(self.dtype))

    def fixed(self) -> tuple[str, Shape | None]:
        return self.dtype, (None, 4)

    def sample(self) -> str:
        return f"a list of boxes of four numbers each ({FORMS[self.form]})"

    def corners(self, boxes: Array) -> Array:
        """Return boxes of this form as two corners: x and y of the first, x and y of the second.

        Parameters
        ----------
        boxes : ndarray, shape (..., 4)
        """
        if self.form == "xyxy":
            return boxes
        first, size = boxes[..., :2], boxes[..., 2:]
        if self.form == "cxcywh":
            first = first - size / 2
        return np.concatenate([first, first + size], axis=-1).astype(boxes.dtype, copy=False)

    def wrong(self, array: Array) -> tuple[Array, str, str]:
        wide = array.astype(np.float64)
        finite = np.isfinite(wide).all(axis=-1)
        if not finite.all():
            return np.asarray(~finite), "finite numbers", "leave the box out"
        last, start = wide[:, 2:], wide[:, :2] if self.form == "xyxy" else 0.0
        bad: Array = np.asarray((last < start).any(axis=-1))
        if bad.any():
            if self.form == "xyxy":
                return (
                    bad,
                    "x1 <= x2 and y1 <= y2",
                    "sort the corners, or declare the form they have",
                )
            return bad, "width and height of at least 0", "declare the form that the boxes have"
        if self.normalized:
            corners = self.corners(wide)
            bad = np.asarray(((corners < -_SLACK) | (corners > 1 + _SLACK)).any(axis=-1))
        return (
            bad,
            "a normalized box inside 0 ... 1",
            "clip it, or divide pixels by the image's size",
        )


@dataclass(frozen=True, repr=False)
class Keypoints(Geometry):
    """Named points of the objects in each sample: an array of shape (objects, points, 3).

    The three numbers are x, y, and a mark as in COCO: 0 for a point that is not labelled, 1 for a hidden point, 2 for a
    visible point. You may also give lists as COCO has them, with all numbers of an object in one row.

    Parameters
    ----------
    names : sequence of str
        Of the points.
    dtype : str
        Of the array; numbers of others are rounded to it.

    Examples
    --------
    >>> points = Keypoints(["nose", "tail"])
    >>> points.decode(points.encode([[[[3, 4, 2], [9, 9, 0]]]], "points"))[0].shape  # one object
    (1, 2, 3)
    """

    names: tuple[str, ...]
    dtype: str = "float32"
    kind: ClassVar[str] = "keypoints"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "names", check_names(self.names))
        object.__setattr__(self, "dtype", check_float(self.dtype))

    def fixed(self) -> tuple[str, Shape | None]:
        return self.dtype, (None, len(self.names), 3)

    def sample(self) -> str:
        return f"a list of objects, each with x, y and 0, 1 or 2 for {len(self.names)} points"

    def _part(self, value: Any, number: int, place: Place) -> Any:
        if isinstance(value, (list, np.ndarray)) and is_many(value) and len(value):
            array = converted(value, self.dtype, number, place, True)
            if array.ndim == 2 and array.shape[1] == 3 * len(self.names):
                value = array.reshape(len(array), len(self.names), 3)
            else:
                value = array
        return super()._part(value, number, place)

    def wrong(self, array: Array) -> tuple[Array, str, str]:
        bad: Array = np.asarray(~np.isfinite(array.astype(np.float64)).all(axis=-1))
        bad |= ~np.isin(array[:, 2].astype(np.float64), (0, 1, 2))
        return bad, "finite x and y, and 0, 1 or 2", "give 2 for points that are visible"


def _remedy(shape: tuple[int, ...]) -> str:
    """Return the remedy for what stands in the place of a polygon."""
    if shape in ((), (2,)):  # a number or a corner: the polygon is not in a list
        return "a sample is a list of polygons, also if it has one"
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 2):
        return "give x and y of each corner; a sample is a list of polygons"
    if len(shape) == 1 and shape[0] % 2:
        return "give x and y of each corner, one after the other"
    return "leave out a polygon of fewer corners, or close what is a line by a third one"


@dataclass(frozen=True, repr=False)
class Polygon(Type):
    """Polygons in each sample: a list of arrays of shape (corners, 2), x and y.

    A polygon has at least three corners. You may also give lists in which x and y alternate, as COCO has them. This is
    how polygons are stored.

    Parameters
    ----------
    normalized : bool
        Whether the numbers are parts of the image's size, 0 to 1, and not pixels.

    Examples
    --------
    >>> column = Polygon().encode([[[0, 0, 4, 0, 4, 3]]], "outline")
    >>> Polygon().decode(column)[0][0].tolist()
    [[0.0, 0.0], [4.0, 0.0], [4.0, 3.0]]
    """

    normalized: bool = False
    kind: ClassVar[str] = "polygon"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "normalized", check_flag("normalized", self.normalized))

    def storage(self) -> pa.DataType:
        return pa.list_(pa.list_(pa.float32()))

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        parts: list[Array] = []
        counts = []
        for number, value in enumerate(values):
            if not (value is None or (is_many(value) and hasattr(value, "__len__"))):
                raise place.wrong_type(number, "a list of polygons", shown(value))
            counts.append(0 if value is None else len(value))
            parts += [self._ring(p, number, place) for p in (() if value is None else value)]
        flat = np.concatenate(parts) if parts else np.empty(0, np.float32)
        marks = np.cumsum([0, *map(len, parts)]).astype(np.int32)
        rings = pa.ListArray.from_arrays(pa.array(marks), pa.array(flat))
        ends = pa.array(np.cumsum([0, *counts]).astype(np.int32))
        missing = pa.array([v is None for v in values], pa.bool_())
        return pa.ListArray.from_arrays(ends, rings, mask=missing)

    def _ring(self, value: Any, number: int, place: Place) -> Array:
        given = array = converted(value, "float32", number, place, True)
        if array.ndim == 2 and array.shape[1] == 2:
            array = array.reshape(-1)
        if array.ndim != 1 or array.size % 2 or array.size < 6:
            raise place.wrong(
                number,
                "polygons of shape (corners, 2) with at least 3 corners",
                f"shape {given.shape}",
                _remedy(given.shape),
            )
        if not np.isfinite(array).all():
            raise place.wrong(number, "finite numbers", "NaN or infinity")
        if self.normalized and ((array < -_SLACK) | (array > 1 + _SLACK)).any():
            raise place.wrong(
                number, "a normalized polygon inside 0 ... 1", f"{array.min()} to {array.max()}",
                "clip it, or divide pixels by the image's size",
            )  # fmt: skip
        return array

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        wide = array.cast(pa.large_list(pa.large_list(pa.float32())))
        if not len(wide):
            return []
        rings = wide.values
        marks = np.frombuffer(rings.buffers()[1] or bytes(8), np.int64)[rings.offset :]
        flat = rings.values.to_numpy(zero_copy_only=False)
        ends = np.frombuffer(wide.buffers()[1], np.int64)[wide.offset :].tolist()
        out: list[Any] = []
        for number, there in enumerate(is_valid(wide).tolist()):
            bounds = marks[ends[number] : ends[number + 1] + 1].tolist()
            if any((b - a) % 2 for a, b in itertools.pairwise(bounds)):
                raise CorruptDataError(
                    f"a sample has a polygon with an odd count of numbers; {_OUT}"
                )
            polygons = [flat[a:b].reshape(-1, 2).copy() for a, b in itertools.pairwise(bounds)]
            out.append(polygons if there else None)
        return out
