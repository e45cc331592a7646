"""A stored video as users see it: frames by their numbers, and nothing read before they are asked for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.media.range_file import ReadRange
from tensorlake_spark.datasets.types.media.video import Array, read_numbers
from tensorlake_spark.datasets.types.media.video_facts import VideoFacts
from tensorlake_spark.errors import InvalidKeyError, InvalidKeyTypeError

_AT_ONCE = 64 << 20


class VideoSample:
    """One video: an array of shape (frames, height, width, 3), uint8, of which frames are decoded when asked for.

    Parameters
    ----------
    read_range : callable
        From start and stop to the bytes of the file between them.
    size : int
        Of the file, in bytes.
    facts : VideoFacts
        What is stored of it.
    """

    def __init__(self, read_range: ReadRange, size: int, facts: VideoFacts) -> None:
        self._read_range = read_range
        self._size = size
        self._facts = facts
        self._kept: dict[int, bytes] = {}

    @property
    def fps(self) -> float:
        """Frames a second, on average."""
        return self._facts.fps

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Frames, height, width, and 3 for red, green and blue."""
        return self._facts.frames, self._facts.height, self._facts.width, 3

    @property
    def ndim(self) -> int:
        """Four."""
        return 4

    @property
    def dtype(self) -> np.dtype[np.uint8]:
        """Of the pixels."""
        return np.dtype(np.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes of the file, not of its pixels."""
        return self._size

    def read(self) -> bytes:
        """Return the whole file."""
        return self._read_range(0, self._size)

    def frames(self, start: int, stop: int | None = None, step: int = 1) -> Array:
        """Return frames as ``range(start, stop, step)`` counts them; negative numbers count from the end.

        Parameters
        ----------
        start, stop, step : int
            As of a slice; to the end without `stop`.

        Returns
        -------
        numpy.ndarray
            Of shape (n, height, width, 3).
        """
        return self._slice(slice(start, stop, step))

    def __len__(self) -> int:
        return self._facts.frames

    def __iter__(self) -> Iterator[Array]:
        count = max(1, min(_AT_ONCE // (self._facts.height * self._facts.width * 3), 256))
        for start in range(0, len(self), count):
            yield from self._slice(slice(start, start + count))

    def __getitem__(self, key: Any) -> Array:
        """Return what NumPy would of an array of this shape; the first axis decides which frames are decoded."""
        first, *rest = (key or (...,)) if isinstance(key, tuple) else (key,)
        if len(rest) >= self.ndim and Ellipsis not in rest and first is not Ellipsis:
            raise InvalidKeyError(f"a video has {self.ndim} axes; the key has {len(rest) + 1}")
        if first is Ellipsis or isinstance(first, slice):
            frames = self._slice(slice(None) if first is Ellipsis else first)
            rest = [first if first is Ellipsis else slice(None), *rest]
        elif first is None:
            raise InvalidKeyError(
                "a video takes no new axis before its frames; read them, and add it then"
            )
        elif isinstance(first, (list, np.ndarray)):
            if any(isinstance(part, (list, np.ndarray)) for part in rest):
                raise InvalidKeyError(
                    "a video takes one index array; read the frames, and index them"
                )
            frames, rest = self._chosen(first), [slice(None), *rest]
        else:
            frames = self._numbered([self._number(first)])[0]
        return _cut(frames, tuple(rest))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a video is decoded, so an array of it is always a copy")
        frames = self._slice(slice(None))
        return frames if dtype is None else frames.astype(dtype, copy=False)

    def __repr__(self) -> str:
        frames, height, width, _ = self.shape
        return f"VideoSample({frames} frames of {height} x {width}, {self.fps:g} fps, {self._size} bytes)"

    def _slice(self, key: slice) -> Array:
        try:
            start, stop, step = key.indices(len(self))
        except TypeError:
            raise InvalidKeyTypeError(f"the slice {key} has bounds that are not integers") from None
        except ValueError:
            raise InvalidKeyError(f"the step of the slice {key} is zero") from None
        numbers = range(start, stop, step)
        return self._numbered(numbers) if step > 0 else self._numbered(numbers[::-1])[::-1]

    def _chosen(self, key: Any) -> Array:
        numbers = np.asarray(key)
        if numbers.dtype == bool:
            if numbers.shape != (len(self),):
                raise InvalidKeyError(
                    f"a mask of shape {numbers.shape} does not fit the {len(self)} frames of the video"
                )
            return self._numbered(np.flatnonzero(numbers))
        if numbers.size == 0:
            numbers = numbers.astype(np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise InvalidKeyError(
                f"frames are chosen by one axis of integers, not by {numbers.dtype} {numbers.shape}"
            )
        wrong = (numbers < -len(self)) | (numbers >= len(self))
        if wrong.any():
            self._number(numbers[wrong][0])
        each, back = np.unique(
            np.where(numbers < 0, numbers + len(self), numbers), return_inverse=True
        )
        return self._numbered(each)[back]

    def _number(self, key: Any) -> int:
        try:
            number = operator.index(key)
        except TypeError:
            raise InvalidKeyError(
                f"a frame is named by an integer, not by {type(key).__name__}"
            ) from None
        if isinstance(key, (bool, np.bool_)) or not -len(self) <= number < len(self):
            raise InvalidKeyError(f"frame {key} is not one of the video's {len(self)}")
        return number % len(self)

    def _numbered(self, numbers: Any) -> Array:
        return read_numbers(self._read_range, self._size, self._facts, numbers, self._kept)


def _cut(frames: Array, rest: tuple[Any, ...]) -> Array:
    try:
        out: Array = frames[rest]
    except IndexError as error:
        raise InvalidKeyError(f"the key does not fit a video's frames: {error}") from None
    return out


def whole(data: bytes) -> tuple[Callable[[int, int], bytes], int]:
    """Return a reader of ranges, and the size, of a file in memory.

    Examples
    --------
    >>> read, size = whole(b"abcdef")
    >>> read(1, 3), size
    (b'bc', 6)
    """
    return partial(_part, data), len(data)


def _part(data: bytes, start: int, stop: int) -> bytes:
    return data[start:stop]


def video_of(data: bytes, facts: Iterable[Any]) -> VideoSample:
    """Return a video whose file is in memory, with its facts in the order of `VideoFacts`."""
    return VideoSample(*whole(data), VideoFacts(*facts))
