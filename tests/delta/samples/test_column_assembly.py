"""Columns are put together from payloads and what Arrow reads."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from other_writer import write_by_another
from stored_rows import everything

import tensorlake_spark as tl
from tensorlake_spark.delta.samples import column_assembly
from tensorlake_spark.delta.samples.column_assembly import pruned
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn


def test_views_are_the_same_bytes(stored):
    chosen = np.sort(np.random.default_rng(2).integers(0, 800, 300))
    found = stored.rows([("image",)], chosen, views=True).column("image").combine_chunks()
    assert found.type.field("data").type == pa.binary_view()
    assert found.to_pylist() == everything().take(chosen).column("image").to_pylist()


def test_parts_of_structs(stored):
    found = stored.rows(
        [("image", "height"), ("g", "image", "data"), ("label",)], np.array([3, 799])
    )
    wanted = everything().take([3, 799])
    assert found.column("label").equals(wanted.column("label"))
    heights = [None if one is None else one["height"] for one in wanted.column("image").to_pylist()]
    got = [None if one is None else one["height"] for one in found.column("image").to_pylist()]
    assert got == heights
    assert [field.name for field in found.column("g").type] == ["image"]


def test_many_columns_are_put_together_in_linear_time(tmp_path, monkeypatch):
    """A sample of 3,000 columns took five seconds: for each column all names were listed and compared."""
    names = [f"c{number}" for number in range(50)]
    ds = tl.dataset(tmp_path / "ds", dict.fromkeys(names, "int32"))
    ds.extend({name: [1, 2] for name in names})
    listed = []

    class Counted:
        def __init__(self, table):
            self.table, self.column = table, table.column

        @property
        def column_names(self):
            listed.append(self)
            return self.table.column_names

    small = column_assembly._small
    monkeypatch.setattr(column_assembly, "_small", lambda *args: Counted(small(*args)))
    assert ds[1] == dict.fromkeys(names, 2)
    assert len(listed) == 1


def test_columns_are_found_among_many_by_few_comparisons():
    compared = []

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

    def leaf(*parts):
        return LeafColumn(tuple(map(Name, parts)), pa.int32(), 1, False, ".".join(parts))

    group = pa.struct([(f"c{number}", pa.int32()) for number in range(100)])
    schema = pa.schema([("g", group), ("h", group)])
    found = pruned(schema, [leaf("g", f"c{number}") for number in range(100)])
    assert found == pa.schema([("g", group)])
    assert len(compared) < 1000


FAR = [dt.datetime(2024, 2, 3, 4, 5, 6, 789), dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1)]


def test_times_as_spark_writes_them(tmp_path):
    """INT96, Spark's default. Times had no zone, and 9999 was read as 1816."""
    ds = tl.dataset(tmp_path / "ds", {"time": "timestamp", "wall": "timestamp_ntz"})
    times = [one.replace(tzinfo=dt.timezone.utc) for one in FAR]
    ds.extend({"time": times, "wall": FAR})
    write_by_another(
        ds.uri, lambda rows, path: pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    )
    ds.refresh()
    assert ds.to_arrow()["time"].to_pylist() == times
    assert ds.to_arrow()["wall"].to_pylist() == FAR
    assert ds[1]["time"] == times[1]
    assert ds.to_arrow(where="time > '2000-01-01'")["wall"].to_pylist() == FAR[:2]
    ds.extend({"time": times[:1], "wall": FAR[:1]})  # a file of ours beside it
    assert ds.to_arrow()["time"].to_pylist() == [*times, times[0]]
    ds.optimize()
    assert ds.to_arrow()["time"].to_pylist() == [*times, times[0]]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_files_whose_texts_are_of_several_types(tmp_path, kind):
    """As pandas writes them: a batch of samples in two files ended with an error of Arrow."""
    ds = tl.dataset(tmp_path / "ds", {"text": tl.types.Text(), "tags": tl.types.Sequence("int32")})
    samples = {"text": ["a", None, "b"], "tags": [[1], [], [2, 3]]}
    ds.extend(samples)

    def write(rows, path):
        lists = rows.column("tags").cast(pa.large_list(pa.int32()))
        texts = rows.column("text").cast(kind)
        pq.write_table(pa.table({"sid": rows["sid"], "tags": lists, "text": texts}), path)

    write_by_another(ds.uri, write)
    ds.refresh()
    ds.extend(samples)
    found = ds.to_arrow()
    assert found["text"].to_pylist() == samples["text"] * 2
    assert found["tags"].to_pylist() == samples["tags"] * 2
    assert len(ds.to_arrow(where="text = 'b'")) == 2
