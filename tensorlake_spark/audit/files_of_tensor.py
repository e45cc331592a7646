"""The files in a table's folder that hold something of a tensor, whether the log names them or not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

import pyarrow as pa

from tensorlake_spark.audit.byte_search import Probes, Search, sha256_of
from tensorlake_spark.audit.purge_target import Target, held_rows
from tensorlake_spark.audit.receipt import PurgedFile
from tensorlake_spark.delta.files.footer import reading
from tensorlake_spark.delta.log.live_files import Array
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.table_folder import Naming, StoredFile, listing, named
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import CorruptDataError, MissingDataError
from tensorlake_spark.rows.row import PAYLOAD, payloads
from tensorlake_spark.threads import threads


class Traces:
    """What is known of the files in a table's folder.

    Parameters
    ----------
    storage : Storage
        The table.
    target : Target
        What is looked for.

    Attributes
    ----------
    held : dict of str to int
        The files that hold something of the target, each with the number of its rows that do.
    uncertified : dict of str to str
        Files that cannot be judged, each with the reason.
    """

    def __init__(self, storage: Storage, target: Target) -> None:
        self.storage, self.target = storage, target
        self.held: dict[str, int] = {}
        self.uncertified: dict[str, str] = {}
        self._clean: set[str] = set()
        self._damaged: dict[str, str] = {}
        self._files: dict[str, StoredFile] = {}
        self._naming: dict[str, Naming] = {}

    def look(self) -> None:
        """Read the files that are there; one that was read before never changes."""
        self._files = {file.path: file for file in listing(self.storage)}
        paths = [path for path, file in self._files.items() if file.may_have_rows]
        self.held = {path: self.held[path] for path in paths if path in self.held}
        self.uncertified = {}
        self._read(paths)

    def _read(self, paths: Sequence[str]) -> None:
        new = [path for path in paths if path not in self._clean and path not in self.held]
        for path, found in zip(new, threads().map(self._rows, new), strict=True):
            if isinstance(found, str):
                self.uncertified[path] = found
            elif found:
                self.held[path] = found
            else:
                self._clean.add(path)

    def _rows(self, path: str) -> int | str:
        if path in self._damaged:
            return self._damaged[path]
        try:
            return held_rows(self.storage, path, self.target)
        except MissingDataError:  # its writer has given up meanwhile
            return 0
        except CorruptDataError as error:
            return str(error)

    def held_by(self, snapshot: Snapshot) -> list[str]:
        """Return the live files of a version that hold something of the target; new ones are read."""
        live = snapshot.files.path
        self._read(live)
        return sorted(self.held.keys() & set(live))

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

    def record(
        self, path: str, due: str | None, probes: Probes | None, dry_run: bool
    ) -> PurgedFile | None:
        """Return the entry of a file in the receipt, and add its payloads to `probes`.

        Return None if the file is gone. Also if its payloads cannot be read: the file then stays, uncertified.
        """

        def take(rows: pa.RecordBatch, whole: Array) -> None:
            for name in [name for name in PAYLOAD if name in rows.schema.names]:
                for i, data in enumerate(payloads(rows.column(name), range(rows.num_rows))):
                    if data is not None and probes is not None:
                        probes.add(data, bool(whole[i]))

        try:
            with reading(self.storage, path):
                digest = "" if dry_run else sha256_of(self.storage, path)
            if probes is not None and not dry_run:
                held_rows(self.storage, path, self.target, take)
        except MissingDataError:  # its writer has given up, or a vacuum was faster
            return None
        except CorruptDataError as error:
            del self.held[path]
            self.uncertified[path] = self._damaged[path] = str(error)
            return None
        return PurgedFile(path, self._files[path].size, digest, self.held[path], due)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files from the store; raise CorruptDataError if the newest version names one of them."""
        live = set(Snapshot.open(self.storage).files.path)
        back = sorted(path for path in paths if path in live)
        if back:
            raise CorruptDataError(
                f"another writer brought {len(back)} of the files back, such as {back[0]}; nothing was deleted, "
                "purge again"
            )
        with reaching(self.storage):
            for path in paths:
                self.storage.delete(path)

    def search(self, probes: Probes, but: set[str]) -> tuple[dict[str, int], tuple[str, ...]]:
        """Search every file of the folder, except those in `but`, for payloads.

        Return what was searched, and the paths of the files that hold one.
        """
        files = [file for file in listing(self.storage) if file.path not in but]
        looked = Search(probes)

        def has(place: int) -> bool:
            file = files[place]
            with reaching(self.storage):
                return (file.may_have_rows and looked.in_columns(self.storage, file.path)) or (
                    looked.in_bytes(self.storage, file.path)
                )

        found = list(threads().map(has, range(len(files)))) if probes.digests else []
        searched = {
            "files": len(files) if probes.digests else 0,
            "bytes": sum(file.size for file in files) if probes.digests else 0,
            "payloads": len(probes.digests),
            "windows": len(looked.windows),
            "skipped": probes.skipped,
        }
        return searched, tuple(
            file.path for file, hit in zip(files, found, strict=bool(found)) if hit
        )
