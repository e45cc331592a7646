"""A loader of a dataset: what is selected, drawn and transformed; and what is wrong with it."""

import numpy as np
import pytest

import tensorlake_spark as tl


def labels(loader):
    return np.concatenate([batch["label"] for batch in loader])


def test_a_condition(digits):
    found = labels(digits.loader(16, where="label BETWEEN 2 AND 4", shuffle=True))
    assert sorted(found.tolist()) == sorted([2, 3, 4] * 30)


def test_weights_of_an_array_and_of_a_column(digits):
    weights = (digits["label"][:] == 7) * 1.0
    drawn = labels(digits.loader(50, weights=weights, samples=200))
    assert drawn.tolist() == [7] * 200
    by_column = labels(digits.loader(50, weights="label", where="label IN (0, 9)", samples=100))
    assert by_column.tolist() == [9] * 100


def test_without_replacement_each_is_drawn_once(digits):
    loader = digits.loader(10, ["sid"], weights="label", samples=40, replacement=False)
    found = np.concatenate([batch["sid"] for batch in loader])
    assert len({*found.tolist()}) == len(found) == 40


def test_classes_in_balance(digits):
    loader = digits.loader(
        100, ["label", "sid"], where="label = 1 OR sid < 10", balance="label", samples=2000
    )
    first, second = (list(loader) for _ in range(2))
    drawn = [np.concatenate([batch["sid"] for batch in epoch]) for epoch in (first, second)]
    first = np.concatenate([batch["label"] for batch in first])
    share = (first == 0).mean()  # 10 samples of class 0, 30 of class 1
    assert 0.4 < share < 0.6
    assert len(loader) == 20
    assert (drawn[0] != drawn[1]).any()  # drawn anew


def test_classes_in_balance_without_replacement(digits):
    """None comes twice, and of the smaller class more are drawn than its quarter."""
    options = {"balance": "label", "samples": 20, "replacement": False}
    loader = digits.loader(20, ["label", "sid"], where="label = 1 OR sid < 10", **options)
    epochs = [list(loader) for _ in range(20)]
    assert [len({*batch["sid"].tolist()}) for (batch,) in epochs] == [20] * 20
    counts = [np.count_nonzero(batch["label"] == 0) for (batch,) in epochs]
    assert np.mean(counts) > 6.5  # without balance about 5
    with pytest.raises(tl.InvalidOptionError, match="41 samples without replacement, and 40"):
        list(digits.loader(20, where="label = 1 OR sid < 10", **options | {"samples": 41}))


def test_texts_in_balance(digits):
    """One text, and 99 others: it is drawn as often as each of them."""
    loader = digits.loader(100, ["sid"], where="sid < 100", balance="name", samples=1000)
    drawn = np.concatenate([batch["sid"] for batch in loader])
    assert len({*drawn.tolist()}) == 100


def test_a_buffer_that_is_larger_than_any_table(digits):
    found = labels(digits.loader(16, ["label"], shuffle="100TB"))
    assert sorted(found.tolist()) == sorted(digits["label"][:].tolist())


def test_classes_are_no_weights(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"kind": tl.types.ClassLabel(["cat", "dog"]), "n": "int64"})
    ds.extend({"kind": ["cat", "dog", "cat"], "n": [0, 1, 2]})
    with pytest.raises(ValueError, match=r"a column of labels, .* balance='kind' draws each label"):
        ds.loader(2, weights="kind")
    assert len(ds.loader(2, balance="kind", samples=4)) == 2


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"columns": ["lable"]}, KeyError, "did you mean 'label'"),
        ({"columns": []}, ValueError, "delivers at least one column"),
        (
            {"where": "label > 99"},
            ValueError,
            "no sample of the dataset at .* fits where='label > 99'",
        ),
        ({"where": "label >"}, ValueError, "label >"),
        ({"weights": [1.0, 2.0]}, ValueError, "2"),
        ({"columns": [3]}, ValueError, "columns has 3 in it, which is not a name"),
        ({"columns": 3}, ValueError, "columns=3 is not a list of names"),
        ({"weights": "name"}, ValueError, "column 'name' is not one number a sample"),
        ({"balance": "x"}, ValueError, "column 'x' is not one label a sample"),
        ({"weights": "label", "replacement": 0}, ValueError, "replacement=0 is not True or False"),
        ({"weights": "label", "balance": "label"}, ValueError, "give one"),
        ({"samples": 5}, ValueError, "give weights or balance too"),
        ({"transform": {"lable": abs}}, ValueError, "did you mean 'label'"),
        ({"transform": {"label": 5}}, ValueError, "of column 'label' is not a function"),
        ({"transform": {"label": tl.loader.Resize(4)}}, ValueError, "column 'label' is"),
    ],
)
def test_what_is_wrong(digits, options, error, says):
    with pytest.raises(error, match=says) as found:
        digits.loader(8, **options)
    assert isinstance(found.value, tl.TensorLakeError)


@pytest.mark.parametrize("schema", [{"x": "int64"}, None])
def test_an_empty_dataset(tmp_path, schema):
    ds = tl.dataset(str(tmp_path), schema)
    with pytest.raises(tl.InvalidOptionError, match="has no samples; a loader needs at least one"):
        ds.loader(4)
