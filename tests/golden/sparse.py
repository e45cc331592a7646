"""What the sparse golden tables hold, made by arithmetic alone: no table, no random numbers of a library."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
LAYOUTS = ("bsgs", "coo", "csr", "csc", "csf")


class Part(NamedTuple):
    """What one write adds: elements in an array of a shape, at `axis` of an append."""

    coords: Array
    values: Array
    shape: tuple[int, ...]
    axis: int | None = 0


class Golden(NamedTuple):
    """A tensor: what is written, how, and what comes out of it, in C order."""

    parts: list[Part]
    options: dict[str, Any]
    shape: tuple[int, ...]
    coords: Array
    values: Array

    @property
    def stored(self) -> int:
        """Elements in rows, duplicates too."""
        return sum(len(part.values) for part in self.parts)

    def todense(self) -> Array:
        """Return the array."""
        out = np.zeros(self.shape, self.values.dtype)
        out[tuple(self.coords)] = self.values if self.shape else self.values[0]
        return out


def numbers(seed: int, count: int) -> Array:
    """Return uint64 numbers that look random (splitmix64)."""
    z = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(1000 * seed)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def places(shape: tuple[int, ...], count: int, seed: int) -> Array:
    """Return coordinates of at most `count` elements, in C order, each once."""
    drawn = [numbers(seed + 7 * k, 2 * count) % np.uint64(n) for k, n in enumerate(shape)]
    points = sorted(list(dict.fromkeys(zip(*(axis.tolist() for axis in drawn))))[:count])
    return np.array(points, np.int64).reshape(-1, len(shape)).T


def bits(seed: int, count: int, dtype: Any) -> Array:
    """Return elements of any bits."""
    dtype = np.dtype(dtype)
    words = numbers(seed, -(-count * dtype.itemsize // 8)).astype("<u8")
    return words.view(np.uint8)[: count * dtype.itemsize].copy().view(dtype)


def small(seed: int, count: int, low: int, high: int) -> Array:
    """Return integers from `low` up to, not including, `high`."""
    return (numbers(seed, count) % np.uint64(high - low)).astype(np.int64) + low


def united(parts: list[Part], rule: str) -> tuple[tuple[int, ...], Array, Array]:
    """Return shape, coordinates and values after all writes, element by element."""
    shape = parts[0].shape
    found: dict[tuple[int, ...], Array] = {}
    for at, part in enumerate(parts):
        offset = [0] * len(shape)
        if at and part.axis is not None:
            offset[part.axis] = shape[part.axis]
        shape = tuple(max(a, b + o) for a, b, o in zip(shape, part.shape, offset))
        for k, point in enumerate(part.coords.T.tolist()):
            place = tuple(x + o for x, o in zip(point, offset))
            value = part.values[k : k + 1]
            if place in found:
                assert rule in ("sum", "last")
                value = found[place] + value if rule == "sum" else value
            found[place] = value
    order = sorted(found)
    coords = np.array(order, np.int64).reshape(len(order), len(shape)).T
    values = np.concatenate([found[p] for p in order] or [parts[0].values])
    return shape, np.ascontiguousarray(coords), values


def one(shape: tuple[int, ...], count: int, seed: int, values: Any) -> Part:
    """Return a part with elements at scattered places; `values` makes so many of them."""
    coords = places(shape, count, seed) if shape else np.zeros((0, count), np.int64)
    return Part(coords, values(coords.shape[1]), shape)


def _noise(count: int) -> Array:
    out = bits(3, count, np.float32)
    out[:6] = np.array([0, 1 << 31, 0x7FC00001, 0xFFA00003, 0x7F800000, 0xFF800000], "u4").view(
        "f4"
    )
    return out


def _times(count: int) -> Array:
    out = small(9, count, 0, 10**9) * 1_000_003
    out[::6] = np.iinfo(np.int64).min  # not a time
    return out.view("datetime64[ns]")


def _halves(count: int) -> Array:
    out = (np.arange(count) - 30) / 4
    out[:3] = np.array([-0.0, np.inf, 0])
    out[3:5] = np.array([0x7FF8000000000000, 0xFFF9000000000000], np.uint64).view(np.float64)
    return out


def _some_zeros(values: Array, step: int) -> Array:
    values[::step] = 0
    return values


def _overlapping(dtype: Any, axis: None = None) -> list[Part]:
    """Return three parts that share elements, the last of a greater shape."""
    dtype = np.dtype(dtype)
    out = []
    for k, shape in enumerate(((6, 7), (6, 7), (9, 5))):
        coords = places(shape, 18, 40 + k)
        values = small(50 + k, coords.shape[1], -2, 90)
        values = values % 3 > 0 if dtype.kind == "b" else values.astype(dtype)
        out.append(Part(coords, values, shape, axis))
    return out


def _appended() -> list[Part]:
    """Return four parts, each after the one before on some axis."""
    out = []
    for k, (shape, axis) in enumerate(
        [((5, 8, 9), 0), ((3, 8, 9), 0), ((8, 5, 9), 1), ((8, 13, 2), 2)]
    ):
        coords = places(shape, 40, 60 + k)
        values = _some_zeros(small(64 + k, coords.shape[1], -9, 9), 9)
        out.append(Part(coords, values.astype(np.int16), shape, axis))
    return out


def _thin() -> Part:
    """Return a few lines of a long matrix."""
    lines = places((100_000,), 20, 21)[0]
    coords = np.array([np.repeat(lines, 3), np.tile([3, 40, 299], 20)])
    return Part(coords, small(21, 60, 1, 5).astype(np.float32), (100_000, 300))


def _blocks() -> Part:
    """Return blocks of 8 x 8 that are full, half full, full with a zero, nearly empty."""
    x = np.arange(1, 401, dtype=np.float32).reshape(20, 20) % 90 + 1
    kept = np.zeros((20, 20), bool)
    kept[:8, :8] = kept[:8, 16:] = kept[8:16, :8] = True
    kept[:8, 8:16] = x[:8, 8:16] % 2 == 0
    kept[17, 3] = kept[19, 19] = True
    x[9, 2] = 0
    coords = np.argwhere(kept).T.astype(np.int64)
    return Part(coords, x[tuple(coords)], x.shape)


def plain() -> dict[str, tuple[list[Part], dict[str, Any]]]:
    """Return the tensors that every layout has: name -> (parts, options)."""
    ten = (2, 3, 1, 2, 2, 1, 3, 2, 2, 3)
    hours = ["a", "b", "c", "d", "e", "f"]
    labels = {"day": {"start": "2024-02-01", "step": 1, "unit": "D"}, "hour": hours}
    grid = {"axes": ("day", "hour", "y", "x"), "labels": labels, "attrs": {"unit": "rides"}}
    counts = lambda n: small(1, n, 1, 8).astype(np.float64)  # noqa: E731
    return {
        "counts": ([one((12, 6, 10, 9), 160, 1, counts)], {**grid, "block_shape": (4, 6, 8, 8)}),
        "vector": ([one((5000,), 60, 2, lambda n: _some_zeros(small(2, n, -200, 200), 7).astype(np.int32))], {}),
        "noise": ([one((24, 30), 200, 3, _noise)], {"codec": "raw", "block_shape": (16, 16)}),
        "bool": ([one((20, 7, 11), 90, 4, lambda n: small(4, n, 0, 5) > 0)], {"order": (2, 0, 1), "row_axes": (2, 0)}),
        "same": ([one((9, 40), 50, 5, lambda n: np.full(n, 40000, np.uint16))], {"block_shape": (4, 32)}),
        "complex": (
            [one(ten, 70, 6, lambda n: bits(6, n, np.complex64))],
            {"order": (9, 0, 8, 1, 2, 3, 4, 5, 7, 6), "row_axes": (8, 9, 0), "block_shape": (2, 2, 1, 2, 2, 1, 2, 2, 2, 3)},
        ),
        "complex128": ([one((30,), 12, 26, lambda n: (small(26, n, 0, 4) * (1 + 2j)))], {}),
        "deep": ([one((3, 2, 3, 2, 3, 2, 3, 2), 120, 7, lambda n: small(7, n, -(10**6), 10**6))], {}),
        "large": ([one((1 << 20, 1 << 21), 40, 8, lambda n: bits(8, n, np.uint64))], {}),
        "times": ([one((30, 30), 40, 9, _times)], {"block_shape": (8, 30)}),
        "seconds": ([one((30, 30), 40, 10, lambda n: small(10, n, -5, 5).view("timedelta64[s]"))], {"codec": "raw"}),
        "bfloat16": ([one((16, 16), 60, 11, lambda n: bits(11, n, ml_dtypes.bfloat16))], {}),
        "float8_e5m2": ([one((16, 16), 60, 12, lambda n: bits(12, n, ml_dtypes.float8_e5m2))], {}),
        "halves": ([one((600,), 80, 13, _halves)], {}),
        "floats": ([one((600,), 50, 14, lambda n: (small(14, n, 1, 99) / 10).astype("f4").astype("f8"))], {}),
        "int8s": ([one((600,), 50, 15, lambda n: small(15, n, -99, 99).astype(np.int16))], {}),
        "uint16s": ([one((600,), 50, 16, lambda n: small(16, n, 0, 60_000).astype(np.int32))], {}),
        "uint32s": ([one((600,), 50, 17, lambda n: small(17, n, 0, 4 * 10**9))], {}),
        "empty": ([Part(np.zeros((2, 0), np.int64), np.zeros(0, np.float32), (7, 9))], {}),
        "nothing": ([Part(np.zeros((2, 0), np.int64), np.zeros(0, np.int8), (0, 4))], {}),
        "one": ([Part(np.array([[999], [0], [76]]), np.array([-7], np.int16), (1000, 1, 77))], {}),
        "scalar": ([Part(np.zeros((0, 1), np.int64), np.array([2.5]), ())], {}),
        "appended": (_appended(), {"block_shape": (4, 4, 9)}),
        "sum": (_overlapping(np.int8), {"duplicates": "sum", "block_shape": (4, 4)}),
        "sum-float64": (_overlapping(np.float64), {"duplicates": "sum", "block_shape": (4, 4)}),
        "or": (_overlapping(bool), {"duplicates": "sum", "block_shape": (4, 4)}),
        "last": (_overlapping(np.float32), {"duplicates": "last", "block_shape": (4, 4)}),
        "runs": ([one((40, 50), 110, 20, lambda n: small(20, n, 0, 256).astype(np.uint8))], {"block_shape": (16, 16)}),
    }  # fmt: skip


def of_one_layout(layout: str) -> dict[str, tuple[list[Part], dict[str, Any]]]:
    """Return the tensors that only some layouts have."""
    flat = one((9, 4, 11), 50, 22, lambda n: small(22, n, 1, 5).astype(np.int64))
    if layout == "bsgs":
        blocks = {"block_shape": (8, 8)}
        return {"blocks": ([_blocks()], blocks), "raw": ([_blocks()], {**blocks, "codec": "raw", "order": (1, 0)})}  # fmt: skip
    if layout in ("csr", "csc"):
        rows = {"no-rows": (), "all-rows": (2, 0, 1), "middle": (1,)}
        return {name: ([flat], {"row_axes": axes}) for name, axes in rows.items()} | {
            "named": ([_thin()], {"row_axes": (0,)}),
            "named-raw": ([_thin()], {"row_axes": (1,), "codec": "raw"}),
        }
    return {}


def door() -> dict[str, Golden]:
    """Return what is written with a commit for each part."""
    parts, options = plain()["counts"]
    whole = parts[0]
    days = whole.coords[0] < 2
    parts = [whole, Part(whole.coords[:, days], whole.values[days], (2, *whole.shape[1:]))]
    options = {"layout": "csr", **options}
    del options["block_shape"]
    return {"door/csr": Golden(parts, options, *united(parts, "error"))}


def tensors(layout: str) -> dict[str, Golden]:
    """Return what the golden tables hold in a layout: id -> tensor."""
    known = {"bsgs": {"block_shape", "order"}, "csf": {"order"}, "csr": {"row_axes"}, "csc": {"row_axes"}}  # fmt: skip
    common = {"axes", "labels", "attrs", "codec", "duplicates"} | known.get(layout, set())
    out = {}
    for name, (parts, options) in {**plain(), **of_one_layout(layout)}.items():
        kept = {key: value for key, value in options.items() if key in common}
        rule = options.get("duplicates", "error")
        out[f"{layout}/{name}"] = Golden(parts, {"layout": layout, **kept}, *united(parts, rule))
    return out
