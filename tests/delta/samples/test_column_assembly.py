"""Columns are put together from payloads and what Arrow reads."""

import numpy as np
import pyarrow as pa
from stored_rows import everything


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
