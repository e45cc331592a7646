"""The same queries by Spark and by this process give the same rows."""

import datetime as dt
import itertools
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sqlglot import exp

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, InvalidQueryError
from tensorlake_spark.query.functions.registry import FUNCTIONS
from tensorlake_spark.query.functions.row_values import for_functions
from tensorlake_spark.query.language.dialect import TensorDialect
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.query.user_functions import unregister_function
from tensorlake_spark.spark import query
from tensorlake_spark.spark.source.schemas import TENSOR, tensors_of


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    rng = np.random.default_rng(7)
    made = tl.dataset(
        str(tmp_path_factory.mktemp("query") / "ds"),
        {
            "image": tl.types.Image("png"),
            "x": tl.types.Tensor("float32", (3,)),
            "label": "int32",
            "w": "float64",
            "g/boxes": tl.types.BoundingBox("xywh"),
            "kind": tl.types.ClassLabel(["cat", "dog", "cow"]),
        },
    )
    count = 16
    made.extend(
        {
            "image": [rng.integers(0, 255, (4 + n % 3, 5, 3), np.uint8) for n in range(count)],
            "x": [None if n == 5 else rng.random(3).astype("f4") for n in range(count)],
            "label": np.arange(count, dtype=np.int32) % 4,
            "w": [None if n % 6 == 3 else n / 2 for n in range(count)],
            "g/boxes": [rng.integers(1, 9, (1 + n % 2, 4)).astype("f4") for n in range(count)],
            "kind": [None if n == 7 else n % 3 for n in range(count)],
        }
    )
    made.delete([2])
    return made


def plain(value):
    """A value that can be compared: numbers in few digits, so that float32 and float64 agree."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)):
        return np.asarray(value).item()
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return [plain(one) for one in value]
    array = np.asarray(for_functions([value])[0])
    if array.dtype.kind == "M":
        array = array.astype("datetime64[us]").astype(str)
    if array.dtype.kind == "U":
        return [*array.shape, *array.ravel().tolist()]
    array = array.astype(float)
    return [*array.shape, *np.round(array, 4).ravel().tolist()]


def arrays_of(column):
    """The values of a column: tensors as arrays, those of a group as one array where they are alike."""
    if pa.types.is_struct(column.type):
        valid = column.is_valid().to_pylist()
        arrays = tensors_of(column.filter(column.is_valid()))
        return [next(arrays) if one else None for one in valid]
    if pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type):
        return [None if one is None else arrays_of(one.values) for one in column]
    return column.to_pylist()


def from_spark(frame):
    table = frame.toArrow()
    columns = {name: arrays_of(table.column(name).combine_chunks()) for name in table.column_names}
    return [
        {name: plain(value) for name, value in zip(columns, row, strict=True)}
        for row in zip(*columns.values(), strict=True)
    ]


def from_here(view):
    return [{name: plain(v) for name, v in row.items()} for row in view]


def same(spark, sql, ordered=False, parameters=None, **sources):
    one = from_spark(query(spark, sql, parameters=parameters, **sources))
    other = from_here(tl.query(sql, parameters=parameters, **sources))
    if not ordered:
        one, other = sorted(one, key=repr), sorted(other, key=repr)
    assert one == other
    return one


QUERIES = [
    "SELECT * FROM ds",
    "SELECT * EXCEPT (image, x) FROM ds WHERE label IN (1, 2)",
    "SELECT image[1:3, ::-1, 0] AS crop, label FROM ds WHERE array_mean(image) > 120 AND label > 0",
    "SELECT x[0] AS first, x[-1:] AS last, x * 2 + label AS more FROM ds WHERE x IS NOT NULL",
    "SELECT label, avg(array_mean(image)) AS mean, count(*) AS n FROM ds GROUP BY label HAVING count(*) > 2",
    'SELECT iou(b, b) AS i, shape(image)[0] AS height FROM (SELECT "g/boxes" AS b, image FROM ds) AS q',
    "WITH bright AS (SELECT label, array_max(image) AS top FROM ds) SELECT label, max(top) AS t FROM bright GROUP BY label",
    "SELECT a.label, dot(a.x, b.x) AS d FROM ds a JOIN ds b ON a.label = b.label AND a.sid < b.sid WHERE a.x IS NOT NULL",
    "SELECT label, w / label AS q FROM ds WHERE w IS NOT NULL AND w > 0",
    "SELECT CASE WHEN array_mean(image) > 127 THEN 'bright' ELSE 'dark' END AS how, label FROM ds",
    "SELECT label FROM ds WHERE label > 1 UNION SELECT label + 10 AS label FROM ds WHERE label < 2",
    "SELECT DISTINCT label FROM ds WHERE any(image > 250)",
    "SELECT label, row_number() OVER (PARTITION BY label ORDER BY sid) AS n FROM ds",
    "SELECT label FROM ds WHERE label IN (SELECT label FROM ds WHERE array_min(image) < 3)",
    "SELECT any(image > 200, 0) AS a, all(image > 9, [1, 2]) AS b, any(image > 250) AS c FROM ds",
    "SELECT image.height, image.width + 1 AS w, x.dtype AS d FROM ds WHERE image.height > 4 AND kind <> 'cow'",
    "SELECT *, image.channels AS c FROM ds AS d WHERE d.image.height = 5",
    "SELECT k = 'dog' AS dog, count(*) AS n FROM (SELECT kind AS k FROM ds) GROUP BY k = 'dog'",
    "SELECT kind AS k, array_mean(x) * (kind = 'cat') AS c FROM ds WHERE k IN ('cat', 'dog')",
    "SELECT kind FROM ds WHERE kind = 'cow' UNION SELECT label FROM ds WHERE label = 3",
    "SELECT a.sid FROM ds a JOIN ds b ON a.sid = b.sid AND b.kind = 'cat' AND a.image.height < 5",
    "SELECT mean(label) AS l, mean(array_mean(x)) AS m FROM ds WHERE x IS NOT NULL",
    "SELECT kind, mean(w) AS m FROM ds GROUP BY kind",
    "SELECT MEAN(x) AS x, mean(label) OVER () AS l FROM ds WHERE x IS NOT NULL",
    "SELECT clip(image, 10, 20)[0, 0] AS c, normalize(g.boxes, [0, 0, 10, 10]) AS n FROM ds",
]


@pytest.mark.parametrize("sql", ["k = 'dgo'", "k > 'dog'", "kind IN ('cow', 'pig')"])
def test_classes_that_are_not_there_are_refused(spark, ds, sql):
    said = []
    for run in (tl.query, partial(query, spark)):
        with pytest.raises(InvalidQueryError) as error:
            run(f"SELECT kind AS k FROM ds WHERE {sql}", ds=ds)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_classes_of_a_view_are_compared_by_name(spark, ds):
    view = ds.query("SELECT kind, array_mean(x) AS mean FROM dataset WHERE label > 0")
    assert same(spark, "SELECT mean FROM v WHERE kind = 'dog'", v=view)


def test_parameters_name_classes_and_lists(spark, ds):
    given = {"k": "dog", "some": ["cat", "cow"], "labels": [1, 3], "none": []}
    for condition in [
        "kind = :k", "kind IN (:some)", "contains(kind, :k)", "CASE kind WHEN :k THEN true ELSE false END",
        "label IN (:labels)", "label IN :labels AND array_mean(x) > 0", "label IN (:labels, 0)",
        "shape(image, 0) IN (:labels, 4)", "label NOT IN :none", "label IN :none",
    ]:  # fmt: skip
        same(spark, f"SELECT sid FROM ds WHERE {condition}", parameters=given, ds=ds)
    other = {"some": pd.Series(["cat", "cow"]), "labels": range(1, 4, 2)}
    same(spark, "SELECT sid FROM ds WHERE kind IN :some", parameters=other, ds=ds)
    same(spark, "SELECT sid FROM ds WHERE label IN :labels", parameters=other, ds=ds)


def test_a_query_inside_another_has_names_of_its_own(spark, ds):
    other = pd.DataFrame({"w": [1.0, 2.5], "label": [1, 2]})
    for sql in [
        # `sid` and `label` are in both tables outside, and in one inside
        "SELECT a.sid FROM ds a JOIN ds b USING (sid) WHERE a.sid IN (SELECT sid FROM ds WHERE label > 1)",
        "SELECT a.sid FROM ds a JOIN ds b ON a.sid = b.sid WHERE a.label > (SELECT min(label) FROM other)",
        # `w` is an item outside, and a column inside
        "SELECT label AS top, sid FROM ds WHERE label IN (SELECT label FROM other WHERE w > 2)",
        "SELECT label + 7 AS v FROM ds WHERE label IN (SELECT v FROM (SELECT label AS v FROM other) AS q)",
    ]:
        assert same(spark, sql, ds=ds, other=other)


def test_columns_without_a_name_are_called_the_same(spark, ds):
    sql = "SELECT x[::-1], label DIV 2, shape(image)[0], x[[0, 2]] * :q, array_sum(x, [0]), w, kind FROM ds"
    assert (
        query(spark, sql, ds=ds, parameters={"q": 2}).columns
        == tl.query(sql, ds=ds, parameters={"q": 2}).names
    )


def test_moments_are_cut_as_they_are_here(spark):
    ts = pd.DataFrame(
        {
            "t": pd.to_datetime(["2026-03-05 07:08:09", "2025-12-31 23:59:59"]).astype(
                "datetime64[us]"
            )
        }
    )
    cuts = ", ".join(
        f"date_trunc('{unit}', t) AS {unit}_" for unit in ("year", "month", "day", "hour", "minute")
    )
    sql = f"SELECT {cuts} FROM ts ORDER BY t"
    rows = [[*row] for row in query(spark, sql, ts=ts).collect()]
    assert rows == tl.query(sql, ts=ts).to_pandas().to_numpy().tolist()


@pytest.mark.parametrize("sql", QUERIES)
def test_the_same_rows(spark, ds, sql):
    assert same(spark, sql, ds=ds)


FUNCTIONS_OF_ROWS = [
    "array_mean(image), MEAN(image, 0), array_sum(x), array_min(x), array_max(image, [0, 1]), array_std(image), "
    "array_norm(x), l2_norm(x), array_argmax(x), argmax(image, 0), shape(image), SHAPE(image, 1), dtype(x), "
    "any(image > 250), ALL(image > 1)",
    'NORMALIZE("g/boxes", [1, 2, 10, 20]), IOU("g/boxes", "g/boxes"[:1]), iou_matrix("g/boxes", "g/boxes"), '
    "l2_distance(x, :q), EUCLIDEAN_DISTANCE(x, x), cosine_similarity(x, :q), dot(x, :q), inner_product(x, x)",
    "contains(image, 250), nonzero(image[0, 0] > 100), clip(image, 20, 200), resize(image, 3, label + 1), "
    "histogram(image, 4, 0, 256), to_gray(image), to_grayscale(image), image[label:label + 2, -1], image[[0, 2]]",
]


@pytest.mark.parametrize("functions", FUNCTIONS_OF_ROWS)
def test_every_function_gives_the_same(spark, ds, functions):
    items = parse(f"SELECT {functions}").selects
    listed = ", ".join(f"{one.sql(dialect=TensorDialect)} AS c{n}" for n, one in enumerate(items))
    same(spark, f"SELECT {listed} FROM ds", parameters={"q": [0.5, 0.25, 0.1]}, ds=ds)


def test_every_function_is_among_them():
    tree = parse(f"SELECT {', '.join(FUNCTIONS_OF_ROWS)}")
    said = {one.name.casefold() for one in tree.find_all(exp.Anonymous)}
    wanted = {name for one in FUNCTIONS if not one.users for name in (one.name, *one.spellings)}
    assert wanted - said == set()


def test_the_query_of_figure_4(spark, ds):
    sql = (
        'SELECT image[1:3, 1:3, 0:2] AS crop, NORMALIZE("g/boxes", [1, 1, 4, 4]) AS box FROM ds '
        'WHERE IOU("g/boxes", "g/boxes") > 0.95 ORDER BY IOU("g/boxes", "g/boxes"), sid ARRANGE BY kind'
    )
    assert same(spark, sql, True, ds=ds)


def test_elements_of_images_of_any_channels_are_numbers(spark, ds):
    sql = "SELECT sid FROM ds WHERE image[0, 0, 0] > 100 ORDER BY image[0, 0, 0], sid"
    assert same(spark, sql, True, ds=ds)
    assert same(spark, "SELECT label, max(image[0, 0, 1]) AS m FROM ds GROUP BY label", ds=ds)


def test_tags_and_moments(spark, tmp_path):
    made = tl.dataset(str(tmp_path / "ds"), {"n": "int32"})
    made.extend({"n": [1, 2]})
    made.tag("first")
    made.extend({"n": [3]})
    sums = {0: None, 1: 3, 2: 3, 3: 6}  # a tag is a version too
    history = made.history()
    for version, moment in zip(history["version"], history["timestamp"], strict=True):
        newest = history["version"][history["timestamp"] <= moment].max()
        sql = f"SELECT sum(n) AS s FROM ds AS OF '{pd.Timestamp(moment).isoformat()}'"
        for found in (tl.query(sql, ds=made)[0]["s"], query(spark, sql, ds=made).first().s):
            assert found == sums[newest], version
    sql = "SELECT count(*) AS n FROM ds VERSION 'first' AS a JOIN ds AS b ON a.n < b.n"
    assert same(spark, sql, ds=made) == [{"n": [3.0]}]


def test_generated_queries(spark, ds):
    values = ["array_mean(image)", "array_max(x) * 100", "label", "l2_distance(x, :q)"]
    conditions = ["{} > 1", "NOT ({} > 60 AND label = 1)", "{} BETWEEN 0 AND 50 OR label = 3"]
    rng = np.random.default_rng(3)
    pairs = list(itertools.product(values, conditions))
    for value, condition in (pairs[n] for n in rng.permutation(len(pairs))[:8]):
        sql = f"SELECT label, {value} AS v, x[:2] AS head FROM ds WHERE {condition.format(value)}"
        same(spark, sql, parameters={"q": np.array([0.5, 0.5, 0.5])}, ds=ds)


def test_orders_and_limits(spark, ds):
    sql = "SELECT label, l2_distance(x, :q) AS d FROM ds WHERE x IS NOT NULL ORDER BY d LIMIT 5"
    assert len(same(spark, sql, True, {"q": [0.1, 0.2, 0.3]}, ds=ds)) == 5
    same(spark, "SELECT w, label FROM ds ORDER BY w DESC, label, sid", True, ds=ds)
    same(spark, "SELECT w FROM ds WHERE label > :n ORDER BY sid DESC", True, {"n": 1}, ds=ds)


NAMED = [
    "SELECT array_mean(x) AS x, sid FROM ds WHERE x IS NOT NULL ORDER BY x",
    "SELECT -label AS X, sid FROM ds ORDER BY x, sid DESC LIMIT 5",
    "SELECT label AS image, sid FROM ds ORDER BY -image + 1, sid",
    "SELECT -label AS x, sid FROM ds WHERE x IS NOT NULL ORDER BY ds.x[0], x",
    "SELECT max(w) AS x, label FROM ds GROUP BY label HAVING count(*) > 1 ORDER BY x DESC",
    "SELECT DISTINCT label AS x FROM ds ORDER BY x DESC",
    "SELECT DISTINCT label AS l, sid AS label FROM ds ORDER BY label DESC",
    "SELECT q.x FROM (SELECT sid % 7 AS x, sid FROM ds ORDER BY x, sid LIMIT 3) AS q",
    "SELECT x, -sid AS s FROM ds WHERE x IS NOT NULL ORDER BY x[0], s",
]


def test_texts_are_joined_with_and_without_nulls(spark, ds):
    sql = "SELECT concat_ws('-', w, NULL, label) AS a, concat(w, label) AS b, w || label AS c FROM ds ORDER BY sid"
    found = query(spark, sql, ds=ds).collect()
    assert [[*row.values()] for row in tl.query(sql, ds=ds)] == [[*row] for row in found]
    assert [*found[0]] == ["0.0-0", "0.00", "0.00"]
    assert [*found[2]] == ["3", None, None]


@pytest.mark.parametrize("sql", NAMED)
def test_a_name_of_the_select_comes_before_a_column_in_order_by(spark, ds, sql):
    assert same(spark, sql, " AS q" not in sql, ds=ds)


def test_arranged_and_drawn(spark, ds):
    sql = "SELECT label, w FROM ds ORDER BY sid ARRANGE BY label"
    same(spark, sql, True, ds=ds)
    drawn = query(
        spark, "SELECT label FROM ds SAMPLE BY label REPLACE TRUE LIMIT 50", seed=1, ds=ds
    ).collect()
    assert len(drawn) == 50
    assert {row.label for row in drawn} == {1, 2, 3}
    once = query(spark, "SELECT sid FROM ds SAMPLE BY label LIMIT 8", seed=1, ds=ds).collect()
    assert len({row.sid for row in once}) == 8


CLAUSES = [
    "SELECT label, w FROM ds ORDER BY sid LIMIT 9 ARRANGE BY label",
    "SELECT label, w FROM ds ORDER BY sid LIMIT :n OFFSET 2 ARRANGE BY label",
    "SELECT sid, label FROM ds WHERE label = 3 EXPAND BY 1, 2",
    "SELECT sid, x FROM ds AS d WHERE d.label = 1 AND array_mean(image) > 0 EXPAND BY 2, 2 OVERLAP TRUE",
    "SELECT sid FROM ds WHERE sid IN (0, 15) EXPAND BY 1, 0 ORDER BY sid DESC",
    "SELECT label, x FROM ds ORDER BY sid UNGROUP BY x",
    "SELECT image[:, 0] AS rows, shape(image) AS s, sid FROM ds WHERE sid < 5 ORDER BY sid UNGROUP BY rows",
    "SELECT q.label, q.w FROM (SELECT label, w, sid FROM ds ORDER BY sid ARRANGE BY label) AS q",
    "SELECT count(*) AS n FROM (SELECT x AS v FROM ds UNGROUP BY v) AS q",
    "WITH a AS (SELECT sid AS s, x FROM ds WHERE label > 0), b AS (SELECT s, x[:2] AS y FROM a UNGROUP BY y) "
    "SELECT s, y FROM b ORDER BY s",
    "SELECT sid FROM ds WHERE sid IN (SELECT sid FROM ds WHERE sid = 7 EXPAND BY 1, 1) ORDER BY sid",
    "SELECT label FROM ds WHERE sid < 6 UNION ALL SELECT label FROM ds WHERE sid > 8 ORDER BY label ARRANGE BY label",
]


@pytest.mark.parametrize("sql", CLAUSES)
def test_clauses_of_tql_give_the_same_rows(spark, ds, sql):
    is_ordered = "OVERLAP" not in sql and "count" not in sql
    assert same(spark, sql, is_ordered, parameters={"n": 6}, ds=ds)


GROUPS = [
    "SELECT label, x FROM ds WHERE x IS NOT NULL GROUP BY label ORDER BY label",
    "SELECT label, image, count(*) AS n FROM ds GROUP BY label ORDER BY label",
    "SELECT label, g.boxes AS b, max(w) AS top FROM ds GROUP BY label ORDER BY label",
    "SELECT label, array_agg(x[:2]) AS heads, list(array_max(image)) AS tops FROM ds WHERE sid <> 5 GROUP BY label ORDER BY label",
    "SELECT label, arg_max(x, sid) AS last FROM ds GROUP BY label ORDER BY label",
    "SELECT sid < 7 AS low, arg_max(x, CASE WHEN sid < 7 THEN sid = 5 ELSE sid = 8 END) AS y FROM ds "
    "WHERE sid IN (4, 5, 8) GROUP BY low ORDER BY low",
    "SELECT sid = 5 AS none, any_value(x * 2) AS y, arg_min(array_max(x), sid) AS z FROM ds WHERE sid >= 5 AND sid < 7 "
    "GROUP BY none ORDER BY none",
    "SELECT count(*) AS n, any_value(x) AS y, arg_max(w, -sid) AS z, any_value(w) FILTER (WHERE sid IN (3, 4)) AS u FROM ds "
    "WHERE sid IN (3, 4) OR sid = 5",
    "SELECT label, list(array_max(x)) FILTER (WHERE sid > 5) AS tops, array_agg(x[0]) FILTER (WHERE array_mean(x) > 0.4) AS y "
    "FROM ds WHERE sid <> 5 GROUP BY label ORDER BY label",
    "SELECT label, arg_max(x, CASE WHEN sid > 5 THEN w END) AS y FROM ds GROUP BY label ORDER BY label",
    "SELECT array_mean(x) > 0.5 AS high, count(*) AS n FROM ds WHERE x IS NOT NULL GROUP BY array_mean(x) > 0.5 ORDER BY high",
    "SELECT label, array_mean(v) AS m, shape(v) AS s FROM (SELECT label, x AS v FROM ds WHERE sid > 5 GROUP BY label) AS q "
    "ORDER BY label",
    "SELECT label, v, n FROM (SELECT label, x AS v, array_max(image) AS n FROM ds WHERE sid <> 5 GROUP BY label) AS q "
    "ORDER BY label UNGROUP BY v",
    "SELECT a.label, a.x AS l, b.x AS r FROM ds a JOIN ds b ON a.sid = b.sid - 1 WHERE a.sid > 6 GROUP BY a.label "
    "ORDER BY a.label",
    "SELECT max(v) AS top FROM (SELECT label, x AS v FROM ds UNGROUP BY v) AS q",
]


@pytest.mark.parametrize("sql", GROUPS)
def test_tensors_of_groups_are_the_same(spark, ds, sql):
    assert same(spark, sql, True, ds=ds)


def test_several_values_of_a_group_are_not_picked(spark, ds):
    with pytest.raises(InvalidQueryError, match="Spark picks one value of a group, not several"):
        query(spark, "SELECT label, arg_max(w, sid, 2) AS y FROM ds GROUP BY label", ds=ds)


def test_a_group_is_an_array_of_tensors(spark, ds):
    frame = query(spark, "SELECT label, image FROM ds GROUP BY label", ds=ds)
    assert frame.schema["image"].dataType.elementType == TENSOR
    with pytest.raises(InvalidQueryError, match="no column 'w2'"):
        query(spark, "SELECT label, w2 FROM ds GROUP BY label", ds=ds)


COMPARED = [
    "SELECT DISTINCT image[0, 0] * 0 AS z FROM ds",
    "SELECT DISTINCT x[:0] AS z, label > 1 AS big FROM ds",
    "SELECT x FROM ds WHERE sid < 9 INTERSECT SELECT x FROM ds WHERE sid > 3",
    "SELECT x FROM ds EXCEPT SELECT x FROM ds WHERE sid > 5",
    "SELECT x[:2] AS y FROM ds WHERE sid < 9 UNION SELECT x[:2] AS y FROM ds",
]


@pytest.mark.parametrize("sql", COMPARED)
def test_tensors_are_compared_by_their_values(spark, ds, sql):
    assert same(spark, sql, ds=ds)


def test_some_rows_are_drawn_in_a_query_in_another(spark, ds):
    sql = "SELECT count(*) AS n, min(label) AS low FROM (SELECT label FROM ds SAMPLE BY label LIMIT 7) AS q"
    assert same(spark, sql, ds=ds) == [{"n": [7.0], "low": [1.0]}]


def test_columns_of_unequal_lengths_cannot_be_split_together(spark, ds):
    sql = "SELECT x, x[:2] AS y FROM ds UNGROUP BY x, y"
    with pytest.raises(InvalidQueryError, match="elements"):
        list(tl.query(sql, ds=ds))
    with pytest.raises(Exception, match="different numbers of elements in a row: x, y"):
        query(spark, sql, ds=ds).collect()


def test_versions_and_other_sources(spark, ds, tmp_path):
    names = pd.DataFrame({"label": [0, 1, 2], "name": ["a", "b", "c"]})
    sql = "SELECT name, array_sum(x) AS s FROM ds JOIN names USING (label) WHERE x IS NOT NULL"
    same(spark, sql, ds=ds, names=names)
    pa_path = tmp_path / "names.parquet"
    names.to_parquet(pa_path)
    same(spark, sql, ds=ds.uri, names=str(pa_path))
    names.assign(when=pd.Timestamp("2026-01-31")).to_parquet(
        pa_path
    )  # a type that only Spark reads
    same(spark, sql, ds=ds.uri, names=str(pa_path))
    table = pa.table({"label": pa.array([0, 1, 2], pa.uint8()), "name": ["a", None, "c"]})
    for given in (table, table.to_batches()[0]):
        same(spark, sql, ds=ds, names=given)
    nulls = pd.DataFrame({"label": [0, 1, 2], "name": [0.5, np.nan, 1.5]})
    found = same(spark, "SELECT label FROM names WHERE name IS NULL", names=nulls)
    assert found == [{"label": [1.0]}]
    both = "SELECT n.sid AS s FROM ds VERSION 1 AS n LEFT JOIN ds AS m ON n.sid = m.sid WHERE m.sid IS NULL"
    assert [row.s for row in query(spark, both, ds=ds).collect()] == [2]


def test_functions_of_the_user(spark, ds):
    tl.register_function(
        "spread_of", lambda x: [None if one is None else one.max() - one.min() for one in x]
    )
    try:
        same(spark, "SELECT spread_of(x) AS s FROM ds WHERE spread_of(x) > 0.1", ds=ds)
    finally:
        unregister_function("spread_of")


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        ("SELECT lable FROM ds", InvalidQueryError, "did you mean 'label'"),
        ("SELECT label FROM dss", InvalidQueryError, "did you mean 'ds'"),
        ("SELECT label FROM ds UNGROUP BY x", InvalidQueryError, "not selected"),
        ("SELECT label FROM ds UNGROUP BY label", InvalidQueryError, "not an array"),
        ("SELECT a.label FROM ds a JOIN ds b ON a.sid = b.sid EXPAND BY 1, 1", InvalidQueryError, "one dataset"),
        ("SELECT label FROM ds SAMPLE BY label", InvalidQueryError, "LIMIT"),
        ("DROP TABLE ds", InvalidQueryError, "begins with SELECT"),
        ("SELECT label FROM ds VERSION 99", InvalidOptionError, "99"),
        ("SELECT label FROM ds ORDER BY 'label'", InvalidQueryError, "orders nothing"),
        ("SELECT array_mean(x) AS m FROM ds UNGROUP BY m", InvalidQueryError, "'m', which is not an array"),
        ("SELECT label FROM ds WHERE x > 1", InvalidQueryError, r"x > 1 is an array a row, and WHERE .*column 28"),
        ("SELECT label FROM ds HAVING x > 1", InvalidQueryError, "an array a row, and HAVING takes a value"),
        ("SELECT g.* FROM ds", InvalidQueryError, r"'g' is a group of columns, not a table; write g.boxes"),
        ("SELECT dd.* FROM ds", InvalidQueryError, r"there is no table 'dd'.*did you mean 'ds'"),
    ],
)  # fmt: skip
def test_mistakes(spark, ds, sql, kind, said):
    with pytest.raises(kind, match=said):
        query(spark, sql, ds=ds)


def test_nothing_is_left_in_the_session(spark, ds):
    query(spark, "SELECT array_mean(x) AS m FROM ds", ds=ds)
    # `SHOW` gives names alone. The catalog's lists look into every table, those of other tests as well.
    assert not [
        row for row in spark.sql("SHOW TABLES").collect() if row.tableName.startswith("tl_")
    ]
    assert not [
        row for row in spark.sql("SHOW USER FUNCTIONS").collect() if row.function.startswith("tl_")
    ]
    with pytest.raises(InvalidOptionError, match="source ds=int"):
        query(spark, "SELECT 1 FROM ds", ds=5)


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    """Sequences of scalars, which Spark has as lists of its own."""
    kinds = {
        "tags": "string",
        "k": "int64",
        "f": "float32",
        "b": "bool",
        "d": "date",
        "t": "timestamp",
    }
    made = tl.dataset(
        str(tmp_path_factory.mktemp("lists") / "ds"),
        {"c": tl.types.Sequence(tl.types.ClassLabel(["cat", "dog"])), "x": tl.types.Tensor("float32", (2,))}
        | {name: tl.types.Sequence(tl.types.Scalar(kind)) for name, kind in kinds.items()},
    )  # fmt: skip
    rows = [
        {"tags": ["x", "y", "z"][: i % 3 + 1], "k": [i, i + 1], "f": [i / 2, 1.5], "b": [i % 2 == 0],
         "c": ["cat", "dog"] if i % 2 else ["dog"], "x": np.array([i, 1], "f4"),
         "d": [dt.date(2020, 1, 1 + i), dt.date(1969, 1, 1)], "t": [dt.datetime(2020, 1, 1, i, 30, 0, 5)]}
        for i in range(5)
    ]  # fmt: skip
    made.extend([*rows, dict.fromkeys(rows[0])])
    return made


LISTED = [
    *("tags[0]", "k[-1]", "f[0]", "b[0]", "c[0]", "tags", "k[1:]", "k + 1", "k = 2", "array_sum(k)", "shape(tags)"),
    *("tags[0] || '!'", "upper(tags[-1])", "k[0] + x[0]", "tags[1:]", "tags[1:][0:1]", "coalesce(tags[0], 'none')"),
    *("d[0]", "d[-1]", "t[0]", "d", "coalesce(tags, tags)", "ifnull(tags[1:], tags)[0:1]", "coalesce(tags, tags)[-1]"),
    *("CASE WHEN tags[0] = 'x' THEN k[0] ELSE 0 END", "CASE WHEN k[0] > 1 THEN tags ELSE tags[1:] END"),
]  # fmt: skip
CONDITIONS = [
    *("k[0] = 1", "tags[-1] = 'z'", "b[0]", "NOT b[0]", "c[0] = 'dog'", "f[0] > 1", "contains(tags, 'y')"),
    *("k[0] IN (1, 2)", "tags[-1] LIKE 'y%'", "k[0] BETWEEN 1 AND 3", "tags[0] IS NULL", "any(tags = 'y')"),
    *("d[0] > DATE '2020-01-02'", "t[0] < TIMESTAMP '2020-01-01 02:00:00'", "d[0] = d[0]"),
    *("k[0] = x[0]", "tags[-1] = :tag", "tags[-1] IN ('y', 'z') AND k[0] > 1"),
]  # fmt: skip


@pytest.mark.parametrize("sql", [
    *(f"SELECT {one} AS v FROM ds" for one in LISTED),
    *(f"SELECT sid FROM ds WHERE {one}" for one in CONDITIONS),
    "SELECT tags[-1] AS t, count(*) AS n, sum(k[0]) AS s, max(f[0]) AS m FROM ds GROUP BY tags[-1]",
    "SELECT b[0] AS v, count(*) AS n FROM ds GROUP BY b[0] HAVING b[0]",
    "SELECT k, tags, c FROM ds UNGROUP BY tags",
    "SELECT k FROM ds UNGROUP BY k",
    "SELECT a.sid AS n FROM ds a JOIN ds b ON a.tags[-1] = b.tags[-1] AND a.k[0] = b.k[0]",
    "SELECT v.a, ds.sid FROM (VALUES (1, 'x'), (2, :tag)) AS v(a, b) JOIN ds ON ds.k[0] = v.a AND ds.tags[-1] <> v.b",
    "SELECT * FROM (VALUES (1, 2), (3, NULL)) AS v",
])  # fmt: skip
def test_lists_of_scalars_are_the_same(spark, lists, sql):
    parameters = {"tag": "z"} if ":tag" in sql else None
    assert same(spark, sql, ds=lists, parameters=parameters)


def test_elements_of_lists_of_times_are_those_of_any_zone(spark):
    noon = dt.datetime(2020, 1, 1, 12)
    frame = spark.sql(
        "SELECT array(TIMESTAMP_NTZ '2020-01-01 12:00:00') AS plain, "
        "array(TIMESTAMP '2020-01-01 12:00:00Z') AS zoned"
    )
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        found = query(
            spark, "SELECT plain[0] AS plain, zoned[0] AS zoned FROM t", t=frame
        ).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert found["plain"][0].as_py() == noon
    assert found["zoned"][0].as_py() == noon.replace(tzinfo=dt.timezone.utc)


def test_lists_are_ordered_by_an_element(spark, lists):
    rows = same(spark, "SELECT k FROM ds WHERE k IS NOT NULL ORDER BY k[0] DESC", True, ds=lists)
    assert [row["k"][1] for row in rows] == [4, 3, 2, 1, 0]


@pytest.fixture(scope="module")
def signs(tmp_path_factory):
    """Tensors that are equal, and differ in their bits: zeros with a sign, and several NaN."""
    made = tl.dataset(
        str(tmp_path_factory.mktemp("signs") / "ds"),
        {"x": tl.types.Tensor("float32", (None,)), "z": tl.types.Tensor("complex64", (1,)), "f": "float64", "g": "int32"},
    )  # fmt: skip
    other = np.array([0x7FC00001], "u4").view("f4")[0]
    values = [[0.0, 1], [-0.0, 1], [np.nan], [other], [-np.nan], [2]]
    plain = [0.0, -0.0, np.nan, -np.nan, 1, 1]
    made.extend(
        {"x": [np.array(v, "f4") for v in values], "z": [np.array([v], "c8") for v in plain],
         "f": plain, "g": [0, 1, 2, 2, 2, 3]}
    )  # fmt: skip
    return made


EQUAL = [
    ("SELECT DISTINCT x FROM ds", 3),
    ("SELECT DISTINCT z, f FROM ds", 3),
    ("SELECT DISTINCT f FROM ds", 3),
    ("SELECT DISTINCT x AS y, x * 1 AS z FROM ds", 3),
    ("SELECT DISTINCT v FROM (SELECT g, x AS v FROM ds WHERE g < 2 GROUP BY g) AS q", 1),
    ("SELECT x FROM ds UNION SELECT x FROM ds", 3),
    ("(SELECT x FROM ds WHERE sid < 2 LIMIT 2) UNION (SELECT x FROM ds ORDER BY sid LIMIT 3)", 2),
    ("SELECT x FROM ds UNION ALL SELECT x FROM ds UNION SELECT x FROM ds", 3),
    ("SELECT x FROM ds INTERSECT SELECT x FROM ds WHERE sid IN (1, 3)", 2),
    ("SELECT x FROM ds EXCEPT SELECT x FROM ds WHERE sid IN (1, 3)", 1),
    ("SELECT f FROM ds INTERSECT SELECT f FROM ds WHERE sid IN (1, 3)", 2),
    ("SELECT f FROM ds EXCEPT SELECT f FROM ds WHERE sid IN (1, 3)", 1),
    ("SELECT x FROM ds UNION SELECT x FROM ds ARRANGE BY array_max(x)", 3),
    ("SELECT l FROM t UNION SELECT l FROM t", 2),
]


@pytest.mark.parametrize(("sql", "rows"), EQUAL)
def test_zeros_are_equal_and_so_are_nan(spark, signs, sql, rows):
    lists = pa.table({"l": [[0.0], [-0.0], [float("nan")], [-float("nan")]]})
    assert query(spark, sql, ds=signs, t=lists).count() == rows
    assert len(tl.query(sql, ds=signs, t=lists)) == rows


def test_what_was_not_given_is_told_with_what_was(spark, tmp_path):
    made = tl.dataset(tmp_path / "ds", {"n": "int32", "t": tl.types.Tensor("float32", (2,))})
    made.extend({"n": [1, 2]})
    for sql, says in (
        (
            "SELECT n FROM d",
            r"no source 'd'; give it: query\(spark, sql, d=...\); there are dataset",
        ),
        ("SELECT label FROM dataset", r"no column 'label'; there are n, t \(line"),
        ("SELECT n FROM dataset WHERE n = :most", r"no value; give it: parameters={'most': ...}"),
    ):
        with pytest.raises(tl.InvalidQueryError, match=says):
            query(spark, sql, dataset=made)
    for given, says in (({"parameters": 5}, "parameters=5 is not"), ({"seed": -1}, "seed=-1 is")):
        with pytest.raises(tl.InvalidOptionError, match=says):
            query(spark, "SELECT n FROM dataset", dataset=made, **given)
    with pytest.raises(tl.InvalidOptionError, match="query takes a SparkSession there"):
        query(None, "SELECT n FROM dataset", dataset=made)
