"""What is selected, and what it is called."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.planning.queries import plan_query

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


@pytest.mark.parametrize("word", ["OR", "AND"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t WHERE {}", "SELECT a FROM t WHERE NOT ({})", "SELECT {} AS z FROM t", "SELECT a FROM t ORDER BY {}",
        "SELECT a, count(*) AS n FROM t GROUP BY a HAVING {}", "SELECT CASE WHEN {} THEN 1 END AS z FROM t",
        "SELECT count(*) FILTER (WHERE {}) AS n FROM t", "SELECT a FROM t WHERE a IN (SELECT a FROM t WHERE {})",
    ],
)  # fmt: skip
def test_long_chains_are_taken(sql, word):
    """640 terms ended with a RecursionError."""
    terms = [f"a <> {number}" for number in range(2, 1500)]
    found = tl.query(sql.format(f" {word} ".join(terms)), t=T)
    assert found.to_arrow().equals(tl.query(sql.format("a < 5"), t=T).to_arrow()) or "NOT" in sql
    assert len(found) == (0 if "NOT" in sql else 1)


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


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT b IN (SELECT k FROM u) AS i, count(*) AS n FROM t GROUP BY b IN (SELECT k FROM u)",
         {(True, 2), (False, 1)}),
        ("SELECT b IN (SELECT k FROM u) AS i, count(*) AS n FROM t GROUP BY b IN (SELECT k FROM u) "
         "HAVING b IN (SELECT k FROM u) ORDER BY b IN (SELECT k FROM u)", {(True, 2)}),
        ("SELECT b + (SELECT max(k) FROM u) AS i, count(*) FROM t GROUP BY b + (SELECT max(k) FROM u)",
         {(4, 2), (5, 1)}),
        ("SELECT EXISTS (SELECT k FROM u WHERE k = t.b) AS i, sum(a) FROM t "
         "GROUP BY EXISTS (SELECT k FROM u WHERE k = t.b)", {(True, 4), (False, 2)}),
    ],
)  # fmt: skip
def test_a_sub_query_that_is_written_twice_is_one_key_of_a_group(sql, rows):
    t, u = pa.table({"a": [1, 2, 3], "b": [2, 3, 2]}), pa.table({"k": [2, 1]})
    found = tl.query(sql, t=t, u=u).to_arrow()
    assert set(zip(*(column.to_pylist() for column in found.columns), strict=True)) == rows


def test_a_sub_query_that_is_written_twice_is_planned_once():
    text = "a IN (SELECT a FROM v WHERE array_max(x) > 1)"
    view = tl.query("SELECT a, [1, 2] AS x FROM t", t=T)
    plan = plan_query(
        f"SELECT {text} AS i FROM t WHERE {text} GROUP BY {text}", {"t": T, "v": view}
    )
    assert sum(len(step.computed) for step in plan.steps) == 1


@pytest.mark.parametrize(
    ("what", "wanted"),
    [("sum(x[0] + 1)", 8), ("max(-x[0])", -1), ("count(NULLIF(x[0], 1))", 2),
     ("sum(CASE WHEN x[0] > 1 THEN n END)", 30), ("count(DISTINCT x[0] > 1)", 2)],
)  # fmt: skip
def test_what_is_computed_of_elements_of_tensors_is_aggregated(tmp_path, what, wanted):
    """It was refused as a tensor a row, though an element alone was taken."""
    ds = tl.dataset(tmp_path / "ds", {"x": tl.types.Tensor("int32", (None,)), "n": "int8"})
    ds.extend({"x": [[1, 5], [2], [2, 3]], "n": [7, 10, 20]})
    assert ds.query(f"SELECT {what} AS v FROM dataset")["v"].tolist() == [wanted]
    with pytest.raises(tl.InvalidQueryError, match=r"shape \(\d,\).*a value a row is needed"):
        len(ds.query("SELECT sum(x[0:2] + 1) AS v FROM dataset"))
    with pytest.raises(tl.InvalidQueryError, match="this is a tensor a row"):
        ds.query("SELECT sum(x[0] + x) AS v FROM dataset")


@pytest.mark.parametrize("item", ["list(emb)", "array_agg(emb)"])
def test_a_filter_of_tensors_is_refused_with_what_can_be_done(shapes, item):
    said = r"^array_agg of tensors takes no FILTER; write its condition in WHERE.*line 1, column"
    with pytest.raises(tl.InvalidQueryError, match=said):
        shapes.ds.query(f"SELECT {item} FILTER (WHERE sid > 5) AS y FROM dataset")
    kept = shapes.ds.query(
        "SELECT arg_max(emb, CASE WHEN sid < 5 THEN sid END) AS y, "
        "array_agg(array_max(emb)) FILTER (WHERE sid < 3) AS tops FROM dataset"
    )[0]
    assert kept["y"].tolist() == shapes.ds["emb"][4].tolist()
    assert len(kept["tops"]) == 3


@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ("any_value(emb) FILTER (WHERE sid = 6)", 6),
        ("first(emb) FILTER (WHERE sid > 5 AND sid < 7 AND :yes)", 6),
        ("arg_max(emb, sid) FILTER (WHERE sid < 5)", 4),
        ("arg_min(emb, array_sum(emb)) FILTER (WHERE array_sum(emb) > 0 AND sid < 20)", None),
        ("any_value(emb) FILTER (WHERE sid < 0)", -1),
    ],
)
def test_a_filter_chooses_the_rows_of_which_a_tensor_is_picked(shapes, item, wanted):
    view = shapes.ds.query(
        f"SELECT {item} AS y, count(*) AS n FROM dataset", parameters={"yes": True}
    )
    sums = shapes.vectors[:20].sum(1)
    wanted = np.where(sums > 0, sums, np.inf).argmin() if wanted is None else wanted
    assert view[0]["n"] == len(shapes.ds)
    assert (
        view[0]["y"] is None if wanted < 0 else np.array_equal(view[0]["y"], shapes.vectors[wanted])
    )


def test_texts_are_joined_with_and_without_nulls():
    texts = pa.table({"a": ["x", None], "b": ["y", "z"]})
    sql = "SELECT concat_ws('-', a, NULL, b) AS c, concat(a, b) AS d, a || b AS e FROM t"
    assert [[*row.values()] for row in tl.query(sql, t=texts)] == [
        ["x-y", "xy", "xy"],
        ["z", None, None],
    ]
