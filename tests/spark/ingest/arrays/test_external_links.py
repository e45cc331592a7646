"""Only what lies in a file itself is read: links inside it are followed, those to other files are refused."""

import h5py
import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest.arrays.external_links import dataset_of


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["x"] = np.arange(4)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["group/x"] = np.arange(6)
        file["near"] = h5py.SoftLink("group/x")
        file["group/far"] = h5py.SoftLink("/near")
        file["folder"] = h5py.SoftLink("group")
        file["hard"] = file["group/x"]
        yield file


@pytest.mark.parametrize(
    "member", ["group/x", "/group/x", "group/./x", "near", "group/far", "folder/far", "hard"]
)
def test_what_is_inside_is_found_by_any_way(file, member):
    assert dataset_of(file, member)[...].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("member", "says"),
    [
        ("nothing", "there is no 'nothing' in it"),
        ("group/nothing", "there is no 'nothing' in it"),
        ("group/x/deeper", "there is no 'deeper' in it"),
        ("group", "it is not a dataset with elements"),
        ("", "it is not a dataset with elements"),
    ],
)
def test_what_is_not_there(file, member, says):
    with pytest.raises(tl.InvalidTensorError, match=says):
        dataset_of(file, member)


def test_links_to_other_files_are_refused(file):
    file["away"] = h5py.ExternalLink("other.h5", "/x")
    file["about"] = h5py.SoftLink("away")
    for member in ("away", "about"):
        with pytest.raises(
            tl.InvalidTensorError, match=r"is a link to the file 'other\.h5', and only"
        ):
            dataset_of(file, member)


def test_a_view_of_other_files_is_refused(file):
    layout = h5py.VirtualLayout((4,), "i8")
    layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
    file.create_virtual_dataset("view", layout)
    with pytest.raises(
        tl.InvalidTensorError, match=r"is a view of the files other\.h5, and only what"
    ):
        dataset_of(file, "view")


def test_elements_in_another_file_are_refused(file, tmp_path):
    (tmp_path / "raw.bin").write_bytes(bytes(32))
    file.create_dataset("raw", (4,), "i8", external=[(str(tmp_path / "raw.bin"), 0, 32)])
    with pytest.raises(
        tl.InvalidTensorError, match=r"elements are in the file '.*raw\.bin', and only"
    ):
        dataset_of(file, "raw")


def test_a_dataset_without_a_shape_has_no_elements(file):
    file["null"] = h5py.Empty("f4")
    with pytest.raises(tl.InvalidTensorError, match="it is not a dataset with elements"):
        dataset_of(file, "null")


def test_links_in_a_circle_end(file):
    file["a"], file["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")
    with pytest.raises(tl.InvalidTensorError, match="one of more than 64 links to links"):
        dataset_of(file, "a")
