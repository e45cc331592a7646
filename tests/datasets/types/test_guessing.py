"""Types by values."""

import datetime as dt
import decimal
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from sample_files import image_file, pixels

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import (
    Audio,
    Image,
    Json,
    Scalar,
    Sequence,
    Tensor,
    Text,
    Video,
)
from tensorlake_spark.datasets.types.guessing import guess

ONES = np.ones((2, 3), "f4")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 2], Scalar("int64")), ([1, 2.5], Scalar("float64")), ([True], Scalar("bool")), (["a"], Text()),
        ([np.int8(1), np.int16(2)], Scalar("int16")), ([dt.date(2024, 1, 1)], Scalar("date")),
        ([dt.datetime(2024, 1, 1)], Scalar("timestamp")), ([decimal.Decimal(1)], Scalar("decimal(38, 18)")),
        ([ONES, ONES], Tensor("float32", (2, 3))), ([ONES, ONES[:1]], Tensor("float32", (None, 3))),
        ([ONES, ONES[0]], Tensor("float32")), ([np.float32(1)], Scalar("float32")), ([np.array(1)], Scalar("int64")),
        ([image_file("jpeg")], Image("jpeg")), ([image_file("png")], Image("png")), ([b"RIFF....WAVE"], Audio("wav")),
        ([b"....ftypmp42"], Video()), ([b"abc", b"\xff\xfb"], Scalar("bytes")), ([Path("a/b.JPG")], Image("jpeg")),
        ([PIL.Image.fromarray(pixels())], Image("png")), ([{"a": 1}], Json()), ([[1], [], [2, 3]], Sequence("int64")),
        ([[], [1.5]], Sequence("float64")), ([[{"a": 1}]], Json()), ([["a"], {"b": 1}], Json()),
        ([[ONES], [ONES[:1]]], Sequence(Tensor("float32", (None, 3)))),
    ],
)  # fmt: skip
def test_values_have_a_type_that_takes_them(values, kind):
    found = guess("x", values)
    assert found == kind
    if not isinstance(found, (Audio, Video)) and not isinstance(values[0], Path):
        assert len(found.encode(values, "x")) == len(values)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None],
        [1, "a"],
        [ONES, ONES.astype(float)],
        [object()],
        [Path("a.xyz")],
        [True, 1],
        [np.array(1j)],
    ],
)
def test_what_no_type_takes_is_an_error_that_names_the_column(values):
    with pytest.raises(tl.InvalidOptionError, match="column 'x'"):
        guess("x", values)
