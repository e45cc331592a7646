"""What the benchmark of queries asks, and of what: tables of numbers, images with boxes, vectors.

Every table is written once, by this package; what peers keep otherwise is written beside it. Whoever asks, the answer
is compared with NumPy's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sample_media

ROWS, VECTORS, SIZE = 10_000_000, 1_000_000, 128
CITIES = 1_000
NEAREST = 10
SHARE = 0.1
"""Of the samples that a view has."""

RELATIONAL = {
    "filter": "SELECT sid, score FROM dataset WHERE city = 17 AND score > 0.5",
    "range": "SELECT count(*) AS n, sum(score) AS total FROM dataset WHERE taken BETWEEN 30000000 AND 30300000",
    "aggregate": "SELECT city, count(*) AS n, avg(score) AS mean, max(taken) AS newest FROM dataset GROUP BY city",
    "join": "SELECT c.region, count(*) AS n, avg(d.score) AS mean FROM dataset AS d "
    "JOIN cities AS c ON d.city = c.city GROUP BY c.region",
    "top": "SELECT sid, score FROM dataset ORDER BY score DESC, sid LIMIT 100",
}

FIGURE4 = (
    "SELECT images[100:500, 100:500, 0:2] AS crop, NORMALIZE(boxes, [100, 100, 400, 400]) AS box FROM dataset "
    'WHERE IOU(boxes, "training/boxes") > 0.95 ORDER BY IOU(boxes, "training/boxes") ARRANGE BY labels'
)
"""The query of Figure 4 of the Deep Lake paper, as it is printed there."""

BOUND = 128
PIXELS = f"SELECT sid FROM dataset WHERE array_mean(images[50:150, 50:150]) > {BOUND}"
NEIGHBOURS = f"SELECT sid FROM dataset ORDER BY l2_distance(emb, :q) LIMIT {NEAREST}"
VIEW = f"SELECT images, labels FROM dataset WHERE pick < {SHARE}"


def numbers(count: int) -> dict[str, np.ndarray]:
    """Return columns of scalars; times grow, with some disorder, as those of photographs do."""
    rng = np.random.default_rng(0)
    return {
        "city": rng.integers(0, CITIES, count, np.int32),
        "score": rng.random(count, np.float32),
        "taken": np.arange(count, dtype=np.int64) * 10 + rng.integers(0, 1_000, count),
        "price": np.round(rng.random(count) * 100, 2),
    }


def boxes(count: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return boxes (x, y, width, height) of each image, and others that are near them for a twentieth of the images."""
    rng = np.random.default_rng(1)
    ours, theirs = [], []
    for number in range(count):
        some = np.hstack(
            [rng.uniform(0, 150, (1 + number % 4, 2)), rng.uniform(40, 100, (1 + number % 4, 2))]
        )
        far = rng.uniform(-0.2, 0.2) if number % 20 == 0 else rng.uniform(5, 30)
        ours.append(some.astype(np.float32))
        theirs.append((some + far).astype(np.float32))
    return ours, theirs


def vectors(count: int) -> np.ndarray:
    """Return vectors of float32."""
    return np.random.default_rng(2).standard_normal((count, SIZE), np.float32)


def question() -> np.ndarray:
    """Return the vector whose neighbours are wanted."""
    return np.random.default_rng(3).standard_normal(SIZE, np.float32)


def write(part: str, count: int, media: Path, work: Path) -> dict[str, Any]:
    """Write what a part asks, if it is not there; return the arguments for `query_engines`."""
    import tensorlake_spark as tl

    made = {"count": count, "place": str(work / part), "work": str(work), "media": str(media)}
    if part == "relational":
        made["cities"] = str(work / "cities.parquet")
    if Path(made["place"]).exists():
        return made
    if part == "relational":
        schema: dict[str, Any] = {
            "city": "int32",
            "score": "float32",
            "taken": "int64",
            "price": "float64",
        }
        tl.dataset(made["place"], schema=schema).extend(numbers(count))
        regions = [f"region_{k % 23:02}" for k in range(CITIES)]
        pq.write_table(
            pa.table({"city": np.arange(CITIES, dtype=np.int32), "region": regions}), made["cities"]
        )
    elif part == "nearest":
        ds = tl.dataset(made["place"], schema={"emb": tl.types.Embedding(SIZE)})
        ds.extend({"emb": vectors(count)})
    else:
        samples = sample_media.load(sample_media.cached("photos", count, media))
        ours, theirs = boxes(count)
        schema = {
            "images": tl.types.Image("jpeg"), "labels": tl.types.ClassLabel(sample_media.names()), "pick": "float32",
            "boxes": tl.types.BoundingBox("xywh"), "training/boxes": tl.types.BoundingBox("xywh"),
        }  # fmt: skip
        ds = tl.dataset(made["place"], schema=schema)
        pick = np.random.default_rng(4).random(count, np.float32)
        ds.extend({"images": samples.images, "labels": samples.labels, "pick": pick, "boxes": ours,
                   "training/boxes": theirs})  # fmt: skip
    return made


def same(found: Any, wanted: Any) -> None:
    """Raise AssertionError if two tables differ, in whatever order their rows are."""
    import pandas as pd

    def ordered(table: Any) -> pd.DataFrame:
        frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
        return frame.sort_values(list(frame.columns)).reset_index(drop=True)

    one, two = ordered(found), ordered(wanted)
    if list(one.columns) != list(two.columns) or len(one) != len(two):
        raise AssertionError(
            f"{one.shape} {list(one.columns)}, not {two.shape} {list(two.columns)}"
        )
    for name in one.columns:
        a, b = one[name], two[name]
        if a.dtype.kind in "fiu":
            if not np.allclose(a.to_numpy(float), b.to_numpy(float), rtol=1e-5, equal_nan=True):
                raise AssertionError(f"column {name} differs")
        elif a.tolist() != b.tolist():
            raise AssertionError(f"column {name} differs")


def loads(text: str) -> dict[str, Any]:
    """Return the arguments of a child."""
    found: dict[str, Any] = json.loads(text)
    return found
