"""The files in a table's folder that hold something of a tensor, whether the log names them or not."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Generic, TypeVar

import pyarrow as pa

from tensorlake_spark.audit.byte_search import Probes, Search, sha256_of
from tensorlake_spark.audit.purge_target import Sought
from tensorlake_spark.audit.receipt import PurgedFile
from tensorlake_spark.delta.files.footer import reading
from tensorlake_spark.delta.files.runner import Run, run_here
from tensorlake_spark.delta.files.table_folder import (
    Naming,
    StoredFile,
    linked_place,
    listing,
    named,
)
from tensorlake_spark.delta.log.replaying.live_files import Array
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import CorruptDataError, MissingDataError, StorageError
from tensorlake_spark.rows.binary_views import payloads
from tensorlake_spark.threads import io_threads

logger = logging.getLogger("tensorlake_spark")

_Record = tuple[str, Probes]

_ASIDE = (
    "rows that a write of features has put aside; when no writer is at work, a vacuum deletes it"
)


Target = TypeVar("Target", bound=Sought)


class Traces(Generic[Target]):
    """What is known of the files in a table's folder.

    Parameters
    ----------
    storage : Storage
        The table.
    target : Sought
        What is looked for.
    run : callable
        Who reads files.

    Attributes
    ----------
    held : dict of str to int
        The files that hold something of the target, each with the number of its rows that do.
    uncertified : dict of str to str
        Files that cannot be judged, each with the reason.
    """

    def __init__(self, storage: Storage, target: Target, run: Run = run_here) -> None:
        self.storage, self.target, self.run = storage, target, run
        self.held: dict[str, int] = {}
        self.uncertified: dict[str, str] = {}
        self._clean: set[str] = set()
        self._damaged: dict[str, str] = {}
        self._files: dict[str, StoredFile] = {}
        self._naming: dict[str, Naming] = {}

    def look(self) -> None:
        """Read the files that are there; one that was read before never changes."""
        self._files = {file.path: file for file in listing(self.storage)}
        sizes = {path: file.size for path, file in self._files.items() if file.may_have_rows}
        self.held = {path: self.held[path] for path in sizes if path in self.held}
        self.uncertified = {path: _ASIDE for path, file in self._files.items() if file.is_aside}
        self._read(sizes)

    def _read(self, sizes: Mapping[str, int]) -> None:
        """Read files, of which the bytes are known, but none again."""
        new = [path for path in sizes if path not in self._clean and path not in self.held]
        self.uncertified |= {path: self._damaged[path] for path in new if path in self._damaged}
        new = [path for path in new if path not in self._damaged]
        work = partial(_rows, self.storage, self.target)
        for path, found in self.run(work, new, [sizes[path] for path in new]):
            if isinstance(found, str):
                self.uncertified[path] = found
            elif found:
                self.held[path] = found
            else:
                self._clean.add(path)

    def held_by(self, snapshot: Snapshot) -> list[str]:
        """Return the live files of a version that hold something of the target; new ones are read."""
        files = snapshot.files
        self._read(dict(zip(files.path, files.size.tolist(), strict=True)))
        return sorted(self.held.keys() & set(files.path))

    def due(self, snapshot: Snapshot, retention: dt.timedelta) -> dict[str, str | None]:
        """Return when each file that holds something of the target may be deleted; None means now.

        Parameters
        ----------
        snapshot : Snapshot
            The newest version. A file that is live in it counts as leaving now.
        retention : datetime.timedelta
            How long files are kept after they left the table.
        """
        now = dt.datetime.now(dt.timezone.utc)
        live = set(snapshot.files.path)
        self._naming = naming = named(self.storage, list(self._files.values()))
        out: dict[str, str | None] = {}
        for path in sorted(self.held):
            left = self._files[path].modified
            gone = naming[path].removed_at if path in naming else None
            if path in live:
                left = now
            elif gone is not None:
                left = dt.datetime.fromtimestamp(gone / 1000, dt.timezone.utc)
            when = left + retention
            out[path] = when.isoformat(timespec="seconds") if retention and when > now else None
        return out

    def versions(self, paths: Iterable[str], newest: int) -> set[int]:
        """Return the versions that need one of these files, by the log as it was when `due` was called."""
        naming = self._naming
        return {
            version for path in paths if path in naming for version in naming[path].versions(newest)
        }

    def records(
        self, due: Mapping[str, str | None], probes: Probes, dry_run: bool
    ) -> list[PurgedFile]:
        """Return what the receipt says of files; the payloads of those that are due now go to `probes`.

        A file that is gone is left out. So is one whose payloads cannot be read, and a link: it stays, uncertified.
        """
        due = self._without_links(due)
        if dry_run:
            return [PurgedFile(p, self._files[p].size, "", self.held[p], due[p]) for p in due]
        tasks = [(path, when is None) for path, when in due.items()]
        sizes = [self._files[path].size for path in due]
        out = []
        for (path, _), found in self.run(partial(_record, self.storage, self.target), tasks, sizes):
            if isinstance(found, str):
                del self.held[path]
                self.uncertified[path] = self._damaged[path] = found
            elif found is not None:
                digest, payloads_of = found
                probes.update(payloads_of)
                size = self._files[path].size
                out.append(PurgedFile(path, size, digest, self.held[path], due[path]))
        return out

    def _without_links(self, due: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the files that lie in the folder themselves: of another only the link would be deleted."""
        places = {path: linked_place(self.storage, path) for path in due}
        for path, place in places.items():
            if place is not None:
                del self.held[path]
                self.uncertified[path] = self._damaged[path] = (
                    f"it is a link to {place}, which would stay: delete that file, then purge again"
                )
        return {path: when for path, when in due.items() if places[path] is None}

    def delete(self, paths: Collection[str]) -> None:
        """Delete files from the store; raise CorruptDataError if the newest version names one of them.

        One that the store does not let go stays, with a warning: the next `look` finds it.
        """
        live = set(Snapshot.open(self.storage, kind=None).files.path)
        back = sorted(path for path in paths if path in live)
        if back:
            raise CorruptDataError(
                f"another writer brought {len(back)} of the files back, such as {back[0]}; nothing was deleted, "
                "purge again"
            )
        list(io_threads().map(self._delete, paths))

    def _delete(self, path: str) -> None:
        try:
            with reaching(self.storage):
                self.storage.delete(path)
        except StorageError as error:
            logger.warning("%s was not deleted: %s", self.storage.file_uri(path), error)

    def search(self, probes: Probes, but: set[str]) -> tuple[dict[str, int], tuple[str, ...]]:
        """Search every file of the folder, except those in `but`, for payloads.

        Return what was searched, and the paths of the files that hold one.
        """
        files = [file for file in listing(self.storage) if file.path not in but]
        looked = Search(probes)
        found: list[StoredFile] = []
        if probes.digests:
            sizes = [file.size for file in files]
            hits = self.run(partial(_is_hit, self.storage, looked), files, sizes)
            found = [file for file, hit in hits if hit]
        searched = {
            "files": len(files) if probes.digests else 0,
            "bytes": sum(file.size for file in files) if probes.digests else 0,
            "payloads": len(probes.digests),
            "windows": len(looked.windows),
            "skipped": probes.skipped,
        }
        return searched, tuple(file.path for file in found)


def _rows(storage: Storage, target: Sought, path: str) -> int | str:
    """Return how many rows of a file hold something of a target, or why nobody can tell."""
    try:
        return target.held_rows(storage, path)
    except MissingDataError:  # its writer has given up meanwhile
        return 0
    except CorruptDataError as error:
        return str(error)


def _record(storage: Storage, target: Sought, task: tuple[str, bool]) -> _Record | str | None:
    """Return the SHA-256 of a file, and if that is asked for its payloads of a target; or why they cannot be read.

    None if the file is gone.
    """
    path, is_due = task
    probes = Probes()

    def take(rows: pa.RecordBatch, whole: Array) -> None:
        for column in (one for one in rows.columns if pa.types.is_binary(one.type)):
            for i, data in enumerate(payloads(column, range(rows.num_rows))):
                if data is not None:
                    probes.add(data, bool(whole[i]))

    try:
        with reading(storage, path):
            digest = sha256_of(storage, path)
        if is_due:
            target.held_rows(storage, path, take)
    except MissingDataError:  # its writer has given up, or a vacuum was faster
        return None
    except CorruptDataError as error:
        return str(error)
    return digest, probes


def _is_hit(storage: Storage, looked: Search, file: StoredFile) -> bool:
    """Whether a file has something of what is searched for."""
    with reaching(storage):
        return (file.may_have_rows and looked.in_columns(storage, file.path)) or looked.in_bytes(
            storage, file.path
        )
