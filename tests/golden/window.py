"""What the golden table of layout window holds, made by arithmetic alone: no table, no random numbers of a library."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

numbers = runpy.run_path(str(Path(__file__).with_name("sparse.py")))["numbers"]


class Golden(NamedTuple):
    """A tensor: what each write adds along an axis, how it is written, and what comes out of it."""

    parts: list[Array]
    axis: int
    options: dict[str, Any]

    @property
    def whole(self) -> Array:
        """Return the array."""
        return np.concatenate(self.parts, axis=self.axis)


def slid(seed: int, users: int, rows: int, width: int, dtype: str, back: bool = False) -> Array:
    """Return rows of some users that slide by 0 to 3 places, the newest id first, or last with `back`."""
    parts = []
    for user in range(users):
        at = np.cumsum(numbers(seed + 50 * user, rows) % np.uint64(4)).astype(np.int64)
        line = numbers(seed + 50 * user + 25, width + int(at[-1]))
        line = line % np.uint64(min(np.iinfo(dtype).max, 10**12))
        found = line[at[:, None] + np.arange(width)]
        parts.append(found if back else found[:, ::-1])
    return np.ascontiguousarray(np.concatenate(parts)).astype(dtype)


def edited(x: Array) -> Array:
    """Return rows of which some elements are others, in one row or in some that follow each other."""
    x = x.copy()
    for row, column in ((3, 2), (17, 0), (17, 9), (40, 5)):
        x[row, column] = 1
    line = x[20, 6]
    x[20:25][x[20:25] == line] = 2
    return x


def noise(seed: int, rows: int, width: int, dtype: str) -> Array:
    """Return rows that do not slide."""
    return (numbers(seed, rows * width) % np.uint64(np.iinfo(dtype).max)).astype(dtype).reshape(rows, width)  # fmt: skip


def tensors() -> dict[str, Golden]:
    """Return what the table holds: id -> tensor."""
    out = {}
    kinds = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    for k, dtype in enumerate(kinds):
        out[f"dtype/{dtype}"] = Golden([slid(1000 + k, 2, 20, 12, dtype)], 0, {"block_shape": (25, 12)})  # fmt: skip
    x = edited(slid(1, 3, 20, 12, "int64"))
    for codec in ("raw", "zstd", "shuffle+zstd", "delta(-1)+zstd", "delta(-1)+shuffle+zstd", "delta(-2)+zstd", "delta(-2)+shuffle+zstd"):  # fmt: skip
        out[f"codec/{codec}"] = Golden([x], 0, {"codec": codec})
    out["back"] = Golden([edited(slid(2, 2, 40, 16, "int32", back=True))], 0, {})
    mixed = [slid(3, 1, 40, 10, "int64"), noise(4, 40, 10, "int64"), np.zeros((20, 10), np.int64)]
    out["mixed"] = Golden([np.concatenate(mixed)], 0, {"block_shape": (40, 10)})
    order = np.argsort(numbers(5, 120))
    out["shuffled"] = Golden([slid(6, 4, 30, 24, "int64")[order]], 0, {})
    out["fill"] = Golden([np.where(np.arange(60)[:, None] < 30, 7, slid(7, 3, 20, 8, "int16"))], 0, {"fill_value": 7, "block_shape": (30, 8), "axes": ("sample", "position"), "attrs": {"unit": "id"}})  # fmt: skip
    out["appended"] = Golden([slid(8, 2, 20, 9, "int64"), slid(9, 1, 15, 9, "int64")], 0, {})
    out["wider"] = Golden([slid(10, 2, 20, 9, "int64"), slid(11, 2, 20, 4, "int64")], 1, {"block_shape": (16, 6)})  # fmt: skip
    out["long"] = Golden([edited(slid(12, 2, 400, 12, "int32"))], 0, {})
    out["empty"] = Golden([np.zeros((0, 5), np.int64)], 0, {})
    return out


def write(lake: Any, name: str, golden: Golden) -> None:
    """Write one tensor, part by part, to a lake or in a transaction."""
    for k, part in enumerate(golden.parts):
        more = {"mode": "append", "axis": golden.axis} if k else {"layout": "window", **golden.options}  # fmt: skip
        lake.write(name, part, **more)
