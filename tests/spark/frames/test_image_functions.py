"""Functions of images in Python and SQL, beside Pillow."""

import io

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyspark.sql import functions as f
from small_datasets import SIZES, make_dataset, picture

import tensorlake_spark as tl
from tensorlake_spark.errors import CorruptDataError, InvalidOptionError, InvalidTensorError
from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark import plain_errors
from tensorlake_spark.spark.frames.image_columns import HOW, resized
from tensorlake_spark.spark.frames.image_functions import decoded_column, resized_column
from tensorlake_spark.spark.source.schemas import tensor_column, tensors_of


def pixels_of(data):
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image)


def test_images_of_every_kind_are_decoded():
    rng = np.random.default_rng(0)
    colour, grey = rng.integers(0, 256, (5, 4, 3), np.uint8), rng.integers(0, 256, (5, 4), np.uint8)
    wide = rng.random((3, 2, 2)).astype("f4")
    kinds = {
        tl.types.Image("png"): [colour, grey, None],
        tl.types.Image("raw", dtype="float32"): [wide, None],
        tl.types.SegmentMask(): [grey % 5],
        tl.types.BinaryMask(): [grey > 100],
    }
    for kind, values in kinds.items():
        out = decoded_column(kind.encode(values, "x"))
        for row, value in enumerate(values):
            if value is None:
                assert not out[row].is_valid
                continue
            found = next(tensors_of(out.slice(row, 1)))
            np.testing.assert_array_equal(found, value)
            assert found.dtype == value.dtype
    jpeg = tl.types.Image("jpeg").encode([colour], "x")
    (found,) = tensors_of(decoded_column(jpeg))
    np.testing.assert_array_equal(found, tl.types.Image("jpeg").decode(jpeg)[0])
    (found,) = tensors_of(decoded_column(pa.array([picture(1)])))
    np.testing.assert_array_equal(found, pixels_of(picture(1)))
    (found,) = tensors_of(decoded_column(tensor_column([wide])))
    np.testing.assert_array_equal(found, wide)


def test_a_mask_of_a_palette_keeps_its_numbers():
    mask = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4), "P")
    mask.putpalette([*range(255, -1, -1)] * 3)
    out = io.BytesIO()
    mask.save(out, "PNG")
    column = tl.types.SegmentMask().encode([out.getvalue()], "x")
    (found,) = tensors_of(decoded_column(column))
    assert found.tolist() == np.arange(12).reshape(3, 4).tolist()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "bool"])
@pytest.mark.parametrize("channels", [(), (1,), (3,), (5,)])
def test_sizes_are_those_of_pillow(how, dtype, channels):
    image = (np.random.default_rng(3).random((7, 9, *channels)) * 200).astype(dtype)
    found = resized(image, 4, 12, how)
    assert (found.shape, found.dtype) == ((4, 12, *channels), image.dtype)
    if how == "nearest":
        assert {*found.ravel().tolist()} <= {*image.ravel().tolist()}
    for plane in range(*channels) if channels else [None]:
        here, there = (a if plane is None else a[..., plane] for a in (image, found))
        wanted = Image.fromarray(here.astype("f4")).resize((12, 4), getattr(Image, how.upper()))
        wanted = np.asarray(wanted)
        if dtype == "bool":
            sure = abs(wanted - 0.5) > 1e-6
            np.testing.assert_array_equal(there[sure], (wanted >= 0.5)[sure])
        else:
            np.testing.assert_allclose(there.astype("f8"), np.clip(wanted, 0, None), atol=1.01)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_the_largest_integers_do_not_turn_over(dtype):
    """What was clipped to 2**31 - 1 as a float became -2**31."""
    bounds = np.iinfo(dtype)
    for number in (bounds.min, bounds.max):
        found = resized(np.full((3, 3), number, dtype), 5, 4, "bilinear")
        assert found.dtype == dtype
        np.testing.assert_allclose(found.astype("f8"), np.full((5, 4), float(number)))


def test_python_and_sql_agree(spark, tmp_path):
    ds = make_dataset(tmp_path / "ds")
    tf.register(spark)
    frame = spark.read.format("delta").load(ds.uri)
    row = (
        frame.where("sid = 2")
        .select(
            tf.image_decode("image").alias("a"),
            f.call_function("image_decode", "image").alias("b"),
            tf.tensor_shape(tf.image_resize("image", 6, 8)).alias("c"),
            f.expr("tensor_shape(image_resize(image, 6, 8, 'nearest'))").alias("d"),
            f.expr("tensor_slice(image_decode(image, 'null', sid), '0, ::2')").alias("e"),
            f.expr("image_decode(null)").alias("f"),
        )
        .first()
    )  # fmt: skip
    wanted = ds.sample(2)["image"]
    assert (row.a.shape, bytes(row.a.data)) == ([*wanted.shape], wanted.tobytes())
    assert row.b == row.a
    assert row.c == row.d == [6, 8, 3]
    assert bytes(row.e.data) == wanted[0, ::2].tobytes()
    assert row.f is None
    sizes = spark.sql(
        f"SELECT sid, tensor_shape(image_decode(image)) AS shape FROM delta.`{ds.uri}` WHERE image IS NOT NULL"
    )
    assert {r.sid: tuple(r.shape[:2]) for r in sizes.collect()} == {
        n: size for n, size in enumerate(SIZES) if n != 5
    }


def test_bad_bytes_are_named_or_null(spark):
    tf.register(spark)
    data = [(7, bytearray(picture(0))), (8, bytearray(b"junk")), (9, None)]
    spark.createDataFrame(data, "sid bigint, image binary").createOrReplaceTempView("files")
    told = "image_decode: the sample with sid 8: 4 bytes"
    with pytest.raises(CorruptDataError, match=told), plain_errors():
        spark.sql("SELECT image_decode(image, sid => sid) FROM files").collect()
    rows = spark.sql("SELECT sid, image_resize(image, 2, 2, on_error => 'null') AS t FROM files")
    assert {row.sid for row in rows.collect() if row.t is None} == {8, 9}


def test_mistakes_are_named():
    good = pa.array([picture(0), picture(1)])
    with pytest.raises(CorruptDataError, match="row 1 of the batch: 4 bytes are not a JPEG"):
        decoded_column(pa.array([picture(0), b"junk"]))
    stored = tl.types.Image("png").encode([picture(0)], "x")
    fields = dict(zip(stored.type.names, stored.flatten(), strict=True))
    changed = pa.StructArray.from_arrays([*{**fields, "crc": pa.array([1])}.values()], [*fields])
    with pytest.raises(CorruptDataError, match="not those that were written"):
        decoded_column(changed)
    with pytest.raises(InvalidTensorError, match="image_decode does not take int64"):
        decoded_column(pa.array([1]))
    with pytest.raises(InvalidOptionError, match="on_error='skip'"):
        decoded_column(good, pa.array(["skip"] * 2))
    with pytest.raises(InvalidTensorError, match="one row and"):
        decoded_column(good, pa.array(["null", "raise"]))
    with pytest.raises(InvalidOptionError, match="height=0"):
        resized_column(good, pa.array([0, 0]), pa.array([1, 1]))
    with pytest.raises(InvalidOptionError, match="bound of an image"):
        resized_column(good, pa.array([1 << 20] * 2), pa.array([1 << 20] * 2))
    with pytest.raises(InvalidOptionError, match="how='cubic'"):
        resized_column(good, pa.array([1, 1]), pa.array([1, 1]), pa.array(["cubic"] * 2))
    with pytest.raises(InvalidTensorError, match="is not an image"):
        resized(np.zeros((2, 2, 2, 2)), 1, 1, "bilinear")
    with pytest.raises(InvalidOptionError, match="width is of type str"):
        tf.image_resize("image", 1, "2")
