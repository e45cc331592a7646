"""What is kept of a video in its row: how many frames, of which size, and where they begin to be decoded."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError, InvalidSampleError

Ints = np.ndarray[Any, np.dtype[np.int64]]

MOST_PACKETS = 1 << 24
"""Packets of a video at most: six days at 30 a second."""

_HEADER = struct.Struct("<4sHIIB")
_MAGIC = b"tlv1"
_SEQUENTIAL = 1


@dataclass(frozen=True)
class FrameIndex:
    """Where the frames of a video are, by its packets in the order of the file.

    As bytes it is a header (``tlv1``, the number of the stream as uint16, of packets and of key packets as uint32, and
    one byte that is 1 where frames can only be counted from the beginning; little endian), and then, by zlib: the
    times of the packets, and the numbers and places of the key packets, each as differences of int64 with all first
    bytes first, then all second ones; and one bit a packet, set where it shows no frame. A packet takes about a tenth
    of a byte where frames come at even times, and one or two bytes where they do not.

    Attributes
    ----------
    stream : int
        The number of the stream in the file.
    times : numpy.ndarray
        When each packet is shown, in units of the stream. No two that show a frame are the same.
    hidden : numpy.ndarray
        Whether a packet shows no frame: before the first one of an edit list, or only for others to refer to.
    keys : numpy.ndarray
        The numbers of the packets at which decoding can begin, ascending.
    places : numpy.ndarray
        Where in the file these begin, in bytes; -1 where that is not known.
    sequential : bool
        Whether only counting from the beginning tells which frame is which. The arrays are empty then.

    Examples
    --------
    >>> ints = lambda *x: np.array(x, "i8")
    >>> index = FrameIndex(0, ints(0, 80, 40), np.zeros(3, bool), ints(0), ints(48), False)
    >>> again = FrameIndex.from_bytes(index.to_bytes(), 3)
    >>> again.shown.tolist(), again.keys.tolist(), again.places.tolist()
    ([0, 2, 1], [0], [48])
    """

    stream: int
    times: Ints
    hidden: np.ndarray[Any, np.dtype[np.bool_]]
    keys: Ints
    places: Ints
    sequential: bool

    @cached_property
    def shown(self) -> Ints:
        """The number of the packet of each frame: position k has that of frame k."""
        packets = np.flatnonzero(~self.hidden)
        order: Ints = packets[np.argsort(self.times[packets], kind="stable")]
        return order

    @cached_property
    def shown_times(self) -> Ints:
        """When each frame is shown, ascending."""
        times: Ints = self.times[self.shown]
        return times

    def to_bytes(self) -> bytes:
        """Return it as it is stored."""
        head = _HEADER.pack(
            _MAGIC,
            self.stream,
            len(self.times),
            len(self.keys),
            _SEQUENTIAL if self.sequential else 0,
        )
        arrays = (self.times, self.keys, self.places)
        body = b"".join([*map(_coded, arrays), np.packbits(self.hidden).tobytes()])
        return head + zlib.compress(body, 9)

    @classmethod
    def from_bytes(cls, data: bytes, frames: int) -> FrameIndex:
        """Return what was stored for a video with so many frames.

        Raises
        ------
        CorruptDataError
            If it is damaged, or does not fit the number of frames. No more memory is taken than its header says,
            which is bounded.
        """
        try:
            magic, stream, packets, count, flags = _HEADER.unpack_from(data)
            if magic != _MAGIC or flags > _SEQUENTIAL or not count <= packets <= MOST_PACKETS:
                raise ValueError
            nbytes = 8 * (packets + 2 * count) + (packets + 7) // 8
            unpacker = zlib.decompressobj()
            body = unpacker.decompress(data[_HEADER.size :], nbytes + 1)
            if len(body) != nbytes or not unpacker.eof or unpacker.unused_data:
                raise ValueError
        except (ValueError, struct.error, zlib.error):
            raise CorruptDataError("the index of the video's frames is damaged") from None
        ends = np.cumsum([8 * packets, *[8 * count] * 2])
        times, keys, places = (_decoded(part) for part in _split(body, ends))
        bits = np.unpackbits(np.frombuffer(body, "u1", offset=int(ends[-1])), count=packets)
        out = cls(stream, times, bits.astype(bool), keys, places, flags == _SEQUENTIAL)
        out._check(frames)
        return out

    def _check(self, frames: int) -> None:
        inside = not len(self.keys) or (self.keys[0] >= 0 and self.keys[-1] < len(self.times))
        good = inside and bool((np.diff(self.keys) > 0).all())
        if not self.sequential:
            good = (
                good and len(self.shown) == frames and bool((np.diff(self.shown_times) > 0).all())
            )
            good = good and len(self.keys) > 0
        if not good:
            raise CorruptDataError(
                f"the index of the video's frames does not fit the {frames} frames of its row"
            )


@dataclass(frozen=True)
class VideoFacts:
    """What is known of a video without its bytes.

    Attributes
    ----------
    frames : int
        How many there are.
    fps : float
        Frames a second, on average.
    height, width : int
        Of a frame, in pixels, as it is stored: a rotation that a player would make is not made.
    index : bytes
        A `FrameIndex`.
    """

    frames: int
    fps: float
    height: int
    width: int
    index: bytes

    def __post_init__(self) -> None:
        if not (0 < self.frames <= MOST_PACKETS and self.height > 0 and self.width > 0):
            raise InvalidSampleError(
                f"a video of {self.frames} frames of {self.height} x {self.width} cannot be read"
            )

    @cached_property
    def frame_index(self) -> FrameIndex:
        """The index, decoded once."""
        return FrameIndex.from_bytes(self.index, self.frames)


def video_format(data: bytes) -> str | None:
    """Return the container of a video by its first bytes.

    Examples
    --------
    >>> video_format(bytes.fromhex("1a45dfa3") + bytes(8)), video_format(b"none")
    ('matroska', None)
    """
    if data[4:8] == b"ftyp":
        return "mp4"
    if data[:4] == b"\x1a\x45\xdf\xa3":
        return "matroska"
    return "avi" if data[:4] == b"RIFF" and data[8:12] == b"AVI " else None


def _coded(array: Ints) -> bytes:
    deltas = np.diff(array.astype("<i8"), prepend=np.int64(0)).astype("<i8")
    return bytes(deltas.view("u1").reshape(-1, 8).T.tobytes())


def _decoded(data: bytes) -> Ints:
    deltas = np.frombuffer(data, "u1").reshape(8, -1).T.copy().view("<i8").reshape(-1)
    out: Ints = np.cumsum(deltas, dtype=np.int64)
    return out


def _split(body: bytes, ends: Ints) -> list[bytes]:
    starts = [0, *ends[:-1].tolist()]
    return [body[start:stop] for start, stop in zip(starts, ends.tolist())]
