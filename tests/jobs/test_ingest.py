"""The ingestion job, and spark-submit of jobs on real files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from places import ROOT
from quick import BRIEF

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, TensorExistsError
from tensorlake_spark.spark.ingest.ingest_options import IngestOptions
from tensorlake_spark.spark.ingest.ingestion import run


@pytest.fixture
def files(tmp_path, photos):
    images = [p.transpose(1, 2, 0) for p in photos]
    for i, image in enumerate(images[:6]):
        Image.fromarray(image).save(tmp_path / f"{i}.png")
    Image.fromarray(images[6]).save(tmp_path / "lossy.jpg")
    np.save(tmp_path / "a.npy", photos[:5])
    np.save(tmp_path / "b.npy", photos[5:])
    np.savez(tmp_path / "c.npz", first=photos[0], second=photos[1])
    return tmp_path


def submit(job, *arguments):
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": BRIEF,
    }
    command = [
        str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]",
        "--conf", "spark.ui.enabled=false", str(ROOT / "jobs" / job), *map(str, arguments),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_spark_submit_stacks_images_and_tells_mistakes(files, photos, place):
    done = submit("ingest.py", "--table", place, "--id", "photos", "--stack", "--channels-first",
                  "--axes", "image,channel,y,x", files / "?.png")  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "photos: shape (6, 3, 64, 96), uint8, ftsf" in done.stdout
    ref = tl.open(place)["photos"]
    np.testing.assert_array_equal(ref[:], photos[:6])
    assert ref.axes == ("image", "channel", "y", "x")
    wrong = submit("optimize.py", "--table", place, "--id", "photo")
    assert wrong.returncode == 2
    # spark-submit hands on what the job says on standard error as its own standard output.
    assert "optimize.py: " in wrong.stdout + wrong.stderr
    assert "did you mean 'photos'?" in wrong.stdout + wrong.stderr
    (files / "bad.npy").write_bytes((files / "a.npy").read_bytes()[:-20])
    bad = submit("ingest.py", "--table", place, "--id", "bad", "--progress", "0", files / "bad.npy")
    assert bad.returncode == 2
    told, result = [line for line in bad.stdout.splitlines() if line.strip()][-2:]
    assert told.startswith(f"ingest.py: {files / 'bad.npy'} cannot be read: it was cut off")
    assert json.loads(result)["error"]["type"] == "InvalidTensorError"
    everything = bad.stdout + bad.stderr  # with Spark's usual log, which tells what it does
    assert "SparkContext: Successfully stopped" in everything
    assert "Traceback" not in everything
    assert "\n\tat " not in everything


def test_concatenation_of_arrays(spark, files, photos, place):
    sources = [str(files / "a.npy"), str(files / "b.npy")]
    (meta,) = run(spark, place, "x", sources, IngestOptions(how="concat")).metas
    assert meta.spec.shape == photos.shape
    np.testing.assert_array_equal(tl.open(place)["x"][:], photos)
    run(spark, place, "x", sources[:1], IngestOptions(how="concat", mode="append"))
    np.testing.assert_array_equal(tl.open(place)["x"][12:], photos[:5])
    np.save(files / "w.npy", photos[:5, :, :, :7])
    run(
        spark,
        place,
        "wide",
        [sources[0], str(files / "w.npy")],
        IngestOptions(how="concat", axis=3),
    )
    want = np.concatenate([photos[:5], photos[:5, :, :, :7]], 3)
    np.testing.assert_array_equal(tl.open(place)["wide"][:], want)


def test_a_tensor_for_each_file(spark, files, photos, place):
    run(
        spark,
        place,
        "g",
        [str(files / "*.np[yz]"), str(files / "lossy.jpg")],
        IngestOptions(how="each"),
    )
    lake = tl.open(place)
    assert list(lake) == ["g/a", "g/b", "g/c/first", "g/c/second", "g/lossy"]
    assert lake.version == 1, "one commit beside that which makes the table"
    np.testing.assert_array_equal(lake["g/b"][:], photos[5:])
    np.testing.assert_array_equal(lake["g/c/second"][:], photos[1])
    np.testing.assert_array_equal(lake["g/lossy"][:], np.asarray(Image.open(files / "lossy.jpg")))


def test_a_large_file_comes_in_bands(spark, tmp_path, place):
    x = np.random.default_rng(0).integers(0, 9, (70, 1 << 20), np.uint8)
    np.save(tmp_path / "x.npy", x)
    run(spark, place, "x", [str(tmp_path / "x.npy")], IngestOptions(how="concat"))
    np.testing.assert_array_equal(tl.open(place)["x"][::7], x[::7])
    run(spark, place, "s", [str(tmp_path / "x.npy")] * 2)
    np.testing.assert_array_equal(tl.open(place)["s"][1, ::9], x[::9])


@pytest.mark.parametrize(
    ("sources", "options", "error", "says"),
    [
        (["nothing-*.png"], {}, InvalidOptionError, "names no file"),
        (["note.txt"], {}, InvalidOptionError, "is not one of .png"),
        (["a.npy", "b.npy"], {}, InvalidTensorError, "does not go with"),
        (["a.npy"], {"how": "concat", "axis": 7}, None, "axis"),
        (["a.npy"], {"how": "pile"}, InvalidOptionError, "how='pile'"),
        (["a.npy"], {"mode": "ignore"}, InvalidOptionError, "mode='ignore'"),
        (["bad.png"], {}, None, "bad.png cannot be read"),
        (["bad.npy"], {}, None, "bad.npy cannot be read"),
        (["objects.npy"], {}, None, "objects.npy cannot be read"),
    ],
)
def test_bad_sources_are_named_and_nothing_is_written(
    spark, files, sources, options, error, says, place
):
    (files / "note.txt").write_text("no tensor")
    (files / "bad.png").write_bytes(b"\x89PNG\r\n but no more")
    (files / "bad.npy").write_bytes(b"\x93NUMPY but no more")
    np.save(files / "objects.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(error or Exception, match=says):
        run(spark, place, "x", [str(files / s) for s in sources], IngestOptions(**options))
    assert list(tl.open(place)) == []


def test_the_mode_error(spark, files, place):
    run(spark, place, "x", [str(files / "a.npy")])
    with pytest.raises(TensorExistsError, match="tensor 'x' exists in"):
        run(spark, place, "x", [str(files / "a.npy")])
    run(spark, place, "x", [str(files / "b.npy")], IngestOptions(mode="overwrite"))
    assert tl.open(place)["x"].shape[0] == 1
