"""Columns of others."""

import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import Plain, Scalar, Sequence, Type
from tensorlake_spark.datasets.types.plain import type_of_arrow
from tensorlake_spark.datasets.types.scalars import STORAGE

STRUCT = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])


@pytest.mark.parametrize("name", sorted(STORAGE))
def test_what_we_store_is_read_back_as_scalars(name):
    kind = type_of_arrow(STORAGE[name])
    assert isinstance(kind, Scalar)
    assert kind.storage() == STORAGE[name]


def test_other_types_have_the_nearest_type():
    assert type_of_arrow(pa.large_string(), nullable=False) == Scalar("string", nullable=False)
    assert type_of_arrow(pa.list_(STRUCT)) == Sequence(Plain(STRUCT))
    assert type_of_arrow(pa.timestamp("ns")) == Plain(pa.timestamp("ns"))


def test_plain_values_come_back():
    kind = Plain(STRUCT)
    values = [{"a": 1, "b": ["x"]}, None, {"a": None, "b": []}]
    column = kind.encode(values, "x")
    assert kind.decode(column) == values
    assert kind.encode(column, "x") == column
    assert Type.from_json(kind.to_json()) == kind
    with pytest.raises(tl.InvalidSampleTypeError, match="column 'x', sample 1: "):
        kind.encode([None, {"a": "text"}], "x")
    with pytest.raises(tl.InvalidSampleTypeError, match="values of type"):
        kind.encode(pa.array(["a"]), "x")
    with pytest.raises(tl.InvalidOptionError):
        Plain("int64")
    for arrow in ("###", "aGVsbG8=", None):
        with pytest.raises(tl.FormatError):
            Type.from_json({"kind": "plain", "arrow": arrow})
