"""The door: what queries return, on datasets and tables; against NumPy, pandas and SQLite."""

import datetime as dt
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.functions.boxes import iou

FIGURE_4 = """SELECT
  images[10:30, 10:30, 0:2] as crop,
  NORMALIZE(
    boxes,
    [10, 10, 40, 40]) as box
FROM
  dataset
WHERE IOU(boxes, "training/boxes") > 0.95
ORDER BY IOU(boxes, "training/boxes")
ARRANGE BY labels"""


def overlap(a, b):
    """Mean over the boxes of `a` of the best overlap in `b`, box by box."""
    best = []
    for x0, y0, x1, y1 in a.astype("f8"):
        found = []
        for u0, v0, u1, v1 in b.astype("f8"):
            inner = max(0, min(x1, u1) - max(x0, u0)) * max(0, min(y1, v1) - max(y0, v0))
            found.append(inner / ((x1 - x0) * (y1 - y0) + (u1 - u0) * (v1 - v0) - inner))
        best.append(max(found))
    return float(np.mean(best))


def test_figure_4_as_a_loop_of_numpy_has_it(shapes):
    scores = np.array([overlap(a, b) for a, b in zip(shapes.boxes, shapes.truth)])
    assert np.allclose(scores[:5], [iou(a, b) for a, b in zip(shapes.boxes[:5], shapes.truth[:5])])
    chosen = sorted(np.flatnonzero(scores > 0.95), key=lambda i: scores[i])
    first = list(dict.fromkeys(shapes.labels[i] for i in chosen))
    expected = [i for label in first for i in chosen if shapes.labels[i] == label]
    view = shapes.ds.query(FIGURE_4)
    assert view.sids.tolist() == expected
    assert len(expected) > 5
    for row, i in zip(view, expected, strict=True):
        assert np.array_equal(row["crop"], shapes.images[i][10:30, 10:30, 0:2])
        x0, y0, x1, y1 = shapes.boxes[i].T
        wanted = np.stack([(x0 - 10) / 40, (y0 - 10) / 40, (x1 - 10) / 40, (y1 - 10) / 40], 1)
        assert np.allclose(row["box"], wanted, atol=1e-5)


def test_conditions_on_tensors_are_asked_last_and_only_of_rows_that_are_left(shapes):
    view = shapes.ds.query(
        "SELECT labels FROM dataset WHERE array_mean(images) > 127 AND labels = 'dog'"
    )
    means = np.array([i.mean() for i in shapes.images])
    assert view.sids.tolist() == np.flatnonzero((means > 127) & (shapes.labels == 1)).tolist()
    (read,) = view.explain().conditions
    assert (read.column, read.rows) == ("images", int((shapes.labels == 1).sum()))
    payload = sum(shapes.images[i].nbytes for i in np.flatnonzero(shapes.labels == 1))
    assert payload <= read.bytes <= 1.05 * payload  # what is known of an image is beside it


def test_columns_that_are_not_named_are_not_read(shapes):
    report = shapes.ds.query("SELECT emb[:2] AS head FROM dataset WHERE labels = 2").explain()
    assert [one.column for one in report.selected] == ["emb"]
    assert report.selected_bytes == int((shapes.labels == 2).sum()) * (32 + 8)  # and a shape
    assert report.scalars[0].columns == ("labels", "sid")
    assert report.tensor_bytes == 0


@pytest.mark.parametrize(
    ("order", "keys", "descending"),
    [
        ("l2_distance(emb, :q)", lambda v, q: np.linalg.norm(v - q, axis=1), False),
        ("dot(emb, :q) DESC", lambda v, q: v @ q, True),
        ("cosine_similarity(emb, :q) DESC", lambda v, q: v @ q / np.linalg.norm(v, axis=1), True),
        ("array_max(emb) DESC", lambda v, q: v.max(1), True),
    ],
)
def test_nearest(shapes, order, keys, descending):
    q = shapes.vectors[5] + 0.1
    view = shapes.ds.query(
        f"SELECT emb FROM dataset ORDER BY {order} LIMIT 4 OFFSET 1", parameters={"q": q}
    )
    found = keys(shapes.vectors, q)
    expected = np.argsort(-found if descending else found, kind="stable")[1:5]
    assert view.sids.tolist() == expected.tolist()
    assert np.array_equal(view["emb"], shapes.vectors[expected])


def test_groups_collect_tensors_in_the_order_of_samples(shapes):
    view = shapes.ds.query(
        "SELECT labels, emb, avg(array_mean(emb)) AS m, count(*) AS n FROM dataset GROUP BY labels ORDER BY labels"
    )
    assert view.sids is None
    for label, row in enumerate(view):
        here = shapes.vectors[shapes.labels == label]
        assert np.array_equal(row["emb"], here)
        assert row["n"] == len(here)
        assert row["m"] == pytest.approx(here.mean(1).mean(), rel=1e-5)


def test_group_by_what_is_computed(shapes):
    found = shapes.ds.query(
        "SELECT array_argmax(emb) AS k, count(*) AS n, max(training.score) AS top FROM dataset "
        "GROUP BY k HAVING count(*) > 3 ORDER BY n DESC, k"
    ).to_pandas()
    frame = pd.DataFrame({"k": shapes.vectors.argmax(1), "s": shapes.scores})
    wanted = frame.groupby("k").agg(n=("s", "size"), top=("s", "max")).query("n > 3").reset_index()
    wanted = wanted.sort_values(["n", "k"], ascending=[False, True])
    assert found["k"].tolist() == wanted["k"].tolist()
    assert found["n"].tolist() == wanted["n"].tolist()
    assert np.allclose(found["top"], wanted["top"])


def test_one_of_each_group_is_picked_by_another_column(shapes):
    view = shapes.ds.query(
        "SELECT labels, arg_max(emb, training.score) AS best FROM dataset GROUP BY labels ORDER BY labels"
    )
    for label, row in enumerate(view):
        here = np.flatnonzero(shapes.labels == label)
        assert np.array_equal(row["best"], shapes.vectors[here[shapes.scores[here].argmax()]])


def test_one_of_each_group_is_picked_by_what_is_computed_of_tensors(shapes):
    view = shapes.ds.query(
        "SELECT labels, arg_max(emb, array_sum(emb) - array_mean(images) + training.score) AS best "
        "FROM dataset GROUP BY labels ORDER BY labels"
    )
    keys = [v.sum() - i.mean() for v, i in zip(shapes.vectors, shapes.images, strict=True)]
    keys = np.array(keys) + shapes.scores
    for label, row in enumerate(view):
        here = np.flatnonzero(shapes.labels == label)
        assert np.array_equal(row["best"], shapes.vectors[here[keys[here].argmax()]])


def test_several_of_each_group_are_picked(shapes):
    view = shapes.ds.query(
        "SELECT labels, arg_min(emb[:2], array_sum(emb), 3) AS best, arg_max(emb, training.score, 1) AS one "
        "FROM dataset GROUP BY labels ORDER BY labels"
    )
    sums = shapes.vectors.sum(1)
    for label, row in enumerate(view):
        here = np.flatnonzero(shapes.labels == label)
        assert np.array_equal(row["best"], shapes.vectors[here[sums[here].argsort()[:3]], :2])
        top = here[shapes.scores[here].argmax()]
        assert np.array_equal(row["one"], shapes.vectors[[top]])
    none = shapes.ds.query("SELECT arg_max(emb, sid, 2) AS x FROM dataset WHERE sid < 0")
    assert none[0]["x"].shape == (0, 8)


NULLS = {"x": [None, [1, 2], None, [5], None, None, [7, 8, 9], [0]], "k": [0, 0, 0, 1, 1, 2, 3, 3]}


@pytest.fixture(scope="module")
def nulls(tmp_path_factory):
    """Groups of tensors: some are null, of one group all."""
    kinds = {
        "k": "int32",
        "v": "float64",
        "x": types.Tensor("int32"),
        "far": types.Tensor("int32", apart=True),
    }
    made = tl.dataset(str(tmp_path_factory.mktemp("nulls") / "ds"), kinds)
    x = [None if one is None else np.array(one, "i4") for one in NULLS["x"]]
    made.extend({"k": NULLS["k"], "v": [1, 2, 3, 1, 2, None, None, 1], "x": x, "far": x})
    return made


@pytest.mark.parametrize("table", ["dataset", "(SELECT * FROM dataset)"])
@pytest.mark.parametrize(
    ("picked", "expected"),
    [
        ("any_value(x)", [[1, 2], [5], None, [7, 8, 9]]),
        ("any_value(far)", [[1, 2], [5], None, [7, 8, 9]]),
        ("arg_max(x, v)", [[1, 2], [5], None, [0]]),
        ("arg_min(far, v)", [[1, 2], [5], None, [0]]),
        ("arg_max(x[:1] * 2, v)", [[2], [10], None, [0]]),
        ("any_value(coalesce(x, [3]))", [[3], [5], [3], [7, 8, 9]]),
        ("arg_min(coalesce(x, [3]), v)", [[3], [5], None, [0]]),
        ("arg_max(x IS NULL, v)", [True, True, None, False]),
        ("arg_min(array_max(x), v)", [2, 5, None, 0]),
        ("arg_max(x, v, 1)", [[[1, 2]], [[5]], [], [[0]]]),
        ("first(x)", [None, [5], None, [7, 8, 9]]),
    ],
)
def test_what_picks_a_tensor_passes_nulls_by_as_duckdb_does(nulls, table, picked, expected):
    view = nulls.query(f"SELECT k, {picked} AS y FROM {table} GROUP BY k ORDER BY k")
    assert [
        None if y is None else np.asarray(y).tolist() for y in (r["y"] for r in view)
    ] == expected


def test_to_pass_nulls_by_no_tensor_is_read(shapes):
    here = shapes.ds.query("SELECT labels, arg_max(images, sid) AS y FROM dataset GROUP BY labels")
    assert here.explain().tensor_bytes == 0
    inner = "(SELECT labels AS k, images, sid AS s FROM dataset) AS q"
    outside = shapes.ds.query(f"SELECT k, arg_max(images[0], s) AS y FROM {inner} GROUP BY k")
    assert outside.explain().tensor_bytes <= 64 * len(shapes.images)  # their shapes


def test_windows_and_qualify_over_tensors(shapes):
    view = shapes.ds.query(
        "SELECT labels, emb FROM dataset QUALIFY row_number() OVER (PARTITION BY labels ORDER BY array_sum(emb)) = 1 "
        "ORDER BY labels"
    )
    sums = shapes.vectors.sum(1)
    expected = [min(np.flatnonzero(shapes.labels == n), key=lambda i: sums[i]) for n in range(3)]
    assert view.sids.tolist() == expected


def test_joins_of_datasets_tables_and_a_lake(shapes, tmp_path):
    names = pd.DataFrame({"labels": [0, 1, 2], "weight": [0.5, 1.0, 2.0]})
    lake = tl.open(tmp_path / "lake")
    lake.write("n1", np.zeros((2, 3)))
    view = tl.query(
        "SELECT a.emb - b.emb AS apart, weight, l.nbytes FROM ds a JOIN ds b ON b.sid = a.sid + 1 "
        "JOIN names n ON n.labels = a.labels JOIN lake l ON l.id = a.note WHERE array_sum(a.emb) > array_sum(b.emb) "
        "ORDER BY a.sid",
        ds=shapes.ds, names=names, lake=lake,
    )  # fmt: skip
    sums = shapes.vectors.sum(1)
    expected = [i for i in range(59) if i % 7 and i % 4 == 1 and sums[i] > sums[i + 1]]
    assert [row["nbytes"] for row in view] == [48] * len(expected)
    for row, i in zip(view, expected, strict=True):
        assert np.allclose(row["apart"], shapes.vectors[i] - shapes.vectors[i + 1])
        assert row["weight"] == names["weight"][shapes.labels[i]]
    assert set(view.sources) == {"ds", "names", "lake"}


def test_a_left_join_has_no_tensor_where_it_found_nothing(shapes):
    table = pa.table({"sid": [3, 1000], "tag": ["a", "b"]})
    view = tl.query(
        "SELECT tag, emb FROM t LEFT JOIN ds USING (sid) ORDER BY tag", t=table, ds=shapes.ds
    )
    assert np.array_equal(view[0]["emb"], shapes.vectors[3])
    assert view[1] == {"tag": "b", "emb": None}
    assert view.sids is None


def test_sub_queries_and_with(shapes):
    view = shapes.ds.query(
        "WITH big AS (SELECT emb * 2 AS twice, labels, sid AS number FROM dataset WHERE training.score > 0.3) "
        "SELECT twice[0] AS first, number FROM big WHERE array_sum(twice) > 0 AND labels IN "
        "(SELECT labels FROM dataset GROUP BY labels HAVING count(*) > 10) ORDER BY number"
    )
    counts = np.bincount(shapes.labels)
    expected = [
        i for i in range(60)
        if shapes.scores[i] > 0.3 and (shapes.vectors[i] * 2).sum() > 0 and counts[shapes.labels[i]] > 10
    ]  # fmt: skip
    assert view["number"].tolist() == expected == view.sids.tolist()
    assert np.allclose(view["first"], 2 * shapes.vectors[expected, 0])


def test_unions_of_tensors(shapes):
    every = shapes.ds.query(
        "SELECT emb FROM dataset WHERE sid < 2 UNION ALL SELECT emb[:3] FROM dataset WHERE sid = 5"
    )
    assert [len(v) for v in every["emb"]] == [8, 8, 3]
    assert every.sids.tolist() == [0, 1, 5]
    same = "SELECT emb, labels FROM dataset WHERE sid < {} {} SELECT emb, labels FROM dataset WHERE sid > {} ORDER BY labels"
    union = shapes.ds.query(same.format(5, "UNION", 2))
    assert sorted(union.sids) == [*range(60)]
    both = shapes.ds.query(same.format(5, "INTERSECT", 2))
    assert sorted(both.sids) == [3, 4]
    less = shapes.ds.query(same.format(5, "EXCEPT", 2))
    assert sorted(less.sids) == [0, 1, 2]
    others = shapes.ds.query("SELECT emb FROM dataset UNION SELECT emb[:3] FROM dataset")
    assert sorted(map(len, others["emb"])) == [3] * 60 + [8] * 60


def test_arrange_by_keeps_groups_in_the_order_of_their_first_row(shapes):
    view = shapes.ds.query(
        "SELECT note FROM dataset ORDER BY sid DESC ARRANGE BY note, labels LIMIT 20"
    )
    notes = [None if i % 7 == 0 else f"n{i % 4}" for i in range(60)]
    rows = [*range(59, -1, -1)]
    keys = list(dict.fromkeys((notes[i], shapes.labels[i]) for i in rows))
    expected = [i for key in keys for i in rows if (notes[i], shapes.labels[i]) == key]
    assert view.sids.tolist() == expected[:20]


def test_sample_by_draws_by_weight_and_seed(shapes):
    sql = "SELECT labels FROM dataset SAMPLE BY CASE WHEN labels = 'cow' THEN 3 WHEN labels = 'dog' THEN 1 ELSE 0 END {} LIMIT {}"
    many = shapes.ds.query(sql.format("REPLACE TRUE", 4000))["labels"]
    shares = np.bincount(many, minlength=3) / 4000
    counts = np.bincount(shapes.labels, minlength=3) * [0, 1, 3]
    assert np.allclose(shares, counts / counts.sum(), atol=0.04)
    for said in ("REPLACE FALSE", ""):
        once = shapes.ds.query(sql.format(said, 1000)).sids
        assert sorted(once) == np.flatnonzero(shapes.labels > 0).tolist()
    drawn = [shapes.ds.query(sql.format("", 9), seed=seed).sids.tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_expand_by_adds_the_samples_beside(shapes):
    sql = "SELECT labels, emb FROM dataset WHERE sid IN (3, 5, 59) EXPAND BY 1, 2"
    view = shapes.ds.query(sql)
    assert view.sids.tolist() == [2, 3, 4, 5, 6, 7, 58, 59]
    assert np.array_equal(view["emb"], shapes.vectors[view.sids])
    twice = shapes.ds.query(sql + " OVERLAP TRUE").sids.tolist()
    assert twice == [2, 3, 4, 5, 4, 5, 6, 7, 58, 59]
    tensors = shapes.ds.query(
        "SELECT labels FROM dataset WHERE array_max(emb) > 2.5 EXPAND BY 0, 1"
    ).sids
    hits = np.flatnonzero(shapes.vectors.max(1) > 2.5)
    assert tensors.tolist() == sorted({*hits, *(i + 1 for i in hits if i < 59)})


def test_ungroup_by_gives_a_row_for_each_element(shapes):
    view = shapes.ds.query(
        'SELECT boxes, "training/boxes", labels FROM dataset WHERE sid < 6 UNGROUP BY boxes, "training/boxes"'
    )
    expected = [(i, k) for i in range(6) for k in range(len(shapes.boxes[i]))]
    assert view.sids.tolist() == [i for i, _ in expected]
    for row, (i, k) in zip(view, expected, strict=True):
        assert np.array_equal(row["boxes"], shapes.boxes[i][k])
        assert np.array_equal(row["training/boxes"], shapes.truth[i][k])
    back = shapes.ds.query(
        "SELECT * FROM (SELECT labels, emb FROM dataset GROUP BY labels ORDER BY labels) UNGROUP BY emb"
    )
    order = np.argsort(shapes.labels, kind="stable")
    assert np.array_equal(np.stack(back["emb"]), shapes.vectors[order])


def test_a_number_cannot_be_split(shapes):
    with pytest.raises(tl.InvalidQueryError, match="'labels', which is a value a row"):
        shapes.ds.query("SELECT labels FROM dataset UNGROUP BY labels")


def test_versions_of_a_dataset_side_by_side(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"x": types.Tensor("int32", (2,)), "n": "int32"})
    ds.extend({"x": [[1, 2], [3, 4]], "n": [1, 2]})
    ds.tag("first")
    ds.update(1, {"n": 20, "x": [30, 40]})
    view = ds.query(
        "SELECT new.x - old.x AS more, old.n FROM dataset AS new JOIN dataset VERSION 'first' AS old ON new.sid = old.sid "
        "WHERE new.n <> old.n"
    )
    assert view[0]["more"].tolist() == [27, 36]
    assert view[0]["n"] == 2
    assert sorted(version for _, version in view.sources.values()) == [1, ds.version]
    assert ds.query("SELECT sum(n) AS s FROM dataset VERSION 1")[0]["s"] == 3
    sums = {0: None, 1: 3, 2: 3, 3: 21}  # a tag is a version too
    history = ds.history()
    for moment in history["timestamp"]:
        newest = history["version"][history["timestamp"] <= moment].max()
        text = f"SELECT sum(n) AS s FROM dataset AS OF '{pd.Timestamp(moment).isoformat()}'"
        assert ds.query(text)[0]["s"] == sums[newest]
    with pytest.raises(tl.InvalidQueryError, match="third"):
        ds.query("SELECT n FROM dataset VERSION 'third'")


def test_the_version_is_that_of_the_call(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32"})
    ds.extend({"n": [1, 2]})
    view = ds.query("SELECT n FROM dataset")
    ds.extend({"n": [3]})
    assert view["n"].tolist() == [1, 2]
    assert view.sources == {"dataset": (ds.uri, 1)}


BAD = [
    ("SELECT imges FROM dataset", "did you mean 'images'"),
    ("SELECT images FROM datset", "did you mean 'dataset'"),
    ("SELECT labels FROM dataset a JOIN dataset b ON a.sid = b.sid", "a.labels, b.labels"),
    ("SELECT a.labels FROM dataset a, dataset b, dataset c, dataset d", "60 x 60 x 60 x 60"),
    ("SELECT avg(emb) FROM dataset", "avg takes a value a row"),
    ("SELECT * FROM dataset WHERE labels = 'cot'", "'cat'"),
    ("SELECT * FROM dataset WHERE labels > 'cat'", "no order"),
    ("SELECT * FROM dataset ORDER BY 20", "names no column"),
    ("SELECT * EXCEPT (imags) FROM dataset", "'images'"),
    ("SELECT x.* FROM dataset", "no table 'x'"),
    ("SELECT * FROM dataset WHERE labels = :q", "parameters="),
    ("SELECT labels FROM dataset LIMIT -1", "LIMIT|number"),
    ("SELECT emb FROM dataset UNION ALL SELECT emb, labels FROM dataset", "joins 1 columns with 2"),
    (
        "SELECT labels FROM dataset a WHERE EXISTS (SELECT 1 FROM dataset b WHERE array_sum(b.emb) > a.labels)",
        "sub-query",
    ),
    ("SELECT 1 FROM dataset WHERE labels IN (SELECT emb FROM dataset)", "not tensors"),
    ("SELECT a.labels FROM dataset a JOIN dataset a ON a.sid = a.sid", "two tables"),
]


@pytest.mark.parametrize(("sql", "said"), BAD)
def test_mistakes_say_what_is_meant(shapes, sql, said):
    with pytest.raises(tl.InvalidQueryError, match=said):
        len(shapes.ds.query(sql))


def test_values_that_cannot_be_name_the_sample(shapes):
    with pytest.raises(tl.InvalidQueryError, match=r"shape \(8,\) \(sample with sid 0\)"):
        len(shapes.ds.query("SELECT labels FROM dataset WHERE emb > 3"))
    with pytest.raises(tl.InvalidQueryError, match=r"images\[42, 0, 0\].*sample with sid 0"):
        len(shapes.ds.query("SELECT labels FROM dataset WHERE images[42, 0, 0] > 3"))
    found = shapes.ds.query("SELECT emb / 0 AS e FROM dataset WHERE sid = 1")["e"][0]
    with np.errstate(all="ignore"):
        assert np.array_equal(found, shapes.vectors[1] / 0)


def test_nan_is_as_numpy_has_it(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"x": types.Tensor("float64", (2,))})
    ds.extend({"x": [[np.nan, 1], [2, 3], [0, 0]]})
    assert ds.query("SELECT x FROM dataset WHERE array_mean(x) > 1").sids.tolist() == [1]
    assert ds.query("SELECT x FROM dataset ORDER BY array_mean(x) LIMIT 3").sids.tolist() == [
        2,
        1,
        0,
    ]
    assert ds.query("SELECT x FROM dataset WHERE array_mean(x) / 0 > 1").sids.tolist() == [1]


def generated(rng):
    """A query on scalars that DuckDB and SQLite understand alike."""

    def column():
        return rng.choice(["a", "b", "c"])

    def compare():
        sign = rng.choice(["<", "<=", "=", "<>", ">", ">="])
        return f"{column()} {sign} {rng.integers(-3, 4)}"

    tests = [
        compare,
        lambda: f"{column()} IS {rng.choice(['', 'NOT '])}NULL",
        lambda: f"{column()} BETWEEN {rng.integers(-3, 1)} AND {rng.integers(0, 4)}",
        lambda: f"{column()} IN ({rng.integers(-3, 4)}, {rng.integers(-3, 4)})",
        lambda: f"{column()} + {column()} > {rng.integers(-3, 4)}",
        lambda: f"a IN (SELECT b FROM t WHERE {compare()})",
        lambda: f"CASE WHEN {compare()} THEN a ELSE b END > 0",
    ]
    condition = tests[rng.integers(len(tests))]()
    for _ in range(rng.integers(0, 3)):
        other = tests[rng.integers(len(tests))]()
        condition = f"({condition} {rng.choice(['AND', 'OR'])} {rng.choice(['', 'NOT '])}({other}))"
    kind = rng.integers(5)
    if kind == 0:
        return f"SELECT a, b - c AS d FROM t WHERE {condition} ORDER BY i"
    if kind == 1:
        return f"SELECT a, count(*) AS n, sum(b) AS s, max(c) AS m FROM t WHERE {condition} GROUP BY a HAVING count(b) > 0 ORDER BY a"
    if kind == 2:
        return "SELECT x.i AS p, y.i AS q FROM t x JOIN t y ON x.a = y.b WHERE x.c > y.c AND x.i < 9 ORDER BY p, q"
    if kind == 3:
        return f"SELECT a FROM t WHERE {condition} {rng.choice(['UNION', 'INTERSECT', 'EXCEPT', 'UNION ALL'])} SELECT b FROM t WHERE {compare()} ORDER BY a"
    return f"WITH w AS (SELECT a, b, i, row_number() OVER (PARTITION BY a ORDER BY i DESC) AS r FROM t WHERE {condition}) SELECT i, r FROM w WHERE r <= 2 ORDER BY i LIMIT 7 OFFSET 1"


def test_classes_are_named_by_parameters_in_cases_and_in_lists(tmp_path):
    names = ["cat", "dog", "cow"]
    ds = tl.dataset(
        str(tmp_path / "ds"),
        {"kind": types.ClassLabel(names), "tags": types.Sequence(types.ClassLabel(names))},
    )
    kinds, tags = [0, 1, 2, 1], [["cat"], ["dog", "cow"], [], ["cow"]]
    ds.extend({"kind": kinds, "tags": tags})

    def found(condition, **parameters):
        view = ds.query(f"SELECT kind FROM dataset WHERE {condition}", parameters=parameters)
        return view.sids.tolist()

    assert found("kind = :k", k="dog") == [1, 3]
    assert (
        found("kind IN (:k)", k=["cat", "dog"])
        == found("kind IN :k", k=["cat", "dog"])
        == [0, 1, 3]
    )
    assert found("CASE kind WHEN 'cow' THEN true ELSE false END") == [2]
    assert found("contains(kind, 'dog')") == [1, 3]
    assert found("contains(tags, 'cow')") == found("any(tags = 'cow')") == [1, 3]
    assert found("any(tags[1:] = 'cow')") == found("any(tags[1:] = 2)") == [1]
    assert (
        found("contains(tags, ['dog', 'cow'])")
        == found("contains(tags, :k)", k=["dog", "cow"])
        == [1]
    )
    with pytest.raises(tl.InvalidQueryError, match="no class 'crow'; did you mean 'cow'"):
        found("contains(tags, 'crow')")


@pytest.mark.parametrize(
    "numbers",
    [{3, 4}, range(3, 5), pd.Series([3, 4]), pd.Index([3, 4]), pa.array([3, 4])],
    ids=lambda one: type(one).__name__,
)
def test_a_parameter_may_be_any_kind_of_list(shapes, numbers):
    sql = "SELECT sid FROM dataset WHERE sid IN :q AND array_max(emb) < :top"
    view = shapes.ds.query(sql, parameters={"q": numbers, "top": 1e9})
    assert view["sid"].tolist() == [3, 4]


def test_a_list_of_texts_may_be_a_series(shapes):
    names = pd.Series(["cat", "dog"])
    sql = "SELECT labels FROM dataset WHERE labels IN :q"
    expected = shapes.ds.query(sql, parameters={"q": ["cat", "dog"]})
    assert shapes.ds.query(sql, parameters={"q": names}).sids.tolist() == expected.sids.tolist()


def test_a_parameter_that_is_no_value_is_named(shapes):
    view = shapes.ds.query("SELECT sid FROM dataset WHERE sid = :q", parameters={"q": object()})
    with pytest.raises(tl.InvalidQueryError, match=r"parameter :q is object, .*give a number"):
        len(view)


def test_columns_without_a_name_are_called_what_is_written(shapes):
    view = shapes.ds.query(
        "SELECT images[::-1, 2:9:3], shape(images)[0] DIV 2, boxes[[0]], emb + $q FROM dataset LIMIT 1",
        parameters={"q": 1},
    )
    names = ["images[::-1, 2:9:3]", "SHAPE(images)[0] DIV 2", "boxes[[0]]", "emb + $q"]
    assert view.names == names


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("note[0]", "note\\[0\\]: too many indices"),
        ("images[training.score:]", "images\\[.*score.*:\\]: 0\\.\\d+ is not a position"),
    ],
)
def test_messages_name_columns_of_plain_values(shapes, item, said):
    with pytest.raises(tl.InvalidQueryError, match=said):
        shapes.ds.query(f"SELECT {item} AS v FROM dataset WHERE sid = 1")[0]


def test_generated_queries_on_scalars_give_the_rows_of_sqlite(tmp_path):
    rng = np.random.default_rng(11)
    values = rng.integers(-3, 4, (40, 3))
    missing = rng.random((40, 3)) < 0.2
    rows = [[None if gone else int(v) for v, gone in zip(*both)] for both in zip(values, missing)]
    ds = tl.dataset(str(tmp_path / "ds"), {"i": "int32", "a": "int32", "b": "int64", "c": "int16"})
    ds.extend([{"i": i, "a": a, "b": b, "c": c} for i, (a, b, c) in enumerate(rows)])
    con = sqlite3.connect(":memory:")
    con.execute("CREATE TABLE t (i, a, b, c)")
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(i, *row) for i, row in enumerate(rows)])
    for _ in range(80):
        sql = generated(rng)
        # SQLite puts nulls first.
        text = sql.replace("ORDER BY a", "ORDER BY a NULLS LAST")
        expected = [tuple(row) for row in con.execute(text)]
        table = tl.query(sql, t=ds).to_arrow()
        found = (
            list(zip(*[column.to_pylist() for column in table.columns])) if table.num_rows else []
        )
        assert found == expected, sql
    con.close()


def test_generated_queries_on_tensors_give_the_rows_of_pandas(shapes):
    rng = np.random.default_rng(12)
    numbers = {
        "array_mean(emb)": shapes.vectors.mean(1, dtype="f8"),
        "array_max(boxes)": np.array([b.max() for b in shapes.boxes], "f8"),
        "array_sum(emb[2:5])": shapes.vectors[:, 2:5].sum(1, dtype="f8"),
        "array_mean(images[:, :, 1])": np.array([i[:, :, 1].mean() for i in shapes.images]),
        "shape(boxes)[0]": np.array([len(b) for b in shapes.boxes], "f8"),
        "training.score": shapes.scores.astype("f8"),
    }
    frame = pd.DataFrame({"labels": shapes.labels, **numbers})
    for _ in range(40):
        names = rng.choice(list(numbers), 3)
        bounds = [float(np.quantile(frame[n], rng.choice([0.2, 0.5, 0.8]))) + 1e-3 for n in names]
        tests = [(frame[n] > b, f"{n} > {b!r}") for n, b in zip(names, bounds)]
        joint = rng.choice(["AND", "OR"])
        mask = tests[0][0] & tests[1][0] if joint == "AND" else tests[0][0] | tests[1][0]
        mask = mask & ~tests[2][0] if rng.random() < 0.3 else mask
        negated = (
            ""
            if mask.equals(
                tests[0][0] & tests[1][0] if joint == "AND" else tests[0][0] | tests[1][0]
            )
            else f" AND NOT ({tests[2][1]})"
        )
        where = f"({tests[0][1]} {joint} {tests[1][1]}){negated}"
        key = rng.choice(list(numbers))
        view = shapes.ds.query(
            f"SELECT labels, {key} AS v FROM dataset WHERE {where} ORDER BY {key} DESC, sid LIMIT 9"
        )
        expected = (
            frame[mask]
            .assign(sid=lambda f: f.index)
            .sort_values([key, "sid"], ascending=[False, True])[:9]
        )
        assert view.sids.tolist() == expected.index.tolist(), where
        assert np.allclose(view["v"], expected[key], rtol=1e-5)


def test_several_conditions_on_tensors_may_each_name_columns(shapes):
    tops, sums = shapes.vectors.max(1), shapes.vectors.sum(1)
    view = shapes.ds.query(
        "SELECT note FROM dataset WHERE array_sum(emb) > 0 AND array_max(emb) > training.score + 0.5 "
        "AND (array_max(emb) < 2 OR labels = 1)"
    )
    kept = (sums > 0) & (tops > shapes.scores + 0.5) & ((tops < 2) | (shapes.labels == 1))
    assert view.sids.tolist() == np.flatnonzero(kept).tolist()
    again = shapes.ds.query(
        "SELECT v FROM (SELECT labels + array_max(emb) AS v FROM dataset) AS q WHERE v > 1 AND v < 3"
    )
    assert np.allclose(again["v"], [v for v in shapes.labels + tops if 1 < v < 3])


def test_a_key_of_groups_may_mix_tensors_and_columns(shapes):
    found = shapes.ds.query(
        "SELECT array_argmax(emb) + labels AS k, count(*) AS n FROM dataset GROUP BY array_argmax(emb) + labels"
    ).to_pandas()
    counts = np.bincount(shapes.vectors.argmax(1) + shapes.labels)
    assert dict(zip(found["k"], found["n"])) == {k: n for k, n in enumerate(counts) if n}


def test_numbers_of_tensors_are_compared_by_their_values(shapes):
    places = shapes.vectors.argmax(1)
    alone = shapes.ds.query("SELECT DISTINCT array_argmax(emb) AS k FROM dataset")
    assert sorted(alone["k"]) == sorted(set(places))
    query = "SELECT array_argmax(emb) AS k FROM dataset WHERE sid < 30 {} SELECT labels AS k FROM dataset WHERE sid > 30"
    here, there = set(places[:30]), set(shapes.labels[31:])
    for how, expected in (("UNION", here | there), ("INTERSECT", here & there), ("EXCEPT", here - there)):  # fmt: skip
        assert sorted(shapes.ds.query(query.format(how))["k"]) == sorted(expected)
    same = "SELECT array_argmax(emb) AS k FROM dataset"
    assert len(shapes.ds.query(f"{same} UNION {same}")) == len(set(places))


def test_calls_that_are_wrong(shapes):
    with pytest.raises(tl.InvalidOptionError, match="parameters"):
        tl.query("SELECT 1 FROM d", parameters=[1], d=shapes.ds)
    with pytest.raises(tl.InvalidOptionError, match="seed"):
        tl.query("SELECT 1 FROM d", seed=-1, d=shapes.ds)
    with pytest.raises(tl.InvalidOptionError, match="d=int is not a Dataset"):
        tl.query("SELECT 1 FROM d", d=5)


def test_functions_of_boxes_know_the_form_of_their_columns(tmp_path):
    ds = tl.dataset(
        str(tmp_path / "ds"), {"a": types.BoundingBox("xywh"), "b": types.BoundingBox("cxcywh")}
    )
    ds.extend({"a": [[[10, 10, 4, 6]], [[0, 0, 2, 2]]], "b": [[[12, 13, 4, 6]], [[2, 1, 2, 2]]]})
    found = ds.query("SELECT iou(a, b) AS v FROM dataset")["v"]
    assert np.allclose(found, [1, 1 / 3])


def test_dates_and_times_of_lists_are_compared_with_those_of_columns(tmp_path):
    kinds = {"days": "date", "times": "timestamp"}
    ds = tl.dataset(str(tmp_path / "set"), {
        **{name: tl.types.Sequence(tl.types.Scalar(kind)) for name, kind in kinds.items()},
        "day": "date", "time": "timestamp",
    })  # fmt: skip
    noon = dt.datetime(2020, 1, 1, 12, tzinfo=dt.timezone.utc)
    hours = [dt.timedelta(hours=n) for n in range(3)]
    ds.extend(
        {"days": [noon.date()], "times": [noon + h, None], "day": noon.date(), "time": noon} for h in hours
    )  # fmt: skip
    ds.append({"days": [noon.date()], "times": [noon]})  # nulls

    def sids(condition):
        return ds.query(f"SELECT sid FROM dataset WHERE {condition}")["sid"].tolist()

    assert sids("times[0] = time") == [0]
    assert sids("times[0] > time") == [1, 2]
    assert sids("days[0] = day") == [0, 1, 2]
    assert sids("times[0] < TIMESTAMP '2020-01-01 13:00:00'") == [0, 3]
    assert sids("times[0] = '2020-01-01T14:00:00'") == [2]
    assert sids("any(times = time)") == [0]
    assert ds.query("SELECT days[0:1] AS d FROM dataset")[0]["d"].dtype == "M8[D]"
    found = ds.query("SELECT times[0] AS t FROM dataset").materialize(str(tmp_path / "copy"))
    assert found["t"][1] == noon + hours[1]
