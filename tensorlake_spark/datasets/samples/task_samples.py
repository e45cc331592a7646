"""What one of many tasks writes: files of samples and of apart columns, and tiles. The driver commits them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.apart.pinning import Written
from tensorlake_spark.datasets.samples.sample_encoding import encoded, numbered
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.sample_writer import SampleWriter
from tensorlake_spark.delta.store.storage import Storage


@dataclass
class SampleFiles:
    """What a task has written, in a form that JSON takes.

    Attributes
    ----------
    files : list of [str, int, str]
        Its data files: names, bytes and statistics.
    samples : int
        How many it wrote.
    end : int
        The number after the greatest that it used.
    apart : dict of str to list
        By columns that are kept apart, files as in `files`.
    tiles : list of [str, int]
        Folders of inner lakes with tiles, and the version that has them.
    tensors : list of str
        The ids of the tensors with these tiles.
    """

    files: list[list[Any]] = field(default_factory=list)
    samples: int = 0
    end: int = 0
    apart: dict[str, list[list[Any]]] = field(default_factory=dict)
    tiles: list[list[Any]] = field(default_factory=list)
    tensors: list[str] = field(default_factory=list)

    def data_files(self) -> list[DataFile]:
        """Return the files of the samples' table."""
        return _read(self.files)

    def apart_files(self) -> dict[str, list[DataFile]]:
        """Return the files of apart columns."""
        return {name: _read(files) for name, files in self.apart.items()}


def inner_of(done: Sequence[SampleFiles]) -> tuple[list[Written], dict[str, list[DataFile]]]:
    """Return of all tasks the newest version of each lake of tiles, and the files of apart columns."""
    versions: dict[str, int] = {}
    files: dict[str, list[DataFile]] = {}
    for one in done:
        for folder, version in one.tiles:
            versions[folder] = max(version, versions.get(folder, 0))
        for name, some in one.apart_files().items():
            files.setdefault(name, []).extend(some)
    return [Written(folder, version) for folder, version in versions.items()], files


class UncommittedSamples:
    """Writes samples as `append` does, and commits only their tiles, which harm nobody before they are pinned.

    As a context manager it deletes what it wrote when an error leaves it.

    Parameters
    ----------
    storage : Storage
        The dataset.
    snapshot : Snapshot
        A version of it.
    schema : SampleSchema
        Its columns.
    mark : str
        What the names of its files begin with, so that the driver finds them.
    """

    def __init__(
        self, storage: Storage, snapshot: Snapshot, schema: SampleSchema, mark: str
    ) -> None:
        self._schema = schema
        self._parts = PartsWriter(storage, snapshot, schema, mark=mark)
        self._writer = SampleWriter(storage, schema.to_arrow(), snapshot.file_bytes, mark=mark)
        self._stack = ExitStack()

    def __enter__(self) -> UncommittedSamples:
        self._stack.enter_context(self._writer)
        self._stack.enter_context(self._parts)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def has_parts(self, columns: Mapping[str, Any], first: int) -> bool:
        """Whether samples have more than a row; where they have not, `add` writes all of them or raises."""
        return self._parts.has_apart or self._parts.has_large(self._parts.opened(columns, first))

    def check(self, columns: Mapping[str, Any], first: int, count: int) -> None:
        """Raise InvalidSampleError if samples do not fit; nothing of them is written.

        `add` checks too, but may have written a part of them by then.
        """
        columns = self._parts.opened(columns, first)
        encoded(self._parts.checked(columns, count, first), self._schema, first, count)

    def add(self, columns: Mapping[str, Any], sid: int, first: int, count: int) -> None:
        """Write samples.

        Parameters
        ----------
        columns : mapping
            The values of each column that is given, one a sample.
        sid : int
            The number of the first sample.
        first : int
            Where it was in what the user gave, for messages.
        count : int
            How many samples there are.

        Raises
        ------
        InvalidSampleError
            If a sample does not fit its column.
        """
        opened = self._parts.opened(columns, first)
        left = self._parts.take(opened, range(sid, sid + count), first)
        self._writer.add(numbered(encoded(left, self._schema, first, count), self._schema, sid))

    def finish(self, done: SampleFiles) -> None:
        """Write what is left, and note all of it."""
        tiles, apart = self._parts.files()
        done.tiles = [[one.folder, one.version] for one in tiles]
        done.tensors = self._parts.tensors
        done.apart = {name: _said(files) for name, files in apart.items()}
        done.files = _said(self._writer.finish())


def _read(files: list[list[Any]]) -> list[DataFile]:
    return [DataFile(name, size, statistics) for name, size, statistics in files]


def _said(files: Sequence[DataFile]) -> list[list[Any]]:
    return [[file.path, file.size, file.stats] for file in files]
