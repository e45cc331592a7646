"""Batches of images: the same pixels as decoding each in full, cutting by NumPy and resizing by Pillow."""

import io
import threading
import zlib

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from resized_images import cut, picture, resized

from tensorlake_spark.datasets.types.media import image_codecs
from tensorlake_spark.datasets.types.media.masks import BinaryMask, SegmentMask
from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.loader.decoding.bad_image import BadImage
from tensorlake_spark.loader.decoding.image_batches import ImageFacts, decode_images
from tensorlake_spark.loader.decoding.region import Region


def facts_of(form, images, files):
    shapes = np.array([i.shape if i.ndim == 3 else (*i.shape, 1) for i in images], np.int32)
    crcs = np.array([zlib.crc32(f) for f in files], np.int64)
    return ImageFacts(form, *shapes.reshape(-1, 3).T, crcs, images[0].dtype.name)


def batch(form, sizes, channels=3):
    """Images, the bytes of their files, and what is known of them."""
    images = [picture(h, w, channels, seed) for seed, (h, w) in enumerate(sizes)]
    if form == "raw":
        files = [image.tobytes() for image in images]
    else:
        files = [image_codecs.encoded(image, form, 90) for image in images]
        images = [image_codecs.decoded(file, form) for file in files]
    return images, files, facts_of(form, images, files)


FORMS = [
    ("jpeg", 1),
    ("jpeg", 3),
    ("png", 1),
    ("png", 2),
    ("png", 4),
    ("webp", 3),
    ("raw", 1),
    ("raw", 5),
]


@pytest.mark.parametrize(("form", "channels"), FORMS)
def test_whole_images_of_one_shape_are_one_array(form, channels):
    images, files, facts = batch(form, [(20, 31)] * 5, channels)
    found = decode_images([memoryview(f) for f in files], facts)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, np.stack(images))


@pytest.mark.parametrize(("form", "channels"), FORMS)
def test_images_of_several_shapes_are_a_list(form, channels):
    images, files, facts = batch(form, [(20, 31), (1, 1), (20, 31), (31, 20)], channels)
    found = decode_images(files, facts)
    assert isinstance(found, list)
    for one, image in zip(found, images, strict=True):
        np.testing.assert_array_equal(one, image)
        assert one.flags.writeable


def test_a_sample_without_an_image_is_none():
    images, files, facts = batch("jpeg", [(20, 31)] * 3)
    found = decode_images(
        [files[0], None, files[2]], facts, [None, Region((9, 9, 900, 9)), Region()]
    )
    assert found[1] is None
    np.testing.assert_array_equal(found[2], images[2])


def test_no_images_are_no_images():
    facts = ImageFacts("jpeg", *np.zeros((3, 0), np.int32), np.zeros(0, np.int64))
    assert len(decode_images([], facts, [])) == 0


@pytest.mark.parametrize("form", ["png", "raw", "jpeg"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_region_is_what_numpy_cuts_and_pillow_resizes(form, channels):
    images, files, facts = batch(form, [(40, 50), (60, 33), (16, 16), (90, 90)], channels)
    wanted = [
        Region((3, 5, 20, 24), (16, 16)),
        Region((0, 1, 60, 30), (16, 16), flip=True, exact=True),
        Region(size=(16, 16)),
        Region((70, 60, 16, 16), flip=True),
    ]
    found = decode_images(files, facts, wanted)
    assert found.shape[:3] == (4, 16, 16)
    for number, (region, image) in enumerate(zip(wanted, images)):
        part = image if region.box is None else cut(image, region.box)
        one = resized(part, region.size) if region.size else part
        np.testing.assert_array_equal(found[number], one[:, ::-1] if region.flip else one)


def test_regions_of_several_sizes_are_a_list():
    images, files, facts = batch("jpeg", [(40, 50), (60, 33)])
    found = decode_images(files, facts, [None, Region((2, 3, 4, 5))])
    np.testing.assert_array_equal(found[0], images[0])
    np.testing.assert_array_equal(found[1], images[1][2:6, 3:8])


@pytest.mark.parametrize("form", ["jpeg", "png"])
def test_the_array_that_is_given_is_used_if_it_fits(form):
    images, files, facts = batch(form, [(20, 31)] * 3)
    for good in (np.empty((3, 20, 31, 3), "u1"), np.empty((9, 20, 31, 3), "u1")):
        found = decode_images(files, facts, out=good)
        assert np.shares_memory(found, good)
        np.testing.assert_array_equal(found, np.stack(images))
    frozen = np.zeros((3, 20, 31, 3), "u1")
    frozen.flags.writeable = False
    for bad in (
        np.empty((2, 20, 31, 3), "u1"), np.empty((3, 20, 32, 3), "u1"), np.empty((3, 20, 31, 3), "f4"),
        np.empty((3, 20, 62, 3), "u1")[:, :, ::2], frozen,
    ):  # fmt: skip
        found = decode_images(files, facts, out=bad)
        assert not np.shares_memory(found, bad)
        np.testing.assert_array_equal(found, np.stack(images))


def test_bytes_come_from_buffers_of_arrow():
    images, files, facts = batch("jpeg", [(20, 31)] * 3)
    signed = [pa.py_buffer(file) for file in files]
    for given in (signed, [*map(memoryview, signed)], [*map(bytearray, files)]):
        np.testing.assert_array_equal(decode_images(given, facts), np.stack(images))


# ------------------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "raw"])
@pytest.mark.parametrize("place", [0, 50, -1])
def test_bytes_that_are_not_those_that_were_written_are_named(form, place):
    _, files, facts = batch(form, [(20, 31)] * 3)
    damaged = bytearray(files[1])
    damaged[place] ^= 1
    files[1] = bytes(damaged)
    with pytest.raises(BadImage, match=r"image 1 of the batch .*\(CRC-32") as caught:
        decode_images(files, facts)
    assert caught.value.number == 1
    assert isinstance(caught.value, CorruptDataError)


@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "raw"])
@pytest.mark.parametrize(
    "damage", [lambda f: f[:-30], lambda f: b"", lambda f: b"\0" * len(f) + b"\0", lambda f: f[:2]]
)
@pytest.mark.parametrize("region", [None, Region(size=(5, 5))])
def test_an_image_that_cannot_be_decoded_is_named(form, damage, region):
    _, files, facts = batch(form, [(20, 31)] * 3)
    files[2] = damage(files[2])
    for crcs in (None, np.full(3, -1)):
        with pytest.raises(BadImage, match="image 2 of the batch") as caught:
            decode_images(files, facts._replace(crcs=crcs), [region] * 3)
        assert caught.value.number == 2


@pytest.mark.parametrize("form", ["jpeg", "png", "webp"])
@pytest.mark.parametrize(
    ("height", "width", "channels"),
    [(19, 31, 3), (21, 31, 3), (31, 20, 3), (20, 31, 1), (20, 31, 4)],
)
@pytest.mark.parametrize("region", [None, Region(size=(5, 5))])
def test_an_image_of_another_shape_than_its_sample_says_is_named(
    form, height, width, channels, region
):
    _, files, facts = batch(form, [(20, 31)] * 2)
    said = facts._replace(
        heights=np.array([20, height]),
        widths=np.array([31, width]),
        channels=np.array([3, channels]),
    )
    with pytest.raises(BadImage, match="image 1 of the batch"):
        decode_images(files, said, [region] * 2)


def test_a_sample_that_says_that_it_is_enormous_is_refused_before_anything_is_allocated(
    monkeypatch,
):
    _, files, facts = batch("jpeg", [(20, 31)] * 2)
    huge = np.array([20, (1 << 31) - 1])
    with pytest.raises(BadImage, match=r"image 1 .*TENSORLAKE_MAX_PIXELS"):
        decode_images(files, facts._replace(heights=huge, widths=huge))
    monkeypatch.setenv("TENSORLAKE_MAX_PIXELS", "619")
    with pytest.raises(BadImage, match="more than 619 pixels"):
        decode_images(files, facts)


@pytest.mark.parametrize(
    "region",
    [
        Region((0, 0, 21, 31)), Region((1, 0, 20, 31)), Region((0, -1, 5, 5)), Region((0, 0, 0, 5)), Region((0, 27, 5, 5)),
        Region(None, (8, 8), (0, 0, 9, 8)), Region(None, None, (0, 0, 21, 3)),
    ],
)  # fmt: skip
def test_a_region_outside_of_its_image_is_named(region):
    _, files, facts = batch("jpeg", [(20, 31)] * 2)
    with pytest.raises(InvalidOptionError, match="of image 1 of the batch"):
        decode_images(files, facts, [None, region])


def test_many_threads_decode_tiny_and_large_images_at_once():
    tiny, large = batch("jpeg", [(8, 8)] * 20), batch("jpeg", [(90, 120)] * 4)
    found, wrong = [], []

    def work(images, files, facts):
        for _ in range(5):
            if not (decode_images(files, facts) == np.stack(images)).all():
                wrong.append(1)
        found.append(1)

    threads = [threading.Thread(target=work, args=one) for one in [tiny, large] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), wrong) == (8, [])


def test_an_error_lets_the_next_thread_in():
    _, files, facts = batch("jpeg", [(8, 8)] * 2)
    for _ in range(3):
        with pytest.raises(BadImage):
            decode_images([files[0], b"none"], facts._replace(crcs=None))
    assert len(decode_images(files, facts)) == 2


@pytest.mark.parametrize("mode", ["CMYK", "L", "RGB"])
@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"exif": b"Exif\0\0" + bytes(5000)}]
)
def test_every_kind_of_jpeg_is_as_images_of_datasets_are(mode, options):
    out = io.BytesIO()
    Image.fromarray(picture(20, 31)).convert(mode).save(out, "jpeg", **options)
    image = image_codecs.decoded(out.getvalue(), "jpeg")
    facts = facts_of("jpeg", [image], [out.getvalue()])
    np.testing.assert_array_equal(decode_images([out.getvalue()], facts)[0], image)
    wanted = Region((4, 5, 15, 16), (3, 4), exact=True)
    found = decode_images([out.getvalue()], facts, [wanted])[0]
    np.testing.assert_array_equal(found, resized(cut(image, wanted.box), (3, 4)))
    smaller = decode_images([out.getvalue()], facts, [wanted._replace(exact=False)])[0]
    assert np.abs(smaller.astype(int) - found).mean() < 6


# ------------------------------------------------------------------------------ masks


def masks(kind, count=3, **options):
    rng = np.random.default_rng(5)
    stored = [rng.integers(0, 9, (20, 31)).astype(options.get("dtype", "u1")) for _ in range(count)]
    if kind is BinaryMask:
        stored = [mask > 4 for mask in stored]
    column = kind(**options).encode(stored, "mask")
    files = column.field("data").to_pylist()
    facts = facts_of("png", stored, files)._replace(is_mask=True)
    return stored, files, facts


@pytest.mark.parametrize(
    ("kind", "options"), [(BinaryMask, {}), (SegmentMask, {}), (SegmentMask, {"dtype": "uint16"})]
)
def test_masks_are_their_classes(kind, options):
    stored, files, facts = masks(kind, **options)
    found = decode_images(files, facts)
    assert found.dtype == stored[0].dtype
    np.testing.assert_array_equal(found, np.stack(stored))
    wanted = [Region((2, 3, 10, 20), (5, 40), None, flip) for flip in (False, True, False)]
    found = decode_images(files, facts, wanted)
    for one, mask, region in zip(found, stored, wanted):
        part = Image.fromarray(cut(mask, region.box).astype("i4"))
        near = np.asarray(part.resize((40, 5), Image.Resampling.NEAREST)).astype(mask.dtype)
        np.testing.assert_array_equal(one, near[:, ::-1] if region.flip else near)


def test_a_mask_with_a_palette_is_its_numbers():
    numbers = np.arange(12, dtype="u1").reshape(3, 4)
    image = Image.fromarray(numbers, "P")
    image.putpalette(bytes(range(255, -1, -1)) * 3)
    out = io.BytesIO()
    image.save(out, "png")
    facts = ImageFacts("png", *np.array([[3], [4], [1]]), is_mask=True)
    np.testing.assert_array_equal(decode_images([out.getvalue()], facts)[0], numbers)


def test_a_mask_of_another_kind_than_its_sample_says_is_named():
    _, files, facts = masks(SegmentMask, dtype="uint16")
    for wrong in (facts._replace(dtype="uint8"), facts._replace(heights=facts.heights + 1)):
        with pytest.raises(BadImage, match=r"image 0 of the batch .* and its sample says"):
            decode_images(files, wrong._replace(crcs=None))
