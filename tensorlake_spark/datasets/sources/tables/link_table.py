"""Tables of URLs with captions and more, in CSV or Parquet, as LAION and CC12M come: a link and its columns."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from tensorlake_spark.datasets.sources.column_names import column_names
from tensorlake_spark.datasets.sources.folder import Folder, damaged
from tensorlake_spark.datasets.sources.sample_source import (
    Maker,
    NotThisKind,
    Piece,
    Sample,
    SampleSource,
    check_options,
    columns_option,
)
from tensorlake_spark.datasets.sources.tables.arrow_columns import type_of
from tensorlake_spark.datasets.types import Image, Link
from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidSampleError,
    TensorLakeError,
    did_you_mean,
)

CSVS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUETS = (".parquet",)
_URLS = ("url", "image_url", "img_url", "image_link", "link", "uri", "src")
_BLOCK = 8 << 20  # bytes of CSV that are parsed at once; no row is longer
_BATCH = 16 << 20  # bytes of Parquet that are decoded at once, if rows are alike


@dataclass(frozen=True)
class LinkTable(SampleSource):
    """Rows with a URL, which becomes a link in the column ``image``; other columns are kept as they are.

    Options: ``url`` (which column has the URLs), ``link`` (the type behind them, an image in JPEG as a default),
    ``columns`` (name to new name, or the names to keep), ``delimiter`` (of CSV).
    """

    kind: ClassVar[str] = "urls"

    tables: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()  # name in the table, column
    url: str = ""
    delimiter: str | None = None
    arrow: pa.Schema | None = None  # of CSV: what the first rows look like
    some: bool = False  # whether a user named the columns to keep

    @classmethod
    def found(cls, folder: Folder) -> str:
        tables = _tables(folder)
        arrow = _schema(folder, tables[0], None)
        if b"huggingface" in (arrow.metadata or {}):
            raise NotThisKind(
                "its metadata has Hugging Face's features; give kind='urls' for links"
            )
        names = arrow.names
        return f"{len(tables)} table(s) with URLs in the column {_url(names, None)!r}"

    @classmethod
    def of(cls, folder: Folder, **options: Any) -> LinkTable:
        check_options(cls.kind, options, ("url", "link", "columns", "delimiter"))
        tables, delimiter = _tables(folder), options.get("delimiter")
        if delimiter is not None and not (isinstance(delimiter, str) and len(delimiter) == 1):
            raise InvalidOptionError(
                f"delimiter={delimiter!r:.40} is not one character, such as ';'"
            )
        arrow = _schema(folder, tables[0], delimiter)
        url, where = _url(arrow.names, options.get("url")), folder.at(tables[0])
        said = columns_option(options.get("columns"))
        kept, renamed = chosen(arrow.names, said, where)
        if url not in kept:
            kept.insert(0, url)
        columns = column_names(kept, {url: "image", **renamed}, where)
        schema = {
            column: Link(options.get("link") or Image("jpeg"))
            if name == url
            else type_of(arrow.field(name).type, name)
            for name, column in columns.items()
        }
        is_csv = tables[0].endswith(CSVS)
        given = arrow if is_csv else None
        some = names_some(said)
        return cls(
            folder, schema, tuple(tables), tuple(columns.items()), url, delimiter, given, some
        )

    def pieces(self) -> list[Piece]:
        made = []
        for name in self.tables:
            mark, size = self.folder.mark((name,)), self.folder.sizes[name]
            if name.endswith(CSVS):  # a line end may be inside of quotes, so the file is not cut
                made.append(Piece(name, mark, (name,), nbytes=size))
            else:
                made += group_pieces(self.folder, name, mark)
        return made

    def makers(self, piece: Piece) -> Iterator[Maker]:
        (name,), where = piece.files, self.folder.at(piece.files[0])
        if name.endswith(CSVS):
            yield from self._csv_makers(name, where)
            return
        with parquet(self.folder, name) as file:
            names = [one for one, _ in self.columns]
            check_columns(file.schema_arrow, names, where, self.some)
            for batch in batches(file, piece.first, names):
                for values in zip(*(batch.column(one).to_pylist() for one in names)):
                    yield partial(self._sample, values)

    def _csv_makers(self, name: str, where: str) -> Iterator[Maker]:
        names, arrow = [one for one, _ in self.columns], self.arrow
        assert arrow is not None  # nosec: it is given for CSV
        kinds = [arrow.field(one).type for one in names]
        if not self.some and name != self.tables[0]:  # the reader sees no columns but these
            check_columns(_schema(self.folder, name, self.delimiter), names, where, False)
        bad: list[tuple[int, str]] = []
        left_out: set[int] = set()
        with self.folder.open_unpacked(name) as stream:
            reader = _reader(stream, name, where, self.delimiter, names, bad)
            check_columns(reader.schema, names, where, self.some)
            place = 1
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                except (pa.ArrowInvalid, OSError, EOFError, zlib.error) as error:
                    raise damaged(where, f"no row after {place - 1} can be read", error) from error
                left_out.update(number for number, _ in bad)
                for _, said in bad:
                    yield partial(_raise, said)
                bad.clear()
                columns = [_cast(batch.column(one), kind) for one, kind in zip(names, kinds)]
                for values in zip(*columns):
                    while place in left_out:
                        place += 1
                    wrong = [one for one, value in zip(names, values) if isinstance(value, _Wrong)]
                    if wrong:
                        said = values[names.index(wrong[0])].said(wrong[0])
                        yield partial(_raise, f"{where}, row {place}: {said}")
                    else:
                        yield partial(self._sample, values)
                    place += 1
            for _, said in bad:
                yield partial(_raise, said)

    def _sample(self, values: Sequence[Any]) -> Sample:
        return {column: value for (_, column), value in zip(self.columns, values)}


def _tables(folder: Folder) -> list[str]:
    for ends in (CSVS, PARQUETS):
        names = [name for name in folder.sizes if name.endswith(ends)]
        if names:
            return names
    raise NotThisKind("no .csv, .tsv or .parquet")


def _url(names: Sequence[str], said: str | None) -> str:
    if said is not None:
        if said not in names:
            raise InvalidOptionError(
                f"there is no column {said!r}{did_you_mean(said, names)}; there are {', '.join(names)}"
            )
        return said
    for wanted in _URLS:
        for name in names:
            if name.lower() == wanted:
                return name
    sign = "" if len(names) > 1 else ", or the sign between columns by delimiter="
    raise NotThisKind(
        f"no column that is called url or like it: there are {', '.join(names)}; name it by url={sign}, with "
        "kind='urls'"
    )


def chosen(
    names: Sequence[str], said: Mapping[str, str] | Sequence[str] | None, where: str
) -> tuple[list[str], dict[str, str]]:
    """Return which columns are kept, and the new names of some.

    Examples
    --------
    >>> chosen(["a", "b"], {"a": "x"}, "t"), chosen(["a", "b"], ["b"], "t")
    ((['a', 'b'], {'a': 'x'}), (['b'], {}))
    """
    for name in said or ():
        if name not in names:
            raise InvalidOptionError(
                f"{where} has no column {name!r}{did_you_mean(name, names)}; it has {', '.join(names)}"
            )
    if isinstance(said, Mapping):
        return list(names), dict(said)
    return list(said or names), {}


def names_some(said: Mapping[str, str] | Sequence[str] | None) -> bool:
    """Return whether columns that are not named are left out, as `chosen` does it."""
    return bool(said) and not isinstance(said, Mapping)


def _schema(folder: Folder, name: str, delimiter: str | None) -> pa.Schema:
    where = folder.at(name)
    if name.endswith(PARQUETS):
        with parquet(folder, name) as file:
            return file.schema_arrow
    with folder.open_unpacked(name) as stream:
        found = _reader(stream, name, where, delimiter, None, []).schema
    twice = [one for one in found.names if found.names.count(one) > 1]
    if twice:
        raise InvalidOptionError(f"{where} has the column {twice[0]!r} twice; rename one of them")
    # Arrow takes texts of which one is not UTF-8 for bytes; that one is a bad value.
    kinds = [pa.string() if pa.types.is_binary(kind) else kind for kind in found.types]
    return pa.schema(list(zip(found.names, kinds)))


def _reader(
    stream: Any,
    name: str,
    where: str,
    delimiter: str | None,
    names: list[str] | None,
    bad: list[tuple[int, str]],
) -> pacsv.CSVStreamingReader:
    """Return what parses a CSV; with `names` those columns as bytes, else all by their first values."""

    def skip(row: pacsv.InvalidRow) -> str:
        place = (row.number or 1) - 1  # the header is the first one
        said = f"{row.actual_columns} values where the header has {row.expected_columns}: {row.text!r:.100}"
        bad.append((place, f"{where}, row {place}: {said}"))
        return "skip"

    sign = delimiter or ("\t" if ".tsv" in name else ",")
    types = None if names is None else {one: pa.binary() for one in names}
    try:
        return pacsv.open_csv(
            stream,
            pacsv.ReadOptions(block_size=_BLOCK, use_threads=False),
            pacsv.ParseOptions(delimiter=sign, newlines_in_values=True, invalid_row_handler=skip),
            pacsv.ConvertOptions(
                column_types=types,
                include_columns=names,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
    except KeyError as error:  # "Column 'x' in include_columns does not exist in CSV file"
        column = error.args[0].partition("'")[2].rpartition("'")[0]
        raise InvalidSampleError(_missing(where, column)) from error
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        raise damaged(where, "this is not CSV", error) from error


@dataclass(frozen=True)
class _Wrong:
    data: bytes
    kind: pa.DataType

    def said(self, column: str) -> str:
        """Return what is wrong with a value of a column."""
        try:
            return f"{self.data.decode()!r:.100} in the column {column!r} is no {self.kind}"
        except UnicodeDecodeError:
            return (
                f"{self.data!r:.100} in the column {column!r} is not UTF-8; convert the file, as with "
                "iconv -f LATIN1 -t UTF-8"
            )


def _cast(column: pa.Array, kind: pa.DataType) -> list[Any]:
    """Return bytes of texts as values of a type; `_Wrong` for one that is none."""
    kind = pa.string() if pa.types.is_null(kind) else kind
    try:
        texts = pc.cast(column, pa.string())
        if pa.types.is_string(kind):
            return list(texts.to_pylist())
        # Blanks around a number do not count for Arrow's guess of types either.
        return list(pc.cast(pc.utf8_trim_whitespace(texts), kind).to_pylist())
    except pa.ArrowInvalid:
        if len(column) == 1:
            return [_Wrong(column[0].as_py(), kind)]
        return [_cast(column.slice(k, 1), kind)[0] for k in range(len(column))]


def _raise(said: str) -> Sample:
    raise InvalidSampleError(said)


def check_columns(schema: pa.Schema, names: Sequence[str], where: str, some: bool) -> None:
    """Raise InvalidSampleError if a file of several lacks columns that the first one has, or has others.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the file.
    names : sequence of str
        The columns that are read.
    where : str
        For messages.
    some : bool
        Whether a user named these columns, so that others are left out on purpose.
    """
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise InvalidSampleError(_missing(where, missing[0]))
    others = [name for name in schema.names if name not in names]
    if others and not some:
        raise InvalidSampleError(
            f"{where} has the column {others[0]!r}, which the first file has not; name those to keep by columns="
        )


def _missing(where: str, column: str) -> str:
    return f"{where} has no column {column!r}, as the first file has"


@contextmanager
def parquet(folder: Folder, name: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file.

    Raises
    ------
    InvalidSampleError
        If it is none, or what is read from it is damaged.
    """
    with folder.open(name) as stream:
        try:
            with pq.ParquetFile(stream, pre_buffer=False) as file:
                yield file
        except TensorLakeError:
            raise
        except (pa.ArrowException, OSError, EOFError) as error:
            raise damaged(folder.at(name), "the Parquet file cannot be read", error) from error


def group_pieces(folder: Folder, name: str, mark: str) -> list[Piece]:
    """Return a piece for each row group of a Parquet file."""
    with parquet(folder, name) as file:
        footer = file.metadata
        groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
        return [
            Piece(f"{name}#{n}", mark, (name,), n, n + 1, (), group.total_byte_size, group.num_rows)
            for n, group in enumerate(groups)
        ]


def batches(file: pq.ParquetFile, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a row group in batches of few bytes."""
    about = file.metadata.row_group(group)
    rows = _BATCH * about.num_rows // max(about.total_byte_size, 1)
    yield from file.iter_batches(min(max(rows, 1), 4096), [group], list(names), use_threads=False)
