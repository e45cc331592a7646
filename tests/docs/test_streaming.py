"""The code of docs/streaming.md, killed between the commit of a batch and the checkpoint, and started again."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import tensorlake_spark as tl

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "streaming.md").read_text()
BATCHES, KILLED = 3, 1
PATIENCE = 240
"""Seconds after which a process is taken to hang."""


def run(spark, title, folder, after):
    """Run the code of a section; `after` is called with the number of every batch that was written."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    define, start = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names = {"spark": spark, "path": str(folder / "lake")}
    names |= {name: str(folder / name) for name in ("source", "checkpoint")}
    exec(compile(define, "streaming.md", "exec"), names)
    (name,) = re.findall(r"^def (\w+)", define, re.MULTILINE)
    write = names[name]

    def observed(batch, number):
        write(batch, number)
        after(number)

    names[name] = observed
    exec(compile(start, "streaming.md", "exec"), names)


def arrives(source, number, write):
    """Put a file into the folder of a stream, later than those before it."""
    path = source / f"{number}.file"
    write(path)
    os.utime(path, (1_700_000_000 + number,) * 2)


def hits(source):
    """Counts of events, which come in three files."""
    out = np.zeros((365, 24), np.int64)
    rng = np.random.default_rng(0)
    for number in range(BATCHES):
        days, hours = rng.integers(0, [[9], [24]], (2, 500))
        np.add.at(out, (days, hours), 1)
        lines = [json.dumps({"day": int(d), "hour": int(h)}) for d, h in zip(days, hours)]
        arrives(source, number, lambda path, lines=lines: path.write_text("\n".join(lines)))
    return out


def film(source):
    """Frames, which come in three files of different length."""
    lengths = [5, 1, 3]
    out = np.random.default_rng(0).integers(0, 256, (sum(lengths), 48, 64), np.uint8)
    start = 0
    for number, n in enumerate(lengths):
        part = out[start : start + n]
        table = {"frame": np.arange(start, start + n), "pixels": [x.tobytes() for x in part]}
        arrives(source, number, lambda path, table=table: pq.write_table(pa.table(table), path))
        start += n
    return out


def appends(folder):
    """How often the tensor was appended to."""
    history = DeltaTable(folder / "lake").history()
    return sum(entry.get("tensorlake.operation") == "spark append" for entry in history)


STREAMS = {"Cells": ("hits", hits), "Slabs": ("film", film)}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Folders of streams that a process ran until all of it was killed, and what they bring."""
    from quick import BRIEF  # this file is run as a program, too

    folder = tmp_path_factory.mktemp("streams")
    expected = {}
    for title, (_, make) in STREAMS.items():
        (folder / title / "source").mkdir(parents=True)
        expected[title] = make(folder / title / "source")
    (folder / "tmp").mkdir()
    options = f"{BRIEF} -Djava.io.tmpdir={folder / 'tmp'}"
    child = subprocess.run(
        [sys.executable, __file__, folder], cwd=folder, start_new_session=True,
        env={**os.environ, "SPARK_LOCAL_DIRS": str(folder / "tmp"), "JDK_JAVA_OPTIONS": options},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL, child.stderr[-3000:]
    return folder, expected


@pytest.mark.parametrize("title", STREAMS)
def test_every_batch_is_there_once_after_a_kill(spark, killed, title):
    folder, expected = killed[0] / title, killed[1][title]
    # The batch is in the table, and Spark does not know.
    assert appends(folder) == KILLED + 1
    noted = {path.name for path in (folder / "checkpoint" / "commits").glob("[0-9]*")}
    assert noted == {str(n) for n in range(KILLED)}

    written = []
    run(spark, title, folder, written.append)
    assert written == [*range(KILLED, BATCHES)]
    assert appends(folder) == BATCHES
    ref = tl.open(folder / "lake")[STREAMS[title][0]]
    got = ref[:]
    got = got.todense() if isinstance(got, tl.SparseTensor) else got
    np.testing.assert_array_equal(got, expected, strict=True)

    run(spark, title, folder, written.append)
    assert tl.open(folder / "lake").version == ref.version


def main(folder):
    """Run the streams at once, and end this process and its JVM as if the machine went down."""
    from tensorlake_spark.spark import local_session

    spark = local_session()
    ready = threading.Barrier(len(STREAMS), timeout=PATIENCE)

    def die(number):
        if number == KILLED:
            ready.wait()
            os.killpg(0, signal.SIGKILL)

    streams = [
        threading.Thread(target=run, args=(spark, title, Path(folder) / title, die))
        for title in STREAMS
    ]
    for stream in streams:
        stream.start()
    for stream in streams:  # since Python 3.12, who has left main can start no thread
        stream.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
