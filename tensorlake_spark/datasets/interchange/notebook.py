"""How a dataset shows itself in a notebook: its first samples, images as thumbnails."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import Tiled, Type
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.errors import TensorLakeError

SHOWN = 5
"""Samples that are shown."""

_SIDE = 96  # pixels of a thumbnail
_TEXT = 80  # characters of a value


def samples_table(
    title: str, schema: Mapping[str, Type], samples: Sequence[Mapping[str, Any]]
) -> str:
    """Return samples as a table of HTML; everything that comes from data is escaped.

    The value of a sample that cannot be shown is an error, see `shown_value`.

    Examples
    --------
    >>> from tensorlake_spark.datasets.types import Text
    >>> "&lt;b&gt;" in samples_table("x", {"t": Text()}, [{"t": "<b>"}])
    True
    """
    head = "".join(
        f"<th>{html.escape(name)}<br><small>{html.escape(str(kind))}</small></th>"
        for name, kind in schema.items()
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td>{_cell(one[name], kind)}</td>" for name, kind in schema.items())
        + "</tr>"
        for one in samples
    )
    return f"<b>{html.escape(title)}</b><table><tr>{head}</tr>{body}</table>"


def shown_value(kind: Type, one: pa.Array) -> Any:
    """Return the value of one sample, or the error that says why it cannot be decoded: the others are shown anyway.

    Examples
    --------
    >>> shown_value(Image("png"), pa.array([None], Image("png").storage())) is None
    True
    """
    try:
        (value,) = kind.decode(one)
    except TensorLakeError as error:
        return error
    return value


def _cell(value: Any, kind: Type) -> str:
    if value is None:
        return "<i>null</i>"
    if isinstance(value, TensorLakeError):
        return f"<i>{html.escape(str(value))}</i>"
    if isinstance(kind, Image) and isinstance(value, np.ndarray) and value.dtype == np.uint8:
        with suppress(ImportError):  # without Pillow its shape is shown
            return f'<img alt="" src="data:image/png;base64,{_thumbnail(value)}">'
    if isinstance(value, Tiled) or (isinstance(value, np.ndarray) and value.ndim):
        return html.escape(f"{value.dtype} {value.shape}")
    text = str(value)
    return html.escape(text if len(text) <= _TEXT else f"{text[:_TEXT]}...")


def _thumbnail(pixels: np.ndarray[Any, Any]) -> str:
    import PIL.Image

    picture = PIL.Image.fromarray(pixels.squeeze() if pixels.shape[-1] == 1 else pixels)
    picture.thumbnail((_SIDE, _SIDE))
    out = io.BytesIO()
    picture.save(out, "png")
    return base64.b64encode(out.getvalue()).decode()
