"""Ingest files into a lake: images and arrays, sparse matrices, logs.

spark-submit jobs/ingest.py --table URI --id ID [--stack | --concat AXIS | --each] SOURCE...
spark-submit jobs/ingest.py --table URI --id ID SOURCE.tns SOURCE.mtx SOURCE.npz...
spark-submit jobs/ingest.py --table URI --id ID --axis NAME[=COLUMN][:RULE][@START]... --value VALUE SOURCE.csv SOURCE.parquet...
spark-submit jobs/ingest.py --dataset URI [--kind KIND] [--with NAME=VALUE]... SOURCE
spark-submit jobs/ingest.py --config FILE.yaml
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

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

_NOTES = """
A SOURCE is a file, a glob or a folder, of this machine or on S3 (s3://); @LIST.txt names a file with a source in
every line. Blank lines and those that begin with # are left out. Of a file with several arrays SOURCE::NAME is one:
day.nc::t2m, run.h5::/group/x, store.zarr::a/b, stack.tif::1 (a series), x.npz::name. Values are taken as they
are stored: scale_factor, add_offset and _FillValue of NetCDF are not applied. Zarr, HDF5, NetCDF and TIFF need
the extra "ingest" on the executors. A large file is read in pieces by several of them.

A log becomes a tensor of counts by

  ingest.py --table LAKE --id flights --axis day=time_hour:day --axis origin --axis carrier \\
      --value 'count()' flights.csv.zip

RULE says how the values of a column become indices:
  (none)    integers from 0 on as they are; texts that are not integers as labels
  int       integers; @1 counts from 1
  label     a number for each value that there is: labels are sorted, and new ones of a later append
            come after them
  0.01, 10  bins of that length, for numbers
  hour      bins of time: year, month, week, day, hour, minute, second, also as 15minute; times without
            a zone are taken as they stand, others as the clock of --timezone shows them
@START is where the first bin begins, without it the bin of the least value. Bins and labels are kept
with the tensor, and a later --mode append goes on with them.

A job that may fail halfway can go on: with --resume its tasks leave a receipt of what they completed, and
the same command, given again, writes only what is missing and makes all of it visible in one commit; where
that commit was the last that an earlier run did, it changes nothing and says so. It is
the same job while tensor, options, and names, shapes and dtypes of the sources are; of a source that changed
nothing is used. Receipts that nobody comes back to go with vacuum, a week after the last.

Cells are written all or none: with --resume such a job is done again, unless its batch is there; in the mode append
it needs --txn-app-id and --txn-version, by which it knows that.

--skip-bad reads every file twice: all of it before the write, so that one that is damaged, not there, or of
another shape or dtype than the first good file, is left out and listed with the reason. A file that goes bad
after that stops the job, as without --skip-bad the first bad file does; nothing is committed then. A file of cells
is left out if it cannot be read or one of its records will not do; each costs another look at all files.

With --dataset samples are added to a dataset, in one commit. SOURCE is a folder, a file, a glob or names with
braces (train-{000..146}.tar). KIND is found by what lies there: webdataset, coco, yolo, mnist, cifar, urls,
huggingface or imagefolder. --with gives an option of the kind, as split=train or columns='{"jpg": "image"}'. With
--apart a new dataset keeps a column in a table of its own. With --skip-bad bad samples are left out and listed; with
--resume, files that are in the dataset already are not added again.

The file of --config has the long options as keys, and sources; conf/examples has some. What the command
line says wins. Lists are options that are repeated, or have commas; maps are NAME=VALUE, or JSON.

exit codes:
  0  done, also where --compact-after failed afterwards, as a line of standard error and "compaction_error" in
     the JSON then say; or with --dry-run planned; or the batch is there already and nothing was changed
  2  an option, a file or a value will not do, as one line says; the same run would fail again; or with
     --skip-bad no file is good
  1  anything else: another writer was faster, the store does not answer, or what nobody expected
130  interrupted, as by Ctrl-C
The last line of standard output is JSON, unless the job is killed: "status" is done, planned, repeated, failed
or interrupted. Bad input fails before the one commit, and leaves the table as it was. A job that ends with 1 or
130, or is killed, may have died on either side of it: repeat it with --txn-app-id and --txn-version.
"""

parser = Parser(
    prog="ingest.py",
    usage="%(prog)s [--config FILE] --table URI --id ID [options] SOURCE [SOURCE ...]",
    description=__doc__.splitlines()[0],
    epilog=_NOTES,
    formatter_class=argparse.RawDescriptionHelpFormatter,
)
parser.add_argument("--config", metavar="FILE", help="options in YAML; the command line wins")
parser.add_argument("--table", help="path or URL of the lake")
parser.add_argument(
    "--dataset", metavar="URI", help="path or URL of a dataset, in the place of --table and --id"
)
parser.add_argument("--id", help="name of the tensor; with --each of their group")
parser.add_argument(
    "--mode", choices=("error", "overwrite", "append"), help="if a tensor is there (default: error)"
)
parser.add_argument(
    "--dry-run", action="store_true", help="look at the files, print the plan, write nothing"
)
parser.add_argument(
    "--txn-app-id", metavar="NAME", help="whose batches are counted, with --txn-version"
)
parser.add_argument(
    "--txn-version",
    type=int,
    metavar="N",
    help="number of the batch: if it or a later one of that name is in the table, nothing is changed",
)
parser.add_argument(
    "--resume",
    action="store_true",
    help="keep what is completed if the job fails, and go on from what an earlier run kept; cells begin anew",
)
parser.add_argument(
    "--skip-bad",
    action="store_true",
    help="leave out files that cannot be read or do not fit, and list them; reads all files twice",
)
parser.add_argument(
    "--compact-after",
    type=int,
    metavar="N",
    help="after the commit, bring small files together if these tensors have N of them or more",
)
job_progress.add_option(parser)
add_debug(parser)
parser.add_argument(
    "--layout", help="how it is stored; auto, the default, goes by how many elements are not zero"
)
parser.add_argument(
    "--threshold", type=float, metavar="SHARE",
    help="share of elements that are not zero from which --layout auto is dense (default: 0.1)",
)  # fmt: skip
parser.add_argument("--block-shape", help="shape of a chunk or block, as 1,3,256,1024")
parser.add_argument(
    "--order",
    help="axes in the order by which csf and bsgs sort elements, as 2,0,1; C order if not given",
)
parser.add_argument("--row-axes", help="which axes are the rows of csr and csc, as 0,1")
parser.add_argument(
    "--codec", help="how chunks are coded; auto, the default, and smallest try candidates"
)
parser.add_argument(
    "--quantize",
    metavar="KIND",
    help="store floats in fewer bits: float16, bfloat16, float8_e4m3fn, float8_e5m2, int8, split, or a bound such as "
    "'{\"error\": 0.001}' or '{\"relative\": 0.001}'",
)
parser.add_argument(
    "--axes", help="names of the axes, as image,channel,y,x; of tables --axis has them"
)
parser.add_argument("--attrs", help="attributes, as a JSON object")
parser.add_argument(
    "--storage-option",
    action="append",
    metavar="NAME=VALUE",
    help="of the store, as AWS_REGION=eu-west-1; once for each",
)
parser.add_argument(
    "--sources-from",
    action="append",
    metavar="FILE",
    help="a file with a source in every line, as @FILE",
)
parser.add_argument(
    "sources", nargs="+", metavar="SOURCE", help="files, globs and folders, @FILE for a list"
).required = False  # the file of --config may have them

arrays = parser.add_argument_group("arrays", "images, TIFF, .npy, .npz, Zarr, HDF5 and NetCDF-4")
how = arrays.add_mutually_exclusive_group()
how.add_argument("--stack", action="store_true", help="along a new first axis (default)")
how.add_argument("--concat", type=int, metavar="AXIS", help="along an axis that is there")
how.add_argument("--each", action="store_true", help="one tensor per file, named ID/stem")
arrays.add_argument("--channels-first", action="store_true", help="images as (channel, y, x)")

cells = parser.add_argument_group(
    "cells",
    "tables (CSV, Parquet, the folder of a Delta table) and, with the first three options, .tns, .mtx and "
    ".npz of sparse matrices",
)
cells.add_argument("--shape", help="of the tensor; the least that holds all cells if not given")
cells.add_argument("--dtype", help="of the tensor; that of the values if not given")
cells.add_argument(
    "--duplicates",
    choices=("error", "sum", "last"),
    help="what a cell that is given twice means; with count() and sum() they are always added up",
)
cells.add_argument(
    "--axis",
    action="append",
    metavar="NAME[=COLUMN][:RULE][@START]",
    help="an axis, and the column that it comes from; once for every axis, in order",
)
cells.add_argument(
    "--value",
    help="a column, where a cell has one record; 'count()' or 'sum(COLUMN)' of all records that fall in one cell",
)
cells.add_argument(
    "--column",
    action="append",
    metavar="NAME=EXPRESSION",
    help="a further column, in Spark SQL, as 'day=make_date(year, month, day)'",
)
cells.add_argument("--where", help="which records count, in Spark SQL; columns of CSV are text")
cells.add_argument("--delimiter", help="of CSV files; a comma, of .tsv a tab, if not given")
cells.add_argument(
    "--source-version", type=int, metavar="N", help="of Delta tables; the newest if not given"
)
cells.add_argument(
    "--timezone", help="by whose clock times are binned, as Europe/Berlin (default: UTC)"
)

samples = parser.add_argument_group("samples", "with --dataset")
samples.add_argument("--kind", help="of the source; found by what lies there if not given")
samples.add_argument(
    "--with",
    dest="source_option",
    action="append",
    metavar="NAME=VALUE",
    help="an option of the kind; once for each",
)
samples.add_argument(
    "--apart",
    action="append",
    metavar="COLUMN",
    help="a column that a new dataset keeps in a table of its own; once for each",
)

_DEFAULTS = defaults_of(
    parser, mode="error", timezone="UTC", sources=[], progress=job_progress.EVERY
)
_OPTIONS = {
    "layout": "layout", "blockShape": "block_shape", "order": "order", "rowAxes": "row_axes", "codec": "codec",
    "axes": "axes", "attrs": "attrs", "shape": "shape", "dtype": "dtype", "duplicates": "duplicates", "txnAppId": "txn_app_id",
    "txnVersion": "txn_version", "threshold": "threshold", "quantize": "quantize",
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
            raise InvalidOptionError(f"--{name} is missing; --help tells what there is")
    sources = [*args.sources, *(f"@{path}" for path in args.sources_from)]
    if not sources:
        raise InvalidOptionError("no SOURCE is given: a file, a glob, a folder, or @LIST.txt")
    stored = storage_options(args)
    how = "each" if args.each else "stack" if args.stack else None
    chosen = {name: getattr(args, key) for name, key in _OPTIONS.items()}
    used = session or job_session(local_session)
    try:
        with (
            quiet_tasks(used, not args.debug),
            job_progress.telling("ingest.py", used, args.progress),
        ):
            return run(
                used,
                args.table,
                args.id,
                sources,
                IngestOptions(
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
                ),
            )
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
