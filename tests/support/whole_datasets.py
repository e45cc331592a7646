"""A dataset with all that lies apart: an apart column, tiles, a group."""

import numpy as np

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.samples.appending import commit_files

COLUMNS = {
    "label": "int32",
    "small": tl.types.Image("jpeg"),
    "image": tl.types.Image("jpeg", apart=True),
    "scan": tl.types.Tensor("uint8", (None, None)),
    "training/name": tl.types.Text(),
}
TILE_BYTES = 1000


def samples_of(jpegs, numbers, seed=0):
    """Columns of some samples; every third scan is large, one in seven has no image."""
    rng = np.random.default_rng(seed)
    return {
        "label": np.array([*numbers], np.int32),
        "small": [jpegs[n % 30] for n in numbers],
        "image": [None if n % 7 == 3 else jpegs[(n + 11) % 30] for n in numbers],
        "scan": [
            rng.integers(0, 255, (60, 50) if n % 3 == 0 else (5, 4), np.uint8) for n in numbers
        ],
        "training/name": [f"name {n}" for n in numbers],
    }


def contents(ds):
    """What a dataset holds, to be compared."""
    return [
        (
            int(sid), one["label"], one["training/name"], one["scan"].tobytes(),
            *(None if one[c] is None else one[c].tobytes() for c in ("small", "image")),
        )
        for sid, one in zip(ds.sids, ds, strict=True)
    ]  # fmt: skip


def replace_parts(ds, sids, columns):
    """Give samples other values in columns whose rows stay: apart ones, and tiles of the same shape."""
    parts = PartsWriter(ds._storage, ds.stored.snapshot, ds.schema, replaces=True)
    parts.take(parts.opened(columns, 0), sids, 0)
    ds._show(commit_files(ds._storage, [], "update", parts.finish()))
