"""Schemas of samples: names, groups, and Arrow."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.datasets.types import (
    BoundingBox,
    ClassLabel,
    Image,
    Plain,
    SampleSchema,
    Scalar,
    Sequence,
    Tensor,
    Text,
)
from tensorlake_spark.datasets.types.schema import KEY, column_of, declared_types

SCHEMA = SampleSchema(
    {
        "image": Image("jpeg"),
        "label": ClassLabel(["cat", "h\u00fchner"]),
        "training": {"boxes": BoundingBox("xywh"), "deep/score": "float32"},
        "caption": Text(nullable=False),
    }
)


def test_it_is_a_mapping_in_order():
    assert [*SCHEMA] == ["image", "label", "training/boxes", "training/deep/score", "caption"]
    assert SCHEMA["training/deep/score"] == Scalar("float32")
    assert SCHEMA.groups() == ["training", "training/deep"]
    assert [*SCHEMA.group("training")] == ["boxes", "deep/score"]
    assert [*SCHEMA.select(["caption", "image"])] == ["caption", "image"]
    assert SampleSchema(SCHEMA) == SCHEMA
    assert SampleSchema(SCHEMA.items()) == SCHEMA
    assert hash(SCHEMA) == hash(SampleSchema(SCHEMA))
    assert SCHEMA.select(["image"]) != SCHEMA
    assert SampleSchema([*SCHEMA.items()][::-1]) != SCHEMA
    assert "'image': Image('jpeg')" in repr(SCHEMA)
    with pytest.raises(KeyError, match="did you mean 'image'"):
        SCHEMA["imag"]
    with pytest.raises(KeyError, match="no group"):
        SCHEMA.group("image")


def test_arrow_and_back():
    schema = SCHEMA.to_arrow()
    assert schema.names == ["sid", "image", "label", "training", "caption"]
    assert schema.field("sid") == pa.field("sid", pa.int64(), False)
    assert schema.field("image").metadata[KEY].startswith(b'{"kind":"image"')
    assert SampleSchema.from_arrow(schema) == SCHEMA
    assert SampleSchema.from_arrow(pa.ipc.read_schema(schema.serialize())) == SCHEMA
    assert SCHEMA.to_arrow(sid=False).names == schema.names[1:]


NAMES = st.text(st.sampled_from("abAB/"), min_size=1, max_size=5)


@given(st.lists(NAMES, max_size=5))
def test_names_that_are_allowed_survive_and_others_are_refused(names):
    try:
        schema = SampleSchema([(name, "int8") for name in names])
    except tl.InvalidOptionError:
        return
    assert sorted(SampleSchema.from_arrow(schema.to_arrow())) == sorted(names)
    assert len({name.casefold() for name in names}) == len(names)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["sid"], "number of a sample"), (["Sid"], "number of a sample"), ([""], "1 to 512"), (["a" * 513], "1 to 512"),
        (["a//b"], "''"), (["/a"], "''"), (["../a"], "'..'"), (["a/./b"], "'.'"), (["a\nb"], "control"), (["a\ud800"], "control"),
        (["a b"], "Delta does not allow"), (["a", "a"], "twice"), (["a", "A"], "only in case"),
        (["x/a", "X/b"], "differ only in case"), (["a", "a/b"], "a group"), (["a/b", "A"], "a group"), ([5], "string"),
        (["a/" * 33 + "b"], "lies in 33 groups; there may be at most 32"),
    ],
)  # fmt: skip
def test_names_are_checked(names, says):
    with pytest.raises(tl.InvalidOptionError) as error:
        SampleSchema([(name, "int8") for name in names])
    assert says in str(error.value)


@pytest.mark.parametrize("name", ["image.height", "Image.Height", "image.data"])
def test_a_name_that_parquet_takes_for_a_part_of_another_column_is_refused(name):
    columns = {"image": tl.types.Image("png"), name: "int64"}
    with pytest.raises(tl.InvalidOptionError, match="both have the path"):
        SampleSchema(columns)
    fields = [
        field for one in columns for field in SampleSchema({one: columns[one]}).to_arrow(False)
    ]
    with pytest.raises(tl.FormatError, match=f"{name!r} both have the path"):
        SampleSchema.from_arrow(pa.schema(fields))
    with pytest.raises(tl.InvalidOptionError, match="both have the path"):
        SampleSchema({"group": columns})


@pytest.mark.parametrize("name", ["group/a", "group/b", "x/y"])
def test_a_column_of_another_program_whose_name_has_a_slash_is_refused(name):
    """It would be read as a column of a group, and lost in rows that are written anew."""
    ours = SampleSchema({"group/a": "int8", "size": "int8"}).to_arrow()
    with pytest.raises(tl.FormatError, match=f"added a column '{name}'.*RESTORE"):
        SampleSchema.from_arrow(ours.append(pa.field(name, pa.string())))


def test_other_names_with_a_point_are_names():
    names = ["price", "price.usd", "group/a.b", "group/a"]
    assert [*SampleSchema([(name, "int8") for name in names])] == names
    assert SampleSchema({"box": tl.types.Tensor("float32", (None, 4)), "box.x": "int32"})["box.x"]


def test_a_type_that_is_none_is_named_with_its_column():
    with pytest.raises(tl.InvalidOptionError, match="column 'a/b': 'flaot32' is not a type"):
        SampleSchema({"a": {"b": "flaot32"}})


def test_columns_of_others_get_a_type():
    point = pa.struct([("x", pa.int32())])
    schema = pa.schema(
        [
            pa.field("sid", pa.int64()), pa.field("n", pa.int32(), False), pa.field("tags", pa.list_(pa.string())),
            pa.field("point", point), *SCHEMA.to_arrow(sid=False),
        ]
    )  # fmt: skip
    found = SampleSchema.from_arrow(schema)
    assert found["n"] == Scalar("int32", nullable=False)
    assert found["tags"] == Sequence(Scalar("string"))
    assert found["point"] == Plain(point)
    assert {k: v for k, v in found.items() if k in SCHEMA} == dict(SCHEMA)
    assert SampleSchema.from_arrow(found.to_arrow()) == found


@pytest.mark.parametrize("text", [b"{", b'{"kind": "hologram"}', b"5"])
def test_metadata_that_nobody_knows_names_the_column(text):
    inner = pa.struct([pa.field("b", pa.int8(), metadata={KEY: text})])
    with pytest.raises(tl.FormatError, match="column 'a/b'"):
        SampleSchema.from_arrow(pa.schema([pa.field("a", inner)]))
    with pytest.raises(tl.FormatError, match="not a dataset"):
        SampleSchema.from_arrow(pa.schema([("a b", pa.int8())]))


def test_columns_become_a_batch_and_come_out_of_it():
    values = {
        "image": [np.zeros((2, 3, 3), "u1"), None], "label": ["cat", 1], "training/boxes": [[[1, 2, 3, 4]], None],
        "training/deep/score": [0.5, None], "caption": ["a", "b"],
    }  # fmt: skip
    columns = {name: SCHEMA[name].encode(v, name) for name, v in values.items()}
    batch = SCHEMA.to_batch(columns, pa.array([7, 9]))
    batch.validate(full=True)
    assert batch.schema.equals(SCHEMA.to_arrow(), check_metadata=True)
    for found in (batch, pa.Table.from_batches([batch]), batch.slice(1)):
        for name, column in columns.items():
            got = column_of(found, name)
            got = got.combine_chunks() if isinstance(got, pa.ChunkedArray) else got
            assert got.to_pylist() == column.to_pylist()[len(column) - len(got) :]
    with pytest.raises(tl.CorruptDataError, match="no field 'x'"):
        column_of(batch, "training/x")


def test_a_schema_is_inferred_from_samples_and_from_columns():
    samples = [
        {"x": np.zeros((2, 3)), "g": {"y": 1}, "t": "a"},
        {"x": np.zeros((1, 3)), "g": {"y": None}, "t": "b"},
    ]
    wanted = SampleSchema({"x": Tensor("float64", (None, 3)), "g/y": "int64", "t": Text()})
    assert SampleSchema.infer(samples) == wanted
    columns = {"x": [s["x"] for s in samples], "g/y": [1, None], "t": np.array(["a", "b"], object)}
    assert SampleSchema.infer(columns) == wanted
    with pytest.raises(tl.InvalidOptionError, match="column 'x' has no value"):
        SampleSchema.infer([{"x": None}])
    with pytest.raises(tl.InvalidOptionError, match="a sample is a dict"):
        SampleSchema.infer([1])


def test_declared_types_are_not_guessed():
    schema = SampleSchema({"x": Tensor("int16", (None,)), "g/y": "int64"})
    declared = declared_types(schema.to_arrow(sid=False).append(pa.field("more", pa.int8())))
    assert declared == {"x": {"x": schema["x"]}, "g": {"g/y": schema["g/y"]}}
    found = SampleSchema.infer({"more": [1], "x": [None], "g": [{"y": None}]}, declared)
    assert list(found.items()) == [("more", found["more"]), *schema.items()]
