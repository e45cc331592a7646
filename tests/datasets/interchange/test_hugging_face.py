"""Types as features of Hugging Face."""

import sys

import datasets
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets import types as t
from tensorlake_spark.datasets.interchange.hugging_face import to_features

SCHEMA = t.SampleSchema(
    {
        "image": t.Image("jpeg"), "mask": t.SegmentMask(), "label": t.ClassLabel(["a", "b"]), "caption": t.Text(),
        "meta/score": "float32", "meta/seen": "timestamp", "price": "decimal(10, 2)", "matrix": t.Tensor("int16", (None, 3)),
        "vector": t.Embedding(4), "boxes": t.BoundingBox(), "points": t.Keypoints(["a", "b"]), "outline": t.Polygon(),
        "tags": t.Sequence(t.Text()), "sound": t.Audio(), "extra": t.Json(), "ragged": t.Tensor("int8", (None, None)),
        "zero": t.Tensor("int8", ()), "other": t.Plain(pa.struct([("x", pa.int8())])), "raw": "bytes",
        "cloud": t.PointCloud(), "half": t.Embedding(2, "bfloat16"), "link": t.Link(t.Image()), "film": t.Video(),
        "scan": t.Dicom(), "yes": t.BinaryMask(), "line": t.Tensor("float64", (5,)),
    }
)  # fmt: skip


def test_every_column_has_its_feature():
    found = to_features(SCHEMA)
    assert isinstance(found, datasets.Features)
    assert found["image"] == found["mask"] == datasets.Image()
    assert found["label"].names == ["a", "b"]
    assert found["meta"] == {
        "score": datasets.Value("float32"),
        "seen": datasets.Value("timestamp[us, tz=UTC]"),
    }
    assert found["matrix"] == datasets.Array2D((None, 3), "int16")
    assert found["vector"].length == 4
    assert found["boxes"].feature.length == 4
    assert found["zero"] == datasets.Value("int8")
    assert len(found.arrow_schema.names) == len(SCHEMA) - 1


def test_values_can_be_written_with_the_features():
    schema = SCHEMA.select(["label", "vector", "boxes", "tags", "points", "ragged", "line"])
    sample = {
        "label": [1], "vector": [[1, 2, 3, 4]], "boxes": [[[1, 2, 3, 4]]], "tags": [["x"]], "ragged": [[[1], [2, 3]]],
        "points": [[[[1, 2, 2], [3, 4, 0]]]], "line": [[1, 2, 3, 4, 5]],
    }  # fmt: skip
    found = datasets.Dataset.from_dict(sample, features=to_features(schema))
    assert found[0]["points"] == [[[1, 2, 2], [3, 4, 0]]]


def test_a_column_without_a_feature_is_named():
    kinds = (t.Tensor("int8"), t.Tensor("complex64", (2,)), t.Tensor("datetime64[s]", (2, None)))
    for kind in kinds:
        with pytest.raises(tl.InvalidOptionError, match="column 'x', Tensor"):
            to_features({"x": kind})


def test_the_package_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(tl.MissingDependencyError, match="pip install datasets"):
        to_features(SCHEMA)
