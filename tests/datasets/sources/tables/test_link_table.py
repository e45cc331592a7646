"""Tables of URLs, beside the csv module and pyarrow."""

import csv
import datetime as dt
import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tensorlake_spark.datasets.sources.source_kinds import found_at, source_of
from tensorlake_spark.datasets.sources.tables import link_table
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError

ROWS = [
    {
        "URL": "https://a.example/1.jpg",
        "TEXT": 'a "quoted", text',
        "WIDTH": 640,
        "similarity": 0.25,
    },
    {"URL": "https://a.example/2.jpg", "TEXT": "two\nlines", "WIDTH": 320, "similarity": 1.0},
    {"URL": "s3://bucket/3.jpg", "TEXT": "ä", "WIDTH": None, "similarity": None},
]
SAMPLES = [{"image" if name == "URL" else name: row[name] for name in row} for row in ROWS]


def write_csv(path, rows=ROWS, delimiter=","):
    packed = gzip.open if path.name.endswith("gz") else open
    with packed(path, "wt", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize(
    ("name", "delimiter"), [("a.csv", ","), ("a.tsv", "\t"), ("a.csv.gz", ",")]
)
def test_csv(tmp_path, read_all, name, delimiter):
    source = source_of(write_csv(tmp_path / name, delimiter=delimiter))
    assert read_all(source) == SAMPLES
    assert {name: kind.kind for name, kind in source.schema.items()} == {
        "image": "link",
        "TEXT": "text",
        "WIDTH": "scalar",
        "similarity": "scalar",
    }


def test_parquet_by_row_groups(tmp_path, read_all):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet", row_group_size=2)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "b.parquet")
    source = source_of(tmp_path)
    assert found_at(tmp_path) == "urls: 2 table(s) with URLs in the column 'URL'"
    assert [piece.name for piece in source.pieces()] == [
        "a.parquet#0",
        "a.parquet#1",
        "b.parquet#0",
    ]
    assert read_all(source) == SAMPLES * 2


def test_columns_are_chosen_and_renamed(tmp_path, read_all):
    write_csv(tmp_path / "a.csv")
    source = source_of(tmp_path, columns=["TEXT"])
    assert list(source.schema) == ["image", "TEXT"]
    source = source_of(tmp_path, columns={"TEXT": "caption", "URL": "picture"})
    assert list(source.schema) == ["picture", "caption", "WIDTH", "similarity"]
    assert read_all(source)[0]["caption"] == ROWS[0]["TEXT"]
    with pytest.raises(InvalidOptionError, match="has no column 'TEX'; did you mean 'TEXT'"):
        source_of(tmp_path, columns=["TEX"])


def test_a_column_of_urls_of_another_name(tmp_path, read_all):
    write_csv(tmp_path / "a.csv", [{"where": "s3://bucket/1.jpg", "n": 1}])
    with pytest.raises(
        InvalidOptionError, match="no column that is called url or like it: there are where, n"
    ):
        source_of(tmp_path)
    assert read_all(source_of(tmp_path, "urls", url="where")) == [
        {"image": "s3://bucket/1.jpg", "n": 1}
    ]
    with pytest.raises(InvalidOptionError, match="there is no column 'were'; did you mean 'where'"):
        source_of(tmp_path, "urls", url="were")


def test_bad_rows_are_named_or_left_out(tmp_path, read_all, monkeypatch):
    text = "url,n\n" + "".join(f"s3://bucket/{n}.jpg,{n}\n" for n in range(5))
    text += "s3://bucket/x.jpg,many\ns3://bucket/y.jpg,1,2\ns3://bucket/z.jpg,7\n"
    (tmp_path / "a.csv").write_text(text)
    monkeypatch.setattr(link_table, "_BLOCK", 60)  # types are those of the first rows
    source = source_of(tmp_path)
    with pytest.raises(
        InvalidSampleError, match=r"row 6: 'many' in the column 'n' is no int64|3 values"
    ):
        read_all(source)
    bad = []
    samples = read_all(source, bad.append)
    assert [sample["n"] for sample in samples] == [0, 1, 2, 3, 4, 7]
    assert sorted("many" in str(error) for error in bad) == [False, True]
    assert any("3 values where the header has 2" in str(error) for error in bad)


def test_types_of_the_first_rows(tmp_path, read_all):
    rows = [
        {"url": "s3://bucket/1", "flag": "true", "at": "2024-02-03T04:05:06", "day": "2024-02-03"}
    ]
    write_csv(tmp_path / "a.csv", rows)
    (sample,) = read_all(source_of(tmp_path))
    assert sample["flag"] is True
    assert sample["day"] == dt.date(2024, 2, 3)
    assert sample["at"] == dt.datetime(2024, 2, 3, 4, 5, 6)


def test_tables_that_disagree_or_are_damaged(tmp_path, read_all):
    write_csv(tmp_path / "a.csv")
    write_csv(tmp_path / "b.csv", [{"URL": "s3://bucket/1.jpg"}])
    bad = []
    assert read_all(source_of(tmp_path), bad.append) == SAMPLES
    assert "b.csv" in str(bad[0])
    (tmp_path / "p").mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "p/a.parquet", compression="none")
    data = bytearray((tmp_path / "p/a.parquet").read_bytes())
    data[4:40] = b"\xff" * 36
    (tmp_path / "p/b.parquet").write_bytes(data)
    bad = []
    assert read_all(source_of(tmp_path / "p"), bad.append) == SAMPLES
    assert "b.parquet: the Parquet file cannot be read" in str(bad[0])


def test_an_endless_row_is_refused(tmp_path, read_all, monkeypatch):
    monkeypatch.setattr(link_table, "_BLOCK", 1 << 12)
    (tmp_path / "a.csv").write_text("url,n\ns3://bucket/1.jpg,1\n" + "x" * (1 << 16))
    with pytest.raises(InvalidSampleError, match=r"a\.csv"):
        read_all(source_of(tmp_path))


@pytest.mark.parametrize("text", ["", "\n", "url,url\n1,2\n"])
def test_what_is_no_table_is_told(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises((InvalidSampleError, InvalidOptionError), match=r"a\.csv|no column"):
        source_of(tmp_path, "urls")
