"""The command line: ``python -m tensorlake_spark VERB ...``; each verb is a job."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from tensorlake_spark import __version__
from tensorlake_spark.errors import did_you_mean

VERBS = ("ingest", "optimize", "purge", "vacuum", "check", "query")


def main(arguments: list[str]) -> int:
    """Run a job and return its exit code."""
    verb = arguments[0] if arguments else "--help"
    if verb in ("-h", "--help"):
        print(
            f"usage: python -m tensorlake_spark {{{','.join(VERBS)}}} [options]; VERB --help has more; "
            "--version is that of this package"
        )
        return 0
    if verb == "--version":
        print(f"tensorlake_spark {__version__}")
        return 0
    if verb not in VERBS:
        known = ", ".join(VERBS)
        print(
            f"unknown verb {verb!r}{did_you_mean(verb, (*VERBS, '--help', '--version'))}; known are {known}",
            file=sys.stderr,
        )
        return 2
    try:
        job = import_module(f"tensorlake_spark.jobs.{verb}")
    except ModuleNotFoundError as error:  # `ingest` needs Spark, and says so as a job does
        return _without_spark(verb, arguments[1:], error)
    except KeyboardInterrupt:  # to import takes a while; from here on the job tells it
        print(f"{verb}.py: interrupted", file=sys.stderr)
        print('{"status": "interrupted", "exit_code": 130, "seconds": 0.0}')
        return 130
    code: int = job.main(arguments[1:])
    return code


def _without_spark(verb: str, arguments: list[str], error: ModuleNotFoundError) -> int:
    from tensorlake_spark.jobs.command import carry_out
    from tensorlake_spark.spark.session import check_missing

    def work() -> dict[str, Any]:
        check_missing(error)
        raise error

    return carry_out(f"{verb}.py", work, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
