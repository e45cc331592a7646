"""Tensors side by side: names, lengths, and batches that belong together."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError

IMAGES = np.arange(30 * 4 * 4, dtype="f4").reshape(30, 4, 4)
LABELS = np.arange(30)


@pytest.mark.parametrize("shuffle", [False, True, "global"])
def test_slices_belong_together(lake, shuffle):
    images = lake.write("images", IMAGES, block_shape=(7, 4, 4))
    labels = lake.write("labels", LABELS, block_shape=(4,))
    dots = lake.write("dots", tl.SparseTensor.from_dense(np.eye(30)), layout="coo")
    with tl.zip(images, dots, label=labels).loader(8, shuffle=shuffle, seed=2) as loader:
        batches = list(loader)
    assert list(batches[0]) == ["images", "dots", "label"]
    order = np.concatenate([batch["label"] for batch in batches])
    np.testing.assert_array_equal(np.sort(order), LABELS)
    assert (order != LABELS).any() == bool(shuffle)
    np.testing.assert_array_equal(np.concatenate([b["images"] for b in batches]), IMAGES[order])
    dense = np.concatenate([b["dots"].todense() for b in batches])
    np.testing.assert_array_equal(dense, np.eye(30)[order])


def test_ranks_have_parts_of_one_batch(lake):
    refs = lake.write("a", IMAGES), lake.write("b", LABELS)
    options = {"shuffle": True, "seed": 7}
    whole = [batch["b"] for batch in tl.zip(*refs).loader(6, **options)]
    parts = [
        [batch["b"] for batch in tl.zip(*refs).loader(3, rank=rank, world_size=2, **options)]
        for rank in range(2)
    ]
    for one, *both in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(one, np.concatenate(both))


def test_a_state_goes_on(lake):
    zipped = tl.zip(lake.write("a", IMAGES), lake.write("b", LABELS))
    with zipped.loader(4, shuffle="global") as loader:
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        rest = [batch["b"] for batch in batches]
    with zipped.loader(4, shuffle="global") as loader:
        loader.load_state_dict(state)
        found = [batch["b"] for batch in loader]
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(rest))


def test_lengths_that_differ(lake):
    zipped = tl.zip(lake.write("a", IMAGES), lake.write("b", np.arange(7)))
    with pytest.raises(InvalidOptionError, match=r"'b' has length 7 .*'a' has 30"):
        zipped.loader(4)


def test_mistakes(lake):
    ref = lake.write("a", LABELS)
    with pytest.raises(InvalidOptionError, match="got no tensor"):
        tl.zip()
    with pytest.raises(InvalidOptionError, match="two tensors named 'a'"):
        tl.zip(ref, ref)
    with pytest.raises(InvalidOptionError, match="not ndarray"):
        tl.zip(ref, b=LABELS)
    with pytest.raises(InvalidOptionError, match="shuffle="):
        tl.zip(ref).loader(4, shuffle="often")
    assert repr(tl.zip(x=ref)) == "<Zipped of x=(30,)>"


def test_a_tensor_says_how_likely_slices_are(lake):
    labels = np.repeat([0, 1], [25, 5])
    zipped = tl.zip(x=lake.write("x", IMAGES), y=lake.write("y", labels))
    drawn = np.concatenate([b["y"] for b in zipped.loader(50, weights="y", samples=100)])
    assert drawn.tolist() == [1] * 100
    drawn = np.concatenate([b["y"] for b in zipped.loader(50, balance="y", samples=1000)])
    assert 0.4 < drawn.mean() < 0.6


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"where": "y > 3"}, "where= is for datasets, and these are tensors; .*weights of 0"),
        ({"columns": ["x"]}, "columns= is for datasets"),
        ({"weights": "z"}, "there is no tensor 'z' here.*one of x, y"),
        ({"balance": ["y"]}, "there is no tensor .*one of x, y"),
        ({"weights": "x"}, "column 'x' is not one number a sample"),
        ({"transform": {"z": abs}}, "transform names 'z', which is not one of the tensors"),
        ({"transform": {"x": 3}}, "of tensor 'x' is not a function of a slice"),
        (
            {"transform": {"x": tl.loader.RandomFlip()}},
            "of tensor 'x' is not a function of a slice",
        ),
    ],
)
def test_what_is_wrong(lake, options, says):
    zipped = tl.zip(x=lake.write("x", IMAGES), y=lake.write("y", LABELS))
    with pytest.raises(InvalidOptionError, match=says):
        zipped.loader(4, **options)
