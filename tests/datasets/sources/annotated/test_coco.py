"""COCO annotations, written here; masks beside plain arrays."""

import json

import numpy as np
import pandas as pd
import pytest

from tensorlake_spark.datasets.sources.annotated import coco
from tensorlake_spark.datasets.sources.source_kinds import found_at, source_of
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError

JOINTS = ["nose", "eye"]


def annotations(**changes):
    found = {
        "info": {"year": 2017},
        "images": [
            {"id": 7, "file_name": "7.jpg", "height": 5, "width": 6},
            {"id": 3, "file_name": "3.jpg", "height": 5, "width": 6},
        ],
        "annotations": [
            {
                "id": 1,
                "image_id": 3,
                "category_id": 90,
                "bbox": [1, 1, 2.5, 3],
                "iscrowd": 0,
                "segmentation": [[1, 1, 3, 1, 3, 4, 1, 4]],
                "keypoints": [1, 2, 2, 0, 0, 0],
            },
            {
                "id": 2,
                "image_id": 3,
                "category_id": 1,
                "bbox": [0, 0, 1, 1],
                "iscrowd": 1,
                "segmentation": {"size": [5, 6], "counts": [0, 1, 29]},
            },
            {"id": 3, "image_id": 3, "caption": "a cat and a crowd"},
            {"id": 4, "image_id": 99, "category_id": 1, "bbox": [0, 0, 1, 1]},
        ],
        "categories": [
            {"id": 1, "name": "person", "keypoints": JOINTS},
            {"id": 90, "name": "cat"},
        ],
    }
    return {**found, **changes}


@pytest.fixture
def made(tmp_path, make_picture):
    (tmp_path / "annotations").mkdir()
    (tmp_path / "val").mkdir()
    for key in (3, 7):
        (tmp_path / f"val/{key}.jpg").write_bytes(make_picture(key, "JPEG"))

    def write(**changes):
        path = tmp_path / "annotations/instances_val.json"
        path.write_text(json.dumps(annotations(**changes)))
        return tmp_path

    write()
    return write


def test_all_that_is_there(made, make_picture, read_all):
    source = source_of(made())
    assert found_at(made()) == "coco: COCO annotations in annotations/instances_val.json"
    empty, full = read_all(source)
    assert (empty["image_id"], empty["file_name"], empty["image"]) == (
        7,
        "7.jpg",
        make_picture(7, "JPEG"),
    )
    assert empty["boxes"].shape == (0, 4)
    assert empty["keypoints"].shape == (0, 2, 3)
    assert (empty["label"], empty["masks"], empty["captions"]) == ([], [], [])
    np.testing.assert_array_equal(full["boxes"], np.float32([[1, 1, 2.5, 3], [0, 0, 1, 1]]))
    assert [source.schema["label"].of.names[n] for n in full["label"]] == ["cat", "person"]
    assert full["crowd"] == [False, True]
    assert full["captions"] == ["a cat and a crowd"]
    np.testing.assert_array_equal(full["keypoints"][0], [[1, 2, 2], [0, 0, 0]])
    expected = np.zeros((2, 5, 6), bool)
    expected[0, 1:4, 1:3] = True
    expected[1, 0, 0] = True
    np.testing.assert_array_equal(full["masks"], expected)


def test_the_json_itself_as_the_path(made, read_all):
    path = made() / "annotations/instances_val.json"
    assert len(read_all(source_of(path))) == 2


def test_polygons_instead_of_masks(made, read_all):
    source = source_of(made(), regions="polygons")
    assert "masks" not in source.schema
    _, full = read_all(source)
    first, crowd = full["polygons"]
    np.testing.assert_array_equal(first[0], [[1, 1], [3, 1], [3, 4], [1, 4]])
    assert crowd == []
    assert {"masks", "polygons"}.isdisjoint(source_of(made(), regions="none").schema)


def test_several_files_of_the_same_images(made, read_all):
    folder = made(annotations=[one for one in annotations()["annotations"] if "caption" not in one])
    captions = {**annotations(annotations=[{"image_id": 7, "caption": "hi"}]), "categories": []}
    (folder / "annotations/captions_val.json").write_text(json.dumps(captions))
    with pytest.raises(
        InvalidOptionError, match="2 files of annotations; say which by annotations="
    ):
        source_of(folder, "coco")
    names = ["annotations/instances_val.json", "annotations/captions_val.json"]
    first, second = read_all(source_of(folder, annotations=names))
    assert (first["captions"], second["captions"]) == (["hi"], [])


def test_the_file_of_annotations_by_its_name_or_its_whole_path(made, read_all, tmp_path):
    """As the folder of the images; a whole path was looked for below the source."""
    made()
    name = "annotations/instances_val.json"
    for said in (name, f"./{name}", f"{tmp_path}/{name}", [f"{tmp_path}/{name}"]):
        assert len(read_all(source_of(tmp_path, "coco", annotations=said))) == 2
    for said in ("instances_val.json", "/tmp/instances_val.json"):
        with pytest.raises(
            InvalidOptionError,
            match=f"annotations='{said}': .* in {tmp_path}; name the file as seen",
        ):
            source_of(tmp_path, "coco", annotations=said)


def test_pieces_have_all_images_once(made, read_all, monkeypatch):
    monkeypatch.setattr(coco, "_IMAGES", 1)
    folder = made()
    source = source_of(folder)
    first, second = source.pieces()
    (folder / "val/3.jpg").write_bytes((folder / "val/7.jpg").read_bytes() + b"longer")
    again = source_of(folder).pieces()
    assert (again[0], again[1].mark == second.mark) == (first, False)
    assert [sample["image_id"] for sample in read_all(source)] == [7, 3]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bbox": [1, 2, 3]}, "bbox is a list of 4 numbers"),
        ({"bbox": [1, 2, 3, "x"]}, "bbox is a list of 4 numbers"),
        ({"category_id": 5}, "category 5 is not among the categories"),
        ({"segmentation": [[1, 2]]}, "three points at least"),
        ({"segmentation": {"size": [9, 9], "counts": [81]}}, "the image is 5 x 6"),
        ({"keypoints": [1, 2]}, "keypoints is a list of 6 numbers"),
    ],
)
def test_a_bad_annotation_is_told_with_its_image(made, read_all, change, said):
    first, *others = annotations()["annotations"]
    source = source_of(made(annotations=[{**first, **change}, *others]))
    with pytest.raises(InvalidSampleError, match=f"image 3: .*{said}"):
        read_all(source)
    bad = []
    assert [sample["image_id"] for sample in read_all(source, bad.append)] == [7]
    assert len(bad) == 1


def test_a_name_that_leads_out_of_the_folder_is_not_read(made, read_all, tmp_path):
    images = annotations()["images"]
    images[1]["file_name"] = "../../secret.jpg"
    source = source_of(made(images=images))
    with pytest.raises(
        InvalidSampleError, match=r"which lies outside of .*do not trust this source"
    ):
        read_all(source)


def test_the_folder_of_the_images_by_its_name_or_its_whole_path(made, read_all, tmp_path):
    made()
    there = tmp_path / "pictures"
    (tmp_path / "val").rename(there)
    with pytest.raises(
        InvalidOptionError, match=r"'7.jpg', which is in none of .*; name its folder by images="
    ):
        source_of(tmp_path, "coco")
    for said in ("pictures", "./pictures/", str(there), f"{there}/"):
        assert len(read_all(source_of(tmp_path, "coco", images=said))) == 2
    for said in ("/tmp", "../pictures", f"{tmp_path}x/pictures"):
        with pytest.raises(
            InvalidOptionError, match=r"images='.*' lies outside of .*; name a folder in it"
        ):
            source_of(tmp_path, "coco", images=said)
    for said in ("annotations", "picturs"):
        with pytest.raises(
            InvalidOptionError, match=f"images='{said}': there is no image in .*/{said}/"
        ):
            source_of(tmp_path, "coco", images=said)
    for said in (5, ["pictures"]):
        with pytest.raises(InvalidOptionError, match="is not the name of a folder"):
            source_of(tmp_path, "coco", images=said)
    (tmp_path / "annotations/instances_val.json").rename(tmp_path / "all.json")
    with pytest.raises(InvalidOptionError, match=r"'7.jpg', which is in none of '\.'"):
        source_of(tmp_path, "coco")
    for path in there.iterdir():
        path.rename(tmp_path / path.name)
    for said in ("", ".", str(tmp_path)):
        assert len(read_all(source_of(tmp_path, "coco", images=said))) == 2


def test_an_image_that_is_not_there(made, read_all):
    folder = made()
    (folder / "val/3.jpg").unlink()
    with pytest.raises(InvalidSampleError, match=r"val/3\.jpg: there is no such file"):
        read_all(source_of(folder))
    (folder / "val/3.jpg").write_bytes((folder / "val/7.jpg").read_bytes())
    (folder / "val/7.jpg").unlink()  # the first one
    bad = []
    assert [one["image_id"] for one in read_all(source_of(folder), bad.append)] == [3]
    assert "val/7.jpg: there is no such file" in str(bad[0])
    (folder / "val/3.jpg").unlink()
    with pytest.raises(InvalidOptionError, match=r"names the image '7\.jpg', which is in none of"):
        source_of(folder, "coco")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": 8}, "image 8 is '7.jpg', and is not in .*instances_val.json; several"),
        (
            {"file_name": "1.jpg"},
            "captions_val.json: image 7 is '1.jpg', and is '7.jpg' in .*run of",
        ),
    ],
)
def test_files_of_different_images_are_told(made, change, said):
    """The images of the second were left out, or its annotations went to other images."""
    folder = made()
    first, *others = annotations()["images"]
    captions = annotations(images=[{**first, **change}, *others])
    (folder / "annotations/captions_val.json").write_text(json.dumps(captions))
    names = ["annotations/instances_val.json", "annotations/captions_val.json"]
    with pytest.raises(InvalidOptionError, match=said):
        source_of(folder, annotations=names)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"images": []}, "has no images"),
        (
            {"annotations": [{"image_id": "7", "caption": "hi"}]},
            r"val\.json: no annotation is of an image: .* image_id '7', .* id 7; an image_id has to",
        ),
        ({"images": [{"id": 1}]}, "without id or file_name"),
        ({"images": annotations()["images"] * 2}, "two images have the id 7"),
        (
            {"categories": [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]},
            "category 1 is 'b' and 'a'",
        ),
        ({"categories": []}, "has no categories"),
        ({"annotations": {"a": 1}}, "an annotation without image_id: {'a': 1}"),
        ({"annotations": [{"id": 1, "category_id": 1}]}, "an annotation without image_id"),
        (
            {"categories": [{"id": n, "name": str(n), "keypoints": [str(n)]} for n in (1, 90)]},
            "different keypoints",
        ),
    ],
)
def test_annotations_that_disagree(made, changes, said):
    with pytest.raises(InvalidOptionError, match=said):
        source_of(made(**changes), "coco")


def test_masks_of_a_huge_image_are_refused(made, read_all):
    images = annotations()["images"]
    images[1] |= {"height": 1 << 15, "width": 1 << 16}
    with pytest.raises(InvalidSampleError, match="2 masks of 32768 x 65536"):
        read_all(source_of(made(images=images)))


@pytest.mark.parametrize(
    ("box", "said"),
    [
        (
            [0, 0, -1, 1],
            r"bbox \[0.0, 0.0, -1.0, 1.0\] where width and height of at least 0 belong",
        ),
        ([0, 0, float("nan"), 1], "finite numbers"),
        ([0, 0, 10**400, 1], "bbox is a list of 4 numbers"),
    ],
)
def test_a_box_that_is_none_is_told_with_its_image(made, read_all, box, said):
    folder = made(annotations=[{"id": 1, "image_id": 3, "category_id": 1, "bbox": box}])
    with pytest.raises(InvalidSampleError, match=f"instances_val.json, image 3: .*{said}"):
        read_all(source_of(folder))


def test_names_that_cannot_be_are_told_with_the_file(made, read_all):
    folder = made(categories=[{"id": 1, "name": "cat"}, {"id": 90, "name": "cat"}])
    with pytest.raises(InvalidOptionError, match=r"val\.json: two categories have the name 'cat'"):
        source_of(folder)
    image = {"id": 3, "file_name": "\ud800.jpg", "height": 5, "width": 6}
    folder = made(images=[image])
    with pytest.raises(
        InvalidSampleError, match=r"val\.json names a file that cannot be: .*half of a character"
    ):
        source_of(folder)
    with pytest.raises(InvalidOptionError, match="annotations=5 is no list of names"):
        source_of(folder, annotations=5)


def test_ids_may_be_whole_floats_as_pandas_writes_them(made, read_all):
    """Their annotations were left out, and nothing said so."""
    want = read_all(source_of(made(), "coco"))
    found = annotations()
    for one in found["images"] + found["categories"]:
        one["id"] = float(one["id"])
    for one in found["annotations"]:
        one["image_id"] = float(one["image_id"])
    got = read_all(source_of(made(**found), "coco"))
    assert [one["label"] for one in got] == [one["label"] for one in want] == [[], [1, 0]]
    assert [one["image_id"] for one in got] == [7, 3]


def test_a_caption_that_is_null_is_none(made, read_all):
    texts = [{"image_id": 3, "caption": text} for text in ("a", None, "b")]
    samples = read_all(source_of(made(annotations=texts), "coco"))
    assert [one["captions"] for one in samples] == [[], ["a", "b"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"annotations": []}, r"annotations=\[\] names no file"),
        ({"regions": pd.NA}, "regions=<NA> is not one of masks"),
        ({"regions": "mask"}, "did you mean 'masks'"),
        ({"image_format": pd.NA}, "image_format=<NA> is not one of jpeg"),
    ],
)
def test_options_of_a_wrong_kind_are_named(made, options, said):
    with pytest.raises(InvalidOptionError, match=said):
        source_of(made(), **options)
