"""What tasks leave behind so that a job that fails can be resumed: a receipt of the files that each wrote.

A receipt is a note in the table (`tensorlake_spark.delta.store.staging`), written when a task's data files are
closed. It is data from a disk: its first line is the checksum of the rest, which is JSON, and one that
cannot be read, or whose files are not there as it says, is as if it were not there.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store import staging
from tensorlake_spark.delta.store.paths import inside
from tensorlake_spark.delta.store.staging import Staging
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import ConcurrentWriteError, InvalidOptionError, TensorLakeError
from tensorlake_spark.indexing import Box
from tensorlake_spark.rows.metadata import META_COLUMNS, meta_batch, read_meta
from tensorlake_spark.spark.source.commit_message import TensorCommitMessage, Written

_FORMAT = 1
_RECEIPT, _COMMIT = "receipt", "commit"


@dataclass(frozen=True)
class Resumption:
    """What a writer has to know of earlier runs of its job; the option ``resumption``, as JSON.

    Attributes
    ----------
    folder : str
        Where the job keeps its receipts.
    look : str
        Which state of the sources this run reads.
    numbers : mapping of str to (int or None)
        For every tensor that the job writes the number of its last change, which the receipts go by.
    reused : tuple of str
        Names of the receipts that are committed with what this run writes.
    place : int
        The first place in the storage order of the tensor that those leave free.
    """

    folder: str
    look: str
    numbers: Mapping[str, int | None]
    reused: tuple[str, ...] = ()
    place: int = 0

    def to_json(self) -> str:
        """Return it as the option's text."""
        return json.dumps(self.__dict__, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Resumption:
        """Return what `to_json` wrote.

        Raises
        ------
        InvalidOptionError
            If the text is anything else.
        """
        try:
            found = json.loads(text)
            numbers = {str(k): None if n is None else int(n) for k, n in found["numbers"].items()}
            reused = tuple(str(name) for name in found["reused"])
            folder, look = str(found["folder"]), str(found["look"])
            if not (folder.replace("-", "").isalnum() and look.isalnum()):
                raise ValueError(folder)
            return cls(folder, look, numbers, reused, int(found["place"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidOptionError(
                f"option resumption={text[:80]!r} is not what jobs/ingest.py --resume makes: {error!r}"
            ) from None

    def check(self, snapshot: Snapshot) -> None:
        """Raise ConcurrentWriteError if a tensor changed since the receipts were made."""
        newest = snapshot.transactions([app_of(tensor_id) for tensor_id in self.numbers])
        for tensor_id, number in self.numbers.items():
            if newest[app_of(tensor_id)] != number:
                raise ConcurrentWriteError(
                    f"another writer changed tensor {tensor_id!r} since the files were looked at; nothing "
                    "was written, run the job again"
                )

    def leave(self, storage: Storage, message: TensorCommitMessage) -> None:
        """Write the receipt of a task that ended well."""
        name = f"{_RECEIPT}-{self.look}-{uuid.uuid4()}"
        Staging(storage, self.folder).write(name, to_text(message))

    def taken(self, storage: Storage) -> list[TensorCommitMessage]:
        """Return what the receipts say that are committed with this run.

        Raises
        ------
        ConcurrentWriteError
            If one of them is gone.
        """
        found = read(Staging(storage, self.folder))
        gone = [name for name in self.reused if name not in found]
        if gone:
            raise ConcurrentWriteError(
                f"what an earlier run had written is not in {storage.uri} any more: a vacuum, or another run "
                "of this job, took it; nothing was committed, run the job again"
            )
        return [found[name] for name in self.reused]

    def announce(self, storage: Storage, files: Sequence[DataFile]) -> None:
        """Note right before the commit what it will name: a run that is killed then can be told from one before."""
        text = json.dumps([file.path for file in files])
        Staging(storage, self.folder).write(f"{_COMMIT}-{self.look}", text)

    def clear(self, storage: Storage, committed: Collection[str]) -> None:
        """Delete the receipts after the commit, and files that only lost attempts of tasks have named.

        No other run of the job can commit those any more. What cannot be deleted is left to vacuum.
        """
        with suppress(TensorLakeError, OSError):
            notes = Staging(storage, self.folder)
            for message in read(notes).values():
                for file in message.files:
                    if file.path not in committed:
                        storage.delete(file.path)
            notes.delete()


def look_of(name: str) -> str:
    """Return which state of the sources a receipt is about.

    Examples
    --------
    >>> look_of("receipt-5f2a-8c1e")
    '5f2a'
    """
    return name.split("-")[1]


def announced(notes: Staging) -> dict[str, frozenset[str]]:
    """Return which files runs were about to commit, by the state of the sources that they read."""
    out = {}
    for name, text in notes.read().items():
        if name.startswith(f"{_COMMIT}-"):
            with suppress(ValueError, TypeError):  # as if it were not there
                out[look_of(name)] = frozenset(json.loads(text))
    return out


def read(notes: Staging) -> dict[str, TensorCommitMessage]:
    """Return the receipts that hold, by name: those of which every file is there."""
    texts = {k: v for k, v in notes.read().items() if k.startswith(f"{_RECEIPT}-")}
    parsed = {name: from_text(text) for name, text in sorted(texts.items())}
    whole = {name: message for name, message in parsed.items() if message is not None}
    files = [file for message in whole.values() for file in message.files]
    found = dict(
        zip(files, staging.sizes(notes.storage, [f.path for f in files]), strict=True)
        if files
        else []
    )
    return {
        name: message
        for name, message in whole.items()
        if all(found[file] == file.size for file in message.files)
    }


def to_text(message: TensorCommitMessage) -> str:
    """Return a receipt as text: a checksum, and JSON."""
    written = [
        {
            "meta": _meta_row(one),
            "boxes": [[box.lo, box.hi] for box in one.boxes],
            "spans": one.spans,
            "sample": one.sample,
        }
        for one in message.written
    ]
    files = [[file.path, file.size, file.stats] for file in message.files]
    body = json.dumps({"format": _FORMAT, "files": files, "written": written})
    return f"{zlib.crc32(body.encode()):08x}\n{body}"


def from_text(text: str) -> TensorCommitMessage | None:
    """Return what a receipt says, None if it is damaged or of another format."""
    crc, _, body = text.partition("\n")
    if crc != f"{zlib.crc32(body.encode()):08x}":
        return None
    try:
        found = json.loads(body)
        if found["format"] != _FORMAT:
            return None
        files = tuple(
            DataFile(inside(str(path)), int(size), str(stats))
            for path, size, stats in found["files"]
        )
        return TensorCommitMessage(files, tuple(_written(one) for one in found["written"]))
    except (ValueError, KeyError, TypeError, AttributeError, TensorLakeError):
        return None


def _meta_row(written: Written) -> dict[str, Any]:
    """Return spec and totals as the columns of a metadata row, which has a checksum of its own."""
    row: dict[str, Any] = meta_batch([written.spec], [0], [written.totals]).to_pylist()[0]
    return {name: row[name] for name in META_COLUMNS}


def _written(found: Mapping[str, Any]) -> Written:
    meta = read_meta(found["meta"])
    boxes = tuple(Box(tuple(lo), tuple(hi)) for lo, hi in found["boxes"])
    spans = tuple((int(first), int(stop)) for first, stop in found["spans"])
    nonzero, looked_at = found.get("sample", (0, 0))
    return Written(meta.spec, boxes, meta.totals, spans, (int(nonzero), int(looked_at)))
