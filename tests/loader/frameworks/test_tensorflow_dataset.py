"""Loaders in TensorFlow; what NumPy has is the oracle."""

import sys

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, MissingDependencyError


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    ds = tl.dataset(
        str(tmp_path_factory.mktemp("samples") / "ds"),
        {
            "x": tl.types.Tensor("float32", (2,)),
            "boxes": tl.types.Tensor("int32", (None, 4)),
            "label": "int64",
            "name": "string",
        },
    )
    ds.extend(
        {
            "x": np.arange(20, dtype="f4").reshape(10, 2),
            "boxes": [np.full((k % 3, 4), k, "i4") for k in range(10)],
            "label": np.arange(10),
            "name": [str(k) for k in range(10)],
        }
    )
    return ds


def test_without_tensorflow_it_is_named(dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(MissingDependencyError, match="needs tensorflow, which is not installed"):
        dataset.loader(4).tensorflow()


@pytest.mark.tensorflow
def test_batches_are_tensors_of_tensorflow(dataset):
    found = dataset.loader(4, shuffle=True, seed=1).tensorflow()
    expected = list(dataset.loader(4, shuffle=True, seed=1))
    batches = list(found)
    assert len(batches) == 3
    for batch, wanted in zip(batches, expected, strict=True):
        assert np.array_equal(batch["x"], wanted["x"])
        assert batch["label"].numpy().tolist() == wanted["label"].tolist()
        assert [name.decode() for name in batch["name"].numpy()] == list(wanted["name"])
        assert batch["boxes"].to_list() == [boxes.tolist() for boxes in wanted["boxes"]]


@pytest.mark.tensorflow
def test_each_pass_is_an_epoch(dataset):
    loader = dataset.loader(4, ["label"], shuffle=True, seed=1)
    found = loader.tensorflow()
    passes = [[batch["label"].numpy().tolist() for batch in found] for _ in range(2)]
    other = dataset.loader(4, ["label"], shuffle=True, seed=1)
    assert passes == [[batch["label"].tolist() for batch in other] for _ in range(2)]
    assert loader.epoch == 2


@pytest.mark.tensorflow
def test_the_last_batch_may_be_smaller(dataset):
    assert [batch["x"].shape[0] for batch in dataset.loader(4).tensorflow()] == [4, 4, 2]


@pytest.mark.tensorflow
def test_slices_of_a_sparse_tensor(tmp_path):
    import tensorflow as tf

    x = np.zeros((10, 300), "f4")
    x[[1, 2, 2, 9], [7, 0, 299, 150]] = 1, 2, 3, 4
    ref = tl.open(str(tmp_path)).write("x", tl.SparseTensor.from_dense(x))
    batches = [batch["x"] for batch in ref.loader(4).tensorflow()]
    assert all(isinstance(batch, tf.sparse.SparseTensor) for batch in batches)
    assert np.array_equal(np.concatenate([tf.sparse.to_dense(batch) for batch in batches]), x)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "shapes",
    [
        lambda k: (k, 4, 3),
        lambda k: (k, 5 - k, 1),
        lambda k: (k, 2, k, 2),
        lambda k: (k, 2, k),
        lambda k: (k,),
    ],
)
def test_arrays_of_any_rank_are_ragged(dataset, shapes):
    """Images of several sizes ended in an error of TensorFlow's."""
    arrays = [np.arange(np.prod(shapes(k)), dtype="i2").reshape(shapes(k)) for k in range(4)]
    loader = dataset.loader(4, collate=lambda samples: {"v": arrays[: len(samples)]})
    for batch, count in zip(loader.tensorflow(), (4, 4, 2), strict=True):
        assert batch["v"].to_list() == [one.tolist() for one in arrays[:count]]


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "later",
    [
        {"v": [np.zeros(2), np.zeros(3)]},
        {"v": np.zeros((2, 2, 2))},
        {"v": None},
        {"w": np.zeros((2, 2))},
    ],
)
def test_a_later_batch_that_is_not_like_the_first(dataset, later):
    import tensorflow as tf

    loader = dataset.loader(
        5, collate=lambda samples: later if samples[0]["label"] else {"v": np.zeros((2, 2))}
    )
    batches = iter(loader.tensorflow())
    next(batches)
    # TensorFlow puts what a generator raises into an error of its own.
    with pytest.raises(tf.errors.OpError, match=r"column 'v' is TensorSpec.* in the first batch"):
        next(batches)


@pytest.mark.tensorflow
def test_images_with_other_channels_than_in_the_first_batch(dataset):
    import tensorflow as tf

    loader = dataset.loader(
        5,
        collate=lambda samples: {
            "v": [np.zeros((k, 2, 3 + (samples[0]["label"] > 0))) for k in (1, 2)]
        },
    )
    batches = iter(loader.tensorflow())
    assert next(batches)["v"].shape[-1] == 3
    with pytest.raises(tf.errors.OpError, match="column 'v' is RaggedTensorSpec"):
        next(batches)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "column 'v' has values that TensorFlow cannot take"),
        (np.array(1, "M8[s]"), "column 'v' has values"),
    ],
)
def test_values_that_it_cannot_take(dataset, value, said):
    loader = dataset.loader(4, collate=lambda samples: {"v": [value for _ in samples]})
    with pytest.raises(InvalidOptionError, match=said):
        loader.tensorflow()


@pytest.mark.tensorflow
def test_a_batch_that_is_no_dict(dataset):
    with pytest.raises(InvalidOptionError, match="a batch that is of type int"):
        dataset.loader(4, collate=len).tensorflow()
