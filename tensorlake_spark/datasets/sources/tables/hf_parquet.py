"""Parquet files of Hugging Face's datasets, whose features are in their metadata; and any other Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa

from tensorlake_spark.datasets.sources.array_bytes import array_of_lists, is_list
from tensorlake_spark.datasets.sources.column_names import column_names
from tensorlake_spark.datasets.sources.folder import Folder, check_size
from tensorlake_spark.datasets.sources.image_bytes import image_value
from tensorlake_spark.datasets.sources.sample_source import (
    Maker,
    NotThisKind,
    Piece,
    Sample,
    SampleSource,
    check_options,
    columns_option,
)
from tensorlake_spark.datasets.sources.tables.hf_features import Leaf, leaves_of
from tensorlake_spark.datasets.sources.tables.link_table import (
    PARQUETS,
    batches,
    check_columns,
    chosen,
    group_pieces,
    names_some,
    parquet,
)
from tensorlake_spark.datasets.types import Audio, ClassLabel, Image, Tensor, Type
from tensorlake_spark.datasets.types import Sequence as SequenceOf
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.rows.extension_arrays import axes_of


@dataclass(frozen=True)
class HuggingFaceParquet(SampleSource):
    """Rows of Parquet, with images, classes and arrays as Hugging Face's features say; without them by Arrow's types.

    A struct is a group. A list of structs becomes a list for each of its fields. The class -1, which stands for "not
    known", becomes null. Options: ``columns`` (name to new name, or the names to keep), ``image_format`` (converts
    images of other formats).
    """

    kind: ClassVar[str] = "huggingface"

    tables: tuple[str, ...] = ()
    leaves: tuple[tuple[str, Leaf], ...] = ()  # column, how it is found
    convert: bool = False
    some: bool = False  # whether a user named the columns to keep

    @classmethod
    def found(cls, folder: Folder) -> str:
        tables = _tables(folder)
        with parquet(folder, tables[0]) as file:
            known = b"huggingface" in (file.schema_arrow.metadata or {})
        return f"{len(tables)} Parquet file(s){' with features' if known else ''}"

    @classmethod
    def of(cls, folder: Folder, **options: Any) -> HuggingFaceParquet:
        check_options(cls.kind, options, ("columns", "image_format"))
        tables, wanted = _tables(folder), options.get("image_format")
        where = folder.at(tables[0])
        with parquet(folder, tables[0]) as file:
            schema = file.schema_arrow
            said = columns_option(options.get("columns"))
            kept, renamed = chosen(schema.names, said, where)
            named = column_names(kept, renamed, where)
            first = None
            if file.metadata.num_row_groups:
                first = next(batches(file, 0, kept), None)
            leaves = leaves_of(schema, named, first, wanted, where)
        if not leaves:
            raise InvalidOptionError(f"{where} has no columns")
        types = {column: leaf.type for column, leaf in leaves.items()}
        convert, some = wanted is not None, names_some(said)
        return cls(folder, types, tuple(tables), tuple(leaves.items()), convert, some)

    def pieces(self) -> list[Piece]:
        made = []
        for name in self.tables:
            made += group_pieces(self.folder, name, self.folder.mark((name,)))
        return made

    def makers(self, piece: Piece) -> Iterator[Maker]:
        (name,), where = piece.files, self.folder.at(piece.files[0])
        names = list(dict.fromkeys(leaf.path[0] for _, leaf in self.leaves))
        with parquet(self.folder, name) as file:
            check_columns(file.schema_arrow, names, where, self.some)
            place = 0
            for batch in batches(file, piece.first, names):
                columns = {column: leaf.values(batch) for column, leaf in self.leaves}
                for row in range(batch.num_rows):
                    said = f"{where}, row group {piece.first}, row {place + row}"
                    yield partial(self._sample, columns, row, said)
                place += batch.num_rows

    def _sample(self, columns: Mapping[str, pa.Array], row: int, where: str) -> Sample:
        sample: Sample = {}
        for column, leaf in self.leaves:
            value, kind = columns[column][row], columns[column].type
            if isinstance(value, pa.ExtensionScalar) and value.is_valid:
                value = value.value
            items = value.values if value.is_valid and is_list(value.type) else None
            if items is not None and leaf.inside is not None:
                items = items.field(leaf.inside)
            at = f"{where}, {column}"
            if not value.is_valid:
                sample[column] = None
            elif isinstance(leaf.type, Tensor):
                array = array_of_lists(items, leaf.type.dtype, at)
                if isinstance(kind, pa.FixedShapeTensorType):  # whose elements are one list
                    array = array.reshape(kind.shape).transpose(axes_of(kind))
                sample[column] = array
            else:
                found = value.as_py() if items is None else items.to_pylist()
                sample[column] = self._value(found, leaf.type, at)
        return sample

    def _value(self, found: Any, kind: Type, where: str) -> Any:
        if found is None:
            return None
        if isinstance(kind, SequenceOf):
            return [self._value(one, kind.of, where) for one in found]
        if isinstance(kind, (Image, Audio)):
            data = self._media(found, where)
            if data is None or isinstance(kind, Audio):
                return data
            return image_value(data, kind, where, self.convert)
        if isinstance(kind, ClassLabel) and found == -1:
            return None
        return found

    def _media(self, found: Any, where: str) -> bytes | None:
        """Return the bytes of an image or a sound, from the column or from the file that it names."""
        if isinstance(found, bytes):
            return found
        data, path = found.get("bytes"), found.get("path")
        if data is not None:
            check_size(len(data), where)
            return bytes(data)
        if path is None:
            return None
        return self.folder.read(self.folder.check_inside(path, where))


def _tables(folder: Folder) -> list[str]:
    names = [name for name in folder.sizes if name.endswith(PARQUETS)]
    if not names:
        raise NotThisKind("no .parquet")
    return names
