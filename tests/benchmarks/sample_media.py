"""What the benchmark of samples stores: JPEG files like small pictures and like photographs, made once and kept.

A few hundred pictures are random with the spectrum of photographs: every octave has the same power. Each sample is
another crop of one of them, at another quality, so that no two files are alike and all have real entropy.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

CLASSES = 100


class Kind(NamedTuple):
    """One kind of media.

    Attributes
    ----------
    count : int
        How many samples.
    side : int
        Height and width in pixels.
    pictures, canvas : int
        How many pictures they are cut from, and how large those are.
    contrast : float
        The standard deviation of a picture, of 255; it sets the bytes of a file.
    """

    count: int
    side: int
    pictures: int
    canvas: int
    contrast: float


KINDS = {"small": Kind(50_000, 32, 300, 128, 48.0), "photos": Kind(20_000, 250, 200, 384, 50.0)}


class Media(NamedTuple):
    """Samples in memory.

    Attributes
    ----------
    images : list of bytes
        JPEG files.
    labels : ndarray
        int32, below `CLASSES`.
    """

    images: list[bytes]
    labels: np.ndarray

    @property
    def nbytes(self) -> int:
        """The bytes of all images."""
        return sum(map(len, self.images))


def names() -> list[str]:
    """Return the names of the classes."""
    return [f"class_{k:03}" for k in range(CLASSES)]


def picture(rng: np.random.Generator, side: int, contrast: float) -> np.ndarray:
    """Return a random picture in colour with the spectrum of photographs, uint8."""
    y, x = np.meshgrid(np.fft.fftfreq(side), np.fft.rfftfreq(side), indexing="ij")
    distance = np.hypot(y, x)
    distance[0, 0] = np.inf
    waves = rng.standard_normal((3, *distance.shape)) + 1j * rng.standard_normal(
        (3, *distance.shape)
    )
    layers = np.fft.irfft2(waves / distance**1.5, s=(side, side))
    layers /= layers.std(axis=(1, 2), keepdims=True)
    # Much light, little colour: channels of a photograph are alike.
    layers = layers[0] + 0.35 * layers
    return np.clip(128 + contrast * np.moveaxis(layers, 0, -1), 0, 255).astype(np.uint8)


def make(kind: Kind, count: int, seed: int = 0) -> Media:
    """Return so many samples; the same ones for the same seed."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    pictures = [
        Image.fromarray(picture(rng, kind.canvas, kind.contrast)) for _ in range(kind.pictures)
    ]
    which = rng.integers(kind.pictures, size=count)
    corner = rng.integers(kind.canvas - kind.side + 1, size=(count, 2))
    quality = rng.integers(75, 93, size=count)
    images = []
    for k, (x, y), q in zip(which.tolist(), corner.tolist(), quality.tolist(), strict=True):
        file = io.BytesIO()
        pictures[k].crop((x, y, x + kind.side, y + kind.side)).save(file, "JPEG", quality=q)
        images.append(file.getvalue())
    return Media(images, rng.integers(CLASSES, size=count).astype(np.int32))


def save(media: Media, folder: Path) -> None:
    """Write samples to three files; the last one says that the others are whole."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "images.bin").write_bytes(b"".join(media.images))
    np.save(folder / "labels.npy", media.labels)
    (folder / "sizes.json").write_text(json.dumps([len(image) for image in media.images]))


def load(folder: Path, count: int | None = None) -> Media:
    """Return the samples of `save`, or the first of them."""
    sizes = json.loads((folder / "sizes.json").read_text())[:count]
    with (folder / "images.bin").open("rb") as file:
        images = [file.read(size) for size in sizes]
    return Media(images, np.load(folder / "labels.npy")[:count])


def cached(name: str, count: int, folder: Path) -> Path:
    """Return the folder of so many samples of a kind, which are made if they are not there."""
    place = folder / f"{name}-{count}"
    if not (place / "sizes.json").exists():
        save(make(KINDS[name], count), place)
    return place
