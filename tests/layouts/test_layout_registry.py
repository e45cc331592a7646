"""The layouts by name."""

import inspect

import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts.layout import Layout
from tensorlake_spark.layouts.layout_registry import LAYOUTS, layout_of


def test_each_has_the_name_that_it_is_found_by():
    for name, layout in LAYOUTS.items():
        assert layout_of(name) is layout
        assert layout.name == name
        assert isinstance(layout, Layout)
        assert not inspect.isabstract(type(layout))
        assert {"values"} <= {*layout.columns}


@pytest.mark.parametrize("name", ["", "FTSF", None, 3, ["ftsf"]])
def test_another_is_an_error_that_lists_them(name):
    with pytest.raises(
        tl.InvalidOptionError,
        match=r"unknown layout .*; known are ftsf, window, coo, csr, csc, csf, bsgs",
    ):
        layout_of(name)


def test_a_near_name_is_offered():
    with pytest.raises(tl.InvalidOptionError, match=r"unknown layout 'bgsg'.*bsgs"):
        layout_of("bgsg")
