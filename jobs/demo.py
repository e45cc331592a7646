"""The main job on real input: photographs into the lake with Spark, slices back with Spark and Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

import tensorlake_spark as tl
from tensorlake_spark.indexing.plan import size_text
from tensorlake_spark.spark import local_session

HERE = Path(__file__).resolve().parent
OUT = Path("demo-output")
LAKE = OUT / "lake"
COUNT, HEIGHT, WIDTH = 32, 384, 512
KEY = np.s_[10:20, :, 128:256, 128:384]
TEXT = "10:20, :, 128:256, 128:384"


def cut_photographs() -> np.ndarray[Any, Any]:
    """Cut the two photographs of scikit-learn into a batch, and write it as PNG files."""
    photographs = load_sample_images().images
    folder = OUT / "photographs"
    folder.mkdir(parents=True)
    batch = np.empty((COUNT, 3, HEIGHT, WIDTH), np.uint8)
    rng = np.random.default_rng(0)
    for i in range(COUNT):
        photograph = photographs[i % 2]
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


def main() -> int:
    """Run the demo; 0 if every answer equals NumPy's."""
    shutil.rmtree(OUT, ignore_errors=True)
    batch = cut_photographs()
    times: dict[str, float] = {}

    print(f"1. spark-submit jobs/ingest.py: {COUNT} PNG files into {LAKE}")
    start = time.perf_counter()
    submit = Path(sys.executable).with_name("spark-submit")
    environment = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    command = [
        str(submit), "--master", "local[2]", "--conf", "spark.ui.enabled=false",
        "--conf", "spark.log.level=ERROR",
        str(HERE / "ingest.py"), "--table", str(LAKE), "--id", "photos", "--stack",
        "--channels-first", "--axes", "image,channel,y,x", f"{OUT}/photographs/*.png",
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        return done.returncode
    print("   " + done.stdout.strip().replace("\n", "\n   "))
    times["ingest, with the start of Spark"] = time.perf_counter() - start

    print(f"\n2. The slice [{TEXT}] with plain Python")
    start = time.perf_counter()
    ref = tl.open(LAKE)["photos"]
    from_python = ref[KEY]
    times["slice in Python, with opening"] = time.perf_counter() - start
    plan = ref.explain(KEY)
    print("   " + str(plan).replace("\n", "\n   "))

    print("\n3. The same slice with Spark")
    session = local_session()
    frame = session.read.format("tensor").option("id", "photos").option("slice", TEXT)
    frame.load(str(LAKE)).collect()  # the first query also starts Python workers
    start = time.perf_counter()
    rows = frame.load(str(LAKE)).collect()
    times["slice in Spark, warm"] = time.perf_counter() - start
    from_spark = assemble(rows, batch[KEY].shape)
    session.stop()

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
        **{name: f"{seconds:.3f} s" for name, seconds in times.items()},
        **{name: "yes" if good else "NO" for name, good in checks.items()},
        "picture of the slice": str(picture),
    }
    for name, value in table.items():
        print(f"   {name:<38} {value}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
