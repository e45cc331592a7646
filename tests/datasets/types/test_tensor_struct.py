"""Arrays as structs."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import tensor_struct
from tensorlake_spark.datasets.types.base import Place
from tensorlake_spark.datasets.types.tensor_struct import Structs, struct_of, struct_of_stack

PLACE = Place("x")


def test_one_array_and_many_give_the_same_column():
    stack = np.arange(24, dtype=">i4").reshape(4, 2, 3)
    one, many = struct_of_stack(stack, "int32", PLACE), struct_of(list(stack), "int32", PLACE)
    assert one == many
    assert one[1].as_py() == {
        "dtype": "int32",
        "shape": [2, 3],
        "data": stack[1].astype("<i4").tobytes(),
    }


def test_columns_as_other_readers_give_them_are_read():
    stack = np.arange(6, dtype="f4").reshape(3, 2)
    column = struct_of_stack(stack, "float32", PLACE)
    other = pa.struct([("dtype", pa.large_string()), ("shape", pa.large_list(pa.int64())), ("data", pa.large_binary()), ("more", pa.int8())])  # fmt: skip
    rows = [{**row, "more": 1} for row in column.to_pylist()]
    np.testing.assert_array_equal(Structs(pa.array(rows, other)).arrays(), stack)
    np.testing.assert_array_equal(
        Structs(pa.array(rows, other).slice(1)).stack((2,), stack.dtype), stack[1:]
    )


@pytest.mark.parametrize("size", [3, 5_000])
def test_views_are_read_into_memory_of_their_own(size):
    """Large values are copied one by one, small ones by Arrow; nulls and samples without elements are among them."""
    stack = np.arange(4 * size, dtype="i4").reshape(4, size)
    given = [stack[0], None, stack[1], stack[0, :0], stack[2]]
    column = struct_of(given, "int32", PLACE)
    fields = [column.field(name) for name in ("dtype", "shape")]
    viewed = pa.StructArray.from_arrays(
        [*fields, column.field("data").cast(pa.binary_view())],
        ["dtype", "shape", "data"],
        mask=column.is_null(),
    )
    for start in (0, 2):
        found = Structs(viewed.slice(start)).arrays()
        for one, other in zip(found, given[start:], strict=True):
            np.testing.assert_array_equal(one, other)
        found[-1][...] = 0
        assert Structs(viewed).arrays()[4][-1] == stack[2, -1]
    whole = Structs(viewed.slice(4)).stack((size,), stack.dtype)
    assert whole.flags.writeable
    np.testing.assert_array_equal(whole, stack[2:3])


def test_large_views_are_copied_once():
    stack = np.zeros((4, 1 << 20), "u1")
    column = struct_of([*stack], "uint8", PLACE)
    fields = [
        column.field("dtype"),
        column.field("shape"),
        column.field("data").cast(pa.binary_view()),
    ]
    viewed = pa.StructArray.from_arrays(fields, ["dtype", "shape", "data"])
    pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        assert len(Structs(viewed).arrays()) == 4
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < stack.nbytes // 4


def test_more_than_arrow_counts_is_refused_before_it_is_copied(monkeypatch):
    monkeypatch.setattr(tensor_struct, "MAX_BYTES", 100)
    for given in (np.zeros((2, 13), "f4"), np.zeros((2, 13), "f4")):
        with pytest.raises(tl.InvalidSampleError, match="give fewer samples"):
            struct_of_stack(given, "float32", PLACE)
        with pytest.raises(tl.InvalidSampleError, match="give fewer samples"):
            struct_of(list(given), "float32", PLACE)
    assert len(struct_of(list(np.zeros((2, 12), "f4")), "float32", PLACE)) == 2


@pytest.mark.parametrize(("given", "name"), [("f4", "float32"), ("<i8", "int64"), (np.uint8, "uint8"), ("bool", "bool")])  # fmt: skip
def test_dtypes_may_have_any_of_the_names_that_numpy_knows(given, name):
    assert tensor_struct.name_of(given) == name
    assert tl.types.Tensor(given).dtype == name
    with pytest.raises(tl.InvalidOptionError, match="dtype='U5' cannot be stored"):
        tl.types.Tensor("U5")
