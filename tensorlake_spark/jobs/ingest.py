"""Turn files into tensors of a lake, or into samples of a dataset.

spark-submit jobs/ingest.py --table URI --id ID [--stack | --concat AXIS | --each] SOURCE...
spark-submit jobs/ingest.py --table URI --id ID SOURCE.tns SOURCE.mtx SOURCE.npz...
spark-submit jobs/ingest.py --table URI --id ID --axis NAME[=COLUMN][:RULE][@START]... --value VALUE SOURCE.csv...
spark-submit jobs/ingest.py --dataset URI [--kind KIND] [--with NAME=VALUE]... SOURCE
spark-submit jobs/ingest.py --config FILE.yaml
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.jobs import job_progress
from tensorlake_spark.jobs.command import add_debug, carry_out, defaults_of, storage_options
from tensorlake_spark.jobs.config import Parser, parse
from tensorlake_spark.jobs.dataset_ingest import check_no_samples, ingest_dataset
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.spark.cluster.task_errors import quiet_tasks
from tensorlake_spark.spark.ingest.ingest_options import IngestOptions
from tensorlake_spark.spark.ingest.ingestion import job_session, run
from tensorlake_spark.spark.ingest.outcome import PLANNED, REPEATED, Outcome
from tensorlake_spark.spark.ingest.records.cell_options import CellOptions
from tensorlake_spark.spark.session import local_session
from tensorlake_spark.tensor.spec import check_id

_NOTES = """
A SOURCE is a file, a glob or a folder, on this machine or on S3 (s3://). @LIST.txt names a file with one source per
line, in which blank lines and lines that begin with # do not count. SOURCE::NAME is one array of a file with several:
day.nc::t2m, run.h5::/group/x, store.zarr::a/b, stack.tif::1 (a series), x.npz::name. Values are taken as they
are stored: scale_factor, add_offset and _FillValue of NetCDF are not applied. Zarr, HDF5, NetCDF and TIFF need
the extra "ingest" on the executors. Several executors share the work on a large file.

This makes a tensor of counts from a log:

  ingest.py --table LAKE --id flights --axis day=time_hour:day --axis origin --axis carrier \\
      --value 'count()' flights.csv.zip

RULE says how the values of a column become indices:
  (none)    integers are indices, counted from 0; other texts are labels
  int       integers; with @1 they count from 1
  label     each different value is a label. Labels are sorted; new ones of a later append come last
  0.01, 10  numbers, in bins of this width
  hour      times, in bins: year, month, week, day, hour, minute, second, or several, such as 15minute. Times with
            a zone are converted to --timezone; times without one stay as they are
@START is where the first bin begins; without it, that is the bin of the smallest value. Bins and labels are stored
with the tensor, and a later --mode append continues them.

--resume: tasks record what they completed. If the job fails, the same command continues: it writes only what is
missing, and makes everything visible in one commit. If the earlier run did commit, the second one changes nothing and
says so. It is the same job if the tensor, the options, and the names, shapes and dtypes of the sources are the same.
What was written of a source that has changed since is not used. Vacuum deletes the records of jobs that were never
continued, a week after the last one. A job that writes cells starts from the beginning, unless its batch is in the
table; with --mode append it needs --txn-app-id and --txn-version to know that.

--skip-bad: every file is read in full before the write. A file that is damaged or missing, or that has another shape
or dtype than the first good file, is left out and listed with the reason. A file of cells is left out if it cannot be
read, or if one of its records is wrong; for each such file, all files are read again. If a file goes bad later, the
job stops and nothing is committed. Without --skip-bad, the first bad file stops the job.

--dataset: samples are added to a dataset in one commit. SOURCE is a folder, a file, a glob, or names with
braces (train-{000..146}.tar). KIND is webdataset, coco, yolo, mnist, cifar, urls, huggingface or imagefolder; by
default the job recognises it. --with gives an option of the kind, such as split=train or columns='{"jpg": "image"}'.
With --skip-bad, bad samples are left out and listed. With --resume, a job whose files are all in the dataset already,
and have not changed, changes nothing. A new or a changed file makes it another job, which adds the samples of all.
A scheduled job gives --txn-app-id and --txn-version: a batch that is in the dataset is not added again, whatever files
are there now.

--config: the keys of the file are the long options, and "sources"; see conf/examples. Options on the command line
win. Write options that may be repeated, or that take commas, as lists. Write NAME=VALUE options, or JSON, as maps.

exit codes:
  0  success, also if the batch is in the table already. If only --compact-after failed, a line on standard error and
     "compaction_error" in the JSON say so
  2  an option, a file or a value is wrong, as one line says; the same run would fail again. Or with --skip-bad,
     no file is good
  1  anything else: another writer was faster, the store does not answer, or an unexpected error
130  interrupted, for example by Ctrl-C
The last line of standard output is JSON, unless the job is killed: "status" is done, planned, repeated, failed
or interrupted. Bad input fails before the commit, and leaves the table as it was. A job that ends with 1 or 130, or is
killed, may have committed or not: with --txn-app-id and --txn-version you can safely run it again.
"""

parser = Parser(
    prog="ingest.py",
    usage="%(prog)s [--config FILE] --table URI --id ID [options] SOURCE [SOURCE ...]",
    description=__doc__.splitlines()[0],
    epilog=_NOTES,
    formatter_class=argparse.RawDescriptionHelpFormatter,
)
parser.add_argument(
    "--config", metavar="FILE", help="a YAML file with options; those on the command line win"
)
parser.add_argument("--table", help="path or URL of the lake")
parser.add_argument(
    "--dataset", metavar="URI", help="path or URL of a dataset, instead of --table and --id"
)
parser.add_argument("--id", help="name of the tensor; with --each, of the group of tensors")
parser.add_argument(
    "--mode",
    choices=("error", "overwrite", "append"),
    help="what to do if the tensor exists; default: error",
)
parser.add_argument(
    "--dry-run", action="store_true", help="look at the files, print the plan, and write nothing"
)
parser.add_argument("--txn-app-id", metavar="NAME", help="name of the batch; needs --txn-version")
parser.add_argument(
    "--txn-version",
    type=int,
    metavar="N",
    help="number of the batch: if it or a later one of this name is in the table, nothing changes",
)
parser.add_argument(
    "--resume",
    action="store_true",
    help="continue where an earlier run failed; see below",
)
parser.add_argument(
    "--skip-bad",
    action="store_true",
    help="leave out bad files and list them; reads all files twice; see below",
)
parser.add_argument(
    "--compact-after",
    type=int,
    metavar="N",
    help="after the commit, merge small files if these tensors have at least N of them",
)
job_progress.add_option(parser)
add_debug(parser)
parser.add_argument(
    "--layout",
    help="how the tensor is stored; the default, auto, decides by the share of non-zeros",
)
parser.add_argument(
    "--threshold", type=float, metavar="SHARE",
    help="--layout auto is dense from this share of non-zeros on; default: 0.1",
)  # fmt: skip
parser.add_argument("--block-shape", help="shape of chunks or blocks, such as 1,3,256,1024")
parser.add_argument(
    "--order",
    help="order of axes in which csf and bsgs sort elements, such as 2,0,1; default: C order",
)
parser.add_argument("--row-axes", help="the axes that form the rows of csr and csc, such as 0,1")
parser.add_argument(
    "--codec", help="how values are coded; auto (the default) and smallest try several codecs"
)
parser.add_argument(
    "--quantize",
    metavar="KIND",
    help="store floats in fewer bits: float16, bfloat16, float8_e4m3fn, float8_e5m2, int8, split, or a bound such as "
    "'{\"error\": 0.001}' or '{\"relative\": 0.001}'",
)
parser.add_argument(
    "--axes", help="names of the axes, such as image,channel,y,x; for tables, use --axis"
)
parser.add_argument("--attrs", help="your attributes, as a JSON object")
parser.add_argument(
    "--storage-option",
    action="append",
    metavar="NAME=VALUE",
    help="an option of the store, such as AWS_REGION=eu-west-1; may be repeated",
)
parser.add_argument(
    "--sources-from",
    action="append",
    metavar="FILE",
    help="a file with one source per line; the same as @FILE",
)
parser.add_argument(
    "sources",
    nargs="+",
    metavar="SOURCE",
    help="files, globs and folders; @FILE for a list of them",
).required = False  # the file of --config may have them

arrays = parser.add_argument_group("arrays", "images, TIFF, .npy, .npz, Zarr, HDF5 and NetCDF-4")
how = arrays.add_mutually_exclusive_group()
how.add_argument(
    "--stack", action="store_true", help="join the files along a new first axis (default)"
)
how.add_argument("--concat", type=int, metavar="AXIS", help="join the files along this axis")
how.add_argument(
    "--each", action="store_true", help="make one tensor per file, named ID/STEM after the file"
)
arrays.add_argument("--channels-first", action="store_true", help="store images as (channel, y, x)")

cells = parser.add_argument_group(
    "cells",
    "tables (CSV, Parquet, the folder of a Delta table); sparse files (.tns, .mtx, .npz) take the first three "
    "options",
)
cells.add_argument(
    "--shape", help="shape of the tensor; default: the smallest that holds all cells"
)
cells.add_argument("--dtype", help="dtype of the tensor; default: that of the values")
cells.add_argument(
    "--duplicates",
    choices=("error", "sum", "last"),
    help="what to do with a cell that occurs twice; count() and sum() always add up",
)
cells.add_argument(
    "--axis",
    action="append",
    metavar="NAME[=COLUMN][:RULE][@START]",
    help="an axis and its column; repeat it for every axis, in order",
)
cells.add_argument(
    "--value",
    help="a column, if each cell has one record; else 'count()' or 'sum(COLUMN)' of the records in a cell",
)
cells.add_argument(
    "--column",
    action="append",
    metavar="NAME=EXPRESSION",
    help="an extra column, in Spark SQL, such as 'day=make_date(year, month, day)'",
)
cells.add_argument(
    "--where", help="use only records for which this holds, in Spark SQL; columns of CSV are text"
)
cells.add_argument(
    "--delimiter", help="what separates columns of CSV files; default: a comma, in .tsv a tab"
)
cells.add_argument(
    "--source-version", type=int, metavar="N", help="version of a Delta table; default: the newest"
)
cells.add_argument("--timezone", help="time zone of the bins, such as Europe/Berlin; default: UTC")

samples = parser.add_argument_group("samples", "options that need --dataset")
samples.add_argument("--kind", help="kind of the source; recognised by default")
samples.add_argument(
    "--with",
    dest="source_option",
    action="append",
    metavar="NAME=VALUE",
    help="an option of the kind; may be repeated",
)
samples.add_argument(
    "--apart",
    action="append",
    metavar="COLUMN",
    help="a column that a new dataset keeps in a table of its own; may be repeated",
)

_DEFAULTS = defaults_of(
    parser, mode="error", timezone="UTC", sources=[], progress=job_progress.EVERY
)
_OPTIONS = {
    "layout": "layout", "blockShape": "block_shape", "order": "order", "rowAxes": "row_axes", "codec": "codec",
    "axes": "axes", "attrs": "attrs", "shape": "shape", "dtype": "dtype", "duplicates": "duplicates",
    "txnAppId": "txn_app_id", "txnVersion": "txn_version", "threshold": "threshold", "quantize": "quantize",
}  # fmt: skip


def main(arguments: list[str] | None = None, session: Any = None) -> int:
    """Run the job and return its exit code: 0 done, 2 bad input, which one line tells, 1 anything else.

    The last line of standard output is a JSON object: what was written, planned or wrong, and how long it
    took. `session` stands for the one that the job would start, and stop.
    """

    def work() -> dict[str, Any]:
        start = time.perf_counter()
        args = parse(parser, arguments, _DEFAULTS)
        if args.dataset is not None:
            return ingest_dataset(args, _DEFAULTS, session)
        check_no_samples(args)
        outcome = ingest(args, session)
        return report(outcome, time.perf_counter() - start)

    return carry_out("ingest.py", work, arguments)


def ingest(args: argparse.Namespace, session: Any) -> Outcome:
    """Make one call of the library from what the command line and the configuration say."""
    for name in ("table", "id"):
        if getattr(args, name) is None:
            raise InvalidOptionError(f"--{name} is missing; --help lists all options")
    sources = [*args.sources, *(f"@{path}" for path in args.sources_from)]
    if not sources:
        raise InvalidOptionError("no SOURCE is given: a file, a glob, a folder, or @LIST.txt")
    stored = storage_options(args)
    how = "each" if args.each else "stack" if args.stack else None
    chosen = {name: getattr(args, key) for name, key in _OPTIONS.items()}
    options = IngestOptions(
        how=how if args.concat is None else "concat",
        axis=args.concat or 0,
        mode=args.mode,
        channels_first=args.channels_first,
        cells=CellOptions(
            axis=tuple(args.axis),
            value=args.value,
            column=tuple(args.column),
            where=args.where,
            delimiter=args.delimiter,
            timezone=args.timezone,
            source_version=args.source_version,
        ),
        options={k: str(v) for k, v in chosen.items() if v is not None},
        storage_options=stored,
        dry_run=args.dry_run,
        resume=args.resume,
        skip_bad=args.skip_bad,
        compact_after=args.compact_after,
    )
    check_id(args.id)
    Storage(args.table, stored)
    job_progress.check(args.progress)
    # Spark takes half a minute to start: whatever can be said without it has been said.
    used = session or job_session(local_session)
    try:
        with (
            quiet_tasks(used, not args.debug),
            job_progress.telling("ingest.py", used, args.progress),
        ):
            return run(used, args.table, args.id, sources, options)
    finally:
        if session is None:
            used.stop()


def report(outcome: Outcome, seconds: float) -> dict[str, Any]:
    """Print what was done, a line for each tensor, and return it for who reads it by program."""
    plan = outcome.plan
    about: dict[str, Any] = {"status": outcome.status}
    if outcome.files:
        about |= {"sources": len(outcome.files), "source_bytes": outcome.source_bytes}
    if outcome.reused is not None:
        about |= {"pieces": outcome.pieces, "reused": outcome.reused}
        print(f"{outcome.reused} of {outcome.pieces} piece(s) were written by an earlier run")
    for skipped in outcome.skipped:
        print(f"skipped {skipped.source}: {skipped.reason}")
    about |= {"skipped": [vars(skipped) for skipped in outcome.skipped]} if outcome.skipped else {}
    if outcome.status == PLANNED and plan is not None:
        print("\n".join(plan.lines(outcome.source_bytes)))
        print("dry run: nothing was written")
        about |= {"tensors": plan.rows(), "partitions": plan.partitions, "records": plan.records}
    else:
        print("\n".join(line_of(meta) for meta in outcome.metas))
        if outcome.status == REPEATED:
            print("this batch, or a later one, is in the table already; nothing was changed")
        else:
            print(f"{len(outcome.metas)} tensor(s) in {seconds:.1f} s")
        merged = outcome.compacted
        if merged is not None:
            print(f"{merged.files_before} small file(s) became {merged.files_after}")
            about["compacted"] = {"files": merged.files_before, "into": merged.files_after}
        error = outcome.compaction_error
        if error is not None:
            print(
                f"ingest.py: done, but small files were not brought together: {error}",
                file=sys.stderr,
            )
            about["compaction_error"] = {"type": type(error).__name__, "message": str(error)}
        about |= {"tensors": [row_of(m) for m in outcome.metas], "version": outcome.version}
    return about


def line_of(meta: Meta) -> str:
    spec, stored = meta.spec, meta.totals
    blocks = f" in blocks of {spec.block_shape}" if spec.block_shape else ""
    return (
        f"{spec.id}: shape {spec.shape}, {spec.dtype}, {spec.layout}{blocks}, {stored.nnz} elements, "
        f"{size_text(spec.nbytes)} stored in {size_text(stored.nbytes)}"
    )


def row_of(meta: Meta) -> dict[str, Any]:
    spec, stored = meta.spec, meta.totals
    return {"id": spec.id, "shape": spec.shape, "dtype": spec.dtype.name, "layout": spec.layout,
            "nnz": stored.nnz, "stored_bytes": stored.nbytes}  # fmt: skip
