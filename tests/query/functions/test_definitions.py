"""Functions are kept by name and spelling, and check how many arguments they get."""

import numpy as np
import pytest

from tensorlake_spark.query.functions.definitions import (
    FUNCTIONS,
    Registry,
    TensorFunction,
    rowwise,
)
from tensorlake_spark.query.functions.row_values import Constant, RowError


def made(name="f", **options):
    return TensorFunction(name, lambda arguments, rows: arguments[0], **options)


def test_names_and_spellings_without_regard_to_case():
    known = Registry()
    function = known.add(made(spellings=("g",)))
    assert known["F"] is known.get("G") is function
    assert "f" in known
    assert 5 not in known
    assert known.get("h") is None
    assert (len(known), list(known), known.names()) == (1, [function], ["f", "g"])


def test_what_is_not_there_is_a_key_error():
    known = Registry()
    with pytest.raises(KeyError):
        known["f"]
    with pytest.raises(KeyError):
        known.remove("f")


def test_a_function_is_removed_with_its_spellings():
    known = Registry()
    known.add(made(spellings=("g",)))
    known.remove("g")
    assert "f" not in known
    assert "g" not in known


def test_a_function_is_replaced():
    known = Registry()
    known.add(made())
    new = known.add(made())
    assert known["f"] is new


@pytest.mark.parametrize("count", [0, 3])
def test_the_number_of_arguments_is_checked(count):
    with pytest.raises(RowError, match=f"f takes 1 to 2 arguments, not {count}"):
        made(arity=(1, 2))([Constant(1)] * count, 1)


def test_rows_are_computed_together_where_that_is_given():
    calls = []

    def whole(x):
        calls.append(len(x))
        return x.sum(axis=1)

    try:
        function = rowwise("sum_of_test", np.sum, "number", stacked=whole)
        assert function([np.ones((3, 2))], 3).tolist() == [2, 2, 2]
        assert calls == [3]
        assert function([Constant(np.ones(4))], 3) == Constant(4)
        assert calls == [3]
    finally:
        FUNCTIONS.remove("sum_of_test")
