"""What expressions give, before they run."""

import numpy as np
import pytest

from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.spark.queries.result_kinds import Kind, kind_of

COLUMNS = {
    "x": Kind("array", 3),
    "y": Kind("array"),
    "n": Kind("scalar"),
    "i": Kind("array", most=3),
    "t": Kind("array", 1, listed=True, element="text"),
    "b": Kind("array", 1, listed=True, element="bool"),
}


@pytest.mark.parametrize(
    ("text", "name", "ndim"),
    [
        ("x", "array", 3),
        ("x[0]", "array", 2),
        ("x[0, 1, 2]", "number", None),
        ("x[..., 0]", "array", 2),
        ("x[newaxis]", "array", 4),
        ("y[0]", "array", None),
        ("x[[0, 2], 0, 1]", "array", None),
        ("x[x > 1]", "array", None),
        ("i[0, 0, n]", "number", None),
        ("i[0, 0]", "array", None),
        ("i[0, 0, 0:1]", "array", None),
        ("x + 1", "array", 3),
        ("array_mean(x) + n", "number", None),
        ("array_mean(x) BETWEEN 1 AND 2", "bool", None),
        ("array_mean(x, 0)", "array", None),
        ("CAST(array_mean(x) AS INT)", "int", None),
        ("CASE WHEN array_max(x) > 1 THEN 'a' END", "scalar", None),
        ("COALESCE(array_max(x), n) + 1", "scalar", None),
        ("CASE WHEN n > 1 THEN x END", "array", 3),
        ("MEAN(n)", "scalar", None),
        ("MEAN(x)", "number", None),
        ("n > 1 AND array_max(x) > 1", "scalar", None),
        ("x IS NULL", "scalar", None),
        ("avg(array_mean(x))", "scalar", None),
        ("l2_distance(n, :q) < 1", "bool", None),
        ("upper(n)", "scalar", None),
        ("t[0]", "text", None),
        ("t[1:][0]", "text", None),
        ("t[0] = 'x'", "bool", None),
        ("b[-1]", "bool", None),
        ("t[1:]", "array", 1),
    ],
)
def test_kinds(text, name, ndim):
    node = parse(f"SELECT {text} FROM t").selects[0]
    found = kind_of(node, lambda column: COLUMNS[column.name], {"q": np.zeros(3)})
    assert (found.name, found.ndim) == (name, ndim)
