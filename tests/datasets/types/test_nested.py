"""Sequences and links."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import (
    ClassLabel,
    Embedding,
    Image,
    Json,
    Link,
    Reference,
    Sequence,
    Tensor,
    Text,
    Type,
)


@pytest.mark.parametrize(
    ("of", "values"),
    [
        ("int64", [[1, 2], None, [], [3, None]]),
        (Text(), [["a"], [], None, ["b", "c"]]),
        (Sequence("int8"), [[[1], []], None, [None]]),
        (ClassLabel(["a", "b"]), [[0, 1], [], [1]]),
    ],
)
def test_lists_come_back(of, values):
    kind = Sequence(of)
    column = kind.encode(values, "x")
    column.validate(full=True)
    assert column.type == kind.storage()
    assert kind.decode(column) == values
    assert kind.decode(column.slice(1)) == values[1:]
    assert kind.encode(column, "x") == column
    assert Type.from_json(kind.to_json()) == kind


def test_lists_of_images_and_arrays_come_back():
    for kind in (Sequence(Image("png")), Sequence(Tensor("uint8"))):
        array = np.arange(12, dtype="u1").reshape(2, 2, 3)
        found = kind.decode(kind.encode([[array], [], [array, array]], "x"))
        assert [len(f) for f in found] == [1, 0, 2]
        np.testing.assert_array_equal(found[2][1], array)


@pytest.mark.parametrize(
    ("of", "values"),
    [
        (Tensor("int8"), [[np.int8([1, 2]), None], [], None]),
        (Image("png"), [[np.zeros((2, 3, 3), "u1")], None, []]),
        (Embedding(2, quantize="int8"), [[[1, 2], None], None]),
        (Json(), [[{"a": 1}, "text", None], [], None]),
        ("uint64", [[2**64 - 1, None], None]),
        (Sequence(Tensor("int8")), [[[np.int8([1])], None], [[]]]),
        (Link("bytes"), [[Reference("/a", 1, "x")], None]),
    ],
)
def test_lists_as_they_are_stored_are_taken(of, values):
    kind = Sequence(of)
    column = kind.encode(values, "x")
    wide = column.cast(pa.large_list(column.type.value_field))
    for given in (column, wide, column.slice(1), pa.chunked_array([column])):
        found = kind.encode(given, "x")
        assert found.type == kind.storage()
        assert found == column.slice(len(column) - len(given))


def test_lists_of_arrow_of_one_length_with_nulls():
    given = pa.array([[1, 2], None, [3, None]], pa.list_(pa.int8(), 2))
    assert Sequence("int32").encode(given, "x").to_pylist() == given.to_pylist()
    under = pa.ListArray.from_arrays(
        [0, 2, 3, 4], pa.array([1, 2, 300, 4]), mask=pa.array([False, True, False])
    )
    assert Sequence("int8").encode(under, "x").to_pylist() == [[1, 2], None, [4]]
    with pytest.raises(tl.InvalidSampleError, match="sample 7: item 1: expected int8"):
        Sequence("int8").encode(pa.array([[1], None, [2, 300]]), "x", first=5)


def test_the_sample_and_the_item_are_named():
    with pytest.raises(tl.InvalidSampleTypeError) as error:
        Sequence("int64").encode([[1], None, [1, "x"]], "tags", first=10)
    assert str(error.value).startswith("column 'tags', sample 12: item 1: expected int64")
    for value in ("text", 5, {"a": 1}):
        with pytest.raises(tl.InvalidSampleTypeError, match="a list of"):
            Sequence("string").encode([value], "tags")


LINK = Link(Image("jpeg"))


def test_links_come_back():
    given = [
        "s3://bucket/a.jpg",
        None,
        Path("/data/b.jpg"),
        Reference("https://x.org/c.jpg", 5, "e"),
        {"url": "s3a://bucket/d.jpg"},
    ]
    wanted = [
        Reference("s3://bucket/a.jpg"),
        None,
        Reference("/data/b.jpg"),
        given[3],
        Reference("s3://bucket/d.jpg"),
    ]
    column = LINK.encode(given, "x")
    assert column.type == LINK.storage()
    assert LINK.decode(column) == wanted
    assert LINK.decode(column.slice(2)) == wanted[2:]
    assert LINK.encode(column, "x") == column
    assert LINK.encode(pa.array(["s3://bucket/a.jpg"]), "x")[0] == column[0]
    assert Type.from_json(LINK.to_json()) == LINK


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("https://me:secret@x.org/a", "plain URL"),
        ("https://x.org/a?X-Amz-Signature=secret", "plain URL"),
        ("https://x.org/a?AWSAccessKeyId=me&Signature=secret", "plain URL"),
        ("https://x.org/a?b=1&sig=secret", "plain URL"),
        (Reference("https://x.org/a?apikey=secret", 5), "plain URL"),
        ("", "characters"),
        ("/a\nb", "a control character"),
        ("http://[x", "not a URL"),
        ("photos/a.jpg", "os.path.abspath"),
        ({"url": "../a.jpg", "size": 3}, "os.path.abspath"),
        (Reference("gs://bucket/a.jpg", 3), "https://"),
        ({"url": "s3://bucket/../a", "size": 3}, "'..'"),
        (5, "give a URL"),
        ({"url": 5}, "give a path or a URL"),
        ({"url": "/a", "size": -1}, "a size in bytes"),
        ({"url": "/a", "size": "many"}, "a size in bytes"),
        ({"url": "/a", "etag": 5}, "an ETag"),
        ({"href": "/a"}, "give a URL"),
    ],
)
def test_what_is_no_link_is_refused_and_no_secret_is_printed(value, says):
    with pytest.raises(tl.InvalidSampleError) as error:
        LINK.encode([None, value], "x")
    assert str(error.value).startswith("column 'x', sample 1: ")
    assert says in str(error.value)
    assert "secret" not in str(error.value)
    with pytest.raises(tl.InvalidSampleError, match=r"^column 'x', sample 7: item 1: ") as error:
        Sequence(LINK).encode([["/a.jpg", value]], "x", first=7)
    assert "secret" not in str(error.value)


def test_inner_types_are_checked():
    for make in (lambda: Sequence("flaot"), lambda: Link(LINK), lambda: Sequence(Text(apart=True)), lambda: Link(5)):  # fmt: skip
        with pytest.raises(tl.InvalidOptionError):
            make()


@pytest.mark.parametrize(
    "value", [np.array(3), np.ma.masked, {"a": 1}, pd.DataFrame({"a": [1]}), "ab", 5]
)
def test_what_is_no_list_of_values_is_refused(value):
    """Of a table, a list would have the names of the columns."""
    for of in ("string", "int64", Tensor("float32"), Sequence("int64")):
        with pytest.raises(tl.InvalidSampleTypeError, match="sample 1: expected a list"):
            Sequence(of).encode([[], value], "x")


def test_masked_elements_of_a_list_are_null():
    rows = np.ma.array([[1, 2], [3, 4]], mask=[[1, 0], [0, 0]])
    assert Sequence("int64").encode([rows[0], rows[1]], "x").to_pylist() == [[None, 2], [3, 4]]
    assert Sequence("float64").encode(rows, "x").to_pylist() == [[None, 2], [3, 4]]
