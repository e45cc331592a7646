"""Labels of axes: lists and bins, look-ups, appends, and what is refused."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import tensorlake_spark as tl
from tensorlake_spark.tensor.labels import Listed, Regular, Unread

DAYS = {"start": "2013-01-01", "step": 1, "unit": "D"}


@pytest.fixture
def flights(lake):
    st = tl.SparseTensor([[0, 1, 1], [2, 0, 1]], [3, 4, 5], (2, 3))
    labels = {"carrier": ["AA", "DL", "UA"], "day": DAYS}
    return lake.write("f", st, layout="bsgs", axes=("day", "carrier"), labels=labels)


def test_look_ups(flights, lake):
    assert flights.labels("carrier").tolist() == ["AA", "DL", "UA"]
    assert (
        flights.labels("day").tolist() == np.array(["2013-01-01", "2013-01-02"], "M8[D]").tolist()
    )
    assert flights.sel(carrier="UA").todense().tolist() == [3, 0]
    assert flights.sel(carrier=slice("AA", "DL"), day="2013-01-02").todense().tolist() == [4, 5]
    assert flights.sel(carrier=["UA", "AA"])[0].todense().tolist() == [3, 0]
    assert flights.sel(carrier=pd.Series(["UA", "AA"]))[0].todense().tolist() == [3, 0]
    days = pd.date_range("2013-01-02", "2013-01-02")
    assert flights.sel(day=days, carrier="DL").todense().tolist() == [5]
    assert flights.sel(day=np.datetime64("2013-01-02"), carrier="DL") == 5
    again = tl.open(lake.uri)["f"]
    assert again.labels("carrier").tolist() == ["AA", "DL", "UA"], "kept in the table"


def test_an_axis_without_labels_takes_indices(lake):
    ref = lake.write("x", np.arange(6).reshape(2, 3), axes=("a", "b"), labels={"a": ["p", "q"]})
    assert ref.sel(a="q", b=1) == 4
    with pytest.raises(tl.UnknownLabelError, match=r"axis 'b'.*axes with labels: a"):
        ref.labels("b")
    for axis in (["a"], {}, np.array("a"), 0):
        with pytest.raises(tl.UnknownLabelError, match=r"has no labels.*axes with labels: a"):
            ref.labels(axis)
    with pytest.raises(tl.UnknownLabelError, match=r"axis 'b'.*so 'y' names nothing.*labels: a$"):
        ref.sel(b="y")
    with pytest.raises(tl.InvalidSliceError):
        ref.sel(c=1)


def test_unknown_labels_offer_the_nearest(flights):
    with pytest.raises(KeyError, match="'UAL'; did you mean 'UA'"):
        flights.sel(carrier="UAL")
    with pytest.raises(tl.UnknownLabelError, match="before the first bin"):
        flights.sel(day="2012-12-31")
    for late in ("2013-01-03", ["2013-01-01", "2013-01-03"]):
        with pytest.raises(
            tl.UnknownLabelError, match="'2013-01-03' lies behind the last bin, 2013-01-02"
        ):
            flights.sel(day=late)
    for nothing in ("yesterday", None, "NaT"):
        with pytest.raises(tl.UnknownLabelError, match="not a label of bins"):
            flights.sel(day=nothing)
    with pytest.raises(tl.UnknownLabelError, match="no step"):
        flights.sel(carrier=slice("AA", "UA", 2))


def test_a_slice_takes_the_bins_that_there_are(flights):
    whole = flights[:].todense().tolist()
    assert flights.sel(day=slice("2012", "2014")).todense().tolist() == whole
    assert flights.sel(day=slice("2013-01-02", "2031-01-01")).todense().tolist() == whole[1:]
    assert flights.sel(day=slice("2012-01-01", "2012-12-31")).shape == (0, 3)
    assert flights.sel(day=slice("2013-01-03", None)).shape == (0, 3)


def test_bins():
    hours = Regular("2013-01-01T00", 1, "h")
    assert hours.index("2013-01-01T05", 2000) == 5
    assert hours.index("2013-01-02", 2000) == slice(24, 48)
    assert hours.index(slice("2013-01-02", "2013-01-03"), 2000) == slice(24, 72)
    assert hours.index("2013-02", 2000) == slice(31 * 24, 59 * 24)
    sixes = Regular("2013-01-01T00", 6, "h")
    assert sixes.index("2013-01-02", 2000) == slice(4, 8)
    assert sixes.index("2013-01-01T07", 2000) == 1
    noons = Regular("2013-01-01T12", 1, "h")
    assert noons.index("2013-01-01", 2000) == slice(0, 12)
    with pytest.raises(tl.UnknownLabelError, match="in no bin: the first will be 2013-01-01T12"):
        noons.index("2013-01-02", 0)
    degrees = Regular(40.5, 0.01)
    assert degrees.places(np.array([40.5, 40.51, 40.519, 41.0])).tolist() == [0, 1, 1, 50]
    assert degrees.index(slice(40.6, 40.7), 2000) == slice(10, 21)
    np.testing.assert_allclose(degrees.array(3), [40.5, 40.51, 40.52])


@pytest.mark.parametrize("start", [0, 2**53, 2**61, 2**63 - 40, 2**63, -(2**63), -(2**70)])
@pytest.mark.parametrize("step", [1, 7])
def test_bins_of_integers_are_exact(start, step):
    """Doubles do not have all of them above 2^53, and int64 none above 2^63."""
    ids = Regular(start, step)
    assert ids.array(20).tolist() == [start + k * step for k in range(20)]
    for value in (start + 8 * step, start + 9 * step - 1, start + 8):
        if abs(value) < 2**63:
            assert ids.index(value, 20) == (value - start) // step
            assert ids.index(np.int64(value), 20) == (value - start) // step
            assert ids.places(np.array([value] * 2)).tolist() == [(value - start) // step] * 2
            assert ids.index([value], 20).tolist() == [(value - start) // step]
    assert ids.array(0).tolist() == ids.places(np.zeros(0, "i8")).tolist() == []


def test_appends_bring_labels_of_their_own(flights, lake):
    more = tl.SparseTensor([[2], [3]], [9], (3, 4))
    with pytest.raises(tl.InvalidTensorError, match="3 labels for axis 'carrier' of length 4"):
        lake.write("f", more, mode="append", axis=None)
    ref = lake.write(
        "f", more, mode="append", axis=None, labels={"carrier": ["AA", "DL", "UA", "WN"]}
    )
    assert ref.sel(carrier="WN", day="2013-01-03") == 9
    column = tl.SparseTensor([[0], [0]], [1], (3, 1))
    ref = lake.write("f", column, mode="append", axis=1, labels={"carrier": ["ZZ"]})
    assert ref.labels("carrier").tolist() == ["AA", "DL", "UA", "WN", "ZZ"]
    assert ref.sel(carrier="ZZ", day="2013-01-01") == 1


def test_many_labels_are_found_at_once():
    names = Listed(tuple(f"n{k}" for k in range(1000)))
    assert names.index([f"n{k}" for k in range(999, -1, -1)], 1000).tolist() == [
        *range(999, -1, -1)
    ]
    assert names.index(np.array(["n7", "n3"]), 1000).tolist() == [7, 3]
    assert names.places(["n1", "m1", ["n1"], None]).tolist() == [1, -1, -1, -1]
    with pytest.raises(tl.UnknownLabelError, match=r"there is no label 'm5'; did you mean 'n5'"):
        names.index(["n1", "m5", "m6"], 1000)


TEXTS = [f"name {k}" for k in range(40)]


@pytest.mark.parametrize(
    "names",
    [
        TEXTS, ["a"], ["", "a", "aa"], ["a,b", ", c", "d"], ["[", "]", "{}", ":"],
    ],
)  # fmt: skip
def test_texts_are_found_in_the_json_of_all(names):
    text = json.dumps(names, separators=(",", ":"))
    wanted = [*names, "no", "name", "a,", ",", '"', "\\", '","', 'a","aa', "é", 1, True, None]
    for label in wanted:
        found = Unread.of(text)
        place = names.index(label) if label in names else -1
        assert found.places([label]).tolist() == [place], label
    found = Unread.of(text)
    assert found.places(names).tolist() == list(range(len(names)))
    same = Listed(tuple(names))
    assert (found == same, same == found, hash(found) == hash(same)) == (True, True, True)
    assert repr(Unread.of(text)) == repr(same)
    assert pickle.loads(pickle.dumps(Unread.of(text))) == same
    assert Unread.of(text).index(slice(names[0], None), len(names)) == slice(0, len(names))


@pytest.mark.parametrize(
    "said",
    [[], [1], ["a", 1], [1, "a"], ["a", 1, "b"], ["a", ","], ["a", '"'], ["a\\"], ["é"], ["a", None], ["a\n"],
     [",", 1, "a"], ["a", 1, ","], ["a", 1, ",", 2, "b"], [","]],
)  # fmt: skip
def test_other_lists_are_no_texts_to_look_through(said):
    for ascii_alone in (True, False):
        text = json.dumps(said, separators=(",", ":"), ensure_ascii=ascii_alone)
        assert Unread.of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        '["',
        '["]',
        '["a",1,","b"]',
        '["a"],"b":["c"]',
        '["a",["b"],"c"]',
        '["a",{"b":1,"c":2},"d"]',
        '["a""b"]',
        '["a",1,"b"]',
    ],
)
def test_what_is_no_list_of_texts_is_none(text):
    assert Unread.of(text) is None


@pytest.mark.parametrize("names", [["a", "bc", "d"], ["a,b", "c"], ["[", "x"]])
def test_a_part_of_a_text_is_looked_through_where_it_stands(names):
    text = json.dumps(names, separators=(",", ":"))
    before, after = '{"other":["bc","d","c","x","a"],"labels":{"feature":', '},"d":"x"}'
    found = Unread.of(before + text + after, len(before), len(before) + len(text))
    wanted = [*names, "other", "bc", "d", "no"]
    places = [names.index(name) if name in names else -1 for name in wanted]
    assert [int(found.places([name])[0]) for name in wanted] == places
    assert found.values == tuple(names)


def test_labels_that_are_not_json_are_an_error_when_they_are_read():
    found = Unread.of('["a"x,"b"]')
    with pytest.raises(tl.CorruptDataError, match="labels of an axis are not JSON"):
        repr(found)
    assert Unread.of('["a", "b"]').values == ("a", "b")


def test_a_label_that_is_stored_twice_is_seen():
    found = Listed.stored(["a", "b", "a", *TEXTS])
    with pytest.raises(tl.InvalidTensorError, match="repeat"):
        found.places([*TEXTS])
    with pytest.raises(tl.InvalidTensorError, match="no"):
        Listed.stored([["a"]])


@pytest.mark.parametrize("start", [0, 0.5])
def test_nan_is_in_no_bin_and_infinity_is_behind_all(start):
    bins = Regular(start, 0.5 if start else 1)
    for label in (np.nan, "nan", slice(np.nan, 2), slice(0, np.nan), [1, np.nan]):
        with pytest.raises(tl.UnknownLabelError, match=r"nan'? is not a label of bins"):
            bins.index(label, 3)
    for label in (np.inf, 1e300, 2**80):
        with pytest.raises(tl.UnknownLabelError, match="lies behind the last bin"):
            bins.index(label, 3)
        assert range(3)[bins.index(slice(-np.inf, label), 3)] == range(3)
    with pytest.raises(tl.UnknownLabelError, match="lies before the first bin"):
        bins.index(-np.inf, 3)


def test_labels_of_several_kinds_stay_as_they_are(lake):
    ref = lake.write("x", np.arange(3), axes=("x",), labels={"x": [1, "a", 2.5]})
    assert ref.labels("x").tolist() == [1, "a", 2.5]
    assert [ref.sel(x=label) for label in ref.labels("x")] == [0, 1, 2]


def test_a_time_that_is_finer_than_the_bins_is_one_bin():
    hours = Regular("2013-01-01T00", 1, "h")
    assert hours.index("2013-01-01T05:30", 100) == 5
    assert hours.index("2013-01-01T05:59:59.999", 100) == 5
    assert hours.index(slice("2013-01-01T05:30", "2013-01-01T06:30"), 100) == slice(5, 7)
    assert Regular("2013-01-01T00", 6, "h").index("2013-01-01T05:30", 100) == 0


def test_a_loop_over_many_labels_does_not_look_at_all_for_each():
    """``name in features`` of 100,000 names took half a millisecond each."""

    class Looked(tuple):
        times = 0

        def index(self, *args):
            Looked.times += 1
            return super().index(*args)

    values = [f"n{number}" for number in range(1000)]
    labels = Listed.stored(values)
    object.__setattr__(labels, "values", Looked(values))
    assert [labels.places([value])[0] for value in values] == [*range(1000)]
    assert labels.places(["no"]).tolist() == [-1]
    assert 0 < Looked.times < 100
    assert pickle.loads(pickle.dumps(Listed.stored(values))) == labels
