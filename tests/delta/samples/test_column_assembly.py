"""Columns are put together from payloads and what Arrow reads."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from other_writer import write_by_another
from stored_rows import everything

import tensorlake_spark as tl


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
