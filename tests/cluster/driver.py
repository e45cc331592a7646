"""What the tests submit: writes and reads tensors on the cluster, with trouble where it is asked for.

    spark-submit --py-files ARCHIVE driver.py FOLDER

Jobs come as files in FOLDER. All processes that a job has tell in files, its notes, how far they are and what
they found.
"""

import itertools
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import SparkSession

import tensorlake_spark
import tensorlake_spark.spark.source.write.source_writer
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.spark.cluster.executor_runner import run_in
from tensorlake_spark.spark.ingest.ingest_options import IngestOptions
from tensorlake_spark.spark.ingest.ingestion import run
from tensorlake_spark.spark.source.data_source import TensorDataSource, register
from tensorlake_spark.spark.source.schemas import TENSOR, tensor_column
from tensorlake_spark.spark.source.write import direct_write as direct
from tensorlake_spark.spark.source.write.source_writer import TensorWriter
from tensorlake_spark.upkeep.optimize import optimize

SLABS, PARTS = 32, 4
SHAPE = (SLABS, 8, 256, 256)
CELLS, SIDES = 6000, (40, 50, 60)
PATIENCE = 120


def executor():
    """The id of the JVM to which a task's Python belongs: its parent is a daemon, a child of that JVM."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])


def note(folder, what):
    """Leave a file that says that this attempt of a task came so far."""
    context = TaskContext.get()
    name = f"{what}-{context.partitionId()}-{context.attemptNumber()}"
    told = {
        "executor": executor(), "package": tensorlake_spark.__file__, "path": sys.path, "most": most(),
    }  # fmt: skip
    unfinished = Path(folder) / f".{name}"
    unfinished.write_text(json.dumps(told))
    unfinished.rename(Path(folder) / name)


def most():
    """The most bytes that this process ever had in memory."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) << 10


def wait_for(ready, what):
    """Wait until `ready` returns true."""
    stop = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > stop:
            raise TimeoutError(what)
        time.sleep(0.02)


def hang(notes, trouble):
    """Wait to be killed if that is the trouble, in the first attempt of task 1."""
    context = TaskContext.get()
    if trouble == "hang" and (context.partitionId(), context.attemptNumber()) == (1, 0):
        note(notes, "hangs")
        wait_for(lambda: False, "to be killed")


class Troubled(TensorDataSource):
    """The data source, its writer in trouble."""

    trouble = notes = ""
    driver = ()
    together = 1  # so many writers come to their commits before the driver is killed

    @classmethod
    def name(cls):
        return "troubled"

    def writer(self, schema, overwrite):
        return self.in_trouble(super().writer(schema, overwrite))

    @classmethod
    def in_trouble(cls, made):
        made.__class__ = TroubledWriter
        made.trouble, made.notes, made.driver = cls.trouble, cls.notes, cls.driver
        made.together = cls.together
        return made


class TroubledWriter(TensorWriter):
    """Task 1 hangs, fails, is slow or is lost at its end; or the driver is killed around its commit."""

    def write(self, iterator):
        note(self.notes, "began")
        message = super().write(self._halfway(iterator))
        note(self.notes, "written")
        if self.trouble == "slow" and TaskContext.get().partitionId() == 1:
            both = [Path(self.notes) / f"written-1-{attempt}" for attempt in (0, 1)]
            wait_for(lambda: all(path.exists() for path in both), "a second copy of the task")
        context = TaskContext.get()
        if self.trouble == "late" and (context.partitionId(), context.attemptNumber()) == (1, 0):
            os.kill(os.getpid(), signal.SIGKILL)
        return message

    def _halfway(self, iterator):
        """Yield the batches of a partition, with the trouble in the middle."""
        context = TaskContext.get()
        for number, batch in enumerate(iterator):
            if context.partitionId() == 1 and number == PARTS:
                if self.trouble == "fail" and context.attemptNumber() < 2:
                    note(self.notes, "fails")
                    raise RuntimeError("a task that fails twice")
                # A stage that is repeated counts its attempts from 0 again.
                if self.trouble == "doomed" and Path(self.notes, "hangs-1-0").exists():
                    raise RuntimeError("a task that fails for good")
                if self.trouble in ("hang", "doomed") and context.attemptNumber() == 0:
                    note(self.notes, "hangs")
                    wait_for(lambda: False, "to be killed")
            yield batch

    def commit(self, messages):
        room = tensorlake_spark.spark.source.write.source_writer
        commit = room.commit

        def killed(storage, change):
            if self.trouble == "after":
                commit(storage, change)
            notes = Path(self.notes)
            (notes / f"kill-{'-'.join(change.tensors)}").touch()
            wait_for(lambda: len([*notes.glob("kill-*")]) >= self.together, "the other writer")
            for pid in (*self.driver, os.getpid()):
                os.kill(pid, signal.SIGKILL)

        if self.trouble in ("before", "after"):
            room.commit = killed
        super().commit(messages)


def make_slabs(batches):
    """Slabs of noise by their numbers, none beside the one before, so that each is encoded as it comes."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            place = number * 5 % SLABS
            slab = np.random.default_rng(place).integers(0, 256, (1, *SHAPE[1:]), np.uint8)
            corner = pa.array([[place, 0, 0, 0]], pa.list_(pa.int64()))
            yield pa.RecordBatch.from_arrays(
                [corner, tensor_column([slab])], names=["lo", "tensor"]
            )


def slabs(spark):
    """A DataFrame of all slabs, made by the executors."""
    frame = spark.range(0, SLABS, 1, PARTS)
    return frame.mapInArrow(make_slabs, f"lo array<bigint>, tensor {TENSOR.simpleString()}")


def cells(spark):
    """A DataFrame of cells at distinct places in no order."""
    b, c = SIDES[1:]
    frame = spark.range(0, CELLS, 1, PARTS).selectExpr("id", f"id * 7919 % {np.prod(SIDES)} as n")
    return frame.selectExpr(
        f"n div {b * c} as i0",
        f"n div {c} % {b} as i1",
        f"n % {c} as i2",
        "double(id + 1) as value",
    )


def save(frame, form, lake, **options):
    """Append a DataFrame."""
    frame.write.format(form).mode("append").options(**options).save(lake)


def load(spark, lake, notes, what, trouble="", **options):
    """Read a table of Arrow, each task leaving a note; task 1 hangs if it is told to."""
    frame = spark.read.format("tensor").options(maxPartitionBytes=2 << 20, **options).load(lake)

    def noted(batches):
        note(notes, what)
        for batch in batches:
            yield batch
            hang(notes, trouble)

    return frame.mapInArrow(noted, frame.schema).toArrow()


def read(spark, lake, notes, trouble):
    """Read slabs and cells back into arrays, which the test compares."""
    for name, key in (("slabs", ""), ("slice", "3:20:4, 2, ::-1, 7:99")):
        befalls = trouble if name == "slabs" else ""
        rows = load(spark, lake, notes, f"read-{name}", befalls, id="slabs", slice=key).to_pylist()
        corners = [(r["offset"], r["tensor"]["shape"]) for r in rows]
        out = np.zeros(
            [max(o[k] + n[k] for o, n in corners) for k in range(len(corners[0][0]))], "u1"
        )
        for row in rows:
            block = np.frombuffer(row["tensor"]["data"], "u1").reshape(row["tensor"]["shape"])
            out[tuple(slice(o, o + n) for o, n in zip(row["offset"], block.shape))] += block
        np.save(Path(notes) / f"{name}.npy", out)
    table = load(spark, lake, notes, "read-cells", id="cells", view="cells")
    out = np.zeros(SIDES)
    np.add.at(out, tuple(table[f"i{k}"].to_numpy() for k in range(3)), table["value"].to_numpy())
    np.save(Path(notes) / "cells.npy", out)


def add_up(spark, lake, notes):
    """Add up the elements of a tensor that no process holds, each task telling how much memory it took."""
    frame = spark.read.format("tensor").options(id="stack").load(lake)

    def sums(batches):
        total = 0
        for batch in batches:
            for data in pc.struct_field(batch.column("tensor"), "data"):
                total += int(np.frombuffer(data.as_buffer(), "u1").sum(dtype="u8"))
        yield pa.RecordBatch.from_pydict({"total": [total], "most": [most()]})

    rows = frame.mapInArrow(sums, "total bigint, most bigint").collect()
    found = [sum(row.total for row in rows), max(row.most for row in rows)]
    (Path(notes) / "found").write_text(json.dumps(found))


def ingest(spark, lake, notes, options):
    """Stack files so that it can be resumed, and tell what came of it."""
    try:
        done = run(spark, lake, "stack", [options["sources"]], IngestOptions(resume=True))
    finally:
        direct.TensorWriter = TensorWriter  # without trouble
    (Path(notes) / "outcome").write_text(json.dumps([done.pieces, done.reused]))


def bring_together(spark, lake, notes, trouble, options):
    """Optimise a table by the executors; the first attempt of task 1 hangs, its file written, if it is told to."""
    share = run_in(spark)

    def watched(work, tasks):
        def noted(task):
            output = work(task)
            note(notes, "written")
            hang(notes, trouble)
            return output

        return share(noted, tasks)

    done = optimize(Storage(lake), run=watched, **options)
    (Path(notes) / "outcome").write_text(json.dumps([done.files_before, done.files_after]))


def obey(spark, job, lake, notes, trouble, options):
    """Do one job; if there is to be trouble with a writer, with that one."""
    form = "tensor"
    if trouble and job not in ("read", "optimize"):
        jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
        Troubled.trouble, Troubled.notes, Troubled.driver = trouble, notes, (jvm, os.getpid())
        Troubled.together = 1 + (" and " in job)
        spark.dataSource.register(Troubled)  # a copy of what it is by now
        form = "troubled"
    if not spark.sparkContext.master.startswith("local"):
        status = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
        wait_for(lambda: status().size() == 3, "two executors beside the driver")
    batch = {"cells": "100", "read": "10000", "add up": "10000"}.get(job, "1")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch)
    if "ingest" in job:
        if trouble:
            direct.TensorWriter = lambda *given: Troubled.in_trouble(TensorWriter(*given))
        if job == "ingest":
            ingest(spark, lake, notes, options)
        else:
            Thread(target=ingest, args=(spark, lake, notes, options)).start()
            save(slabs(spark), form, lake, id="slabs", **options["batch"])
    elif job == "slabs":
        save(slabs(spark), form, lake, id=job, **options)
    elif job == "cells":
        save(cells(spark), form, lake, id=job, shape=",".join(map(str, SIDES)), **options)
    elif job == "optimize":
        bring_together(spark, lake, notes, trouble, options)
    elif job == "add up":
        add_up(spark, lake, notes)
    else:
        read(spark, lake, notes, trouble)


def main(folder):
    """Do the jobs that come as files, 0.json and so on, until one is null."""
    spark = SparkSession.builder.getOrCreate()
    register(spark)  # Spark does not look for pyspark_* packages in what --py-files brings
    for number in itertools.count():
        order = Path(folder) / f"{number}.json"
        while not order.exists():
            time.sleep(0.05)
        asked = json.loads(order.read_text())
        if asked is None:
            break
        try:
            obey(spark, **asked)
            said = "done"
        except Exception as error:
            said = f"{error}\n{traceback.format_exc()}"
        (Path(folder) / "unfinished").write_text(said)
        (Path(folder) / "unfinished").rename(Path(folder) / f"{number}.said")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
