"""Which pieces of a source an earlier run has written, so that they are not written again.

A job is known by its source: kind, place, columns, and the names of the pieces. Each share that is done leaves a
note of its files. A piece whose files changed since is written again, and with it its share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import chain
from typing import Any

from tensorlake_spark.datasets.apart.inner_tables import TENSORS_FOLDER, inner_storage
from tensorlake_spark.datasets.apart.inner_tables import folder_of as table_of
from tensorlake_spark.datasets.sources.sample_source import Piece, SampleSource
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.commit import transaction_done
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store import staging
from tensorlake_spark.delta.store.paths import inside
from tensorlake_spark.delta.store.staging import Staging
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TableNotFoundError, TensorLakeError
from tensorlake_spark.lake.lake import TensorLake
from tensorlake_spark.spark.ingest.samples.sample_tasks import Written

_COMMIT = "commit-"


def folder_of(
    source: SampleSource,
    schema: SampleSchema,
    names: Mapping[str, str],
    pieces: Sequence[Piece],
    skip_bad: bool,
    batch: tuple[str, int] | None = None,
) -> str:
    """Return the name of a job's notes, which is the same whatever its files hold.

    `names` are those by which parts of columns are stored, where they are others than the columns'. What was written
    for one batch is not used for another: it may be committed.
    """
    kept = [str(field) for field in schema.to_arrow()]
    # What was written apart of a column that was dropped meanwhile is not that of its successor.
    kept += [f"{name} {kind.apart} {names.get(name, name)}" for name, kind in schema.items()]
    told = {
        one.name: repr(getattr(source, one.name))
        for one in fields(source)
        if one.name not in ("folder", "schema")
    }
    job = [source.kind, source.folder.uri, kept, told, [p.name for p in pieces], skip_bad]
    return f"samples-{_hash(job if batch is None else [*job, batch])}"


def transaction_of(folder: str, pieces: Sequence[Piece]) -> tuple[str, int]:
    """Return the application transaction by which the same files are not committed twice."""
    return _transaction(folder, _state(pieces))


def announce(storage: Storage, folder: str, pieces: Sequence[Piece]) -> None:
    """Note right before the commit which state of the files it has: a run that is killed then can be told."""
    Staging(storage, folder).write(f"{_COMMIT}{_state(pieces)}", "")


def earlier(
    snapshot: Snapshot, folder: str, names: Mapping[str, str], pieces: Sequence[Piece]
) -> list[Written] | None:
    """Return what earlier runs have written of these pieces, each once, and is still there.

    None if one of them committed what the notes name, of whatever state of the files, and was killed after that. Since
    then the samples may have been changed, or moved to other files: with the old ones they would be there twice.
    `names` are as for `folder_of`.
    """
    storage = snapshot.storage
    notes = Staging(storage, folder).read()
    states = [name.removeprefix(_COMMIT) for name in notes if name.startswith(_COMMIT)]
    if any(transaction_done(snapshot, _transaction(folder, state)) for state in states):
        return None
    marks = {piece.name: piece.mark for piece in pieces}
    found: list[Written] = []
    for name, text in sorted(notes.items()):
        done = _read(text) if name.startswith("share-") else None
        if done is None or any(marks.get(one) != mark for one, mark in done.pieces):
            continue
        if _is_there(storage, names, done):
            found.append(done)
            for one, _ in done.pieces:
                del marks[one]
    return found


def forget(storage: Storage, folder: str) -> None:
    """Delete the notes of a job that is committed."""
    with suppress(TensorLakeError, OSError):
        Staging(storage, folder).delete()


def _is_there(storage: Storage, names: Mapping[str, str], done: Written) -> bool:
    """Whether all that a note names can be committed: a vacuum may have taken some of it."""
    places = [(storage, done.data_files())]
    for name, files in done.apart_files().items():
        places.append((inner_storage(storage, table_of(names.get(name, name))), files))
    for place, files in places:
        if staging.sizes(place, [file.path for file in files]) != [file.size for file in files]:
            return False
    if not done.tensors:
        return True
    try:
        return {*done.tensors} <= {*TensorLake(inner_storage(storage, TENSORS_FOLDER))}
    except TableNotFoundError:
        return False


def _read(text: str) -> Written | None:
    """Return a note, None if it is damaged."""
    try:
        done = Written(**json.loads(text))
        for file in [*done.data_files(), *chain(*done.apart_files().values())]:
            inside(file.path)
        return done
    except (ValueError, TypeError, AttributeError):  # a FormatError is a ValueError
        return None


def _state(pieces: Sequence[Piece]) -> str:
    return _hash([piece.mark for piece in pieces])


def _transaction(folder: str, state: str) -> tuple[str, int]:
    return f"dataset/ingest/{folder}-{state}", 1


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:24]
