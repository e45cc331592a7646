"""A dataset on real data: digits, photographs and drawn shapes with boxes and masks; ``make demo-samples`` runs it.

It writes samples of three kinds into one dataset, asks for some of them, changes them, reads a crop of a large scan,
opens an earlier version, takes in folders of files, and draws a contact sheet. Every answer is compared with NumPy.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tensorlake_spark as tl
from tensorlake_spark.datasets.sources.source_kinds import found_at, source_of
from tensorlake_spark.indexing.read_plan import size_text

try:
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
    from PIL import Image, ImageDraw
    from sklearn.datasets import load_digits, load_sample_images
except ImportError as error:
    MISSING = str(error)  # told by main, so that --help needs nothing
else:
    MISSING = ""

Array = np.ndarray[Any, Any]

OUT = Path("demo-output") / "samples"
DIGITS, PHOTOGRAPHS, SCENES = 1797, 24, 60
SIDE = 128  # of a drawn scene, in pixels
SHAPES = ("circle", "square", "triangle")
PLACES = ("china", "flower")
COLOURS = ("#d1495b", "#00798c", "#edae49", "#66a182", "#8d5a97")
CROP = np.s_[1500:1756, 2000:2256]

SCHEMA = {
    "image": tl.types.Image("png"),
    "source": "string",
    "label": tl.types.ClassLabel([*map(str, range(10)), *PLACES]),
    "marked/boxes": tl.types.BoundingBox("xyxy"),
    "marked/classes": tl.types.Sequence(tl.types.ClassLabel(["ink", *SHAPES])),
    "marked/mask": tl.types.SegmentMask(["background", "ink", *SHAPES]),
    "embedding": tl.types.Embedding(64),
    "scan": tl.types.Tensor("uint8", (None, None, 3)),
}


def embedding(image: Array) -> Array:
    """Return a small grey copy of an image as a vector of length one: a stand-in for what a model gives."""
    grey = np.asarray(Image.fromarray(image).convert("L").resize((8, 8), Image.Resampling.BOX))
    vector = grey.astype(np.float32).ravel() + 1
    return np.asarray(vector / np.float32(np.linalg.norm(vector)))


def digits(count: int) -> Iterator[dict[str, Any]]:
    """Yield the handwritten digits of scikit-learn: the class of each, and a box around its ink."""
    found = load_digits()
    for pixels, label in zip(found.images[:count], found.target.tolist()):
        image = (pixels * (255 / 16)).astype(np.uint8)
        ink = image > 60
        rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
        box = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
        yield {
            "image": image, "source": "digits", "label": label, "embedding": embedding(image),
            "marked/boxes": [box], "marked/classes": ["ink"], "marked/mask": ink.astype(np.uint8),
        }  # fmt: skip


def photographs(count: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield crops of the two photographs of scikit-learn; nothing is marked in them."""
    whole = load_sample_images().images
    for number in range(count):
        y, x = (int(rng.integers(0, n - 192)) for n in whole[0].shape[:2])
        image = np.ascontiguousarray(whole[number % 2][y : y + 192, x : x + 192])
        yield {
            "image": image,
            "source": "photographs",
            "label": PLACES[number % 2],
            "embedding": embedding(image),
        }


def scenes(count: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield drawn shapes with a box, a class and the pixels of each: what a detector learns from."""
    for _ in range(count):
        image = Image.new("RGB", (SIDE, SIDE), "#f4f1ea")
        mask = Image.new("L", (SIDE, SIDE), 0)
        boxes: list[tuple[int, ...]] = []
        classes: list[str] = []
        for _ in range(int(rng.integers(2, 5))):
            size = int(rng.integers(22, 46))
            x, y = (int(n) for n in rng.integers(2, SIDE - size - 2, 2))
            box = (x, y, x + size, y + size)
            if any(_overlap(box, other) for other in boxes):
                continue
            kind = int(rng.integers(0, len(SHAPES)))
            colour = COLOURS[int(rng.integers(0, len(COLOURS)))]
            _draw(ImageDraw.Draw(image), SHAPES[kind], box, colour)
            _draw(ImageDraw.Draw(mask), SHAPES[kind], box, kind + 2)
            boxes.append(box)
            classes.append(SHAPES[kind])
        pixels = np.asarray(image)
        yield {
            "image": pixels, "source": "scenes", "embedding": embedding(pixels),
            "marked/boxes": boxes, "marked/classes": classes, "marked/mask": np.asarray(mask),
        }  # fmt: skip


def _overlap(a: Sequence[int], b: Sequence[int]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _draw(pen: ImageDraw.ImageDraw, kind: str, box: tuple[int, ...], colour: str | int) -> None:
    x0, y0, x1, y1 = box[0], box[1], box[2] - 1, box[3] - 1
    if kind == "circle":
        pen.ellipse((x0, y0, x1, y1), fill=colour)
    elif kind == "square":
        pen.rectangle((x0, y0, x1, y1), fill=colour)
    else:
        pen.polygon(((x0, y1), (x1, y1), ((x0 + x1) // 2, y0)), fill=colour)


def all_samples() -> list[dict[str, Any]]:
    """Return the samples of the three kinds."""
    rng = np.random.default_rng(0)
    return [*digits(DIGITS), *photographs(PHOTOGRAPHS, rng), *scenes(SCENES, rng)]


# ------------------------------------------------------------------ the steps


def write(samples: list[dict[str, Any]]) -> tuple[tl.Dataset, dict[str, bool]]:
    """Write all samples in one commit."""
    print(f"1. {len(samples)} samples of three kinds into {OUT / 'dataset'}")
    start = time.perf_counter()
    ds = tl.dataset(str(OUT / "dataset"), SCHEMA)
    ds.extend(iter(samples))
    show(f"{ds}\nwritten in {time.perf_counter() - start:.2f} s, images encoded as PNG")
    last = len(samples) - 1
    labels = np.array([s["label"] for s in samples[:DIGITS]])
    return ds, {
        "images equal NumPy's": all(
            np.array_equal(ds["image"][i], samples[i]["image"]) for i in (0, DIGITS, last)
        ),
        "labels equal NumPy's": np.array_equal(ds["label"][:DIGITS], labels),
        "masks equal NumPy's": np.array_equal(
            ds["marked/mask"][last], samples[last]["marked/mask"]
        ),
    }


def ask(ds: tl.Dataset, samples: list[dict[str, Any]]) -> dict[str, bool]:
    """Ask for samples by a condition, and for those that look alike."""
    print("\n2. Samples by a condition, and by likeness")
    where = "label = '7' OR image.height > 150"
    found = ds.to_pandas(["source", "label"], where=where)
    want = [i for i, s in enumerate(samples) if s.get("label") == 7 or len(s["image"]) > 150]
    show(f"{where}\n{found.groupby('source').size().to_string()}")
    show(ds.explain(where, ["source", "label"]))
    vectors = ds["embedding"][:]
    near = np.argsort(-(vectors @ vectors[0]))[:12]
    labels = [samples[i].get("label") for i in near.tolist()]
    show(f"nearest to sample 0, a {labels[0]}: {labels}")
    everything = np.stack([s["embedding"] for s in samples])
    return {
        "the condition finds what NumPy finds": found.index.tolist() == want,
        "embeddings equal NumPy's": np.array_equal(vectors, everything),
    }


def change(ds: tl.Dataset, samples: list[dict[str, Any]]) -> dict[str, bool]:
    """Change, add and delete, and open the version before."""
    print("\n3. Changes, each of which is one commit, and the version before them")
    before = ds.version
    ds.tag("as written")
    ds.add_column("checked", "bool", False)
    count = ds.update("source = 'photographs'", {"checked": True})
    nine = max(i for i, s in enumerate(samples) if s.get("label") == 9)
    ds["label"][nine] = 0
    gone = ds.delete("label = '1'")
    show(f"{count} samples checked, 1 label changed, {gone} samples deleted: version {ds.version}")
    old = tl.dataset(str(OUT / "dataset"), version="as written")
    show(
        f"version {before}, which has a tag, has {len(old)} samples still, and {len(old.schema)} columns"
    )
    ones = sum(s.get("label") == 1 for s in samples)
    return {
        "the new version is what was asked for": len(ds) == len(samples) - ones == len(old) - gone
        and ds.sample(nine)["label"] == 0
        and len(ds.to_arrow(["sid"], where="checked")) == PHOTOGRAPHS,
        "the old version is as it was": len(old) == len(samples) and int(old["label"][nine]) == 9,
    }


def scan(ds: tl.Dataset) -> dict[str, bool]:
    """Add a sample that is so large that it is kept as tiles, and read a crop of it."""
    print("\n4. A large scan, of which a crop is read")
    whole = np.tile(load_sample_images().images[0], (8, 6, 1))
    ds.append({"scan": whole, "source": "scan"})
    start = time.perf_counter()
    crop = ds["scan"][-1, CROP[0], CROP[1]]
    seconds = time.perf_counter() - start
    tiles = sum(p.stat().st_size for p in (OUT / "dataset" / "_tensors").glob("*.parquet"))
    show(f"{whole.shape}, {size_text(whole.nbytes)}, kept as tiles of {size_text(tiles)} together")
    show(f"crop {crop.shape} read in {1000 * seconds:.1f} ms")
    Image.fromarray(crop).save(OUT / "crop.png")
    return {"the crop equals NumPy's": np.array_equal(crop, whole[CROP])}


def take_in(samples: list[dict[str, Any]]) -> dict[str, bool]:
    """Write files as other people keep them, and make datasets of their folders."""
    print("\n5. Folders of files: images in folders of classes, and COCO")
    some = samples[: min(200, DIGITS)]
    for number, sample in enumerate(some):
        path = OUT / "folders" / str(sample["label"]) / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(sample["image"]).save(path)
    drawn = [s for s in samples if s["source"] == "scenes"]
    write_coco(OUT / "coco", drawn)
    folders, coco = ingested(OUT / "folders"), ingested(OUT / "coco")
    boxes = next(name for name, kind in coco.schema.items() if kind.kind == "bounding_box")
    form = coco.schema[boxes]
    return {
        "every image of the folders is there": sorted(folders["label"][:].tolist())
        == sorted(s["label"] for s in some),
        "boxes of COCO equal NumPy's": isinstance(form, tl.types.BoundingBox)
        and all(
            np.array_equal(form.corners(got), np.asarray(s["marked/boxes"]))
            for got, s in zip(coco[boxes][:], drawn, strict=True)
        ),
    }


def ingested(folder: Path) -> tl.Dataset:
    """Return a dataset of what lies in a folder."""
    source = source_of(folder)
    ds = tl.dataset(str(OUT / f"{folder.name}-dataset"), source.schema)
    ds.extend(sample for piece in source.pieces() for sample in source.samples(piece))
    show(f"{found_at(folder)}: {', '.join(f'{n} {k}' for n, k in list(ds.schema.items())[:3])}")
    return ds


def write_coco(folder: Path, drawn: list[dict[str, Any]]) -> None:
    """Write scenes as files beside annotations of COCO."""
    (folder / "images").mkdir(parents=True)
    images: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    for number, sample in enumerate(drawn):
        name = f"{number:04}.png"
        Image.fromarray(sample["image"]).save(folder / "images" / name)
        images.append({"id": number, "file_name": name, "height": SIDE, "width": SIDE})
        for (x0, y0, x1, y1), kind in zip(sample["marked/boxes"], sample["marked/classes"]):
            corners = [x0, y0, x1, y0, x1, y1, x0, y1]
            marks.append(
                {
                    "id": len(marks) + 1, "image_id": number, "category_id": SHAPES.index(kind) + 1,
                    "bbox": [x0, y0, x1 - x0, y1 - y0], "area": (x1 - x0) * (y1 - y0), "iscrowd": 0,
                    "segmentation": [corners],
                }
            )  # fmt: skip
    kinds = [{"id": n + 1, "name": name} for n, name in enumerate(SHAPES)]
    said = {"images": images, "annotations": marks, "categories": kinds}
    (folder / "annotations.json").write_text(json.dumps(said))


def contact_sheet(ds: tl.Dataset, path: Path, columns: int = 8) -> None:
    """Draw digits, photographs and scenes, with the boxes that are in them, and the masks of the scenes.

    Parameters
    ----------
    ds : Dataset
        With the columns of `SCHEMA`.
    path : Path
        Of the PNG.
    columns : int
        Images in a row.
    """
    names = ["image", "label", "marked/boxes", "marked/classes", "marked/mask"]
    rows = [
        ds.to_pandas(names, where=f"source = '{source}'")[:columns].to_dict("records")
        for source in ("digits", "photographs", "scenes")
    ]
    figure = Figure(figsize=(1.25 * columns, 5.6), layout="constrained", facecolor="white")
    grid = figure.subplots(4, columns)
    for axes, sample in zip(grid[:3].flat, (sample for row in rows for sample in row)):
        axes.imshow(sample["image"], cmap="gray_r", interpolation="nearest")
        boxes, kinds = sample["marked/boxes"], sample["marked/classes"]
        for box, kind in zip(() if boxes is None else boxes, () if kinds is None else kinds):
            x, y, right, bottom = box - 0.5
            frame = Rectangle((x, y), right - x, bottom - y, fill=False, color=COLOURS[kind])
            frame.set(linewidth=1.4, clip_on=False)
            axes.add_patch(frame)
        axes.set_title(_title(sample), fontsize=7, pad=3)
    paint = ListedColormap(["#f4f1ea", *COLOURS[: len(SHAPES) + 1]])
    for axes, sample in zip(grid[3], rows[2]):
        axes.imshow(sample["marked/mask"], cmap=paint, vmin=0, vmax=4, interpolation="nearest")
        axes.set_title("its mask", fontsize=7, pad=3)
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_color("#c8c8c8")
    figure.savefig(path, dpi=110)


def _title(sample: dict[str, Any]) -> str:
    if not pd.isna(sample["label"]):
        return [*map(str, range(10)), *PLACES][int(sample["label"])]
    return ", ".join(SHAPES[kind - 1] for kind in sorted({*sample["marked/classes"]}))


# ------------------------------------------------------------------ all of it


def show(text: object) -> None:
    """Print lines below a heading."""
    print("   " + str(text).replace("\n", "\n   "))


def main() -> int:
    """Run the demo; 0 if every answer equals NumPy's, 1 if not, and 2 if a package is missing."""
    if MISSING:
        print(
            f"samples_demo.py: {MISSING}; what the demo needs comes with pip install 'tensorlake-spark[demo]'",
            file=sys.stderr,
        )
        return 2
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    samples = all_samples()
    ds, checks = write(samples)
    checks |= ask(ds, samples)
    checks |= change(ds, samples)
    checks |= scan(ds)
    checks |= take_in(samples)
    contact_sheet(ds, OUT / "contact-sheet.png")
    report = ds.check()
    checks["every file, value and tile is sound"] = report.ok
    print(f"\n6. Results, after a check of {report.files} files and {size_text(report.nbytes)}")
    for name, good in checks.items():
        show(f"{name:<42} {'yes' if good else 'NO'}")
    show(f"{'picture of samples':<42} {OUT / 'contact-sheet.png'}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    argparse.ArgumentParser(prog="samples_demo.py", description=__doc__).parse_args()
    sys.exit(main())
