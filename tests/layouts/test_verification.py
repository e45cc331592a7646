"""Rows held against their checksums: one that was changed, or is another tensor's, is told with its box."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts.layout_registry import layout_of
from tensorlake_spark.layouts.verification import (
    boxes,
    checked,
    hold,
    integers,
    naming,
    params_of,
)
from tensorlake_spark.rows.row import data_batch
from tensorlake_spark.tensor.spec import TensorSpec

SPEC = TensorSpec("x", (4, 6), np.dtype("<i4"), "ftsf", (2, 6), codec="raw")
X = np.arange(24, dtype="<i4").reshape(4, 6)


def rows_of(spec=SPEC, x=X):
    layout = layout_of(spec.layout)
    parts = [layout.encode(x[lo : lo + 2], (lo, 0), spec) for lo in (0, 2)]
    rows = [row for part in parts for row in part]
    return data_batch(spec, range(len(rows)), rows)


def held(batch, spec=SPEC):
    lo, hi = boxes(batch, spec.ndim)
    return checked(batch, spec, range(batch.num_rows), lo, hi, ("raw", "zstd"))


def changed(batch, name, values):
    place = batch.schema.get_field_index(name)
    field = batch.schema.field(place)
    return batch.set_column(place, field, pa.array(values, field.type))


def test_rows_as_they_were_written():
    batch = rows_of()
    lo, hi = boxes(batch, 2)
    assert (lo.tolist(), hi.tolist()) == ([[0, 0], [2, 0]], [[2, 6], [4, 6]])
    found = held(batch)
    assert [bytes(values) for values in found.values] == [X[:2].tobytes(), X[2:].tobytes()]
    assert found.codecs == ["raw", "raw"]
    assert found.nbytes == X.nbytes
    assert found.take([1]).each() == found.each()[1:]
    assert [bytes(payload.values) for payload in found.each()] == [*map(bytes, found.values)]
    assert checked(batch, SPEC, [], lo, hi, ()).each() == []


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("values", [X[:2].tobytes(), X[1:3].tobytes()]),
        ("values", [X[:2].tobytes(), None]),
        ("crc", [1, 2]),
        ("codec", ["zstd", "zstd"]),
        ("layout", ["coo", "coo"]),
        ("params", ["{}", "{}"]),
    ],
)
def test_a_changed_row_fails_its_checksum(name, values):
    batch = changed(rows_of(), name, values)
    says = r"tensor 'x', box \[\d:\d, 0:6\]: the row fails its checksum; restore the file"
    with pytest.raises(tl.CorruptDataError, match=says):
        held(batch)


@pytest.mark.parametrize("values", [None, X[1:3].tobytes()])
def test_a_row_that_is_held_later_is_held_once(values):
    lo, hi = boxes(rows_of(), 2)
    sound, damaged = checked(
        changed(rows_of(), "values", [X[:2].tobytes(), values]),
        SPEC,
        [0, 1],
        lo,
        hi,
        ("raw",),
        later=True,
    ).each()
    hold(sound, SPEC, lo[0], hi[0])
    with pytest.raises(
        tl.CorruptDataError, match=r"box \[\d:\d, 0:6\]: the row fails its checksum"
    ):
        hold(damaged, SPEC, lo[1], hi[1])
    hold(damaged._replace(check=None), SPEC, lo[1], hi[1])


@pytest.mark.parametrize(
    "other",
    [
        replace(SPEC, shape=(3, 6), segments=((0,), (0,))),
        replace(SPEC, dtype=np.dtype("<u4")),
        replace(SPEC, layout="bsgs"),
    ],
    ids=["shape", "dtype", "layout"],
)
def test_a_sound_row_of_another_tensor_is_told(other):
    with pytest.raises(
        tl.CorruptDataError, match=r"the row \(ftsf, .*\) does not fit the tensor's shape"
    ):
        held(rows_of(), other)


def test_a_codec_that_the_layout_does_not_know():
    batch = rows_of()
    lo, hi = boxes(batch, 2)
    with pytest.raises(
        tl.FormatError,
        match=r"row 0, box .*: codec 'raw' is not one that this release reads in layout ftsf",
    ):
        checked(batch, SPEC, [0], lo, hi, ("zstd",))


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "[1]", "3"])
def test_parameters_are_a_json_object(text):
    with pytest.raises(tl.CorruptDataError, match=r"parameters .* of a row are no"):
        params_of(text)


@pytest.mark.parametrize(
    "found", [None, "12", [1], [1, 2, 3], [1, True], [1, -1], [1, 2**63], [1, 2.0]]
)
def test_a_corner_is_so_many_integers(found):
    with pytest.raises(tl.CorruptDataError, match="is not a corner: 2 integers"):
        integers(found, 2, "a corner")


def test_axes_past_the_eighth_come_from_the_parameters():
    spec = TensorSpec("deep", (1,) * 8 + (3, 2), np.dtype("u1"), "ftsf", (1,) * 10, codec="raw")
    x = np.arange(1, 7, dtype="u1").reshape(spec.shape)
    layout = layout_of("ftsf")
    rows = [
        row
        for lo in ((0,) * 8 + (i, j) for i in range(3) for j in range(2))
        for row in layout.encode(x[tuple(slice(a, a + 1) for a in lo)], lo, spec)
    ]
    lo, hi = boxes(data_batch(spec, range(len(rows)), rows), 10)
    assert lo[:, 8:].tolist() == [[i, j] for i in range(3) for j in range(2)]
    assert (hi - lo == 1).all()


def test_the_tensor_is_named_before_what_is_said_of_its_rows():
    with pytest.raises(tl.CorruptDataError, match=r"^tensor 'x': it is torn$"), naming(SPEC):
        raise tl.CorruptDataError("it is torn")
