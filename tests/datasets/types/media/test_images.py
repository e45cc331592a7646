"""Columns of images."""

import io

import numpy as np
import PIL.Image
import pyarrow as pa
import pytest
from sample_files import image_file, pixels

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import Image, Tiled
from tensorlake_spark.datasets.types.media.media_bytes import MAX_PIXELS


def pillow(data, mode="RGB"):
    return np.asarray(PIL.Image.open(io.BytesIO(data)).convert(mode))


@pytest.mark.parametrize("form", ["jpeg", "png", "webp"])
def test_files_are_stored_as_they_are_and_read_as_pillow_reads_them(form, tmp_path):
    data = image_file(form)
    path = tmp_path / "a file"
    path.write_bytes(data)
    given = [data, None, bytearray(data), memoryview(data), path, str(path), io.BytesIO(data), {"bytes": data, "path": None}]  # fmt: skip
    column = Image(form).encode(given, "image")
    column.validate(full=True)
    assert column.type == Image(form).storage()
    stored = column.flatten()[0].to_pylist()
    assert [d == data for d in stored] == [g is not None for g in given]
    assert column.flatten()[2].to_pylist() == [8, None] + [8] * 6
    found = Image(form).decode(column)
    assert found[1] is None
    for array in [found[0], *found[2:]]:
        # Decoders of JPEG may round differently.
        assert np.abs(array.astype(int) - pillow(data)).max() <= (4 if form == "jpeg" else 0)
    assert Image(form).decode(column.slice(1, 2), native=True) == [None, data]


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_jpegs_of_one_and_of_four_channels(mode):
    data = image_file("jpeg", mode=mode)
    column = Image("jpeg").encode([data], "image")
    (found,) = Image("jpeg").decode(column)
    wanted = pillow(data, "L" if mode == "L" else "RGB")
    assert found.shape == wanted.shape
    assert np.abs(found.astype(int) - wanted).max() <= 4
    assert column[0]["channels"].as_py() == (1 if mode == "L" else 3)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_pngs_of_all_kinds(mode):
    data = image_file("png", mode=mode)
    (found,) = Image("png").decode(Image("png").encode([data], "image"))
    wanted = pillow(data, {"1": "L", "P": "RGB"}.get(mode, mode))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_arrays_come_back_from_png(channels):
    array = pixels(channels=channels)
    kind = Image("png")
    column = kind.encode([array, PIL.Image.fromarray(array)], "image")
    for found in kind.decode(column):
        np.testing.assert_array_equal(found, array)
    assert column[0]["channels"].as_py() == channels


def test_png_of_16_bits():
    array = pixels(channels=1, dtype="uint16")
    kind = Image("png", dtype="uint16")
    (found,) = kind.decode(kind.encode([array[..., None]], "image"))
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found, array)
    with pytest.raises(tl.InvalidSampleError, match="a png of uint16"):
        Image("png").encode(kind.encode([array], "x"), "image")


def test_arrays_as_jpeg_and_webp_are_near():
    array = np.full((16, 16, 3), (200, 100, 50), np.uint8)
    for form in ("jpeg", "webp"):
        (found,) = Image(form).decode(Image(form).encode(array[None], "image"))
        assert np.abs(found.astype(int) - array).max() < 8


@pytest.mark.parametrize("dtype", ["uint8", "bool", "float32", "int64"])
def test_raw_pixels_are_kept_exactly(dtype):
    kind = Image("raw", dtype=dtype)
    given = [
        pixels().astype(dtype),
        None,
        pixels(3, 4, 1).astype(dtype)[:, ::2],
        Tiled((7, 8, 3), dtype),
    ]
    column = kind.encode(given, "image", first=4)
    column.validate(full=True)
    for some, count in ((column, 0), (column.slice(1), 1), (kind.encode(column, "image"), 0)):
        for found, wanted in zip(kind.decode(some), given[count:], strict=True):
            if isinstance(wanted, np.ndarray):
                np.testing.assert_array_equal(found, wanted)
                assert found.dtype == wanted.dtype
                assert found.flags.writeable
            else:
                assert found == wanted
    assert column[3].as_py() == {
        "data": None, "format": "raw", "height": 7, "width": 8, "channels": 3, "dtype": dtype, "crc": None,
    }  # fmt: skip


JPEG = image_file("jpeg")


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (Image("jpeg"), image_file("png"), "expected Image('jpeg'), got a png; convert it"),
        (Image("jpeg"), JPEG[:-30], "truncated"),
        (Image("jpeg", channels=1), JPEG, "3 channels"),
        (Image("jpeg"), pixels(channels=4), "got 4 channels; jpeg has 1 or 3"),
        (Image("jpeg"), pixels().astype(float), "float64 of shape"),
        (Image("jpeg"), np.zeros((3, 4, 5, 6), "u1"), "height x width"),
        (Image("jpeg"), np.zeros((0, 4, 3), "u1"), "height x width"),
        (Image("png", channels=3), pixels(channels=1), "give 3 channels"),
        (Image("jpeg"), 5, "give bytes, a path"),
        (Image("jpeg"), "https://example.org/a.jpg", "declare Link"),
        (Image("jpeg"), "no such file", "No such file"),
        (Image("raw"), JPEG, "give an array or a PIL image"),
        (Image("raw"), pixels().astype("f4"), "cast it to uint8"),
    ],
)
def test_what_does_not_fit_is_refused_and_named(kind, value, says):
    good = JPEG if kind.format == "jpeg" else pixels()
    with pytest.raises(tl.InvalidSampleError) as error:
        kind.encode([None, value] if kind.channels else [good, None, value], "photo", first=40)
    assert str(error.value).startswith(
        f"column 'photo', sample {41 if kind.channels else 42}: expected "
    )
    assert says in str(error.value)


def test_bombs_are_refused(monkeypatch):
    monkeypatch.setenv(MAX_PIXELS, "71")
    for value in (JPEG, pixels()):
        with pytest.raises(tl.InvalidSampleError, match="at most 71 pixels"):
            Image("jpeg").encode([value], "image")
    monkeypatch.setenv(MAX_PIXELS, "72")
    Image("jpeg").encode([JPEG], "image")
    monkeypatch.setenv(MAX_PIXELS, "many")
    with pytest.raises(tl.InvalidOptionError, match=MAX_PIXELS):
        Image("jpeg").encode([JPEG], "image")


def test_arrow_columns_of_bytes_and_of_hugging_face_are_taken():
    given = pa.array([JPEG, None])
    wanted = Image("jpeg").encode([JPEG, None], "image")
    struct = pa.array([{"bytes": JPEG, "path": "x"}, None])
    for column in (given, given.cast(pa.large_binary()), struct, wanted, pa.chunked_array([given])):
        assert Image("jpeg").encode(column, "image") == wanted
    assert Image("jpeg").encode(pa.array([JPEG] * 2), "image")[1] == wanted[0]
    with pytest.raises(tl.InvalidSampleTypeError, match="struct<a"):
        Image("jpeg").encode(pa.array([{"a": 1}]), "image")


def test_changed_bytes_are_found():
    fields = Image("jpeg").encode([JPEG], "image").flatten()
    names = [f.name for f in Image().storage()]
    data = bytearray(JPEG)
    data[-20] ^= 1
    changed = pa.StructArray.from_arrays([pa.array([bytes(data)]), *fields[1:]], names)
    with pytest.raises(tl.CorruptDataError, match="CRC-32"):
        Image("jpeg").decode(changed)
    unknown = pa.StructArray.from_arrays([pa.array([b"text"])], ["data"])
    with pytest.raises(tl.CorruptDataError, match="cannot be decoded"):
        Image("jpeg").decode(unknown)
    with pytest.raises(tl.CorruptDataError, match="no field 'data'"):
        Image("jpeg").decode(pa.array([{"x": 1}]))


def test_broken_pixels_are_found_when_they_are_decoded():
    data = image_file("png", 40, 40)
    broken = data[:60] + bytes(50) + data[110:]
    column = Image("png").encode([broken], "image")
    with pytest.raises(tl.CorruptDataError, match="cannot be decoded as png"):
        Image("png").decode(column)


@pytest.mark.parametrize(
    "options",
    [
        {"format": "gif"}, {"format": 5}, {"dtype": "float32"}, {"channels": 4}, {"channels": 0},
        {"quality": 0}, {"nullable": 1}, {"dtype": "x"},
    ],
)  # fmt: skip
def test_options_are_checked(options):
    with pytest.raises(tl.InvalidOptionError):
        Image(**options)


def test_names_of_formats_and_columns_without_images():
    assert Image("JPG") == Image("jpeg")
    assert Image("jpeg").encode([], "image").type == Image("jpeg").storage()


def test_damaged_files_are_to_be_read_again_and_not_to_be_converted():
    data = image_file("png")
    with pytest.raises(tl.InvalidSampleError, match="wrong checksum; read the file again"):
        Image("png").encode([data[:20] + bytes([data[20] ^ 1]) + data[21:]], "x")


@pytest.mark.parametrize("form", ["png", "jpeg", "webp", "raw"])
def test_pixels_under_a_mask_of_numpy_are_no_values(form):
    hidden = np.zeros((4, 5, 3), bool)
    hidden[0, 0] = True
    pixels = np.ma.array(np.ones((4, 5, 3), np.uint8), mask=hidden)
    with pytest.raises(tl.InvalidSampleTypeError, match=r"sample 1: .*masked"):
        Image(form).encode([None, pixels], "image")


@pytest.mark.parametrize(("form", "longest"), [("jpeg", 65_500), ("webp", 16_383)])
@pytest.mark.parametrize("wide", [True, False])
def test_a_side_that_is_longer_than_the_format_can_have(form, longest, wide, capfd):
    kind, right = Image(form), np.zeros((2, longest, 3), "u1")
    wrong = np.zeros((2, longest + 1, 3), "u1")
    if not wide:
        right, wrong = right.swapaxes(0, 1), wrong.swapaxes(0, 1)
    assert kind.decode(kind.encode([right], "image"))[0].shape == right.shape
    for value in (wrong, PIL.Image.fromarray(wrong)):
        with pytest.raises(
            tl.InvalidSampleError,
            match=f"sample 1: expected at most {longest} pixels a side, which {form} can have, got shape .*; "
            r"make it smaller, or declare Image\('png'\)",
        ):
            kind.encode([right, value], "image")
    assert Image("png").encode([wrong], "image")[0]["width"].as_py() == wrong.shape[1]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("form", ["png", "raw"])
def test_images_of_pillow_that_cannot_be_read_are_named(form, tmp_path):
    whole = io.BytesIO()
    PIL.Image.fromarray(np.arange(30000, dtype="u1").reshape(100, 100, 3)).save(whole, "png")
    closed, broken = PIL.Image.open(whole), PIL.Image.open(io.BytesIO(whole.getvalue()[:500]))
    closed.close()
    for image in (closed, broken):
        with pytest.raises(
            tl.InvalidSampleError, match=r"sample 1: .* a PIL image that cannot be read"
        ):
            Image(form).encode([None, image], "photo")
        ds = tl.dataset(tmp_path / "ds", {"photo": Image(form)}, tile_bytes=100)
        with pytest.raises(
            tl.InvalidSampleError, match=r"sample 0: .* a PIL image that cannot be read"
        ):
            ds.append({"photo": image})
