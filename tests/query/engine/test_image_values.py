"""JPEGs of a batch in one array."""

import io

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image as Pillow

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.datasets.types.media import image_codecs
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.query.engine.image_values import image_batch


def files(sizes, channels=3):
    rng = np.random.default_rng(4)
    out = []
    for size in sizes:
        pixels = rng.integers(0, 256, (*size, 3), np.uint8)
        held = io.BytesIO()
        Pillow.fromarray(pixels if channels == 3 else pixels[..., 0]).save(held, "jpeg")
        out.append(held.getvalue())
    return out


@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_one_size_are_those_of_the_type(channels):
    kind = types.Image("jpeg")
    column = kind.encode(files([(20, 30)] * 5, channels), "image")
    found = image_batch(kind, column, BatchBuffers(1 << 24))
    assert np.array_equal(found, np.stack(kind.decode(column)))
    part = image_batch(kind, column.slice(2, 2), BatchBuffers(1 << 24))
    assert np.array_equal(part, found[2:4])


def test_other_columns_are_left_to_their_types():
    kind, memory = types.Image("jpeg"), BatchBuffers(1 << 24)
    mixed = kind.encode([*files([(20, 30), (20, 31)])], "image")
    assert image_batch(kind, mixed, memory) is None
    assert image_batch(kind, kind.encode([files([(4, 4)])[0], None], "image"), memory) is None
    png = types.Image("png")
    assert image_batch(png, png.encode([np.zeros((4, 4, 3), "u1")], "image"), memory) is None
    assert image_batch(kind, kind.encode([], "image"), memory) is None


def test_conditions_on_images_of_one_size(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"image": types.Image("jpeg")})
    ds.extend({"image": files([(40, 50)] * 12)})
    means = [ds["image"][k][5:20, 5:20].mean() for k in range(12)]
    found = ds.query("SELECT sid FROM dataset WHERE array_mean(image[5:20, 5:20]) > 127.5")
    assert found["sid"].tolist() == [k for k in range(12) if means[k] > 127.5]
    corners = ds.query("SELECT DISTINCT image FROM dataset WHERE image[0, 0, 0] >= 0")
    assert len(corners) == 12


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "key", [(slice(3, 9),), (4, slice(None, None, -2)), (slice(-90, -75), ...), (slice(5, 5),), (slice(0, 500),), (None, 3), (200,)],
    ids=str,
)  # fmt: skip
def test_a_part_of_images_is_that_of_the_type(key, channels):
    kind, memory = types.Image("jpeg"), BatchBuffers(1 << 24)
    column = kind.encode(files([(90, 30)] * 3, channels), "image")
    whole = kind.decode(column)
    found = image_batch(kind, column, memory, key)
    tops = image_batch(kind, column, None, key)
    if key in [(None, 3), (200,)]:  # NumPy says what is wrong with it
        assert tops is None
        assert np.array_equal(found, np.stack(whole))
        return
    for number, image in enumerate(whole):
        assert np.array_equal(found[number][key], image[key])
        assert np.array_equal(tops[number][key], image[key])
        assert tops[number].shape == image.shape


def test_parts_of_images_of_many_sizes(tmp_path, monkeypatch):
    ds = tl.dataset(str(tmp_path / "ds"), {"image": types.Image("jpeg")})
    sizes = [(40 + 9 * k, 50) for k in range(12)]
    ds.extend({"image": files(sizes)})
    wanted = [ds["image"][k][2:12, 5:20] for k in range(12)]
    asked = []
    decode = image_codecs.simplejpeg().decode_jpeg

    def counted(data, color, *rest):
        asked.append(len(rest[-1]))
        return decode(data, color, *rest)

    monkeypatch.setattr(image_codecs.simplejpeg(), "decode_jpeg", counted)
    view = ds.query("SELECT image[2:12, 5:20] AS crop FROM dataset")
    for crop, want in zip(view["crop"], wanted, strict=True):
        assert np.array_equal(crop, want)
    assert asked == [16] * 12


def test_a_damaged_image_is_left_to_its_type():
    kind = types.Image("jpeg")
    column = kind.encode(files([(20, 30)] * 3), "image")
    good = column.field("crc").to_pylist()
    fields = {field.name: column.field(field.name) for field in column.type}
    fields["crc"] = pa.array([good[0], good[1] ^ 1, good[2]], column.type.field("crc").type)
    damaged = pa.StructArray.from_arrays(list(fields.values()), fields=list(column.type))
    assert image_batch(kind, damaged, BatchBuffers(1 << 24)) is None
    with pytest.raises(tl.CorruptDataError):
        kind.decode(damaged)
