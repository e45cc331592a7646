"""Digests of columns: of what they hold, not of how it lies."""

import decimal
import hashlib

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.datasets.derived.column_digests import BLOCK, RowDigest, digests, whole_digest

ARRAYS = {
    "ints": pa.array([1, None, 3] * 200),
    "floats": pa.array([0.5, float("nan"), None, -0.0] * 150),
    "bools": pa.array([True, False, None] * 200),
    "texts": pa.array(["a", "", None, "ü" * 5] * 150),
    "bytes": pa.array([b"", b"xyz", None] * 200),
    "lists": pa.array([[1, 2], [], None, [3]] * 150),
    "structs": pa.array([{"a": 1, "b": b"x"}, None, {"a": None, "b": b""}] * 200),
    "decimals": pa.array([decimal.Decimal(5), None, decimal.Decimal(7)] * 200, pa.decimal128(20)),
    "times": pa.array([1, None, 5] * 200, pa.timestamp("us", "UTC")),
    "nothing": pa.nulls(600, pa.int32()),
    "maps": pa.array([[("k", 1)], None, []] * 200, pa.map_(pa.string(), pa.int64())),
}

KNOWN = {
    "ints": "06c7e407b4c1ad22",
    "floats": "9ac94f2e7dd7f059",
    "bools": "8f62aea5edbb30e7",
    "texts": "e9e2387bdcf18873",
    "bytes": "d36ec6c210a42b59",
    "lists": "e37242cdc899551a",
    "structs": "90d40c9395bc8dea",
    "decimals": "43d0be9214c9a45b",
    "times": "38b5ecb19b18d1a5",
    "nothing": "d48348b35f206bb8",
    "maps": "5f12bf1bf9d33963",
}
"""How the digests begin that lineages have already."""


def digest_of(*batches):
    digest = RowDigest()
    for batch in batches:
        digest.add({"x": batch})
    return digest.finish()["x"]


@pytest.mark.parametrize("name", ARRAYS)
def test_how_rows_lie_does_not_matter(name):
    array = ARRAYS[name]
    whole = digest_of(array)
    assert len(whole) == 32 * -(-len(array) // BLOCK)
    assert digest_of(*(array.slice(n, 7) for n in range(0, len(array), 7))) == whole
    copied = pa.concat_arrays([array.slice(0, 3), array.slice(3)])
    assert digest_of(copied) == whole


@pytest.mark.parametrize("name", ARRAYS)
def test_digests_stay_what_lineages_say(name):
    assert hashlib.sha256(digest_of(ARRAYS[name])).hexdigest()[:16] == KNOWN[name]


@pytest.mark.parametrize("name", ARRAYS)
def test_one_row_more_or_less_matters(name):
    array = ARRAYS[name]
    assert digest_of(array.slice(1)) != digest_of(array)
    assert digest_of(array.slice(0, 599)) != digest_of(array)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array(["ab", "c"]), pa.array(["a", "bc"])),
        (pa.array(["", None]), pa.array([None, ""])),
        (pa.array([0, None]), pa.array([None, 0])),
        (pa.array([[1], [2]]), pa.array([[1, 2], []])),
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array([{"a": None}]), pa.array([None], pa.struct([("a", pa.null())]))),
    ],
    ids=["texts", "nulls", "numbers", "lists", "signs", "structs"],
)
def test_values_that_differ_a_little_differ(one, other):
    assert digest_of(one) != digest_of(other)


def test_what_lies_under_a_null_does_not_matter():
    hidden = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([5, 77]).tobytes())]
    )
    assert hidden.to_pylist() == [5, None]
    assert digest_of(hidden) == digest_of(pa.array([5, None]))
    bits = pa.py_buffer(b"\x05")
    texts = pa.Array.from_buffers(
        pa.string(), 3, [bits, *pa.array(["a", "hidden", "b"]).buffers()[1:]]
    )
    assert texts.to_pylist() == ["a", None, "b"]
    assert digest_of(texts) == digest_of(pa.array(["a", None, "b"]))


def test_parts_that_begin_at_a_block_are_joined():
    array = pa.array(range(1000))
    parts = []
    for start in range(0, 1000, 2 * BLOCK):
        digest = RowDigest()
        digest.add({"x": array.slice(start, 2 * BLOCK), "y": array.slice(start, 2 * BLOCK)})
        parts.append(digest.finish())
    found = digests(parts)
    assert found == {name: hashlib.sha256(digest_of(array)).hexdigest() for name in "xy"}
    assert whole_digest(found) == whole_digest(dict(reversed(found.items())))
    assert whole_digest(found) != whole_digest({"x": found["x"]})
