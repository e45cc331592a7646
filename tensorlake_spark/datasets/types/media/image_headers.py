"""Size and kind of an image from its first bytes, and whether its last ones are there. Nothing is decoded.

What is checked:

- JPEG: it begins with SOI; every segment up to the frame header lies within the data; the frame is baseline,
  extended or progressive with 8 bits a sample and 1, 3 or 4 components; its height and width are not 0; the data
  end with EOI, or have it after the first scan (some cameras write more behind it).
- PNG: the signature; IHDR comes first, with its checksum and a colour type and depth that exist; the data end with
  IEND.
- WebP: the size of the RIFF is that of the data; the first chunk is VP8, VP8L or VP8X and has its mark.

What lies between is checked when the image is decoded, and by the checksum that is stored with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from zlib import crc32

from tensorlake_spark.errors import InvalidOptionError

Facts = tuple[int, int, int, str]
"""Height, width, channels when decoded, and dtype."""

FORMATS = ("jpeg", "png", "webp")

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
SEGMENTS = frozenset([0xC4, 0xC8, 0xCC, *range(0xDB, 0xFF), *range(0x02, 0xC0)])
"""Markers of segments that may come before the frame header of a JPEG, and have a length."""
DECODABLE = (0xC0, 0xC1, 0xC2, 0xC9, 0xCA)
"""Markers of the frame headers of those that are decoded."""
_PNG_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"
# Colour type: channels when decoded, depths that exist.
_PNG_KINDS = {
    0: (1, (1, 2, 4, 8, 16)), 2: (3, (8, 16)), 3: (3, (1, 2, 4, 8)), 4: (2, (8, 16)), 6: (4, (8, 16)),
}  # fmt: skip


MAX_PIXELS = "TENSORLAKE_MAX_PIXELS"
"""Names the environment variable for the pixels that an image of a dataset may have; 2 ** 30 by default."""

TRUSTED = f"if you trust it, set {MAX_PIXELS} to more, on executors too"
"""What to do about an image that has more."""


def pixel_bound() -> int:
    """Return how many pixels an image may have.

    Raises
    ------
    InvalidOptionError
        If the environment variable is no number above 0.
    """
    text = os.environ.get(MAX_PIXELS, str(1 << 30))
    if not text.isdecimal() or not int(text):
        raise InvalidOptionError(f"{MAX_PIXELS}={text!r:.80} is not a number above 0")
    return int(text)


class HeaderError(ValueError):
    """The bytes are no image of the format, or not a whole one; the text says what is wrong."""


def jpeg_facts(data: bytes) -> Facts:
    """Return what the header of a JPEG says. An image in CMYK counts as RGB, as it is decoded.

    Raises
    ------
    HeaderError
        If it is no JPEG that can be decoded, or is truncated.
    """
    if data[:3] != b"\xff\xd8\xff":
        raise HeaderError(_other(data, "jpeg"))
    at = 2
    try:
        while True:
            marker = data[at + 1]
            if data[at] != 0xFF:  # also after a segment whose length is less than 2
                raise HeaderError(f"a JPEG that has no marker at byte {at}")
            if marker in SEGMENTS:
                at += 2 + (data[at + 2] << 8 | data[at + 3])
            elif marker in _FRAMES:
                break
            elif marker == 0xFF:  # a byte of filling
                at += 1
            elif marker == 0x01 or 0xD0 <= marker <= 0xD7:
                at += 2
            else:
                raise HeaderError("a JPEG without a frame header")
        length, depth = data[at + 2] << 8 | data[at + 3], data[at + 4]
        height, width = data[at + 5] << 8 | data[at + 6], data[at + 7] << 8 | data[at + 8]
        parts = data[at + 9]
    except IndexError:
        raise HeaderError(f"a JPEG that is truncated in its header ({len(data)} bytes)") from None
    if marker not in DECODABLE or depth != 8:
        raise HeaderError(
            f"a JPEG of a kind that is not decoded (marker {marker:#x}, {depth} bits)"
        )
    if length != 8 + 3 * parts or parts not in (1, 3, 4) or not height or not width:
        raise HeaderError(
            f"a JPEG whose header is impossible ({height} x {width}, {parts} components)"
        )
    if data[-2:] != b"\xff\xd9" and not _ends(data, at + 2 + length):
        raise HeaderError(f"a JPEG that is truncated: no end marker in {len(data)} bytes")
    return height, width, 1 if parts == 1 else 3, "uint8"


def _ends(data: bytes, at: int) -> bool:
    """Whether there is an end marker after the first scan; `at` is the first segment after the frame header."""
    last = len(data) - 4
    while at <= last and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xDA:
            return data.find(b"\xff\xd9", at) >= 0
        at += 1 if marker == 0xFF else 2 + (data[at + 2] << 8 | data[at + 3])
    return False


def png_facts(data: bytes) -> Facts:
    """Return what the header of a PNG says. An image with a palette counts as RGB, as it is decoded.

    Raises
    ------
    HeaderError
        If it is no PNG, or is truncated.
    """
    height, width, colour, depth = png_header(data)
    return height, width, _PNG_KINDS[colour][0], "uint16" if depth == 16 else "uint8"


def png_header(data: bytes) -> tuple[int, int, int, int]:
    """Return height, width, colour type and depth of a PNG."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise HeaderError(_other(data, "png"))
    if len(data) < 33 or data[8:16] != b"\x00\x00\x00\rIHDR":
        raise HeaderError(f"a PNG without a header ({len(data)} bytes)")
    if crc32(data[12:29]) != int.from_bytes(data[29:33], "big"):
        raise HeaderError("a PNG whose header has a wrong checksum")
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    depth, colour = data[24], data[25]
    if (
        colour not in _PNG_KINDS
        or depth not in _PNG_KINDS[colour][1]
        or data[26]
        or data[27]
        or data[28] > 1
    ):
        raise HeaderError(
            f"a PNG of a kind that does not exist (colour type {colour}, {depth} bits)"
        )
    if not 0 < width < 1 << 31 or not 0 < height < 1 << 31:
        raise HeaderError(f"a PNG of an impossible size ({height} x {width})")
    if data[-12:] != _PNG_END:
        raise HeaderError(f"a PNG that is truncated: no end chunk in {len(data)} bytes")
    return height, width, colour, depth


def webp_facts(data: bytes) -> Facts:
    """Return what the header of a WebP says.

    Raises
    ------
    HeaderError
        If it is no WebP, or is truncated.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        raise HeaderError(_other(data, "webp"))
    size = int.from_bytes(data[4:8], "little")
    if size + 8 != len(data) and size + (size & 1) + 8 != len(data):
        raise HeaderError(
            f"a WebP that is truncated: it says {size + 8} bytes, and has {len(data)}"
        )
    kind, alpha = data[12:16], False
    if len(data) < (25 if kind == b"VP8L" else 30):
        raise HeaderError(f"a WebP without a header ({len(data)} bytes)")
    if kind == b"VP8X":
        alpha = bool(data[20] & 0x10)
        width = int.from_bytes(data[24:27], "little") + 1
        height = int.from_bytes(data[27:30], "little") + 1
    elif kind == b"VP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        width, height, alpha = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, bool(bits >> 28 & 1)
    elif kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width = int.from_bytes(data[26:28], "little") & 0x3FFF
        height = int.from_bytes(data[28:30], "little") & 0x3FFF
    else:
        raise HeaderError(f"a WebP whose first chunk is {kind!r}")
    if not width or not height:
        raise HeaderError(f"a WebP of an impossible size ({height} x {width})")
    return height, width, 4 if alpha else 3, "uint8"


FACTS: dict[str, Callable[[bytes], Facts]] = {
    "jpeg": jpeg_facts,
    "png": png_facts,
    "webp": webp_facts,
}
"""What reads the header of a format."""


def format_of(data: bytes) -> str | None:
    """Return the format of an image by its first bytes, None for others.

    Examples
    --------
    >>> format_of(bytes.fromhex("ffd8ffe0")), format_of(b"hello")
    ('jpeg', None)
    """
    if data[:3] == b"\xff\xd8\xff":
        return "jpeg"
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return "png"
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def _other(data: bytes, wanted: str) -> str:
    found = format_of(data)
    if found:
        return f"a {found}"
    return (
        f"{len(data)} bytes that begin with {bytes(data[:8])!r} and are no {wanted}"
        if data
        else "no bytes"
    )
