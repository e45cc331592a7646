"""Parquet as Hugging Face's datasets writes it: the metadata is that of its files, written here by pyarrow."""

import io
import json
import wave

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tensorlake_spark.datasets.sources.source_kinds import found_at, source_of
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError

MEDIA = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def write(path, table, features=None, **options):
    if features is not None:
        metadata = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
        table = table.replace_schema_metadata(metadata)
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path, **options)


def sound():
    stream = io.BytesIO()
    with wave.open(stream, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(bytes(200))
    return stream.getvalue()


def value(dtype):
    return {"dtype": dtype, "_type": "Value"}


@pytest.fixture
def made(tmp_path, make_picture):
    box = pa.list_(pa.list_(pa.float32()))
    table = pa.table(
        {
            "image": pa.array(
                [{"bytes": make_picture(n), "path": f"{n}.png"} for n in range(3)] + [None], MEDIA
            ),
            "label": pa.array([1, 0, -1, None], pa.int64()),
            "sound": pa.array([{"bytes": sound(), "path": None}] * 4, MEDIA),
            "array": pa.array(
                [np.full((2, 3), n).tolist() for n in range(4)], pa.list_(pa.list_(pa.int32()))
            ),
            "tags": pa.array([["a"], [], None, ["b", "c"]], pa.list_(pa.string())),
            "labels": pa.array([[0, 1], [], [1], None], pa.list_(pa.int64())),
            "objects": pa.array(
                [{"bbox": [[1, 2, 3, 4]] * n, "category": [1] * n} for n in range(4)],
                pa.struct([("bbox", box), ("category", pa.list_(pa.int64()))]),
            ),
            "answers": pa.array(
                [[{"text": "x", "n": n}] * n for n in range(3)] + [None],
                pa.list_(pa.struct([("text", pa.string()), ("n", pa.int8())])),
            ),
            "more": pa.array([{"deep": {"n": n}} for n in range(4)]),
            "a b.c": pa.array([0.5, 1, 2, 3], pa.float64()),
        }
    )
    names = {"names": ["cat", "dog"], "_type": "ClassLabel"}
    features = {
        "image": {"_type": "Image"},
        "label": names,
        "sound": {"sampling_rate": 8000, "_type": "Audio"},
        "array": {"shape": [2, 3], "dtype": "int32", "_type": "Array2D"},
        "tags": {"feature": value("string"), "_type": "Sequence"},
        "labels": {"feature": names, "_type": "List"},
        "objects": {
            "feature": {
                "bbox": {"feature": value("float32"), "length": 4, "_type": "Sequence"},
                "category": names,
            },
            "_type": "Sequence",
        },
        "answers": [{"text": value("string"), "n": value("int8")}],
        "more": {"deep": {"n": value("int64")}},
        "a b.c": value("float64"),
    }
    write(tmp_path / "data/train-0.parquet", table, features, row_group_size=2)
    return tmp_path


def test_features_are_types_of_columns(made):
    source = source_of(made)
    assert found_at(made) == "huggingface: 1 Parquet file(s) with features"
    assert {
        name: str(kind.to_json().get("dtype", kind.kind)) for name, kind in source.schema.items()
    } == {
        "image": "uint8",
        "label": "class_label",
        "sound": "audio",
        "array": "int32",
        "tags": "sequence",
        "labels": "sequence",
        "objects/bbox": "float32",
        "objects/category": "sequence",
        "answers/text": "sequence",
        "answers/n": "sequence",
        "more/deep/n": "int64",
        "a_b_c": "float64",
    }
    assert source.schema["image"].format == "png"
    assert source.schema["array"].shape == (2, 3)
    assert source.schema["objects/bbox"].shape == (None, 4)
    assert source.schema["labels"].of.names == source.schema["label"].names == ("cat", "dog")


def test_values(made, make_picture, read_all):
    samples = read_all(source_of(made))
    assert [sample["image"] for sample in samples] == [*map(make_picture, range(3)), None]
    assert [sample["label"] for sample in samples] == [1, 0, None, None]
    assert [sample["sound"] for sample in samples] == [sound()] * 4
    np.testing.assert_array_equal(samples[3]["array"], np.full((2, 3), 3))
    assert [sample["tags"] for sample in samples] == [["a"], [], None, ["b", "c"]]
    assert samples[0]["objects/bbox"].size == 0
    np.testing.assert_array_equal(samples[2]["objects/bbox"], [[1, 2, 3, 4]] * 2)
    assert samples[2]["objects/category"] == [1, 1]
    assert [sample["answers/n"] for sample in samples] == [[], [1], [2, 2], None]
    assert [sample["answers/text"] for sample in samples] == [[], ["x"], ["x", "x"], None]
    assert [sample["more/deep/n"] for sample in samples] == [0, 1, 2, 3]


def test_columns_are_chosen(made, read_all):
    source = source_of(made, columns=["label", "array"])
    assert [list(sample) for sample in read_all(source)] == [["label", "array"]] * 4


def test_without_metadata_by_arrows_types(tmp_path, make_picture, read_all):
    table = pa.table(
        {
            "photo": pa.array(
                [{"bytes": make_picture(n, "JPEG"), "path": None} for n in range(2)], MEDIA
            ),
            "raw": pa.array([make_picture(n) for n in range(2)]),
            "blob": pa.array([b"\0\1", b""]),
            "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "u": pa.array([1, 2], pa.uint16()),
        }
    )
    write(tmp_path / "a.parquet", table)
    source = source_of(tmp_path)
    kinds = {name: kind.kind for name, kind in source.schema.items()}
    assert kinds == {
        "photo": "image", "raw": "image", "blob": "scalar", "vector": "tensor", "word": "text", "u": "scalar",
    }  # fmt: skip
    assert [source.schema[name].format for name in ("photo", "raw")] == ["jpeg", "png"]
    first, second = read_all(source)
    np.testing.assert_array_equal(second["vector"], np.float32([3, 4]))
    assert (first["word"], first["u"], first["blob"]) == ("a", 1, b"\0\1")


def test_classes_without_names_are_numbers(tmp_path, read_all):
    write(tmp_path / "a.parquet", pa.table({"label": [3, 1]}), {"label": {"_type": "ClassLabel"}})
    source = source_of(tmp_path)
    assert source.schema["label"].dtype == "int64"
    assert read_all(source) == [{"label": 3}, {"label": 1}]


def test_a_bad_row_is_named_or_left_out(tmp_path, make_picture, read_all):
    rows = [{"bytes": make_picture(), "path": None}, {"bytes": b"junk", "path": None}]
    arrays = pa.array(
        [[[1, 2], [3, 4]], [[1], [2, 3]], [[1, 2], [3, 4]]], pa.list_(pa.list_(pa.int8()))
    )
    table = pa.table({"image": pa.array([*rows, rows[0]], MEDIA), "x": arrays})
    features = {
        "image": {"_type": "Image"},
        "x": {"shape": [2, 2], "dtype": "int8", "_type": "Array2D"},
    }
    write(tmp_path / "a.parquet", table, features)
    with pytest.raises(
        InvalidSampleError, match="row group 0, row 1, image: 4 bytes that are not an image"
    ):
        read_all(source_of(tmp_path))
    with pytest.raises(InvalidSampleError, match="row 1, x: lists of 1 and of 2 values"):
        read_all(source_of(tmp_path, columns=["x"]))
    bad = []
    assert len(read_all(source_of(tmp_path), bad.append)) == 2
    assert len(bad) == 1


def test_images_that_are_files_beside_the_table(tmp_path, make_picture, read_all):
    (tmp_path / "1.png").write_bytes(make_picture(1))
    (tmp_path.parent / "secret.png").write_bytes(make_picture(2))
    names = ["1.png", "../secret.png", None]
    column = pa.array([{"bytes": None, "path": name} for name in names], MEDIA)
    write(tmp_path / "a.parquet", pa.table({"image": column}), {"image": {"_type": "Image"}})
    bad = []
    source = source_of(tmp_path, "huggingface", image_format="png")
    assert [s["image"] for s in read_all(source, bad.append)] == [make_picture(1), None]
    assert "which lies outside of" in str(bad[0])


@pytest.mark.parametrize(
    "metadata",
    [b"{", b"[]", b'{"info": 1}', b'{"info": {"features": {"a": {"_type": "Array2D"}}}}'],
)
def test_damaged_metadata_is_told(tmp_path, metadata):
    table = pa.table({"a": [[[1]]]}).replace_schema_metadata({b"huggingface": metadata})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InvalidOptionError, match=r"a\.parquet: Hugging Face"):
        source_of(tmp_path)


def test_a_type_that_no_column_holds_is_told(tmp_path, read_all):
    table = pa.table({"a": [1], "d": pa.array([5], pa.duration("s"))})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(
        InvalidOptionError, match=r"column 'd' has the type duration\[s\].*columns="
    ):
        source_of(tmp_path)
    assert read_all(source_of(tmp_path, columns=["a"])) == [{"a": 1}]


def test_no_rows_are_no_samples(tmp_path, read_all):
    write(tmp_path / "a.parquet", pa.table({"a": pa.array([], pa.int8())}))
    assert read_all(source_of(tmp_path), encode=False) == []


def test_a_column_that_no_dataset_holds_is_told_with_its_file(tmp_path):
    label = {"a": {"_type": "ClassLabel", "names": ["x", "x"]}}
    told = {b"huggingface": json.dumps({"info": {"features": label}}).encode()}
    for table, said in (
        (pa.table({"a": [1]}).replace_schema_metadata(told), "names has 'x' twice"),
        (pa.table({"a": pa.array([1], pa.duration("s"))}), "column 'a' has the type duration"),
    ):
        pq.write_table(table, tmp_path / "a.parquet")
        with pytest.raises(InvalidOptionError, match=rf"^{tmp_path}/a\.parquet: {said}"):
            source_of(tmp_path, "huggingface")


@pytest.mark.parametrize("permutation", [None, [1, 0]])
def test_tensors_of_arrow_have_their_shape(tmp_path, read_all, permutation):
    """They were told as a TypeError of Python."""
    kind = pa.fixed_shape_tensor(pa.float32(), (2, 3), permutation=permutation)
    stored = pa.array([np.arange(6)], kind.storage_type)
    table = pa.table({"x": pa.ExtensionArray.from_storage(kind, stored)})
    write(tmp_path / "a.parquet", table)
    source = source_of(tmp_path, "huggingface")
    wanted = np.arange(6).reshape(2, 3).transpose(permutation or [0, 1])
    assert source.schema["x"].shape == wanted.shape
    (first,) = read_all(source)
    assert np.array_equal(first["x"], wanted)


def test_a_null_among_tensors_of_arrow_is_one(tmp_path, read_all):
    kind = pa.fixed_shape_tensor(pa.float32(), (2, 3))
    stored = pa.array([np.arange(6), None], kind.storage_type)
    write(tmp_path / "a.parquet", pa.table({"x": pa.ExtensionArray.from_storage(kind, stored)}))
    assert [row["x"] is None for row in read_all(source_of(tmp_path, "huggingface"))] == [
        False,
        True,
    ]


def test_a_column_that_only_a_later_file_has_is_told(tmp_path, read_all):
    """It was left out without a word."""
    write(tmp_path / "a.parquet", pa.table({"x": [1]}))
    write(tmp_path / "b.parquet", pa.table({"x": [2], "y": [3]}))
    bad = []
    assert read_all(source_of(tmp_path, "huggingface"), bad.append) == [{"x": 1}]
    assert "b.parquet has the column 'y', which the first file has not; name" in str(bad[0])
    chosen = source_of(tmp_path, "huggingface", columns=["x"])
    assert read_all(chosen) == [{"x": 1}, {"x": 2}]
