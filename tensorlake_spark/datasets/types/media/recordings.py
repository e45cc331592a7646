"""Video and sound, as the bytes of their files."""

from __future__ import annotations

import importlib
import io
import wave
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import Array, Place, Type, check_one_of, field_of, shown
from tensorlake_spark.datasets.types.media import media_bytes
from tensorlake_spark.datasets.types.media.media_bytes import Media
from tensorlake_spark.datasets.types.media.video import probe_video
from tensorlake_spark.datasets.types.media.video_facts import video_format
from tensorlake_spark.datasets.types.media.video_sample import video_of
from tensorlake_spark.errors import CorruptDataError, InvalidSampleError, MissingDependencyError

VIDEO = pa.struct(
    [
        pa.field("data", pa.binary()),
        pa.field("format", pa.string()),
        pa.field("frames", pa.int64()),
        pa.field("fps", pa.float64()),
        pa.field("height", pa.int32()),
        pa.field("width", pa.int32()),
        pa.field("index", pa.binary()),
        pa.field("crc", pa.int64()),
    ]
)
"""Storage of a video; `index` says where its key frames are."""

AUDIO = pa.struct(
    [
        pa.field("data", pa.binary()),
        pa.field("format", pa.string()),
        pa.field("rate", pa.int32()),
        pa.field("channels", pa.int32()),
        pa.field("length", pa.int64()),
        pa.field("crc", pa.int64()),
    ]
)
"""Storage of a sound; `length` counts the samples of one channel, `rate` those of a second."""


class Sound(NamedTuple):
    """A sound as numbers.

    Attributes
    ----------
    samples : float32 ndarray, shape (length, channels)
        From -1 to 1.
    rate : int
        Samples of a channel a second.
    """

    samples: Array
    rate: int


@dataclass(frozen=True, repr=False)
class Recording(Type):
    """What these types share: a file's bytes, with facts from its header beside them."""

    @property
    def reads_files(self) -> bool:
        return True

    def facts(self, data: bytes, number: int, place: Place) -> dict[str, Any]:
        """Return the fields of `storage` beside ``data`` and ``crc``.

        Raises
        ------
        InvalidSampleError
            If the bytes are no such file.
        """
        raise NotImplementedError

    def encoded(self, value: Any, number: int, place: Place) -> bytes:
        """Return the bytes of what is no file."""
        raise place.wrong_type(number, str(self), shown(value), "give bytes, a path or a file")

    def decoded(self, data: bytes) -> Any:
        """Return what the bytes of a file mean."""
        return data

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        files = Media(array).all_checked()
        return files if native else [None if f is None else self.decoded(f) for f in files]

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        files: list[bytes | None] = []
        rows = []
        for number, value in enumerate(values):
            data = None
            if value is not None:
                data = media_bytes.bytes_of(value, number, place, str(self))
                data = self.encoded(value, number, place) if data is None else data
            files.append(data)
            rows.append({} if data is None else self.facts(data, number, place))
        columns: dict[str, Any] = {
            f.name: [row.get(f.name) for row in rows] for f in self.storage()
        }
        columns["data"] = files
        columns["crc"] = [None if f is None else media_bytes.crcs_of([f])[0] for f in files]
        valid = np.fromiter((f is not None for f in files), bool, len(files))
        return media_bytes.struct_of(self.storage(), columns, valid, place)

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        if pa.types.is_struct(values.type) and values.type.get_field_index("data") >= 0:
            values = field_of(values, "data")
        return super()._from_arrow(values, place)


VIDEO_FACTS = ("frames", "fps", "height", "width", "index")
"""What is stored of a video beside its bytes and its container, in the order of `VideoFacts`."""


@dataclass(frozen=True, repr=False)
class Video(Recording):
    """A video in each sample, stored as the bytes of a whole file.

    When it is written, its frames are counted and its key frames are noted, which needs PyAV (extra ``video``). A value
    of a column in a dataset has ``frames(start, stop)``.
    """

    kind: ClassVar[str] = "video"

    def storage(self) -> pa.DataType:
        return VIDEO

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        files = Media(array).all_checked()
        if native:
            return files
        known = zip(*(array.field(name).to_pylist() for name in VIDEO_FACTS), strict=True)
        return [None if f is None else video_of(f, facts) for f, facts in zip(files, known)]

    def facts(self, data: bytes, number: int, place: Place) -> dict[str, Any]:
        try:
            found = probe_video(data)
        except (InvalidSampleError, CorruptDataError) as error:
            raise place.wrong(number, "a video", f"{error}", cause=error) from error
        return {"format": video_format(data)} | {n: getattr(found, n) for n in VIDEO_FACTS}


@dataclass(frozen=True, repr=False)
class Audio(Recording):
    """A sound in each sample, stored as the bytes of a file.

    Files of the format are stored as they are. You may also give a pair of an array and a rate, which is encoded with
    16 bits. The array has the shape (length,) or (length, channels), and floats from -1 to 1, or int16. A sound is read
    as a `Sound`. WAV files of integers need no other package; all others need the extra ``audio``.

    Parameters
    ----------
    format : str
        ``wav``, ``flac`` or ``mp3``.

    Examples
    --------
    >>> column = Audio("wav").encode([(np.zeros(100, "f4"), 16000)], "sound")
    >>> column[0]["rate"].as_py(), Audio("wav").decode(column)[0].samples.shape
    (16000, (100, 1))
    """

    format: str = "wav"
    kind: ClassVar[str] = "audio"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self.format, ("wav", "flac", "mp3"), "format")

    def storage(self) -> pa.DataType:
        return AUDIO

    def facts(self, data: bytes, number: int, place: Place) -> dict[str, Any]:
        found = sound_format(data)
        if found != self.format:
            raise place.wrong(
                number, str(self), f"a {found} file" if found else f"{len(data)} bytes that are no {self.format}",
                "convert it, or declare the format that it has",
            )  # fmt: skip
        try:
            rate, channels, length = _heard(data, self.format)
        except (ValueError, EOFError, RuntimeError, wave.Error) as error:
            raise place.wrong(
                number,
                str(self),
                f"a {self.format} that cannot be read: {_said(error)}",
                cause=error,
            ) from error
        if not rate or not channels:
            raise place.wrong(number, str(self), f"a sound of {channels} channels at {rate} Hz")
        return {"format": self.format, "rate": rate, "channels": channels, "length": length}

    def encoded(self, value: Any, number: int, place: Place) -> bytes:
        if not isinstance(value, tuple) or len(value) != 2:
            raise place.wrong_type(
                number, str(self), shown(value), "give a file, or a pair: samples and rate"
            )
        rate = value[1]
        try:
            samples = np.asarray(value[0])
        except ValueError as error:  # lists of different lengths
            raise place.wrong(
                number, "samples of shape (length, channels)", shown(value[0]), f"{error}", error
            ) from error
        is_whole = isinstance(rate, (int, np.integer)) and not isinstance(rate, bool)
        if not is_whole or not 0 < rate < 1 << 31:
            raise place.wrong(
                number, "a rate above 0 and below 2**31, in whole Hz", f"{rate!r:.40}"
            )
        if samples.ndim == 1:
            samples = samples[:, None]
        if samples.ndim != 2 or not 1 <= samples.shape[1] <= 255:
            raise place.wrong(
                number, "samples of shape (length, channels)", shown(samples), "transpose it"
            )
        if samples.dtype.kind == "f":
            if not (np.abs(samples) <= 1).all():
                raise place.wrong(
                    number, "floats from -1 to 1", shown(samples), "divide by the greatest size"
                )
            samples = np.clip(np.rint(samples.astype(np.float64) * 32768), -32768, 32767).astype(
                np.int16
            )
        elif samples.dtype != np.int16:
            raise place.wrong_type(number, "floats or int16", shown(samples), "cast it")
        if not len(samples) and self.format != "wav":  # libsndfile writes no byte then
            raise place.wrong(number, f"a sound that {self.format} can hold", "one of no samples")
        try:
            return _written(samples, int(rate), self.format)
        # Of libsndfile: not every format has every rate.
        except (ValueError, RuntimeError, wave.Error) as error:
            raise place.wrong(
                number, f"a sound that {self.format} can hold", f"{samples.shape[1]} channels at {rate} Hz",
                _said(error), error,
            ) from error  # fmt: skip

    def decoded(self, data: bytes) -> Sound:
        try:
            return _sound(data, self.format)
        except (ValueError, EOFError, RuntimeError, wave.Error) as error:
            raise CorruptDataError(
                f"a sound of {len(data)} bytes cannot be decoded: {_said(error)}"
            ) from error


def sound_format(data: bytes) -> str | None:
    """Return the format of a sound by its first bytes.

    Examples
    --------
    >>> sound_format(b"fLaC"), sound_format(b"none")
    ('flac', None)
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "wav"
    if data[:4] == b"fLaC":
        return "flac"
    is_frame = len(data) > 1 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0 and data[1] & 0x06
    return "mp3" if data[:3] == b"ID3" or is_frame else None


def _soundfile() -> Any:
    try:
        return importlib.import_module("soundfile")
    except ImportError as error:
        raise MissingDependencyError(
            "this sound needs the package soundfile: pip install 'tensorlake-spark[audio]'"
        ) from error


def _said(error: Exception) -> str:
    """Return what a library says; libsndfile's message begins with the address of the bytes in memory.

    An EOFError of the standard library says nothing.
    """
    return str(getattr(error, "error_string", error)) or "it is truncated"


def _heard(data: bytes, form: str) -> tuple[int, int, int]:
    """Return rate, channels and length of a sound."""
    if form == "wav" and _is_plain(data):
        with wave.open(io.BytesIO(data)) as file:
            rate, channels, length = file.getframerate(), file.getnchannels(), file.getnframes()
            size = length * channels * file.getsampwidth()
            if len(file.readframes(length)) < size:
                raise ValueError("it is truncated")
            return rate, channels, length
    if form == "wav" and _missing(data):  # libsndfile takes what is there
        raise ValueError("it is truncated")
    found = _soundfile().info(io.BytesIO(data))
    return int(found.samplerate), int(found.channels), int(found.frames)


def _missing(data: bytes) -> bool:
    """Whether a WAV ends before its samples do."""
    at = 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        if data[at : at + 4] == b"data":
            return at + 8 + size > len(data)
        at += 8 + size + size % 2
    return False


def _is_plain(data: bytes) -> bool:
    """Whether a WAV holds whole numbers, which the standard library reads."""
    at = data.find(b"fmt ", 12, 4096)
    return at > 0 and data[at + 8 : at + 10] == b"\x01\x00"


def _written(samples: Array, rate: int, form: str) -> bytes:
    out = io.BytesIO()
    if form == "wav":
        with wave.open(out, "wb") as file:
            file.setnchannels(samples.shape[1])
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(np.ascontiguousarray(samples, "<i2").tobytes())
    else:
        _soundfile().write(out, samples, rate, format=form.upper())
    return out.getvalue()


def _sound(data: bytes, form: str) -> Sound:
    if form == "wav" and _is_plain(data):
        with wave.open(io.BytesIO(data)) as file:
            width, channels = file.getsampwidth(), file.getnchannels()
            raw = np.frombuffer(file.readframes(file.getnframes()), np.uint8)
            rate = file.getframerate()
        if width in (1, 2, 3, 4):
            return Sound(_floats(raw, width).reshape(-1, channels), rate)
    samples, rate = _soundfile().read(io.BytesIO(data), dtype="float32", always_2d=True)
    return Sound(samples, int(rate))


def _floats(raw: Array, width: int) -> Array:
    """Return whole numbers of some bytes each as floats from -1 to 1."""
    if width == 1:  # the only ones without a sign
        return np.asarray((raw.astype(np.float32) - 128) / np.float32(128))
    wide = np.zeros((len(raw) // width, 4), np.uint8)
    wide[:, 4 - width :] = raw.reshape(-1, width)
    whole = wide.view("<i4")[:, 0]
    return np.asarray(whole / 2.0**31, np.float32)
