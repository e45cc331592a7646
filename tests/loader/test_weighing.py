"""Weights of what a user says: columns, labels and arrays; and what is wrong with them."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.loader.weighing import drawing_weights

COLUMNS = {
    "n": np.array([1, 0, 3, 4]),
    "name": ["a", "b", "b", "b"],
    "holes": ["a", None, "b", "b"],
    "wide": np.zeros((4, 2)),
}


MASKED = np.ma.array([1, 2, 3, 4], mask=[1, 0, 0, 0])


def weights_of(weights=None, balance=None, samples=None, replacement=True, chosen=None):
    return drawing_weights(weights, balance, samples, replacement, COLUMNS.__getitem__, 4, chosen)


def test_without_weights_each_comes_once():
    assert weights_of() is None


@pytest.mark.parametrize("weights", ["n", [1, 0, 3, 4], np.array([1.0, 0, 3, 4])])
def test_a_column_and_an_array(weights):
    found = weights_of(weights)
    np.testing.assert_allclose(found / found.sum(), np.array([1, 0, 3, 4]) / 8)


@pytest.mark.parametrize("weights", [[9, 1, 0, 4], [1, 4]])
def test_an_array_for_all_or_for_those_that_are_chosen(weights):
    found = weights_of(weights, chosen=np.array([1, 3]))
    np.testing.assert_allclose(found / found.sum(), [0.2, 0.8])


@pytest.mark.parametrize("name", ["n", "name"])
def test_labels_are_numbers_or_texts(name):
    found = weights_of(balance=name)
    labels = np.asarray(COLUMNS[name])
    sums = [found[labels == label].sum() for label in np.unique(labels)]
    np.testing.assert_allclose(sums, sums[0])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"weights": "n", "balance": "n"}, "give one"),
        ({"weights": "name"}, "column 'name' is not one number a sample"),
        ({"weights": "wide"}, "column 'wide' is not one number a sample"),
        ({"balance": "wide"}, "column 'wide' is not one label a sample"),
        ({"balance": "holes"}, "column 'holes' is not one label a sample, .* without nulls"),
        ({"weights": [1, 2]}, "one for each of 4 samples"),
        ({"weights": 3}, "one for each of 4 samples"),
        ({"weights": [[1], [1, 2]], "chosen": np.array([1, 3])}, "weights are list: numbers"),
        ({"weights": MASKED}, "weights are masked"),
        ({"weights": MASKED, "chosen": np.array([0, 3])}, "weights are masked"),
        ({"samples": 5}, "give weights or balance too"),
        ({"samples": 0, "weights": "n"}, "samples=0 is not a whole number"),
        ({"replacement": "no", "weights": "n"}, "replacement='no' is not True or False"),
    ],
)
def test_what_is_wrong(options, says):
    with pytest.raises(tl.InvalidOptionError, match=says):
        weights_of(**options)
