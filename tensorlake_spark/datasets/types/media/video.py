"""Videos: their key frames found once, and then frames read by ranges of the file, by PyAV (extra ``video``).

Frames are numbered in the order in which a player shows them, and are found again by their times, never by counting
from where a seek happened to land. Only the packets from the key frame before the first wanted one to the last packet
that one of them needs are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.datasets.types.media.range_file import RangeFile, ReadRange
from tensorlake_spark.datasets.types.media.video_facts import (
    MOST_PACKETS,
    FrameIndex,
    Ints,
    VideoFacts,
    video_format,
)
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidKeyError,
    InvalidSampleError,
    MissingDependencyError,
)

Array = np.ndarray[Any, Any]

MOST_PIXELS = 1 << 28
"""Pixels of one frame, at most: what a decoder may be made to take memory for."""

TRIED = 16
"""Frames at the beginning that are decoded to see whether times tell them apart."""

# Of these every packet shows one frame. Of others, such as VP8 with its hidden frames, all are decoded once.
_PLAIN = ("h264", "hevc", "mpeg4", "mjpeg", "vp9", "av1", "mpeg2video")
_NEAR = 16  # packets that are decoded in vain, rather than to seek again
_QUICK = {"fpsprobesize": "0", "analyzeduration": "0"}  # what only a first reading has to find out


@dataclass
class _Packets:
    """What a first reading finds of the packets of a stream."""

    times: list[int | None]
    hidden: list[bool]
    keys: list[int]
    places: list[int]


def probe_video(data: bytes | memoryview) -> VideoFacts:
    """Find out what is kept of a video in its row, by one reading of its packets; few frames are decoded.

    Parameters
    ----------
    data : bytes or memoryview
        A file of MP4 (also QuickTime), Matroska, WebM or AVI.

    Raises
    ------
    InvalidSampleError
        If it is no such file, is cut off, has no frame, or is larger than the bounds.
    MissingDependencyError
        Without PyAV.
    """
    view = memoryview(data).cast("B")

    def read(start: int, stop: int) -> bytes:
        return bytes(view[start:stop])

    with _opened(read, len(view), None) as (container, stream, _):
        packets = _packets(container, stream)
        height, width = _checked_size(stream)
        name, rate, unit = stream.codec_context.name, stream.average_rate, stream.time_base
        number, kind = int(stream.index), video_format(bytes(view[:12]))
    index = _index_of(packets, number) if kind != "avi" else None
    if index is not None and not (name in _PLAIN and _is_true(index, read, len(view))):
        seen = _times_shown(read, len(view), number)
        packets.hidden = [time not in seen for time in packets.times]
        index = _index_of(packets, number)
        if index is not None and len(index.shown) != len(seen):
            index = None
    if index is None:
        frames = len(_times_shown(read, len(view), number, unique=False))
        none = np.zeros(0, np.int64)
        index = FrameIndex(number, none, none.astype(bool), none, none, True)
    else:
        frames = len(index.shown)
    if not frames:
        raise InvalidSampleError("the video has no frame that can be decoded")
    fps = float(rate) if rate else 0.0
    if not fps and len(index.shown) > 1 and unit:
        fps = float((frames - 1) / ((index.shown_times[-1] - index.shown_times[0]) * unit))
    return VideoFacts(frames, fps, height, width, index.to_bytes())


def read_frames(
    read_range: ReadRange,
    size: int,
    facts: VideoFacts,
    first: int,
    last: int,
    kept: dict[int, bytes] | None = None,
) -> Array:
    """Return the frames from `first` to before `last`: uint8 of shape (n, height, width, 3), red, green, blue.

    Parameters
    ----------
    read_range : callable
        From start and stop to the bytes of the file between them.
    size : int
        Of the file, in bytes.
    facts : VideoFacts
        What `probe_video` found.
    first, last : int
        Numbers of frames, ``0 <= first <= last <= facts.frames``.
    kept : dict, optional
        Where the headers of the file are kept between calls.

    Raises
    ------
    InvalidKeyError
        If there are no such frames, or they do not fit into memory.
    CorruptDataError
        If the file is not the one that was probed, or is damaged.
    MissingDependencyError
        Without PyAV.
    """
    if not 0 <= first <= last <= facts.frames:
        raise InvalidKeyError(f"frames {first} to {last} are not within the video's {facts.frames}")
    return read_numbers(read_range, size, facts, range(first, last), kept)


def read_numbers(
    read_range: ReadRange,
    size: int,
    facts: VideoFacts,
    numbers: Sequence[int],
    kept: dict[int, bytes] | None = None,
) -> Array:
    """Return some frames as `read_frames`: those of ascending numbers, none twice."""
    wanted = np.asarray(numbers, np.int64)
    try:
        out = np.empty((len(wanted), facts.height, facts.width, 3), np.uint8)
    except (MemoryError, ValueError):
        raise InvalidKeyError(
            f"{len(wanted)} frames of {facts.height} x {facts.width} do not fit into memory; read fewer at once"
        ) from None
    if not len(wanted):
        return out
    index = facts.frame_index
    options = {"max_pixels": str(_room(facts))}
    with _opened(read_range, size, index.stream, options, kept) as (container, stream, file):
        if index.sequential:
            _count(container, stream, wanted, out)
        else:
            reader = _Reader(container, stream, file, index, size)
            for begin, end in _runs(index, wanted):
                reader.read(wanted[begin:end], out[begin:end])
    return out


def _runs(index: FrameIndex, wanted: Ints) -> Iterator[tuple[int, int]]:
    """Yield runs of wanted frames: between two runs so much is not needed that a seek is worth while."""
    packets = index.shown[wanted]
    starts = _key_before(index, wanted)
    last, begin = int(packets[0]), 0
    for k in range(1, len(wanted)):
        if starts[k] > last + _NEAR:
            yield begin, k
            begin = k
        last = max(last, int(packets[k]))
    yield begin, len(wanted)


def _key_before(index: FrameIndex, wanted: Ints) -> Ints:
    """Return for frames the number of the packet at which decoding has to begin: the last key shown not after it."""
    times = index.times[index.keys]
    order = np.argsort(times, kind="stable")
    place = np.searchsorted(times[order], index.shown_times[wanted], side="right") - 1
    out: Ints = np.where(place >= 0, index.keys[order[np.maximum(place, 0)]], 0)
    return out


class _Reader:
    """Decodes runs of frames of one open file."""

    def __init__(
        self, container: Any, stream: Any, file: RangeFile, index: FrameIndex, size: int
    ) -> None:
        self._container, self._stream, self._file = container, stream, file
        self._index, self._size = index, size

    def read(self, wanted: Ints, out: Array) -> None:
        """Decode frames of ascending numbers into `out`."""
        index = self._index
        stop = int(index.shown[wanted].max()) + 1
        start = int(_key_before(index, wanted[:1])[0])
        where = {int(time): k for k, time in enumerate(index.shown_times[wanted])}
        before = index.keys[index.keys <= start][::-1]
        # A file may have marked a frame as key that is not one for its neighbours; then those before serve.
        for key in [*before[:2].tolist(), -1]:
            if self._decode(key, stop, dict(where), out):
                return
        raise CorruptDataError(
            f"frames {wanted[0]} to {wanted[-1]} of the video are not in its file any more, or are damaged"
        )

    def _decode(self, key: int, stop: int, missing: dict[int, int], out: Array) -> bool:
        """Decode the packets from a key to `stop`, from the beginning for -1; False if a frame did not come."""
        for number, packet in self._packets_from(key, stop):
            if number >= stop:
                break
            self._take(self._stream.codec_context.decode(packet), missing, out)
            if not missing:
                return True
        self._take(self._stream.codec_context.decode(None), missing, out)
        return not missing

    def _take(self, frames: Any, missing: dict[int, int], out: Array) -> None:
        for frame in frames:
            place = missing.pop(frame.pts, None)
            if place is not None:
                out[place] = _pixels(frame, out.shape[1:])

    def _packets_from(self, key: int, stop: int) -> Iterator[tuple[int, Any]]:
        """Yield packets with their numbers, from a key on, or from one before it if the file's index leads there."""
        index = self._index
        begin = int(np.searchsorted(index.keys, key)) if key >= 0 else 0
        times = index.times[index.keys]
        self._bound(begin, stop)
        try:
            self._container.seek(int(times[begin]), stream=self._stream, backward=True)
        except _av().FFmpegError:
            self._container.seek(int(times[0]), stream=self._stream, backward=True)
        numbers = {int(index.times[k]): int(k) for k in index.keys[: begin + 1]}
        number = -1
        for packet in self._container.demux(self._stream):
            if not packet.size:
                return
            if number < 0:
                if not packet.is_keyframe:
                    continue
                if packet.pts not in numbers:  # past the key that was looked for
                    return
                number = numbers[packet.pts]
            elif number >= len(index.times) or index.times[number] != packet.pts:
                raise CorruptDataError(
                    "the video is not the one that was stored: other packets are in its file"
                )
            yield number, packet
            number += 1

    def _bound(self, begin: int, stop: int) -> None:
        """Tell the file what will be needed: from a key to the first key that no wanted frame needs."""
        index = self._index
        start, after = int(index.places[begin]), int(np.searchsorted(index.keys, stop))
        end = int(index.places[after]) if after < len(index.keys) else self._size
        if 0 <= start < end:
            self._file.bound(start, end)


def _count(container: Any, stream: Any, wanted: Ints, out: Array) -> None:
    """Decode from the beginning, and take the frames of some numbers as they are counted."""
    rest = iter(enumerate(wanted.tolist()))
    place, number = next(rest)
    for k, frame in enumerate(container.decode(stream)):
        if k == number:
            out[place] = _pixels(frame, out.shape[1:])
            try:
                place, number = next(rest)
            except StopIteration:
                return
    raise CorruptDataError(f"the video ends before its frame {number}")


def _pixels(frame: Any, shape: tuple[int, ...]) -> Array:
    if (frame.height, frame.width) != tuple(shape[:2]):
        raise CorruptDataError(
            f"a frame of the video has {frame.height} x {frame.width} pixels, the others {shape[0]} x {shape[1]}"
        )
    pixels: Array = frame.to_ndarray(format="rgb24")
    return pixels


def _room(facts: VideoFacts) -> int:
    """Return how many pixels a decoder may take: codecs take whole blocks, and a margin."""
    return (facts.height + 256) * (facts.width + 256)


def _packets(container: Any, stream: Any) -> _Packets:
    out = _Packets([], [], [], [])
    for packet in container.demux(stream):
        if not packet.size:
            continue
        if len(out.times) == MOST_PACKETS:
            raise InvalidSampleError(f"the video has more than {MOST_PACKETS} packets")
        if packet.is_keyframe:
            out.keys.append(len(out.times))
            out.places.append(-1 if packet.pos is None else int(packet.pos))
        out.times.append(packet.pts)
        out.hidden.append(bool(packet.is_discard))
    return out


def _index_of(packets: _Packets, stream: int) -> FrameIndex | None:
    """Return an index, None where times do not tell the frames apart."""
    if any(time is None for time in packets.times) or not packets.keys:
        return None
    times = np.array(packets.times, np.int64)
    shown = np.sort(times[~np.array(packets.hidden, bool)])
    key_times = times[packets.keys]
    if len(np.unique(shown)) != len(shown) or len(np.unique(key_times)) != len(key_times):
        return None
    return FrameIndex(
        stream, times, np.array(packets.hidden, bool), np.array(packets.keys, np.int64),
        np.array(packets.places, np.int64), False,
    )  # fmt: skip


def _is_true(index: FrameIndex, read: ReadRange, size: int) -> bool:
    """Whether the first frames that are decoded are those that the index has."""
    expected = index.shown_times[:TRIED].tolist()
    with _opened(read, size, index.stream) as (container, stream, _):
        found = []
        for frame in container.decode(stream):
            found.append(frame.pts)
            if len(found) == len(expected):
                break
    return bool(found == expected)


def _times_shown(read: ReadRange, size: int, number: int, unique: bool = True) -> Any:
    """Return the times of all frames, decoding them all."""
    with _opened(read, size, number) as (container, stream, _):
        times = [frame.pts for frame in container.decode(stream)]
    return set(times) if unique else times


def _checked_size(stream: Any) -> tuple[int, int]:
    height, width = int(stream.codec_context.height), int(stream.codec_context.width)
    if height <= 0 or width <= 0 or height * width > MOST_PIXELS:
        raise InvalidSampleError(
            f"the video's frames have {height} x {width} pixels; at most {MOST_PIXELS} are read"
        )
    return height, width


@contextmanager
def _opened(
    read_range: ReadRange,
    size: int,
    number: int | None,
    options: dict[str, str] | None = None,
    kept: dict[int, bytes] | None = None,
) -> Iterator[tuple[Any, Any, RangeFile]]:
    """Open a video over ranges; its stream of that number, or the best one."""
    av = _av()
    file = RangeFile(read_range, size, kept)
    # Others are not tried: some that FFmpeg knows, such as playlists, name further files, which it would open.
    kind = video_format(file.read(12))
    file.seek(0)
    if kind is None:
        raise InvalidSampleError(
            "bytes that are not a video of MP4, QuickTime, Matroska, WebM or AVI"
        )
    known = number is not None
    error = InvalidSampleError if options is None else CorruptDataError  # at the door, or later
    try:
        with av.open(
            file, "r", format=kind, metadata_errors="replace", options=_QUICK if known else {}
        ) as container:
            streams = container.streams
            stream = (
                streams.best("video")
                if number is None
                else (*streams, None)[min(number, len(streams))]
            )
            if stream is None or stream.type != "video":
                raise error("the file has no video in it")
            if stream.codec_context is None:
                raise error(
                    "the video is in a codec that PyAV does not have, or its header is damaged"
                )
            # `strict`: H.264 that does not say how far frames are out of order is waited for, and loses none.
            stream.codec_context.options = {
                "max_pixels": str(MOST_PIXELS), "strict": "1", **(options or {})
            }  # fmt: skip
            yield container, stream, file
    except av.FFmpegError as caught:
        said = caught.strerror or type(caught).__name__
        raise error(f"the video cannot be decoded: {said}") from None


def _av() -> Any:
    try:
        import av
    except ImportError as error:
        raise MissingDependencyError(
            "videos need the package av (PyAV); install it with: pip install 'tensorlake-spark[video]'"
        ) from error
    return av
