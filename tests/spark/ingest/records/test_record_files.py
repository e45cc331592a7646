"""Records of CSV and Parquet whose lines or columns are odd: read as Python reads them, or refused in one line."""

import csv

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.spark.ingest import ingestion
from tensorlake_spark.spark.ingest.ingest_options import IngestOptions
from tensorlake_spark.spark.ingest.records.cell_options import CellOptions


@pytest.fixture
def run(spark, tmp_path):
    def ingest(sources, axis="i", value="v"):
        cells = CellOptions((axis,), value=value)
        lake, options = (
            str(tmp_path / "lake"),
            IngestOptions(mode="overwrite", cells=cells, options={"layout": "coo"}),
        )
        ingestion.run(spark, lake, "x", [str(tmp_path / one) for one in sources], options)
        return tl.open(lake)["x"]

    return ingest


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('label,text\na,"x\nb,y"\nc,z\n', 2),
        ('label,text\na,"x ""y""\nb,z"\n', 2),
        ('label,text\nq,""\na,"x,\n', 3),
        ('n,text\n1,"x\ny"\n2,z\n', 2),  # not told as a column that has integers and other text
    ],
)
def test_a_quoted_field_of_two_lines_is_no_two_records(run, tmp_path, text, line):
    (tmp_path / "a.csv").write_text(text)
    said = rf"a\.csv, line {line}: .* has a quote that is not closed \(a quoted field may not span"
    with pytest.raises(InvalidTensorError, match=said):
        run(["a.csv"], text.partition(",")[0], "count()")
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quotes_inside_of_a_field_are_characters(run, tmp_path, end):
    lines = [
        "label,text",
        '5" pipe,x',
        'q,5"',
        '7" pipe,"x"',
        '"z ""x",6 in',
        '"a""",""',
        '"b, c",',
        '"d",e"f"g"',
    ]
    (tmp_path / "a.csv").write_bytes("".join(line + end for line in lines).encode())
    want = sorted(row["label"] for row in csv.DictReader(lines))
    ref = run(["a.csv"], "label", "count()")
    assert list(ref.labels("label")[:]) == want
    assert ref[...].values.tolist() == [1] * len(want)


def test_the_index_of_pandas_in_some_files(run, tmp_path):
    """Pandas stores an index that is not 0, 1, 2 .. as a column of its own; Spark said that it is unknown."""
    one = pd.DataFrame({"i": [0, 1], "v": [1.0, 2.0]}, index=[5, 9])
    one.to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"i": [2, 3], "v": [3.0, 4.0]}).to_parquet(tmp_path / "b.parquet")
    np.testing.assert_array_equal(run(["a.parquet", "b.parquet"])[...].todense(), [1, 2, 3, 4])
    with pytest.raises(InvalidOptionError, match=r"'__index_level_0__' is not in .*b\.parquet"):
        run(["a.parquet", "b.parquet"], "i=__index_level_0__")


def test_columns_that_spark_cannot_tell_apart_are_no_use_and_no_harm(run, tmp_path):
    columns = {"i": [0, 1], "I": [5, 6], "j": [0, 2], "v": [1, 2], "__file": ["a", "b"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    for axis, said in (
        ("i", "is there in another case too, and Spark does not tell 'i' from 'I'"),
        ("i=__file", "has a name that this job gives to a column of its own"),
    ):
        with pytest.raises(InvalidOptionError, match=said):
            run(["a.parquet"], axis)
    np.testing.assert_array_equal(run(["a.parquet"], "j")[...].todense(), [1, 0, 2])
    (tmp_path / "a.csv").write_text("i,v,__line\n0,1,x\n")
    with pytest.raises(InvalidTensorError, match=r"a\.csv: column '__line' has a name that this"):
        run(["a.csv"])
