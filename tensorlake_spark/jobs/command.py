"""What all jobs have in common: options of a table, exit codes, and a last line of JSON."""

from __future__ import annotations

import argparse
import errno
import io
import json
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    CorruptDataError,
    InvalidOptionError,
    InvalidQueryError,
    StorageError,
    TensorLakeError,
)
from tensorlake_spark.jobs.config import Parser
from tensorlake_spark.spark.cluster.s3a import completed, settings_of_submit

EXIT_CODES = """exit codes:
  0  success, also if there was nothing to do
  2  an option or a value is wrong, as one line says; the same run would fail again
{third}  1  anything else: another writer was faster, the store does not answer, or an unexpected error
130  interrupted, for example by Ctrl-C
The last line of standard output is JSON, unless the job is killed.
"""

_AGAIN = (ConcurrentWriteError, CorruptDataError, StorageError)
"""What may be over when the job is run again."""


def table_parser(name: str, description: str, notes: str) -> Parser:
    """Return a parser with the options that every job on a table has."""
    parser = Parser(
        prog=name,
        description=description,
        epilog=notes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--config", metavar="FILE", help="a YAML file with options; those on the command line win"
    )
    parser.add_argument("--table", help="path or URL of the lake or dataset")
    parser.add_argument(
        "--storage-option",
        action="append",
        metavar="NAME=VALUE",
        help="an option of the store, such as AWS_REGION=eu-west-1; may be repeated",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be done, and change nothing"
    )
    add_debug(parser)
    return parser


def add_debug(parser: Parser) -> None:
    """Give a parser the option that prints the traceback of an error."""
    parser.add_argument(
        "--debug",
        action="store_true",
        help="print the traceback of an error, and what Spark says of it (command line only)",
    )


def defaults_of(parser: Parser, **given: Any) -> dict[str, Any]:
    """Return what holds where neither command line nor configuration says something."""
    out: dict[str, Any] = {}
    for action in parser._actions:
        is_list = isinstance(action, argparse._AppendAction)
        out[action.dest] = False if action.nargs == 0 else [] if is_list else None
    return {**out, **given}


def storage_options(args: argparse.Namespace) -> dict[str, str]:
    """Return what ``--storage-option`` says.

    Raises
    ------
    InvalidOptionError
        If one of them has no value, or is given twice; what it says is not repeated, for it may be a secret.
    """
    return pairs(args.storage_option, "--storage-option", shown=False)


def pairs(texts: Iterable[str], option: str, shown: bool = True) -> dict[str, str]:
    """Return the values of an option that is repeated as ``NAME=VALUE``, by name.

    Parameters
    ----------
    texts : iterable of str
        As the command line has them.
    option : str
        With its hyphens, for messages.
    shown : bool
        Whether an error may repeat what is wrong, which may be a secret.

    Raises
    ------
    InvalidOptionError
        If one of them has no name or no ``=``, or a name is given twice, of which one value would be lost.

    Examples
    --------
    >>> pairs(["a=1", "b=x=y"], "--param")
    {'a': '1', 'b': 'x=y'}
    """
    out: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign):
            said = f": {text!r:.100}" if shown else ""
            raise InvalidOptionError(f"a {option} is not NAME=VALUE{said}")
        if name in out:
            raise InvalidOptionError(f"{option} {name!r:.100} is given twice; give one value")
        out[name] = value
    return out


def add_uri(parser: Parser) -> None:
    """Give a parser the table as an argument, which stands for ``--table``."""
    parser.add_argument("uri", nargs="?", metavar="URI", help="the table; stands for --table")


def table_of(args: argparse.Namespace) -> Snapshot:
    """Return the newest version of the table that a command line names, a lake's or a dataset's.

    Raises
    ------
    InvalidOptionError
        If it names none, or two.
    TableNotFoundError
        If there is none.
    """
    if args.uri is not None and args.table is not None:
        raise InvalidOptionError("the table is given twice, as URI and by --table; give one")
    table = args.table if args.uri is None else args.uri
    if table is None:
        raise InvalidOptionError("--table is missing; --help lists all options")
    options = completed(storage_options(args), settings_of_submit(), table)
    return Snapshot.open(Storage(table, options), kind=None)


def refuse(args: argparse.Namespace, names: Sequence[str], what: str) -> None:
    """Raise InvalidOptionError if a command line has an option that means nothing for its table."""
    for name in names:
        given = getattr(args, name)
        if given is not None and given is not False and given != []:  # an empty text counts, too
            raise InvalidOptionError(f"--{name.replace('_', '-')} is for {what}")


def is_debugged(arguments: Sequence[str] | None) -> bool:
    """Whether a command line has ``--debug``; None stands for that of this process."""
    return "--debug" in (sys.argv[1:] if arguments is None else arguments)


def carry_out(
    name: str, work: Callable[[], Mapping[str, Any]], arguments: Sequence[str] | None = None
) -> int:
    """Do a job's work, print what it tells as a line of JSON, and return its exit code.

    Parameters
    ----------
    name : str
        The job, for messages.
    work : callable
        Returns what to tell, with ``exit_code`` where that is not 0.
    arguments : sequence of str, optional
        The command line; that of this process by default. With ``--debug`` the traceback of a mistake comes
        before the line that tells it.
    """
    with _all_letters():
        return _carried_out(name, work, arguments)


def _carried_out(
    name: str, work: Callable[[], Mapping[str, Any]], arguments: Sequence[str] | None
) -> int:
    start = time.perf_counter()
    root = logging.getLogger()
    if not is_debugged(arguments):
        root.addFilter(_is_not_of_the_gateway)
    try:
        about = dict(work())
    except TensorLakeError as error:
        if is_debugged(arguments):
            traceback.print_exc()
        print(f"{name}: {_line_of(error)}", file=sys.stderr)
        about = _failed(error, 1 if isinstance(error, _AGAIN) else 2)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        about = {"status": "interrupted", "exit_code": 128 + signal.SIGINT}
    except BrokenPipeError as error:  # told below, where the last line is written
        about = _failed(error, 1)
    except Exception as error:
        traceback.print_exc()
        about = _failed(error, 1)
    finally:
        root.removeFilter(_is_not_of_the_gateway)
    if sys.stderr is not None:  # a scheduler may close it
        sys.stderr.flush()
    about["seconds"] = round(time.perf_counter() - start, 3)
    try:
        if sys.stdout is None:  # closed before Python began, which prints nothing then
            raise OSError(errno.EBADF, "it is closed")
        print(json.dumps(about), flush=True)
    except OSError as error:  # as behind "| head"
        about.setdefault("exit_code", 1)
        why, line = error.strerror or error, json.dumps(about)
        print(
            f"{name}: standard output takes no more: {why}; its last line: {line}", file=sys.stderr
        )
        if sys.stdout is not None:
            _give_up_output()
    return int(about.get("exit_code", 0))


@contextmanager
def _all_letters() -> Iterator[None]:
    """Let standard output write escapes for what its encoding lacks: a report must not fail at a name."""
    out = sys.stdout
    if not isinstance(out, io.TextIOWrapper) or out.errors != "strict":
        yield
        return
    out.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        with suppress(OSError):  # what is not written yet is written first
            out.reconfigure(errors="strict")


def _give_up_output() -> None:
    """Let what is left of standard output go nowhere, or Python fails once more where the process ends."""
    with suppress(OSError, ValueError):  # a stream that is no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _is_not_of_the_gateway(record: logging.LogRecord) -> bool:
    """Keep back what Py4J logs when Ctrl-C cuts a call to the JVM: tracebacks before the line that says so."""
    return "py4j" not in Path(record.pathname).parts


def _line_of(error: TensorLakeError) -> str:
    """Return what an error says as one line, whatever is in the names that it repeats; of a query, also where it is."""
    if isinstance(error, InvalidQueryError):
        return str(error)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(error))


def _failed(error: Exception, code: int) -> dict[str, Any]:
    said = {"type": type(error).__name__, "message": str(error) or type(error).__name__}
    return {"status": "failed", "exit_code": code, "error": said}
