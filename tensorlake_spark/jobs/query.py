"""Run an SQL query on datasets, lakes and other tables, and print or store the rows.

python -m tensorlake_spark query URI "SELECT ..." [--output FILE.parquet|FILE.csv|DATASET] [--param NAME=VALUE]...
python -m tensorlake_spark query --source ds=URI --source t=URI "SELECT ..." [--spark]
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from tensorlake_spark.datasets.dataset import dataset
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import FormatError, InvalidOptionError, TableNotFoundError
from tensorlake_spark.jobs import job_progress
from tensorlake_spark.jobs.command import (
    EXIT_CODES,
    carry_out,
    defaults_of,
    pairs,
    storage_options,
    table_parser,
)
from tensorlake_spark.jobs.config import parse
from tensorlake_spark.query.language.parsing import parse as parse_query
from tensorlake_spark.query.query import query
from tensorlake_spark.spark.cluster.s3a import completed, settings_of_submit
from tensorlake_spark.tensor.spec import dtype_of

if TYPE_CHECKING:
    from tensorlake_spark.query.view import View

_NOTES = """
In the query, the table URI has the name "dataset". --source adds tables with names that you choose. The first rows
are printed. With --output, all rows are stored instead: in a file if the name ends in .parquet or .csv, and otherwise
as a new dataset, with media as they are stored. --dry-run prints what would be read. This process runs the query;
with --spark, or under spark-submit, executors do.

"""

parser = table_parser("query.py", __doc__.splitlines()[0], _NOTES + EXIT_CODES.format(third=""))
parser.add_argument(
    "words",
    nargs="*",
    metavar="URI SQL",
    help="a table and the query; with --source, only the query",
)
parser.add_argument(
    "--source",
    action="append",
    metavar="NAME=URI",
    help="a table and its name in the query; may be repeated",
)
parser.add_argument(
    "--param",
    action="append",
    metavar="NAME=VALUE",
    help="the value of :NAME in the query, as JSON or text; may be repeated",
)
parser.add_argument(
    "--output", metavar="PLACE", help="a file, which is replaced, or a new dataset for the rows"
)
parser.add_argument(
    "--rows", type=int, metavar="N", help="print at most this many rows; default: 20"
)
parser.add_argument("--spark", action="store_true", help="run the query on Spark's executors")

job_progress.add_option(parser)

_OPTIONS_OF_ARGUMENTS = (
    (r"parameters=\{'(\w+)': \.\.\.\}", r"--param \1=VALUE"),
    (r"query\(sql, (\w+)=(\.\.\.|table)\)", r"--source \1=URI"),
    (r"open the table, and give it as a source", "give the table as a source"),
    (r"give types=\{.*\}$", "leave it out, or CAST it to a type"),
)

_FILES = (".parquet", ".csv")
_OTHER_FILES = (
    ".arrow", ".avro", ".feather", ".gz", ".html", ".ipc", ".json", ".jsonl", ".md", ".ndjson", ".npy", ".npz", ".orc",
    ".pkl", ".txt", ".xls", ".xlsx", ".zip",
)  # fmt: skip
_DEFAULTS = defaults_of(parser, rows=20, words=[], progress=job_progress.EVERY)


def main(arguments: list[str] | None = None, session: Any = None) -> int:
    """Run the job and return its exit code; the last line of standard output is JSON.

    `session` stands for the one that the job would start, and stop.
    """

    def work() -> dict[str, Any]:
        try:
            return run()
        except InvalidOptionError as error:
            raise type(error)(_as_options(str(error))) from error

    def run() -> dict[str, Any]:
        args = parse(parser, arguments, _DEFAULTS)
        text, places = _asked(args)
        parameters = {name: _value(said) for name, said in pairs(args.param, "--param").items()}
        job_progress.check(args.progress)
        if args.rows < 0:
            raise InvalidOptionError(f"--rows {args.rows} is below 0")
        _check_output(args.output)
        options = storage_options(args)
        if args.spark or session is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
            return _by_spark(args, text, places, parameters, options, session)
        sources = {name: _opened(uri, options) for name, uri in places.items()}
        return _here(args, query(text, parameters=parameters, **sources), options)

    return carry_out("query.py", work, arguments)


def _as_options(said: str) -> str:
    """Return what an error of Python's `query` says with the options of the command in the place of arguments.

    Examples
    --------
    >>> _as_options("there is no source 'b'; give it: query(sql, b=...)")
    "there is no source 'b'; give it: --source b=URI"
    """
    for argument, option in _OPTIONS_OF_ARGUMENTS:
        said = re.sub(argument, option, said)
    return said


def _here(args: argparse.Namespace, view: View, options: dict[str, str]) -> dict[str, Any]:
    if args.dry_run:
        print(view.explain())
        return {"status": "planned"}
    if args.output is None:
        print(table_text(view[: args.rows].to_pandas(), len(view)))
        return {"status": "done", "rows": len(view), "columns": view.names}
    if not args.output.endswith(_FILES):
        new = view.materialize(_place(args.output))
        print(f"{len(new)} samples are in {new.uri}, version {new.version}")
        return _stored(args, len(new), view.names)
    _write(view.to_arrow(), args.output, options)
    return _stored(args, len(view), view.names)


def _by_spark(
    args: argparse.Namespace,
    text: str,
    places: dict[str, Any],
    parameters: dict[str, Any],
    options: dict[str, str],
    session: Any,
) -> dict[str, Any]:
    from tensorlake_spark.spark import plain_errors, write_samples
    from tensorlake_spark.spark import query as spark_query
    from tensorlake_spark.spark.ingest.ingestion import job_session
    from tensorlake_spark.spark.session import local_session

    sources: dict[str, Any] = dict(places)
    parse_query(text)  # Spark takes half a minute to start: a mistake is told before
    if args.output is not None and not args.dry_run and not args.output.endswith(_FILES):
        _check_new(_place(args.output), options)
    used = session or job_session(local_session)
    try:
        with job_progress.telling("query.py", used, args.progress), plain_errors():
            frame = spark_query(
                used, text, parameters=parameters, storage_options=options, **sources
            )
            if args.dry_run:
                frame.explain()
                return {"status": "planned"}
            if args.output is None:
                count = frame.count()
                print(table_text(frame.limit(args.rows).toPandas(), count))
                return {"status": "done", "rows": count, "columns": frame.columns}
            if args.output.endswith(_FILES):
                table = frame.toArrow()
                _write(table, args.output, options)
                return _stored(args, table.num_rows, frame.columns)
            place = _place(args.output)
            write_samples(frame, place, storage_options=options)
            count = len(dataset(place, None, options))
            print(f"{count} samples are in {place}")
            return _stored(args, count, frame.columns)
    finally:
        if session is None:
            used.stop()


def _asked(args: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Return the query, and the places of its sources by their names."""
    places = pairs(args.source, "--source")
    words = list(args.words)
    if not words or len(words) > 2:
        raise InvalidOptionError(
            f"{len(words)} arguments are given; give a table and a query, or a query and --source; "
            "put the query in quotation marks"
        )
    if args.table is not None:
        words.insert(0, args.table)
    if len(words) > 2:
        raise InvalidOptionError("the table is given twice, as URI and by --table; give one")
    if len(words) == 2:
        if "dataset" in places:
            raise InvalidOptionError("dataset is given twice, as URI and by --source; give one")
        places["dataset"] = words[0]
    if not places:
        raise InvalidOptionError(
            "no table is given; give its URI before the query, or use --source NAME=URI"
        )
    return words[-1], places


def _opened(uri: str, options: dict[str, str]) -> Any:
    """Return a dataset with its store's options, or the place of what is none."""
    found = completed(options, settings_of_submit(), uri)
    try:
        kind = Snapshot.open(Storage(uri, found), kind=None).kind
    except (TableNotFoundError, FormatError):
        return uri
    return dataset(uri, None, found) if kind == SAMPLES else uri


def _check_output(output: str | None) -> None:
    """Refuse an empty place, and a file that would become a folder: its ending has a typing error, or is another's."""
    # As a variable of a script that is not set; a dataset would fill the working folder.
    if output == "":
        raise InvalidOptionError(
            "--output is an empty text; name a file that ends with .parquet or .csv, or a new dataset"
        )
    ending = os.path.splitext(output or "")[1]
    near = get_close_matches(ending.lower(), _FILES, n=1, cutoff=0.6)
    if near and ending not in _FILES:
        raise InvalidOptionError(
            f"--output {output}: files end with {' or '.join(_FILES)}; did you mean {near[0]!r}? A dataset needs "
            "another name"
        )
    if ending.lower() in _OTHER_FILES:
        raise InvalidOptionError(
            f"--output {output}: files end with {' or '.join(_FILES)}, and {ending!r} is no name of a dataset; choose "
            "another name"
        )


def _check_new(place: str, options: dict[str, str]) -> None:
    try:
        Snapshot.open(Storage(place, options), kind=None)
    except TableNotFoundError:
        return
    raise InvalidOptionError(f"there is a table at {place} already; choose another --output")


def _place(output: str) -> str:
    """Return a place as a path: a name alone is in the working folder."""
    return output if "/" in output or "://" in output else os.path.join(os.curdir, output)


def _write(table: pa.Table, place: str, options: dict[str, str]) -> None:
    """Write rows to a file, of a store as well."""
    folder, slash, name = place.rpartition("/")
    options = completed(options, settings_of_submit(), place)
    storage = Storage(folder or slash or ".", options)
    if place.endswith(".csv"):
        table = _flat(table)
    sink = pa.BufferOutputStream()
    if place.endswith(".csv"):
        pacsv.write_csv(table, sink)
    else:
        pq.write_table(table, sink)
    with reaching(storage):  # a file that is there stays until the new one is complete
        storage.put_whole(name, sink.getvalue())


def _flat(table: pa.Table) -> pa.Table:
    """Return a table for CSV: tensors become lists in JSON, as do lists and structs.

    Raises
    ------
    InvalidOptionError
        If a column has bytes, such as those of images, which CSV cannot have.
    """
    out = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            values = (_listed(name, value) for value in column.to_pylist())
            texts = [None if value is None else json.dumps(value, default=str) for value in values]
            column = pa.array(texts, pa.string())
        out[name] = column
    return pa.table(out)


def _listed(name: str, value: Any) -> Any:
    """Return a value of a column with lists where it has tensors."""
    if isinstance(value, Mapping):
        data = value.get("data")
        if value.keys() == {"dtype", "shape", "data"} and isinstance(data, bytes):
            dtype = dtype_of(value["dtype"]).newbyteorder("<")
            return np.frombuffer(data, dtype).reshape(value["shape"]).tolist()
        return {key: _listed(name, one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_listed(name, one) for one in value]
    if isinstance(value, (bytes, bytearray)):
        raise InvalidOptionError(
            f"column {name!r} has bytes, which CSV cannot have; leave it out by SELECT * EXCEPT ({name}), name fields "
            f"of it such as {name}.height, or let --output end with .parquet"
        )
    return value


def _stored(args: argparse.Namespace, count: int, names: list[str]) -> dict[str, Any]:
    return {"status": "done", "rows": count, "columns": names, "output": args.output}


def table_text(frame: pd.DataFrame, count: int) -> str:
    """Return rows as a table for a terminal.

    Examples
    --------
    >>> print(table_text(pd.DataFrame({"a": [1, 2], "b": [np.zeros((2, 4)), None]}), 5))
    a  b
    -  -----------------------
    1  float64 of shape (2, 4)
    2  null
    2 of 5 rows
    """
    texts = [[str(name) for name in frame.columns]]
    texts += [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    widths = [max(len(row[n]) for row in texts) for n in range(len(texts[0]))]
    texts.insert(1, ["-" * width for width in widths])
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in texts
    ]
    shown = f"{len(frame)} of {count} rows" if len(frame) < count else f"{count} rows"
    return "\n".join([*lines, shown])


def _cell(value: Any) -> str:
    if value is None or value is pd.NA:
        return "null"
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes"
    return " ".join(f"{value!s:.60}".split())


def _value(text: str) -> Any:
    """Return a value that is JSON as what it is, any other as text.

    Examples
    --------
    >>> _value("[1, 2]"), _value("cat")
    ([1, 2], 'cat')
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
