"""``ingest.py --dataset`` with every kind of source: a plan, a run, the same run again, and a file that goes bad."""

import csv
import io
import json
import struct
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_files import image_file

import tensorlake_spark as tl

PNGS = [image_file("png", seed=number) for number in range(4)]
JUNK = b"junk"


def fill(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())


def packed(files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def table(files):
    stream = io.BytesIO()
    images = [{"bytes": data, "path": None} for data in files]
    pq.write_table(pa.table({"image": images, "label": range(4)}), stream)
    return stream.getvalue()


def urls(rows):
    stream = io.StringIO()
    csv.writer(stream).writerows([["url", "size"], *rows])
    return stream.getvalue()


def idx(array):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return head + array.tobytes()


DIGITS = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
RECORDS = np.random.default_rng(0).integers(0, 10, (4, 3073)).astype(np.uint8)
NOTES = json.dumps(
    {
        "images": [{"id": n, "file_name": f"{n}.png", "height": 8, "width": 9} for n in range(4)],
        "annotations": [{"id": 1, "image_id": 2, "category_id": 5, "bbox": [1, 1, 2, 3]}],
        "categories": [{"id": 5, "name": "cat"}],
    }
)
LINKS = [[f"s3://bucket/{number}.png", number] for number in range(4)]

KINDS = {
    "imagefolder": (
        {f"{'ab'[n % 2]}/{n}.png": PNGS[n] for n in range(4)}, {"b/3.png": JUNK}, "b/3.png",
        ("label", [0, 0, 1, 1]),
    ),
    "coco": (
        {"annotations/instances_val.json": NOTES} | {f"val/{n}.png": PNGS[n] for n in range(4)},
        {"val/3.png": JUNK}, "val/3.png", ("label", [[], [], [0], []]),
    ),
    "yolo": (
        {"data.yaml": "train: images\nnames: [cat, dog]", "labels/0.txt": "1 .5 .5 .5 .5"}
        | {f"images/{n}.png": PNGS[n] for n in range(4)},
        {"labels/3.txt": "7 .5 .5 .5 .5"}, "labels/3.txt, line 1", ("label", [[1], [], [], []]),
    ),
    "urls": (
        {"a.csv": urls(LINKS)}, {"a.csv": urls([*LINKS[:3], ["no link", 3]])}, "column 'image'",
        ("size", [0, 1, 2, 3]),
    ),
    "webdataset": (
        {"a.tar": packed({f"{n}.{e}": d for n in range(4) for e, d in (("png", PNGS[n]), ("cls", b"%d" % n))})},
        {"a.tar": packed({f"{n}.{e}": d for n in range(4) for e, d in (("png", (*PNGS[:3], JUNK)[n]), ("cls", b"%d" % n))})},
        "sample '3', .png", ("cls", [0, 1, 2, 3]),
    ),
    "huggingface": (
        {"a.parquet": table(PNGS)}, {"a.parquet": table([*PNGS[:3], JUNK])}, "row 3", ("label", [0, 1, 2, 3]),
    ),
    "mnist": (
        {"train-images-idx3-ubyte": idx(DIGITS), "train-labels-idx1-ubyte": idx(np.arange(4, dtype=np.uint8))},
        {"train-images-idx3-ubyte": idx(DIGITS)[:-1]}, "breaks off after 3 elements", ("label", [0, 1, 2, 3]),
    ),
    "cifar": (
        {"data_batch_1.bin": RECORDS.tobytes()}, {"data_batch_1.bin": RECORDS.tobytes()[:-9]}, "record 3",
        ("label", RECORDS[:, 0].tolist()),
    ),
}  # fmt: skip
"""For each kind the files of four samples, what spoils the last, what is said of it, and a column's values."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_planned_written_repeated_and_spoiled(job, tmp_path, kind):
    files, spoilt, said, (column, wanted) = KINDS[kind]
    source, uri = tmp_path / "source", tmp_path / "ds"
    fill(source, files)
    words = ("--dataset", uri, "--resume", source)
    planned = job(*words, "--dry-run")
    assert (planned.code, planned.json["status"], planned.json["kind"]) == (0, "planned", kind)
    assert not uri.exists()
    done = job(*words)
    assert (done.code, done.json["status"], done.json["samples"]) == (0, "done", 4)
    assert {*planned.json["columns"]} == {*done.json["columns"]} == {*tl.dataset(uri).schema}
    again = job(*words)
    assert (again.code, again.json["status"], again.json["samples"]) == (0, "repeated", 0)

    fill(source, spoilt)
    failed = job(*words)
    assert (failed.code, failed.json["status"]) == (2, "failed")
    assert said in failed.json["error"]["message"]
    assert len(tl.dataset(uri)) == 4
    left = job("--dataset", uri, "--skip-bad", source)
    assert (left.code, left.json["samples"], left.json["left_out"]) == (0, 3, 1)
    assert said in left.json["bad"][0]
    found = [value if isinstance(value, int) else [*value] for value in tl.dataset(uri)[column]]
    assert found == [*wanted, *wanted[:3]]
    assert tl.dataset(uri).check().ok
