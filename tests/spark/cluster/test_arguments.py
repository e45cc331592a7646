"""Every public function, given an argument of a wrong kind, says its own name, what it got and what it takes."""

import inspect

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark import check_log_store, register
from tensorlake_spark.spark import functions as tf


class Odd:
    def __repr__(self):
        return "<odd>"


def needed(function):
    """Return the parameters of a function, all but those that have a default."""
    return inspect.signature(function).parameters


CASES = [(name, parameter) for name in tf.__all__ for parameter in needed(getattr(tf, name))]


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_a_wrong_kind_is_named(name, parameter, spark):
    function = getattr(tf, name)
    given = {"session": spark, "spark": spark, "df": spark.range(1), "rows": spark.range(1)}
    kinds = {"key": "0", "lo": [0], "seq": 1, "shape": [1], "index": 0}
    arguments = []
    for known in needed(function):
        arguments.append(Odd() if known == parameter else given.get(known, kinds.get(known, "x")))
        if known == parameter:
            break
    missing = [
        p.name
        for p in list(needed(function).values())[len(arguments) :]
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    more = {known: given.get(known, kinds.get(known, "x")) for known in missing}
    with pytest.raises(tl.InvalidOptionError) as error:
        function(*arguments, **more)
    text = str(error.value)
    # What comes before the odd one may be of a wrong kind too, where "x" will not do: the first is named.
    assert text.startswith(f"{name}("), text
    assert f"{name} takes " in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tf.collect_tensor(3), "collect_tensor(df=3): df is of type int; collect_tensor takes a DataFrame of Spark there"),
        (lambda: tf.tensor_sum(3.5), "tensor_sum(tensor=3.5): tensor is of type float; tensor_sum takes a Column or the name of one"),
        (lambda: tf.tensor_get("t", "a"), "tensor_get(index='a'): index is of type str; tensor_get takes an integer of 64 bits there"),
        (lambda: tf.tensor_sum("t", "y"), "takes an integer of 64 bits or a sequence of integers of 64 bits or None there"),
        (lambda: tf.slice_filter(2.5), "slice_filter(key=2.5): key is of type float; slice_filter takes a NumPy key or its text"),
        (lambda: tf.read_tensor("spark", "a/b", "x"), "read_tensor(spark='spark'): spark is of type str; read_tensor takes a SparkSession"),
        (lambda: tf.tensor_get("t", 2**70), "takes an integer of 64 bits there"),
        (lambda: tf.tensor_sum("t", axes=2**63), "takes an integer of 64 bits"),
        (lambda: tf.tensor_argmax("t", axis=2**70), "takes an integer of 64 bits"),
        (lambda: tf.tensor_add("t", 2**70), "takes a Column or the name of one or a number of 64 bits there"),
        (lambda: tf.tensor_encode("t", "lo", "x", 2**70), "takes "),
        (lambda: tf.tensor_reshape("t", np.array(1)), "takes a sequence of integers of 64 bits there"),
        (lambda: tf.slice_filter("a=1", "x", axes=np.array("a")), "takes a sequence of names or None there"),
        (lambda: register(None), "register(session=None): session is of type NoneType; register takes a SparkSession"),
        (lambda: check_log_store(None, "/x"), "check_log_store takes a SparkSession there"),
    ],
)  # fmt: skip
def test_what_it_says(call, says):
    with pytest.raises(tl.InvalidOptionError) as error:
        call()
    assert says in str(error.value)


@pytest.mark.parametrize("uri", [None, 5, ["x"], b"x"], ids=repr)
def test_a_table_that_is_no_path_is_named(spark, uri):
    with pytest.raises(tl.InvalidOptionError, match="check_log_store takes a path or the name"):
        check_log_store(spark, uri)


def test_a_path_is_the_place_of_a_table(spark, tmp_path):
    with pytest.warns(UserWarning, match="may be lost if another process commits"):
        check_log_store(spark, tmp_path)


def test_the_largest_number_that_spark_has(spark):
    table = spark.createDataFrame(
        [(("int64", [1], (5).to_bytes(8, "little")),)],
        "t struct<dtype: string, shape: array<bigint>, data: binary>",
    )
    most = 2**63 - 6
    assert table.select(tf.tensor_get(tf.tensor_add("t", most), 0)).first()[0] == float(2**63 - 1)
