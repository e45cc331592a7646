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
    write_csv(tmp_path / "b.tsv", delimiter=";")
    with pytest.raises(
        InvalidOptionError, match=r"name it by url=, or .* delimiter=, with kind='u"
    ):
        source_of(tmp_path / "b.tsv", delimiter=";")
    assert len(read_all(source_of(tmp_path / "b.tsv", "urls", delimiter=";"))) == len(ROWS)
    (tmp_path / "b.tsv").unlink()
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
    assert str(bad[0]).endswith("b.csv has no column 'TEXT', as the first file has")
    write_csv(tmp_path / "b.csv", [{**ROWS[0], "more": 1}])  # it was left out without a word
    bad.clear()
    assert read_all(source_of(tmp_path), bad.append) == SAMPLES
    assert "b.csv has the column 'more', which the first file has not; name" in str(bad[0])
    assert len(read_all(source_of(tmp_path, columns=["URL", "TEXT"]))) == len(SAMPLES) + 1
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


def test_blanks_around_a_number_do_not_count(tmp_path, read_all):
    """All rows were bad: the type was guessed without the blanks, and the values were read with them."""
    (tmp_path / "a.csv").write_text("url,n,f,day,text\ns3://bucket/1, 5,\t1.5 , 2024-02-03, x \n")
    (sample,) = read_all(source_of(tmp_path))
    assert (sample["n"], sample["f"], sample["text"]) == (5, 1.5, " x ")


def test_a_value_that_is_not_utf8_is_one_bad_row(tmp_path, read_all):
    rows = [
        b"url,text,n",
        b"s3://bucket/1,a,1",
        b"s3://bucket/2,\xfc,2",
        b"s3://bucket/\xff,c,3",
        b"s3://bucket/4,,",
        b"",
    ]
    (tmp_path / "a.csv").write_bytes(b"\n".join(rows))
    bad = []
    samples = read_all(source_of(tmp_path), bad.append)
    assert [(one["text"], one["n"]) for one in samples] == [("a", 1), (None, None)]
    assert [str(error).partition("a.csv, ")[2].partition(" in")[0] for error in bad] == [
        "row 2: b'\\xfc'",
        "row 3: b's3://bucket/\\xff'",
    ]
    assert "in the column 'text' is not UTF-8; convert the file" in str(bad[0])


def test_rows_are_counted_with_those_that_are_left_out(tmp_path, read_all, monkeypatch):
    text = (
        "url,n\n"
        + "s3://bucket/a,1\n" * 9
        + "s3://bucket/b,1,2\n"
        + "s3://bucket/c,2\n" * 9
        + "s3://bucket/d\ns3://bucket/e,many\n"
    )
    (tmp_path / "a.csv").write_text(text)
    monkeypatch.setattr(link_table, "_BLOCK", 60)
    bad = []
    assert len(read_all(source_of(tmp_path), bad.append)) == 18
    found = sorted(int(str(error).partition(", row ")[2].partition(":")[0]) for error in bad)
    assert found == [10, 20, 21]
