"""Images, as the bytes of their files or as raw pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import (
    Array,
    Place,
    Tiled,
    Type,
    check_one_of,
    field_of,
    shown,
)
from tensorlake_spark.datasets.types.media import image_codecs, media_bytes
from tensorlake_spark.datasets.types.media.image_headers import (
    FACTS,
    Facts,
    HeaderError,
    jpeg_facts,
)
from tensorlake_spark.datasets.types.media.jpeg_headers import beginnings, jpeg_sizes
from tensorlake_spark.datasets.types.media.media_bytes import Media, Pieces
from tensorlake_spark.datasets.types.tensor_struct import binary_of
from tensorlake_spark.datasets.types.tensors import check_dtype
from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.tensor.sparse import check_unmasked
from tensorlake_spark.tensor.spec import dtype_of

IMAGE = pa.struct(
    [
        pa.field("data", pa.binary()),
        pa.field("format", pa.string()),
        pa.field("height", pa.int32()),
        pa.field("width", pa.int32()),
        pa.field("channels", pa.int32()),
        pa.field("dtype", pa.string()),
        pa.field("crc", pa.int64()),
    ]
)
"""Storage of an image: its bytes, and what can be asked for without them."""

_ALIASES = {"jpg": "jpeg"}
_DTYPES = {"jpeg": ("uint8",), "webp": ("uint8",), "png": ("uint8", "uint16")}
_LONGEST = {"jpeg": 65_500, "webp": 16_383}  # pixels of a side that the encoders take
_CHANNELS = {"jpeg": (1, 3), "webp": (3, 4), "png": (1, 2, 3, 4)}


@dataclass(frozen=True, repr=False)
class Picture(Type):
    """What images and masks share: files of a format are stored as they are, arrays are encoded."""

    @property
    def reads_files(self) -> bool:
        return self.file_format() != "raw"

    def storage(self) -> pa.DataType:
        return IMAGE

    def file_format(self) -> str:
        """Return the format of the bytes."""
        raise NotImplementedError

    @property
    def header(self) -> Callable[[Any], Facts]:
        """What reads the facts of a file that are stored beside its bytes; raises HeaderError."""
        raise NotImplementedError

    def check_kind(self, channels: int, dtype: str) -> None:
        """Raise HeaderError if a file of so many channels and of a dtype is not what this column takes."""

    def check_file(self, data: bytes, number: int, place: Place) -> None:
        """Raise InvalidSampleError if bytes are not a file that this column takes."""
        try:
            height, width, channels, dtype = self.header(data)
            self.check_kind(channels, dtype)
        except HeaderError as error:
            remedy = _remedy(str(error))
            raise place.wrong(number, self.expected(), f"{error}", remedy, error) from error
        if height * width > media_bytes.pixel_bound():
            raise self._too_large(number, (height, width), place)

    def _too_large(self, number: int, size: tuple[int, int], place: Place) -> Exception:
        return place.wrong(
            number, f"at most {media_bytes.pixel_bound()} pixels", f"{size[0]} x {size[1]}",
            media_bytes.TRUSTED,
        )  # fmt: skip

    def encoded(self, value: Any, number: int, place: Place) -> bytes:
        """Return the bytes of what is no file: an array, or an image of Pillow."""
        raise NotImplementedError

    def expected(self) -> str:
        """Return what a sample may be, for messages."""
        return f"{self}"

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        files: list[Any] | None = Pieces.of(values)
        if files is None:
            files = [self._bytes(value, number, place) for number, value in enumerate(values)]
            if None in files:
                return self._some(files, place)
        return self._files(files, media_bytes.joined(files, place), place)

    def _some(self, values: list[bytes | None], place: Place) -> pa.Array:
        """Return files as a column, of which some are null."""
        there = np.fromiter((v is not None for v in values), bool, len(values))
        files, numbered = [v for v in values if v is not None], _Numbered(place, there)
        inner = self._files(files, media_bytes.joined(files, numbered), numbered)
        return inner.take(pa.array(np.cumsum(there) - 1, mask=~there))

    def _bytes(self, value: Any, number: int, place: Place) -> bytes | None:
        if value is None:
            return None
        data = media_bytes.bytes_of(value, number, place, self.expected())
        return self.encoded(value, number, place) if data is None else data

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        if pa.types.is_struct(values.type):
            if values.type.get_field_index("data") >= 0:
                return self._from_arrow(field_of(values, "data"), place)
            if values.type.get_field_index("bytes") < 0:
                raise place.wrong_type(0, self.expected(), f"values of type {values.type}")
            return self._from_list(values.to_pylist(), place)
        if pa.types.is_binary(values.type) and not values.null_count:
            return self._files(values.to_pylist(), values, place)
        return self._from_list(values.to_pylist(), place)

    def _files(self, files: list[bytes], data: pa.Array, place: Place) -> pa.Array:
        """Return files as a column; `data` is the same as Arrow has it."""
        # First, as it reads all bytes in order: a look at each file takes less time then.
        crcs = media_bytes.crcs_of(files)
        try:
            sizes, dtypes, kinds = self._read_headers(files, data)
            for kind in kinds:
                self.check_kind(*kind)
        except HeaderError:
            for number, file in enumerate(files):
                self.check_file(file, number, place)
            raise
        pixels = sizes[0].astype(np.int64) * sizes[1]
        bound = media_bytes.pixel_bound()
        if len(files) and int(pixels.max()) > bound:
            number = int(pixels.argmax())
            raise self._too_large(number, (sizes[0, number], sizes[1, number]), place)
        columns = {
            "data": data,
            "format": pa.repeat(pa.scalar(self.file_format(), pa.string()), len(files)),
            "height": sizes[0],
            "width": sizes[1],
            "channels": sizes[2],
            "dtype": dtypes,
            "crc": crcs,
        }
        return media_bytes.struct_of(IMAGE, columns, None, place)

    def _read_headers(
        self, files: list[bytes], data: pa.Array
    ) -> tuple[Array, Any, set[tuple[int, str]]]:
        """Return sizes of files (height, width, channels), their dtypes, and each kind of channels and dtype once.

        Raises HeaderError for a file that is not whole, or of another format.
        """
        if self.header is jpeg_facts:
            in_one_piece = pa.types.is_binary(data.type)
            sizes, known = jpeg_sizes(data if in_one_piece else beginnings(files))
            for number in np.flatnonzero(~known).tolist():
                sizes[:, number] = jpeg_facts(files[number])[:3]
            kinds = {(channels, "uint8") for channels in np.unique(sizes[2]).tolist()}
            return sizes, pa.repeat("uint8", len(files)), kinds
        facts = [*map(self.header, files)]
        sizes = np.array([fact[:3] for fact in facts], np.int32).reshape(-1, 3).T
        dtypes = [fact[3] for fact in facts]
        return np.ascontiguousarray(sizes), dtypes, {fact[2:] for fact in facts}

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        media = Media(array)
        if native:
            return media.all_checked()
        return [
            self.decoded(media.checked(number)) if there else None
            for number, there in enumerate(media.valid)
        ]

    def decoded(self, data: bytes) -> Array:
        """Return the pixels of a file."""
        return image_codecs.decoded(data, self.file_format())


@dataclass(frozen=True, repr=False)
class Image(Picture):
    """An image in each sample: the bytes of a file, or raw pixels.

    Bytes, paths and file objects of the format are stored as they are; their headers are checked
    (`types.media.image_headers` lists the checks). Arrays and images of Pillow are encoded. An image is read as an
    array of height x width x channels, or height x width if it has one channel. It is not turned by its EXIF
    orientation. Palettes and CMYK become RGB, and the transparency of a palette is left out.

    Parameters
    ----------
    format : str
        ``jpeg``, ``png``, ``webp`` or ``raw``.
    dtype : str
        The dtype of the pixels: ``uint8``; ``uint16`` for PNG of one channel; any dtype of numbers for ``raw``.
    channels : int, optional
        How many channels every image has to have; by default any number.
    quality : int
        Quality of arrays that are encoded as JPEG or WebP, 1 to 100.

    Examples
    --------
    >>> column = Image("png").encode([np.zeros((4, 5, 3), "u1")], "image")
    >>> Image("png").decode(column)[0].shape, column[0]["height"].as_py()
    ((4, 5, 3), 4)
    """

    format: str = "jpeg"
    dtype: str = "uint8"
    channels: int | None = None
    quality: int = 95
    kind: ClassVar[str] = "image"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.format, str):
            lower = self.format.lower()
            object.__setattr__(self, "format", _ALIASES.get(lower, lower))
        check_one_of(self.format, (*FACTS, "raw"), "format")
        object.__setattr__(self, "dtype", check_dtype(self.dtype))
        if self.format != "raw" and self.dtype not in _DTYPES[self.format]:
            raise InvalidOptionError(
                f"dtype={self.dtype!r} is not one that {self.format} has: {', '.join(_DTYPES[self.format])}; "
                "declare Image('raw', dtype=...)"
            )
        most = (1 << 31) - 1 if self.format == "raw" else 4
        if self.channels is not None:
            if type(self.channels) is not int or not 1 <= self.channels <= most:
                raise InvalidOptionError(
                    f"channels={self.channels!r:.80} is not a number from 1 to {most}"
                )
            if self.format != "raw" and self.channels not in _CHANNELS[self.format]:
                raise InvalidOptionError(
                    f"channels={self.channels} is not one of {_CHANNELS[self.format]}, which {self.format} has"
                )
        if type(self.quality) is not int or not 1 <= self.quality <= 100:
            raise InvalidOptionError(f"quality={self.quality!r:.80} is not a number from 1 to 100")

    def file_format(self) -> str:
        return self.format

    @property
    def header(self) -> Callable[[Any], Facts]:
        return FACTS[self.format]

    def check_kind(self, channels: int, dtype: str) -> None:
        if self.channels is not None and channels != self.channels:
            raise HeaderError(f"a {self.format} with {channels} channels")
        if dtype != self.dtype:
            raise HeaderError(f"a {self.format} of {dtype}")
        if dtype == "uint16" and channels != 1:
            raise HeaderError(f"a PNG of 16 bits with {channels} channels, which is not decoded")

    def encoded(self, value: Any, number: int, place: Place) -> bytes:
        array = self._array(value, number, place)
        if array.dtype == bool or array.dtype.name != self.dtype:
            raise place.wrong_type(
                number, self.expected(), shown(array), f"cast it to {self.dtype}"
            )
        channels = 1 if array.ndim == 2 else array.shape[2]
        allowed = (1,) if self.dtype == "uint16" else _CHANNELS[self.format]
        if channels not in allowed:
            raise place.wrong(
                number, self.expected(), f"{channels} channels",
                f"{self.format} has {' or '.join(map(str, allowed))}; convert it, or declare Image('raw')",
            )  # fmt: skip
        longest = _LONGEST.get(self.format)
        if longest is not None and max(array.shape[:2]) > longest:
            raise place.wrong(
                number, f"at most {longest} pixels a side, which {self.format} can have", f"shape {array.shape}",
                "make it smaller, or declare Image('png') or Image('raw')",
            )  # fmt: skip
        if array.ndim == 3 and channels == 1:
            array = array[..., 0]
        return image_codecs.encoded(np.ascontiguousarray(array), self.format, self.quality)

    def _array(self, value: Any, number: int, place: Place) -> Array:
        """Return an array or an image of Pillow as an array of two or three axes."""
        if image_codecs.is_pil(value):
            try:
                array = image_codecs.array_of(value)
            except (OSError, ValueError, SyntaxError) as error:  # it is closed, or its file damaged
                raise place.wrong(
                    number,
                    self.expected(),
                    f"a PIL image that cannot be read: {error}",
                    cause=error,
                ) from error
            if value.mode == "1":
                array = array.astype(np.uint8) * 255
        elif isinstance(value, np.ndarray) or hasattr(value, "__array__"):
            try:
                check_unmasked(value)
                array = np.asarray(value)
            except (TypeError, ValueError, RuntimeError) as error:
                raise place.wrong_type(
                    number, self.expected(), shown(value), f"{error}", error
                ) from error
        else:
            remedy = "give an array or a PIL image"
            if self.format != "raw":
                remedy = "give bytes, a path, a file, an array or a PIL image"
            raise place.wrong_type(number, self.expected(), shown(value), remedy)
        if array.ndim not in (2, 3) or 0 in array.shape:
            raise place.wrong(
                number,
                self.expected(),
                f"shape {array.shape}",
                "give height x width, or height x width x channels",
            )
        if (
            max(array.shape[:2]) >= 1 << 31
            or array.shape[0] * array.shape[1] > media_bytes.pixel_bound()
        ):
            raise place.wrong(
                number, f"at most {media_bytes.pixel_bound()} pixels", f"shape {array.shape}"
            )
        if (
            self.channels is not None
            and (1 if array.ndim == 2 else array.shape[2]) != self.channels
        ):
            raise place.wrong(
                number, self.expected(), f"shape {array.shape}", f"give {self.channels} channels"
            )
        return array

    # ------------------------------------------------------------------ raw pixels

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        if self.format == "raw":
            return self._raw(values, place)
        return super()._from_list(values, place)

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        if self.format == "raw":
            if pa.types.is_struct(values.type) and values.type.get_field_index("data") >= 0:
                return self._raw(self.decode(values), place)
            raise place.wrong_type(
                0, self.expected(), f"values of type {values.type}", "give arrays"
            )
        return super()._from_arrow(values, place)

    def _raw(self, values: list[Any], place: Place) -> pa.Array:
        parts: list[Any] = []
        for number, value in enumerate(values):
            part = value
            if isinstance(value, Tiled):
                part = self._tiled(value, number, place)
            elif value is not None:
                part = self._array(value, number, place)
                if part.dtype.name != self.dtype:
                    raise place.wrong_type(
                        number, self.expected(), shown(part), f"cast it to {self.dtype}"
                    )
            parts.append(part)
        valid = np.fromiter((p is not None for p in parts), bool, len(parts))
        given = np.fromiter((isinstance(p, np.ndarray) for p in parts), bool, len(parts))
        data = binary_of(parts, given, self.dtype, place)
        shapes = [None if p is None else p.shape for p in parts]
        columns = {
            "data": data,
            "format": ["raw"] * len(parts),
            "height": [s and s[0] for s in shapes],
            "width": [s and s[1] for s in shapes],
            "channels": [s and (1 if len(s) == 2 else s[2]) for s in shapes],
            "dtype": [self.dtype] * len(parts),
            "crc": [None if d is None else c for d, c in _with_crcs(data)],
        }
        return media_bytes.struct_of(IMAGE, columns, valid, place)

    def _tiled(self, value: Tiled, number: int, place: Place) -> Tiled:
        channels = 1 if len(value.shape) == 2 else value.shape[-1]
        if (
            value.dtype != self.dtype
            or len(value.shape) not in (2, 3)
            or self.channels not in (None, channels)
        ):
            raise place.wrong(number, self.expected(), f"{value.dtype} of shape {value.shape}")
        return value

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        if self.format != "raw":
            return super().decode(array, native)
        media = Media(array)
        facts = zip(
            media.facts("height"),
            media.facts("width"),
            media.facts("channels"),
            media.facts("dtype"),
        )
        out: list[Any] = []
        for number, (height, width, channels, name) in enumerate(facts):
            if not media.valid[number]:
                out.append(None)
                continue
            if None in (height, width, channels) or name != self.dtype:
                raise CorruptDataError(
                    f"an image is not {self.dtype} of a known size; its table was changed by others"
                )
            shape = (height, width) if channels == 1 else (height, width, channels)
            if media.data[number] is None:
                out.append(Tiled(shape, name))
                continue
            data, dtype = media.checked(number), dtype_of(name)
            if len(data) != int(np.prod(shape, dtype=object)) * dtype.itemsize:
                raise CorruptDataError(
                    f"an image has {len(data)} bytes, which is not {name} of shape {shape}"
                )
            pixels = np.frombuffer(bytearray(data), dtype.newbyteorder("<")).reshape(shape)
            out.append(data if native else pixels.astype(dtype, copy=False))
        return out


class _Numbered(Place):
    """A place for values of which those that are null were left out."""

    _numbers: Array

    def __init__(self, place: Place, there: Array) -> None:
        super().__init__(place.column, place.first)
        object.__setattr__(self, "_numbers", np.flatnonzero(there))

    def _error(self, kind: Any, number: int, *rest: Any) -> Any:
        return super()._error(kind, int(self._numbers[number]), *rest)


def _with_crcs(data: pa.Array) -> list[tuple[Any, int]]:
    pieces = data.to_pylist()
    return [(d, media_bytes.crcs_of([d or b""])[0]) for d in pieces]


def _remedy(text: str) -> str:
    if "truncated" in text or "checksum" in text:
        return "read the file again, or leave the sample out"
    return "convert it, or declare the format that it has" if text.startswith("a ") else ""
