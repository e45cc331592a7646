"""Names of columns and functions in a tree, and values of parameters."""

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.functions.tree_names import (
    arguments_of,
    function_name,
    name_of,
    parameter_value,
    sources_of,
    text_of,
)
from tensorlake_spark.query.language.parsing import parse


def node(text):
    return parse(f"SELECT {text} FROM t").selects[0]


def test_names_of_columns_and_functions():
    assert name_of(node("d.images")) == "d.images"
    assert name_of(node('"a/b"')) == "a/b"
    assert sources_of(node("iou(a, d.b) + a[c:2]")) == {"a", "d.b", "c"}
    assert function_name(node("POW(a, 2)")) in ("power", "pow")
    assert [function_name(node(f"{name}(a, 2, 'x')")) for name in ("lpad", "RPAD")] == [
        "lpad",
        "rpad",
    ]
    assert function_name(node("a + 1")) is None
    assert [one.sql() for one in arguments_of(node("ROUND(a, 2)"))] == ["a", "2"]
    assert text_of(node("a + 1")) == "a + 1"


@pytest.mark.parametrize("value", [1, 2.5, "x", True, None, np.float32(1)])
def test_single_values_stay_as_they_are(value):
    assert parameter_value("v", value) is value


@pytest.mark.parametrize("value", [[1, 2], (1.5, 2), [[1, 2], [3, 4]], ["a", "b"], range(3)])
def test_lists_become_arrays(value):
    found = parameter_value("v", value)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == np.array(value).tolist()


@pytest.mark.parametrize("value", [object(), {"a": 1}, [1, None], [[1], [1, 2]], {1, 2}, len])
def test_values_that_parameters_cannot_have(value):
    with pytest.raises(InvalidQueryError, match="the parameter :v is"):
        parameter_value("v", value)


def test_masked_arrays_are_filled_first():
    masked = np.ma.masked_array([1, 2], [False, True])
    with pytest.raises(InvalidQueryError, match="masked in some places"):
        parameter_value("v", masked)
    assert parameter_value("v", masked.filled(0)).tolist() == [1, 0]
