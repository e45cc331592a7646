"""Datasets that loaders read."""

import io
import threading

import numpy as np
import pytest
from PIL import Image

import tensorlake_spark as tl

COUNT = 300


def jpeg(number, side=16):
    """A JPEG file whose pixels follow from its number; every fifth one is wider."""
    rng = np.random.default_rng(number)
    width = side + (number % 5 == 0) * 8
    pixels = rng.integers(0, 256, (side, width, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "jpeg", quality=90)
    return out.getvalue()


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """300 samples in three files: an array of one shape, a label, a ragged one, a text, images of two sizes."""
    place = str(tmp_path_factory.mktemp("digits"))
    schema = {
        "x": tl.types.Tensor("float32", (3, 4)),
        "label": "int32",
        "boxes": tl.types.Tensor("int16", (None, 2)),
        "name": "string",
        "image": tl.types.Image("jpeg"),
    }
    ds = tl.dataset(place, schema)
    rng = np.random.default_rng(0)
    for first in range(0, COUNT, 100):
        numbers = range(first, first + 100)
        ds.extend(
            {
                "x": rng.random((100, 3, 4), np.float32),
                "label": [number // 30 for number in numbers],
                "boxes": [np.full((number % 4, 2), number, np.int16) for number in numbers],
                "name": [f"sample {number}" for number in numbers],
                "image": [jpeg(number) for number in numbers],
            }
        )
    return ds


@pytest.fixture
def loader_threads():
    """A function that says which threads of loaders are alive."""
    return lambda: [t for t in threading.enumerate() if t.name.startswith("tensorlake-loader")]
