"""Labels as users give them: what is taken, and what is refused."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.tensor.label_input import labels_of
from tensorlake_spark.tensor.labels import Listed, Regular


def test_what_labels_are_made_of():
    assert labels_of(np.array(["a", "b"])) == Listed(("a", "b"))
    assert labels_of([np.int64(3)]).to_json() == [3]
    assert labels_of(Regular(0.0, 0.5)).to_json() == {"start": 0.0, "step": 0.5, "unit": None}


@pytest.mark.parametrize(
    "names", [("a", "b"), np.array(["a", "b"]), pd.Series(["a", "b"]), pd.Index(["a", "b"]), pa.array(["a", "b"])],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_any_kind_of_list_has_labels(lake, names):
    ref = lake.write("x", np.arange(2), axes=("kind",), labels={"kind": names})
    assert ref.sel(kind="b") == 1
    assert tl.open(lake.uri)["x"].labels("kind").tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "start",
    ["2024-01-31", dt.date(2024, 1, 31), dt.datetime(2024, 1, 31), pd.Timestamp("2024-01-31"), np.datetime64("2024-01-31")],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_bins_start_at_any_kind_of_time(lake, start):
    bins = {"start": start, "step": np.int64(1), "unit": "D"}
    lake.write("x", np.arange(3), axes=("day",), labels={"day": bins})
    again = tl.open(lake.uri)["x"]
    assert again.labels("day").tolist() == [dt.date(2024, 1, 31), dt.date(2024, 2, 1), dt.date(2024, 2, 2)]  # fmt: skip
    assert again.sel(day="2024-02-01") == 1


@pytest.mark.parametrize(
    ("bins", "says"),
    [
        (
            {"start": "2024-01-31", "step": 1.5, "unit": "D"},
            "whole number of units long, not 1.5 D",
        ),
        (
            {"start": "2024-01-31", "step": 0.5, "unit": "h"},
            "whole number of units long, not 0.5 h",
        ),
        ({"start": "2024-01-31T06", "step": 1, "unit": "D"}, r"not at '2024-01-31T06'.*24 h"),
        ({"start": "2024-01-31", "step": 1, "unit": "W"}, r"not at '2024-01-31'.*7 D"),
    ],
)
def test_bins_that_would_be_cut_to_whole_units_are_refused(lake, bins, says):
    # Rounded down, they would be other bins than those asked for, and those of half an hour none.
    with pytest.raises(tl.InvalidTensorError, match=says):
        lake.write("x", np.arange(3), axes=("at",), labels={"at": bins})


def test_bins_that_an_earlier_release_stored_are_still_read(lake):
    bins = Regular("2024-01-31", 1.5, "D")
    lake.write("x", np.arange(3), axes=("at",), labels={"at": bins})
    assert tl.open(lake.uri)["x"].labels("at")[0] == np.datetime64("2024-01-31")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"b": ["x"]}, "labels for axis 'b'"),
        ({"a": ["x"]}, "1 labels for axis 'a' of length 2"),
        ({"a": ["x", "x"]}, "axis 'a': labels of an axis repeat themselves: 'x' is there twice"),
        ({"a": [1.0, float("nan")]}, "axis 'a': label nan is not finite"),
        ({"a": ["x", -float("inf")]}, "axis 'a': label -inf is not finite"),
        ({"a": ["x", None]}, "None is not a string"),
        ({"a": "xy"}, "not str"),
        ({"a": pd.date_range("2024-01-31", periods=2)}, "is a time; give times as texts, or bins"),
        ({"a": {"start": 0}}, "not regular bins"),
        ({"a": {"start": 0, "step": "1"}}, "not regular bins: give start, step .a number."),
        ({"a": {"start": 0, "step": 0}}, "length above 0"),
        ({"a": {"start": "2013", "step": 1, "unit": "hour"}}, "unknown unit of time 'hour'"),
    ],
)
def test_labels_that_do_not_fit(lake, labels, message):
    with pytest.raises(tl.InvalidTensorError, match=message):
        lake.write("x", np.ones((2, 3)), axes=("a", "c"), labels=labels)
    assert "x" not in lake


@pytest.mark.parametrize(
    ("bins", "says"),
    [
        (
            {"start": "spring", "step": 1, "unit": "D"},
            "a time such as '2024-01-31', not at 'spring'",
        ),
        ({"start": None, "step": 1, "unit": "D"}, "a time such as '2024-01-31', not at None"),
        ({"start": "NaT", "step": 1, "unit": "D"}, "a time such as '2024-01-31', not at 'NaT'"),
        ({"start": "x", "step": 0.5}, "a number, not at 'x'"),
        ({"start": float("nan"), "step": 0.5}, "a number, not at nan"),
    ],
)
def test_bins_that_start_nowhere_are_not_written(lake, bins, says):
    with pytest.raises(tl.InvalidTensorError, match=says):
        lake.write("x", np.ones(3), axes=("day",), labels={"day": bins})
    assert list(lake) == []
