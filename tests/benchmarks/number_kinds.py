"""Deterministic arrays of the benchmark of codecs: numbers as they come in tables and in simulations."""

from __future__ import annotations

import numpy as np
from workloads import field


def spectrum(side: int, seed: int = 0) -> np.ndarray:
    """Return a float32 field with the energy spectrum of turbulence, k to the power of -5/3, standard deviation 1.

    Returns
    -------
    ndarray
        float32, shape (side, side, side).
    """
    rng = np.random.default_rng(seed)
    waves = np.fft.rfftn(rng.standard_normal((side, side, side)))
    across, along = np.fft.fftfreq(side) * side, np.fft.rfftfreq(side) * side
    k = np.sqrt(across[:, None, None] ** 2 + across[None, :, None] ** 2 + along**2)
    k[0, 0, 0] = 1
    # Energy in a shell of radius k is that of a mode times k squared.
    waves *= k ** (-(5 / 3 + 2) / 2)
    out = np.fft.irfftn(waves, s=(side, side, side), axes=(0, 1, 2))
    return (out / out.std()).astype(np.float32)


def timestamps(count: int, seed: int = 0) -> np.ndarray:
    """Return int64 milliseconds of events that come by chance, 260 ms apart on average."""
    gaps = np.random.default_rng(seed).exponential(260, count).astype(np.int64)
    return 1_700_000_000_000 + np.cumsum(gaps)


def walk(count: int, seed: int = 0) -> np.ndarray:
    """Return an int64 random walk whose steps have a standard deviation of 1000."""
    return np.cumsum(np.random.default_rng(seed).normal(0, 1000, count).astype(np.int64))


def ids(count: int, seed: int = 0) -> np.ndarray:
    """Return int64 ids by Zipf's law, exponent 1.3, below ten million."""
    return np.minimum(np.random.default_rng(seed).zipf(1.3, count), 10**7).astype(np.int64)


def cents(count: int, seed: int = 0) -> np.ndarray:
    """Return float64 prices with two decimal places, log-normal, median 55."""
    return np.round(np.random.default_rng(seed).lognormal(4, 1, count), 2)


KINDS = {
    "3-d random walk, float32": lambda side, count: field(side),
    "k^-5/3 field, float32": lambda side, count: spectrum(side),
    "timestamps, int64": lambda side, count: timestamps(count),
    "random walk, int64": lambda side, count: walk(count),
    "Zipf ids, int64": lambda side, count: ids(count),
    "prices in cents, float64": lambda side, count: cents(count),
}
"""By name, what makes an array of a side or a count."""
