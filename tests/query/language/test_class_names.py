"""Names of classes in queries become numbers."""

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.language.class_names import with_class_numbers
from tensorlake_spark.query.language.parsing import parse

NAMES = ("cat", "dog")


GIVEN = {
    "one": "dog",
    "some": ["dog", "cat"],
    "number": 1,
    "wrong": "dgo",
    "array": np.array(["dog"]),
}


def numbered(condition):
    sql = f"SELECT 1 FROM t WHERE {condition}"
    made = with_class_numbers(
        sql, parse(sql).args["where"].this, lambda one: NAMES if one.name == "k" else None, GIVEN
    )
    return made.sql()


@pytest.mark.parametrize(
    ("condition", "made"),
    [
        ("'dog' = k", "1 = k"), ("k <> 'cat' OR n = 'dog'", "k <> 0 OR n = 'dog'"), ("k = 1", "k = 1"),
        ("k IN ('dog', 0)", "k IN (1, 0)"), ("NOT (k = 'cat')", "NOT (k = 0)"),
        ("k IS NOT DISTINCT FROM 'dog'", "k IS NOT DISTINCT FROM 1"),
        ("k IN (SELECT k FROM u WHERE k = 'dog')", "k IN (SELECT k FROM u WHERE k = 'dog')"),
        ("k = :one", "k = 1"), ("k = :number", "k = :number"), ("n = :one", "n = :one"),
        ("k[0] = 'dog'", "k[0] = 1"), ("n[0] = 'dog'", "n[0] = 'dog'"), ("k[1:] IN ('cat')", "k[1:] IN (0)"),
        ("k IN (:some, 'cat')", "k IN (1, 0, 0)"), ("k IN :array", "k IN (1)"),
        ("CASE k WHEN 'dog' THEN a WHEN :number THEN b END", "CASE k WHEN 1 THEN a WHEN :number THEN b END"),
        ("contains(k, 'dog')", "CONTAINS(k, 1)"), ("contains(k, ['cat', 'dog'])", "CONTAINS(k, ARRAY(0, 1))"),
        ("contains(k, :some)", "CONTAINS(k, ARRAY(1, 0))"), ("contains(n, 'dog')", "CONTAINS(n, 'dog')"),
    ],
)  # fmt: skip
def test_names_beside_a_column_of_classes_become_numbers(condition, made):
    assert numbered(condition) == made


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("k = 'dgo'", "there is no class 'dgo'; did you mean 'dog'? (line 1, column 27)"),
        ("k = :wrong", "there is no class 'dgo'"), ("contains(k, 'dgo')", "there is no class 'dgo'"),
        ("k < :one", "classes have no order"), ("k IN ('horse')", "there are cat, dog"), ("k > 'cat'", "classes have no order"),
    ],
)  # fmt: skip
def test_what_is_no_class_is_said_with_its_place(condition, said):
    with pytest.raises(InvalidQueryError) as error:
        numbered(condition)
    assert said in str(error.value)
