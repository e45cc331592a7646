"""Notes that a writer leaves beside the data until it commits, so that a later one can go on from them.

They lie in ``_tensorlake/ingest``, a folder for each job: readers of Delta and its VACUUM leave names that
begin with ``_`` alone. Ours takes folders that nothing was added to for as long as it keeps other files.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow.fs as pafs

from tensorlake_spark.delta.store.storage import Storage, reaching

ROOT = "_tensorlake/ingest"

KEPT_HOURS = 168.0
"""A folder is kept so long after its last note, a week as Delta's own retention."""


@dataclass(frozen=True)
class Staging:
    """The notes of one job.

    Attributes
    ----------
    storage : Storage
        The table.
    folder : str
        Name of the folder in `ROOT`.
    """

    storage: Storage
    folder: str

    def write(self, name: str, text: str) -> None:
        """Write a note, which others see when all of it is there."""
        with reaching(self.storage):
            self.storage.put_whole(f"{ROOT}/{self.folder}/{name}", text.encode())

    def read(self) -> dict[str, str]:
        """Return all notes by their names; one that is not text is left out."""
        filesystem, _ = self.storage.place
        out = {}
        with reaching(self.storage):
            for info in _files(self.storage, self.folder):
                with (
                    suppress(FileNotFoundError, UnicodeDecodeError),
                    filesystem.open_input_file(info.path) as stream,
                ):
                    out[info.base_name] = stream.read().decode()
        return {name: text for name, text in out.items() if not name.startswith(".")}

    def delete(self) -> None:
        """Delete the folder with all notes; one that is gone already is fine."""
        filesystem, base = self.storage.place
        with reaching(self.storage):
            # One by one: not every S3 server takes the request that deletes many.
            for info in _files(self.storage, self.folder):
                with suppress(FileNotFoundError):
                    filesystem.delete_file(info.path)
            if self.storage.is_local:
                with suppress(FileNotFoundError):
                    filesystem.delete_dir(f"{base}/{ROOT}/{self.folder}")


def folders(storage: Storage) -> list[str]:
    """Return the names of all folders that hold notes."""
    with reaching(storage):
        return sorted({_folder_of(info) for info in _files(storage)})


def sizes(storage: Storage, names: Sequence[str]) -> list[int | None]:
    """Return the bytes of files of a table, None for one that is not there."""
    with reaching(storage):
        found = storage.infos(names)
    return [int(info.size) if info.is_file else None for info in found]


def expire(storage: Storage, hours: float | None, dry_run: bool) -> list[str]:
    """Delete folders whose last note is older, or only name what is in them; returns paths in the table."""
    limit = dt.timedelta(hours=KEPT_HOURS if hours is None else hours)
    now = dt.datetime.now(dt.timezone.utc)
    with reaching(storage):
        found: dict[str, list[pafs.FileInfo]] = {}
        for info in _files(storage):
            found.setdefault(_folder_of(info), []).append(info)
    out = []
    for folder, notes in found.items():
        if not limit or all(now - info.mtime >= limit for info in notes):
            out += [f"{ROOT}/{folder}/{info.base_name}" for info in notes]
            if not dry_run:
                Staging(storage, folder).delete()
    return out


def _files(storage: Storage, folder: str = "") -> list[pafs.FileInfo]:
    return storage.files_in(f"{ROOT}/{folder}".rstrip("/"), recursive=True)


def _folder_of(info: pafs.FileInfo) -> str:
    return str(info.path).split("/")[-2]
