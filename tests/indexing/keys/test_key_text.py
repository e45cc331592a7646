"""Keys as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidSliceError
from tensorlake_spark.indexing import format_key, named_key, parse_key

bound = st.none() | st.integers(-20, 20)
parts = (
    st.integers(-20, 20)
    | st.builds(slice, bound, bound, st.none() | st.integers(-5, 5).filter(bool))
    | st.just(Ellipsis)
    | st.none()
    | st.lists(st.integers(-9, 9), min_size=1, max_size=4)
)


@given(st.lists(parts, max_size=5).map(tuple))
def test_parsing_undoes_formatting(key):
    assert parse_key(format_key(key)) == key


def test_names_of_axes():
    axes = ("image", "channel", "y")
    assert parse_key("image=30:40, y=5", axes) == (slice(30, 40), slice(None), 5)
    assert parse_key("y=[1, 2]", axes) == (slice(None), slice(None), [1, 2])
    assert parse_key("", axes) == parse_key("  ") == named_key(None, {}) == ()
    assert parse_key("·x=1", ("·x",)) == parse_key("axes = 1,", ("axes",)) == (1,)
    assert named_key(axes, {"channel": 0}) == (slice(None), 0, slice(None))


@pytest.mark.parametrize(
    ("text", "axes", "says"),
    [
        ("9" * 5000, None, "cannot be read"),
        ("1:2, 3]", None, r"'3\]'"),
        ("[1, 2", None, r"'\[1, 2'"),
        ("=3", ("image", "y"), "no axis is named ''"),
        ("y==3", ("image", "y"), "'=3'"),
        ("im-age=3", ("image", "y"), "did you mean 'image'"),
        ("30:40, banana", None, "'banana'"),
        ("1:2:3:4", None, "'1:2:3:4'"),
        ("1.5", None, "'1.5'"),
        ("::0", None, "step of '::0' is zero"),
        ("[1, x]", None, r"\[1, x\]"),
        (",", None, "''"),
        ("imag=3", ("image", "y"), "did you mean 'image'"),
        ("image=3, 5", ("image", "y"), "mixes names and positions"),
        ("y=3, y=4", ("image", "y"), "'y' twice"),
        ("y=3", None, "have no names"),
        ("y=None", ("image", "y"), "'y' is given None, which picks from no axis"),
        ("y=...", ("image", "y"), "'y' is given Ellipsis"),
    ],
)
def test_errors_show_text_part_and_remedy(text, axes, says):
    with pytest.raises(InvalidSliceError, match=says):
        parse_key(text, axes)


@given(
    st.dictionaries(st.sampled_from("abcd"), parts.filter(lambda p: p is not None and p is not ...))
)
def test_names_and_positions_say_the_same(picks):
    axes = ("a", "b", "c", "d")
    text = ", ".join(f"{name}={format_key((pick,))}" for name, pick in picks.items())
    assert parse_key(text, axes) == named_key(axes, picks)


def test_all_kinds_of_integers_as_text():
    bounds = slice(np.int8(1), np.uint64(9), None)
    assert format_key((2**70, np.int16(-3), np.array(4), bounds)) == f"{2**70}, -3, 4, 1:9"
    assert parse_key(f"{2**70}") == (2**70,)


def test_masks_as_text_pick_the_same():
    assert format_key(np.array([True, False, True])) == "[0, 2]"
    assert format_key((np.int64(5), np.array([], np.int64), [False, True])) == "5, [], [1]"


@pytest.mark.parametrize(
    "part", [1.5, [[1, 2]], [[1], [1, 2]], "y", True, [0.5], slice(1.5, 3), slice("a", None)]
)
def test_what_has_no_text_is_refused(part):
    with pytest.raises(InvalidSliceError, match="has no text"):
        format_key(part)
