"""Functions of bounding boxes: arrays of shape (boxes, 4).

A form says what the four numbers are, as `tensorlake_spark.types.BoundingBox` has it: ``xyxy`` two corners, ``xywh``
the corner and the size, ``cxcywh`` the centre and the size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sqlglot import exp

from tensorlake_spark.query.functions.definitions import rowwise
from tensorlake_spark.query.functions.row_values import Array, Constant
from tensorlake_spark.query.functions.summaries import reals
from tensorlake_spark.query.functions.tree_names import function_name, name_of

FORMS = ("xyxy", "xywh", "cxcywh")


def corners(boxes: Any, form: str = "xyxy") -> Array:
    """Return boxes as two corners: x and y of the first, x and y of the second.

    Parameters
    ----------
    boxes : ndarray, shape (..., boxes, 4)
        One box may be given as its four numbers. An empty array of any shape has no boxes.
    form : str

    Raises
    ------
    ValueError
        If it has no boxes of four numbers, or the form is unknown.

    Examples
    --------
    >>> corners([[10, 20, 5, 5]], "xywh")
    array([[10., 20., 15., 25.]])
    """
    if form not in FORMS:
        raise ValueError(f"{form!r:.40} is not a form of boxes; there are {', '.join(FORMS)}")
    array = reals(boxes)
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if array.ndim == 1:
        array = array.reshape(-1, 4) if array.size in (0, 4) else array
    if array.ndim < 2 or array.shape[-1] != 4:
        if array.size == 0 and array.ndim < 3:
            return np.zeros((0, 4))
        raise ValueError(f"boxes have the shape (boxes, 4), not {array.shape}")
    if form == "xyxy":
        return array
    first, size = array[..., :2], array[..., 2:]
    if form == "cxcywh":
        first = first - size / 2
    return np.concatenate([first, first + size], axis=-1)


def overlaps(a: Array, b: Array) -> Array:
    """Return the intersection over the union of each box of `a` with each of `b`.

    Parameters
    ----------
    a, b : ndarray, shapes (..., n, 4) and (..., m, 4)
        Corners.

    Returns
    -------
    ndarray, shape (..., n, m)
        0 where both boxes have no area.

    Examples
    --------
    >>> overlaps(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2]])).round(3)
    array([[0.333]])
    """
    a, b = a[..., :, None, :].astype(np.float64), b[..., None, :, :].astype(np.float64)
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    np.maximum(sides, 0, out=sides)
    common = sides[..., 0] * sides[..., 1]
    union = _areas(a) + _areas(b) - common
    with np.errstate(all="ignore"):
        return np.asarray(np.where(union == 0, 0.0, common / union))


def _areas(boxes: Array) -> Array:
    return np.asarray(
        (boxes[..., 2] - boxes[..., 0]).clip(0) * (boxes[..., 3] - boxes[..., 1]).clip(0)
    )


def iou_matrix(a: Any, b: Any, form: str = "xyxy", form_of_b: str | None = None) -> Array:
    """Return the intersection over the union of each box of `a` with each of `b`: shape (boxes of a, boxes of b).

    Examples
    --------
    >>> iou_matrix([[0, 0, 1, 1]], [[0, 0, 1, 1], [5, 5, 6, 6]])
    array([[1., 0.]])
    """
    return overlaps(corners(a, form), corners(b, form_of_b or form))


def iou(a: Any, b: Any, form: str = "xyxy", form_of_b: str | None = None) -> Any:
    """Return the mean over the boxes of `a` of the best match in `b`.

    It is NaN if `a` has no boxes, and 0 if only `b` has none.

    Examples
    --------
    >>> float(iou([[0, 0, 1, 1], [8, 8, 9, 9]], [[0, 0, 1, 1]]))
    0.5
    """
    return _best(overlaps(corners(a, form), corners(b, form_of_b or form)))


def _best(matrix: Array) -> Any:
    if matrix.shape[-2] == 0:
        return np.full(matrix.shape[:-2], np.nan)[()]
    return np.max(matrix, axis=-1, initial=0.0).mean(axis=-1)


def normalize(boxes: Any, window: Any, form: str = "xyxy") -> Array:
    """Return boxes relative to a window: its corner is 0, 0, and its size is 1.

    Parameters
    ----------
    boxes : ndarray, shape (boxes, 4)
    window : sequence of float
        x, y, width and height.
    form : str
        Of the boxes; the result has the same.

    Raises
    ------
    ValueError
        If the window is not four numbers.

    Examples
    --------
    >>> normalize([[200, 100, 300, 500]], [100, 100, 400, 400])
    array([[0.25, 0.  , 0.5 , 1.  ]])
    """
    corners(boxes, form)  # the checks
    array = reals(boxes)
    frame = reals(window)
    if frame.shape[-1:] != (4,):
        raise ValueError(f"a window is x, y, width and height, not an array of shape {frame.shape}")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if array.size == 0:
        return array.reshape(-1, 4) if array.ndim < 2 or array.shape[-1] != 4 else array
    one = array.ndim == 1
    frame = frame.astype(array.dtype)
    start, size = np.concatenate([frame[..., :2]] * 2, -1), np.concatenate([frame[..., 2:]] * 2, -1)
    if form != "xyxy":
        start[..., 2:] = 0
    if frame.ndim > 1:
        start, size = start[..., None, :], size[..., None, :]
    with np.errstate(all="ignore"):
        return np.asarray((array - start) / size) if not one or frame.ndim == 1 else array


def with_forms(node: Any, forms: Mapping[str, str]) -> Any:
    """Return a copy of an expression in which the functions of boxes know the forms that columns declare.

    Parameters
    ----------
    node : sqlglot expression
    forms : mapping from str to str
        The form of each column of boxes, by `name_of`. A call that says a form itself keeps it. What is no such
        column, a list or a parameter, has the form of the other argument.

    Examples
    --------
    >>> from tensorlake_spark.query.language.parsing import parse
    >>> node = parse("SELECT iou(a, b) FROM t").selects[0]
    >>> with_forms(node, {"a": "xywh", "b": "cxcywh"}).sql()
    "IOU(a, b, 'xywh', 'cxcywh')"
    """
    made = node.copy()
    for call in list(made.find_all(exp.Anonymous)):
        name, given = function_name(call), call.expressions
        if name not in ("iou", "iou_matrix", "normalize") or len(given) != 2:
            continue
        first, second = (_form_of(one, forms) for one in given)
        if name == "normalize":
            found = [first]
        else:
            found = list(dict.fromkeys([first or second, second or first]))
        for form in found:
            if form is not None:
                call.append("expressions", exp.Literal.string(form))
    return made


def _form_of(node: Any, forms: Mapping[str, str]) -> str | None:
    while isinstance(node, (exp.Bracket, exp.Paren)):
        node = node.this
    return forms.get(name_of(node)) if isinstance(node, exp.Column) else None


def _stack_of(values: Any) -> Any:
    """Return boxes with a first axis for the rows; those that are the same for all rows get one of length 1."""
    if isinstance(values, Constant):
        return np.asarray(values.value)[None]
    return values


def _forms(form: Any, other: Any) -> tuple[str, str] | None:
    if not isinstance(form, Constant) or not isinstance(other, Constant):
        return None
    return form.value, other.value or form.value


def _matrices(a: Any, b: Any, form: Any = Constant("xyxy"), other: Any = Constant(None)) -> Any:
    forms, a, b = _forms(form, other), _stack_of(a), _stack_of(b)
    if forms is None or a.ndim != 3 or b.ndim != 3 or a.shape[-1] != 4 or b.shape[-1] != 4:
        return None
    return overlaps(corners(a, forms[0]), corners(b, forms[1]))


def _ious(a: Any, b: Any, form: Any = Constant("xyxy"), other: Any = Constant(None)) -> Any:
    found = _matrices(a, b, form, other)
    return None if found is None else _best(found)


def _normalized(boxes: Any, window: Any, form: Any = Constant("xyxy")) -> Any:
    if isinstance(boxes, Constant) or boxes.ndim != 3 or not isinstance(form, Constant):
        return None
    if boxes.shape[-1] != 4 or (isinstance(window, Constant) and np.ndim(window.value) != 1):
        return None
    frame = window.value if isinstance(window, Constant) else window
    return normalize(boxes, frame, form.value)


rowwise("iou", iou, "number", (2, 4), (), _ious, about="the mean over boxes of the best match")
rowwise("iou_matrix", iou_matrix, "array", (2, 4), (), _matrices, about="the overlap of each pair")
rowwise(
    "normalize", normalize, "array", (2, 3), (), _normalized, about="boxes relative to a window"
)
