"""Conditions on samples: Spark finds those that plain Python finds."""

import datetime as dt

import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.spark import samples
from tensorlake_spark.spark.frames.spark_condition import spark_condition

COLUMNS = {
    "label": tl.types.ClassLabel(["cat", "dog", "it's"]),
    "caption": "string",
    "day": "date",
    "training/score": "float64",
}
CONDITIONS = (
    "label = 'dog'",
    "label IN ('cat', 'it''s')",
    "'cat' <> LABEL",
    "label = 2 OR training.score IS NULL",
    '"training/score" BETWEEN 0.2 AND 0.5',
    "training.score * 2 - 1 > -0.5 AND NOT (label = 'cat')",
    "caption LIKE 's%1' AND `caption` IS NOT NULL",
    "caption = 'back\\slash'",
    "day >= DATE '2026-01-05'",
    "label % 2 = 1",
    "TRUE",
)


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    ds = tl.dataset(str(tmp_path_factory.mktemp("conditions") / "ds"), COLUMNS)
    ds.extend(
        {
            "label": [n % 3 for n in range(12)],
            "caption": [
                None if n == 5 else "back\\slash" if n == 6 else f"s{n}" for n in range(12)
            ],
            "day": [dt.date(2026, 1, 1 + n) for n in range(12)],
            "training/score": [None if n % 5 == 4 else n / 10 for n in range(12)],
        }
    )
    return ds


@pytest.mark.parametrize("where", CONDITIONS)
def test_spark_finds_what_python_finds(spark, ds, where):
    wanted = ds.to_arrow(["day"], where=where).column("day").to_pylist()
    assert wanted
    found = samples(spark, ds.uri, ["day"], where=where).collect()
    assert sorted(row.day for row in found) == wanted


def test_mistakes_and_apart_columns_are_named(ds):
    table = ds.schema.to_arrow()
    with pytest.raises(InvalidOptionError, match=r"no column 'lable'.*'label'"):
        spark_condition("lable = 1", ds.schema, table)
    with pytest.raises(InvalidOptionError, match="bird"):
        spark_condition("label = 'bird'", ds.schema, table)
    schema = type(ds.schema)({"image": tl.types.Image("png", apart=True)})
    with pytest.raises(InvalidOptionError, match="kept apart"):
        spark_condition("image.height > 5", schema, schema.to_arrow())
