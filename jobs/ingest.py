"""Ingest files into a lake: images and arrays, sparse matrices, logs.

spark-submit jobs/ingest.py --table URI --id ID [--stack | --concat AXIS | --each] SOURCE...
spark-submit jobs/ingest.py --table URI --id ID SOURCE.tns SOURCE.mtx SOURCE.npz...
spark-submit jobs/ingest.py --table URI --id ID --axis NAME[=COLUMN][:RULE][@START]... --value VALUE SOURCE.csv SOURCE.parquet...
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time

from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.indexing.plan import size_text
from tensorlake_spark.row import Meta
from tensorlake_spark.spark.ingest import ingest, job_session
from tensorlake_spark.spark.session import local_session
from tensorlake_spark.spark.tables import CellOptions

_TABLES = """
A log becomes a tensor of counts by

  ingest.py --table LAKE --id flights --axis day=time_hour:day --axis origin --axis carrier \\
      --value 'count()' flights.csv.zip

RULE says how the values of a column become indices:
  (none)    integers from 0 on as they are; texts that are no integers as labels
  int       integers; @1 counts from 1
  label     a number for each value that there is: labels are sorted, and new ones of a later append
            come after them
  0.01, 10  bins of that length, for numbers
  hour      bins of time: year, month, week, day, hour, minute, second, also as 15minute; times without
            a zone are taken as they stand, others as the clock of --timezone shows them
@START is where the first bin begins, without it the bin of the least value. Bins and labels are kept
with the tensor, and a later --mode append goes on with them.
"""

parser = argparse.ArgumentParser(
    prog="ingest.py",
    usage="%(prog)s --table URI --id ID [options] SOURCE [SOURCE ...]",
    description=__doc__.splitlines()[0],
    epilog=_TABLES,
    formatter_class=argparse.RawDescriptionHelpFormatter,
)
parser.add_argument("--table", required=True, help="path or URL of the lake")
parser.add_argument("--id", required=True, help="name of the tensor; with --each of their group")
parser.add_argument("--mode", choices=("error", "overwrite", "append"), default="error")
parser.add_argument("--layout", help="how it is stored; dense arrays ftsf, cells bsgs by default")
parser.add_argument("--block-shape", help="shape of a chunk or block, as 1,3,256,1024")
parser.add_argument("--codec", help="how chunks are coded; chosen by trying if not given")
parser.add_argument(
    "--axes", help="names of the axes, as image,channel,y,x; of tables --axis has them"
)
parser.add_argument("--attrs", help="attributes, as a JSON object")
parser.add_argument("--storage-option", action="append", default=[], metavar="NAME=VALUE")
parser.add_argument("sources", nargs="+", metavar="SOURCE", help="files, globs and folders")

arrays = parser.add_argument_group("arrays", "images, .npy and .npz")
how = arrays.add_mutually_exclusive_group()
how.add_argument("--stack", action="store_true", help="along a new first axis (default)")
how.add_argument("--concat", type=int, metavar="AXIS", help="along an axis that is there")
how.add_argument("--each", action="store_true", help="one tensor per file, named ID/stem")
arrays.add_argument("--channels-first", action="store_true", help="images as (channel, y, x)")

cells = parser.add_argument_group(
    "cells", "tables and, with the first three options, .tns, .mtx and .npz of sparse matrices"
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
    default=[],
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
    default=[],
    metavar="NAME=EXPRESSION",
    help="a further column, in Spark SQL, as 'day=make_date(year, month, day)'",
)
cells.add_argument("--where", help="which records count, in Spark SQL; columns of CSV are text")
cells.add_argument("--delimiter", help="of CSV files; a comma, of .tsv a tab, if not given")
cells.add_argument(
    "--timezone", default="UTC", help="by whose clock times are binned, as Europe/Berlin"
)


def main(arguments: list[str] | None = None) -> int:
    """Run the job and return its exit code: 0, or 2 with one line that says what is wrong.

    The last line of standard output is a JSON object: what was written, and how long it took.
    """
    args = parser.parse_args(arguments)
    chosen = {
        "layout": args.layout,
        "blockShape": args.block_shape,
        "codec": args.codec,
        "axes": args.axes,
        "attrs": args.attrs,
        "shape": args.shape,
        "dtype": args.dtype,
        "duplicates": args.duplicates,
    }
    # PySpark would say everything that the one line says again, with the whole stack of the JVM.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    session = job_session(local_session)
    start = time.perf_counter()
    try:
        metas = ingest(
            session,
            args.table,
            args.id,
            args.sources,
            how="each"
            if args.each
            else "concat"
            if args.concat is not None
            else "stack"
            if args.stack
            else None,
            axis=args.concat or 0,
            mode=args.mode,
            channels_first=args.channels_first,
            cells=CellOptions(
                tuple(args.axis),
                args.value,
                tuple(args.column),
                args.where,
                args.delimiter,
                args.timezone,
            ),
            options={k: v for k, v in chosen.items() if v is not None},
            storage_options=dict(o.split("=", 1) for o in args.storage_option),
        )
    except TensorLakeError as error:
        print(f"ingest.py: {error}", file=sys.stderr)
        return 2
    finally:
        session.stop()
    report(metas, time.perf_counter() - start)
    return 0


def report(metas: list[Meta], seconds: float) -> None:
    """Print what was written: a line for each tensor, and JSON for who reads it by program."""
    out = []
    for meta in metas:
        spec, stored = meta.spec, meta.totals
        blocks = f" in blocks of {spec.block_shape}" if spec.block_shape else ""
        print(
            f"{spec.id}: shape {spec.shape}, {spec.dtype}, {spec.layout}{blocks}, {stored.nnz} elements, "
            f"{size_text(spec.nbytes)} stored in {size_text(stored.nbytes)}"
        )
        out.append(
            {"id": spec.id, "shape": spec.shape, "dtype": spec.dtype.name, "layout": spec.layout,
             "nnz": stored.nnz, "stored_bytes": stored.nbytes}
        )  # fmt: skip
    print(f"{len(metas)} tensor(s) in {seconds:.1f} s")
    print(json.dumps({"tensors": out, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    sys.exit(main())
