"""Remove a tensor, a part of one, or samples of a dataset from every file and every old version, with a receipt.

spark-submit jobs/purge.py --table URI --id ID [--now] --receipt FILE
spark-submit jobs/purge.py --table URI --id ID --region 'user=42' | --coords FILE.npy
spark-submit jobs/purge.py --table DATASET --sid SID... | --where SQL [--now] --receipt FILE
python -m tensorlake_spark purge URI --id ID --dry-run
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any, TextIO

import numpy as np

from tensorlake_spark.audit.purge import purge
from tensorlake_spark.datasets.maintenance.dataset_purge import purge as purge_samples
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.errors import InvalidOptionError
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
The data leaves the newest version at once. Files of old versions that hold it are deleted after the retention of the
table: run the same command again then, or use --now to delete them at once. An old version that needs a deleted file
can no longer be read, nor can the other tensors in that file. The receipt lists what was done, with digests of the
files, and says whether a search of the table's folder still found any of the data.

"""

parser = table_parser(
    "purge.py",
    __doc__.splitlines()[0],
    f"{_NOTES}{NOTE}\n"
    + EXIT_CODES.format(
        third="  3  purged but not verified, for example because files are still to be deleted; the receipt says why\n"
    ),
)
parser.add_argument("--id", help="the tensor to purge")
parser.add_argument(
    "--sid",
    action="append",
    metavar="SID",
    help="for a dataset: the number of a sample; may be repeated",
)
parser.add_argument(
    "--where", metavar="SQL", help="for a dataset: a condition, such as \"label = 'cat'\""
)
add_uri(parser)
parser.add_argument(
    "--region", metavar="SLICE", help="only this part of the tensor, such as '3:5, :' or 'user=42'"
)
parser.add_argument(
    "--coords",
    metavar="FILE.npy",
    help="only these elements of a sparse tensor: an array of integers with a row for each axis",
)
parser.add_argument(
    "--now", action="store_true", help="delete old files now, and not after the retention"
)
parser.add_argument(
    "--receipt", metavar="FILE", help="a new file for the receipt, which is also printed"
)
parser.add_argument(
    "--key-file", metavar="FILE", help="a file with the key that signs the receipt (HMAC-SHA256)"
)

job_progress.add_option(parser)

_DEFAULTS = defaults_of(parser, progress=job_progress.EVERY)


def main(arguments: list[str] | None = None, session: Any = None) -> int:
    """Run the job and return its exit code; the last line of standard output is JSON.

    `session` stands for the one that the job would start, and stop.
    """

    def work() -> dict[str, Any]:
        args = parse(parser, arguments, _DEFAULTS)
        if args.id is None and not args.sid and args.where is None:
            raise InvalidOptionError("--id is missing; for a dataset, give --sid or --where")
        key = None if args.key_file is None else _key(args.key_file)
        coords = None if args.coords is None else _coords(args.coords)
        snapshot = table_of(args)
        is_dataset = snapshot.kind == SAMPLES
        if is_dataset:
            refuse(args, ("id", "region", "coords"), "lakes, and this table is a dataset")
        else:
            refuse(args, ("sid", "where"), "datasets, and this table is a lake")
        sids = [_number(text) for text in args.sid] or None
        # What a purge deletes is gone: whether its receipt can be kept is known before.
        file = None if args.receipt is None else _new_file(args.receipt)
        try:
            with execution("purge.py", session, args) as run:
                storage, how = snapshot.storage, (args.now, args.dry_run, run)
                if is_dataset:
                    receipt = purge_samples(storage, sids, args.where, *how)
                else:
                    receipt = purge(storage, args.id, args.region, coords, *how)
        except BaseException:
            if file is not None:
                _drop(file)
            raise
        text = receipt.to_json(key)
        # Before anything is printed: the file has the receipt even if nobody takes the output.
        kept = {} if file is None else _keep(file, text)
        # The last line has it, too, and goes to standard error then.
        with suppress(BrokenPipeError):
            print(receipt)
        good = receipt.verified or args.dry_run
        status = "planned" if args.dry_run else "verified" if good else "unverified"
        return {
            "status": status,
            "receipt": json.loads(text),
            **({} if good else {"exit_code": 3}),
            **kept,
        }

    return carry_out("purge.py", work, arguments)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise InvalidOptionError(
            f"--sid {text!r:.80} is no sid; it is a whole number, as ds.sids has them"
        )
    return int(text)


def _new_file(path: str) -> TextIO:
    try:
        return open(path, "x", encoding="utf-8")
    except FileExistsError:
        raise InvalidOptionError(f"--receipt {path} is there already; name another file") from None
    except (OSError, ValueError) as error:
        raise InvalidOptionError(
            f"--receipt {path} cannot be written, and nothing was purged: {_why(error)}"
        ) from None


def _why(error: OSError | ValueError) -> object:
    """Return why a file cannot be opened; its name alone may be none that a system takes."""
    return getattr(error, "strerror", None) or error


def _keep(file: TextIO, text: str) -> dict[str, Any]:
    """Write the receipt; return what to tell where that fails: the last line of the output has it too."""
    try:
        with file:
            file.write(text + "\n")
    except OSError as error:
        _drop(file)
        said = f"--receipt {file.name} cannot be written: {error.strerror}; keep the last line of the output"
        print(f"purge.py: {said}", file=sys.stderr)
        return {"exit_code": 1, "error": {"type": type(error).__name__, "message": said}}
    return {}


def _drop(file: TextIO) -> None:
    """Remove a file that has no receipt, or a part of one."""
    with suppress(OSError):
        file.close()
    with suppress(OSError):
        os.remove(file.name)


def _key(path: str) -> bytes:
    key = _read("--key-file", path)
    if not key:
        raise InvalidOptionError(f"--key-file {path} is empty, so anybody could sign with it")
    return key


def _read(option: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidOptionError(f"{option} {path} cannot be read: {_why(error)}") from None


def _coords(path: str) -> Any:
    stream = BytesIO(_read("--coords", path))
    try:
        # np.load would take other files for archives, or for pickles, and advise to load these unsafely.
        coords = np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, TokenError, MemoryError) as error:  # the latter two of a damaged header
        raise InvalidOptionError(f"{path} is not a .npy file of integers: {error}") from None
    if coords.ndim != 2 or coords.dtype.kind not in "iu":
        raise InvalidOptionError(
            f"{path} has shape {coords.shape} and dtype {coords.dtype}; it should hold integers, a row for every axis"
        )
    return coords
