"""Ingest images, .npy and .npz files into a lake.

spark-submit jobs/ingest.py --table URI --id ID [--stack | --concat AXIS | --each] SOURCE...
"""

from __future__ import annotations

import argparse
import sys
import time

from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.indexing.plan import size_text
from tensorlake_spark.spark.ingest import ingest, job_session
from tensorlake_spark.spark.session import local_session

parser = argparse.ArgumentParser(prog="ingest.py", description=__doc__.splitlines()[0])
parser.add_argument("--table", required=True, help="path or URL of the lake")
parser.add_argument("--id", required=True, help="name of the tensor; with --each of their group")
how = parser.add_mutually_exclusive_group()
how.add_argument("--stack", action="store_true", help="along a new first axis (default)")
how.add_argument("--concat", type=int, metavar="AXIS", help="along an axis that is there")
how.add_argument("--each", action="store_true", help="one tensor per file, named ID/stem")
parser.add_argument("--mode", choices=("error", "overwrite", "append"), default="error")
parser.add_argument("--channels-first", action="store_true", help="images as (channel, y, x)")
parser.add_argument("--block-shape", help="shape of a chunk, as 1,3,256,1024")
parser.add_argument("--codec", help="how chunks are coded; chosen by trying if not given")
parser.add_argument("--axes", help="names of the axes, as image,channel,y,x")
parser.add_argument("--attrs", help="attributes, as a JSON object")
parser.add_argument("--storage-option", action="append", default=[], metavar="NAME=VALUE")
parser.add_argument("sources", nargs="+", metavar="SOURCE", help="files and globs")


def main(arguments: list[str] | None = None) -> int:
    """Run the job and return its exit code: 0, or 2 with one line that says what is wrong."""
    args = parser.parse_args(arguments)
    chosen = {
        "blockShape": args.block_shape,
        "codec": args.codec,
        "axes": args.axes,
        "attrs": args.attrs,
    }
    session = job_session(local_session)
    start = time.perf_counter()
    try:
        metas = ingest(
            session,
            args.table,
            args.id,
            args.sources,
            how="each" if args.each else "concat" if args.concat is not None else "stack",
            axis=args.concat or 0,
            mode=args.mode,
            channels_first=args.channels_first,
            options={k: v for k, v in chosen.items() if v is not None},
            storage_options=dict(o.split("=", 1) for o in args.storage_option),
        )
    except TensorLakeError as error:
        print(f"ingest.py: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        # An error of an executor comes wrapped in Spark's; the last line of it is the one that says what.
        lines = [line for line in str(error).splitlines() if "tensorlake_spark.errors." in line]
        if not lines:
            raise
        print(f"ingest.py: {lines[-1].split(': ', 1)[-1]}", file=sys.stderr)
        return 2
    finally:
        session.stop()
    seconds = time.perf_counter() - start
    for meta in metas:
        spec = meta.spec
        print(
            f"{spec.id}: shape {spec.shape}, {spec.dtype}, {spec.layout} in blocks of {spec.block_shape}, "
            f"{size_text(spec.nbytes)} stored in {size_text(meta.totals.nbytes)}"
        )
    print(f"{len(metas)} tensor(s) in {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
