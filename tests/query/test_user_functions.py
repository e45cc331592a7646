"""Functions of users: called with whole batches, checked, and named in errors."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, InvalidQueryError
from tensorlake_spark.query.functions.expressions import evaluate
from tensorlake_spark.query.functions.registry import find
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.query.user_functions import register_function, unregister_function

STACK = {"x": np.arange(6.0).reshape(3, 2), "r": [np.ones(1), None, np.ones(3)]}


@pytest.fixture
def register():
    made = []

    def function(name, *arguments, **options):
        register_function(name, *arguments, **options)
        made.append(name.casefold())

    yield function
    for name in set(made):
        unregister_function(name)


def ask(text, columns=STACK, rows=3, **parameters):
    return evaluate(parse(f"SELECT {text} FROM t").selects[0], columns, rows, parameters)


def test_whole_batches_come_and_go(register):
    seen = []
    register("mine", lambda *given: seen.append(given) or np.arange(3) * 2.5, returns="number")
    assert ask("MINE(x, r, 5, 'a', :q) + 1", q=np.ones(2)).tolist() == [1, 3.5, 6]
    x, r, number, text, q = seen[0]
    assert x is STACK["x"]
    assert r is STACK["r"]
    assert (number, text) == (5, "a")
    assert q.tolist() == [1, 1]


def test_the_door_of_the_package_is_this_one():
    assert tl.register_function is register_function


@pytest.mark.parametrize(
    ("returns", "given", "wanted"),
    [
        ("number", [1.5, 2, 3], [1.5, 2, 3]),
        ("int", [1, 2, 3], [1, 2, 3]),
        ("bool", [1, 0, 1], [True, False, True]),
        ("text", ["a", "b", "c"], ["a", "b", "c"]),
        ("text", np.array(["a", "b", "c"], object), ["a", "b", "c"]),
        ("float32", (1, 2, 3), [1, 2, 3]),
        (np.uint8, [1, None, 3], [1, None, 3]),
        (bool, [1, 0, 1], [True, False, True]),
    ],
)
def test_results_of_each_kind(register, returns, given, wanted):
    register("mine", lambda x: given, returns=returns)
    assert list(ask("mine(x)")) == wanted


def test_results_have_the_dtype_that_was_said(register):
    register("mine", lambda x: np.arange(3), returns="float32")
    assert ask("mine(x)").dtype == np.float32


def test_arrays_come_back(register):
    register("mine", lambda x: x[:, ::-1], returns="array")
    assert ask("mine(x)[0]").tolist() == [1, 3, 5]
    register("mine", lambda r: [None if one is None else one * 2 for one in r], returns="array")
    assert [None if one is None else one.tolist() for one in ask("mine(r)")] == [
        [2],
        None,
        [2, 2, 2],
    ]


def test_a_function_of_constants_gives_one_value(register):
    register("mine", lambda: 7, returns="int")
    assert ask("mine()").tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("returns", "function", "said"),
    [
        (
            "number",
            lambda x: 1 / 0,
            "the function 'mine' raised ZeroDivisionError: division by zero",
        ),
        ("number", lambda x: [1, 2], "'mine' returned 2 values for 3 rows"),
        ("number", lambda x: np.float64(1), "'mine' returned no values for 3 rows"),
        ("number", lambda x: 5, "'mine' returned int"),
        ("number", lambda x: None, "'mine' returned NoneType"),
        ("number", lambda x: ["a"] * 3, "returned text, but it was registered to return number"),
        ("text", lambda x: [1] * 3, "registered to return text"),
        ("number", lambda x: x, "register it with returns='array'"),
        ("number", lambda x, y: x, "raised TypeError"),
        ("number", lambda x: [object()] * 3, "returned values of object"),
        ("number", lambda x: np.zeros((2, 3)), "returned 2 values for 3 rows"),
    ],
)
def test_what_goes_wrong_names_the_function(register, returns, function, said):
    register("mine", function, returns=returns)
    with pytest.raises(InvalidQueryError, match="MINE\\(x\\)") as caught:
        ask("mine(x)")
    assert said in str(caught.value)


def test_what_stops_the_program_is_passed_on(register):
    def stop(x):
        raise KeyboardInterrupt

    register("mine", stop)
    with pytest.raises(KeyboardInterrupt):
        ask("mine(x)")


@pytest.mark.parametrize("name", ["", "a b", "5a", "a-b", "größe", None, 5, "a" * 64])
def test_names_that_are_none(name):
    with pytest.raises(InvalidOptionError, match="name="):
        register_function(name, len)


@pytest.mark.parametrize("name", ["array_mean", "MEAN", "shape"])
def test_functions_of_the_package_stay(name):
    with pytest.raises(InvalidOptionError, match="is a function of this package"):
        register_function(name, len)
    assert not find(name).users


@pytest.mark.parametrize("name", ["sum", "Count", "lower", "cast", "sqrt", "select"])
def test_names_that_sql_has_are_taken(name):
    with pytest.raises(InvalidOptionError, match="of SQL"):
        register_function(name, len)


@pytest.mark.parametrize("f", [None, 5, "len"])
def test_what_cannot_be_called(f):
    with pytest.raises(InvalidOptionError, match="cannot be called"):
        register_function("mine", f)


@pytest.mark.parametrize("returns", ["matrix", None, object, "datetime64[s]", 5])
def test_kinds_that_are_unknown(returns):
    with pytest.raises(InvalidOptionError, match="returns="):
        register_function("mine", len, returns=returns)


def test_a_function_is_replaced_and_forgotten(register):
    register("mine", lambda x: np.zeros(3))
    register("MINE", lambda x: np.ones(3))
    assert ask("mine(x)").tolist() == [1, 1, 1]
    unregister_function("Mine")
    with pytest.raises(InvalidQueryError, match="no function 'mine'"):
        ask("mine(x)")
    with pytest.raises(InvalidOptionError, match="not a registered function"):
        unregister_function("mine")
    register("mine", lambda x: np.ones(3))


@pytest.mark.parametrize("name", ["shape", "nothing", None])
def test_only_functions_of_users_are_forgotten(name):
    with pytest.raises(InvalidOptionError, match="not a registered function"):
        unregister_function(name)
