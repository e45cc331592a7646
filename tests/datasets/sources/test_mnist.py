"""idx files, written here by the letter of their format."""

import gzip
import struct

import numpy as np
import pytest

from tensorlake_spark.datasets.sources import mnist
from tensorlake_spark.datasets.sources.source_kinds import source_of
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError


def idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def made(tmp_path):
    rng = np.random.default_rng(0)
    found = {}
    for split, count in (("train", 5), ("t10k", 3)):
        images = rng.integers(0, 256, (count, 4, 3), dtype=np.uint8)
        labels = rng.integers(0, 10, count, dtype=np.uint8)
        (tmp_path / f"{split}-images-idx3-ubyte").write_bytes(idx(images))
        (tmp_path / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
        found[split] = images, labels
    return tmp_path, found


def test_images_labels_and_splits(made, read_all, monkeypatch):
    monkeypatch.setattr(mnist, "_SAMPLES", 2)
    folder, arrays = made
    samples = read_all(source_of(folder))
    images = np.concatenate([arrays["train"][0], arrays["t10k"][0]])
    labels = np.concatenate([arrays["train"][1], arrays["t10k"][1]])
    np.testing.assert_array_equal([sample["image"] for sample in samples], images)
    assert [sample["label"] for sample in samples] == labels.tolist()
    assert [sample["split"] for sample in samples] == ["train"] * 5 + ["test"] * 3


def test_one_split_and_names_of_classes(made, read_all):
    names = [f"number {n}" for n in range(10)]
    source = source_of(made[0], split="test", classes=names)
    assert source.schema["label"].names == tuple(names)
    assert len(read_all(source)) == 3


def test_a_file_that_breaks_off_is_told_and_loses_only_what_is_missing(made, read_all):
    path = made[0] / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[: 16 + 3 * 12 + 5])
    source = source_of(made[0])
    with pytest.raises(InvalidSampleError, match="images-idx3-ubyte: the file breaks off after 3"):
        read_all(source)
    bad = []
    samples = read_all(source, bad.append)
    images, labels = made[1]["train"]
    np.testing.assert_array_equal([sample["image"] for sample in samples[:3]], images[:3])
    assert [sample["label"] for sample in samples[:3]] == labels[:3].tolist()
    assert [sample["split"] for sample in samples[3:]] == ["test"] * 3
    assert len(bad) == 1


@pytest.mark.parametrize("name", ["images-idx3", "labels-idx1"])
@pytest.mark.parametrize("spoilt", ["checksum", "cut"])
def test_a_packed_file_is_compared_with_its_checksum(made, read_all, name, spoilt):
    """It stands at the end, behind the last element, where reading stopped."""
    path = made[0] / f"train-{name}-ubyte"
    packed = made[0] / f"{path.name}.gz"
    if path.exists():
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    data = bytearray(packed.read_bytes())
    data[-8] ^= 1
    packed.write_bytes(data if spoilt == "checksum" else data[:-8])
    said = r"train-.*\.gz: the file cannot be unpacked: (CRC check|Compressed file ended)"
    with pytest.raises(InvalidSampleError, match=said):
        read_all(source_of(made[0]))


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize(("name", "size"), [("images-idx3", 60), ("labels-idx1", 5)])
def test_bytes_behind_the_last_element_are_told(made, read_all, name, size, is_packed):
    """The header was believed, though the file may be that of other samples."""
    plain = made[0] / f"train-{name}-ubyte"
    packed = made[0] / f"{plain.name}.gz"
    data = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    plain.unlink(missing_ok=True)
    packed.unlink(missing_ok=True)
    data += bytes(7)
    (packed if is_packed else plain).write_bytes(gzip.compress(data) if is_packed else data)
    said = (
        rf"train-{name}-ubyte.*which are {size} bytes, and {size + 7} follow it; get the file again"
    )
    names = list("abcdefghij")
    with pytest.raises(InvalidSampleError, match=said):
        read_all(source_of(made[0], classes=names))
    bad = []
    left = read_all(source_of(made[0], classes=names), bad.append)
    assert [sample["split"] for sample in left] == ["test"] * 3
    assert len(bad) == 1


def test_bytes_behind_a_header_of_no_images_are_told(made, read_all):
    (made[0] / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.zeros(0, np.uint8))))
    images = made[0] / "train-images-idx3-ubyte"
    images.write_bytes(idx(np.zeros((0, 4, 3), np.uint8)))
    assert len(read_all(source_of(made[0]))) == 3
    images.write_bytes(images.read_bytes() + bytes(12))
    with pytest.raises(InvalidSampleError, match="which are 0 bytes, and 12 follow it"):
        source_of(made[0]).pieces()


def test_a_header_of_impossible_size_takes_no_memory(made, read_all):
    head = struct.pack(">BBBB3I", 0, 0, 8, 3, 5, 1 << 31, 1 << 31)
    (made[0] / "train-images-idx3-ubyte").write_bytes(head)
    with pytest.raises(InvalidSampleError, match="too many for one value"):
        read_all(source_of(made[0], split="train"))


def test_labels_beside_images_are_needed(made):
    (made[0] / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(
        InvalidOptionError, match="train-images-idx3-ubyte has no train-labels-idx1-ubyte"
    ):
        source_of(made[0], "mnist")


def test_a_label_above_the_classes_is_a_bad_sample(made, read_all):
    bad = []
    arrays = made[1]["train"][1]
    most = int(arrays.max())
    source = source_of(made[0], "mnist", split="train", classes=list("abcdefghij")[:most])
    left = read_all(source, bad.append)
    assert len(bad) == int((arrays >= most).sum())
    assert len(left) + len(bad) == 5


@pytest.mark.parametrize(
    "junk", [b"", b"\0\0\x08", b"\0\0\x07\x01" + bytes(4), b"\0\0\x08\x03\0\0"]
)
def test_what_is_no_idx_file_is_told(made, junk):
    (made[0] / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(junk))
    with pytest.raises(InvalidSampleError, match=r"not an idx file|breaks off"):
        source_of(made[0], "mnist")


def test_more_labels_than_images_are_those_of_others(made, read_all):
    """Labels were read in order, and the last ones left over, though each may belong to another image."""
    labels = np.zeros(6, np.uint8)
    (made[0] / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    with pytest.raises(
        InvalidSampleError, match=r"labels-idx1-ubyte.gz has 6 labels, and .* 5 images; they do not"
    ):
        source_of(made[0]).pieces()


def test_a_file_that_was_unpacked_and_kept_is_read_once(made, read_all):
    path = made[0] / "train-images-idx3-ubyte"
    (made[0] / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert len(read_all(source_of(made[0], split="train"))) == 5


def test_the_name_of_a_file_tells_the_split_before_that_of_its_folder(made, read_all):
    below = made[0] / "training"
    below.mkdir()
    for path in [one for one in made[0].iterdir() if one != below]:
        path.rename(below / path.name)
    samples = read_all(source_of(made[0]))
    assert [sample["split"] for sample in samples] == ["train"] * 5 + ["test"] * 3


@pytest.mark.parametrize(
    ("name", "array", "said"),
    [
        ("train-images-idx3-ubyte", np.zeros(5, np.uint8), "images have 3 axes"),
        ("train-labels-idx1-ubyte", np.zeros((5, 4, 3), np.uint8), "labels are integers on 1 axis"),
    ],
)
def test_files_that_were_mixed_up_are_told(made, read_all, name, array, said):
    (made[0] / "train-labels-idx1-ubyte.gz").rename(made[0] / "x.gz")
    (made[0] / "train-labels-idx1-ubyte").write_bytes(
        gzip.decompress((made[0] / "x.gz").read_bytes())
    )
    (made[0] / name).write_bytes(idx(array))
    with pytest.raises(
        InvalidSampleError, match=rf"{name}: {said}, and this file has uint8 of shape"
    ):
        read_all(source_of(made[0]))


def test_labels_that_are_no_integers_are_told(made):
    """Their fractions were cut off."""
    path = made[0] / "train-labels-idx1-ubyte.gz"
    labels = struct.pack(">BBBBI", 0, 0, 13, 1, 5) + np.full(5, 1.5, ">f4").tobytes()
    path.write_bytes(gzip.compress(labels))
    with pytest.raises(InvalidSampleError, match="labels are integers on 1 axis"):
        source_of(made[0])
