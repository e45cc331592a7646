"""Folders of classes, beside what Pillow reads."""

import io

import numpy as np
import pytest
from PIL import Image

from tensorlake_spark.datasets.sources.sample_source import FILES
from tensorlake_spark.datasets.sources.source_kinds import found_at, source_of
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError


def fill(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def test_images_and_classes_are_those_of_the_folders(tmp_path, make_picture, read_all):
    files = {f"{label}/{n}.png": make_picture(n) for label in ("cat", "dog") for n in range(3)}
    fill(tmp_path, {**files, "README.md": b"hello", "cat/.hidden.png": b"no image"})
    source = source_of(tmp_path, file_names=True)
    assert found_at(tmp_path) == "imagefolder: 6 images in 2 classes"
    samples = read_all(source)
    assert {s["file"]: (s["image"], s["label"]) for s in samples} == {
        name: (data, name.partition("/")[0]) for name, data in files.items()
    }
    assert source.schema["label"].names == ("cat", "dog")


def test_folders_of_train_and_val_are_splits(tmp_path, make_picture, read_all):
    fill(
        tmp_path,
        {
            f"{split}/{label}/a/b.jpg": make_picture(0, "JPEG")
            for split in ("val", "train")
            for label in "xyz"
        },
    )
    samples = read_all(source_of(tmp_path))
    assert [(s["split"], s["label"]) for s in samples] == [
        (split, label) for split in ("train", "val") for label in "xyz"
    ]
    only = source_of(tmp_path, split="val")
    assert [s["label"] for s in read_all(only)] == ["x", "y", "z"]
    assert "split" not in only.schema
    with pytest.raises(InvalidOptionError, match="no split 'test'; it has train, val"):
        source_of(tmp_path, split="test")


def test_a_folder_without_classes_has_no_labels(tmp_path, make_picture, read_all):
    fill(tmp_path, {"1.webp": make_picture(0, "WEBP")})
    source = source_of(tmp_path)
    assert list(source.schema) == ["image"]
    assert len(read_all(source)) == 1


def test_formats_that_differ_need_a_word_and_are_converted_without_loss(
    tmp_path, make_picture, read_all
):
    files = {"a/1.png": make_picture(1), "a/2.bmp": make_picture(2, "BMP")}
    fill(tmp_path, files)
    with pytest.raises(InvalidOptionError, match=r"1 png, 1 bmp.*image_format='png'"):
        source_of(tmp_path, "imagefolder")
    first, second = read_all(source_of(tmp_path, image_format="png"))
    assert first["image"] == files["a/1.png"]
    np.testing.assert_array_equal(
        np.asarray(Image.open(io.BytesIO(second["image"]))),
        np.asarray(Image.open(io.BytesIO(files["a/2.bmp"]))),
    )


def test_a_bad_image_is_named_or_left_out(tmp_path, make_picture, read_all):
    fill(
        tmp_path,
        {
            "a/1.jpg": make_picture(1, "JPEG"),
            "a/2.jpg": b"<html>",
            "a/3.jpg": make_picture(3, "PNG"),
            "a/4.jpg": make_picture(4, "JPEG"),
        },
    )
    source = source_of(tmp_path)
    with pytest.raises(InvalidSampleError, match=r"a/2\.jpg: 6 bytes that are not an image"):
        read_all(source)
    bad = []
    assert len(read_all(source, bad.append)) == 2
    assert "the image is png, and the column takes jpeg" in str(bad[1])


def test_a_file_that_went_away_is_a_bad_sample(tmp_path, make_picture):
    fill(tmp_path, {"a/1.png": make_picture(), "a/2.png": make_picture(2)})
    source = source_of(tmp_path)
    (piece,) = source.pieces()
    (tmp_path / "a/1.png").unlink()
    bad = []
    assert len(list(source.samples(piece, bad.append))) == 1
    assert "a/1.png: there is no such file" in str(bad[0])


def test_pieces_are_bounded_have_stable_names_and_tell_changed_files(tmp_path, make_picture):
    data = make_picture(size=(1, 1))
    fill(tmp_path, {f"a/{n:05}.png": data for n in range(FILES + 1)})
    pieces = source_of(tmp_path).pieces()
    assert [len(piece.files) for piece in pieces] == [FILES, 1]
    assert source_of(tmp_path).pieces() == pieces
    (tmp_path / f"a/{FILES:05}.png").write_bytes(make_picture(size=(3, 3)))
    again = source_of(tmp_path).pieces()
    assert again[0] == pieces[0]
    assert (again[1].name, again[1].mark == pieces[1].mark) == (pieces[1].name, False)


def test_an_option_that_is_not_there_is_told(tmp_path, make_picture):
    fill(tmp_path, {"a/1.png": make_picture()})
    with pytest.raises(
        InvalidOptionError, match="no option 'image_fromat'; did you mean 'image_format'"
    ):
        source_of(tmp_path, image_fromat="png")
