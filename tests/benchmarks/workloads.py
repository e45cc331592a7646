"""Deterministic inputs of the benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np


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


WORKLOADS: dict[str, dict[str, Any]] = {
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
