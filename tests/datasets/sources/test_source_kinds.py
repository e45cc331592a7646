"""Which kind lies at a path."""

import io
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tensorlake_spark.datasets.sources.source_kinds import KINDS, found_at, source_of
from tensorlake_spark.errors import InvalidOptionError


def test_no_kind_says_why_for_each(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(
        InvalidOptionError, match=r"samples of no kind that is known \(1 files\)"
    ) as caught:
        source_of(tmp_path)
    assert all(f"{kind}: no " in str(caught.value) for kind in KINDS)
    with pytest.raises(InvalidOptionError, match="no such file or folder"):
        found_at(tmp_path / "nowhere")


def test_a_kind_that_is_not_there_is_told(tmp_path):
    with pytest.raises(
        InvalidOptionError, match="kind='yollo' is not a kind of source; did you mean 'yolo'"
    ):
        source_of(tmp_path, "yollo")
    for kind in KINDS:
        said = rf"^{tmp_path} has no samples of the kind {kind!r}: no "
        with pytest.raises(InvalidOptionError, match=said) as caught:
            source_of(tmp_path, kind)
        assert type(caught.value) is InvalidOptionError


def test_every_kind_says_what_it_is():
    assert {name: kind.kind for name, kind in KINDS.items()} == {name: name for name in KINDS}


def test_what_lies_there_and_is_wrong_is_not_taken_for_images(tmp_path, make_picture):
    for name in ("images", "labels"):
        (tmp_path / name).mkdir()
    (tmp_path / "images/1.png").write_bytes(make_picture())
    (tmp_path / "data.yaml").write_text("train: images\nnames: [a, b]\nnc: 3")
    with pytest.raises(InvalidOptionError, match="nc is 3, and there are 2 names"):
        source_of(tmp_path)


@pytest.mark.parametrize(
    ("kind", "option", "value", "says"),
    [
        ("webdataset", "classes", "ab", "is no list of names; give one, such as"),
        ("webdataset", "classes", 5, "is no list of names"),
        ("webdataset", "classes", [1, 2], "is no list of names"),
        ("webdataset", "schema", "int8", "is no mapping of names; give one, such as"),
        ("webdataset", "columns", "cls", "is no mapping of names"),
        ("huggingface", "columns", "label", "is no list of names"),
        ("huggingface", "columns", 5, "is no list of names"),
        ("urls", "columns", "url", "is no list of names"),
        ("urls", "delimiter", ";;", "is not one character"),
        ("urls", "delimiter", 5, "is not one character"),
    ],
)
def test_an_option_of_another_kind_is_told(tmp_path, kind, option, value, says):
    """A text was taken for its letters, and others were errors of Python."""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        member = tarfile.TarInfo("1.cls")
        member.size = 1
        tar.addfile(member, io.BytesIO(b"0"))
    (tmp_path / "a.csv").write_text("url,label\n/a.jpg,1\n")
    pq.write_table(pa.table({"label": [1]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidOptionError, match=f"{option}=.*{says}"):
        source_of(tmp_path, kind, **{option: value})


@pytest.mark.parametrize("kind", ["imagefolder", "yolo"])
@pytest.mark.parametrize("value", ["False", "x", 1])
def test_a_flag_is_true_or_false(tmp_path, make_picture, kind, value):
    """Any text was taken for true, "False" too."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images/1.png").write_bytes(make_picture())
    (tmp_path / "images/1.txt").write_text("")
    (tmp_path / "data.yaml").write_text("train: images\nnames: [a]")
    with pytest.raises(InvalidOptionError, match=f"file_names={value!r} is neither true nor false"):
        source_of(tmp_path, kind, file_names=value)
