"""Expressions of queries against NumPy, row by row."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.functions.expressions import evaluate
from tensorlake_spark.query.functions.registry import FUNCTIONS, SCALARS
from tensorlake_spark.query.language.parsing import parse

ROWS = 4
RNG = np.random.default_rng(0)
COLUMNS = {
    "x": RNG.integers(0, 255, (ROWS, 10, 12, 3)).astype(np.uint8),
    "r": [*(RNG.integers(0, 255, (5 + i, 6, 3)).astype(np.uint8) for i in range(3)), None],
    "n": np.arange(ROWS),
    "f": np.array([0.5, -1.5, np.nan, np.inf]),
    "t": np.array(["a", "b", "c", None], object),
    "d.emb": RNG.random((ROWS, 8)).astype(np.float32),
    "day": np.array(["2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01"], "datetime64[D]"),
}


def node(text):
    return parse(f"SELECT {text} FROM t").selects[0]


def ask(text, rows=ROWS, columns=COLUMNS, **parameters):
    return evaluate(node(text), columns, rows, parameters)


def loop(function):
    """What a function of one row gives for each, with None where the ragged column has none."""
    out = []
    for i in range(ROWS):
        row = {name.rpartition(".")[2]: values[i] for name, values in COLUMNS.items()}
        with np.errstate(all="ignore"):
            out.append(function(**row))
    return out


def same(found, wanted):
    assert len(found) == len(wanted)
    for got, one in zip(found, wanted, strict=True):
        if one is None:
            assert got is None
        elif isinstance(one, str):
            assert got == one
        else:
            assert np.shape(got) == np.shape(one)
            if np.asarray(one).dtype.kind in "fc":
                np.testing.assert_allclose(got, one, rtol=1e-5)
            else:
                np.testing.assert_array_equal(got, one)


def if_there(function):
    return lambda r, **row: None if r is None else function(r=r, **row)


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("x[2:5, ::-1, 0]", lambda x, **_: x[2:5, ::-1, 0]),
        ("x[100:500, -3:, 0:2]", lambda x, **_: x[100:500, -3:, 0:2]),
        ("x[..., newaxis, 0]", lambda x, **_: x[..., None, 0]),
        ("r[1:3, ..., -1]", if_there(lambda r, **_: r[1:3, ..., -1])),
        ("x[n:n + 2, n]", lambda x, n, **_: x[n : n + 2, n]),
        ("x[:n, 1]", lambda x, n, **_: x[:n, 1]),
        ("x[(n % 2)::2]", lambda x, n, **_: x[n % 2 :: 2]),
        ("x[[0, 2]][:, [1, 1], 0]", lambda x, **_: x[[0, 2]][:, [1, 1], 0]),
        ("x[$a:$b]", lambda x, **_: x[1:3]),
        ("array_mean(r) > 100", if_there(lambda r, **_: np.mean(r) > 100)),
        ("array_mean(x[2:8, 2:8]) * 2 - 1", lambda x, **_: np.mean(x[2:8, 2:8]) * 2 - 1),
        ("MEAN(x, 0)", lambda x, **_: np.mean(x, axis=0)),
        ("x + 100", lambda x, **_: x + 100),
        ("x * 1.5 / 0", lambda x, **_: x * 1.5 / 0),
        ("n / 0", lambda n, **_: n / 0),
        ("-n % 3", lambda n, **_: -n % 3),
        ("f / f", lambda f, **_: f / f),
        ("n DIV 2", lambda n, **_: n // 2),
        ("x & 3 | 4", lambda x, **_: x & 3 | 4),
        ("~x", lambda x, **_: ~x),
        ("x[0, 0, 0] << 1", lambda x, **_: x[0, 0, 0] << 1),
        ("any(x > 250 AND x < 254)", lambda x, **_: np.any((x > 250) & (x < 254))),
        ("all(NOT x > 253)", lambda x, **_: np.all(~(x > 253))),
        ("any(x = 3 OR x = 4)", lambda x, **_: np.any((x == 3) | (x == 4))),
        ("x BETWEEN 3 AND 50", lambda x, **_: (x >= 3) & (x <= 50)),
        ("n BETWEEN 1 AND 2", lambda n, **_: 1 <= n <= 2),
        ("n NOT BETWEEN 1 AND 2", lambda n, **_: not 1 <= n <= 2),
        ("n IN (1, 3)", lambda n, **_: n in (1, 3)),
        ("n NOT IN (1, 3)", lambda n, **_: n not in (1, 3)),
        ("t IN ('a', 'x')", lambda t, **_: None if t is None else t in "ax"),
        ("t = 'a'", lambda t, **_: None if t is None else t == "a"),
        ("t IS NULL", lambda t, **_: t is None),
        ("r IS NOT NULL", lambda r, **_: r is not None),
        ("(n > 1) IS TRUE", lambda n, **_: n > 1),
        ("(array_mean(r) > 0) IS FALSE", lambda r, **_: False),
        ("t LIKE 'a%'", lambda t, **_: None if t is None else t == "a"),
        ("t NOT LIKE 'a%'", lambda t, **_: None if t is None else t != "a"),
        ("CASE WHEN n > 2 THEN array_max(x) WHEN n = 1 THEN 7 ELSE n END",
         lambda x, n, **_: x.max() if n > 2 else 7 if n == 1 else n),
        ("CASE n WHEN 1 THEN 10 WHEN 2 THEN 20 END", lambda n, **_: {1: 10, 2: 20}.get(int(n))),
        ("CASE WHEN n < 2 THEN x ELSE x[:2] END", lambda x, n, **_: x if n < 2 else x[:2]),
        ("IF(n > 1, 'much', 'little')", lambda n, **_: "much" if n > 1 else "little"),
        ("COALESCE(array_mean(r), n)", lambda r, n, **_: n if r is None else np.mean(r)),
        ("NULLIF(n, 2)", lambda n, **_: None if n == 2 else n),
        ("CAST(x AS FLOAT) / 255", lambda x, **_: x.astype(np.float32) / 255),
        ("CAST(array_mean(x) AS INT)", lambda x, **_: int(np.mean(x))),
        ("TRY_CAST(t AS INT)", lambda **_: None),
        ("CAST(n AS TEXT)", lambda n, **_: str(n)),
        ("ABS(n - 2) + SQRT(n)", lambda n, **_: abs(n - 2) + np.sqrt(n)),
        ("POWER(n, 2)", lambda n, **_: n**2),
        ("ROUND(f, 0)", lambda f, **_: np.round(f)),
        ("FLOOR(f)", lambda f, **_: np.floor(f)),
        ("CEIL(f)", lambda f, **_: np.ceil(f)),
        ("LN(n)", lambda n, **_: np.log(n)),
        ("GREATEST(n, 2, 1)", lambda n, **_: max(n, 2)),
        ("LEAST(x, 9)", lambda x, **_: np.minimum(x, 9)),
        ("[n, n + 1]", lambda n, **_: [n, n + 1]),
        ("[[1, 2], [3, 4]]", lambda **_: [[1, 2], [3, 4]]),
        ("[x[0, 0], x[1, 1]]", lambda x, **_: [x[0, 0], x[1, 1]]),
        ("l2_distance(d.emb, :q)", lambda emb, **_: np.linalg.norm(emb - 0.5)),
        ("shape(r)[0]", if_there(lambda r, **_: r.shape[0])),
        ("shape(x)", lambda x, **_: x.shape),
        ("iou(:boxes, :boxes)", lambda **_: 1.0),
        ("NORMALIZE(:boxes, [0, 0, 2, 2])", lambda **_: [[0, 0, 0.5, 0.5]]),
        ("day > '2026-02-15'", lambda day, **_: day > np.datetime64("2026-02-15")),
        ("n > 0 AND r[4, 0, 0] >= 0", lambda r, n, **_: None if r is None else n > 0),
        ("n = 3 OR array_mean(r) > 0", lambda **_: True),
        ("n < 3 AND array_sum(r) < 0", lambda **_: False),
        ("NULL", lambda **_: None),
        ("n + NULL", lambda **_: None),
        ("TRUE", lambda **_: True),
        ("1.5e3", lambda **_: 1500.0),
        ("'text'", lambda **_: "text"),
        ("clip(r, 10, 20)[0, 0]", if_there(lambda r, **_: np.clip(r, 10, 20)[0, 0])),
    ],
)  # fmt: skip
def test_expressions_are_those_of_numpy(text, function):
    found = ask(text, q=np.full(8, 0.5, np.float32), a=1, b=3, boxes=[[0, 0, 1, 1]])
    same(found, loop(function))


# ------------------------------------------------------------------ generated

LEAVES = ["n", "f", "x", "d.emb"]
CONSTANTS = [
    "3",
    "2.5",
    "(-1)",
    ":p",
    "(3 + :p)",
]  # beside a column: alone they are Python's numbers to the oracle


def random_expression(draw, depth):
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(LEAVES))
    inner = random_expression(draw, depth - 1)
    kind = draw(st.sampled_from(["binary", "function", "minus"]))
    if kind == "binary":
        sign = draw(st.sampled_from(["+", "-", "*", "/", "%", "<", ">=", "=", "<>"]))
        other = (
            draw(st.sampled_from(CONSTANTS))
            if draw(st.booleans())
            else random_expression(draw, depth - 1)
        )
        return f"({inner} {sign} {other})"
    if kind == "minus":
        return f"(-({inner} + 0))"
    return f"{draw(st.sampled_from(['array_mean', 'array_sum', 'ABS', 'array_max']))}({inner})"


def in_python(text):
    swaps = {":p": "P", "d.emb": "emb", "<>": "!=", " = ": " == ", "ABS": "np.abs"}
    for name in ("mean", "sum", "max"):
        swaps[f"array_{name}"] = f"np.{name}"
    for sql, python in swaps.items():
        text = text.replace(sql, python)
    return text


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_generated_expressions_are_those_of_numpy(data):
    text = random_expression(data.draw, 3)
    code = compile(in_python(text), "row", "eval")
    outcome = []
    for i in range(ROWS):
        row = {
            "n": COLUMNS["n"][i],
            "f": COLUMNS["f"][i],
            "x": COLUMNS["x"][i][:3, :8, 0],
            "emb": COLUMNS["d.emb"][i],
        }
        try:
            with np.errstate(all="ignore"):
                outcome.append(eval(code, {"np": np, "P": 7}, row))
        except (ArithmeticError, TypeError, ValueError):
            outcome = None
            break
    columns = COLUMNS | {"x": COLUMNS["x"][:, :3, :8, 0]}
    try:
        found = ask(text, columns=columns, p=7)
    except InvalidQueryError:
        assert outcome is None
        return
    assert outcome is not None
    for got, wanted in zip(found, outcome, strict=True):
        assert np.shape(got) == np.shape(wanted)
        np.testing.assert_allclose(
            np.asarray(got, float), np.asarray(wanted, float), rtol=1e-4, atol=1e-4, equal_nan=True
        )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(["x", "r"]))
def test_a_batch_is_as_its_rows_one_by_one(seed, name):
    rng = np.random.default_rng(seed)
    rows = [
        None if rng.random() < 0.2 and name == "r" else rng.random((rng.integers(1, 3), 4))
        for _ in range(6)
    ]
    if name == "x":
        rows = [rng.random((2, 4)) for _ in range(6)]
    values = np.stack(rows) if name == "x" else rows
    text = "array_mean(v[0]) + iou(v, v) * array_norm(v[:, 1:]) + dot(v, v)"
    whole = ask(text, 6, {"v": values})
    for i in range(6):
        one = ask(text, 1, {"v": [rows[i]]})[0]
        assert (whole[i] is None) == (one is None)
        if one is not None:
            np.testing.assert_allclose(whole[i], one, rtol=1e-12)


# ------------------------------------------------------------------ rows that are not computed


def test_a_branch_is_computed_only_for_its_rows():
    x = [np.arange(3), np.arange(9)]
    same(ask("CASE WHEN shape(x)[0] > 5 THEN x[7] ELSE -1 END", 2, {"x": x}), [-1, 7])
    same(ask("shape(x)[0] > 5 AND x[7] = 7", 2, {"x": x}), [False, True])
    same(ask("shape(x)[0] < 5 OR x[7] = 7", 2, {"x": x}), [True, True])
    with pytest.raises(InvalidQueryError, match=r"x\[7\].*row 0"):
        ask("x[7] = 7 AND shape(x)[0] > 5", 2, {"x": x})


def test_the_row_of_an_error_is_that_of_the_whole_batch():
    x = [np.arange(9), np.arange(9), np.arange(3)]
    columns = {"x": x, "n": np.array([1, 2, 3])}
    with pytest.raises(InvalidQueryError, match=r"\(sample 102\)"):
        evaluate(
            node("n > 1 AND (n < 3 OR x[7] > 0)"),
            columns,
            3,
            place=lambda row: f"sample {100 + row}",
        )
    with pytest.raises(InvalidQueryError, match=r"\(row 2\)"):
        ask("CASE WHEN n > 2 THEN x[5] END", 3, columns)


def test_no_rows():
    assert len(ask("array_mean(x) > 3", 0, {"x": np.zeros((0, 3))})) == 0
    assert len(ask("CASE WHEN n > 1 THEN 2 END", 0, {"n": np.zeros(0)})) == 0
    assert len(ask("r[0] + 1", 0, {"r": []})) == 0


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("imges", "there is no column 'imges'"),
        ("r + :nothing", "the parameter :nothing has no value"),
        ("x[0, 0, 0, 0]", r"too many indices.*\(row 0\)"),
        ("r[6]", r"out of bounds.*\(row 0\)"),
        ("x['a']", "positions are integers"),
        ("x[1.5]", "positions are integers"),
        ("array_mean(x, 7)", "axis 7 is out of bounds"),
        ("array_mean()", "takes 1 to 2 arguments, not 0"),
        ("array_mean(t)", "not numbers"),
        ("(x > 1) IS TRUE", "take any"),
        ("CASE WHEN x > 1 THEN 1 END", "take any"),
        ("x + r", "broadcast"),
        ("t + 1", r"t \+ 1"),
        ("x + 1000", "out of bounds"),
        ("CAST(t AS INT)", "invalid literal"),
        ("CAST(x AS DECIMAL(3, 2))", "cannot be cast"),
        ("count(x)", "over many rows"),
        ("avg(array_mean(x)) + 1", "over many rows"),
        ("row_number() OVER ()", "over many rows"),
        ("(SELECT 1 FROM t) + 1", "over many rows"),
        ("n IN (SELECT 1 FROM t)", "over many rows"),
        ("lower(t)", "'lower' is not a function on tensors"),
        ("[x, n]", "the parts of an array have shapes"),
    ],
)
def test_mistakes_are_named(text, said):
    with pytest.raises(InvalidQueryError, match=said):
        ask(text)


def test_a_list_after_in_is_as_its_numbers_are():
    columns = {"v": np.array([0.1, 0.2, 3], np.float32)}
    for options in ([0.1, 3], (3, 0.1), [0.1, *range(50)]):
        assert ask("v IN :some", 3, columns, some=options).tolist() == [True, False, True]
        assert ask("v NOT IN (:some, 0.2)", 3, columns, some=options).tolist() == [False] * 3
    assert ask("v IN :some", 3, columns, some=np.array([0.1, 3])).tolist() == [False, False, True]
    assert ask("v IN :some", 3, columns, some=[]).tolist() == [False] * 3


def test_names_are_found_without_regard_to_case():
    assert len(ask("D.EMB")) == ROWS
    same(ask("N"), list(COLUMNS["n"]))


@pytest.mark.parametrize(
    "value",
    [1, 2.5, "x", True, None, np.float32(1), [1, 2], (1, 2), np.arange(3), [[1, 2], [3, 4]]],
)
def test_values_of_parameters(value):
    found = ask("$v", v=value)
    assert len(found) == ROWS
    assert found[0] is None if value is None else np.array_equal(found[0], value)


def test_text_in_a_parameter_is_no_sql():
    same(ask("t = :v", v="a' OR 1 = 1 --"), [False, False, False, None])


def test_nan_and_infinity_are_those_of_numpy():
    f = COLUMNS["f"]
    with np.errstate(all="ignore"):
        same(ask("f > 0"), list(f > 0))
        same(ask("f % 2"), list(f % 2))
        same(ask("n / (n - n)"), list(COLUMNS["n"] / np.zeros(ROWS)))


def test_nothing_is_warned_of():
    ask("LN(n - 5) / 0 + SQRT(f)")
    ask("array_mean(x[5:5]) + array_std(x[5:5])")


def test_inputs_are_not_changed():
    before = COLUMNS["x"].copy()
    ask("-x + x * 2 - clip(x, 0, 9)")
    assert np.array_equal(before, COLUMNS["x"])


# ------------------------------------------------------------------ anything at all

ANY = COLUMNS | {
    "b": np.array([True, False] * 2),
    "e": [np.zeros((0, 4))] * ROWS,
    "none": [None] * ROWS,
    "c": np.ones(ROWS) * 1j,
    "span": np.array([1, 2, 3, 4], "timedelta64[s]"),
}
ATOMS = [
    *(name for name in ANY),
    *[
        "0",
        "-1",
        "2.5",
        "NULL",
        "TRUE",
        "'a'",
        "'xywh'",
        ":p",
        ":q",
        "[0,0,1,1]",
        "[1,2]",
        "1e400",
        "99999999999999999999",
    ],
]
CALLS = sorted({f.name for f in FUNCTIONS} | SCALARS)


def anything(rng, depth):
    """A text that may or may not make sense; of a seed, because Hypothesis would be slow in making so much of it."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(ATOMS)
    a, b, c = (anything(rng, depth - 1) for _ in range(3))
    sign = rng.choice(
        ["+", "-", "*", "/", "%", "<", "=", "<>", "AND", "OR", "&", "<<", "LIKE", "DIV"]
    )
    key = ", ".join(
        rng.choice([":", "::-1", "...", "newaxis", b, f"{b}:{c}"]) for _ in range(rng.randrange(3))
    )
    return rng.choice(
        [
            f"({a} {sign} {b})",
            f"{rng.choice(CALLS)}({', '.join([a, b, c][: rng.randrange(4)])})",
            f"{a}[{key}]",
            f"CASE WHEN {a} THEN {b} ELSE {c} END",
            f"CAST({a} AS {rng.choice(['INT', 'FLOAT', 'TEXT', 'DATE', 'BOOLEAN'])})",
            f"(NOT {a})",
            f"({a} IN ({b}, {c}))",
            f"({a} BETWEEN {b} AND {c})",
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_any_expression_gives_a_value_a_row_or_our_error(seed):
    rng = random.Random(seed)
    given_ = 0
    for _ in range(40):
        text = anything(rng, 3)
        try:
            found = ask(text, columns=ANY, p=5, q=np.arange(4))
        except InvalidQueryError:
            continue
        given_ += 1
        assert isinstance(found, (list, np.ndarray))
        assert len(found) == ROWS
    assert given_


def test_the_least_integer_is_below_zero():
    """NumPy makes 2**63 an unsigned integer, of which the negative wraps around."""
    x = np.array([-(2**63), 5])
    assert ask("-9223372036854775808 = x", 2, {"x": x}).tolist() == [True, False]
    assert ask("x >= -9223372036854775808", 2, {"x": x}).tolist() == [True, True]
    assert ask("x > -18446744073709551615", 2, {"x": x}).tolist() == [True, True]
    assert ask("-(-9223372036854775808) > x", 2, {"x": x}).tolist() == [True, True]
