"""The index of ids answers as a comparison with the bounds of every file does; versions that share arrays are apart."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.delta.log.replaying.live_files import ARRAYS, Files, IdIndex, Paths

NAMES = st.one_of(st.none(), st.sampled_from(["", "a", "b", "b/c", "z", "ä", "\U0001f600"]))


def objects(values):
    out = np.empty(len(values), object)
    out[:] = values
    return out


def expected(tensor_id, bounds):
    return [
        place
        for place, (least, most) in enumerate(bounds)
        if (least is None or least <= tensor_id) and (most is None or most >= tensor_id)
    ]


BOUNDS = st.lists(st.tuples(NAMES, NAMES), max_size=6)


@given(
    first=BOUNDS, steps=st.lists(BOUNDS, max_size=4), ask=NAMES.filter(bool), asked=st.booleans()
)
def test_an_index_that_grows_answers_as_the_bounds_do(first, steps, ask, asked):
    index, bounds = IdIndex(), first
    versions = [(index, bounds)]
    for more in steps:
        if asked:
            index.places(ask, *map(objects, zip(*bounds, strict=True))) if bounds else None
        index = index.later(len(bounds), *(objects([b[k] for b in more]) for k in (0, 1)))
        bounds = bounds + more
        versions.append((index, bounds))
    for index, bounds in reversed(versions):  # a later version may have been asked before
        found = index.places(ask, *(objects([b[k] for b in bounds]) for k in (0, 1)))
        assert found.tolist() == expected(ask, bounds)


def test_two_versions_that_follow_the_same_one_do_not_share_it():
    none = objects([])
    index = IdIndex()
    assert index.places("a", objects(["a"]), objects(["a"])).tolist() == [0]
    one = index.later(1, objects(["a"]), objects(["a"]))
    other = index.later(1, objects(["b"]), objects(["b"]))
    assert one is index
    assert one.places("a", objects(["a", "a"]), objects(["a", "a"])).tolist() == [0, 1]
    assert other.places("a", objects(["a", "b"]), objects(["a", "b"])).tolist() == [0]
    assert other.places("b", objects(["a", "b"]), objects(["a", "b"])).tolist() == [1]
    assert IdIndex().places("a", none, none).tolist() == []


def added(names):
    """``add`` actions of files with these names, whose statistics follow from the name."""
    return [
        {
            "path": name,
            "size": len(name),
            "stats": json.dumps({"numRecords": 2, "minValues": {"id": name, "lo": {"d1": 5}}}),
        }
        for name in names
    ]


def same(files, names):
    want = Files.of({"path": []}, "t").grown(added(names), set(), "t")
    assert files.path == want.path == names
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(files, name), getattr(want, name))
    for name in names:
        assert [files.path[k] for k in files.places_of(name)] == [n for n in names if n <= name], (
            "their greatest id is unknown"
        )


NAMED = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=4)


@given(st.lists(st.tuples(st.integers(0, 9), NAMED, NAMED), max_size=8))
def test_versions_that_follow_one_another_do_not_change_each_other(steps):
    versions = [(Files.of({"path": []}, "t"), [])]
    for place, new, gone in steps:
        files, names = versions[place % len(versions)]  # two may follow the same one
        left = [name for name in names if name not in {*new, *gone}]
        versions.append((files.grown(added(new), {*gone} - {*new}, "t"), left + new))
    for files, names in versions:
        same(files, names)


def test_a_version_that_only_adds_files_shares_their_arrays():
    first = Files.of({"path": []}, "t").grown(added("abcdefgh"), set(), "t")
    second, other = (first.grown(added(name), set(), "t") for name in "ij")
    assert all(np.shares_memory(getattr(first, n), getattr(second, n)) for n in ARRAYS)
    assert not any(np.shares_memory(getattr(first, n), getattr(other, n)) for n in ARRAYS)
    same(first, [*"abcdefgh"])
    same(second, [*"abcdefghi"])
    same(other, [*"abcdefghj"])


def test_a_file_whose_bounds_nobody_knows_may_hold_every_tensor():
    """Else what is left of a deleted tensor would stay in it."""
    files = Files.of({"path": []}, "t").grown(
        [*added("b"), {"path": "c", "size": 1, "stats": None}], set(), "t"
    )
    assert files.may_hold_any(["a"]).tolist() == [True, True]
    assert files.may_hold_any([]).tolist() == [False, False]
    known = added("b")[0]
    known["stats"] = json.dumps({"minValues": {"id": "b"}, "maxValues": {"id": "d"}})
    files = Files.of({"path": []}, "t").grown([known], set(), "t")
    asked = ("a", "b", "c", "d", "e")
    assert [files.may_hold_any([name])[0] for name in asked] == [False, True, True, True, False]


def test_paths_are_a_part_of_a_list():
    names = ["a", "b", "c", "d"]
    paths = Paths(names, 3)
    names.append("e")
    assert (len(paths), [*paths], paths[-1], paths[1:]) == (3, ["a", "b", "c"], "c", ["b", "c"])
    assert paths == ["a", "b", "c"]
    assert paths != ["a", "b"]
    assert "d" not in paths
    assert repr(paths) == "['a', 'b', 'c']"
    with pytest.raises(IndexError):
        paths[3]
