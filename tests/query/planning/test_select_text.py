"""What is selected, and what it is called."""

import pyarrow as pa
import pytest

import tensorlake_spark as tl

T = pa.table({"a": [1], "b": [2], "c": [3]})


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("*", ["a", "b", "c"]), ("* EXCEPT (b)", ["a", "c"]), ("t.*, a", ["a", "b", "c", "a_1"]),
        ("t.a, a + b, count(*) OVER ()", ["a", "a + b", "COUNT(*) OVER ()"]), ("a AS \"x y\"", ["x y"]),
    ],
)  # fmt: skip
def test_names_of_items(items, names):
    assert tl.query(f"SELECT {items} FROM t", t=T).names == names


def test_names_of_groups_and_fields(shapes):
    view = shapes.ds.query(
        'SELECT training.score, "training/boxes", images.height, shape(emb) FROM dataset'
    )
    assert view.names == ["training/score", "training/boxes", "height", "SHAPE(emb)"]


def test_sids_are_no_part_of_a_star(shapes):
    assert shapes.ds.query("SELECT * FROM dataset").names == list(shapes.ds.schema)
    assert shapes.ds.query("SELECT sid FROM dataset LIMIT 2")["sid"].tolist() == [0, 1]


def test_counts_of_tensors_do_not_read_them(shapes):
    view = shapes.ds.query("SELECT count(images) AS n FROM dataset WHERE emb IS NOT NULL")
    assert view[0]["n"] == 60
    assert view.explain().conditions == ()
