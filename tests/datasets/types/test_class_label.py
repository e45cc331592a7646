"""Classes by name and number."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import ClassLabel, Type

LABEL = ClassLabel(["cat", "dog", "owl"])


@pytest.mark.parametrize(
    "given",
    [
        ["dog", "cat", None], [1, 0, None], [np.int64(1), "cat", None], pa.array(["dog", "cat", None]),
        pa.array(["dog", "cat", None]).dictionary_encode(), pa.array([1, 0, None], pa.uint8()),
        pa.array(["dog", "cat", None], pa.large_string()), pa.array(["dog", "cat", None], pa.string_view()), np.ma.array([1, 0, 0], mask=[0, 0, 1]),
    ],
)  # fmt: skip
def test_names_and_numbers_are_taken(given):
    column = LABEL.encode(given, "label")
    assert column.type == pa.int32()
    assert LABEL.decode(column) == [1, 0, None]


def test_arrays_are_taken_and_stacked():
    for given in (np.array([2, 0], "u1"), np.array(["owl", "cat"])):
        found = LABEL.stack(LABEL.encode(given, "label"))
        assert found.dtype == np.int32
        assert found.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["cat", "dgo"], "sample 11: expected one of 3 classes, got 'dgo'; did you mean 'dog'?"),
        (
            pa.array(["cat", "dgo"]),
            "sample 11: expected one of 3 classes, got 'dgo'; did you mean 'dog'?",
        ),
        ([0, 3], "sample 11: expected the number of a class, 0 to 2, got 3"),
        (np.array([0, -1]), "sample 11: expected the number of a class, 0 to 2, got -1"),
        *(
            (
                wrong,
                f"sample 11: expected the name of a class, or its number as an integer, 0 to 2, got {got}",
            )
            for wrong, got in (
                ([0, 2.0], "2.0 (float)"),
                ([0, True], "True (bool)"),
                ([0, b"cat"], "3 bytes"),
                ([0, 1 << 40], "1099511627776"),
                ([0, ["cat"]], "list"),
                ([0, np.nan], "nan (float)"),
            )
        ),
    ],
)
def test_what_is_no_class_is_refused(given, says):
    with pytest.raises(tl.InvalidSampleError) as error:
        LABEL.encode(given, "label", first=10)
    assert says in str(error.value)


def test_numbers_in_lists_are_told_as_those_of_the_sample():
    kind = tl.types.Sequence(LABEL)
    with pytest.raises(
        tl.InvalidSampleError, match=r"sample 12: item 1: expected the name of a class, .*got 1.5"
    ):
        kind.encode([[0], None, [1, 1.5]], "labels", first=10)
    with pytest.raises(
        tl.InvalidSampleError, match="expected the name of a class, or its number as an integer"
    ):
        LABEL.encode(np.array([1.0, 2.0]), "label")


def test_numbers_become_names():
    assert LABEL.names_of([2, None, 0]) == ["owl", None, "cat"]
    assert LABEL.number_of("owl") == 2
    for number in (3, -1):
        with pytest.raises(tl.CorruptDataError, match="0 to 2"):
            LABEL.names_of([number])
    assert Type.from_json(LABEL.to_json()) == LABEL


@pytest.mark.parametrize("names", ["cat", ["a", "a"], ["a", ""], ["a", 1], 5, []])
def test_names_are_checked(names):
    with pytest.raises(tl.InvalidOptionError, match="names"):
        ClassLabel(names)


def test_names_of_an_array_are_texts_of_python():
    names = ClassLabel(np.array(["cat", "dog"])).names
    assert names == ("cat", "dog")
    assert {type(name) for name in names} == {str}
