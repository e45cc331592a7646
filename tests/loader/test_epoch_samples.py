"""Which samples an epoch has: digests that tell selections apart, orders that do not depend on how files lie."""

from itertools import chain

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.loader.epoch_samples import Selection
from tensorlake_spark.loader.loader_options import checked_options
from tensorlake_spark.loader.sources.dataset_samples import DatasetSamples


@pytest.fixture
def source(digits):
    return DatasetSamples(digits.parts, ["label"], {}, 1 << 20)


def test_other_samples_and_weights_have_other_digests(source):
    chosen = np.arange(10)
    weights = np.ones(300)
    digests = {
        Selection().digest(source),
        Selection(chosen).digest(source),
        Selection(chosen[::-1]).digest(source),
        Selection(None, weights).digest(source),
        Selection(None, weights, 5).digest(source),
        Selection(None, weights, None, False).digest(source),
    }
    assert len(digests) == 6
    assert Selection(chosen.copy()).digest(source) == Selection(chosen).digest(source)


@pytest.mark.parametrize("shuffle", ["global", "64KB"])
def test_an_order_depends_on_what_was_selected(source, shuffle):
    """Of as many other samples the places come in another order, with the same seed and epoch."""
    options = checked_options(10, shuffle=shuffle, seed=7)

    def places(first, weights=None):
        chosen = np.arange(first, first + 100)
        selection = Selection(chosen, weights, replacement=False)
        order = selection.order(source, options, selection.state(source, options), 10)
        return (order.sequence(0, 100) - first).tolist()

    assert sorted(places(0)) == sorted(places(100)) == [*range(100)]
    assert places(0) == places(0)
    assert places(0) != places(100)
    assert places(0) != places(0, np.ones(100))


def test_counts(source):
    assert Selection().count(source) == 300
    assert Selection(np.arange(7)).count(source) == 7
    assert Selection(np.arange(7), np.ones(7), 50).count(source) == 50


def test_positions_keep_their_order_without_a_shuffle(source):
    chosen = np.array([9, 2, 250, 4])
    options = checked_options(2)
    selection = Selection(chosen)
    order = selection.order(source, options, selection.state(source, options), 2)
    assert np.concatenate([order.batch(k) for k in range(2)]).tolist() == chosen.tolist()


def test_files_that_do_not_lie_in_the_order_of_numbers(tmp_path):
    """An update puts samples into new files: positions are not places any more."""
    ds = tl.dataset(str(tmp_path), {"x": "int64"})
    for first in (0, 20, 40):
        ds.extend({"x": np.arange(first, first + 20)})
    ds.update([0, 25], {"x": [100, 125]})
    whole = [batch["x"].tolist() for batch in ds.loader(10, shuffle=True)]
    assert sorted(chain.from_iterable(whole)) == sorted(ds["x"][:].tolist())
    chosen = [batch["x"].tolist() for batch in ds.loader(10, where="x > 30", shuffle=True)]
    assert sorted(chain.from_iterable(chosen)) == [*range(31, 60), 100, 125]
