"""The view ``cells`` with labels in place of indices."""

import datetime as dt

import numpy as np
import pytest

import tensorlake_spark as tl
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


@pytest.mark.parametrize("options", [{"labels": "yes"}, {"labels": "true", "view": "blocks"}])
def test_what_the_option_may_be(spark, lake, options):
    with pytest.raises(Exception, match="'true' or 'false', and goes with view='cells'"):
        spark.read.format("tensor").options(**{"id": "sparse", "view": "cells", **options}).load(
            lake.uri
        )
