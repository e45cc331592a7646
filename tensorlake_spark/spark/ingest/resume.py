"""Which pieces of a job an earlier run has written, so that they are not written again.

A piece is a band of a file or, with ``--each``, a tensor. Two runs belong to the same job if they have the same
key: a hash of everything that has to be equal, from the names and shapes of the sources to the last change of
the tensor. A source that changed meanwhile is recognised by its size and time. What was written of it is not
used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store import staging
from tensorlake_spark.delta.store.staging import Staging
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TableNotFoundError, TensorLakeError
from tensorlake_spark.spark.ingest.pieces import Bands, Whole, choose
from tensorlake_spark.spark.ingest.source_files import files_of
from tensorlake_spark.spark.source import task_notes
from tensorlake_spark.spark.source.commit_message import TensorCommitMessage
from tensorlake_spark.spark.source.task_notes import Resumption

_SOURCES = "sources"


class Part(Protocol):
    """A source or a part of one: its path, and everything known about it as text."""

    @property
    def path(self) -> str: ...

    def to_json(self) -> str: ...


@dataclass(frozen=True)
class Resumed:
    """How a job goes on.

    Attributes
    ----------
    storage : Storage
        The table.
    option : Resumption
        What its writer has to know.
    done : frozenset
        The pieces that earlier runs have written.
    pieces : int
        How many there are in all.
    sources : str
        The state of the sources, as the job notes it.
    """

    storage: Storage
    option: Resumption
    done: frozenset[Any]
    pieces: int
    sources: str

    def begin(self) -> None:
        """Note the state of the sources that the receipts of this run refer to."""
        notes = Staging(self.storage, self.option.folder)
        notes.write(f"{_SOURCES}-{self.option.look}", self.sources)

    def give_up(self) -> None:
        """Delete the notes of a failed run, if none of its tasks has ended."""
        notes = Staging(self.storage, self.option.folder)
        with suppress(TensorLakeError, OSError):
            if all(name.startswith(_SOURCES) for name in notes.read()):
                notes.delete()


def name_of(
    tensor_id: str, batch: tuple[str, int] | None, same: Sequence[Any], parts: Sequence[Part]
) -> str:
    """Return the name of a job. It does not depend on the content of the sources, or on changes of its tensors.

    Parameters
    ----------
    tensor_id, batch
        Where the job writes, and the number of its batch if it has one.
    same : sequence
        What else has to be the same, as JSON has it.
    parts : sequence of Part
        The sources.
    """
    return f"{_owner(tensor_id, batch)}-{_hash([*same, [part.to_json() for part in parts]])}"


def committed(storage: Storage, name: str, parts: Sequence[Part], dry_run: bool) -> bool:
    """Return whether an earlier run of a job committed these sources, and was killed before it could end.

    A run notes the names of its data files right before it commits. If one of them is in the table, the run has
    committed: no other commit can name that file. What such a run left behind is deleted, also if it committed
    other contents of the sources. A dry run deletes nothing.
    """
    left = [folder for folder in staging.folders(storage) if folder.startswith(f"{name}-")]
    if not left:
        return False
    try:
        live = Snapshot.open(storage).places.keys()
    except TableNotFoundError:
        return False
    now, is_there = _hash(_stamps(parts)), False
    for folder in left:
        for look, files in task_notes.announced(Staging(storage, folder)).items():
            if live.isdisjoint(files):
                continue
            is_there |= look == now
            if not dry_run:
                Resumption(folder, look, {}).clear(storage, files)
    return is_there


def resumed(
    storage: Storage,
    name: str,
    parts: Sequence[Part],
    pieces: Bands | Whole,
    ids: Sequence[str],
    layout: str = "",
) -> Resumed:
    """Return what earlier runs of a job have written, and what the next one is told.

    Parameters
    ----------
    storage : Storage
        Where the job writes.
    name : str
        What it is known by, see `name_of`.
    parts : sequence of Part
        The sources.
    pieces : Bands or Whole
        What there is to write.
    ids : sequence of str
        The tensors that it becomes.
    layout : str
        In which it is written; what was written in another one is of no use.
    """
    numbers = _numbers(storage, ids)
    folder = f"{name}-{_hash([numbers, layout])}"
    stamps = _stamps(parts)
    sources = json.dumps(stamps)
    option = Resumption(folder, _hash(stamps), numbers)
    notes = Staging(storage, folder)
    texts = notes.read()
    looks = {name.split("-")[1]: text for name, text in texts.items() if name.startswith(_SOURCES)}
    fresh = {look: _unchanged(text, stamps) for look, text in looks.items()}
    found = {
        name: message
        for name, message in task_notes.read(notes).items()
        if _is_fresh(message, pieces, fresh.get(task_notes.look_of(name), frozenset()))
    }
    reused, done, place = choose(found, pieces)
    return Resumed(
        storage,
        replace(option, reused=reused, place=place),
        done,
        len(pieces.part),
        sources,
    )


def forget(storage: Storage, tensor_id: str, batch: tuple[str, int]) -> None:
    """Delete what runs of a batch left that is in the table already: they were killed after the commit."""
    with suppress(TensorLakeError, OSError):
        for folder in staging.folders(storage):
            if folder.startswith(f"{_owner(tensor_id, batch)}-"):
                Staging(storage, folder).delete()


def _owner(tensor_id: str, batch: tuple[str, int] | None) -> str:
    return _hash([tensor_id, batch])


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def _numbers(storage: Storage, ids: Sequence[str]) -> dict[str, int | None]:
    try:
        snapshot = Snapshot.open(storage)
    except TableNotFoundError:
        return dict.fromkeys(ids)
    numbers = snapshot.transactions([app_of(i) for i in ids])
    return {i: numbers[app_of(i)] for i in ids}


def _stamps(parts: Sequence[Part]) -> list[list[int]]:
    """Return sizes and times of the sources' files, by which a change shows."""
    known: dict[str, list[int]] = {}
    for part in parts:
        if part.path not in known:
            known[part.path] = _stamp(part.path)
    return [known[part.path] for part in parts]


def _stamp(path: str) -> list[int]:
    """Return size and time of a file, of a folder those of all its files; nothing where it is gone."""
    found = files_of(path).sizes(path)
    if not found:
        return []
    return [len(found), sum(size for size, _ in found), max(time for _, time in found)]


def _unchanged(text: str, stamps: Sequence[Sequence[int]]) -> frozenset[int]:
    """Return which sources are as an earlier run noted them."""
    try:
        noted = json.loads(text)
    except ValueError:
        return frozenset()
    if not isinstance(noted, list) or len(noted) != len(stamps):
        return frozenset()
    return frozenset(k for k, stamp in enumerate(stamps) if stamp and noted[k] == stamp)


def _is_fresh(
    message: TensorCommitMessage, pieces: Bands | Whole, unchanged: Collection[int]
) -> bool:
    """Whether all that a task read is as it was."""
    keys: Any = pieces.of(message.written)
    return keys is not None and all(pieces.part[key] in unchanged for key in keys)
