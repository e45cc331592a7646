"""Text files as lines of Spark: plain ones split over executors, ``.gz`` and ``.zip`` one task each."""

from __future__ import annotations

import gzip
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.spark.cluster.tasks import numbers, share
from tensorlake_spark.spark.ingest.limits import bounded_lines
from tensorlake_spark.spark.ingest.source_files import (
    carried,
    check_reached,
    is_object,
    open_file,
    seekable,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE, FILE, ROW = "__line", "__file", "__row"
"""Columns that every frame of records has beside its own: the text, the file, the number of the line or row."""

WHOLE_FILES = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""Options of Spark's readers: whatever the session says, half a file is no input."""

_READ = 1 << 20

_FAILED = re.compile(r"\[FAILED_READ_FILE[^\]]*\][^\n]* file (\S+?)\.\s")


def spark_path(path: str) -> str:
    """Return a path as Spark takes it literally.

    Examples
    --------
    >>> spark_path("/data/[a].csv")
    'file:///data/\\\\[a\\\\].csv'
    """
    escaped = re.sub(r"([\\\[\]{}*?])", r"\\\1", path)
    return escaped.replace("s3://", "s3a://", 1) if is_object(path) else f"file://{escaped}"


def local_path(uri: str) -> str:
    """Return the path that Spark calls by a URI.

    Examples
    --------
    >>> local_path("file:/data/a%20b.csv"), local_path("/data/a%20b.zip")
    ('/data/a b.csv', '/data/a%20b.zip')
    """
    if is_object(uri):
        return unquote(uri).replace("s3a://", "s3://", 1)
    return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri


def members(path: str) -> list[str]:
    """Return the members of a ``.zip`` file that hold lines; of any other file one without a name.

    Raises
    ------
    InvalidTensorError
        If the file is no archive, or has none.
    """
    if not path.lower().endswith(".zip"):
        return [""]
    inner = os.path.splitext(path[:-4])[1].lower()
    with reading(path), zipfile.ZipFile(seekable(path)) as archive:
        names = [n for n in archive.namelist() if n.lower().endswith(inner) and "__MACOSX" not in n]
    if not names:
        raise InvalidTensorError(f"{path} has no member whose name ends with {inner}")
    return names


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what goes wrong with a file into an error that names it."""
    try:
        yield
    except Exception as error:  # NumPy, SciPy and zipfile have many of their own
        check_reached(path, error)
        raise InvalidTensorError(f"{path} cannot be read: {error}") from error


@contextmanager
def reading_by_spark() -> Iterator[None]:
    """Turn what goes wrong with a file that Spark's JVM reads into an error that names it."""
    try:
        yield
    except Exception as error:  # Spark has several; the text tells
        said = str(error)
        found = _FAILED.search(said)
        if found is None:
            raise
        causes = re.findall(r"Caused by: (.*)", said)
        reason = causes[-1] if causes else "it is damaged, or gone"
        raise InvalidTensorError(f"{local_path(found[1])} cannot be read: {reason}") from error


@contextmanager
def opened(path: str, member: str = "") -> Iterator[IO[bytes]]:
    """Open a file, unpacked."""
    if member:
        with zipfile.ZipFile(seekable(path)) as archive, archive.open(member) as stream:
            yield stream
    elif path.lower().endswith(".gz"):
        with gzip.open(seekable(path)) as stream:
            yield stream  # type: ignore[misc]
    else:
        with open_file(path) as stream:
            yield stream


def text_of(line: bytes) -> str:
    """Return a line of a file as Spark has it."""
    return line.rstrip(b"\r\n").decode("utf-8", "replace")


def first_line(path: str, member: str = "", comment: str = "") -> str | None:
    """Return the first line of a file that is not blank and no comment, None if there is none."""
    with reading(path), opened(path, member) as stream:
        for number, line in enumerate(bounded_lines(stream)):
            text = text_of(line.removeprefix(b"\xef\xbb\xbf") if not number else line)
            if text.strip() and not (comment and text.lstrip().startswith(comment)):
                return text
    return None


def find_line(path: str, text: str) -> int | None:
    """Return the number, from 1, of the first line of a file that reads like this."""
    with reading(path), opened(path) as stream:
        for number, line in enumerate(bounded_lines(stream), 1):
            if text_of(line) == text:
                return number
    return None


def text_lines(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return the lines of files as columns `LINE`, `FILE` and `ROW`, blank ones left out.

    The number of a line is only known where Spark does not split the file, in a ``.zip``; `find_line` finds
    it elsewhere.
    """
    from pyspark.sql import functions as f

    # Spark reads a packed file in one task; what comes after that should be shared.
    cores = session.sparkContext.defaultParallelism
    zipped = [(p, m) for p in paths if p.lower().endswith(".zip") for m in members(p)]
    frames = []
    for is_packed in (False, True):
        some = [p for p in paths if _is_packed(p) == is_packed and not p.lower().endswith(".zip")]
        if some:
            read = session.read.options(**WHOLE_FILES).text([spark_path(p) for p in some])
            frame = read.select(
                f.col("value").alias(LINE),
                f.col("_metadata.file_path").alias(FILE),
                f.lit(None).cast("bigint").alias(ROW),
            )
            frames.append(frame.repartition(cores) if is_packed else frame)
    if zipped:
        make = carried(share(zipped, len(zipped), _unpack))
        schema = f"{LINE} string, {FILE} string, {ROW} bigint"
        frame = numbers(session, len(zipped)).mapInArrow(make, schema)
        frames.append(frame.repartition(cores))
    return reduce(lambda a, b: a.union(b), frames).where(f.length(f.trim(LINE)) > 0)


def _is_packed(path: str) -> bool:
    return path.lower().endswith((".gz", ".zip"))


def _unpack(files: Sequence[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
    for path, member in files:
        with reading(path), opened(path, member) as stream:
            number = 1
            rest = bounded_lines(stream)
            while lines := _some(rest):
                if number == 1:
                    lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
                yield _batch([text_of(line) for line in lines], path, number)
                number += len(lines)


def _some(lines: Iterator[bytes]) -> list[bytes]:
    """Return the next lines, about `_READ` bytes of them."""
    out: list[bytes] = []
    size = 0
    while size < _READ and (line := next(lines, b"")):
        out.append(line)
        size += len(line)
    return out


def _batch(lines: list[str], path: str, number: int) -> pa.RecordBatch:
    count = len(lines)
    columns: list[Any] = [
        pa.array(lines, pa.string()),
        pa.repeat(path, count),
        pa.array(range(number, number + count), pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[LINE, FILE, ROW])
