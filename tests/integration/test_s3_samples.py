"""Samples in files on S3: every way that a source reads, by plain Python and by the job."""

import csv
import io
import json
import tarfile
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from PIL import Image

import tensorlake_spark as tl
from tensorlake_spark.datasets.sources.source_kinds import source_of
from tensorlake_spark.errors import InvalidOptionError, StorageError
from tensorlake_spark.jobs import ingest


def picture(seed):
    stream = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def bucket(s3, tmp_path):
    """Folders with one source each, in a bucket, and what they hold."""
    photos, shards, tables, urls, coco = (
        tmp_path / n for n in ("photos", "shards", "tables", "urls", "coco")
    )
    for folder in (
        photos / "cat",
        photos / "dog dog",
        shards,
        tables,
        urls,
        coco / "annotations",
        coco / "val",
    ):
        folder.mkdir(parents=True)
    for n, label in enumerate(("cat", "dog dog")):
        (photos / label / f"{n}.png").write_bytes(picture(n))
    with tarfile.open(shards / "a.tar", "w") as archive:
        for n in range(2):
            for name, data in ((f"{n}.png", picture(n)), (f"{n}.cls", b"1")):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    pq.write_table(pa.table({"image": [picture(0), picture(1)]}), tables / "a.parquet")
    with open(urls / "a.csv", "w", newline="") as stream:
        csv.writer(stream).writerows(
            [["url", "n"], ["s3://bucket/x.jpg", 1], ["s3://bucket/y.jpg", 2]]
        )
    images = [{"id": n, "file_name": f"{n}.png", "height": 4, "width": 5} for n in range(2)]
    (coco / "annotations/instances_val.json").write_text(
        json.dumps({"images": images, "annotations": []})
    )
    for n in range(2):
        (coco / f"val/{n}.png").write_bytes(picture(n))
    base = f"bucket/{uuid.uuid4()}"
    pafs.copy_files(
        str(tmp_path),
        base,
        source_filesystem=pafs.LocalFileSystem(),
        destination_filesystem=s3.filesystem(),
    )
    return f"s3://{base}"


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("photos", "imagefolder"),
        ("shards", "webdataset"),
        ("shards/a.tar", "webdataset"),
        ("shards/*.tar", "webdataset"),
        ("tables", "huggingface"),
        ("urls/{a,}.csv", None),
        ("urls/a.csv", "urls"),
        ("coco", "coco"),
    ],
)
def test_sources_are_read_where_they_lie(s3, bucket, where, kind):
    if kind is None:
        with pytest.raises(InvalidOptionError, match="there is no such file"):
            source_of(f"{bucket}/{where}", storage_options=s3.options)
        return
    source = source_of(f"{bucket}/{where}", storage_options=s3.options)
    samples = [sample for piece in source.pieces() for sample in source.samples(piece)]
    assert (source.kind, len(samples)) == (kind, 2)
    if "image" in source.schema and kind != "urls":
        assert [sample["image"] for sample in samples] == [picture(0), picture(1)]
    assert s3.options["AWS_SECRET_ACCESS_KEY"] not in repr(source)


def test_a_store_that_refuses_is_no_bad_sample(s3, bucket):
    source = source_of(f"{bucket}/photos", storage_options=s3.options)
    (piece,) = source.pieces()
    wrong = {**s3.options, "AWS_SECRET_ACCESS_KEY": "wrong-key-of-nobody"}
    with pytest.raises(StorageError) as caught:
        source_of(f"{bucket}/photos", storage_options=wrong)
    assert "wrong-key-of-nobody" not in str(caught.value)
    bad = []
    closed = type(source.folder)(source.folder.uri, wrong)
    with pytest.raises(StorageError):
        list(type(source)(closed, source.schema).samples(piece, bad.append))
    assert not bad


def test_the_job_reads_and_writes_on_s3(s3, bucket, spark, capsys):
    words = [w for k, v in s3.options.items() for w in ("--storage-option", f"{k}={v}")]
    code = ingest.main(["--dataset", f"{bucket}/ds", *words, f"{bucket}/photos"], spark)
    out, err = capsys.readouterr()
    assert code == 0, err
    assert json.loads(out.splitlines()[-1])["samples"] == 2
    ds = tl.dataset(f"{bucket}/ds", storage_options=s3.options)
    assert ds["label"][:].tolist() == [0, 1]
    assert s3.options["AWS_SECRET_ACCESS_KEY"] not in out + err
