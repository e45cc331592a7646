"""Which pieces of a source an earlier run has written, so that they are not written again.

A job is known by its source: kind, place, columns, and the names of the pieces. Each share that is done leaves a
note of its files. A piece whose files changed since is written again, and with it its share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any

from tensorlake_spark.datasets.sources.sample_source import Piece, SampleSource
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.store import staging
from tensorlake_spark.delta.store.paths import inside
from tensorlake_spark.delta.store.staging import Staging
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.spark.ingest.samples.sample_tasks import Written


def folder_of(
    source: SampleSource, schema: SampleSchema, pieces: Sequence[Piece], skip_bad: bool
) -> str:
    """Return the name of a job's notes, which is the same whatever its files hold."""
    kept = [str(field) for field in schema.to_arrow()]
    told = {
        one.name: repr(getattr(source, one.name))
        for one in fields(source)
        if one.name not in ("folder", "schema")
    }
    return f"samples-{_hash([source.kind, source.folder.uri, kept, told, [p.name for p in pieces], skip_bad])}"


def transaction_of(folder: str, pieces: Sequence[Piece]) -> tuple[str, int]:
    """Return the application transaction by which the same files are not committed twice."""
    return f"dataset/ingest/{folder}-{_hash([piece.mark for piece in pieces])}", 1


def earlier(storage: Storage, folder: str, pieces: Sequence[Piece]) -> list[Written]:
    """Return what earlier runs have written of these pieces, each once, and is still there."""
    marks = {piece.name: piece.mark for piece in pieces}
    found: list[Written] = []
    for name, text in sorted(Staging(storage, folder).read().items()):
        done = _read(text) if name.startswith("share-") else None
        if done is None or any(marks.get(one) != mark for one, mark in done.pieces):
            continue
        sizes = staging.sizes(storage, [file.path for file in done.data_files()])
        if sizes == [file.size for file in done.data_files()]:
            found.append(done)
            for one, _ in done.pieces:
                del marks[one]
    return found


def forget(storage: Storage, folder: str) -> None:
    """Delete the notes of a job that is committed."""
    with suppress(TensorLakeError, OSError):
        Staging(storage, folder).delete()


def _read(text: str) -> Written | None:
    """Return a note, None if it is damaged."""
    try:
        done = Written(**json.loads(text))
        for file in done.data_files():
            inside(file.path)
        return done
    except (ValueError, TypeError, AttributeError):  # a FormatError is a ValueError
        return None


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:24]
