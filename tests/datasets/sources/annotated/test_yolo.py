"""YOLO data sets, in the layouts that tools write."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tensorlake_spark.datasets.sources.annotated import yolo
from tensorlake_spark.datasets.sources.annotated.yolo import parse_line
from tensorlake_spark.datasets.sources.source_kinds import found_at, source_of
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError

YAML = """
path: ../datasets/coco8  # of another machine
train: images/train
val: images/val
names:
  0: person
  1: cat
"""


def fill(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder


@pytest.fixture
def made(tmp_path, make_picture):
    return fill(
        tmp_path,
        {
            "data.yaml": YAML,
            "images/train/1.jpg": make_picture(1, "JPEG"),
            "images/train/2.jpg": make_picture(2, "JPEG"),
            "images/val/3.jpg": make_picture(3, "JPEG"),
            "labels/train/1.txt": "1 0.5 0.5 0.25 1.0\n0 0.1 0.2 0.1 0.1\n",
            "labels/val/3.txt": "",
        },
    )


def test_boxes_and_classes(made, make_picture, read_all):
    source = source_of(made)
    assert found_at(made) == "yolo: 3 images with labels of 2 classes"
    first, second, third = read_all(source)
    assert first["image"] == make_picture(1, "JPEG")
    assert first["label"] == [1, 0]
    np.testing.assert_array_equal(
        first["boxes"], np.float32([[0.5, 0.5, 0.25, 1], [0.1, 0.2, 0.1, 0.1]])
    )
    assert second["boxes"].shape == third["boxes"].shape == (0, 4)
    assert [s["split"] for s in (first, second, third)] == ["train", "train", "val"]
    assert source.schema["label"].of.names == ("person", "cat")
    assert source.schema["boxes"].normalized


def test_one_split(made, read_all):
    (sample,) = read_all(source_of(made, split="val", file_names=True))
    assert sample["file"] == "images/val/3.jpg"
    with pytest.raises(InvalidOptionError, match="no split 'test'; it has train, val"):
        source_of(made, split="test")


def test_the_yaml_itself_as_the_path(made, read_all):
    assert len(read_all(source_of(made / "data.yaml"))) == 3


def test_polygons(made, read_all):
    (made / "labels/train/2.txt").write_text("0 0.25 0.25 0.75 0.25 0.5 0.5")
    samples = read_all(source_of(made, split="train"))
    np.testing.assert_array_equal(samples[1]["boxes"], np.float32([[0.5, 0.375, 0.5, 0.25]]))
    np.testing.assert_array_equal(
        samples[1]["polygons"], np.float32([[[0.25, 0.25], [0.75, 0.25], [0.5, 0.5]]])
    )
    assert samples[0]["polygons"][0].shape == (4, 2)


@pytest.mark.parametrize("points", [3, 4, 5])
def test_a_polygon_where_the_first_files_have_boxes_is_not_stored_as_its_box(
    made, read_all, monkeypatch, points
):
    monkeypatch.setattr(yolo, "_LOOK", 0)
    corners = " ".join(["0.25 0.25", "0.75 0.25", "0.5 0.5", "0.3 0.4", "0.2 0.3"][:points])
    (made / "labels/train/2.txt").write_text(f"0 {corners}")
    with pytest.raises(InvalidSampleError, match=r"2\.txt, line 1: a polygon, and the first files"):
        read_all(source_of(made, split="train"))


def test_a_file_of_classes_and_labels_beside_the_images(tmp_path, make_picture, read_all):
    files = {"classes.txt": "a\nb\n", "x/1.png": make_picture(), "x/1.txt": "1 .5 .5 .5 .5"}
    (sample,) = read_all(source_of(fill(tmp_path, files)))
    assert sample["label"] == [1]


def test_names_as_roboflow_writes_them(tmp_path, make_picture, read_all):
    files = {
        "data.yaml": "train: ../train/images\nval: ../valid/images\nnc: 1\nnames: ['a']",
        "train/images/1.jpg": make_picture(1, "JPEG"),
        "train/labels/1.txt": "0 .5 .5 .5 .5",
        "valid/images/2.jpg": make_picture(2, "JPEG"),
    }
    samples = read_all(source_of(fill(tmp_path, files)))
    assert [(s["label"], s["split"]) for s in samples] == [([0], "train"), ([], "val")]


def test_a_list_of_images(tmp_path, make_picture, read_all):
    files = {
        "data.yaml": "train: lists/train.txt\nnames: [a]",
        "lists/train.txt": "./images/1.png\n\nimages/2.png\n",
        "labels/2.txt": "",
        **{f"images/{n}.png": make_picture(n) for n in (1, 2, 3)},
    }
    assert len(read_all(source_of(fill(tmp_path, files)))) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2 .5 .5 .5 .5", "class 2, and there are 2 classes"),
        ("0.5 .5 .5 .5 .5", "class 0.5"),
        ("-1 .5 .5 .5 .5", "class -1"),
        ("0 .5 .5 .5", "3 numbers after the class"),
        ("0 .5 .5 .5 .5 .5", "5 numbers after the class"),
        ("0 .5 .5 .5 1.5", "outside of 0 to 1"),
        ("0 .5 .5 .5 nan", "outside of 0 to 1"),
        ("cat .5 .5 .5 .5", "not numbers"),
    ],
)
def test_a_bad_line_is_named(made, read_all, line, said):
    (made / "labels/train/1.txt").write_text(f"0 .5 .5 .5 .5\n{line}\n")
    source = source_of(made)
    with pytest.raises(InvalidSampleError, match=rf"labels/train/1\.txt, line 2: .*{said}"):
        read_all(source)
    bad = []
    assert len(read_all(source, bad.append)) == 2
    with pytest.raises(InvalidSampleError):
        parse_line(line, 2, "x")


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("train: /etc\nnames: [a]", "not inside of"),
        ("train: ../../etc\nnames: [a]", "not inside of"),
        ("train: images\nnames: {1: a}", "not numbered from 0 to 0"),
        ("train: images\nnames: [a]\nnc: 3", "nc is 3, and there are 1 names"),
        ("train: images\nnames: []", "names is a list of classes"),
        ("train: images\nnames: [yes, no]", "names has True, which is no name; .*in quotes"),
        ("names: [a]", "names no folder with images"),
        ("a: &a [1]\nb: *a\nnames: [a]", "has aliases"),
        ("names: !!python/object/apply:os.getcwd []", "is not YAML"),
        ("train: lists.txt\nnames: [a]", "no such list of images"),
    ],
)
def test_a_bad_yaml_is_told(made, yaml, said):
    (made / "data.yaml").write_text(yaml)
    with pytest.raises(InvalidOptionError, match=said):
        source_of(made, "yolo")


def test_a_list_that_leads_out_is_not_read(made):
    (made / "data.yaml").write_text("train: list.txt\nnames: [a]")
    (made / "list.txt").write_text("/etc/passwd.png\n")
    with pytest.raises(
        InvalidOptionError, match=r"lists '/etc/passwd\.png', which is not inside of"
    ):
        source_of(made, "yolo")


def test_a_table_or_some_images_beside_a_file_of_classes_are_not_yolo(tmp_path, make_picture):
    fill(
        tmp_path,
        {
            "classes.txt": "a\nb\n",
            "1.png": make_picture(),
            "1.txt": "1 .5 .5 .5 .5",
            "links.csv": "url,caption\nhttps://a/b.jpg,x\n",
        },
    )
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "t.parquet")
    kinds = {
        "links.csv": "urls", "*.csv": "urls", "t.parquet": "huggingface", "*.parquet": "huggingface",
        "*.png": "imagefolder", "1.png": "imagefolder", "classes.txt": "yolo", "": "yolo",
    }  # fmt: skip
    for name, kind in kinds.items():
        assert source_of(f"{tmp_path}/{name}").kind == kind
    with pytest.raises(InvalidOptionError, match="name the folder, and not some files of it"):
        source_of(tmp_path / "links.csv", "yolo")


def test_a_box_that_leaves_the_image_is_told_with_its_line(made, read_all):
    (made / "labels/train/2.txt").write_text("0 .5 .5 .2 .2\n1 .9 .5 .5 .2\n")
    with pytest.raises(
        InvalidSampleError,
        match=r"2\.txt, line 2: .* leaves the image, .*\[0.65, 0.4, 1.15, 0.6\]; clip",
    ):
        read_all(source_of(made, split="train"))
    assert parse_line("0 0.333333 0.5 0.666667 1", 1, "x")[0] == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "train: [\nnames: [a]",
            "is not YAML: while parsing a flow sequence in .* line 1, column 8",
        ),
        ("x: &a 1\ntrain: images\nnames: [*a]", r"data\.yaml has aliases"),
        ("train: images\nnames: [a, null]", "names has None, which is no name"),
        ("train: images\nnames: [[a], b]", r"names has \['a'\], which is no name"),
        ("train: images\nnames: [a, a]", "names has 'a' twice; give each class a name of its own"),
        (
            "train: images\nnames: [a]",  # all images would have no objects
            "none of its 1 image.* has a file of labels; that of 'images/1.png' would be 'labels/1.txt' or 'ima",
        ),
        (
            "train: img\nnames: [a]",
            "names no folder with images: there are none in {'train': 'img'}",
        ),
    ],
)
def test_mistakes_in_yaml_are_told_in_one_line_with_the_file(tmp_path, make_picture, text, says):
    fill(tmp_path, {"data.yaml": text, "images/1.png": make_picture()})
    with pytest.raises(InvalidOptionError, match=says) as error:
        source_of(tmp_path, "yolo")
    assert str(error.value).startswith(f"{tmp_path}/data.yaml")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\n\nb\n", "line 2 is blank"),
        ("", "it is empty"),
        ("a\nb\na\n", "names has 'a' twice"),
    ],
)
def test_a_file_of_classes_has_one_in_each_line(tmp_path, make_picture, text, said):
    """A blank line was left out, which gave the classes after it other numbers."""
    files = {"classes.txt": text, "1.png": make_picture(), "1.txt": "1 .5 .5 .5 .5"}
    with pytest.raises(InvalidOptionError, match=rf"classes\.txt: {said}"):
        source_of(fill(tmp_path, files))


def test_the_mark_of_utf8_before_a_file_is_no_part_of_it(tmp_path, make_picture, read_all):
    mark, picture = b"\xef\xbb\xbf", make_picture()
    files = {
        "classes.txt": mark + b"a\r\nb\r\n\r\n",
        "1.png": picture,
        "1.txt": mark + b"1 .5 .5 .5 .5",
    }
    source = source_of(fill(tmp_path / "one", files))
    assert source.schema["label"].of.names == ("a", "b")
    assert [one["label"] for one in read_all(source)] == [[1]]
    files |= {"data.yaml": "train: list.txt\nnames: [a, b]", "list.txt": mark + b"1.png"}
    assert len(read_all(source_of(fill(tmp_path / "two", files)))) == 1
