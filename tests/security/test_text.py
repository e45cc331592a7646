"""Texts that others wrote, where they become HTML, SQL or a path."""

from html.parser import HTMLParser

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark.functions import slice_filter
from tensorlake_spark.spark.functions.slice_predicate import rows_sql

EVIL = "<script>alert(1)</script>"
QUOTES = [
    "x' OR '1'='1",
    "x' OR 1=1 -- ",
    "x\\' OR 1=1 -- ",
    "x\\",
    'x" OR "1"="1',
    "x'; DROP TABLE lake; --",
    "${spark.sql.warehouse.dir}",
    "x\\u0027 OR 1=1 -- ",
    "x`",
]


class Tags(HTMLParser):
    """All tags of a page."""

    def __init__(self, text):
        super().__init__()
        self.found, self.attributes = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_html_has_no_tag_of_a_users_text(tmp_path):
    lake = tl.open(tmp_path / "<img src=x onerror=alert(1)>")
    evil = f'{EVIL}"><b onload="x">'
    ref = lake.write(evil, np.arange(3), attrs={evil: evil, "x": [evil]})
    sparse = tl.SparseTensor([[0]], [1.0], (3,))
    for shown in (lake, ref, sparse):
        page = Tags(shown._repr_html_())
        assert page.found <= {"table", "tr", "th", "td", "b", "thead", "tbody"}
        assert page.attributes <= {"style", "border", "class"}
        assert "<script" not in shown._repr_html_()


@pytest.mark.parametrize("name", ["<b>", "a b", "a'b", "a.b", "", "1a", "x;y"])
def test_the_name_of_an_axis_is_an_identifier(lake, name):
    with pytest.raises(tl.InvalidTensorError, match="is not an identifier"):
        lake.write("x", np.arange(3), axes=(name,))


@pytest.mark.parametrize(
    "name", ["../x", "a/../b", "/x", "x/", "a//b", ".", "..", "a\x00b", "", "x" * 513]
)
def test_an_id_is_no_path(lake, name):
    for use in (lambda: lake.write(name, np.arange(3)), lambda: rows_sql(":", name)):
        with pytest.raises(tl.InvalidTensorError):
            use()
    assert name not in lake


@pytest.mark.parametrize("name", ["%2e%2e/x", "..%2fx", "C:\\x", "a\\..\\b", "s3://bucket/x"[5:]])
def test_an_id_names_no_file(lake, tmp_path, name):
    lake.write(name, np.arange(3))
    lake.write(name, np.arange(3), mode="append")
    assert lake[name][:].tolist() == [0, 1, 2, 0, 1, 2]
    assert {path.name for path in tmp_path.iterdir()} == {"lake"}
    assert {path.name for path in (tmp_path / "lake").iterdir() if path.is_dir()} == {"_delta_log"}


def test_sql_takes_an_id_as_a_text(spark, tmp_path):
    lake = tl.open(tmp_path / "lake")
    lake.write("secret", np.arange(100), block_shape=(10,))
    for number, name in enumerate(QUOTES):
        lake.write(name, np.arange(1, number + 2))
    frame = spark.read.format("delta").load(lake.uri)
    frame.createOrReplaceTempView("lake_rows")
    asked = dict(enumerate(QUOTES))
    columns = [slice_filter(":", id=name).alias(str(k)) for k, name in asked.items()]
    rows = frame.select("id", *columns).collect()
    texts = [
        f"SELECT {k} AS k, id FROM lake_rows WHERE {rows_sql(':', name)}"
        for k, name in asked.items()
    ]
    of_sql = spark.sql(" UNION ALL ".join(texts)).collect()
    for k, name in asked.items():
        assert {row.id for row in rows if row[str(k)]} == {name}
        assert {row.id for row in of_sql if row.k == k} == {name}
    for name in QUOTES[:3]:
        read = spark.read.format("tensor").options(id=name, view="cells").load(lake.uri)
        assert read.count() == QUOTES.index(name) + 1
    spark.catalog.dropTempView("lake_rows")


@pytest.mark.parametrize(
    "text", ["0:1) OR (1=1", "0 OR 1=1", "1;2", "__import__('os')", "0:1'", "x=1 OR 1=1", "1e400", "9" * 5000]
)  # fmt: skip
def test_the_text_of_a_slice_is_no_sql_and_no_code(lake, text):
    ref = lake.write("x", np.arange(4), axes=("x",), mode="overwrite")
    for use in (lambda: slice_filter(text, id="x"), lambda: ref.slice(text)):
        with pytest.raises((tl.InvalidSliceError, tl.InvalidKeyError)):
            use()


def test_errors_show_no_secret(tmp_path):
    with pytest.raises(tl.TensorLakeError) as caught:
        tl.open("s3://key:hidden@bucket/lake")["x"]
    assert "hidden" not in str(caught.value)
    options = {"AWS_SECRET_ACCESS_KEY": "hidden", "AWS_ACCESS_KEY_ID": "hidden too"}
    lake = tl.open(tmp_path / "lake", storage_options=options)
    ref = lake.write("x", np.arange(3))
    for shown in (lake, ref, lake._storage, ref._snapshot.storage):
        assert "hidden" not in repr(shown)
    assert "hidden" not in lake._repr_html_() + ref._repr_html_()
