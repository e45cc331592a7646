"""The contract of a type: names, metadata, errors."""

import json
import pickle

import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets import types
from tensorlake_spark.datasets.types import Image, Scalar, Sequence, Tensor, Type, as_type
from tensorlake_spark.datasets.types.base import KINDS, field_of
from tensorlake_spark.delta.log.requirements import FIELDS

ALL = [
    types.Audio("flac"), types.BinaryMask(), types.BoundingBox("xywh", True), types.ClassLabel(["a", "b"]),
    types.Dicom(), types.Embedding(8, "float16", "int8"), Image("png", channels=3), types.Json(),
    types.Keypoints(["a"]), types.Link(Image()), types.Plain(pa.int8()), types.PointCloud(), types.Polygon(True),
    Scalar("int8"), types.SegmentMask(["a"], ignore=255), Sequence(types.Text()), Tensor("float32", (None, 3)),
    types.Text(), types.Video(),
]  # fmt: skip


def test_all_types_are_here():
    assert {type(kind) for kind in ALL} == {*KINDS.values()}


@pytest.mark.parametrize("kind", ALL, ids=str)
def test_a_type_comes_back_from_its_metadata_and_from_its_text(kind):
    for options in ({}, {"nullable": False}, {"apart": True}):
        other = type(kind)(**{**kind.__dict__, **options})
        found = json.loads(json.dumps(other.to_json()))
        assert Type.from_json(found) == other
        assert hash(Type.from_json(found)) == hash(other)
        assert pickle.loads(pickle.dumps(other)) == other
        if kind.kind != "plain":
            assert eval(str(other), vars(types)) == other


@pytest.mark.parametrize("kind", ALL, ids=str)
def test_nulls_and_nothing_are_stored_by_every_type(kind):
    for values in ([], [None], [None] * 3):
        column = kind.encode(values, "x")
        column.validate(full=True)
        assert column.type == kind.storage()
        assert column.null_count == len(values)
        assert kind.decode(column) == values
        assert kind.encode(column, "x") == column
    with pytest.raises(tl.InvalidSampleError, match="column 'x', sample 3: expected a value"):
        type(kind)(**{**kind.__dict__, "nullable": False}).encode([None], "x", first=3)
    if not kind.stacks:
        with pytest.raises(tl.InvalidSampleError, match="do not make one array"):
            kind.stack(kind.encode([], "x"))


@pytest.mark.parametrize("kind", ALL, ids=str)
def test_writers_take_the_fields_of_every_type_for_ours(kind):
    """A table with other fields in our columns is refused."""
    if kind.kind != "plain":
        assert {*_fields(kind.storage())} <= FIELDS


def _fields(kind):
    if pa.types.is_list(kind):
        yield from _fields(kind.value_type)
    for inner in kind if pa.types.is_struct(kind) else ():
        yield inner.name
        yield from _fields(inner.type)


@pytest.mark.parametrize("start", [0, 1, 3])
def test_a_field_of_a_struct_has_its_nulls_and_begins_where_it_does(start):
    array = pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None, {"a": 4, "b": None}])
    part = array.slice(start)
    assert field_of(part, "a").to_pylist() == [1, None, None, 4][start:]
    assert field_of(part, "b").to_pylist() == ["x", "y", None, None][start:]


def test_a_field_is_taken_without_the_others():
    """A sample of a group with 3,000 columns took fifteen seconds: each took all of them apart."""

    class Struct:
        type = pa.struct([("a", pa.int32()), ("b", pa.int32())])
        null_count = 0

        def field(self, index):
            return pa.array([index])

    assert field_of(Struct(), "b").to_pylist() == [1]


def test_short_names():
    assert str(Image("jpeg")) == "Image('jpeg')"
    assert str(Tensor("float32", (None, 3))) == "Tensor('float32', (None, 3))"
    assert str(Image(apart=True, channels=3)) == "Image('jpeg', channels=3, apart=True)"


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (
            {"kind": "hologram"},
            f"'hologram', which tensorlake_spark {tl.__version__} does not know",
        ),
        ({"kind": "imag"}, "did you mean 'image'"),
        ({"kind": "image", "depth": 3}, "option 'depth'"),
        ({"kind": "image", "format": "gif"}, "'gif' is not one of"),
        ({"kind": "embedding"}, "describes no type"),
        ({"kind": 5}, "describes no type"),
        ("image", "describes no type"),
        ({"kind": "sequence", "of": {"kind": "x"}}, "'x'"),
        ({"kind": "sequence", "of": 5}, "describes no type"),
    ],
)
def test_metadata_of_a_newer_version_is_refused_by_name(found, says):
    with pytest.raises(tl.FormatError) as error:
        Type.from_json(found)
    assert says in str(error.value)


def test_types_by_class():
    assert as_type(types.Text) == types.Text()
    assert as_type(Image) == Image("jpeg")
    with pytest.raises(tl.InvalidOptionError, match="needs arguments"):
        as_type(Tensor)


def test_the_short_name_of_the_room():
    assert tl.types is types
    assert "types" in dir(tl)
