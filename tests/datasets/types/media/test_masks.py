"""Masks, as PNG."""

import io

import numpy as np
import PIL.Image
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import BinaryMask, SegmentMask


def png(array, mode=None, bits=None):
    image = PIL.Image.fromarray(array)
    if mode == "P":
        image.putpalette(bytes(range(256)) * 3)
    out = io.BytesIO()
    image.save(out, "png", **({"bits": bits} if bits else {}))
    return out.getvalue()


RNG = np.random.default_rng(1)
YES = RNG.random((9, 13)) > 0.5


def test_binary_masks_come_back_and_are_small():
    kind = BinaryMask()
    given = [
        YES,
        None,
        YES.astype(int),
        png(YES),
        png(YES.astype(np.uint8) * 255),
        PIL.Image.fromarray(YES),
    ]
    column = kind.encode(given, "mask")
    for found, value in zip(kind.decode(column), given, strict=True):
        if value is None:
            assert found is None
        else:
            assert found.dtype == bool
            np.testing.assert_array_equal(found, YES)
    assert column[0]["dtype"].as_py() == "bool"
    big = kind.encode([np.zeros((1000, 1000), bool)], "mask")
    assert len(big[0]["data"].as_py()) < 2000


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_segment_masks_come_back(dtype):
    numbers = RNG.integers(0, 200, (5, 7))
    kind = SegmentMask(dtype=dtype)
    given = [numbers, None, numbers.astype("u1")[..., None], png(numbers.astype("u1"))]
    for found, value in zip(kind.decode(kind.encode(given, "mask")), given, strict=True):
        if value is not None:
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, numbers)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_a_palette_gives_its_numbers_and_not_its_colours(bits):
    numbers = RNG.integers(0, 2**bits, (6, 5)).astype(np.uint8)
    kind = SegmentMask()
    (found,) = kind.decode(kind.encode([png(numbers, "P", bits)], "mask"))
    np.testing.assert_array_equal(found, numbers)


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (BinaryMask(), np.full((2, 2), 2), "mask > 0"),
        (BinaryMask(), np.ones((2, 2, 3), bool), "give height x width"),
        (BinaryMask(), png(np.zeros((2, 2, 3), "u1")), "colour type 2"),
        (BinaryMask(), [[True]], "give an array"),
        (SegmentMask(), np.full((2, 2), 256), "0 to 255"),
        (SegmentMask(), np.full((2, 2), -1), "0 to 255"),
        (SegmentMask(), np.ones((2, 2)), "numbers of classes"),
        (SegmentMask(["a", "b"]), np.full((2, 2), 2), "numbers of 2 classes"),
        (SegmentMask(), png(np.full((2, 2), 300, np.uint16)), "16 bits"),
    ],
)
def test_what_does_not_fit_is_refused(kind, value, says):
    with pytest.raises(tl.InvalidSampleError, match=says):
        kind.encode([None, value], "mask")


def test_a_number_to_ignore_is_no_class():
    kind = SegmentMask(["a", "b"], ignore=255)
    array = np.array([[0, 1, 255]])
    np.testing.assert_array_equal(kind.decode(kind.encode([array], "mask"))[0], array)
    for options in (
        {"ignore": 256},
        {"dtype": "int32"},
        {"names": "ab"},
        {"names": ["a", "a"]},
        {"names": []},
    ):
        with pytest.raises(tl.InvalidOptionError):
            SegmentMask(**options)


@pytest.mark.parametrize("kind", [BinaryMask(), SegmentMask()])
def test_pixels_under_a_mask_of_numpy_are_no_values(kind):
    pixels = np.ma.array(YES.astype(np.uint8), mask=YES)
    with pytest.raises(tl.InvalidSampleTypeError, match=r"sample 1: .*masked"):
        kind.encode([None, pixels], "mask")
    whole = np.ma.array(YES.astype(np.uint8), mask=False)
    assert np.array_equal(kind.decode(kind.encode([whole], "mask"))[0], YES)


@pytest.mark.parametrize(
    ("value", "dtype", "remedy"),
    [
        (-1, "uint8", "a number from 0 on, and name it by ignore="),
        (256, "uint8", "declare dtype='uint16'"),
        (1 << 16, "uint16", "number the classes from 0 on"),
    ],
)
def test_the_remedy_fits_numbers_of_classes_out_of_range(value, dtype, remedy):
    with pytest.raises(tl.InvalidSampleError, match=f"expected numbers from 0 to .*; .*{remedy}"):
        tl.types.SegmentMask(dtype=dtype).encode([np.full((2, 3), value)], "mask")
