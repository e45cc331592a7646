"""What the benchmark of loaders reads: JPEG files of the benchmark of samples, and arrays of 224 x 224 x 3.

A sample's label is its number, so that a reader of batches can tell which samples came, and how often.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sample_media

ARRAY = (224, 224, 3)
RAW_BYTES = 4_000_000_000
WINDOW = 32 << 20
"""Bytes of noise of which arrays are cut."""
JPEG = tuple(sample_media.KINDS)
RAW = ("uint8", "float32")
KINDS = (*JPEG, *RAW)
NEAR = 3.0
"""How far a decoded image may be from Pillow's, on the mean: decoders differ in how they enlarge colour."""


class Source(NamedTuple):
    """Samples of one kind, numbered from 0.

    Attributes
    ----------
    kind : str
        ``photos`` and ``small`` are JPEG files; ``uint8`` and ``float32`` arrays of 224 x 224 x 3.
    count : int
    folder : path
        Where the files are kept; arrays are made when they are asked for.

    Examples
    --------
    >>> Source("uint8", 5, Path()).value(3).shape
    (224, 224, 3)
    """

    kind: str
    count: int
    folder: Path

    @property
    def raw(self) -> bool:
        """Whether samples are arrays, not JPEG files."""
        return self.kind in RAW

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a decoded sample."""
        side = 0 if self.raw else sample_media.KINDS[self.kind].side
        return ARRAY if self.raw else (side, side, 3)

    @property
    def labels(self) -> np.ndarray:
        """The numbers of the samples, int32."""
        return np.arange(self.count, dtype=np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes of all samples as they are stored."""
        if self.raw:
            return self.count * self.sample_bytes
        return sum(map(len, self.images))

    @property
    def sample_bytes(self) -> int:
        """Bytes of one decoded sample."""
        return int(np.prod(self.shape)) * np.dtype("uint8" if not self.raw else self.kind).itemsize

    @property
    def images(self) -> list[bytes]:
        """JPEG files."""
        return _images(self.folder, self.count)

    def value(self, number: int) -> Any:
        """Return a sample as it is stored: bytes, or an array that begins with its number."""
        if not self.raw:
            return self.images[number]
        return self.rows(number, number + 1)[0]

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return arrays of samples that follow one another."""
        noise = _noise(self.kind)
        size = int(np.prod(ARRAY))
        out = np.empty((stop - start, size), self.kind)
        for row, number in zip(out, range(start, stop), strict=True):
            first = number * 7_919 % (len(noise) - size)
            row[:] = noise[first : first + size]
            row[:4] = np.frombuffer(np.int32(number).tobytes(), np.uint8)
        return out.reshape(-1, *ARRAY)

    def chunks(self, step: int = 256) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield samples as they are stored, some at a time, with their labels."""
        labels = self.labels
        for start in range(0, self.count, step):
            stop = min(start + step, self.count)
            values = self.rows(start, stop) if self.raw else self.images[start:stop]
            yield values, labels[start:stop]

    def decode(self, value: Any) -> np.ndarray:
        """Decode a sample from its bytes, as every peer does that lets one choose."""
        if self.raw:
            return np.frombuffer(value, self.kind).reshape(ARRAY)
        import simplejpeg

        found: np.ndarray = simplejpeg.decode_jpeg(value)
        return found

    def check(self, label: int, value: Any) -> None:
        """Raise AssertionError if this is not the sample of this number."""
        found = np.asarray(value)
        if found.shape != self.shape:
            raise AssertionError(f"sample {label} has the shape {found.shape}, not {self.shape}")
        if self.raw:
            if not np.array_equal(found, self.value(label)):
                raise AssertionError(f"sample {label} is another one")
            return
        from PIL import Image

        wanted = np.asarray(Image.open(io.BytesIO(self.images[label])).convert("RGB"), np.float32)
        if np.abs(found - wanted).mean() > NEAR:
            raise AssertionError(f"sample {label} is another one")


@functools.lru_cache(2)
def _images(folder: Path, count: int) -> list[bytes]:
    return sample_media.load(folder, count).images


@functools.lru_cache(2)
def _noise(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if kind == "uint8":
        return rng.integers(0, 256, WINDOW, np.uint8)
    return rng.standard_normal(WINDOW // 4, np.float32)


def source_of(kind: str, count: int | None, media: Path) -> Source:
    """Return samples of a kind, so many at most; JPEG files are made if they are not there."""
    if kind in RAW:
        whole = RAW_BYTES // Source(kind, 1, media).sample_bytes
        return Source(kind, min(whole, count or whole), media)
    whole = sample_media.KINDS[kind].count
    few = min(whole, count or whole)
    return Source(kind, few, sample_media.cached(kind, few, media))


def touch(values: Any) -> int:
    """Return how many samples a batch has, and read a byte of every page of them.

    Examples
    --------
    >>> touch(np.zeros((3, 5000), np.uint8)), touch([np.zeros(5), np.zeros(7)])
    (3, 2)
    """
    if isinstance(values, list | tuple):
        for value in values:
            _pages(np.asarray(value))
        return len(values)
    found = np.asarray(values)
    _pages(found)
    return len(found)


def _pages(array: np.ndarray) -> None:
    if array.flags.c_contiguous:
        array.reshape(-1).view(np.uint8)[::4096].sum()
    else:
        array.sum()
