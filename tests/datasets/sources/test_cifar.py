"""CIFAR's binary version, written here by the letter of its format."""

import pickle

import numpy as np
import pytest

from tensorlake_spark.datasets.sources.source_kinds import source_of
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError


def records(count, labels, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    numbers = rng.integers(0, 10, (count, labels), dtype=np.uint8)
    data = b"".join(
        bytes(number) + np.ascontiguousarray(image.transpose(2, 0, 1)).tobytes()
        for number, image in zip(numbers, images)
    )
    return data, images, numbers


def test_ten_classes(tmp_path, read_all):
    data, images, numbers = records(7, 1)
    (tmp_path / "data_batch_1.bin").write_bytes(data[: 3 * 3073])
    (tmp_path / "data_batch_2.bin").write_bytes(data[3 * 3073 : 5 * 3073])
    (tmp_path / "test_batch.bin").write_bytes(data[5 * 3073 :])
    source = source_of(tmp_path)
    samples = read_all(source)
    np.testing.assert_array_equal([sample["image"] for sample in samples], images)
    assert [sample["label"] for sample in samples] == numbers[:, 0].tolist()
    assert [sample["split"] for sample in samples] == ["train"] * 5 + ["test"] * 2
    assert source.schema["label"].names[3] == "cat"


def test_a_hundred_classes_have_coarse_ones_too(tmp_path, read_all):
    data, _, numbers = records(4, 2)
    (tmp_path / "train.bin").write_bytes(data)
    (tmp_path / "fine_label_names.txt").write_text("\n".join(f"fine{n}" for n in range(100)))
    source = source_of(tmp_path)
    samples = read_all(source)
    assert [[s["coarse_label"], s["label"]] for s in samples] == numbers.tolist()
    assert source.schema["label"].names[99] == "fine99"
    assert len(source.schema["coarse_label"].names) == 20


def test_pickles_are_not_read(tmp_path):
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": 1}))
    with pytest.raises(InvalidOptionError, match=r"is a Python pickle.*binary version"):
        source_of(tmp_path, "cifar")
    with pytest.raises(InvalidOptionError, match="is a Python pickle"):
        source_of(tmp_path)


def test_a_file_that_breaks_off_loses_its_last_record_alone(tmp_path, read_all):
    data, _, _ = records(2, 1)
    (tmp_path / "data_batch_1.bin").write_bytes(data[:-10])
    with pytest.raises(InvalidSampleError, match="record 1: the file breaks off after 3063 bytes"):
        read_all(source_of(tmp_path))
    bad = []
    assert len(read_all(source_of(tmp_path), bad.append)) == 1


def test_a_label_above_the_classes_is_a_bad_sample(tmp_path, read_all):
    (tmp_path / "test_batch.bin").write_bytes(bytes([10]) + bytes(3072))
    with pytest.raises(InvalidSampleError, match="label 10, and there are 10 classes"):
        read_all(source_of(tmp_path))
