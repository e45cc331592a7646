"""Metadata rows: what is written of a tensor is read of it, and nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.rows.metadata import META_COLUMNS, meta_batch, meta_crc, meta_row, read_meta
from tensorlake_spark.rows.row import SCHEMA, Totals
from tensorlake_spark.tensor.label_input import labels_of
from tensorlake_spark.tensor.spec import TensorSpec

PLAIN = TensorSpec("x", (5, 6), np.dtype("i4"), "ftsf", (2, 3))
FULL = TensorSpec(
    "g/y", (4, 2), np.dtype("f4"), "csr", (), codec="zstd", axes=("day", "kind"),
    attrs={"unit": "K", "n": [1, None]}, params={"row_axes": [0], "duplicates": "sum"},
    labels={"kind": labels_of(["a", "b"])},
)  # fmt: skip
TOTALS = Totals(3, 30, 77)


def changed(row, change):
    """A row whose checksum holds for a body that somebody else made."""
    body = json.loads(row["attrs"])
    change(body)
    text = json.dumps(body)
    head = (row[name] for name in ("layout", "dtype", "codec"))
    return {**row, "attrs": text, "crc": meta_crc(*head, row["shape"], row["block_shape"], text)}


@pytest.mark.parametrize(
    "spec", [PLAIN, FULL, replace(PLAIN, shape=(), block_shape=(), segments=())]
)
def test_what_is_written_is_read(spec):
    batch = meta_batch([spec], [7], [TOTALS])
    assert batch.schema == SCHEMA
    stored = batch.select(META_COLUMNS).to_pylist()[0]
    for row in (stored, meta_row(spec, 7, TOTALS)):
        found = read_meta(row)
        assert (found.spec, found.totals, found.seq) == (spec, TOTALS, 7)


def test_several_in_one_batch():
    batch = meta_batch([PLAIN, FULL], [1, 9], [Totals(), TOTALS])
    assert [read_meta(row).spec.id for row in batch.to_pylist()] == ["x", "g/y"]
    assert batch["nnz"].to_pylist() == [0, 0]


@pytest.mark.parametrize("name", ["shape", "block_shape", "layout", "dtype", "codec", "attrs"])
def test_a_changed_column_fails_the_checksum(name):
    row = meta_row(PLAIN, 0, TOTALS)
    other = {"shape": (5, 7), "block_shape": (2, 2), "attrs": row["attrs"].replace("77", "78")}
    with pytest.raises(
        tl.CorruptDataError, match="metadata row of tensor 'x' fails its checksum; restore"
    ):
        read_meta({**row, name: other.get(name, "zlib")})


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("rows"),
        lambda body: body.update(nnz=-1),
        lambda body: body.update(nnz=2**63),
        lambda body: body.update(bytes=True),
        lambda body: body.update(fill="xyz"),
        lambda body: body.update(segments=[[0]]),
        lambda body: body.update(segments=[[1], [0]]),
        lambda body: body.update(params={"order": [0, 0]}),
        lambda body: body.update(params={"row_axes": [2]}),
        lambda body: body.update(attrs=5),
    ],
)
def test_what_somebody_made_up_is_not_believed_though_its_checksum_holds(change):
    with pytest.raises(
        tl.CorruptDataError, match=r"metadata row of tensor 'x' is not readable: .*; restore"
    ):
        read_meta(changed(meta_row(PLAIN, 0, TOTALS), change))


@pytest.mark.parametrize("name", ["layout", "codec"])
def test_a_layout_or_a_codec_that_is_null(name):
    row = {**meta_row(PLAIN, 0, TOTALS), name: None}
    with pytest.raises(tl.CorruptDataError, match="are not two names"):
        read_meta(changed(row, lambda body: None))


@pytest.mark.parametrize("name", ["shape", "block_shape"])
def test_sides_that_are_not_there_or_no_numbers_of_64_bits(name):
    for sides in ([None, None], [4, None], [2**63, 1]):
        with pytest.raises(tl.CorruptDataError, match="tensor 'x' is not readable"):
            read_meta({**meta_row(PLAIN, 0, TOTALS), name: sides})


@pytest.mark.parametrize("attrs", [None, "", "{", "[]", "{}", '{"format": "one"}'])
def test_a_text_that_is_no_body(attrs):
    with pytest.raises(tl.CorruptDataError, match="is not readable"):
        read_meta({**meta_row(PLAIN, 0, TOTALS), "attrs": attrs})


@pytest.mark.parametrize("version", [2, 9])
def test_a_later_format_is_told_before_its_checksum_is_looked_at(version):
    row = meta_row(PLAIN, 0, TOTALS)
    later = {**row, "attrs": row["attrs"].replace('"format":1', f'"format":{version}')}
    with pytest.raises(
        tl.FormatError, match=rf"row format version {version}; .* up to version 1: upgrade"
    ):
        read_meta(later)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_attributes_are_json(value):
    with pytest.raises(
        tl.InvalidTensorError, match=r"attributes of tensor 'x' are not JSON: .* use str"
    ):
        meta_row(replace(PLAIN, attrs={"a": value}), 0, TOTALS)


MANY = [f"feature_{k}" for k in range(3000)]


@pytest.mark.parametrize(
    ("axes", "labels", "attrs"),
    [
        (("row", "feature"), {"feature": MANY}, {}),
        (("row", "feature"), {"feature": MANY}, {"labels": {"feature": ["no"]}}),
        (("labels", "feature"), {"feature": MANY, "labels": [1, 2]}, {}),
        (("feature", "labels"), {"labels": MANY}, {"x": ',"labels":{"y":["z"]}}'}),
        (("labels", "b"), {"labels": ["p", "q"], "b": MANY}, {}),
        (("a_b", "é"), {"é": MANY}, {}),
        (("a", "b"), {"b": [f"{k}é" for k in range(3000)]}, {}),
        (("a", "b"), {"b": [*range(3000)]}, {}),
        (("a", "b"), {"a": ["p", "q"]}, {"long": MANY, "labels": {"b": MANY}}),
        (("a", "b"), {}, {"long": MANY, "labels": {"b": MANY}}),
    ],
)
def test_many_labels_are_read_when_they_are_asked_for(axes, labels, attrs):
    spec = TensorSpec(
        "x", (2, 3000), np.dtype("f4"), "ftsf", (2, 3000), axes=axes, attrs=attrs, labels={k: labels_of(v) for k, v in labels.items()},
    )  # fmt: skip
    found = read_meta(meta_row(spec, 7, Totals(1, 2, 3))).spec
    assert found.attrs == attrs
    assert found.labels == spec.labels
    assert {name: one.to_json() for name, one in found.labels.items()} == labels
