"""Keys as text: ``30:40, :, ::2, 5``, or by the names of the axes: ``image=30:40, y=5``."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidSliceError, did_you_mean

_NUMBER = re.compile(
    r"[+-]?\d{1,40}"
)  # no tensor is longer, and Python refuses to read 4301 digits
_EXAMPLE = "write it as '30:40, :, ::2, 5', or by axis names as 'image=30:40, y=5'"


def parse_key(text: str, axes: Sequence[str] | None = None) -> tuple[Any, ...]:
    """Return the key that a text stands for.

    Parameters
    ----------
    text : str
        Parts with commas between them: an integer, a slice, ``...``, ``None`` or ``newaxis``, or a list
        such as ``[1, 5, 9]``; or all of them as ``name=part``. Empty text is the whole tensor.
    axes : sequence of str, optional
        Names of the tensor's axes.

    Raises
    ------
    InvalidSliceError
        If a part cannot be read, or an axis is unknown or named twice.

    Examples
    --------
    >>> parse_key("30:40, :, ::2, -5")
    (slice(30, 40, None), slice(None, None, None), slice(None, None, 2), -5)
    >>> parse_key("y=5", axes=("image", "y"))
    (slice(None, None, None), 5)
    """
    if not isinstance(text, str):
        raise InvalidSliceError(
            f"{text!r} is not text; {_EXAMPLE}, or index with it: ref[{text!r}]"
        )
    parts = _split(text)
    named = [p for p in parts if "=" in p]
    if not named:
        return tuple(_parse_part(p, text) for p in parts)
    if len(named) < len(parts):
        raise InvalidSliceError(f"slice {text!r} mixes names and positions; {_EXAMPLE}")
    picks: dict[str, Any] = {}
    for part in parts:
        name, _, pick = (p.strip() for p in part.partition("="))
        if name in picks:
            raise InvalidSliceError(f"slice {text!r} names the axis {name!r} twice; {_EXAMPLE}")
        picks[name] = _parse_part(pick, text)
    return named_key(axes, picks)


def named_key(axes: Sequence[str] | None, picks: dict[str, Any]) -> tuple[Any, ...]:
    """Return the key that picks by axis names, the other axes whole.

    Parameters
    ----------
    axes : sequence of str, or None
        Names of the tensor's axes, in their order.
    picks : dict
        For a name an integer, a slice or an index list. A dict, so that an axis may have any name.

    Raises
    ------
    InvalidSliceError
        If the tensor's axes have no names, or not this one, or a name is given what picks from no axis:
        ``None`` or Ellipsis.

    Examples
    --------
    >>> named_key(("image", "y"), {"y": 5})
    (slice(None, None, None), 5)
    """
    if not picks:
        return ()
    if axes is None:
        raise InvalidSliceError(
            f"the axes of this tensor have no names, so {', '.join(map(repr, picks))} cannot be found; "
            "name them when writing (axes=...), or slice by position"
        )
    for name, pick in picks.items():
        if name not in axes:
            raise InvalidSliceError(
                f"no axis is named {name!r}{did_you_mean(name, axes)}; the axes are {', '.join(axes)}"
            )
        if pick is None or pick is Ellipsis:
            raise InvalidSliceError(
                f"axis {name!r} is given {pick}, which picks from no axis; give an integer, a slice or an "
                "index list"
            )
    return tuple(picks.get(name, slice(None)) for name in axes)


def format_key(key: Any) -> str:
    """Return the text of a basic key; `parse_key` gives the key back.

    An index array becomes a list, and a mask the list of what it picks.

    Raises
    ------
    InvalidSliceError
        If a part has no text, such as an index array of rank 2.

    Examples
    --------
    >>> format_key((slice(30, 40), Ellipsis, None, slice(None, None, -1), 5))
    '30:40, ..., None, ::-1, 5'
    """
    return ", ".join(_format_part(p) for p in (key if isinstance(key, tuple) else (key,)))


def _format_part(part: Any) -> str:
    if part is Ellipsis:
        return "..."
    if part is None:
        return "None"
    try:
        if isinstance(part, slice):
            bounds = (part.start, part.stop, part.step)
            start, stop, step = ("" if v is None else str(operator.index(v)) for v in bounds)
            return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"
        if not isinstance(part, (bool, np.bool_)):
            return _format_index(part)
    except (TypeError, ValueError):  # bounds that are not integers, lists of unequal length
        pass
    raise InvalidSliceError(f"{part!r} has no text; {_EXAMPLE}")


def _format_index(part: Any) -> str:
    if hasattr(part, "__index__") and np.ndim(part) == 0:
        return str(operator.index(part))
    array = np.asarray(part)
    if array.ndim == 1 and array.dtype == bool:
        array = np.flatnonzero(array)
    if array.ndim == 1 and (array.dtype.kind in "iu" or array.size == 0):
        return str(array.tolist())
    raise ValueError(part)


def _split(text: str) -> list[str]:
    """Cut at the commas that stand outside of brackets."""
    parts, depth, current = [], 0, ""
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += letter
    parts.append(current)
    parts = [p.strip() for p in parts]
    if parts == [""]:
        return []
    if parts[-1] == "" and len(parts) > 1:  # the comma that Python allows at the end
        parts.pop()
    return parts


def _parse_part(part: str, text: str) -> Any:
    if part == "...":
        return Ellipsis
    if part in ("None", "newaxis"):
        return None
    if _NUMBER.fullmatch(part):
        return int(part)
    if part.startswith("[") and part.endswith("]"):
        inner = [p.strip() for p in part[1:-1].split(",")]
        if all(_NUMBER.fullmatch(p) for p in inner):
            return [int(p) for p in inner]
        if inner == [""]:
            return []
    bounds = [p.strip() for p in part.split(":")]
    if 2 <= len(bounds) <= 3 and all(p == "" or _NUMBER.fullmatch(p) for p in bounds):
        values = [int(p) if p else None for p in bounds]
        if len(values) == 3 and values[2] == 0:
            raise InvalidSliceError(f"slice {text!r}: the step of {part!r} is zero")
        return slice(*values)
    raise InvalidSliceError(f"slice {text!r} cannot be read at {part!r}; {_EXAMPLE}")
