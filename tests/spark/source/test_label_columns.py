"""The view ``cells`` with labels in place of indices."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.spark.source.label_columns import labelled_schema, with_labels
from tensorlake_spark.tensor.labels import Regular

AXES = ("day", "hour", "carrier", "lat", "seats", "n")
LABELS = {
    "day": Regular("2013-01-01", 1, "D"),
    "hour": Regular("2013-01-01T05", 1, "h"),
    "carrier": ["AA", "B6", "UA"],
    "lat": Regular(40.5, 0.25, None),
    "seats": [10, 150, 300],
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    lake = tl.open(tmp_path_factory.mktemp("labels") / "lake")
    x = np.zeros((3,) * 6, "i4")
    x[0, 1, 2, 0, 1, 2], x[2, 0, 1, 2, 0, 0] = 5, 7
    lake.write("sparse", x, layout="bsgs", axes=AXES, labels=LABELS)
    lake.write(
        "dense",
        x[2:, :1, 1:2, 2:, :1],
        layout="ftsf",
        axes=AXES,
        labels={"n": [True, "x", 2]},
    )
    return lake


def cells(spark, lake, tensor_id, **options):
    return (
        spark.read.format("tensor")
        .options(id=tensor_id, view="cells", labels="true", **options)
        .load(lake.uri)
    )


def test_every_kind_of_labels(spark, lake):
    frame = cells(spark, lake, "sparse")
    assert frame.schema.simpleString() == (
        "struct<day:date,hour:timestamp_ntz,carrier:string,lat:double,seats:bigint,n:bigint,value:int>"
    )
    rows = sorted(tuple(row) for row in frame.collect())
    assert rows == [
        (dt.date(2013, 1, 1), dt.datetime(2013, 1, 1, 6), "UA", 40.5, 150, 2, 5),
        (dt.date(2013, 1, 3), dt.datetime(2013, 1, 1, 5), "B6", 41.0, 10, 0, 7),
    ]


def test_labels_are_those_of_the_tensor_whatever_the_slice(spark, lake):
    rows = (
        cells(spark, lake, "sparse", slice="day=2, carrier=::-1")
        .select("carrier", "day", "value")
        .collect()
    )
    assert [tuple(row) for row in rows] == [("B6", dt.date(2013, 1, 3), 7)]
    assert cells(spark, lake, "sparse").where("carrier = 'UA'").count() == 1


def test_labels_of_different_types_are_shown_as_text(spark, lake):
    rows = cells(spark, lake, "dense").select("n", "value").collect()
    assert sorted(tuple(row) for row in rows) == [("2", 0), ("True", 7), ("x", 0)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"labels": "yes"}, "labels='yes' is neither 'true' nor 'false'"),
        ({"labels": "true", "view": "blocks"}, "goes with view='cells', not with 'blocks'"),
    ],
)
def test_what_the_option_may_be(spark, lake, options, says):
    with pytest.raises(Exception, match=says):
        spark.read.format("tensor").options(**{"id": "sparse", "view": "cells", **options}).load(
            lake.uri
        )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((1, 2**63 - 1), "bigint"),
        ((1, 2**63), "string"),
        ((1, 0.5), "double"),
        ((2**53 + 1, 0.5), "string"),
        ((10**400, 0.5), "string"),
    ],
)
def test_numbers_that_spark_has_no_type_for_are_texts(tmp_path, values, kind):
    """A task ended with an error of Python or Arrow."""
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.ones(2), axes=("k",), labels={"k": list(values)})
    spec = catalog.get(Snapshot.open(lake._storage), "x").spec
    assert labelled_schema(spec)["k"].dataType.simpleString() == kind
    batch = pa.RecordBatch.from_pydict({"k": [1, 0], "value": [1.0, 1.0]})
    found = with_labels(batch, spec).column("k").to_pylist()
    assert found == [str(v) if kind == "string" else v for v in reversed(values)]
