"""A small dataset with columns of many kinds, for tests of what reads and writes datasets."""

import io

import numpy as np
from PIL import Image

import tensorlake_spark as tl

SIZES = [(3 + n % 5, 4 + n % 3) for n in range(12)]
COLUMNS = {
    "image": tl.types.Image("png"),
    "mask": tl.types.SegmentMask(),
    "label": tl.types.ClassLabel(["cat", "dog"]),
    "caption": "string",
    "training/boxes": tl.types.BoundingBox("xyxy"),
    "training/vector": tl.types.Embedding(4, quantize="float16"),
}


def picture(number, form="PNG"):
    """Return the bytes of an image whose size and pixels follow from a number."""
    pixels = np.random.default_rng(number).integers(0, 256, (*SIZES[number % 12], 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form)
    return out.getvalue()


def sample(number):
    """Return a sample; the fifth has no image."""
    rng = np.random.default_rng(number)
    corners = np.sort(rng.random((number % 3, 2, 2)).astype("f4"), axis=1)
    return {
        "image": None if number == 5 else picture(number),
        "mask": rng.integers(0, 9, SIZES[number % 12], np.uint8),
        "label": number % 2,
        "caption": None if number % 4 == 3 else f"sample {number}",
        "training/boxes": corners.reshape(-1, 4),
        "training/vector": rng.random(4).astype("f2").astype("f4"),
    }


def make_dataset(place, count=len(SIZES)):
    """Create a dataset of so many samples, in two commits."""
    ds = tl.dataset(str(place), COLUMNS)
    ds.extend([sample(number) for number in range(count // 2)])
    ds.extend([sample(number) for number in range(count // 2, count)])
    return ds
