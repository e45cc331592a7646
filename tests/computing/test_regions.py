"""Regions tile a selection in C order."""

import numpy as np
import pytest
from computed import array_of, put

from tensorlake_spark.computing import regions
from tensorlake_spark.writing import source


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(source, "REGION_BYTES", 200)
    monkeypatch.setattr(regions, "REGION_BYTES", 200)


@pytest.mark.parametrize("layout", ["ftsf", "bsgs", "coo"])
@pytest.mark.parametrize("key", [np.s_[...], np.s_[::-1, 2], np.s_[[3, 1]], np.s_[2, 3], np.s_[:0]])
def test_every_element_is_in_one_region(lake, layout, key):
    stored = put(lake, array_of("f8", (9, 7), 1), layout).view[key]._stored
    seen = np.zeros(stored.shape, int)
    boxes = [*regions.region_boxes(stored)]
    for box in boxes:
        seen[box.slices()] += 1
    assert (seen == 1).all()
    assert [box.lo for box in boxes] == sorted(box.lo for box in boxes)


def test_elements_have_their_place_in_the_selection(lake):
    array = array_of("i8", (9, 7), 1)
    stored = put(lake, array, "coo").view[1:, ::-1]._stored
    out = np.zeros(stored.shape, int)
    for part in regions.element_regions(stored):
        out[tuple(part.coords)] += part.values
    assert np.array_equal(out, array[1:, ::-1])
