"""Delete files that no version within the retention needs, and files that crashed writers left behind.

spark-submit jobs/vacuum.py --table URI [--retention-hours N] [--dry-run]
python -m tensorlake_spark vacuum URI
"""

from __future__ import annotations

from typing import Any

import tensorlake_spark as tl
from tensorlake_spark.datasets.maintenance.dataset_vacuum import vacuum as vacuum_dataset
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.jobs import job_progress
from tensorlake_spark.jobs.command import (
    EXIT_CODES,
    add_uri,
    carry_out,
    defaults_of,
    refuse,
    table_of,
    table_parser,
)
from tensorlake_spark.jobs.config import parse
from tensorlake_spark.jobs.execution import execution
from tensorlake_spark.upkeep.vacuum import check_retention, vacuum

_NOTES = """
The table is a lake or a dataset; the tables inside a dataset's folder are vacuumed too. The default retention is the
table's own, which is a week unless a property of the table says otherwise. Afterwards, versions older than that can
no longer be read, except those with a tag. With --retention-hours 0, files of running writers are deleted too, so
stop these first.

One process does the work, because one request to S3 deletes a thousand files. Under spark-submit, executors delete
files of an object store if the table has deletion vectors, another table in its folder, or tags of more than 32
versions.

"""

parser = table_parser(
    "vacuum.py", __doc__.splitlines()[0], f"{_NOTES}{EXIT_CODES.format(third='')}"
)
parser.add_argument(
    "--retention-hours",
    type=float,
    metavar="N",
    help="keep files that left the table within this many hours",
)
parser.add_argument(
    "--uploads",
    action="store_true",
    help="also abort unfinished multipart uploads on S3; needs the extra s3",
)
add_uri(parser)
job_progress.add_option(parser)

_DEFAULTS = defaults_of(parser, progress=job_progress.EVERY)


def main(arguments: list[str] | None = None, session: Any = None) -> int:
    """Run the job and return its exit code; the last line of standard output is JSON.

    `session` stands for the one that the job would start, and stop.
    """

    def work() -> dict[str, Any]:
        args = parse(parser, arguments, _DEFAULTS)
        check_retention(args.retention_hours)
        snapshot = table_of(args)
        storage = snapshot.storage
        would = "would be" if args.dry_run else "were"
        if snapshot.kind == SAMPLES:
            refuse(args, ("uploads",), "lakes, and this table is a dataset")
            gone = {"files": vacuum_dataset(storage, args.retention_hours, args.dry_run)}
        else:
            with execution("vacuum.py", session, args) as run:
                snapshot = Snapshot.open(storage)
                gone = {"files": vacuum(snapshot, args.retention_hours, args.dry_run, run)}
        if args.uploads:
            lake = tl.open(storage.uri, storage_options=storage.options)
            gone["uploads"] = lake.abort_uploads(args.retention_hours, dry_run=args.dry_run)
        for kind, done in (("files", "deleted"), ("uploads", "aborted")):
            if kind in gone:
                print("\n".join([*gone[kind], f"{len(gone[kind])} {kind} {would} {done}"]))
        counts = {kind: len(names) for kind, names in gone.items()}
        return {"status": "planned" if args.dry_run else "done", **counts}

    return carry_out("vacuum.py", work, arguments)
