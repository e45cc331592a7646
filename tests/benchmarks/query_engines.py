"""Who answers in the benchmark of queries: ours, and for each part the peers that can.

Each function gets the arguments of `query_workloads.write`, runs in a fresh process, and returns its figures: in ms
the median of some answers after the first, and ``first``, which opens what is asked too.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import query_workloads as workloads
import sample_media
from loader_engines import BATCH, threaded
from loader_media import touch

AGAIN = 5
TURNS = 4
MAKINGS = 8
Given = dict[str, Any]
Figures = dict[str, float]


def timed(act: Callable[[], Any], again: int = AGAIN) -> tuple[float, float, Any]:
    """Return in ms the first time and the median of the later ones, and the last answer."""
    times = []
    found = None
    for _ in range(1 + again):
        start = time.perf_counter()
        found = act()
        times.append((time.perf_counter() - start) * 1e3)
    return times[0], statistics.median(times[1:] or times), found


def opened(given: Given) -> Any:
    """Return our dataset."""
    import tensorlake_spark as tl

    return tl.dataset(given["place"], create=False)


# ------------------------------------------------------------------ relational


def ours_relational(given: Given) -> Figures:
    """Ask ours; a table of its own for the answers lets the others be compared."""
    out = {}
    for name, sql in workloads.RELATIONAL.items():
        ds = opened(given)
        first, later, found = timed(lambda: ds.query(sql, cities=given["cities"]).to_arrow())  # noqa: B023
        out |= {f"{name}_first": first, name: later}
        import pyarrow.parquet as pq

        pq.write_table(found, f"{given['work']}/answer-{name}.parquet")
    return out


def duckdb_relational(given: Given) -> Figures:
    """Ask DuckDB for the same of the same Parquet files."""
    import duckdb
    import pyarrow.parquet as pq
    from deltalake import DeltaTable

    files = [f"'{uri.removeprefix('file://')}'" for uri in DeltaTable(given["place"]).file_uris()]
    con = duckdb.connect()
    # Or it reads the footers for each answer.
    con.execute("SET GLOBAL parquet_metadata_cache = true")
    con.execute(f"CREATE VIEW dataset AS SELECT * FROM read_parquet([{', '.join(files)}])")
    con.execute(f"CREATE VIEW cities AS SELECT * FROM read_parquet('{given['cities']}')")
    out = {}
    for name, sql in workloads.RELATIONAL.items():
        first, later, found = timed(lambda: con.sql(sql).to_arrow_table())  # noqa: B023
        answer = Path(f"{given['work']}/answer-{name}.parquet")
        if answer.exists():
            workloads.same(pq.read_table(answer), found)
        out |= {f"{name}_first": first, name: later}
    return out


# ------------------------------------------------------------------ Figure 4


def ours_figure4(given: Given) -> Figures:
    """Ask the query of the paper, and take every crop and box."""
    ds = opened(given)
    found: list[Any] = []

    def act() -> None:
        found.clear()
        for batch in ds.query(workloads.FIGURE4).batches():
            found.append((touch(list(batch["crop"])), sum(map(len, batch["box"]))))

    first, later, _ = timed(act)
    wanted = selected(given)
    if sum(f[0] for f in found) != len(wanted):
        raise AssertionError(f"{sum(f[0] for f in found)} crops, not {len(wanted)}")
    out = {"query_first": first, "query": later, "rows": len(wanted)}
    plan = ds.query(workloads.FIGURE4).explain()
    read = sum(one.bytes for one in (*plan.conditions, *plan.selected))
    media = sample_media.cached("photos", given["count"], Path(given["media"]))
    images = sample_media.load(media).images
    boxes = [
        np.concatenate(pair).nbytes for pair in zip(*workloads.boxes(given["count"]), strict=True)
    ]
    # The files of the images that are chosen, all boxes for the condition, and those that are selected.
    need = sum(len(images[k]) + boxes[k] // 2 for k in wanted) + sum(boxes)
    return out | {"bytes": read / need}


def best_match(a: np.ndarray, b: np.ndarray) -> float:
    """Return the mean over the boxes of `a` of the best match in `b`, boxes as x, y, width, height."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, :2] + a[:, None, 2:], b[None, :, :2] + b[None, :, 2:])
    both = np.clip(high - low, 0, None).prod(2)
    area = a[:, None, 2:].prod(2) + b[None, :, 2:].prod(2) - both
    return float((both / area).max(1).mean())


def selected(given: Given) -> list[int]:
    """Return the samples of Figure 4 in their order."""
    ours, theirs = workloads.boxes(given["count"])
    match = np.array([best_match(a, b) for a, b in zip(ours, theirs, strict=True)])
    chosen = np.flatnonzero(match > 0.95)
    found: list[int] = chosen[np.argsort(match[chosen], kind="stable")].tolist()
    return found


def numpy_figure4(given: Given) -> Figures:
    """Do the same by hand: all boxes in a loop, then the images that are left, one after the other."""
    import simplejpeg

    ds = opened(given)

    def act() -> int:
        ours, theirs = ds["boxes"][:], ds["training/boxes"][:]
        labels = ds["labels"][:]
        match = np.array([best_match(a, b) for a, b in zip(ours, theirs, strict=True)])
        chosen = np.flatnonzero(match > 0.95)
        chosen = chosen[np.argsort(match[chosen], kind="stable")]
        chosen = chosen[np.argsort(labels[chosen], kind="stable")]
        out = []
        for k in chosen.tolist():
            image = simplejpeg.decode_jpeg(ds["images"].encoded(k))
            box = (ours[k] - np.array([100, 100, 0, 0], np.float32)) / np.float32(400)
            out.append((image[100:500, 100:500, 0:2], box))
        return len(out)

    first, later, rows = timed(act)
    if rows != len(selected(given)):
        raise AssertionError(f"{rows} rows")
    return {"query_first": first, "query": later, "rows": rows}


# ------------------------------------------------------------------ pixels


def bright(given: Given) -> np.ndarray:
    """Return the samples whose crop is bright, by simplejpeg and NumPy."""
    import simplejpeg

    images = sample_media.load(
        sample_media.cached("photos", given["count"], Path(given["media"]))
    ).images
    means = threaded(lambda image: simplejpeg.decode_jpeg(image)[50:150, 50:150].mean(), images)
    return np.flatnonzero(np.array(list(means)) > workloads.BOUND)


def ours_pixels(given: Given) -> Figures:
    """Ask for images by the mean of a crop; the rate is in images a second."""
    ds = opened(given)
    _, later, found = timed(lambda: np.asarray(ds.query(workloads.PIXELS).to_arrow()["sid"]), 2)
    if not np.array_equal(np.sort(found), bright(given)):
        raise AssertionError(f"{len(found)} samples, not {len(bright(given))}")
    return {"rate": given["count"] / later * 1e3}


def loader_pixels(given: Given) -> Figures:
    """Let the loader decode all images, in their order."""
    loader = opened(given).loader(BATCH, columns=["images"])

    def act() -> int:
        return sum(touch(batch["images"]) for batch in loader)

    _, later, count = timed(act, 2)
    if count != given["count"]:
        raise AssertionError(f"{count} samples")
    return {"rate": count / later * 1e3}


def deeplake_pixels(given: Given) -> Figures:
    """Ask Deep Lake, whose AVG is of an array; it is given few images, as it takes long."""
    import deeplake

    count = min(given["count"], 4_000)
    images = sample_media.load(
        sample_media.cached("photos", given["count"], Path(given["media"])), count
    ).images
    place = f"{given['work']}/deeplake-pixels"
    shutil.rmtree(place, ignore_errors=True)
    ds = deeplake.create(place)
    ds.add_column("images", deeplake.types.Image(sample_compression="jpeg"))
    ds.append({"images": images})
    ds.commit()
    sql = f"SELECT * WHERE AVG(images[50:150, 50:150]) > {workloads.BOUND}"
    _, later, found = timed(lambda: len(deeplake.open(place).query(sql)), 2)
    if abs(found - (bright(given) < count).sum()) > 0.01 * count:  # decoders differ
        raise AssertionError(f"{found} samples")
    return {"rate": count / later * 1e3}


# ------------------------------------------------------------------ nearest


def wanted_neighbours(given: Given) -> list[int]:
    """Return the neighbours by NumPy."""
    x, q = workloads.vectors(given["count"]), workloads.question()
    return np.argsort(((x - q) ** 2).sum(1), kind="stable")[: workloads.NEAREST].tolist()


def ours_nearest(given: Given) -> Figures:
    """Ask for the neighbours of a vector, with compiled loops where numba is there.

    Without being asked, a process begins to load them at the end of the first question, which takes longer than all
    later ones: their median would be that of NumPy alone, beside a compiler.
    """
    from tensorlake_spark.kernel_switch import SWITCH, installed

    if installed():
        os.environ.setdefault(SWITCH, "fast")
    ds = opened(given)
    q = {"q": workloads.question()}
    first, later, found = timed(
        lambda: ds.query(workloads.NEIGHBOURS, parameters=q).to_arrow()["sid"].to_pylist()
    )
    if found != wanted_neighbours(given):
        raise AssertionError(f"{found}")
    return {"query_first": first, "query": later}


def numpy_nearest(given: Given) -> Figures:
    """Time one matrix product over the array in memory, which is less than the answer needs."""
    x, q = workloads.vectors(given["count"]), workloads.question()
    first, later, _ = timed(lambda: x @ q)
    return {"query_first": first, "query": later}


def lance_nearest(given: Given) -> Figures:
    """Ask LanceDB without an index."""
    import lancedb
    import pyarrow as pa

    place = f"{given['work']}/lancedb-nearest"
    shutil.rmtree(place, ignore_errors=True)
    x = workloads.vectors(given["count"])
    column = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), workloads.SIZE)
    made = pa.table({"sid": np.arange(len(x)), "vector": column})
    table = lancedb.connect(place).create_table("vectors", made)
    del x, column, made
    q = workloads.question()

    def act() -> list[int]:
        found = (
            table.search(q).select(["sid"]).limit(workloads.NEAREST).to_arrow()["sid"].to_pylist()
        )
        return found  # type: ignore[no-any-return]

    first, later, found = timed(act)
    if found != wanted_neighbours(given):
        raise AssertionError(f"{found}")
    shutil.rmtree(place)
    return {"query_first": first, "query": later}


# ------------------------------------------------------------------ parse, views


def ours_parse(given: Given) -> Figures:
    """Parse and plan the query of the paper and a join, which no sample is read for."""
    ds = opened(given)
    texts = {
        "figure4": workloads.FIGURE4,
        "join": "SELECT a.sid, b.labels FROM dataset AS a JOIN dataset AS b ON a.sid = b.sid WHERE a.pick < 0.1",
    }
    out = {}
    for name, sql in texts.items():
        others = (sql + " " * n for n in range(100))  # what was asked before is not planned again
        first, later, _ = timed(lambda: ds.query(next(others)), 30)  # noqa: B023
        out |= {f"{name}_first": first, name: later}
    return out


def ours_views(given: Given) -> Figures:
    """Load a view of random samples, materialise it in turns with ingesting as many, and load that; and the dataset."""
    import tensorlake_spark as tl

    ds = opened(given)

    def seconds(loader: Any) -> float:
        start = time.perf_counter()
        count = sum(touch(batch["images"]) for batch in loader)
        return (time.perf_counter() - start) / count

    view = ds.query(workloads.VIEW)
    samples = sample_media.load(sample_media.cached("photos", given["count"], Path(given["media"])))
    times: dict[str, list[float]] = {"materialize": [], "ingest": []}
    for turn, name in product(range(MAKINGS), times):
        place = f"{given['work']}/views-{name}"
        shutil.rmtree(place, ignore_errors=True)
        start = time.perf_counter()
        if name == "materialize":
            ds.query(workloads.VIEW).materialize(place)
        else:
            schema = {
                "images": tl.types.Image("jpeg"),
                "labels": tl.types.ClassLabel(sample_media.names()),
            }
            made = tl.dataset(place, schema=schema)
            made.extend(
                {"images": samples.images[: len(view)], "labels": samples.labels[: len(view)]}
            )
        if turn:  # whoever came first would pay for what both touch first: modules, memory
            times[name].append(time.perf_counter() - start)
        found = tl.dataset(place, create=False)
        if len(found) != len(view):
            raise AssertionError(f"{len(found)} samples, not {len(view)}")
    out = {name: len(view) / statistics.median(took) for name, took in times.items()}
    found = tl.dataset(f"{given['work']}/views-materialize", create=False)
    loaders = {
        "sequential": ds.loader(BATCH, columns=["images", "labels"]),
        "streamed": view.loader(BATCH),
        "materialized": found.loader(BATCH, columns=["images", "labels"]),
    }
    shares = {name: [] for name in loaders}
    for turn, name in product(range(TURNS), loaders):
        # As many images in each turn: one short epoch tells little.
        epochs = 1 if name == "sequential" else max(1, len(ds) // len(view))
        took = [seconds(loaders[name]) for _ in range(epochs)]
        if turn:
            shares[name].append(statistics.median(took))
    out |= {name: 1 / statistics.median(took) for name, took in shares.items()}
    return out


ENGINES: dict[str, dict[str, tuple[Callable[[Given], Figures], str, str]]] = {
    "relational": {
        "tensorlake": (ours_relational, "tensorlake-spark", "ds.query(...).to_arrow()"),
        "duckdb": (duckdb_relational, "duckdb", "read_parquet of the same files, to_arrow_table()"),
    },
    "figure4": {
        "tensorlake": (ours_figure4, "tensorlake-spark", "ds.query(...).batches()"),
        "numpy": (numpy_figure4, "numpy", "a loop by hand, one image after the other, by simplejpeg"),
    },
    "pixels": {
        "tensorlake": (ours_pixels, "tensorlake-spark", "ds.query(...).to_arrow()"),
        "loader": (loader_pixels, "tensorlake-spark", "ds.loader(64, columns=['images']), which only decodes"),
        "deeplake": (deeplake_pixels, "deeplake", "TQL, AVG(images[50:150, 50:150]), of 4,000 images at most"),
    },
    "nearest": {
        "tensorlake": (ours_nearest, "tensorlake-spark", "ds.query(...).to_arrow()"),
        "numpy": (numpy_nearest, "numpy", "x @ q in memory: a matrix product, no search"),
        "lancedb": (lance_nearest, "lancedb", "table.search(q).limit(10), no index"),
    },
    "parse": {"tensorlake": (ours_parse, "tensorlake-spark", "ds.query(...), which reads no sample")},
    "views": {"tensorlake": (ours_views, "tensorlake-spark", "view.loader(64), view.materialize(...)")},
}  # fmt: skip
