"""What the golden dataset holds, made by arithmetic alone: its columns, its samples, and what was done to them."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import zlib
from typing import Any

import numpy as np

import tensorlake_spark as tl
from tensorlake_spark import types

Array = np.ndarray[Any, Any]

TILE_BYTES = 4096
"""A sample of more bytes is kept as tiles."""

WITH_ONE, DELETED, UPDATED = 6, 2, 4
"""Samples that are written together; the one that is deleted; the one that is updated."""


def schema() -> dict[str, Any]:
    """Return a column of every type."""
    image = types.Image("png")
    return {
        "number": "int64", "small": "uint8", "half": "float16", "big": "uint64", "flag": "bool",
        "day": "date", "time": "timestamp", "wall": "timestamp_ntz", "price": "decimal(9, 2)", "raw_bytes": "bytes",
        "text": types.Text(), "json": types.Json(), "label": types.ClassLabel(["cat", "dog", "eel"]),
        "tensor": types.Tensor("int16", (None, 3)), "any": types.Tensor("complex64"), "scan": types.Tensor("uint8", (None, None)),
        "embedding": types.Embedding(4), "codes": types.Embedding(4, quantize="int8"),
        "cloud": types.PointCloud(("x", "y", "z", "t")), "image": image, "pixels": types.Image("raw", "uint16"),
        "marked/boxes": types.BoundingBox("xywh", normalized=True), "marked/mask": types.SegmentMask(["ground", "thing"], ignore=255),
        "marked/yes": types.BinaryMask(), "marked/outline": types.Polygon(), "marked/joints": types.Keypoints(["head", "foot"]),
        "film": types.Video(), "slice": types.Dicom(), "sound": types.Audio("wav"), "tags": types.Sequence(types.ClassLabel(["a", "b"])), "link": types.Link(image),
        "photo": types.Image("png", apart=True),
    }  # fmt: skip


def image(seed: int, height: int, width: int) -> Array:
    """Return a picture, another one for every seed."""
    y, x, c = np.mgrid[:height, :width, :3]
    return ((y * 31 + x * 17 + c * 71 + seed * 13) % 256).astype(np.uint8)


def png(array: Array) -> bytes:
    """Return a PNG that no library had a hand in, so that its bytes are the same for ever."""
    height, width, _ = array.shape
    rows = b"".join(b"\0" + array[y].tobytes() for y in range(height))
    out = io.BytesIO()
    out.write(b"\x89PNG\r\n\x1a\n")
    head = height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
    for kind, data in ((b"IHDR", width.to_bytes(4, "big") + head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):  # fmt: skip
        out.write(len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big"))  # fmt: skip
    return out.getvalue()


def scan(seed: int) -> Array:
    """Return an array that is kept as tiles."""
    return (np.arange(80 * 90).reshape(80, 90) * (seed + 1) % 7 * 30).astype(np.uint8)


def dicom(array: Array) -> bytes:
    """Return a DICOM file of one slice."""
    import pydicom
    from pydicom.dataset import FileDataset, FileMetaDataset

    meta = FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
    meta.MediaStorageSOPInstanceUID = "1.2.3"
    head = FileDataset(None, {}, file_meta=meta, preamble=bytes(128))
    head.Rows, head.Columns = array.shape
    head.SamplesPerPixel, head.PhotometricInterpretation = 1, "MONOCHROME2"
    head.BitsAllocated = head.BitsStored = 16
    head.HighBit, head.PixelRepresentation, head.Modality = 15, 0, "CT"
    head.PixelData = array.tobytes()
    out = io.BytesIO()
    head.save_as(out, enforce_file_format=True)
    return out.getvalue()


def sample(i: int) -> dict[str, Any]:
    """Return one sample: exact in every column, so that what is read is what is here."""
    n = i % 3
    mask = (image(i, 5, 6)[..., 0] > 128).astype(np.uint8)
    return {
        "number": i - 2, "small": 250 + i, "half": i / 4, "big": 2**64 - 1 - i, "flag": i % 2 == 0,
        "day": dt.date(2024, 2, 27 + n), "time": dt.datetime(2024, 2, 28, 12, i, 5, 678, tzinfo=dt.timezone.utc),
        "wall": dt.datetime(1999, 12, 31, 23, 59, i), "price": decimal.Decimal(f"{i}.25"), "raw_bytes": bytes([i, 0, 255]),
        "text": f"sample {i}: ä{'x' * 40}", "json": {"i": i, "list": [None, i / 2]}, "label": n,
        "tensor": np.arange(3 * n, dtype=np.int16).reshape(n, 3) - i, "any": np.full((1,) * n, 1 + i * 1j, np.complex64),
        "scan": scan(i) if n == 1 else scan(i)[:3, :4],
        "embedding": np.array([i, -1, 0.5, 2.0**-i], np.float32), "codes": np.array([127, -i, 0, 1], np.float32),
        "cloud": np.arange(4 * n, dtype=np.float32).reshape(n, 4), "image": png(image(i, 4 + n, 5)),
        "pixels": (image(i, 3, 4)[..., :2].astype(np.uint16) * 257),
        "marked/boxes": np.array([[0.25, 0.5, 0.125 * k, 0.5] for k in range(n)], np.float32).reshape(-1, 4),
        "marked/mask": mask * (1 if n else 255), "marked/yes": mask.astype(bool),
        "marked/outline": [np.array([[0, 0], [4, 0], [4, 3 + k]], np.float32) for k in range(n)],
        "marked/joints": np.array([[[i, 2, 2], [0, 0, 0]]] * n, np.float32).reshape(n, 2, 3),
        "film": None, "slice": SLICE if i == 0 else None,
        "sound": (np.arange(8 + i, dtype=np.int16)[:, None] * 1000, 8000), "tags": [k % 2 for k in range(n)],
        "link": {"url": f"https://images.example.org/{i}.png", "size": 1000 + i, "etag": f'"{i}"'},
        "photo": png(image(100 + i, 6, 6)),
    }  # fmt: skip


NEW = {
    "number": -1, "label": 2, "scan": scan(9), "marked/boxes": np.array([[0, 0, 1, 1]], np.float32),
    "photo": png(image(200, 7, 6)),
}  # fmt: skip
"""What the sample `UPDATED` gets."""


FRAMES = 7
"""Of the film, which only the first sample has: three pictures that are keys, the others from those before them."""

SLICE = np.arange(20, dtype=np.uint16).reshape(4, 5) * 200
"""Of the DICOM file, which only the first sample has."""


def write(path: str, film: bytes) -> None:
    """Write the dataset: samples with one of nulls in one commit; then one is updated, and one deleted."""
    ds = tl.dataset(path, schema(), tile_bytes=TILE_BYTES)
    first = {**sample(0), "film": film, "slice": dicom(SLICE)}
    ds.extend([first, *(sample(i) for i in range(1, WITH_ONE)), {"number": 99}])
    ds.update(UPDATED, NEW)
    ds.delete(DELETED)


def expected() -> dict[int, dict[str, Any]]:
    """Return the samples that are there at the end, by their sids."""
    out = {i: sample(i) for i in range(WITH_ONE)}
    out[UPDATED] |= NEW
    out[WITH_ONE] = {**dict.fromkeys(schema()), "number": 99}
    del out[DELETED]
    return out
