"""Batches of expressions, without a session."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.query.user_functions import register_function, unregister_function
from tensorlake_spark.spark.frames.image_columns import tensors_with_nulls
from tensorlake_spark.spark.queries.batch_functions.tensor_udf import TensorWork, values_of
from tensorlake_spark.spark.source.schemas import tensors_of

ARRAYS = [np.arange(4.0), None, np.arange(4.0) * 2]


def work(text, result, parameters=None, placed=False):
    node = parse(f"SELECT {text} FROM t").selects[0]
    return TensorWork.of(node, result, parameters or {}, ["x0", "x1"][: 1 + ("x1" in text)], placed)


def test_numbers_and_tensors():
    column = tensors_with_nulls("x", ARRAYS)
    (found,) = work("array_sum(x0) + x1", "number")(iter([(column, pa.array([1, 2, 3]))]))
    assert found.to_pylist() == [7.0, None, 15.0]
    (found,) = work("x0[1:3] * :k", "array", {"k": 10, "other": 1})(iter([column]))
    assert found.is_valid().to_pylist() == [True, False, True]
    assert [one.tolist() for one in tensors_of(found.drop_null())] == [[10, 20], [20, 40]]


def test_no_rows():
    (found,) = work("array_sum(x0) > 1", "bool")(iter([tensors_with_nulls("x", [])]))
    assert (len(found), found.type) == (0, pa.bool_())


def test_many_rows_come_in_pieces():
    column = pa.array(range(1000))
    found = list(work("x0 * :k", "int", {"k": 2})(iter([column])))
    assert len(found) > 1
    assert [value for part in found for value in part.to_pylist()] == [2 * n for n in range(1000)]


def test_functions_of_users_travel():
    register_function("plus_one_here", lambda x: np.asarray(x) + 1)
    try:
        packed = cloudpickle.dumps(work("plus_one_here(x0)", "number"))
    finally:
        unregister_function("plus_one_here")
    (found,) = cloudpickle.loads(packed)(iter([pa.array([1.0, 2.0])]))
    assert found.to_pylist() == [2.0, 3.0]
    unregister_function("plus_one_here")


def test_a_process_that_knows_an_older_function_of_the_name_takes_the_one_of_the_query():
    packed = []
    for more in (1, 2):
        register_function("plus_here", lambda x, more=more: np.asarray(x) + more)
        packed.append(cloudpickle.dumps(work("plus_here(x0)", "number")))
    works = [cloudpickle.loads(one)(iter([pa.array([0.0])] * 2)) for one in packed]
    try:  # in turns, as two columns of one stage are computed
        assert [next(one).to_pylist() for one in works * 2] == [[1.0], [2.0], [1.0], [2.0]]
    finally:
        unregister_function("plus_here")


def test_columns():
    assert values_of(pa.array([1.5, None])) == [1.5, None]
    assert {type(one) for one in values_of(pa.array([1, None], pa.int8()))} == {np.int8, type(None)}
    assert values_of(pa.array([1.5, 2])).dtype == np.float64
    assert [type(one) for one in values_of(pa.array([[1], [1, 2], None]))][2] is type(None)


def test_mistakes_name_the_sample():
    column = tensors_with_nulls("x", [np.zeros((1, 1)), np.zeros(3)])
    for sids, place in (([7, 9], "sample with sid 9"), ([7, None], "a row without a sample")):
        with pytest.raises(InvalidQueryError, match=rf"^x0\[0, 0\]: .*\({place}\)"):
            next(work("x0[0, 0]", "number", placed=True)(iter([(column, pa.array(sids))])))


def test_the_largest_integers_may_stand_beside_a_null():
    column = tensors_with_nulls("x", [np.array([2**64 - 1], "u8"), None, np.array([5], "u8")])
    (found,) = work("array_max(x0)", "number")(iter([column]))
    assert found.to_pylist() == [2.0**64, None, 5.0]
