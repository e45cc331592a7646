"""The law of the loops that resize images: they give what Pillow gives, one axis after the other.

``python tests/support/resize_law.py`` holds the compiled loops to it; a page of tests holds the same loops, run by Python.
"""

from __future__ import annotations

import numpy as np
from PIL import Image
from resized_images import BILINEAR, picture

from tensorlake_spark.loader.decoding import resize_loops

SIZES = (
    (40, 50, 16, 20),
    (40, 50, 60, 70),
    (37, 53, 20, 60),
    (53, 37, 60, 30),
    (9, 9, 9, 4),
    (1, 1, 3, 2),
    (64, 3, 1, 1),
)


def by_pillow(image, box, size):
    """Pillow's answer for a box of floats."""
    plain = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    top, left, bottom, right = box
    height, width = size
    if bottom - top > height:
        plain = plain.resize((plain.width, height), BILINEAR, (0, top, plain.width, bottom))
        plain = plain.resize((width, height), BILINEAR, (left, 0, right, height))
    else:
        plain = plain.resize((width, plain.height), BILINEAR, (left, 0, right, plain.height))
        plain = plain.resize((width, height), BILINEAR, (0, top, width, bottom))
    return np.asarray(plain).reshape(*size, image.shape[2])


def check(height: int, width: int, new_height: int, new_width: int, channels: int) -> int:
    """Hold the loops to the law for some boxes; return how many."""
    image = picture(height, width, channels).reshape(height, width, channels)
    fixed = image.view()
    fixed.flags.writeable = False
    rng = np.random.default_rng(height * width)
    whole = (0, 0, height, width)
    cases = [(whole, (0.0, 0.0, float(height), float(width)))]
    for _ in range(6):
        y, x = np.sort(rng.integers(0, height + 1, 2)), np.sort(rng.integers(0, width + 1, 2))
        if y[0] == y[1] or x[0] == x[1]:
            continue
        part = int(y[0]), int(x[0]), int(y[1] - y[0]), int(x[1] - x[0])
        ends = 1 - 0.9 * rng.random(2)
        cases.append(
            (part, (0.1, 0.2, 0.1 + (part[2] - 0.1) * ends[0], 0.2 + (part[3] - 0.2) * ends[1]))
        )
    for part, box in cases:
        top, left, rows, columns = part
        inside = np.ascontiguousarray(image[top : top + rows, left : left + columns])
        want = by_pillow(inside, box, (new_height, new_width))
        for flip in (False, True):
            out = np.full((new_height, new_width, channels), 77, np.uint8)
            resize_loops.resize(fixed, *part, *map(float, box), flip, out)
            np.testing.assert_array_equal(out, want[:, ::-1] if flip else want)
    return len(cases)


if __name__ == "__main__":
    resize_loops.warm("resize")
    print(
        sum(
            check(*size, channels) for size in (*SIZES, (480, 640, 224, 224)) for channels in (1, 3)
        )
    )
