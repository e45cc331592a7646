"""What of samples does not lie in their table: tiles and apart columns, taken out of batches and committed first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tensorlake_spark.datasets.apart.apart_writer import ApartWriter
from tensorlake_spark.datasets.apart.inner_tables import (
    TENSORS_FOLDER,
    folder_of,
    pinned,
    stored_name,
)
from tensorlake_spark.datasets.apart.large_samples import (
    LargeSample,
    is_tileable,
    large_ones,
    opened,
    tile_bytes_of,
)
from tensorlake_spark.datasets.apart.pinning import Written
from tensorlake_spark.datasets.apart.tile_writer import TileWriter
from tensorlake_spark.datasets.types.base import Place
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage


@dataclass(slots=True)
class SplitSamples:
    """Samples whose values fit, and which have no numbers yet.

    Attributes
    ----------
    left : dict
        The columns of the samples' table.
    large : dict
        For a column its large samples by their places.
    apart : dict
        The columns that are kept apart, encoded.
    """

    left: dict[str, Any]
    large: dict[str, dict[int, LargeSample]]
    apart: dict[str, pa.Array]

    def large_samples(self) -> Iterator[LargeSample]:
        """Yield the large samples of all columns."""
        for samples in self.large.values():
            yield from samples.values()


class PartsWriter:
    """Writes tiles and apart columns of samples; the samples' commit pins what `finish` returns.

    As a context manager it deletes what it wrote, and did not commit, when an error leaves it.

    Parameters
    ----------
    storage : Storage
        The dataset.
    snapshot : Snapshot
        A version of it.
    schema : SampleSchema
        Its columns.
    replaces : bool
        Whether samples get other values than they had. Otherwise all samples are new.
    names : mapping of str to str, optional
        For columns that the version has not yet the names by which their parts are stored.
    mark : str
        What the names of files of apart columns begin with, so that others find them.

    Attributes
    ----------
    names : dict of str to str
        For each column the name by which its parts are stored.
    """

    def __init__(
        self,
        storage: Storage,
        snapshot: Snapshot,
        schema: SampleSchema,
        replaces: bool = False,
        names: Mapping[str, str] | None = None,
        mark: str = "",
    ) -> None:
        self.schema = schema
        self._replaces = replaces
        self.tile_bytes = tile_bytes_of(snapshot.configuration)
        self.names = {name: stored_name(snapshot.schema, name) for name in schema}
        self.names |= names or {}
        self._tiles = TileWriter(
            storage,
            self.tile_bytes,
            replaces,
            pinned(snapshot, TENSORS_FOLDER) if replaces else None,
        )
        self._apart = {
            name: ApartWriter(
                storage,
                self.names[name],
                kind,
                replaces,
                pinned(snapshot, folder_of(self.names[name])) if replaces else None,
                mark,
            )
            for name, kind in schema.items()
            if kind.apart
        }

    def __enter__(self) -> PartsWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()

    @property
    def has_apart(self) -> bool:
        """Whether the dataset has apart columns: every sample then has its number before it is written."""
        return bool(self._apart)

    def folders(self) -> list[str]:
        """Return the folders of the tables of apart columns."""
        return [writer.folder for writer in self._apart.values()]

    def opened(self, columns: Mapping[str, Any], first: int) -> dict[str, Any]:
        """Return columns with mapped files in the place of paths, where a column may be tiled.

        Parameters
        ----------
        columns : mapping
            As a user gave them.
        first : int
            The number of the first sample in what the user gave, for messages.
        """
        return {
            name: opened(values, self.schema[name], Place(name, first))
            if is_tileable(self.schema[name])
            else values
            for name, values in columns.items()
        }

    def has_large(self, columns: Mapping[str, Any]) -> bool:
        """Whether a sample of `opened` columns becomes tiles."""
        return any(
            is_tileable(self.schema[name])
            and large_ones(values, self.schema[name], self.tile_bytes)
            for name, values in columns.items()
        )

    def split(self, columns: Mapping[str, Any], count: int, first: int) -> SplitSamples:
        """Take what does not lie in the samples' table out of columns, and write nothing.

        Parameters
        ----------
        columns : mapping
            `opened` columns: for each a value a sample.
        count : int
            How many samples there are.
        first : int
            As for `opened`.

        Raises
        ------
        InvalidSampleError
            If a sample does not fit its column.
        """
        out = SplitSamples({}, {}, {})
        missing = set() if self._replaces else self._apart.keys() - columns.keys()
        for name in sorted(missing):
            self.schema[name].encode([None] * count, name, first)  # if it takes no null
        for name, values in columns.items():
            kind = self.schema[name]
            if is_tileable(kind):
                values, out.large[name] = self._tiles.split(values, kind, Place(name, first))
            if kind.apart:
                # An update may bring its rows into another order, which Arrow does not do with views.
                out.apart[name] = kind.encode(values, name, first, views=not self._replaces)
            else:
                out.left[name] = values
        return out

    def write(self, samples: SplitSamples, sids: Sequence[int]) -> None:
        """Write what `split` took out of columns.

        Parameters
        ----------
        samples : SplitSamples
            As it was returned.
        sids : sequence of int
            The numbers of the samples.

        Raises
        ------
        InvalidSampleError
            If an element of a large sample does not fit its column.
        """
        for name, large in samples.large.items():
            self._tiles.write(large, self.names[name], sids)
        for name, array in samples.apart.items():
            self._apart[name].take(array, sids)

    def take(self, columns: Mapping[str, Any], sids: Sequence[int], first: int) -> dict[str, Any]:
        """Write what does not lie in the samples' table, and return what is left for it.

        It is `split` and `write`, with numbers that are known before the samples are looked at.
        """
        found = self.split(columns, len(sids), first)
        self.write(found, sids)
        return found.left

    def checked(self, columns: Mapping[str, Any], count: int, first: int) -> dict[str, Any]:
        """Return what `take` would leave of samples, and write nothing; all elements are looked at."""
        found = self.split(columns, count, first)
        for sample in found.large_samples():
            sample.check()
        return found.left

    @property
    def tensors(self) -> list[str]:
        """The ids of the tensors with tiles that were written."""
        return self._tiles.ids

    def files(self) -> tuple[list[Written], dict[str, list[DataFile]]]:
        """Commit the tiles, and return them with the files of apart columns, which `committed` commits for many tasks.

        A task of a cluster calls it: tiles that no sample names do no harm, and rows of an apart column that are
        there twice would.
        """
        written = self._tiles.finish()
        return written, {name: writer.files() for name, writer in self._apart.items()}

    def committed(self, files: Mapping[str, list[DataFile]], again: bool = False) -> list[Written]:
        """Commit files of apart columns by their names, one commit for each column.

        With `again` an earlier attempt may have committed some of them: their rows are not added twice.
        """
        return [
            one for name, some in files.items() for one in self._apart[name].committed(some, again)
        ]

    def finish(self) -> list[Written]:
        """Commit what was written to the inner tables, tiles first."""
        out = self._tiles.finish()
        for writer in self._apart.values():
            out += writer.finish()
        return out

    def abort(self) -> None:
        """Delete what was written and is not committed."""
        self._tiles.abort()
        for writer in self._apart.values():
            writer.abort()
