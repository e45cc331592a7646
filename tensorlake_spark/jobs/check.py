"""Check every file, row, statistic and total of a table, and repair what needs no guess.

spark-submit jobs/check.py --table URI [--id ID]... [--repair] [--digest FILE]
spark-submit jobs/check.py --table DATASET [--deep] [--sources]
python -m tensorlake_spark check URI
"""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import Any

from tensorlake_spark.audit.check import check, in_short
from tensorlake_spark.audit.digest import Digest
from tensorlake_spark.datasets.derived.lineage_check import check_lineage
from tensorlake_spark.datasets.maintenance.dataset_check import check as check_dataset
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
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
from tensorlake_spark.jobs.execution import NOTE, execution

_NOTES = """
The table is a lake or a dataset. All data files of the newest version are read. Without --repair, nothing changes.
With --repair, totals and statistics that do not match the rows are written again. For everything that is damaged, the
report says what could bring it back.

"""

parser = table_parser(
    "check.py",
    __doc__.splitlines()[0],
    f"{_NOTES}{NOTE}\n"
    + EXIT_CODES.format(
        third="  3  something is wrong and was not repaired; the report says what\n"
    ),
)
parser.add_argument(
    "--id", action="append", metavar="ID", help="a tensor to check; may be repeated; default: all"
)
parser.add_argument(
    "--repair", action="store_true", help="repair what can be repaired without a guess"
)
parser.add_argument(
    "--digest",
    metavar="FILE",
    help="what lake.digest().save(FILE) wrote, or 64 hexadecimal digits: check that nothing changed since",
)
parser.add_argument("--deep", action="store_true", help="for a dataset: decode its media too")
parser.add_argument(
    "--sources",
    action="store_true",
    help="for a dataset that is a copy of others: compare it with them",
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
        if args.repair and args.dry_run:
            raise InvalidOptionError(
                "--repair and --dry-run exclude each other; a check changes nothing"
            )
        snapshot = table_of(args)
        if snapshot.kind == SAMPLES:
            refuse(args, ("id", "repair", "digest"), "lakes, and this table is a dataset")
            with execution("check.py", session, args) as run:
                report = check_dataset(snapshot, args.deep, run)
                if args.sources:
                    found = check_lineage(snapshot, dict(snapshot.storage.options))
                    report = replace(report, findings=in_short([*report.findings, *found]))
        else:
            refuse(args, ("deep", "sources"), "datasets, and this table is a lake")
            snapshot = Snapshot.open(snapshot.storage)
            digest = None if args.digest is None else _digest(args.digest)
            with execution("check.py", session, args) as run:
                report = check(snapshot, args.id or None, args.repair, run, digest)
        print(report)
        status = {} if report.ok else {"exit_code": 3}
        return {"status": "good" if report.ok else "bad", **status, **asdict(report)}

    return carry_out("check.py", work, arguments)


def _digest(said: str) -> Digest | str:
    """Return a saved digest, or the digits as they are; a file that is none is a wrong value: no later run takes it."""
    if len(said) == 64 and not os.path.exists(said):
        return said
    try:
        return Digest.load(said)
    except CorruptDataError as error:
        raise InvalidOptionError(f"--digest: {error}") from error
