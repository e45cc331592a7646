"""Expressions in batches."""

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

import tensorlake_spark as tl
from tensorlake_spark import types
from tensorlake_spark.query.engine import row_batches
from tensorlake_spark.query.engine.evaluation import Evaluation, joined, one_a_row
from tensorlake_spark.query.planning.plan import Computed
from tensorlake_spark.query.sources.source_columns import CollectedLeaf, ItemLeaf, Lazy, ScalarLeaf


def scalar(name):
    return Lazy.of(exp.column("x"), {"x": ScalarLeaf(("", name))})


def test_batches_have_so_many_rows_as_memory_allows(shapes, monkeypatch):
    monkeypatch.setattr(row_batches, "BATCH_BYTES", 64 << 10)
    view = shapes.ds.query("SELECT images, labels FROM dataset WHERE array_mean(images) > 0")
    sizes = [len(batch["labels"]) for batch in view.batches()]
    assert sum(sizes) == 60
    assert max(sizes) <= (64 << 10) // (40 * 48 * 3) + 1
    assert all(np.array_equal(a["images"], b) for a, b in zip(view, shapes.images))


def test_leaves_of_groups_and_items():
    table = pa.table({"v": [[1, 2], [3]], "i": [1, 0]})
    found = Evaluation({}).values(
        Lazy.of(exp.column("x"), {"x": CollectedLeaf(scalar("v"))}), table
    )
    assert [v.tolist() for v in found] == [[1, 2], [3]]
    item = Lazy.of(
        exp.column("x"),
        {"x": ItemLeaf(Lazy.of(exp.column("x"), {"x": CollectedLeaf(scalar("v"))}), ("", "i"))},
    )
    assert Evaluation({}).values(item, table).tolist() == [2, 3]


def test_one_value_a_row():
    computed = Computed("n", scalar("v"), "v")
    table = pa.table({"v": [1, 2]})
    assert one_a_row([np.float32(1), None], computed, table).to_pylist() == [1, None]
    with pytest.raises(tl.InvalidQueryError, match=r"shape \(2,\) \(one of the rows\)"):
        one_a_row([1, np.zeros(2)], computed, table)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
def test_elements_of_small_floats_are_ordered_grouped_and_compared(tmp_path, dtype):
    ds = tl.dataset(str(tmp_path / "ds"), {"x": types.Tensor(dtype, (2,)), "k": "int32"})
    ds.extend({"x": [[2, 0], [1.5, -0.0], None, [4, 0]], "k": [0, 0, 1, 1]})
    assert ds.query("SELECT sid FROM dataset ORDER BY x[0]").sids.tolist() == [1, 0, 3, 2]
    assert ds.query("SELECT sid FROM dataset ORDER BY x[0] DESC LIMIT 1").sids.tolist() == [3]
    tops = ds.query("SELECT k, max(x[0]) AS top FROM dataset GROUP BY k ORDER BY k")
    assert tops["top"].tolist() == [2, 4]
    assert len(ds.query("SELECT DISTINCT x * 0 AS y FROM dataset WHERE x IS NOT NULL")) == 1


def test_the_largest_integers_may_be_null(tmp_path):
    """Arrow takes none above int64 without a type."""
    ds = tl.dataset(tmp_path / "ds", {"x": types.Tensor("uint64", (1,))})
    ds.extend({"x": [np.array([2**63 + 1], "u8"), None, np.array([2**63], "u8")]})
    assert ds.query("SELECT sid FROM dataset ORDER BY x[0]").sids.tolist() == [2, 0, 1]
    assert ds.query("SELECT max(x[0]) AS m FROM dataset")["m"].tolist() == [2**63 + 1]


def test_a_choice_between_a_truth_and_a_number_is_refused_by_name(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"x": types.Tensor("float32", (1,))})
    ds.extend({"x": [[1], [2], None]})
    choice = "CASE WHEN sid = 0 THEN any(x) ELSE array_sum(x) END"
    with pytest.raises(tl.InvalidQueryError, match=r"no one type has \(bool, float\).*CAST"):
        len(ds.query(f"SELECT sid FROM dataset ORDER BY {choice}"))
    cast = "CASE WHEN sid = 0 THEN CAST(any(x) AS DOUBLE) ELSE array_sum(x) END"
    assert ds.query(f"SELECT sid FROM dataset ORDER BY {cast} DESC").sids.tolist() == [1, 0, 2]


def test_complex_numbers_have_no_order(tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"z": types.Tensor("complex64", (2,))})
    ds.extend({"z": [[3 + 4j, 0], None, [1j, 0]]})
    with pytest.raises(
        tl.InvalidQueryError, match=r"z\[0\] gives a complex number \(sample with sid 0\).*abs\(x\)"
    ):
        len(ds.query("SELECT sid FROM dataset ORDER BY z[0]"))
    assert ds.query("SELECT sid FROM dataset ORDER BY abs(z[0])").sids.tolist() == [2, 0, 1]


def test_batches_of_nulls_take_the_type_of_others():
    computed = Computed("n", scalar("v"), "v")
    found = joined([pa.nulls(2), pa.array([1.5]), pa.array([2])], computed)
    assert found.type == pa.float64()
    assert found.to_pylist() == [None, None, 1.5, 2]
    assert joined([pa.nulls(1)], computed, pa.bool_()).type == pa.bool_()
    with pytest.raises(tl.InvalidQueryError, match=r"^v gives values .*\(bool, double\).*CAST"):
        joined([pa.array([True]), pa.array([1.5])], computed)


def test_links_are_followed(tmp_path):
    images = [np.full((4, 5, 3), i, np.uint8) for i in range(3)]
    paths = []
    for i, image in enumerate(images):
        source = tl.dataset(str(tmp_path / f"s{i}"), {"i": types.Image("png")})
        source.append({"i": image})
        paths.append(tmp_path / f"{i}.png")
        paths[-1].write_bytes(source["i"].encoded(0))
    ds = tl.dataset(str(tmp_path / "ds"), {"image": types.Link(types.Image("png"))})
    ds.extend({"image": paths})
    assert ds.query("SELECT image FROM dataset WHERE array_mean(image) > 0").sids.tolist() == [1, 2]


def test_batches_of_files_are_bounded_by_their_pixels(tmp_path, monkeypatch):
    ds = tl.dataset(str(tmp_path / "ds"), {"g/image": types.Image("png")})
    image = np.zeros((50, 40, 3), np.uint8)  # small as a file
    ds.extend({"g/image": [None, *[image] * 99]})
    monkeypatch.setattr(row_batches, "BATCH_BYTES", 10 * image.nbytes)
    view = ds.query("SELECT g.image FROM dataset")
    sizes = [len(next(iter(batch.values()))) for batch in view.batches()]
    assert set(sizes[:-1]) == {9}  # a byte a row is added
    assert sum(sizes) == 100


def test_a_choice_of_texts_may_give_none(shapes):
    view = shapes.ds.query(
        "SELECT COALESCE(note, CASE WHEN array_max(emb) < -90 THEN note END, 'none') AS n FROM dataset ORDER BY sid"
    )
    assert list(view["n"])[:2] == ["none", "n1"]
    never = shapes.ds.query(
        "SELECT count(CASE WHEN array_max(emb) < -90 THEN note END) AS n, count(*) AS all_ FROM dataset"
    )
    assert (never[0]["n"], never[0]["all_"]) == (0, 60)


def test_a_null_elsewhere_does_not_change_how_a_row_is_computed(tmp_path):
    """Beside a null, numbers were Python's: they took the dtype of the tensor, and wrapped around or did not fit."""
    kinds = {"i": "int64", "u": "uint64", "f": "float32", "s": "int8", "b": "bool"}
    rows = [
        {"x": np.array([100, 3], "u1"), "i": 300, "u": 2**64 - 1, "f": 0.1, "s": -128, "b": True},
        {"x": np.array([2, 200], "u1"), "i": -(2**62), "u": 5, "f": -3.5, "s": 100, "b": False},
    ]
    texts = ["i * x", "s * 2 + x[0]", "u + x[0]", "f * 0.1 + x", "b + x", "i + u + x[0]",
             "-CASE WHEN x[0] < 3 THEN f ELSE s END", "CASE WHEN x[0] < 3 THEN 3 ELSE 300 END * s",
             "COALESCE(u, x[0])", "CASE WHEN x[0] > 0 THEN f > 0.1 END"]  # fmt: skip
    found = []
    for number, given in enumerate((rows, [*rows, {"x": np.array([1, 1], "u1")}])):
        ds = tl.dataset(tmp_path / f"{number}", {"x": types.Tensor("uint8", (2,)), **kinds})
        ds.extend(given)
        for text in texts:
            values = [row["v"] for row in ds.query(f"SELECT {text} AS v FROM dataset")][:2]
            found.append((text, [(np.asarray(v).dtype, np.asarray(v).tolist()) for v in values]))
    assert found[: len(texts)] == found[len(texts) :]
    assert found[0][1][0] == (np.dtype("int64"), [30000, 900])
    order = "SELECT sid FROM dataset ORDER BY CASE WHEN x[0] > 1 THEN u END"
    assert ds.query(order).sids.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("what", "kind"),
    [("year({})", "date"), ("day({})", "timestamp"), ("date_trunc('month', {})", "date"),
     ("length({})", "string"), ("abs({})", "int8"), ("round({})", "decimal(4, 2)")],
)  # fmt: skip
@pytest.mark.parametrize("choice", ["CASE WHEN x[0] > 1 THEN v END", "COALESCE(NULLIF(v, v), IF(x[0] > 1, v, v))"])  # fmt: skip
def test_a_choice_without_values_has_the_type_of_its_column(tmp_path, what, kind, choice):
    """DuckDB does not know which `year` is meant of a null without a type."""
    ds = tl.dataset(tmp_path / "ds", {"x": types.Tensor("int8", (1,)), "v": kind})
    ds.extend({"x": [[0], [1]]})
    for where, wanted in (("", [None, None]), (" WHERE sid < 0", [])):
        view = ds.query(
            f"SELECT lower(CAST({what.format(choice)} AS TEXT)) AS c FROM dataset{where}"
        )
        assert view.to_arrow()["c"].to_pylist() == wanted
