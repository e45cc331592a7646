"""Deterministic inputs of the benchmarks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Elements(NamedTuple):
    """The non-zeros of a tensor.

    Attributes
    ----------
    coords : int64 ndarray, shape (ndim, nnz)
        Sorted in C order, each once.
    values : ndarray, shape (nnz,)
        What belongs to them.
    shape : tuple of int
        The tensor's.
    """

    coords: np.ndarray
    values: np.ndarray
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of coordinates and values: what a ``.pt`` file holds."""
        return self.coords.nbytes + self.values.nbytes


def photos(count: int = 64, size: int = 1024, seed: int = 0) -> np.ndarray:
    """Return crops of two real photographs, tiled by mirroring, with jitter and sensor noise.

    Returns
    -------
    ndarray
        uint8, shape (count, 3, size, size).
    """
    from sklearn.datasets import load_sample_images

    images = [np.ascontiguousarray(i.transpose(2, 0, 1)) for i in load_sample_images().images]
    rng = np.random.default_rng(seed)
    out = np.empty((count, 3, size, size), np.uint8)
    for i in range(count):
        image = images[i % 2]
        tile = np.concatenate([image, image[:, ::-1]], 1)
        tile = np.concatenate([tile, tile[:, :, ::-1]], 2)
        repeats = [-(-(size * 2) // n) for n in tile.shape[1:]]
        large = np.tile(tile, (1, *repeats))
        y, x = rng.integers(0, size, 2)
        crop = large[:, y : y + size, x : x + size].astype(np.int16)
        crop += rng.integers(-10, 11)
        crop += rng.integers(-2, 3, crop.shape, dtype=np.int16)
        out[i] = np.clip(crop, 0, 255)
    return out


def field(side: int = 512, seed: int = 0) -> np.ndarray:
    """Return a smooth float32 field: a random walk along all three axes.

    Returns
    -------
    ndarray
        float32, shape (side, side, side); 512 MiB for a side of 512.
    """
    rng = np.random.default_rng(seed)
    out = rng.standard_normal((side, side, side), np.float32)
    for axis in range(3):
        np.cumsum(out, axis=axis, out=out)
    out /= out.std()
    return out


_BY_HOUR = (
    1.2, 0.8, 0.6, 0.6, 0.8, 1.2, 2.2, 3.0, 2.9, 2.4, 2.3, 2.5,
    2.7, 3.1, 3.7, 4.6, 5.4, 5.9, 5.6, 5.2, 5.1, 5.1, 4.2, 2.6,
)  # fmt: skip


def uber(
    shape: tuple[int, int, int, int] = (183, 24, 1140, 1717), nnz: int = 3_309_490, seed: int = 0
) -> Elements:
    """Return pickups as day, hour, latitude, longitude, with the shape and number of FROSTT's uber tensor.

    Sixty places with a spread of their own, a week's rhythm, growth over the days, and the hours of a
    city; a value counts how often a cell was drawn.

    Returns
    -------
    Elements
        float64 values that are whole numbers.
    """
    rng = np.random.default_rng(seed)
    n_days, n_hours, height, width = shape
    by_hour = np.array(_BY_HOUR)[:n_hours]
    by_hour /= by_hour.sum()
    by_day = 1 + 0.35 * np.sin(np.arange(n_days) * 2 * np.pi / 7)
    by_day = by_day * np.linspace(0.6, 1.5, n_days)
    by_day /= by_day.sum()
    places = 60
    center_y = np.clip(rng.normal(0.52, 0.06, places), 0, 1) * height
    center_x = np.clip(rng.normal(0.5, 0.05, places), 0, 1) * width
    spread = np.abs(rng.gamma(2.0, 9.0, places)) + 3
    weight = rng.dirichlet(np.ones(places) * 0.5)
    draws = int(nnz * 1.9)
    cells = np.empty(0, np.int64)
    while True:
        place = rng.choice(places, draws, p=weight)
        y = np.clip(rng.normal(center_y[place], spread[place]), 0, height - 1).astype(np.int64)
        x = np.clip(rng.normal(center_x[place], spread[place] * 1.4), 0, width - 1).astype(np.int64)
        day = rng.choice(n_days, draws, p=by_day)
        hour = rng.choice(n_hours, draws, p=by_hour)
        cells = np.concatenate([cells, ((day * n_hours + hour) * height + y) * width + x])
        found, counts = np.unique(cells, return_counts=True)
        if len(found) >= nnz:
            break
    kept = np.sort(rng.choice(len(found), nnz, replace=False))
    coords = np.array(np.unravel_index(found[kept], shape))
    return Elements(coords, counts[kept].astype(np.float64), shape)


DENSE: dict[str, dict[str, Any]] = {
    "photos": {
        "full": (photos, {}),
        "tiny": (photos, {"count": 12, "size": 64}),
        "keys": {
            "full": np.s_[:],
            "ten": np.s_[30:40],
            "crop": np.s_[30:40, :, 256:512, 256:512],
            "line": np.s_[:, 0, 512, :],
        },
        "tiny_keys": {
            "full": np.s_[:],
            "ten": np.s_[1:11],
            "crop": np.s_[1:11, :, 16:32, 16:32],
            "line": np.s_[:, 0, 32, :],
        },
    },
    "field": {
        "full": (field, {}),
        "tiny": (field, {"side": 24}),
        "keys": {
            "full": np.s_[:],
            "ten": np.s_[120:130],
            "crop": np.s_[120:130, 128:256, 128:256],
            "line": np.s_[:, 256, :],
        },
        "tiny_keys": {
            "full": np.s_[:],
            "ten": np.s_[2:12],
            "crop": np.s_[2:12, 4:12, 4:12],
            "line": np.s_[:, 12, :],
        },
    },
}
"""For each workload how it is made, and the keys that are read."""

SPARSE: dict[str, dict[str, Any]] = {
    "uber": {
        "full": (uber, {}),
        "tiny": (uber, {"shape": (12, 24, 100, 150), "nnz": 20_000}),
        "keys": {
            "full": np.s_[:],
            "day": np.s_[77],
            "box": np.s_[:, :, 560:624, 830:894],
            # The 64 x 64 cells that hold more non-zeros than any others: 447,451, every seventh.
            "crowd": np.s_[:, :, 562:626, 886:950],
            "hour": np.s_[:, 8],
        },
        "tiny_keys": {
            "full": np.s_[:],
            "day": np.s_[5],
            "box": np.s_[:, :, 40:56, 70:86],
            "crowd": np.s_[:, :, 45:61, 73:89],
            "hour": np.s_[:, 8],
        },
    },
}
"""As `DENSE`, for tensors of which only the non-zeros are stored."""
