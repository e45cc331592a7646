"""A dataset that the tests of queries share, and what is in it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types

COUNT = 60


@dataclass
class Shapes:
    """A dataset, and its values."""

    ds: Any
    images: list
    labels: Any
    scores: Any
    vectors: Any
    boxes: list
    truth: list


@pytest.fixture(scope="session")
def shapes(tmp_path_factory):
    """Sixty images with boxes, in two files; nothing changes it."""
    rng = np.random.default_rng(3)
    images = [rng.integers(0, 256, (40 + i % 5, 48, 3), np.uint8) for i in range(COUNT)]
    images = [
        np.clip(image.astype(int) + 4 * (i % 13) - 24, 0, 255).astype(np.uint8)
        for i, image in enumerate(images)
    ]
    corners = [
        np.sort(rng.random((1 + i % 3, 2, 2)) * 40, axis=1).reshape(-1, 4) for i in range(COUNT)
    ]
    boxes = [c.astype("f4") for c in corners]
    truth = [
        (c + rng.normal(0, 0.02 if i % 2 else 4, c.shape)).astype("f4") for i, c in enumerate(boxes)
    ]
    truth = [np.sort(t.reshape(-1, 2, 2), axis=1).reshape(-1, 4) for t in truth]
    scores = rng.random(COUNT).astype("f4")
    labels = rng.integers(0, 3, COUNT)
    vectors = rng.normal(size=(COUNT, 8)).astype("f4")
    ds = tl.dataset(
        str(tmp_path_factory.mktemp("shapes") / "ds"),
        {
            "images": types.Image("raw"),
            "labels": types.ClassLabel(["cat", "dog", "cow"]),
            "boxes": types.BoundingBox("xyxy"),
            "training/boxes": types.BoundingBox("xyxy"),
            "training/score": "float32",
            "emb": types.Embedding(8),
            "note": "string",
        },
    )
    for part in (slice(0, 40), slice(40, COUNT)):
        ds.extend(
            {
                "images": images[part],
                "labels": labels[part],
                "boxes": boxes[part],
                "training/boxes": truth[part],
                "training/score": scores[part],
                "emb": vectors[part],
                "note": [None if i % 7 == 0 else f"n{i % 4}" for i in range(COUNT)][part],
            }
        )
    return Shapes(ds, images, labels, scores, vectors, boxes, truth)
